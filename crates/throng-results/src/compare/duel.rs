//! Two targets under the same load, in turn. The slices of each pair are compared with each other,
//! so that temporary or gradual changes on the host affect both sides.

use std::collections::BTreeMap;

use throng_base::{SETTLING, Side};
use throng_metrics::duel::{Compared, Duel, DuelChange, DuelCondition, DuelEnd, Fails};
use throng_metrics::{Interval, Quantity};

use super::condition::Condition;
use super::noise::{figure_of_cell, largest_finding};
use super::signed_rank::{Location, location};
use super::units::{Subject, Unit};
use super::{Change, attempts};
use crate::directory::RunInfo;

/// Minimum number of pairs for an early end, because the width of the interval needs them.
const PAIRS_MIN: usize = 10;
/// The first slice of each side is not counted: it opens connections and warms caches.
const WARM_UP_SLICES: u64 = 2;
/// The first second of a slice is not counted: the processors' caches still contain the other
/// side's data.
const SETTLING_S: u64 = SETTLING.as_secs();
/// A slice has at least one counted second.
pub const SLICE_S_MIN: u64 = SETTLING_S + 1;

/// The settings of a duel.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The targets A and B, as written.
    pub sides: [String; 2],
    /// Seed of the run; determines the order in each pair.
    pub seed: u64,
    pub slice_s: u64,
    /// A share; see [`Duel::within`].
    pub within: f64,
    pub budget_s: u64,
    /// The load has a rate, so both sides have the same throughput.
    pub is_paced: bool,
    pub conditions: Vec<Condition>,
}

/// CPU time used in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Of this process.
    pub own_ns: u64,
    /// Of the active side's target, if it is on this host.
    pub target_ns: Option<u64>,
}

/// Collects the results of each second, and compares the sides.
#[derive(Debug)]
pub struct Referee {
    plan: Plan,
    attempts: Vec<u16>,
    subjects: Vec<Option<Subject>>,
    slices: BTreeMap<u64, Slice>,
    /// Number of complete seconds.
    seconds: u64,
    /// Successful attempts of each side, including the warm-up.
    ok: [u64; 2],
}

#[derive(Debug, Default)]
struct Slice {
    unit: Unit,
    target_cpu_ns: Option<u64>,
}

/// Compared in addition to the first quantity, which decides.
const OTHERS: [Quantity; 5] = [
    Quantity::Quantile(0.5),
    Quantity::Quantile(0.99),
    Quantity::Failed,
    Quantity::CpuPerAttempt,
    Quantity::TargetCpuPerAttempt,
];

impl Referee {
    pub fn new(info: &RunInfo, plan: Plan) -> Referee {
        Referee {
            attempts: attempts(info),
            subjects: plan.conditions.iter().map(|one| one.looks_at(info)).collect(),
            plan,
            slices: BTreeMap::new(),
            seconds: 0,
            ok: [0; 2],
        }
    }

    /// The slice of a second, unless the second is not counted.
    fn counted(&mut self, second: u64) -> Option<(u64, &mut Slice)> {
        let slice = second / self.plan.slice_s;
        let counts = slice >= WARM_UP_SLICES && second % self.plan.slice_s >= SETTLING_S;
        counts.then(|| (slice, self.slices.entry(slice).or_default()))
    }

    /// Adds results of one side, A as machine 0 and B as machine 1. Attempts that end in a slice of
    /// the other side are not counted.
    pub fn add(&mut self, interval: &Interval) {
        let (seed, side) = (self.plan.seed, usize::from(interval.machine).min(1));
        let attempts = interval.steps.iter().filter(|row| self.attempts.contains(&row.step));
        self.ok[side] += attempts.map(|row| row.ok).sum::<u64>();
        let Some((number, slice)) = self.counted(interval.second) else { return };
        if Side::BOTH[side] == Side::of_slice(seed, number) {
            slice.unit.add(interval);
        }
    }

    pub fn add_cpu(&mut self, second: u64, cpu: Cpu) {
        let Some((_, slice)) = self.counted(second) else { return };
        slice.unit.cpu_ns += cpu.own_ns;
        if let Some(nanos) = cpu.target_ns {
            *slice.target_cpu_ns.get_or_insert(0) += nanos;
        }
    }

    /// All results of a second have arrived. Returns whether this completes a pair.
    pub fn second(&mut self, second: u64) -> bool {
        self.seconds = self.seconds.max(second + 1);
        let pair = 2 * self.plan.slice_s;
        self.seconds.is_multiple_of(pair) && self.seconds > WARM_UP_SLICES * self.plan.slice_s
    }

    /// A side without a success after its first slice.
    pub fn silent(&self) -> Option<Side> {
        let ended = (self.seconds / self.plan.slice_s).min(WARM_UP_SLICES);
        let worked = (0..ended).map(|slice| self.side_of(slice));
        worked.into_iter().find(|side| self.ok[*side as usize] == 0)
    }

    fn side_of(&self, slice: u64) -> Side {
        Side::of_slice(self.plan.seed, slice)
    }

    fn all(&self) -> Subject {
        Subject::Generator(self.attempts.clone())
    }

