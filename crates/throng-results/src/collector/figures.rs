//! The sums of interval lines: everything in a run except its events. They can be stored, so that a
//! long run is summed up without rereading its first lines.

use serde::{Deserialize, Serialize};
use throng_base::StepId;
use throng_metrics::{Histogram, Interval};
use throng_why::Timeline;

use super::held::Held;
use super::labels::Labels;
use super::levels::Levels;
use super::machines::Machines;
use super::outages::Outages;
use super::phase::{PhaseSum, SECOND_NS, Seconds, present};
use super::pieces::Pieces;
use crate::directory::{PhaseInfo, RunInfo};
use crate::event::Event;
use crate::gauges::AllGauges;
use crate::summary::picture::Picture;
use crate::summary::{Attempts, HOST_CPU_BUSY, LATENESS_NS_MAX};
use crate::window::{Behind, Stretches};

/// The load must continue without users for at least this time.
const DESERTED_SECONDS_MIN: u64 = 2;

/// A checkpoint of an older version, which lacks some of them, is not used.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(super) attempts: Attempts,
    pub(super) phases: Vec<PhaseSum>,
    pub(super) gauges: AllGauges,
    pub(super) users_online_max: u64,
    pub(super) users_present_max: u64,
    /// One past the last second at whose end a user was present.
    present_until: u64,
    pub(super) connections_open_max: u64,
    pub(super) backlog_max: u64,
    second: Second,
    pub(super) pace: Pace,
    pub(super) machines: Machines,
    /// By threshold: state of thresholds over stretches of seconds.
    pub(super) stretches: Vec<Option<Stretches>>,
    /// By threshold: state of thresholds around marks.
    pub(super) behind: Vec<Option<Behind>>,
    pub(super) held: Seconds,
    pub(super) pieces: Pieces,
    pub(super) labels: Labels,
    pub(super) levels: Levels,
    /// The seconds that findings use.
    pub(super) timeline: Timeline,
    pub(super) picture: Picture,
}

/// The current second, until a later one starts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Second {
    second: u64,
    ok: u64,
    /// Includes those after the end of the load.
    ok_at_all: u64,
    failed: u64,
    opened: u64,
    lateness: Histogram,
    filled: bool,
}

/// Values that need complete seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pace {
    pub(super) seconds: u64,
    pub(super) late_seconds: u64,
    pub(super) sustained_per_s: u64,
    pub(super) opened_per_s_max: u64,
    pub(super) host_busy_from: Option<u64>,
    pub(super) outages: Outages,
}

impl Figures {
    pub(crate) fn new(info: &RunInfo) -> Figures {
        let phase = |(at, phase): (usize, &PhaseInfo)| {
            PhaseSum::new(phase.clone(), Held::of_phase(info, at))
        };
        let mut phases: Vec<PhaseSum> = info.tables.phases.iter().enumerate().map(phase).collect();
        if phases.is_empty() {
            let whole = PhaseInfo { measured: true, ..PhaseInfo::default() };
            phases.push(PhaseSum::new(whole, Held::of_phase(info, 0)));
        }
        let stretches = info.tables.thresholds.iter().map(|it| Stretches::of(&it.threshold, info));
        let behind = info.tables.thresholds.iter().map(|it| Behind::of(&it.threshold, info));
        Figures {
            attempts: Attempts::new(info),
            phases,
            machines: Machines::new(info),
            stretches: stretches.collect(),
            behind: behind.collect(),
            labels: Labels::new(info),
            ..Figures::default()
        }
    }

    /// Stored sums of this run; `None` for another run.
    pub(crate) fn restored(self, info: &RunInfo) -> Option<Figures> {
        let new = Figures::new(info);
        let same = self.phases.iter().map(|it| &it.info).eq(new.phases.iter().map(|it| &it.info))
            && self.stretches.len() == new.stretches.len();
        same.then_some(self)
    }

