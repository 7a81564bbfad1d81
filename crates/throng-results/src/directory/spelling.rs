//! Serializes row fields whose JSON form differs from their Rust form.

use std::time::Duration;

use serde::Serializer;
use serde_json::{Value, json};
use throng_base::Said;
use throng_metrics::{Blame, Cause, Unit, status_word};

pub(crate) fn english<S: Serializer>(said: &Said, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&said.english())
}

pub(crate) fn nanos<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

pub(crate) fn unit<S: Serializer>(unit: &Unit, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(unit.word())
}

pub(crate) fn blame<S: Serializer>(blame: &Blame, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&blame.text().english())
}

/// Counts by status code.
pub(crate) fn codes<S: Serializer>(counts: &[(u16, u64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(counts.iter().map(|(code, count)| (status_word(*code), count)))
}

/// Counts by cause.
pub(crate) fn causes<S: Serializer>(counts: &[(Cause, u64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(counts.iter().map(|(cause, count)| (cause.word(), count)))
}

/// Each cause with its meaning, its blame and its count.
pub(crate) fn failures<S: Serializer>(counts: &[(Cause, u64)], to: S) -> Result<S::Ok, S::Error> {
    let failure = |(cause, count): &(Cause, u64)| -> Value {
        json!({
            "cause": cause.word(),
            "text": cause.text().english(),
            "blame": cause.blame().text().english(),
            "count": count,
        })
    };
    to.collect_seq(counts.iter().map(failure))
}
