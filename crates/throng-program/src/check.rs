//! What an answer is checked for, and what is saved from it.

use regex::bytes::Regex;
use throng_expression::{Expression, Value};
use throng_extract::{Css, Digest, JsonPath, Pattern, XPath};
use throng_metrics::Comparison;
use throng_protocol::framed::{FieldPath, MessageId};
use throng_protocol::protobuf;

use crate::text::Text;

/// One expectation of an answer.
#[derive(Clone, Debug)]
pub struct Check {
    pub pick: Pick,
    pub want: Want,
}

/// A value that is kept from an answer for later steps.
#[derive(Clone, Debug)]
pub struct Save {
    pub slot: u16,
    pub pick: Pick,
    /// All that is found, as a list; otherwise the first.
    pub all: bool,
    /// Kept when nothing is found; without it that is a failure.
    pub default: Option<Text>,
}

/// What is looked at.
#[derive(Clone, Debug)]
pub enum Pick {
    Status,
    /// By its name in lower case.
    Header(String),
    /// By its name: what the user has for the URL of the response, once its cookies are kept.
    Cookie(String),
    /// The whole body or message.
    Body,
    Json(JsonPath),
    /// Of a declared message; one path for each kind that it may be.
    Field(Box<[FieldPath]>),
    /// Whether it is one of these declared messages, with their names as sentences show them.
    Kind(Box<[MessageId]>, String),
    /// Of a protobuf message.
    Proto(protobuf::FieldPath),
    XPath(XPath),
    Css(Css),
    Pattern(Pattern),
    /// Bytes of the body, after its content coding.
    Size,
    /// From the due time to the last byte, in nanoseconds.
    Time,
    Digest(Digest),
    /// Of what a statement returned: `rows`, `affected`, `insert_id`, or `column.NAME` of the first
    /// row. Of a reply of several packets: `packets`, or `packets.NAME`.
    Result(String),
    Expression(Expression),
}

impl Pick {
    /// Whether the body has to be kept for this.
    pub fn needs_body(&self) -> bool {
        match self {
            Pick::Status | Pick::Header(_) | Pick::Cookie(_) | Pick::Time => false,
            // An expression says itself what it looks at, but hardly one looks at nothing.
            _ => true,
        }
    }

    /// Whether this is known of a body without keeping it: each piece is looked at as it comes.
    pub fn is_streamed(&self) -> bool {
        matches!(self, Pick::Size | Pick::Digest(_))
    }

    pub fn needs_headers(&self) -> bool {
        matches!(self, Pick::Header(_) | Pick::Expression(_))
    }
}

/// What it has to be.
#[derive(Clone, Debug)]
pub enum Want {
    /// It is there; of a body or header: it is not empty.
    Present,
    Absent,
    Null,
    Bool(bool),
    /// Compared as a number, so `1` is `1.0`, and exactly: numbers of 64 bits are identities of
    /// messages, which differ by one. Of a time in nanoseconds.
    Number(Comparison, Value),
    Statuses(StatusSet),
    /// Exactly this text; with expressions: this value, whatever its type.
    Equals(Text),
    Contains(Text),
    /// A topic that this topic filter matches.
    Topic(Text),
    Matches(Regex),
    /// As many are found.
    Count(Comparison, u64),
    /// The expression is true.
    True,
}

impl Check {
    /// The statuses that are right, when this is about the status.
    pub fn status(&self) -> Option<&StatusSet> {
        match (&self.pick, &self.want) {
            (Pick::Status, Want::Statuses(set)) => Some(set),
            _ => None,
        }
    }
}

/// A set of status codes: single ones and classes such as `2xx` of HTTP, or codes of
/// another protocol.
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