    /// The complete pairs, A first.
    fn pairs(&self) -> Vec<[&Slice; 2]> {
        let ended = self.seconds / self.plan.slice_s;
        let pair = |pair: u64| {
            let [one, two] = [2 * pair, 2 * pair + 1].map(|slice| self.slices.get(&slice));
            match self.side_of(2 * pair) {
                Side::A => Some([one?, two?]),
                Side::B => Some([two?, one?]),
            }
        };
        (WARM_UP_SLICES / 2..ended / 2).filter_map(pair).collect()
    }

    fn counted_s(&self) -> f64 {
        (self.plan.slice_s - SETTLING_S) as f64
    }

    fn value(&self, slice: &Slice, of: Quantity, subject: &Subject, seconds: f64) -> Option<f64> {
        let cell = slice.unit.cell(subject);
        match of {
            Quantity::TargetCpuPerAttempt => {
                let nanos = slice.target_cpu_ns.filter(|_| cell.count > 0)?;
                Some(nanos as f64 / cell.count as f64)
            }
            of => figure_of_cell(&cell, of, seconds),
        }
    }

    /// The change from A to B over all pairs in which both have the value.
    fn change(&self, of: Quantity, subject: &Subject) -> Option<Change> {
        let differ = |pair: [&Slice; 2]| {
            let [a, b] = pair.map(|it| self.value(it, of, subject, self.counted_s()));
            let (a, b) = (a?, b?);
            match of.is_by_points() {
                true => Some(b - a),
                // A ratio needs two positive values.
                false => (a > 0.0 && b > 0.0).then(|| (b / a).ln()),
            }
        };
        let differences: Vec<f64> = self.pairs().into_iter().filter_map(differ).collect();
        let Location { middle, low, high, chance } = location(&differences)?;
        let share = |value: f64| if of.is_by_points() { value } else { value.exp_m1() };
        let interval = Some((share(low), share(high)));
        Some(Change { by: share(middle), interval, chance, named: false })
    }

    fn looked(&self) -> impl Iterator<Item = Quantity> {
        let (rate, mean) = (Quantity::Rate, Quantity::Mean);
        let first = if self.plan.is_paced { [mean, rate] } else { [rate, mean] };
        first.into_iter().chain(OTHERS)
    }

    /// The result so far.
    pub fn duel(&self, ended_by: DuelEnd) -> Duel {
        let (all, pairs) = (self.all(), self.pairs());
        let changes: Vec<(Quantity, Option<Change>)> =
            self.looked().map(|of| (of, self.change(of, &all))).collect();
        let chances = changes.iter().filter_map(|(_, change)| Some(change.as_ref()?.chance));
        let largest = largest_finding(chances.collect());
        let whole = self.whole(&pairs);
        let seconds = self.counted_s() * pairs.len() as f64;
        let compared = |(of, change): (Quantity, Option<Change>)| {
            let value = |slice: &Slice| self.value(slice, of, &all, seconds);
            let change = change.and_then(|change| told(&change, largest));
            Compared { figure: of.word(), a: value(&whole[0]), b: value(&whole[1]), change }
        };
        Duel {
            sides: self.plan.sides.clone(),
            slice_s: self.plan.slice_s as f64,
            pairs: pairs.len() as u64,
            within: self.plan.within,
            budget_s: self.plan.budget_s as f64,
            ended_by,
            figures: changes.into_iter().map(compared).collect(),
            conditions: self.conditions(),
        }
    }

    /// The sum of all slices of each side.
    fn whole(&self, pairs: &[[&Slice; 2]]) -> [Slice; 2] {
        [0, 1].map(|side| {
            let mut whole = Slice::default();
            for pair in pairs {
                whole.unit.merge(&pair[side].unit);
                if let Some(nanos) = pair[side].target_cpu_ns {
                    *whole.target_cpu_ns.get_or_insert(0) += nanos;
                }
            }
            whole
        })
    }

    fn conditions(&self) -> Vec<DuelCondition> {
        let pairs = self.pairs();
        let judged = |(condition, subject): (&Condition, &Option<Subject>)| {
            let of = condition.measure();
            let change = subject.as_ref().and_then(|subject| self.change(of, subject));
            let mut judged = condition.judge_change(change);
            let has = |slice: &Slice| {
                let value = |subject| self.value(slice, of, subject, self.counted_s());
                subject.as_ref().and_then(value).is_some()
            };
            // The value exists, but in too few pairs.
            let is_there = pairs.iter().flatten().any(|slice| has(slice));
            if judged.fails == Fails::Unknown && is_there {
                judged.fails = Fails::Perhaps;
            }
            DuelCondition { text: judged.text, fails: judged.fails }
        };
        self.plan.conditions.iter().zip(&self.subjects).map(judged).collect()
    }

    /// Whether the interval is as narrow as requested.
    pub fn is_decided(&self, duel: &Duel) -> bool {
        let first = duel.figures.first().and_then(|figure| figure.change);
        let is_narrow = first.is_some_and(|change| change.reach() <= self.plan.within);
        is_narrow && duel.pairs >= PAIRS_MIN as u64
    }
}

/// The change for the run directory; named if its p-value is at most `largest`.
fn told(change: &Change, largest: f64) -> Option<DuelChange> {
    let (low, high) = change.interval?;
    let named = change.chance <= largest && (low > 0.0 || high < 0.0);
    Some(DuelChange { by: change.by, low, high, named })
}

#[cfg(test)]
mod tests;
