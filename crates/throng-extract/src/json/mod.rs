//! JSON: parses it within limits, finds its fields, and converts its values.

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

/// Maximum size of JSON that is parsed.
pub const JSON_BYTES_MAX: usize = 16 << 20;

/// Why bytes are not JSON that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson {
    refusal: Option<Refusal>,
}

impl NotJson {
    /// Set if it may be JSON but exceeds a limit.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    fn of(error: &serde_json::Error) -> NotJson {
        // The crate reports this reason only as text.
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

/// The bytes to parse: without the byte order mark that some servers send.
fn plain_bytes(bytes: &[u8]) -> Result<&[u8], NotJson> {
    if bytes.len() > JSON_BYTES_MAX {
        return Err(NotJson { refusal: Some(Refusal::TooLarge) });
    }
    Ok(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

/// serde_json limits the nesting to 127, so that neither walking nor dropping overflows the stack.
pub(crate) fn parse(bytes: &[u8]) -> Result<serde_json::Value, NotJson> {
    let bytes = plain_bytes(bytes)?;
    let parsed = serde_json::from_slice(bytes);
    let again =
        |error| within_range(bytes).map_or(Err(error), |text| serde_json::from_slice(&text));
    parsed.or_else(again).map_err(|error| NotJson::of(&error))
}
