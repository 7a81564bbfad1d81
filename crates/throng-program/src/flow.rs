//! Sessions and the statements of their steps: the tree of the scenario. Only the engine flattens
//! it into a list with jumps.

use std::sync::Arc;
use std::time::Duration;

use regex::bytes::Regex;
use throng_base::StepId;
use throng_expression::Expression;
use throng_extract::Digest;
use throng_protocol::framed::MessageId;

use crate::check::{Check, Pick, Save};
use crate::failing::{Failing, Retry};
use crate::load::Parting;
use crate::network::UserNetwork;
use crate::protocol::{Call, ConnectOptions, Content, MessageKind, Sql};
use crate::text::Text;

/// The steps of one kind of user.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub name: String,
    /// Its share of the users that are not counted.
    pub weight: u32,
    /// Exactly this many users of the run, the first ones; `None` distributes by weight.
    pub count: Option<u64>,
    /// The simulated network between its users and their targets; `None` is the network of this
    /// host.
    pub network: Option<UserNetwork>,
    /// Runs once when the user starts.
    pub before: Block,
    /// Runs once per iteration.
    pub steps: Block,
    /// Runs once when the user leaves gracefully.
    pub after: Block,
    /// The links of its steps, by index; at most [`LINKS_MAX`]. There is at least one if a step
    /// needs a connection.
    pub links: Box<[Link]>,
    /// The names of a user's slots: saved values, items of `for_each`, lists that are iterated.
    pub slots: Box<[String]>,
}

/// Most concurrent connections that a session can distinguish.
pub const LINKS_MAX: usize = 16;

/// A place for a connection of a session's users: its targets, its protocol, and the background
/// tasks while it is open.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// The name in `as`, or the name of the target; empty if there is only one.
    pub name: String,
    /// The targets, of which a user gets one by weight; by index in [`crate::Program::targets`],
    /// all of one scheme. If empty, all of them.
    pub targets: Box<[u16]>,
    /// Its protocol, by index in [`crate::Program::protocols`].
    pub protocol: Option<u16>,
    /// Without a protocol: the end of each received message. A server may join several in one
    /// WebSocket message; on a byte stream nothing else separates them.
    pub delimiter: Option<Box<[u8]>>,
    /// A `connect` opens it, and it stays open; otherwise the first request opens it.
    pub lasts: bool,
    /// It is opened with the request of an event stream: an HTTP response that does not end.
    pub events: bool,
    /// Most concurrent connections if branches, handlers and recurring actions use it; `None` is as
    /// many as browsers open. Otherwise there is one.
    pub width: Option<u8>,
    /// Sent while the connection is open, whatever the user does. A `stay` with its own heartbeat
    /// replaces it.
    pub heartbeat: Option<Heartbeat>,
    /// Handle unsolicited messages, at any time on the connection; those of a `stay` go first.
    pub handlers: Vec<Handler>,
    /// Recurring actions while the connection is open.
    pub every: Vec<Every>,
}

/// Steps, one after another.
pub type Block = Vec<Statement>;

/// A step with all nested steps. Large parts are shared, because the engine flattens the tree.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Opens a long-lived connection; with a WebSocket upgrade if the target's scheme requires it.
    Connect(Arc<Connect>),
    /// Ends the connection.
    Disconnect {
        link: u8,
        how: Parting,
    },
    /// Starts TLS on the open connection.
    Secure(Arc<Secure>),
    Http(Arc<Http>),
    Call(Arc<Call>),
    Sql(Arc<Sql>),
    Send(Arc<Send>),
    Expect(Arc<Expect>),
    /// Sends and waits for the reply; timed as one step.
    Request(Arc<Request>),
    /// Waits, listening.
    Think(Pause),
    /// Adds to a counter, or to the values of a trend: the value times `scale`.
    Tally {
        step: StepId,
        value: Arc<Text>,
        /// For a trend: how many units of its histogram are one.
        scale: Option<f64>,
    },
    /// Stays and listens.
    Stay(Arc<Stay>),
    /// Repeats this many times, drawn again whenever a user gets here.
    Repeat {
        low: u32,
        high: u32,
        steps: Block,
    },
    /// Until the user leaves, or a step inside ends it.
    Forever(Block),
    During {
        time: Duration,
        steps: Block,
    },
    /// Once for each item of a list, which is kept in the slot `list`; the current item is in the
    /// slot `item`.
    ForEach {
        values: Arc<Expression>,
        list: u16,
        item: u16,
        steps: Block,
    },
    While {
        condition: Arc<Expression>,
        steps: Block,
    },
    If {
        condition: Arc<Expression>,
        then: Block,
        otherwise: Block,
    },
    /// One of these branches, chosen at random by weight.
    Choose(Vec<Way>),
    /// The steps are timed together. Transactions may be nested.
    Transaction {
        step: StepId,
        steps: Block,
    },
    /// Concurrent branches; the user continues when all have ended.
    Parallel(Vec<Block>),
    Rendezvous(Arc<Rendezvous>),
    /// Keeps a value in a slot.
    Set {
        slot: u16,
        value: Arc<Text>,
    },
    /// Writes a line to the log of the run.
    Log(Arc<Text>),
    /// Ends the iteration; the load decides when the next one starts.
    Next,
    /// The user leaves gracefully.
    Leave,
    /// The whole run stops gracefully, for this reason.
    Stop(Arc<Text>),
    /// From now on the user reads and writes no faster than this.
    Slow {
        link: u8,
        slow: Slow,
    },
}

