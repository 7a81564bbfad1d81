//! All file descriptors were in use: on this host (EMFILE, ENFILE), or at the target, which then
//! stops accepting connections just below a common limit.

use std::ops::Range;

use throng_metrics::Cause;

use crate::finding::{Code, Finding, Judgement, Level, Unknown, count};
use crate::record::{Record, Watched};
use crate::stats;

/// Common limits of a process: the defaults of shells, systemd and containers.
const LIMITS: [f64; 6] = [1_024.0, 4_096.0, 16_384.0, 65_535.0, 524_288.0, 1_048_576.0];
/// Descriptors that a server uses itself, and the relative distance of a plateau below a limit.
const OWN_MAX: f64 = 64.0;
const BELOW_MAX: f64 = 0.03;
/// Minimum length of a plateau in seconds, and its spread relative to its median.
const PLATEAU_S_MIN: f64 = 15.0;
const PLATEAU_SPREAD_MAX: f64 = 0.005;
/// Share of open descriptors in a watched process; readings rarely catch the last ones.
const WATCHED_MIN: f64 = 0.99;
/// Share of connects on the plateau that do not succeed.
const FAILED_MIN: f64 = 0.5;

pub(crate) fn judge(record: &Record) -> Judgement {
    if let Some((failed, when)) = record.failures(Cause::DescriptorsExhausted) {
        let failed = count(failed as f64);
        let text = say!("throng ran out of file descriptors {failed} times");
        let found = Finding::new(Code::DescriptorLimit, Level::Certain, text, when)
            .on(&["connections_open"])
            .figure(say!("failures with the cause `descriptors-exhausted`: {failed}"))
            .not(
                say!("a limit of the target"),
                say!("the error came from this host, before any packet was sent"),
            )
            .then(say!(
                "raise the limit with `ulimit -n`; `throng doctor` shows the required value"
            ));
        return Ok(vec![found]);
    }
    if let Some(found) = watched(record) {
        return Ok(vec![found]);
    }
    let length = (PLATEAU_S_MIN / record.width()).ceil() as usize;
    if record.points().len() < length {
        return Err(Unknown::TooShort { needs_s: PLATEAU_S_MIN as u64 });
    }
    let mut found = (0..=record.points().len() - length)
        .filter_map(|from| plateau(record, from..from + length));
    Ok(found.next().into_iter().collect())
}

/// A watched process had no free descriptor, and connects failed.
fn watched(record: &Record) -> Option<Finding> {
    let rows = record.watched("throng_process_descriptors");
    let rows = rows.filter_map(|row| Some((row, row.largest()?, record.limit(row)?)));
    let nearest = |one: &(&Watched, f64, f64), other: &(&Watched, f64, f64)| {
        (one.1 / one.2).total_cmp(&(other.1 / other.2))
    };
    let (row, open, limit) = rows.max_by(nearest)?;
    let failed = record.sum(&record.all(), |point| point.attempted - point.opened);
    if open < limit * WATCHED_MIN || failed < 1.0 {
        return None;
    }
    let (name, open, limit) = (row.label("name"), count(open), count(limit));
    let text = say!("`{name}` on the target's host reached its limit of {limit} descriptors");
    let found = Finding::new(Code::DescriptorLimit, Level::Certain, text, record.measured_span());
    let found = found
        .on(&["connections_open"])
        .figure(say!("maximum open descriptors: {open} of {limit}"))
        .figure(say!("failed connects: {}", count(failed)))
        .then(say!("on the target, compare `ulimit -n` and /proc/PID/limits with this number"));
    Some(found)
}

/// A plateau just below a limit, on which connects fail or hang.
fn plateau(record: &Record, range: Range<usize>) -> Option<Finding> {
    let (open, off) = stats::spread(&record.values(&range, |point| point.open))?;
    let limit = LIMITS.into_iter().find(|limit| {
        let low = limit * (1.0 - BELOW_MAX) - OWN_MAX;
        (low..=*limit).contains(&open)
    })?;
    let attempted = record.sum(&range, |point| point.attempted);
    let opened = record.sum(&range, |point| point.opened);
    let ended = record.sum(&range, |point| point.unasked() + point.ended_by_us);
    let failed = 1.0 - opened / attempted.max(1.0);
    if off > open * PLATEAU_SPREAD_MAX || attempted < 20.0 || failed < FAILED_MIN {
        return None;
    }
    let when = record.span(&range);
    let text =
        say!("open connections stop at {}, just below the limit of {}", count(open), count(limit));
    let found = Finding::new(Code::DescriptorLimit, Level::Likely, text, when)
        .on(&["connections_open"])
        .figure(say!(
            "connects during the plateau: {}, opened: {}",
            count(attempted),
            count(opened)
        ))
        .not(
            say!("connections end as fast as new ones open"),
            say!("only {} connections ended during this time", count(ended)),
        )
        .then(say!("on the target, compare `ulimit -n` and /proc/PID/limits with this number"));
    Some(found)
}
