//! Messages that fan out: which have to reach whom. The ledger of a run says which did.

use std::time::Duration;

use throng_base::StepId;
use throng_expression::Expression;

use crate::check::Pick;
use crate::flow::Which;

/// Every message that is sent by one of the `senders` has to reach its whole audience, once.
///
/// Who is in the audience is known by the users of the run: those who were online when the message
/// was sent, and still were when it was lost for them.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its row: delivered ones are ok with the time from the stamp, lost ones have failed.
    pub step: StepId,
    /// The steps that send: `send` and `request` with the message as it is sent, `http` with the
    /// request's body. What a failed step has sent is not expected anywhere.
    pub senders: Box<[StepId]>,
    /// What the receivers get, by the protocol (its number in [`crate::Program::protocols`]) that
    /// their sessions speak. Users of sessions with another one are in no audience.
    pub protocol: Option<u16>,
    pub received: Which,
    /// What tells the messages apart, looked at in what is sent and in what is received.
    pub sent_id: Mark,
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