/// A property of steps that use a connection, with a default for others.
macro_rules! of_act {
    ($statement:ident, $one:ident => $of_act:expr, $else:expr) => {
        match $statement {
            Statement::Connect($one) => $of_act,
            Statement::Secure($one) => $of_act,
            Statement::Send($one) => $of_act,
            Statement::Stay($one) => $of_act,
            _ => of_answered!($statement, $one => $of_act, $else),
        }
    };
}

/// A property of steps with a reply, with a default for others.
macro_rules! of_answered {
    ($statement:ident, $one:ident => $of_act:expr, $else:expr) => {
        match $statement {
            Statement::Http($one) => $of_act,
            Statement::Call($one) => $of_act,
            Statement::Sql($one) => $of_act,
            Statement::Expect($one) => $of_act,
            Statement::Request($one) => $of_act,
            _ => $else,
        }
    };
}

impl Statement {
    /// Whether it is a request that opens its own connection: no `connect` precedes it.
    pub fn opens_itself(&self) -> bool {
        matches!(self, Statement::Http(_) | Statement::Call(_) | Statement::Sql(_))
    }

    /// The word of the language for what it does to the target, or to the run.
    pub fn verb(&self) -> Option<&'static str> {
        let of = |message: &Message, usual| message.content.verb().unwrap_or(usual);
        Some(match self {
            Statement::Connect(_) => "connect",
            Statement::Disconnect { .. } => "disconnect",
            Statement::Secure(_) => "secure",
            Statement::Http(_) => "http",
            Statement::Call(_) => Call::VERB,
            Statement::Sql(_) => Sql::VERB,
            Statement::Send(one) => of(&one.message, "send"),
            Statement::Expect(_) => "expect",
            Statement::Request(one) => of(&one.message, "request"),
            Statement::Think(_) => "think",
            // Its row is called after what it waits for: `expect close`.
            Statement::Stay(one) if one.awaits_end => "expect",
            Statement::Stay(_) => "stay",
            Statement::Rendezvous(_) => "rendezvous",
            Statement::Next => "next",
            Statement::Leave => "leave",
            Statement::Stop(_) => "stop",
            _ => return None,
        })
    }
}

/// The maximum speed of a user's connection, in bytes per second; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slow {
    /// 0 never reads.
    pub read: Option<u64>,
    pub write: Option<u64>,
}

/// A user stays connected.
#[derive(Clone, Debug)]
pub struct Stay {
    pub step: StepId,
    /// The link of its handlers and its heartbeat.
    pub link: u8,
    /// None: until the user is told to leave.
    pub time: Option<Duration>,
    /// Ends by the target that complete the step successfully.
    pub ends: Option<Ends>,
    /// The step waits for such an end, and fails if the time is over first.
    pub awaits_end: bool,
    pub heartbeat: Option<Heartbeat>,
    /// Handle unsolicited messages; the first that matches is used.
    pub handlers: Vec<Handler>,
    pub every: Vec<Every>,
    pub failing: Failing,
}

/// Ends of a connection by the target that a scenario expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Any end except a reset.
    Any,
    /// Closes of a WebSocket with one of these codes (RFC 6455, 7.4): 1005 is a close without a
    /// code, 1006 an end of the connection without a close.
    Codes(Box<[u16]>),
}

