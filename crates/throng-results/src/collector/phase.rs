//! The results of one phase so far.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_metrics::{Gauges, Interval, Merge as _};

use super::held::Held;
use crate::directory::PhaseInfo;
use crate::summary::{Attempts, Latency, PhaseRow, per_second};

pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// Number of seconds whose gauges are kept, because lines can arrive that late.
const RECENT_SECONDS_MAX: usize = 8;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PhaseSum {
    pub(super) info: PhaseInfo,
    pub(super) sum: Interval,
    pub(super) seconds: Option<(u64, u64)>,
    pub(super) begun_ns: Option<u64>,
    pub(super) ended_ns: Option<u64>,
    /// Gauges of the latest seconds of the phase.
    recent: Vec<(u64, Gauges)>,
    /// Another phase follows, so the last line has the gauges at the end of this phase. After the
    /// last phase, the last line has the gauges after all users have left.
    is_followed: bool,
    /// Minimum and maximum of the seconds before those.
    range: Range,
    /// One past the last second in `range`.
    ranged_until: u64,
    pub(super) host_cpu_sum: f64,
    pub(super) host_cpu_count: u64,
    held: Seconds,
    /// Thresholds that must be met in every second of the phase.
    thresholds: Vec<Held>,
}

/// Users at the ends of whole seconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Range {
    online_min: u64,
    online_max: u64,
    present_max: u64,
}

/// Counts distinct seconds of ordered lines.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Seconds {
    pub(super) count: u64,
    until: u64,
}

impl Seconds {
    pub(super) fn add(&mut self, second: u64) {
        if second >= self.until {
            self.count += 1;
            self.until = second.saturating_add(1);
        }
    }
}

impl Default for Range {
    fn default() -> Range {
        Range { online_min: u64::MAX, online_max: 0, present_max: 0 }
    }
}

impl Range {
    fn add(&mut self, gauges: &Gauges) {
        self.online_min = self.online_min.min(gauges.users_online);
        self.online_max = self.online_max.max(gauges.users_online);
        self.present_max = self.present_max.max(present(gauges));
    }

    fn is_empty(&self) -> bool {
        self.online_min == u64::MAX
    }
}

/// Old run directories do not distinguish present and online users.
pub(super) fn present(gauges: &Gauges) -> u64 {
    gauges.users_present.max(gauges.users_online)
}

impl PhaseSum {
    pub(super) fn new(info: PhaseInfo, thresholds: Vec<Held>) -> PhaseSum {
        PhaseSum { info, thresholds, ..PhaseSum::default() }
    }

    pub(super) fn add(&mut self, interval: &Interval) {
        self.sum.merge_later(interval);
        let (first, last) = self.seconds.unwrap_or((interval.second, interval.second));
        self.seconds = Some((first.min(interval.second), last.max(interval.second)));
        if let Some(resources) = &interval.generator.resources {
            self.host_cpu_sum += resources.host_cpu;
            self.host_cpu_count += 1;
            if resources.held {
                self.held.add(interval.second);
            }
        }
    }

    /// Adds an interval's gauges to those of the same second.
    pub(super) fn gauges(&mut self, interval: &Interval) {
        let (second, gauges) = (interval.second, &interval.gauges);
        if let Some((_, sum)) = self.recent.iter_mut().find(|(known, _)| *known == second) {
            sum.merge(gauges);
            return;
        }
        // Users leave after the end of the phase, so gauges after it do not count. A line that is
        // much too late would be a second without its other parts.
        let over = self.ended_ns.is_some_and(|end| second.saturating_mul(SECOND_NS) >= end);
        if (!over || self.recent.is_empty()) && second >= self.ranged_until {
            if self.recent.len() == RECENT_SECONDS_MAX {
                let oldest = (0..self.recent.len()).min_by_key(|at| self.recent[*at].0);
                let (second, gauges) = self.recent.remove(oldest.unwrap_or(0));
                self.range(second, &gauges, self.ended_ns);
            }
            self.recent.push((second, gauges.clone()));
        }
    }

    fn range(&mut self, second: u64, gauges: &Gauges, end_ns: Option<u64>) {
        self.ranged_until = self.ranged_until.max(second.saturating_add(1));
        if end_ns.is_none_or(|end_ns| self.is_within(second, end_ns)) {
            self.range.add(gauges);
            self.thresholds.iter_mut().for_each(|held| held.second(gauges));
        }
    }

    /// The state of a threshold that must be met in every second.
    pub(super) fn held(&self, row: usize) -> Option<&Held> {
        self.thresholds.iter().find(|held| held.row == row)
    }

    /// Whether the second was within the phase.
    fn is_within(&self, second: u64, end_ns: u64) -> bool {
        let told = if self.is_followed { second } else { second.saturating_add(1) };
        told.saturating_mul(SECOND_NS) < end_ns.saturating_add(u64::from(!self.is_followed))
    }

    /// Sets the gauges of the phase to those of its last second.
    pub(super) fn settle_gauges(&mut self, end_ns: u64, is_followed: bool) {
        self.is_followed = is_followed;
        let mut recent = std::mem::take(&mut self.recent);
        recent.sort_by_key(|(second, _)| *second);
        let within = recent.iter().rev().find(|(second, _)| self.is_within(*second, end_ns));
        if let Some((_, gauges)) = within.or(recent.first()) {
            self.sum.gauges = gauges.clone();
        }
        self.sum.gauges.users_present = present(&self.sum.gauges);
        recent.iter().for_each(|(second, gauges)| self.range(*second, gauges, Some(end_ns)));
        if self.range.is_empty() {
            let gauges = self.sum.gauges.clone();
            self.range.add(&gauges);
        }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.begun_ns.is_some() || self.seconds.is_some()
    }

    /// The time span of the phase in nanoseconds; empty if it never started.
    pub(super) fn span(&self, end_ns: u64) -> std::ops::Range<u64> {
        let first = self.seconds.map(|(first, _)| first.saturating_mul(SECOND_NS));
        let begin = self.begun_ns.or(first).unwrap_or(end_ns);
        begin..end_ns.max(begin)
    }

    pub(super) fn row(&self, lasted: Duration, attempts: &Attempts) -> PhaseRow {
        let total = attempts.total(&self.sum);
        let gauges = &self.sum.gauges;
        PhaseRow {
            load: usize::from(self.info.load),
            name: self.info.name.clone(),
            measured: self.info.measured,
            begun: self.is_begun(),
            lasted,
            count: total.count,
            ok: total.ok,
            failed: total.failed(),
            ok_per_s: per_second(total.ok_in_time(), lasted),
            users_online: gauges.users_online,
            users_present: present(gauges),
            users_planned: self.info.users_planned,
            users_online_min: self.range.online_min.min(gauges.users_online),
            users_online_max: self.range.online_max,
            users_present_max: self.range.present_max,
            connections_opened: self.sum.connections.counts.opened,
            opened_per_s: per_second(self.sum.connections.counts.opened, lasted),
            broken: self.sum.lifecycle.broken,
            held_seconds: self.held.count,
            latency: Latency::of(&total.latency),
        }
    }
}
