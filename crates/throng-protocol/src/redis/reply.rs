//! A reply as a tree, for occasional queries.

use super::scan::{Head, Scan, head};
use super::violation::Violation;

/// The longest reply that is read as a tree.
const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The reply to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A word such as `OK`, or a text.
    Text(Vec<u8>),
    Number(i64),
    Nothing,
    List(Vec<Reply>),
    /// The command failed, for this reason.
    Error(String),
}

impl Reply {
    /// The text, if it is valid UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            Reply::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// The first reply in `input` and its size; `None` if it is incomplete.
pub fn read_reply(input: &[u8]) -> Result<Option<(Reply, usize)>, Violation> {
    let Some(found) = Scan::default().next(input, REPLY_BYTES_MAX)? else { return Ok(None) };
    let mut rest = &input[..found.bytes];
    Ok(read(&mut rest)?.map(|reply| (reply, found.bytes)))
}

/// An item of a complete reply that is not nested too deeply.
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

/// The text after its head, in a complete reply.
pub(super) fn text<'a>(rest: &mut &'a [u8], length: u64) -> &'a [u8] {
    let length = (length as usize).min(rest.len());
    let (text, behind) = rest.split_at(length);
    *rest = behind.get(2..).unwrap_or_default();
    text
}
