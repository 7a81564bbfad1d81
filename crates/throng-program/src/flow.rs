//! Sessions and the statements of their steps: the tree that the scenario has. Only the engine
//! makes a flat list with jumps of it.

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

/// What one kind of user does.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub name: String,
    /// Its share of the users who are not counted.
    pub weight: u32,
    /// Exactly so many users of the run do it, the first ones; None goes by weight.
    pub count: Option<u64>,
    /// What is between its users and their targets; None is the network of this host.
    pub network: Option<UserNetwork>,
    /// Done once when the user comes.
    pub before: Block,
    /// Done once per iteration.
    pub steps: Block,
    /// Done once when the user leaves in peace.
    pub after: Block,
    /// Where its steps have connections, by the numbers that they use; at most [`LINKS_MAX`].
    /// There is one at least where a step needs a connection.
    pub links: Box<[Link]>,
    /// What a user of this session keeps, by slot: saved values by their names, items of
    /// `for_each`, lists that are gone through.
    pub slots: Box<[String]>,
}

/// So many connections that are open at the same time a session can tell apart.
pub const LINKS_MAX: usize = 16;

/// A place for a connection of a session's users: where it leads, what it speaks, and what goes on
/// while it is open.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// What `as` says, else the name of the target; empty where there is only one.
    pub name: String,
    /// The targets that a user gets one of, by weight; by their numbers in
    /// [`crate::Program::targets`], all of one scheme. Without any, all of them.
    pub targets: Box<[u16]>,
    /// What is spoken, by its number in [`crate::Program::protocols`].
    pub protocol: Option<u16>,
    /// Without one: the end of each message that comes, which a server may join in one message of
    /// a WebSocket; on a stream of bytes nothing else tells them apart.
    pub delimiter: Option<Box<[u8]>>,
    /// A `connect` opens it, and it stays open; else the first request does.
    pub lasts: bool,
    /// Opening it asks for an event stream: an answer of HTTP that does not end.
    pub events: bool,
    /// So many connections are open at the same time at most where branches, handlers and what is
    /// done every so often ask over it; None is as many as browsers have. Else there is one.
    pub width: Option<u8>,
    /// On its way while the connection is open, whatever the user does. A `stay` with one of its
    /// own has that one.
    pub heartbeat: Option<Heartbeat>,
    /// What is made of messages that nobody has asked for, at any time on the connection; asked
    /// after those of a `stay`.
    pub handlers: Vec<Handler>,
    /// What is done again and again while the connection is open.
    pub every: Vec<Every>,
}

/// Steps, one after another.
pub type Block = Vec<Statement>;

/// A step with all that is inside of it. What is large is shared, as the engine lays the tree out
/// flat.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Opens a connection that lasts; a WebSocket upgrade where the target's scheme says so.
    Connect(Arc<Connect>),
    /// Ends the connection.
    Disconnect {
        link: u8,
        how: Parting,
    },
    /// Puts TLS on the connection that is open.
    Secure(Arc<Secure>),
    Http(Arc<Http>),
    Call(Arc<Call>),
    Sql(Arc<Sql>),
    Send(Arc<Send>),
    Expect(Arc<Expect>),
    /// Sends and waits for the answer; timed as one step.
    Request(Arc<Request>),
    /// Waits, listening.
    Think(Pause),
    /// Adds to a counter, or to the values of a trend: the value times `scale`.
    Tally {
        step: StepId,
        value: Arc<Text>,
        /// Of a trend: how many its histogram counts for one.
        scale: Option<f64>,
    },
    /// Stays and listens.
    Stay(Arc<Stay>),
    /// So many times, drawn anew whenever a user comes here.
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
    /// Once for each item of a list, which is kept in the slot `list`; the running item is in the
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
    /// One of these ways, drawn by weight.
    Choose(Vec<Way>),
    /// The steps are timed together. Transactions may be nested.
    Transaction {
        step: StepId,
        steps: Block,
    },
    /// Branches that are done at the same time; the user goes on when all of them are over.
    Parallel(Vec<Block>),
    Rendezvous(Arc<Rendezvous>),
    /// Keeps a value in a slot.
    Set {
        slot: u16,
        value: Arc<Text>,
    },
    /// Writes a line into the record of the run.
    Log(Arc<Text>),
    /// Ends the iteration; the next one begins as the load has it.
    Next,
    /// The user leaves in peace.
    Leave,
    /// The whole run ends in order, for this reason.
    Stop(Arc<Text>),
    /// From now on the user reads and writes no faster than this.
    Slow {
        link: u8,
        slow: Slow,
    },
}

