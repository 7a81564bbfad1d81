//! The levels that a search has held: which passed, which failed, and what they indicate.

use throng_metrics::capacity::{FailedBy, Level, LevelVerdict, Purpose};

use crate::capacity::autocorrelation;
use crate::capacity::fit::{Curve, Point};
use crate::capacity::hold::{COLLAPSED, Ended, Goals, Held, Hold, Second, Tally};
use crate::capacity::judge;

/// Minimum number of bad attempts for a level to fail, except the promise: one in 90 does not prove
/// more than 1 %.
const BAD_MIN: f64 = 5.0;
/// A level of users fails if less than this share of them is online at its end.
const ONLINE_MIN: f64 = 0.999;
/// A level that was skipped before this many seconds has no verdict of its own.
const SKIPPED_MIN_S: f64 = 5.0;
/// A level is strained from here.
const STRAIN_LIGHT: f64 = 0.25;
const RESPONSE_LIGHT: f64 = 1.5;
const SERVED_LIGHT: f64 = 0.99;
/// Excluded from the curve are visits farther above the border than `WINDOW`, as a logarithm, and
/// visits with less strain than this, where the share comes from other causes than load, such as
/// slow service times.
const STRAIN_MIN: f64 = 0.2;
const WINDOW: f64 = 0.13;

/// A level and its counts.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) level: Level,
    /// Attempts that ended, and those that were overdue at the end.
    attempts: f64,
    /// What each threshold of [`Goals::shares`] counts in them.
    counted: Vec<Tally>,
    /// The threshold with the greatest strain.
    strained_by: Option<usize>,
    seconds: Vec<Second>,
    was_skipped: bool,
}

/// The levels of a search; see the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    visits: Vec<Visit>,
    pub(super) passed: Option<f64>,
    pub(super) failed: Option<f64>,
    /// A load that failed without a lower one that has passed since, and the number of higher loads
    /// tried since.
    pub(super) floor: Option<f64>,
    above: u32,
}

impl Levels {
    pub(super) fn add(&mut self, visit: Visit) {
        let load = visit.level.load;
        self.above += u32::from(self.floor.is_some_and(|floor| load > floor));
        let is_below = |floor: f64| load < floor;
        match visit.level.verdict {
            LevelVerdict::GeneratorBound(_) => {}
            LevelVerdict::Met => {
                if self.floor.is_some_and(is_below) {
                    (self.floor, self.above) = (None, 0);
                }
                self.passed = Some(self.passed.map_or(load, |passed| passed.max(load)));
            }
            LevelVerdict::NotMet(_) => {
                if self.floor.is_none_or(is_below) {
                    (self.floor, self.above) = (Some(load), 0);
                }
                self.failed = Some(self.failed.map_or(load, |failed| failed.min(load)));
            }
        }
        self.visits.push(visit);
    }