impl Ends {
    pub fn has(&self, code: u16) -> bool {
        match self {
            Ends::Any => true,
            Ends::Codes(codes) => codes.contains(&code),
        }
    }
}

/// A recurring action, in parallel to the user's other steps. The times of all users are spread
/// evenly over the period. An action that is still running when it is due again is skipped once.
#[derive(Clone, Debug)]
pub struct Every {
    pub time: Duration,
    pub body: Beside,
}

/// Background steps of a user: a task of their own runs them.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Its number in its session, by which the compiler identifies its position.
    pub number: u32,
    pub steps: Block,
}

/// A message that is sent repeatedly while a user stays, on its own schedule: the times of all
/// users are spread evenly over the period.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    pub step: StepId,
    pub beat: Beat,
    pub every: Duration,
    /// How the reply is recognized. If empty, it is the next message that no handler takes, and
    /// nothing is checked.
    pub answer: Which,
    /// A heartbeat without a reply after this time is lost; `None` expects no reply.
    pub lost_after: Option<Duration>,
    /// Intentional faults.
    pub fault: BeatFault,
}

/// Intentional faults of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatFault {
    /// Stops after this many on a connection.
    pub stop_after: Option<u16>,
    /// Sends each this much later than it is due; that is not counted as late.
    pub late: Duration,
    /// Sends each this many times; one reply is waited for.
    pub times: u8,
}

impl Default for BeatFault {
    fn default() -> BeatFault {
        BeatFault { stop_after: None, late: Duration::ZERO, times: 1 }
    }
}

/// A matcher for messages.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// For a declared protocol: one of these kinds, or any if empty.
    pub messages: Box<[MessageId]>,
    /// And all of these hold.
    pub checks: Vec<Check>,
}

impl Which {
    /// Whether every message matches, so that nothing has to be checked.
    pub fn is_any(&self) -> bool {
        self.messages.is_empty() && self.checks.is_empty()
    }
}

/// The content of a heartbeat.
#[derive(Clone, Debug)]
pub enum Beat {
    Message(Message),
    /// A ping of the protocol, such as that of a WebSocket (RFC 6455, 5.5.2); its reply is the
    /// pong.
    Ping,
}

/// Handles an unsolicited message.
#[derive(Clone, Debug)]
pub struct Handler {
    /// Its row: how many arrived.
    pub step: StepId,
    pub message: Which,
    /// Checks of a matching message; if they fail, that is a failure of this step.
    pub checks: Vec<Check>,
    pub saves: Vec<Save>,
    /// Background steps for the message.
    pub body: Option<Beside>,
    pub failing: Failing,
}

/// One branch of a choice.
#[derive(Clone, Debug)]
pub struct Way {
    pub weight: u32,
    pub steps: Block,
}

/// A think time. Negative random times become zero.
#[derive(Clone, Debug)]
pub enum Pause {
    Uniform {
        low: Duration,
        high: Duration,
    },
    /// At most `max`, so that no user pauses for an hour.
    Exponential {
        mean: Duration,
        max: Duration,
    },
    Normal {
        mean: Duration,
        deviation: Duration,
    },
    /// A duration with a unit, or a number of seconds.
    Text(Arc<Text>),
}

/// Users wait for each other and continue together.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    pub step: StepId,
    /// Its place; steps with the same name share one. Below [`crate::Program::rendezvous`].
    pub place: u16,
    /// Size of a group.
    pub users: u64,
    /// A user that has waited this long continues alone, which is a failure of the step.
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct Connect {
    pub step: StepId,
    pub link: u8,
    /// Path and query of a WebSocket upgrade or of an event stream.
    pub path: Text,
    pub headers: Vec<(String, Text)>,
    /// Sent in addition to those that the target has set.
    pub cookies: Vec<(String, Text)>,
    /// The request of an event stream, unless it is a GET without a body.
    pub request: Option<Box<EventRequest>>,
    /// Offered WebSocket sub-protocols.
    pub protocols: Vec<Text>,
    /// Options that only its protocol has.
    pub options: Option<Box<ConnectOptions>>,
    pub timeout: Duration,
    pub failing: Failing,
    /// What a user does when its connection is lost: it waits, longer with every consecutive loss,
    /// and leaves when no attempt is left. `None` reconnects immediately the first time, and after
    /// a short wait from then on, without limit.
    pub reconnect: Option<Retry>,
}

impl Connect {
    /// Whether it resumes a session that the server has kept.
    pub fn resumes(&self) -> bool {
        self.options.as_ref().is_some_and(|options| options.resumes())
    }
}

