//! Messages that fan out: which have to reach whom. The ledger of a run says which did.

use std::time::Duration;

use throng_base::StepId;
use throng_expression::Expression;

use crate::check::Pick;
use crate::flow::Which;

/// Every message that begins a delivery has to reach its whole audience, once.
///
/// Who is in the audience is known by the users of the run: those who were online when the message
/// was sent, and still were when it was lost for them.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its row: delivered ones are ok with the time from the stamp, lost ones have failed.
    pub step: StepId,
    pub begins: Begins,
    /// What the receivers get, by the protocol (its number in [`crate::Program::protocols`]) that
    /// their sessions speak. Users of sessions with another one are in no audience.
    pub protocol: Option<u16>,
    pub received: Which,
    /// What tells the messages apart in what is received.
    pub received_id: Mark,
    /// In what is received: when it was sent, in nanoseconds since the epoch. Without one there is
    /// no latency.
    pub stamp: Option<Mark>,
    pub audience: Audience,
    /// The sender itself gets nothing.
    pub without_sender: bool,
    /// Later than this is late, though delivered.
    pub late_after: Duration,
    /// Later than this is lost.
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

/// What a delivery begins with.
#[derive(Clone, Debug)]
pub enum Begins {
    /// A message of a user.
    Sent {
        /// The steps that send: `send` and `request` with the message as it is sent, `http` with
        /// the request's body. What a failed step has sent is not expected anywhere.
        steps: Box<[StepId]>,
        /// What tells the messages apart in what is sent.
        id: Mark,
    },
    /// A connection of a user ends that it was online on, whoever ended it: the target tells the
    /// others (presence, a last will). One that ends with the load begins none.
    Disconnect {
        /// Of users of this session; None: of all.
        session: Option<u16>,
        /// What tells the messages apart, from the values of that user.
        id: Box<Expression>,
    },
}

/// Where the id or the stamp of a message stands.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The message begins with this; the pick looks at what begins behind it with the first bracket
    /// or brace: `42["say",{…}]`.
    pub prefix: Option<Box<[u8]>>,
    pub pick: Pick,
}

/// Who has to receive a message.
#[derive(Clone, Debug)]
pub enum Audience {
    /// Every user who is online.
    Everyone,
    /// Those of them for whom the expression has the same value as for the sender.
    Same(Box<Expression>),
    /// Those of them for whom `is` has the value that `to` has for the sender: one user, or a
    /// room other than the sender's.
    To { to: Box<Expression>, is: Box<Expression> },
}