    /// In the order of the search.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &Level> {
        self.visits.iter().map(|visit| &visit.level)
    }

    pub(super) fn last(&self) -> Option<&Visit> {
        self.visits.last()
    }

    fn met(&self) -> impl DoubleEndedIterator<Item = &Level> {
        self.all().filter(|level| level.is_met())
    }

    /// The highest load that passed below the lowest that failed; a higher pass is ignored as luck.
    pub(super) fn carried(&self) -> Option<f64> {
        let below = |level: &&Level| self.failed.is_none_or(|failed| level.load < failed);
        self.met().filter(below).map(|level| level.load).reduce(f64::max)
    }

    /// Whether loads above the floor are barred, because one was tried since it failed.
    pub(super) fn is_barred(&self, load: f64) -> bool {
        self.above > 0 && self.floor.is_some_and(|floor| load > floor)
    }

    /// The median response time of the last level that passed at about this load or, without a
    /// load, of the first level.
    pub(super) fn usual_s(&self, load: Option<f64>) -> Option<f64> {
        let p50 = |level: &Level| level.p50_s;
        let first = || self.met().next().and_then(p50);
        let Some(load) = load else { return first() };
        let mut near = self.met().filter(|level| level.load >= load && level.load <= 2.0 * load);
        near.next_back().and_then(p50).or_else(first)
    }

    /// Whether the service collapsed in the last level.
    pub(super) fn has_collapsed(&self) -> bool {
        let Some(visit) = self.last().filter(|visit| !visit.was_skipped) else { return false };
        let verdict = &visit.level.verdict;
        let is_gone = *verdict == LevelVerdict::NotMet(FailedBy::Gone);
        let highest = self.met().map(|level| level.served).fold(0.0, f64::max);
        let failed = matches!(verdict, LevelVerdict::NotMet(_));
        let is_above = self.passed.is_some_and(|passed| visit.level.load > passed);
        is_gone || failed && is_above && visit.tail() < COLLAPSED * highest
    }

    /// Whether the last level was not light.
    pub(super) fn is_strained(&self) -> bool {
        let Some(Visit { level, attempts, .. }) = self.last() else { return false };
        let lost = attempts * (1.0 - level.served / level.offered);
        let usual = self.usual_s(None).zip(level.p50_s);
        level.strain.is_some_and(|strain| strain > STRAIN_LIGHT)
            || level.served < SERVED_LIGHT * level.offered && lost > judge::BAD_MIN as f64
            || usual.is_some_and(|(usual, now)| now > RESPONSE_LIGHT * usual)
    }

    /// For each of the given number of thresholds, the counts of the refinement's visits near the
    /// border of a curve or, without a curve, of all its visits. Minutes are relative to
    /// `middle_s`.
    pub(super) fn points(
        &self,
        shares: usize,
        curve: Option<Curve>,
        middle_s: f64,
    ) -> Vec<Vec<Point>> {
        let refined = |Visit { level, .. }: &&Visit| {
            let counts = matches!(level.purpose, Purpose::Refine | Purpose::Confirm);
            counts || curve.is_none()
        };
        let near = |Visit { level, .. }: &&Visit| {
            curve.is_none_or(|curve| {
                let from = level.load.ln() - curve.border;
                from * curve.slope >= STRAIN_MIN.ln() && from <= WINDOW
            })
        };
        let visits: Vec<&Visit> = self
            .visits
            .iter()
            .filter(|visit| !matches!(visit.level.verdict, LevelVerdict::GeneratorBound(_)))
            .filter(refined)
            .filter(near)
            .collect();
        let point = |visit: &&Visit, index: usize| Point {
            at: visit.level.load.ln(),
            minutes: (visit.level.middle_s() - middle_s) / 60.0,
            attempts: visit.counted[index].attempts,
            bad: visit.counted[index].bad,
        };
        (0..shares).map(|index| visits.iter().map(|visit| point(visit, index)).collect()).collect()
    }

    /// The time after which the service no longer depends on its past: for a queue from the mean
    /// response time of each second, for a rate limiter from its bad attempts.
    pub(super) fn forgets_s(&self, curve: Curve) -> f64 {
        let near = self.visits.iter().filter(|visit| {
            let near = (visit.level.load.ln() - curve.border).abs() <= WINDOW;
            near && matches!(visit.level.purpose, Purpose::Refine | Purpose::Bracket)
        });
        let (mut answered, mut bad) = (Vec::new(), Vec::new());
        for visit in near {
            let index = visit.strained_by.unwrap_or(0);
            let seconds = visit.seconds.iter().filter(|second| second.ended > 0);
            let mean = |second: &Second| (1.0, second.response_s / second.ended as f64);
            answered.push(seconds.clone().map(mean).collect());
            bad.push(
                seconds.map(|it| (it.counted[index].attempts, it.counted[index].bad)).collect(),
            );
        }
        autocorrelation::time_s(&answered).max(autocorrelation::time_s(&bad))
    }
}

