//! A message of a channel, as the server sends it to subscribers: a list of texts, which can be
//! stored and split later.

use super::reply::text;
use super::scan::{Head, head};
use crate::field::Field;

/// The start of messages; no other reply to a subscriber starts like this.
const BEGINS: [&[u8]; 3] =
    [b"*3\r\n$7\r\nmessage\r\n", b"*4\r\n$8\r\npmessage\r\n", b"*3\r\n$8\r\nsmessage\r\n"];

/// A message, split into its parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// The pattern of the subscription, if it has one.
    pub pattern: &'a [u8],
    pub channel: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Whether a reply is a message.
    pub(super) fn is_one(reply: &[u8]) -> bool {
        BEGINS.iter().any(|begin| reply.starts_with(begin))
    }

    /// For a message that was returned; empty for anything else.
    pub fn of(message: &'a [u8]) -> Message<'a> {
        let Some(kind) = BEGINS.iter().position(|begin| message.starts_with(begin)) else {
            return Message::default();
        };
        let mut rest = &message[BEGINS[kind].len()..];
        let mut next = || next_text(&mut rest).unwrap_or_default();
        let pattern = if kind == 1 { next() } else { b"" };
        let channel = next();
        Message { pattern, channel, payload: next() }
    }

    /// Its fields besides the payload, by name.
    pub fn fields(self) -> [(&'static str, Field<'a>); 2] {
        [("channel", Field::Bytes(self.channel)), ("pattern", Field::Bytes(self.pattern))]
    }
}

/// The text at the start of `rest`.
pub(super) fn next_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (Head::Text(length), bytes) = head(rest).ok()?? else { return None };
    *rest = &rest[bytes..];
    Some(text(rest, length))
}

/// The number of subscriptions in a confirmation; `None` for any other reply.
pub(super) fn subscriptions(reply: &[u8]) -> Option<i64> {
    let mut rest = reply.strip_prefix(b"*3\r\n")?;
    if !next_text(&mut rest)?.ends_with(b"subscribe") {
        return None;
    }
    // The channel; null if there was nothing to unsubscribe from.
    match head(rest).ok()?? {
        (Head::Nothing, bytes) => rest = &rest[bytes..],
        _ => next_text(&mut rest).map(drop)?,
    }
    match head(rest).ok()?? {
        (Head::Number(number), _) => Some(number),
        _ => None,
    }
}
