//! A table of tracked connections was full: that of a firewall on this host, or on the target's if
//! a monitor reads it. Packets without an entry are dropped, so connects time out.

use throng_metrics::Cause;

use crate::finding::{Code, Finding, Judgement, Level, Span, count, percent};
use crate::record::{Record, Watched};

/// Share of the table from which on it counts as full.
const FULL_MIN: f64 = 0.97;
/// Usual limits, which the kernel derives from the memory of a host.
const LIMITS: [f64; 4] = [65_536.0, 131_072.0, 262_144.0, 524_288.0];
const BELOW_MAX: f64 = 0.03;
/// Seconds for which an entry of a closed connection stays.
const CLOSED_S: f64 = 120.0;
/// Connects that time out: their minimum number, and their share if entries are not counted.
const TIMEOUTS_MIN: u64 = 10;
const TIMEOUTS_SHARE_MIN: f64 = 0.05;

pub(crate) fn judge(record: &Record) -> Judgement {
    let found = here(record).or_else(|| at_target(record)).or_else(|| by_numbers(record));
    Ok(found.into_iter().collect())
}

/// Connects that timed out, and when.
fn timeouts(record: &Record) -> Option<(u64, Span)> {
    record.failures(Cause::ConnectTimeout).filter(|(count, _)| *count >= TIMEOUTS_MIN)
}

fn here(record: &Record) -> Option<Finding> {
    let is_full = |at: &usize| record.points()[*at].conntrack >= FULL_MIN;
    let first = record.all().find(is_full)?;
    let last = record.all().rfind(is_full)?;
    let most = record.points().iter().map(|point| point.conntrack).fold(0.0, f64::max);
    let when = record.span(&(first..last + 1));
    let text = say!("the connection tracking table of this host was {} full", percent(most));
    let found = Finding::new(Code::ConntrackFull, Level::Certain, text, when)
        .figure(say!("nf_conntrack_count / nf_conntrack_max: {}", percent(most)));
    Some(with_timeouts(record, found).then(say!(
        "raise net.netfilter.nf_conntrack_max, or exempt the test: `throng doctor` shows how"
    )))
}

fn with_timeouts(record: &Record, found: Finding) -> Finding {
    match timeouts(record) {
        Some((failed, when)) => {
            found.figure_at(when, say!("connects that timed out: {}", count(failed as f64)))
        }
        None => found,
    }
}

fn at_target(record: &Record) -> Option<Finding> {
    let entries = record.watched("node_nf_conntrack_entries");
    entries.filter_map(|row| of_source(record, row)).next()
}

fn of_source(record: &Record, entries: &Watched) -> Option<Finding> {
    let limit = record.limit(entries)?;
    let share = entries.largest()? / limit;
    let dropped = record.beside(entries, "node_nf_conntrack_stat_drop");
    let dropped = dropped.map_or(0.0, |row| row.total(record.measured_span()));
    if share < FULL_MIN && dropped < 1.0 {
        return None;
    }
    let full = |(_, value): &&(f64, f64)| *value >= limit * FULL_MIN;
    let at = |point: Option<&(f64, f64)>| point.map(|(at, _)| *at);
    let from = at(entries.points.iter().find(full));
    let to = at(entries.points.iter().rfind(full));
    let when = from.zip(to).map_or(record.measured_span(), |(from, to)| Span::new(from, to + 1.0));
    let source = entries.source.clone();
    let text =
        say!("the connection tracking table of {source} was {} full", percent(share.min(1.0)));
    let mut found = Finding::new(Code::ConntrackFull, Level::Certain, text, when).figure(say!(
        "entries: {} of {}",
        count(entries.largest()?),
        count(limit)
    ));
    if dropped >= 1.0 {
        found = found.figure(say!("packets dropped because no entry was free: {}", count(dropped)));
    }
    Some(with_timeouts(record, found).then(say!(
        "raise net.netfilter.nf_conntrack_max there, or exempt the port from tracking (NOTRACK)"
    )))
}

/// Without a count of entries, their estimated number must be near a common limit.
fn by_numbers(record: &Record) -> Option<Finding> {
    let (failed, when) = timeouts(record)?;
    let place = ((when.from_s / record.width()) as usize).min(record.points().len() - 1);
    let since = place..record.points().len();
    let attempted = record.sum(&since, |point| point.attempted);
    let unanswered = record.sum(&since, |point| point.connect_failed - point.refused);
    if unanswered < attempted * TIMEOUTS_SHARE_MIN {
        return None;
    }
    let before = place.saturating_sub((CLOSED_S / record.width()) as usize)..place + 1;
    let closed = record.sum(&before, |point| point.unasked() + point.ended_by_us);
    let entries = record.points()[place].open + closed;
    let limit = LIMITS.into_iter().find(|limit| (entries / limit - 1.0).abs() <= BELOW_MAX)?;
    let text = say!(
        "connects time out once about {} connections are open or were closed within {}",
        count(limit),
        "120 s"
    );
    let found = Finding::new(Code::ConntrackFull, Level::Hint, text, when)
        .on(&["connections_open"])
        .figure(say!("connects that timed out: {}", count(failed as f64)))
        .figure(say!(
            "connections that were open, or had closed in the preceding 120 s: {}",
            count(entries)
        ));
    Some(found.then(say!(
        "read nf_conntrack_count and nf_conntrack_max on every firewall in between, or monitor them"
    )))
}
