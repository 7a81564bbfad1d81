//! Users that lost their connection retry, and each loss causes several attempts: the attempts
//! themselves keep the target from recovering.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, count, percent, rate, time};
use crate::record::Record;
use crate::stats;

/// Reconnect attempts per loss in the previous second, and the number of seconds with that ratio.
const GAIN_MIN: f64 = 3.0;
const SECONDS_MIN: f64 = 3.0;
/// Reconnect attempts per user in these seconds.
const PER_USER_MIN: f64 = 0.1;
/// Share of failed connects, or relative slowdown of logins, that shows harm.
const FAILED_MIN: f64 = 0.3;
const SLOWER_MIN: f64 = 2.0;

pub(super) fn judge(record: &Record) -> Judgement {
    let points = record.points();
    let is_storm = |at: usize| {
        let (point, before) = (&points[at], &points[at - 1]);
        point.reconnects >= GAIN_MIN * before.unasked().max(1.0)
            && point.reconnects >= point.users * PER_USER_MIN * record.width()
            && point.reconnects >= 5.0
    };
    let length = (SECONDS_MIN / record.width()).ceil().max(2.0) as usize;
    let mut found = Vec::new();
    let mut from = 1;
    while from < points.len() {
        let end = (from..points.len()).find(|at| !is_storm(*at)).unwrap_or(points.len());
        if end - from >= length {
            found.extend(storm(record, from..end));
        }
        from = end + 1;
    }
    Ok(found)
}

fn storm(record: &Record, range: Range<usize>) -> Option<Finding> {
    let attempted = record.sum(&range, |point| point.attempted);
    let failed = record.sum(&range, |point| point.connect_failed) / attempted.max(1.0);
    let logins = |range: Range<usize>| {
        let times = record.values(&range, |point| point.login_p50);
        let known: Vec<f64> = times.into_iter().filter(|time| *time > 0.0).collect();
        stats::median(&known)
    };
    let slower = logins(range.clone()).zip(logins(0..range.start));
    let ratio = slower.map_or(1.0, |(now, before)| now / before.max(1.0));
    if failed < FAILED_MIN && ratio < SLOWER_MIN {
        return None;
    }
    let lost = record.sum(&(range.start.saturating_sub(2)..range.end), |point| point.unasked());
    let reconnects = record.sum(&range, |point| point.reconnects);
    let when = record.span(&range);
    let per_s = reconnects / (when.to_s - when.from_s).max(1.0);
    let text = say!(
        "users reconnected {} times ({}) after {} lost connections",
        { count(reconnects) },
        rate(per_s),
        count(lost)
    );
    let mut found = Finding::new(Code::ReconnectStorm, Level::Likely, text, when)
        .on(&["opened", "failed"])
        .figure(say!("failed connects during this time: {}", percent(failed)));
    if let Some((now, before)) = slower {
        found = found.figure(say!(
            "login p50: {} before, {} during the storm",
            time(before),
            time(now)
        ));
    }
    let found = found.not(
        say!("the scenario disconnects users on purpose"),
        say!("then there would be one connect per lost connection, not {:.1}", {
            reconnects / lost.max(1.0)
        }),
    );
    let next = say!(
        "spread the reconnects over time (see `reconnect` in docs/connections.md), then run again"
    );
    Some(found.then(next))
}
