//! JSON: reading it within bounds, the ways to its fields, and its values as ours.

mod evaluate;
mod path;
mod query;
mod scan;

#[cfg(test)]
mod tests;

use throng_expression::within_range;

use throng_base::Said;

use throng_markup::Refusal;

pub use path::{JsonPart, JsonPath, JsonReach, JsonThere};
pub use scan::JsonPaths;

/// How large JSON may be to be looked into.
pub const JSON_BYTES_MAX: usize = 16 << 20;

/// Why bytes are no JSON that can be looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson {
    refusal: Option<Refusal>,
}

impl NotJson {
    /// Set if it may well be JSON but asks for too much.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    fn of(error: &serde_json::Error) -> NotJson {
        // The crate names this reason only in words.
        let deep = error.is_syntax() && error.to_string().starts_with("recursion limit");
        NotJson { refusal: deep.then_some(Refusal::TooDeep) }
    }
}

impl NotJson {
    pub fn said(&self) -> Said {
        match self.refusal {
            Some(refusal) => refusal.said(),
            None => say!("the body is not JSON"),
        }
    }
}

/// The bytes that are read as JSON: without the byte order mark that some servers begin with.
fn plain_bytes(bytes: &[u8]) -> Result<&[u8], NotJson> {
    if bytes.len() > JSON_BYTES_MAX {
        return Err(NotJson { refusal: Some(Refusal::TooLarge) });
    }
    Ok(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

/// serde_json bounds the nesting at 127, so that neither walking nor dropping overflows the stack.
pub(crate) fn parse(bytes: &[u8]) -> Result<serde_json::Value, NotJson> {
    let bytes = plain_bytes(bytes)?;
    let parsed = serde_json::from_slice(bytes);
    let again =
        |error| within_range(bytes).map_or(Err(error), |text| serde_json::from_slice(&text));
    parsed.or_else(again).map_err(|error| NotJson::of(&error))
}
