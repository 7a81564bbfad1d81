//! A message of a channel, as the server sends it to subscribers: a list of texts, which can be
//! kept and taken apart later.

use super::reply::text;
use super::scan::{Head, head};
use crate::field::Field;

/// How messages begin, and nothing else that a subscriber gets.
const BEGINS: [&[u8]; 3] =
    [b"*3\r\n$7\r\nmessage\r\n", b"*4\r\n$8\r\npmessage\r\n", b"*3\r\n$8\r\nsmessage\r\n"];

/// A message, taken apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// That of the subscription, where it was one.
    pub pattern: &'a [u8],
    pub channel: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Whether a reply is no reply but a message.
    pub(super) fn is_one(reply: &[u8]) -> bool {
        BEGINS.iter().any(|begin| reply.starts_with(begin))
    }

    /// Of a message that was given out; of anything else an empty one.
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

    /// What it says besides its payload, by name.
    pub fn fields(self) -> [(&'static str, Field<'a>); 2] {
        [("channel", Field::Bytes(self.channel)), ("pattern", Field::Bytes(self.pattern))]
    }
}

/// The text at the beginning of `rest`.
pub(super) fn next_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (Head::Text(length), bytes) = head(rest).ok()?? else { return None };
    *rest = &rest[bytes..];
    Some(text(rest, length))
}

/// How many subscriptions there are, as the confirmation of one says; None of any other reply.
pub(super) fn subscriptions(reply: &[u8]) -> Option<i64> {
    let mut rest = reply.strip_prefix(b"*3\r\n")?;
    if !next_text(&mut rest)?.ends_with(b"subscribe") {
        return None;
    }
    // The channel; none where nothing was left to unsubscribe from.
    match head(rest).ok()?? {
        (Head::Nothing, bytes) => rest = &rest[bytes..],
        _ => next_text(&mut rest).map(drop)?,
    }
    match head(rest).ok()?? {
        (Head::Number(number), _) => Some(number),
        _ => None,
    }
}
