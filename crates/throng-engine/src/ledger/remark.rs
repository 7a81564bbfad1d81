//! The first delivery error of each kind on a shard, as messages.

use throng_base::{Said, UserId};
use throng_metrics::DeliveryCounter;

use super::groups::{Groups, MemberId};

/// An error, by the counter that includes it.
pub(crate) type Remark = (DeliveryCounter, Said);

/// The first of each kind, once.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    seen: Vec<DeliveryCounter>,
    pub(super) waiting: Vec<Remark>,
}

impl Remarks {
    #[inline]
    pub(super) fn note(
        &mut self,
        counter: DeliveryCounter,
        said: impl FnOnce(UserId) -> Said,
        groups: &Groups,
        member: MemberId,
    ) {
        let user = groups.member(member).map_or(UserId(0), |member| member.user);
        self.note_once(counter, || said(user));
    }

    pub(super) fn note_once(&mut self, counter: DeliveryCounter, said: impl FnOnce() -> Said) {
        if !self.seen.contains(&counter) {
            self.seen.push(counter);
            self.waiting.push((counter, said()));
        }
    }
}