/// Starts TLS on an open connection, after both sides have agreed on it (STARTTLS).
#[derive(Clone, Debug)]
pub struct Secure {
    pub step: StepId,
    pub link: u8,
    /// Timeout of the handshake.
    pub timeout: Duration,
    pub failing: Failing,
}

/// The request that opens an event stream.
#[derive(Clone, Debug)]
pub struct EventRequest {
    pub method: String,
    pub body: Body,
}

/// An HTTP request and the checks of its response.
#[derive(Clone, Debug)]
pub struct Http {
    pub step: StepId,
    pub link: u8,
    pub method: String,
    /// Path and query.
    pub path: Text,
    /// Without Host, Content-Length and Connection, unless the scenario sets them.
    pub headers: Vec<(String, Text)>,
    /// Sent in addition to those that the target has set.
    pub cookies: Vec<(String, Text)>,
    /// Credentials for digest authentication (RFC 7616).
    pub digest: Option<Box<DigestAuth>>,
    pub body: Body,
    /// From when it is sent to the last byte. Latency is measured from when it was due, but a start
    /// that had to wait for a free user gets its full timeout.
    pub timeout: Duration,
    pub follow_redirects: bool,
    /// Without a status check, statuses from 400 on are failures.
    pub checks: Vec<Check>,
    pub saves: Vec<Save>,
    pub failing: Failing,
}

/// Credentials of a user.
#[derive(Clone, Debug)]
pub struct DigestAuth {
    pub user: Text,
    pub password: Text,
}

impl Http {
    /// Whether a check, save or expression reads the body.
    pub fn needs_body(&self) -> bool {
        let checked = self.checks.iter().any(|check| check.pick.needs_body());
        checked || self.saves.iter().any(|save| save.pick.needs_body())
    }

    /// The digests that checks need, if they need nothing else of the body, so that it is not kept.
    pub fn streamed(&self) -> Option<Vec<Digest>> {
        let checked = self.checks.iter().map(|check| &check.pick);
        let picks = checked.chain(self.saves.iter().map(|save| &save.pick));
        let mut digests = Vec::new();
        for pick in picks.filter(|pick| pick.needs_body()) {
            match pick {
                Pick::Digest(digest) if !digests.contains(digest) => digests.push(*digest),
                pick if pick.is_streamed() => {}
                _ => return None,
            }
        }
        self.needs_body().then_some(digests)
    }

    /// Whether a check, save or expression reads the headers.
    pub fn needs_headers(&self) -> bool {
        let checked = self.checks.iter().any(|check| check.pick.needs_headers());
        checked || self.saves.iter().any(|save| save.pick.needs_headers())
    }
}

/// The body of a request.
#[derive(Clone, Debug, Default)]
pub enum Body {
    #[default]
    None,
    Text(Text),
}

#[derive(Clone, Debug)]
pub struct Send {
    pub step: StepId,
    pub link: u8,
    pub message: Message,
    /// How long a target that does not read may block it.
    pub timeout: Duration,
    pub failing: Failing,
}

#[derive(Clone, Debug)]
pub struct Expect {
    pub step: StepId,
    pub link: u8,
    /// The message to wait for; other messages are pushes.
    pub message: Which,
    pub until: Until,
    pub checks: Vec<Check>,
    pub saves: Vec<Save>,
    pub timeout: Duration,
    pub failing: Failing,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub step: StepId,
    pub link: u8,
    pub message: Message,
    /// How its reply is recognized, if messages do not show it; if empty, it is the next message
    /// that is not for another task.
    pub answer: Which,
    pub until: Until,
    pub checks: Vec<Check>,
    pub saves: Vec<Save>,
    pub timeout: Duration,
    pub failing: Failing,
}

/// A message on a long-lived connection.
#[derive(Clone, Debug)]
pub struct Message {
    pub content: Content,
    /// Only this many of its bytes are sent, on purpose.
    pub cut: Option<u32>,
}

impl Message {
    pub fn plain(kind: MessageKind, content: Text) -> Message {
        Message { content: Content::Plain { kind, content }, cut: None }
    }
}

/// The end of a reply on a byte stream. On a WebSocket the reply is always the next message, for a
/// declared protocol the matching reply.
#[derive(Clone, Debug)]
pub enum Until {
    /// Whatever arrives first.
    Any,
    Length(u64),
    Delimiter(Box<[u8]>),
    Pattern(Regex),
}
