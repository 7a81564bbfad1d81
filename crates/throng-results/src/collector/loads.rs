//! The results of each of several loads.

use std::ops::Range;
use std::time::Duration;

use throng_metrics::Interval;

use super::phase::PhaseSum;
use crate::directory::RunInfo;
use crate::summary::{Attempts, Latency, LoadRow, per_second};

/// One row per load; empty for a single load.
pub(super) fn rows(
    info: &RunInfo,
    phases: &[PhaseSum],
    spans: &[Range<u64>],
    attempts: &Attempts,
) -> Vec<LoadRow> {
    let row = |(load, name): (u16, &String)| {
        let (sum, time) = measured(phases, spans, load).unwrap_or_default();
        let total = attempts.total(&sum);
        let own = || phases.iter().zip(spans).filter(move |(phase, _)| phase.info.load == load);
        let begun = || own().filter(|(phase, _)| phase.is_begun());
        let begin = begun().map(|(_, span)| span.start).min().unwrap_or(0);
        let end = begun().map(|(_, span)| span.end).max().unwrap_or(begin);
        let of_phases = own()
            .map(|(phase, span)| phase.row(Duration::from_nanos(span.end - span.start), attempts));
        let (mut online, mut online_max, mut present_max) = (0, 0, 0);
        for phase in of_phases.filter(|phase| phase.begun) {
            online = phase.users_online;
            online_max = online_max.max(phase.users_online_max);
            present_max = present_max.max(phase.users_present_max);
        }
        LoadRow {
            name: name.clone(),
            lasted: Duration::from_nanos(end - begin),
            count: total.count,
            ok: total.ok,
            failed: total.failed(),
            ok_per_s: per_second(total.ok_in_time(), time),
            users_online: online,
            users_online_max: online_max,
            users_present_max: present_max,
            users_started: sum.population.started,
            iterations_started: sum.population.iterations_started,
            unmet: sum.population.unmet,
            dropped: sum.population.dropped,
            connections_opened: sum.connections.counts.opened,
            latency: Latency::of(&total.latency),
        }
    };
    (0..).zip(&info.tables.loads).map(row).collect()
}

/// The measured phases of a load, and their time; `None` if none has started.
pub(super) fn measured(
    phases: &[PhaseSum],
    spans: &[Range<u64>],
    load: u16,
) -> Option<(Interval, Duration)> {
    let counts =
        |phase: &PhaseSum| phase.info.load == load && phase.info.measured && phase.is_begun();
    let counted = || phases.iter().zip(spans).filter(|(phase, _)| counts(phase));
    let mut sum = Interval::default();
    counted().for_each(|(phase, _)| sum.merge_later(&phase.sum));
    let time = time_of(counted().map(|(_, span)| span.clone()));
    counted().next().map(|_| (sum, time))
}

/// The length of the union of these spans.
pub(super) fn time_of(spans: impl Iterator<Item = Range<u64>>) -> Duration {
    let mut spans: Vec<Range<u64>> = spans.collect();
    spans.sort_by_key(|span| span.start);
    let (mut time, mut until) = (0, 0);
    for span in spans {
        time += span.end.saturating_sub(span.start.max(until));
        until = span.end.max(until);
    }
    Duration::from_nanos(time)
}
