//! A reply as a tree, for whoever asks a Redis now and then.

use super::scan::{Head, Scan, head};
use super::violation::Violation;

/// The longest reply that is read as a tree.
const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What Redis says to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A word such as `OK`, or a text.
    Text(Vec<u8>),
    Number(i64),
    Nothing,
    List(Vec<Reply>),
    /// It was not done, for this reason.
    Error(String),
}

impl Reply {
    /// A text, if it is one of UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            Reply::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// The first reply in `input` and how many bytes it has; None when it is not yet complete.
pub fn read_reply(input: &[u8]) -> Result<Option<(Reply, usize)>, Violation> {
    let Some(found) = Scan::default().next(input, REPLY_BYTES_MAX)? else { return Ok(None) };
    let mut rest = &input[..found.bytes];
    Ok(read(&mut rest)?.map(|reply| (reply, found.bytes)))
}

/// An item of a reply that is complete, and not nested deeper than allowed.
fn read(rest: &mut &[u8]) -> Result<Option<Reply>, Violation> {
    let Some((head, bytes)) = head(rest)? else { return Ok(None) };
    *rest = &rest[bytes..];
    Ok(Some(match head {
        Head::Status(text) => Reply::Text(text.to_vec()),
        Head::Error(text) => Reply::Error(String::from_utf8_lossy(text).into_owned()),
        Head::Number(number) => Reply::Number(number),
        Head::Nothing => Reply::Nothing,
        Head::Text(length) => Reply::Text(text(rest, length).to_vec()),
        Head::List(length) => {
            let mut items = Vec::new();
            for _ in 0..length {
                let Some(item) = read(rest)? else { return Ok(None) };
                items.push(item);
            }
            Reply::List(items)
        }
    }))
}

/// The text whose head was read, of a reply that is complete.
pub(super) fn text<'a>(rest: &mut &'a [u8], length: u64) -> &'a [u8] {
    let length = (length as usize).min(rest.len());
    let (text, behind) = rest.split_at(length);
    *rest = behind.get(2..).unwrap_or_default();
    text
}