    pub(crate) fn interval(&mut self, interval: &Interval) {
        let index = self.index(interval.phase);
        let phase = &mut self.phases[index];
        phase.add(interval);
        let measured = phase.info.measured;
        phase.gauges(interval);
        let load = usize::from(phase.info.load);
        let gauges = self.gauges.add(load, interval);
        self.levels.add(index, interval, &gauges);
        self.users_online_max = self.users_online_max.max(gauges.users_online);
        self.users_present_max = self.users_present_max.max(present(&gauges));
        if present(&gauges) > 0 {
            self.present_until = self.present_until.max(interval.second.saturating_add(1));
        }
        self.connections_open_max = self.connections_open_max.max(gauges.connections_open);
        self.backlog_max = self.backlog_max.max(gauges.backlog);
        if interval.generator.resources.as_ref().is_some_and(|resources| resources.held) {
            self.held.add(interval.second);
        }
        self.picture.add(interval);
        let is_attempt = |step| self.attempts.holds(StepId(step));
        self.timeline.add(interval, measured, &gauges, is_attempt);
        self.stretches.iter_mut().flatten().for_each(|it| it.add(interval, &gauges));
        self.behind.iter_mut().flatten().for_each(|it| it.add(interval, &gauges));
        if measured {
            self.pace(interval);
            self.pieces.add(interval, &self.attempts, gauges.users_online);
            self.machines.add(interval);
            self.labels.add(load, interval, &self.attempts);
        }
    }

    /// Processes an event that determines how seconds count. An event may be passed twice.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::PhaseBegun { at_ns, phase } => {
                let index = self.index(*phase);
                let begun = &mut self.phases[index].begun_ns;
                *begun = Some(begun.map_or(*at_ns, |first| first.min(*at_ns)));
                self.levels.begun(*at_ns, (index, &self.phases[index]));
            }
            Event::PhaseEnded { at_ns, phase } => {
                let index = self.index(*phase);
                let ended = &mut self.phases[index].ended_ns;
                *ended = (*ended).max(Some(*at_ns));
            }
            Event::Amended { at_ns, phase, change, .. } => {
                let index = self.index(*phase);
                self.levels.changed(*at_ns, (index, &self.phases[index]), change);
            }
            Event::MachineLost { at_ns, machine, detail } => {
                self.machines.lost(*machine, *at_ns, detail);
            }
            Event::Marked { at_ns, name } | Event::ActionBegun { at_ns, name, .. } => {
                self.behind.iter_mut().flatten().for_each(|it| it.marked(*at_ns, name));
            }
            _ => {}
        }
    }

    /// The second after which no user was present, if loads have a number of users and the last
    /// phase has a duration that continued for a while.
    pub(super) fn deserted_s(&self) -> Option<u64> {
        let begun = || self.phases.iter().filter(|phase| phase.begun_ns.is_some());
        let is_closed = |phase: &PhaseSum| phase.info.users_planned.is_some_and(|users| users > 0);
        let last = begun().filter(|phase| phase.info.planned_ns.is_some());
        let last = last.max_by_key(|phase| phase.ended_ns)?;
        let from_s = self.present_until + 1;
        let is_deserted = begun().all(|phase| is_closed(phase) && phase.ended_ns <= last.ended_ns)
            && begun().any(|phase| self.attempts.total(&phase.sum).count > 0)
            && from_s + DESERTED_SECONDS_MIN <= last.ended_ns? / SECOND_NS;
        is_deserted.then_some(from_s)
    }

    /// What ends after the last phase, or belongs to no phase, counts toward the last phase.
    pub(super) fn index(&self, phase: u16) -> usize {
        usize::from(phase).min(self.phases.len() - 1)
    }

    fn pace(&mut self, interval: &Interval) {
        if self.second.filled && interval.second > self.second.second {
            self.end_second();
        }
        if !self.second.filled {
            self.second.second = interval.second;
            self.second.filled = true;
        }
        if interval.second == self.second.second {
            for row in interval.steps.iter().filter(|row| self.attempts.holds(StepId(row.step))) {
                self.second.ok += row.ok_in_time();
                self.second.ok_at_all += row.ok;
                self.second.failed += row.failed();
            }
            self.second.opened += interval.connections.counts.opened;
            self.second.lateness.merge(&interval.generator.lateness);
        }
        let busy =
            interval.generator.resources.as_ref().is_some_and(|r| r.host_cpu >= HOST_CPU_BUSY);
        if busy {
            let first = self.pace.host_busy_from.unwrap_or(u64::MAX).min(interval.second);
            self.pace.host_busy_from = Some(first);
        }
    }

    /// Ends the current second.
    pub(super) fn end_second(&mut self) {
        let second = std::mem::take(&mut self.second);
        if !second.filled {
            return;
        }
        let pace = &mut self.pace;
        pace.seconds += 1;
        pace.outages.second(second.second, second.ok_at_all, second.failed);
        pace.opened_per_s_max = pace.opened_per_s_max.max(second.opened);
        if second.lateness.value_at(0.99) > LATENESS_NS_MAX {
            pace.late_seconds += 1;
        } else {
            pace.sustained_per_s = pace.sustained_per_s.max(second.ok);
        }
    }
}
