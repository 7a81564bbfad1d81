//! Checks and saves of responses.

use regex::bytes::Regex;
use throng_expression::{Expression, Value};
use throng_extract::{Css, Digest, JsonPath, Pattern, XPath};
use throng_metrics::Comparison;
use throng_protocol::framed::{FieldPath, MessageId};
use throng_protocol::protobuf;

use crate::text::Text;

/// One expectation of a response.
#[derive(Clone, Debug)]
pub struct Check {
    pub pick: Pick,
    pub want: Want,
}

/// A value that is saved from a response for later steps.
#[derive(Clone, Debug)]
pub struct Save {
    pub slot: u16,
    pub pick: Pick,
    /// Saves all matches as a list; otherwise the first.
    pub all: bool,
    /// Saved if nothing is found; without it that is a failure.
    pub default: Option<Text>,
}

/// The part of a response that a check or save reads.
#[derive(Clone, Debug)]
pub enum Pick {
    Status,
    /// By its name in lower case.
    Header(String),
    /// By its name: the user's cookie for the URL of the response, after its cookies are stored.
    Cookie(String),
    /// The whole body or message.
    Body,
    Json(JsonPath),
    /// For a declared message; one path for each kind that it may be.
    Field(Box<[FieldPath]>),
    /// Whether it is one of these declared messages, with their names for error messages.
    Kind(Box<[MessageId]>, String),
    /// For a protobuf message.
    Proto(protobuf::FieldPath),
    XPath(XPath),
    Css(Css),
    Pattern(Pattern),
    /// Size of the body, with its content coding undone.
    Size,
    /// From when it was due to the last byte, in nanoseconds.
    Time,
    Digest(Digest),
    /// For the result of a statement: `rows`, `affected`, `insert_id`, or `column.NAME` of the
    /// first row. For a reply of several packets: `packets`, or `packets.NAME`.
    Result(String),
    Expression(Expression),
}

impl Pick {
    /// Whether the body must be kept for this.
    pub fn needs_body(&self) -> bool {
        match self {
            Pick::Status | Pick::Header(_) | Pick::Cookie(_) | Pick::Time => false,
            // The parts that an expression needs are not known here, but few need none.
            _ => true,
        }
    }

    /// Whether this can be computed without keeping the body, piece by piece.
    pub fn is_streamed(&self) -> bool {
        matches!(self, Pick::Size | Pick::Digest(_))
    }

    pub fn needs_headers(&self) -> bool {
        matches!(self, Pick::Header(_) | Pick::Expression(_))
    }
}

/// The expected value.
#[derive(Clone, Debug)]
pub enum Want {
    /// It is present; a body or header must not be empty.
    Present,
    Absent,
    Null,
    Bool(bool),
    /// Compared as a number, so `1` equals `1.0`, and exactly: 64-bit IDs of messages may differ by
    /// one. For a time, in nanoseconds.
    Number(Comparison, Value),
    Statuses(StatusSet),
    /// Exactly this text; with expressions: this value, whatever its type.
    Equals(Text),
    Contains(Text),
    /// A topic that this topic filter matches.
    Topic(Text),
    Matches(Regex),
    /// The number of matches.
    Count(Comparison, u64),
    /// The expression is true.
    True,
}

impl Check {
    /// The expected statuses, if this checks the status.
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
