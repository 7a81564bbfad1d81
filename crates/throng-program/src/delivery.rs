//! Messages that fan out, and their expected receivers. The ledger of a run determines which
//! receivers got them.

use std::time::Duration;

use throng_base::StepId;
use throng_expression::Expression;

use crate::check::Pick;
use crate::flow::Which;

/// Every message that starts a delivery must reach its whole audience, once.
///
/// The audience is determined by the users of the run: those that were online when the message was
/// sent, and still were when it was lost for them.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its row: a delivered message is a success with the time from its timestamp, a lost one a
    /// failure.
    pub step: StepId,
    pub begins: Begins,
    /// The received messages, by the protocol (its index in [`crate::Program::protocols`]) of the
    /// receivers' sessions. Users of sessions with another protocol are in no audience.
    pub protocol: Option<u16>,
    pub received: Which,
    /// The ID in received messages.
    pub received_id: Mark,
    /// In received messages: when it was sent, in nanoseconds since the epoch. Without it, no
    /// latency is measured.
    pub stamp: Option<Mark>,
    pub audience: Audience,
    /// The sender does not get its own message.
    pub without_sender: bool,
    /// Deliveries after this time are late.
    pub late_after: Duration,
    /// Deliveries after this time are lost.
    pub lost_after: Duration,
}

impl Delivery {
    /// The steps that send messages of it.
    pub fn senders(&self) -> &[StepId] {
        match &self.begins {
            Begins::Sent { steps, .. } => steps,
            Begins::Disconnect { .. } => &[],
        }
    }
}

/// What starts a delivery.
#[derive(Clone, Debug)]
pub enum Begins {
    /// A message of a user.
    Sent {
        /// The steps that send it: `send` and `request` with the message as sent, `http` with the
        /// request's body. The message of a failed step is not expected.
        steps: Box<[StepId]>,
        /// The ID in sent messages.
        id: Mark,
    },
    /// A connection of a user ends that it was online on, whichever side ended it: the target
    /// notifies the others (presence, a last will). A connection that ends with the load starts
    /// none.
    Disconnect {
        /// Of users of this session; `None`: of all.
        session: Option<u16>,
        /// The ID, from the values of that user.
        id: Box<Expression>,
    },
}

/// The position of the ID or timestamp in a message.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The message starts with this prefix; the selector is applied to what follows, from the first
    /// bracket or brace on: `42["say",{…}]`.
    pub prefix: Option<Box<[u8]>>,
    pub pick: Pick,
}

/// The expected receivers of a message.
#[derive(Clone, Debug)]
pub enum Audience {
    /// Every user that is online.
    Everyone,
    /// Those for which the expression has the same value as for the sender.
    Same(Box<Expression>),
    /// Those for which `is` has the value that `to` has for the sender: one user, or a room other
    /// than the sender's.
    To { to: Box<Expression>, is: Box<Expression> },
}