/// What a step says that uses a connection; else something else.
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

/// What a step says that is answered; else something else.
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
    /// Whether it is a request that opens its connection itself where none is there: no `connect`
    /// stands before it.
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

/// How fast a user's connection is at most, in bytes per second; None is as fast as it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slow {
    /// 0 never reads.
    pub read: Option<u64>,
    pub write: Option<u64>,
}

/// A user stays on its connection.
#[derive(Clone, Debug)]
pub struct Stay {
    pub step: StepId,
    /// Whose messages its handlers and its heartbeat are about.
    pub link: u8,
    /// None: until the user is told to leave.
    pub time: Option<Duration>,
    /// How the target may end the connection: then the step is done, and good.
    pub ends: Option<Ends>,
    /// The step waits for that, and fails where the time is over before.
    pub awaits_end: bool,
    pub heartbeat: Option<Heartbeat>,
    /// What is made of messages that nobody has asked for; the first that fits.
    pub handlers: Vec<Handler>,
    pub every: Vec<Every>,
    pub failing: Failing,
}

/// Ends of a connection by the target that a scenario wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Any, but for a reset.
    Any,
    /// Closes of a WebSocket with one of these codes (RFC 6455, 7.4): 1005 is one without a code,
    /// 1006 an end of the connection without a close.
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

/// Something that is done again and again, beside what the user does else. The moments of all
/// users are spread evenly over the time. What is not done when it is due again is skipped once.
#[derive(Clone, Debug)]
pub struct Every {
    pub time: Duration,
    pub body: Beside,
}

/// Steps that a user does beside its own: a task of their own does them.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Which one of its session it is: the language knows by it where it is written.
    pub number: u32,
    pub steps: Block,
}

/// A message that is sent again and again while a user stays, on a schedule of its own: the moments
/// of all users are spread evenly over the period.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    pub step: StepId,
    pub beat: Beat,
    pub every: Duration,
    /// What the answer has to be to be one. Without any, the next message that no handler takes
    /// is it; nothing has to be looked at then.
    pub answer: Which,
    /// A heartbeat that is not answered after this time is lost; None expects no answer.
    pub lost_after: Option<Duration>,
    /// How it misbehaves on purpose.
    pub fault: BeatFault,
}

/// How a heartbeat misbehaves on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatFault {
    /// No more are sent on a connection after so many.
    pub stop_after: Option<u16>,
    /// Each is sent so much later than it is due, which nobody has to answer for.
    pub late: Duration,
    /// Each is sent so many times; one of them is waited for.
    pub times: u8,
}

impl Default for BeatFault {
    fn default() -> BeatFault {
        BeatFault { stop_after: None, late: Duration::ZERO, times: 1 }
    }
}

/// Which messages are meant.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// Of a declared protocol: one of these kinds; without any, every kind.
    pub messages: Box<[MessageId]>,
    /// And all of these hold.
    pub checks: Vec<Check>,
}

impl Which {
    /// Every message is meant; nothing has to be looked at.
    pub fn is_any(&self) -> bool {
        self.messages.is_empty() && self.checks.is_empty()
    }
}

/// What a heartbeat is.
#[derive(Clone, Debug)]
pub enum Beat {
    Message(Message),
    /// A ping of the protocol, such as that of a WebSocket (RFC 6455, 5.5.2); its answer is the
    /// pong.
    Ping,
}

/// What is done when a message comes that nobody has asked for.
#[derive(Clone, Debug)]
pub struct Handler {
    /// Its row: how many came.
    pub step: StepId,
    pub message: Which,
    /// What a message that is meant has to be; if it is not, that is a failure of this step.
    pub checks: Vec<Check>,
    pub saves: Vec<Save>,
    /// What is done with it, beside what the user does else.
    pub body: Option<Beside>,
    pub failing: Failing,
}

/// One way of a choice.
#[derive(Clone, Debug)]
pub struct Way {
    pub weight: u32,
    pub steps: Block,
}

/// How long a user thinks. A drawn time below zero is none.
#[derive(Clone, Debug)]
pub enum Pause {
    Uniform {
        low: Duration,
        high: Duration,
    },
    /// At most `max`, so that no user thinks for an hour.
    Exponential {
        mean: Duration,
        max: Duration,
    },
    Normal {
        mean: Duration,
        deviation: Duration,
    },
    /// A duration as people write it, or a number of seconds.
    Text(Arc<Text>),
}

