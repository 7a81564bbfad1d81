//! Names of a [`crate::Bus`] in NATS: subjects, streams, buckets.

use crate::{BusError, is_word};

/// The prefix of all our subjects.
pub(crate) const PREFIX: &str = "thr.";
/// The prefix of reply subjects, which are used unchanged.
pub(crate) const INBOX: &str = "_INBOX.";
/// Has no listeners: a request gets an immediate error, after everything the bus sent before.
pub(crate) const NOBODY: &str = "thr.nobody";
pub(crate) const LOG: &str = "THR_LOG";
pub(crate) const LOG_PREFIX: &str = "thr.log.";
pub(crate) const KEYS: &str = "THR_KEYS";
pub(crate) const KEYS_STREAM: &str = "KV_THR_KEYS";
pub(crate) const KEYS_PREFIX: &str = "$KV.THR_KEYS.";
pub(crate) const BLOBS: &str = "THR_BLOB";
pub(crate) const BLOBS_STREAM: &str = "OBJ_THR_BLOB";
/// The JetStream domain, so that leaf nodes let its API through.
pub(crate) const DOMAIN: &str = "hub";

/// A name without wildcards, with a prefix.
pub(super) fn exact(prefix: &str, name: &str) -> Result<String, BusError> {
    match name.split('.').all(is_word) {
        true => Ok(format!("{prefix}{name}")),
        false => Err(strange(name)),
    }
}

/// A name that can contain wildcards, with a prefix.
pub(super) fn pattern(prefix: &str, pattern: &str) -> Result<String, BusError> {
    let words: Vec<&str> = pattern.split('.').collect();
    let last = words.len() - 1;
    let mut words = words.iter().enumerate();
    let is_one = |(at, word): (usize, &&str)| {
        is_word(word) || **word == *"*" || (at == last && **word == *">")
    };
    match words.all(is_one) {
        true => Ok(format!("{prefix}{pattern}")),
        false => Err(strange(pattern)),
    }
}

/// The subject of a message: one of ours, or a reply subject.
pub(super) fn to(subject: &str) -> Result<String, BusError> {
    match subject.starts_with(INBOX) {
        true => exact("", subject),
        false => exact(PREFIX, subject),
    }
}

/// The name for the trait.
pub(super) fn ours(subject: &str) -> &str {
    subject.strip_prefix(PREFIX).unwrap_or(subject)
}

fn strange(name: &str) -> BusError {
    BusError::Refused(say!("`{name}` is not a valid name on the bus"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_patterns_can_have_wildcards() {
        assert_eq!(exact(PREFIX, "m.run.a-7").as_deref(), Ok("thr.m.run.a-7"));
        assert_eq!(pattern(LOG_PREFIX, "m.*.a").as_deref(), Ok("thr.log.m.*.a"));
        assert_eq!(pattern(PREFIX, ">").as_deref(), Ok("thr.>"));
        assert_eq!(to("_INBOX.a.Xy1").as_deref(), Ok("_INBOX.a.Xy1"));
        assert_eq!((ours("thr.m.a"), ours("_INBOX.a")), ("m.a", "_INBOX.a"));
        for wrong in ["", "m..a", "m.", "m a", "m.$x", "m.a\r\nPUB"] {
            assert!(exact(PREFIX, wrong).is_err() && pattern(PREFIX, wrong).is_err(), "{wrong}");
        }
        assert!(exact(PREFIX, "m.*").is_err() && pattern(PREFIX, ">.m").is_err());
    }
}
