//! The first delivery error of each kind on a shard, as messages.

use std::time::Duration;

use throng_base::units::{format_count, format_duration};
use throng_base::{Said, Time, UserId};
use throng_metrics::DeliveryCounter;

use super::groups::{Groups, MemberId};

/// Users that are named as having lost a message.
pub(super) const SHOWN_USERS_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    Lost {
        id: String,
        sender: UserId,
        at: Time,
        /// Of the members of one shard.
        lost: u64,
        expected: u64,
        users: Vec<UserId>,
    },
    Twice {
        id: String,
        user: UserId,
    },
    OutOfOrder {
        id: String,
        /// The later message that arrived first.
        before: String,
        user: UserId,
    },
    AfterLost {
        id: String,
        user: UserId,
        /// Since it was sent.
        taken: Duration,
    },
    Stray {
        id: String,
        user: UserId,
    },
    Foreign {
        id: String,
        user: UserId,
    },
    /// The message, in which nothing identifies it.
    SentWithoutId {
        user: UserId,
        content: String,
    },
    ReceivedWithoutId {
        user: UserId,
        content: String,
    },
}

impl Remark {
    /// The counter that includes it.
    pub(crate) fn counter(&self) -> DeliveryCounter {
        match self {
            Remark::Lost { .. } => DeliveryCounter::Lost,
            Remark::Twice { .. } => DeliveryCounter::Twice,
            Remark::OutOfOrder { .. } => DeliveryCounter::OutOfOrder,
            Remark::AfterLost { .. } => DeliveryCounter::AfterLost,
            Remark::Stray { .. } => DeliveryCounter::Stray,
            Remark::Foreign { .. } => DeliveryCounter::Foreign,
            Remark::SentWithoutId { .. } => DeliveryCounter::SentWithoutId,
            Remark::ReceivedWithoutId { .. } => DeliveryCounter::ReceivedWithoutId,
        }
    }
}

impl Remark {
    pub(crate) fn said(&self) -> Said {
        let text = match self {
            Remark::Lost { id, sender, at, lost, expected, users } => {
                let (at, users) = (format_duration(at.since(Time::ZERO)), list(users));
                let (lost, expected) = (format_count(*lost), format_count(*expected));
                say!(
                    "message {id} sent by user {sender} at {at} did not reach {lost} of \
                     {expected} receivers on one shard: users {users}"
                )
            }
            Remark::Twice { id, user } => {
                say!("message {id} was delivered to user {user} again")
            }
            Remark::OutOfOrder { id, before, user } => {
                say!(
                    "message {id} reached user {user} after {before}, a later message from the \
                     same sender"
                )
            }
            Remark::AfterLost { id, user, taken } => {
                let taken = format_duration(*taken);
                say!(
                    "message {id} reached user {user} late ({taken} after it was sent); it was \
                     already counted as lost"
                )
            }
            Remark::Stray { id, user } => {
                say!("message {id} reached user {user}, which is not in its audience")
            }
            Remark::Foreign { id, user } => {
                say!("message {id} reached user {user}, but no user of this run sent it")
            }
            Remark::SentWithoutId { user, content } => {
                say!("`match` found no ID in a message sent by user {user}: `{content}`")
            }
            Remark::ReceivedWithoutId { user, content } => {
                say!("`match` found no ID in a message received by user {user}: `{content}`")
            }
        };
        text.clone()
    }
}

fn list(users: &[UserId]) -> String {
    let users: Vec<String> = users.iter().map(UserId::to_string).collect();
    users.join(", ")
}

/// The first of each kind, once.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    seen: Vec<DeliveryCounter>,
    waiting: Vec<Remark>,
}

impl Remarks {
    #[inline]
    pub(super) fn note(
        &mut self,
        counter: DeliveryCounter,
        remark: impl FnOnce(UserId) -> Remark,
        groups: &Groups,
        member: MemberId,
    ) {
        let user = groups.member(member).map_or(UserId(0), |member| member.user);
        self.note_once(counter, || remark(user));
    }

    pub(super) fn note_once(&mut self, counter: DeliveryCounter, remark: impl FnOnce() -> Remark) {
        if !self.seen.contains(&counter) {
            self.seen.push(counter);
            self.waiting.push(remark());
        }
    }

    pub(super) fn take_all(&mut self) -> Vec<Remark> {
        std::mem::take(&mut self.waiting)
    }
}