/// Users wait for each other and go on together.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    pub step: StepId,
    /// Which one; steps of the same name are one place. Below [`crate::Program::rendezvous`].
    pub place: u16,
    /// So many go on together.
    pub users: u64,
    /// Who has waited this long goes on alone, which is a failure of the step.
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct Connect {
    pub step: StepId,
    pub link: u8,
    /// Path and query of a WebSocket upgrade or of an event stream.
    pub path: Text,
    pub headers: Vec<(String, Text)>,
    /// Sent with those that the target has set.
    pub cookies: Vec<(String, Text)>,
    /// What the request of an event stream is, where it is not a GET without a body.
    pub request: Option<Box<EventRequest>>,
    /// Offered WebSocket sub-protocols.
    pub protocols: Vec<Text>,
    /// What only its protocol has.
    pub options: Option<Box<ConnectOptions>>,
    pub timeout: Duration,
    pub failing: Failing,
    /// What a user does whose connection was lost: it waits, longer with every loss in a row, and
    /// leaves when no attempt is left. None connects again at once the first time, and holds back
    /// a moment after that, for ever.
    pub reconnect: Option<Retry>,
}

impl Connect {
    /// Whether it goes on with what the server has kept of the user.
    pub fn resumes(&self) -> bool {
        self.options.as_ref().is_some_and(|options| options.resumes())
    }
}

/// TLS begins on an open connection, where both sides have agreed on that (STARTTLS).
#[derive(Clone, Debug)]
pub struct Secure {
    pub step: StepId,
    pub link: u8,
    /// Of the handshake.
    pub timeout: Duration,
    pub failing: Failing,
}

/// The request that opens an event stream.
#[derive(Clone, Debug)]
pub struct EventRequest {
    pub method: String,
    pub body: Body,
}

/// An HTTP request and what its answer has to be.
#[derive(Clone, Debug)]
pub struct Http {
    pub step: StepId,
    pub link: u8,
    pub method: String,
    /// Path and query.
    pub path: Text,
    /// Without Host, Content-Length and Connection, unless the person set them.
    pub headers: Vec<(String, Text)>,
    /// Sent with those that the target has set.
    pub cookies: Vec<(String, Text)>,
    /// Who it is from, where the target asks for digest authentication (RFC 7616).
    pub digest: Option<Box<DigestAuth>>,
    pub body: Body,
    /// From the moment it is sent to the last byte. Latency counts from the due time, but a start
    /// that had to wait for a free user has its whole time all the same.
    pub timeout: Duration,
    pub follow_redirects: bool,
    /// Without a status check, statuses from 400 on are failures.
    pub checks: Vec<Check>,
    pub saves: Vec<Save>,
    pub failing: Failing,
}

/// A user whom the target knows.
#[derive(Clone, Debug)]
pub struct DigestAuth {
    pub user: Text,
    pub password: Text,
}

impl Http {
    /// Whether somebody looks at the body.
    pub fn needs_body(&self) -> bool {
        let checked = self.checks.iter().any(|check| check.pick.needs_body());
        checked || self.saves.iter().any(|save| save.pick.needs_body())
    }

    /// What is looked at of the body, when nothing else is and it need not be kept for that.
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

    /// Whether somebody looks at the headers.
    pub fn needs_headers(&self) -> bool {
        let checked = self.checks.iter().any(|check| check.pick.needs_headers());
        checked || self.saves.iter().any(|save| save.pick.needs_headers())
    }
}

/// What a request carries.
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
    /// How long a target that does not read may keep it waiting.
    pub timeout: Duration,
    pub failing: Failing,
}

#[derive(Clone, Debug)]
pub struct Expect {
    pub step: StepId,
    pub link: u8,
    /// Which message is waited for; others that come meanwhile are pushes.
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
    /// Which message is its answer, where messages do not say it themselves; without a word, the
    /// next one that is for nobody else.
    pub answer: Which,
    pub until: Until,
    pub checks: Vec<Check>,
    pub saves: Vec<Save>,
    pub timeout: Duration,
    pub failing: Failing,
}

/// What is sent on a long-lived connection.
#[derive(Clone, Debug)]
pub struct Message {
    pub content: Content,
    /// Only so many of its bytes are sent, on purpose.
    pub cut: Option<u32>,
}

impl Message {
    pub fn plain(kind: MessageKind, content: Text) -> Message {
        Message { content: Content::Plain { kind, content }, cut: None }
    }
}

/// Where an answer ends. On a WebSocket the answer is the next message, of a declared protocol its
/// reply, whatever this says.
#[derive(Clone, Debug)]
pub enum Until {
    /// Whatever comes first.
    Any,
    Length(u64),
    Delimiter(Box<[u8]>),
    Pattern(Regex),
}
