//! Input of the machines, and their events.

use throng_base::Time;

use crate::framed::Records;
use crate::stream::AwaitedReply;
use crate::{http1, http2, mqtt, redis, sql, websocket};

/// Bytes from a connection, and how far they were read.
#[derive(Debug)]
pub struct Input<'a> {
    all: &'a [u8],
    at: usize,
    /// This many bytes before the current position belong to a body whose messages are not read
    /// yet.
    body: usize,
    /// It was returned as one message.
    is_given: bool,
    pub now: Time,
    pub(crate) ends: Ends<'a>,
}

/// The end of messages that do not determine it themselves.
#[derive(Clone, Copy, Debug, Default)]
pub enum Ends<'a> {
    /// All received bytes are one message.
    #[default]
    Whole,
    Records(Records<'a>),
    /// The reply that is waited for.
    Answer(AwaitedReply<'a>),
}

impl<'a> Input<'a> {
    pub fn new(all: &'a [u8], now: Time, ends: Ends<'a>) -> Input<'a> {
        Input { all, at: 0, body: 0, is_given: false, now, ends }
    }

    /// The unread bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.all[self.at..]
    }

    /// Everything but this was read.
    pub(crate) fn leave(&mut self, rest: &[u8]) {
        self.at = self.all.len() - rest.len();
    }

    /// All of it as one message, once.
    pub(crate) fn whole(&mut self, rest: &mut &'a [u8]) -> Option<Event<'a>> {
        let is_first = !std::mem::replace(&mut self.is_given, true);
        is_first.then(|| Event::Message(std::mem::take(rest)))
    }

    pub(crate) fn body(&self) -> &'a [u8] {
        &self.all[self.at - self.body..self.at]
    }

    /// This many of the bytes read last belong to a body.
    pub(crate) fn leave_body(&mut self, bytes: usize) {
        self.body = bytes;
    }
}

/// Limits for the peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub http1: http1::Limits,
    pub http2: http2::Limits,
    /// Also for messages of all other protocols.
    pub websocket: websocket::Limits,
}

/// An event. It does not borrow from its machine.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Of a request, or of all on their connection. HTTP/1 has one at a time, without a number.
    Http(http2::Event<'a>),
    Message(&'a [u8]),
    /// The login is done.
    Open,
    /// The first part of an answer came.
    Begun,
    /// Something that was asked is answered in full.
    Answered(Answered<'a>),
    /// Must be answered with [`crate::machine::Machine::pong`].
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    /// The peer closes, with a code and a reason if it gave any.
    Closed {
        code: Option<u16>,
        reason: &'a str,
    },
}

/// How something that was asked is answered.
#[derive(Clone, Copy, Debug)]
pub enum Answered<'a> {
    /// By its acknowledgement.
    Mqtt(mqtt::MqttAnswer<'a>),
    /// By the replies to all its commands.
    Redis(redis::RedisAnswer<'a>),
    /// By everything that its statements return.
    Sql(sql::Reply<'a>),
}

impl Answered<'_> {
    /// The number that it was sent under; None where one thing is asked at a time.
    pub fn number(&self) -> Option<u32> {
        match self {
            Answered::Mqtt(answer) => Some(u32::from(answer.id)),
            Answered::Redis(answer) => Some(answer.number),
            Answered::Sql(_) => None,
        }
    }

    /// How many messages a step receives with it.
    pub fn received(&self) -> u32 {
        match self {
            Answered::Redis(answer) => answer.replies,
            Answered::Mqtt(_) | Answered::Sql(_) => 0,
        }
    }

    /// How many unsolicited messages it is if no step waits for it.
    pub fn unasked(&self) -> u32 {
        match self {
            Answered::Mqtt(answer) => answer.reason.is_error().into(),
            Answered::Redis(answer) => answer.replies,
            Answered::Sql(_) => 0,
        }
    }
}

impl Event<'_> {
    /// The peer ends a stream of messages.
    pub(crate) const END: Event<'static> = Event::Closed { code: None, reason: "" };
}
