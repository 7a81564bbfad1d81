//! What an answer is checked for, and what is saved from it.

use std::time::Duration;

use regex::bytes::Regex;

/// One expectation of an answer.
#[derive(Clone, Debug)]
pub enum Check {
    Status(StatusSet),
    Header(HeaderCheck),
    Body(BodyCheck),
    Json(JsonCheck),
    /// The whole answer came within this time, counted from the due time.
    Time(Duration),
}

impl Check {
    /// Whether the body has to be kept for this check.
    pub fn needs_body(&self) -> bool {
        matches!(self, Check::Body(_) | Check::Json(_))
    }
}

/// A set of HTTP status codes: single ones and classes such as `2xx`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSet {
    /// Inclusive ranges.
    pub ranges: Vec<(u16, u16)>,
}

impl StatusSet {
    pub fn contains(&self, status: u16) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&status))
    }
}

/// What a header has to be.
#[derive(Clone, Debug)]
pub struct HeaderCheck {
    pub name: String,
    pub want: BodyCheck,
}

/// What a text has to be.
#[derive(Clone, Debug)]
pub enum BodyCheck {
    Contains(Vec<u8>),
    Equals(Vec<u8>),
    Matches(Regex),
    /// For headers: it is there. For bodies: it is not empty.
    Present,
    Absent,
}

impl BodyCheck {
    pub fn holds(&self, bytes: &[u8]) -> bool {
        match self {
            BodyCheck::Contains(part) => contains(bytes, part),
            BodyCheck::Equals(whole) => bytes == whole.as_slice(),
            BodyCheck::Matches(regex) => regex.is_match(bytes),
            BodyCheck::Present => !bytes.is_empty(),
            BodyCheck::Absent => bytes.is_empty(),
        }
    }

    /// What would have been right, for the error table.
    pub fn wanted(&self) -> String {
        let shown = |bytes: &[u8]| bytes[..bytes.len().min(60)].escape_ascii().to_string();
        match self {
            BodyCheck::Contains(part) => format!("to contain `{}`", shown(part)),
            BodyCheck::Equals(whole) => format!("to be `{}`", shown(whole)),
            BodyCheck::Matches(regex) => format!("to match `{}`", regex.as_str()),
            BodyCheck::Present => "to be there".into(),
            BodyCheck::Absent => "to be absent".into(),
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

/// A field of a JSON answer and what it has to be.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonCheck {
    pub path: JsonPath,
    pub want: JsonWant,
}

/// The way to a field: `data.items[0].id` is three names and an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath {
    pub parts: Vec<JsonPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonPart {
    Name(String),
    Index(usize),
}

impl std::fmt::Display for JsonPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            match part {
                JsonPart::Name(name) if i == 0 => write!(f, "{name}")?,
                JsonPart::Name(name) => write!(f, ".{name}")?,
                JsonPart::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// What a JSON field has to be.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonWant {
    Present,
    Absent,
    Null,
    Bool(bool),
    /// Compared as a number, so `1` is `1.0`.
    Number(f64),
    Text(String),
}

impl std::fmt::Display for JsonWant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JsonWant::Present => f.write_str("present"),
            JsonWant::Absent => f.write_str("absent"),
            JsonWant::Null => f.write_str("null"),
            JsonWant::Bool(value) => write!(f, "{value}"),
            JsonWant::Number(value) => write!(f, "{value}"),
            JsonWant::Text(value) => write!(f, "`{value}`"),
        }
    }
}

/// A value that is kept from an answer for later steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    Json(JsonPath),
    Header(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_texts() {
        let set = StatusSet { ranges: vec![(200, 299), (304, 304)] };
        assert!(set.contains(204) && set.contains(304) && !set.contains(302));
        assert!(BodyCheck::Contains(b"ell".to_vec()).holds(b"hello"));
        assert!(BodyCheck::Contains(Vec::new()).holds(b""));
        assert!(!BodyCheck::Equals(b"hell".to_vec()).holds(b"hello"));
        assert!(BodyCheck::Matches(Regex::new("^h.*o$").unwrap()).holds(b"hello"));
        assert!(BodyCheck::Absent.holds(b"") && BodyCheck::Present.holds(b"x"));
    }

    #[test]
    fn paths_are_shown_as_written() {
        let parts = vec![
            JsonPart::Name("data".into()),
            JsonPart::Name("items".into()),
            JsonPart::Index(0),
            JsonPart::Name("id".into()),
        ];
        assert_eq!(JsonPath { parts }.to_string(), "data.items[0].id");
    }
}
