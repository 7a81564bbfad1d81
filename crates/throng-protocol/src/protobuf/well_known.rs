//! Timestamps, durations and field masks in proto3 JSON (protobuf.dev, "ProtoJSON Format"):
//! `2026-01-31T10:00:00.5Z`, `1.500s`, `user.displayName,photo`.

use prost_reflect::prost_types::{Duration, Timestamp};
use throng_base::Said;

use crate::fields::coerce::shortened;

/// Seconds since 1970 of the first and the last valid timestamp.
const TIMES: (i64, i64) = (-62_135_596_800, 253_402_300_799);
/// The greatest duration, about 10,000 years.
const SECONDS_MAX: i64 = 315_576_000_000;

/// An RFC 3339 time as seconds and nanoseconds.
pub(super) fn timestamp(text: &str) -> Result<(i64, i32), Said> {
    let time = text.parse().ok().map(|Timestamp { seconds, nanos }| (seconds, nanos));
    time.filter(|(at, _)| (TIMES.0..=TIMES.1).contains(at)).ok_or_else(|| {
        let shown = shortened(text);
        say!("expected a time such as `2026-01-31T10:00:00Z`, not the text `{shown}`")
    })
}

/// `None` for an invalid timestamp.
pub(super) fn timestamp_text(seconds: i64, nanos: i32) -> Option<String> {
    let is_valid = (TIMES.0..=TIMES.1).contains(&seconds) && (0..1_000_000_000).contains(&nanos);
    is_valid.then(|| Timestamp { seconds, nanos }.to_string())
}

/// `1.5s` as seconds and nanoseconds of the same sign.
pub(super) fn duration(text: &str) -> Result<(i64, i32), Said> {
    let time = text.parse().ok().map(|Duration { seconds, nanos }| (seconds, nanos));
    time.filter(|(seconds, _)| seconds.abs() <= SECONDS_MAX).ok_or_else(|| {
        let shown = shortened(text);
        say!("expected a duration such as `1.5s`, not the text `{shown}`")
    })
}

/// `None` for an invalid duration.
pub(super) fn duration_text(seconds: i64, nanos: i32) -> Option<String> {
    let is_one = seconds.abs() <= SECONDS_MAX && nanos.unsigned_abs() < 1_000_000_000;
    let is_mixed = seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0;
    (is_one && !is_mixed).then(|| Duration { seconds, nanos }.to_string())
}

/// `displayName` as `display_name`.
pub(super) fn snake_case(path: &str) -> String {
    path.chars().fold(String::with_capacity(path.len() + 4), |mut out, c| {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

/// `display_name` as `displayName`.
pub(super) fn camel_case(path: &str) -> String {
    let mut is_upper = false;
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '_' => is_upper = true,
            c if is_upper => {
                out.push(c.to_ascii_uppercase());
                is_upper = false;
            }
            c => out.push(c),
        }
    }
    out
}