impl Visit {
    /// The row and the counts of a hold, including attempts overdue at its end.
    pub(super) fn new(goals: &Goals, begun_s: f64, hold: &Hold, held: Held) -> Visit {
        let seconds = held.seconds.len() as f64;
        let sum = |of: fn(&Second) -> f64| held.seconds.iter().map(of).sum::<f64>();
        let begun = sum(|second| second.begun as f64);
        let ended = sum(|second| second.ended as f64);
        let unanswered = held.seconds.last().map_or(0, |second| second.unanswered) as f64;
        // Attempts that began within the limit can still end in time; the others are overdue.
        let overdue = |within_s: f64| (unanswered - begun / seconds.max(1.0) * within_s).max(0.0);
        let limits = goals.shares.iter().filter_map(|share| share.within_s);
        let attempts = ended + limits.map(overdue).fold(0.0, f64::max);
        let counted = goals.shares.iter().enumerate().map(|(index, share)| {
            let mut tally = Tally::default();
            held.seconds.iter().for_each(|second| tally.add(&second.counted[index]));
            // Attempts without a response are assumed to be distributed over steps like the others.
            let part = if ended > 0.0 { tally.attempts / ended } else { 1.0 };
            let overdue = part * share.within_s.map_or(0.0, overdue);
            Tally { attempts: tally.attempts + overdue, bad: tally.bad + overdue }
        });
        let counted: Vec<Tally> = counted.collect();
        let strain = goals.strain(&counted);
        let bad_min = if hold.purpose == Purpose::Confirm { 0.0 } else { BAD_MIN };
        let mean_s = sum(|second| second.response_s) / ended.max(1.0);
        let level = Level {
            load: hold.load,
            purpose: hold.purpose,
            at_s: begun_s + held.settled_s,
            seconds,
            offered: begun / seconds.max(1.0),
            served: sum(|second| second.good as f64) / seconds.max(1.0),
            attempts: attempts.round() as u64,
            strain: strain.map(|(_, strain)| strain),
            mean_s,
            p50_s: held.percentiles.map(|it| it.p50_s),
            p90_s: held.percentiles.map(|it| it.p90_s),
            p99_s: held.percentiles.map(|it| it.p99_s),
            in_flight: sum(|second| second.unanswered as f64) / seconds.max(1.0),
            in_flight_expected: attempts / seconds.max(1.0) * mean_s,
            online: held.online,
            verdict: verdict(goals, (&held, hold.load, attempts), strain, (&counted, bad_min)),
        };
        let (strained_by, was_skipped) = (strain.map(|it| it.0), held.ended == Ended::Skipped);
        Visit { level, attempts, counted, strained_by, seconds: held.seconds, was_skipped }
    }
    /// The goodput of the last seconds.
    pub(super) fn tail(&self) -> f64 {
        let last = &self.seconds[self.seconds.len().saturating_sub(3)..];
        last.iter().map(|second| second.good).sum::<u64>() as f64 / last.len().max(1) as f64
    }
}

fn verdict(
    goals: &Goals,
    (held, load, attempts): (&Held, f64, f64),
    strain: Option<(usize, f64)>,
    (counted, bad_min): (&[Tally], f64),
) -> LevelVerdict {
    let seconds = held.seconds.len() as f64;
    let not_met = LevelVerdict::NotMet;
    match (&held.ended, held.unmet, strain) {
        (Ended::GeneratorBound(by), ..) => LevelVerdict::GeneratorBound(*by),
        (_, _, Some((index, strain))) if strain > 1.0 && counted[index].bad >= bad_min => {
            not_met(goals.share_not_met(index))
        }
        (Ended::GaveUp(by), ..) => not_met(by.clone()),
        (_, Some(index), _) => not_met(FailedBy::Threshold(goals.plain[index].clone())),
        (Ended::Skipped, ..) if seconds < SKIPPED_MIN_S => {
            not_met(strain.map_or(FailedBy::Silence, |it| goals.share_not_met(it.0)))
        }
        (.., None) if attempts == 0.0 && held.online.is_none() => not_met(FailedBy::Silence),
        _ if held.online.is_some_and(|online| (online as f64) < load * ONLINE_MIN) => {
            not_met(FailedBy::Offline)
        }
        _ => LevelVerdict::Met,
    }
}
