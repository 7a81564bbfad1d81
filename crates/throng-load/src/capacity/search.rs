//! The state of a search, and the next order.

mod rate;
mod users;

use throng_base::random::Random;

use crate::capacity::answer::{Answer, Basis, Collapse, EndedBy, FailedBy, Level, LevelVerdict};
use crate::capacity::fit::Curve;
use crate::capacity::hold::{
    Ended, GaveUp, Goals, Held, Hold, Order, Outcome, Purpose, Second, Unit, Until, Wait, Waited,
    Why,
};
use crate::capacity::judge::{Judge, Watch};
use crate::capacity::knee::knee;

/// Settle time of a level: attempts of the previous level end, and queues reach their usual length.
const SETTLE_S: u32 = 2;
/// A drain that takes longer is repeated at half the load, at most this many times.
const DRAIN_MAX_S: u32 = 60;
const HALVINGS_MAX: u32 = 3;
/// A level whose goodput at its end is less than this part of the highest one has collapsed.
const COLLAPSED: f64 = 0.8;
const OVERLOAD: f64 = 1.3;
const OVERLOAD_S: u32 = 20;
const RECOVER_MAX_S: u32 = 60;
/// Fewer bad attempts fail no level but the promise: one of 90 is no proof of more than 1 %.
const BAD_MIN: f64 = 5.0;
/// A level that was skipped earlier than this has no verdict.
const SKIPPED_MIN_S: f64 = 5.0;

/// The settings of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub goals: Goals,
    pub unit: Unit,
    /// The first level.
    pub base: f64,
    /// The highest level.
    pub max: Option<f64>,
    /// Maximum time under load, in seconds. A drain that has begun may exceed it.
    pub budget_s: f64,
    /// How long the promise is confirmed.
    pub confirm_s: u32,
    /// Whether the search ends with a deliberate overload and recovery.
    pub overload: bool,
    /// Of the resampling.
    pub seed: u64,
}

impl Settings {
    /// With a smaller budget, no bracket can be expected, in seconds: six levels of the climb, four
    /// between the last ones, and two drains.
    pub fn budget_min_s(&self) -> f64 {
        match self.unit {
            Unit::PerSecond => rate::budget_min_s(),
            Unit::Users => users::budget_min_s(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Climb,
    Bracket,
    Refine,
    Confirm,
    Beyond,
    Recover,
    Finished,
}

/// The status of a search, for display.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    pub stage: Stage,
    /// The current load, and the reason for it.
    pub order: Order,
    /// The highest load that passed and the lowest that failed, so far.
    pub passed: Option<f64>,
    pub failed: Option<f64>,
    /// The 95 % interval so far.
    pub interval: Option<(f64, f64)>,
    pub spent_s: f64,
    pub left_s: f64,
}

/// A level, and the seconds that it was counted in.
#[derive(Clone, Debug)]
struct Visit {
    level: Level,
    seconds: Vec<Second>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    low: f64,
    border: f64,
    high: f64,
    /// Change of the border, as a logarithm per minute, if it is significant.
    trend: Option<f64>,
}

/// Takes one finished hold or wait, and returns one order.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    random: Random,
    stage: Stage,
    order: Order,
    visits: Vec<Visit>,
    spent_s: f64,
    passed: Option<f64>,
    failed: Option<f64>,
    /// A load that failed without a lower one that has passed since, and the number of higher loads
    /// tried since.
    floor: Option<f64>,
    above: u32,
    /// How often the present drain was repeated at half its load.
    halvings: u32,
    collapse: Option<Collapse>,
    collapses: u32,
    curve: Curve,
    /// Position of the refinement in its round, and the number of visits so far.
    turn: usize,
    estimate: Option<Estimate>,
    promise: Option<f64>,
    tries: u32,
    confirmed_s: f64,
    overloaded_at: Option<f64>,
    recovered_s: Option<f64>,
    ended_by: Option<EndedBy>,
}

impl Search {
    pub fn new(settings: Settings) -> Search {
        let base = settings.max.map_or(settings.base, |max| settings.base.min(max));
        let mut search = Search {
            random: Random::for_owner(settings.seed, 0),
            settings,
            stage: Stage::Climb,
            order: Order::Finish,
            visits: Vec::new(),
            spent_s: 0.0,
            passed: None,
            failed: None,
            floor: None,
            above: 0,
            halvings: 0,
            collapse: None,
            collapses: 0,
            curve: Curve::new(base),
            turn: 0,
            estimate: None,
            promise: None,
            tries: 0,
            confirmed_s: 0.0,
            overloaded_at: None,
            recovered_s: None,
            ended_by: None,
        };
        search.order = match search.settings.unit {
            Unit::PerSecond => {
                search.hold(base, (SETTLE_S, rate::CLIMB_S), Purpose::Climb, Why::Base)
            }
            Unit::Users => search.hold(base, (SETTLE_S, users::HOLD_S), Purpose::Climb, Why::Base),
        };
        search
    }

    /// What to do now.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Watches the hold that is ordered; None where none is.
    pub fn judge(&self) -> Option<Judge> {
        let Order::Hold(hold) = self.order else { return None };
        Some(Judge::new(&self.settings.goals, hold, self.usual_s(None).unwrap_or(0.0)))
    }

    /// Watches the wait that is ordered; None where none is.
    pub fn watch(&self) -> Option<Watch> {
        let Order::Wait(wait) = self.order else { return None };
        Some(Watch::new(&self.settings.goals, wait))
    }

    /// Takes the outcome of the order. The next order is in [`Search::order`]. An outcome of
    /// another kind than the order is ignored.
    pub fn handle(&mut self, outcome: Outcome) {
        match (self.order, outcome) {
            (Order::Hold(hold), Outcome::Held(held)) => self.held(hold, held),
            (Order::Wait(wait), Outcome::Waited(waited)) => self.waited(wait, waited),
            _ => {}
        }
    }

    /// Ends the search on request: the answer contains what is known so far.
    pub fn end(&mut self) {
        self.finish(EndedBy::Asked);
    }

    pub fn status(&self) -> Status {
        Status {
            stage: self.stage,
            order: self.order,
            passed: self.passed,
            failed: self.failed,
            interval: self.estimate.map(|it| (it.low, it.high)),
            spent_s: self.spent_s,
            left_s: self.left_s(),
        }
    }

    /// All levels so far, in the order in which they were held.
    pub fn levels(&self) -> impl Iterator<Item = &Level> {
        self.visits.iter().map(|visit| &visit.level)
    }

    /// The answer so far; complete when the search is over.
    pub fn answer(&self) -> Answer {
        let levels: Vec<Level> = self.levels().cloned().collect();
        let border = self.estimate.map(|it| it.border).or(self.passed);
        let fails = levels
            .iter()
            .filter(|level| border.is_none_or(|border| level.load > border))
            .filter(|level| matches!(level.verdict, LevelVerdict::NotMet(_)))
            .min_by(|a, b| a.load.total_cmp(&b.load));
        let (basis, low, high) = self.found();
        Answer {
            carries: self.promise.filter(|_| self.confirmed_s > 0.0),
            low,
            high,
            basis,
            unit: self.settings.unit,
            confirmed_s: self.confirmed_s,
            fails_at: fails.map(|level| level.load),
            fails_by: fails.and_then(|level| match level.verdict {
                LevelVerdict::NotMet(by) => Some(by),
                LevelVerdict::Met | LevelVerdict::GeneratorBound(_) => None,
            }),
            overloaded_at: self.overloaded_at,
            recovered_s: self.recovered_s,
            collapse: self.collapse,
            trend: self.estimate.and_then(|it| it.trend).map(|trend| trend.exp() - 1.0),
            knee: knee(&levels),
            levels,
            ended_by: self.ended_by.unwrap_or(EndedBy::Asked),
            spent_s: self.spent_s,
        }
    }

    fn found(&self) -> (Basis, Option<f64>, Option<f64>) {
        let is_bound = matches!(self.ended_by, Some(EndedBy::Generator(_)));
        match (self.estimate, self.carried(), self.failed) {
            (Some(it), ..) if !is_bound => (Basis::Interval, Some(it.low), Some(it.high)),
            (_, None, failed) => (Basis::Nothing, None, failed),
            (_, Some(passed), Some(failed)) if !is_bound => {
                (Basis::Bracket, Some(passed), Some(failed))
            }
            (_, Some(passed), _) => (Basis::AtLeast, Some(passed), None),
        }
    }

    fn held(&mut self, hold: Hold, held: Held) {
        let level = self.level(&hold, &held);
        self.spent_s += held.settled_s + level.seconds;
        let verdict = level.verdict;
        let fell = held.ended != Ended::Skipped && self.has_collapsed(&hold, &level, &held.seconds);
        let load = level.load;
        self.visits.push(Visit { level, seconds: held.seconds });
        match verdict {
            LevelVerdict::GeneratorBound(limit) => return self.finish(EndedBy::Generator(limit)),
            LevelVerdict::Met => self.met(load),
            LevelVerdict::NotMet(by) => {
                self.not_met(load);
                if self.visits.len() == 1 {
                    return self.finish(EndedBy::BaseFails(by));
                }
            }
        }
        if fell && hold.purpose != Purpose::Beyond && self.collapsed(load, false) {
            return;
        }
        match (self.settings.unit, hold.purpose) {
            (Unit::Users, _) => self.users_held(),
            (Unit::PerSecond, Purpose::Beyond) => self.recover(),
            (Unit::PerSecond, _) if verdict == LevelVerdict::Met => self.rate_next(),
            (Unit::PerSecond, _) => self.drain(),
        }
    }

    fn met(&mut self, load: f64) {
        self.above += u32::from(self.floor.is_some_and(|floor| load > floor));
        if self.floor.is_some_and(|floor| load < floor) {
            (self.floor, self.above) = (None, 0);
        }
        self.passed = Some(self.passed.map_or(load, |passed| passed.max(load)));
    }

    fn not_met(&mut self, load: f64) {
        self.above += u32::from(self.floor.is_some_and(|floor| load > floor));
        if self.floor.is_none_or(|floor| load < floor) {
            (self.floor, self.above) = (Some(load), 0);
        }
        self.failed = Some(self.failed.map_or(load, |failed| failed.min(load)));
    }

    /// The highest load that passed below the lowest that failed; a higher pass is ignored as luck.
    fn carried(&self) -> Option<f64> {
        let below = |level: &&Level| self.failed.is_none_or(|failed| level.load < failed);
        let met = self.levels().filter(|level| level.is_met()).filter(below);
        met.map(|level| level.load).reduce(f64::max)
    }

    /// Notes a collapse. True: it is the second one, and the search is over.
    fn collapsed(&mut self, at: f64, stays: bool) -> bool {
        let served = self.visits.last().map_or(0.0, |visit| tail(&visit.seconds));
        match &mut self.collapse {
            Some(known) if known.at == at => known.stays |= stays,
            _ => {
                self.collapses += 1;
                let before = self.collapse.map_or(f64::INFINITY, |it| it.at);
                let at = at.min(before);
                self.collapse = Some(Collapse { at, served, recovers_at: None, stays });
            }
        }
        let again = self.collapses > 1;
        if again {
            self.finish(EndedBy::CollapsedAgain);
        }
        again
    }

    fn has_collapsed(&self, hold: &Hold, level: &Level, seconds: &[Second]) -> bool {
        let is_gone = level.verdict == LevelVerdict::NotMet(FailedBy::GaveUp(GaveUp::Gone));
        let highest = self.levels().filter(|level| level.is_met()).map(|level| level.served);
        let highest = highest.fold(0.0, f64::max);
        let failed = matches!(level.verdict, LevelVerdict::NotMet(_));
        let is_above = self.passed.is_some_and(|passed| hold.load > passed);
        is_gone || failed && is_above && tail(seconds) < COLLAPSED * highest
    }

    /// After a failure: a light load until the service has recovered.
    fn drain(&mut self) {
        self.halvings = 0;
        let carried = self.carried().unwrap_or(self.settings.base);
        self.wait_drained(carried / 2.0);
    }

    fn wait_drained(&mut self, load: f64) {
        let until = Until::Drained { p50_s: self.usual_s(Some(load)) };
        self.order = Order::Wait(Wait { load: round(load), seconds_max: DRAIN_MAX_S, until });
    }

    /// The median response time of the last level that passed at this load or little more; without
    /// a load, of the first level.
    fn usual_s(&self, load: Option<f64>) -> Option<f64> {
        let p50 = |level: &Level| level.percentiles.map(|it| it.p50_s);
        let met = || self.levels().filter(|level| level.is_met());
        let first = || met().next().and_then(p50);
        let Some(load) = load else { return first() };
        let near = met().filter(|level| level.load >= load && level.load <= 2.0 * load);
        near.last().and_then(p50).or_else(first)
    }

    fn waited(&mut self, wait: Wait, waited: Waited) {
        self.spent_s += waited.seconds;
        match (self.stage, wait.until) {
            (_, Until::Back { .. }) => {
                self.recovered_s = waited.reached.then_some(waited.seconds);
                self.finish(EndedBy::Found);
            }
            (Stage::Recover, _) => self.recovering(&wait, &waited),
            _ if waited.reached => {
                if let Some(known) = self.collapse.as_mut().filter(|it| it.recovers_at.is_none()) {
                    known.recovers_at = Some(wait.load);
                }
                self.rate_next();
            }
            _ => {
                let at = self.visits.last().map_or(wait.load, |visit| visit.level.load);
                if self.halvings == 0 && self.collapsed(at, true) {
                    return;
                }
                self.halvings += 1;
                match self.halvings > HALVINGS_MAX {
                    true => self.finish(EndedBy::NotRecovered),
                    false => self.wait_drained(wait.load / 2.0),
                }
            }
        }
    }

    /// After the deliberate overload: back to the promise.
    fn recover(&mut self) {
        self.stage = Stage::Recover;
        (self.halvings, self.recovered_s) = (0, None);
        self.wait_met(self.promise.unwrap_or(self.settings.base));
    }

    fn wait_met(&mut self, load: f64) {
        self.order = Order::Wait(Wait { load, seconds_max: RECOVER_MAX_S, until: Until::Met });
    }

    fn recovering(&mut self, wait: &Wait, waited: &Waited) {
        if waited.reached && self.halvings == 0 {
            self.recovered_s = Some(waited.seconds);
            return self.finish(EndedBy::Found);
        }
        let at = self.overloaded_at.unwrap_or(wait.load);
        if self.halvings == 0 && self.collapsed(at, true) {
            return;
        }
        if waited.reached {
            if let Some(known) = &mut self.collapse {
                known.recovers_at = Some(wait.load);
            }
            return self.finish(EndedBy::Found);
        }
        self.halvings += 1;
        match self.halvings > HALVINGS_MAX {
            true => self.finish(EndedBy::NotRecovered),
            false => self.wait_met(round(wait.load / 2.0)),
        }
    }

    fn left_s(&self) -> f64 {
        (self.settings.budget_s - self.spent_s).max(0.0)
    }

    /// Time that the promise and the overload will take.
    fn reserved_s(&self) -> f64 {
        let confirm = f64::from(SETTLE_S + self.settings.confirm_s);
        let beyond = f64::from(SETTLE_S + OVERLOAD_S + RECOVER_MAX_S);
        confirm + if self.settings.overload { beyond } else { 0.0 }
    }

    fn hold(
        &self,
        load: f64,
        (settle_s, seconds): (u32, u32),
        purpose: Purpose,
        why: Why,
    ) -> Order {
        let load = self.settings.max.map_or(load, |max| load.min(max));
        Order::Hold(Hold { load, settle_s, seconds, purpose, why })
    }

    fn finish(&mut self, by: EndedBy) {
        if self.stage != Stage::Finished {
            self.ended_by = Some(by);
            self.stage = Stage::Finished;
            self.order = Order::Finish;
        }
    }

    /// The row of a hold, with what was overdue at its end.
    fn level(&self, hold: &Hold, held: &Held) -> Level {
        let goals = &self.settings.goals;
        let seconds = held.seconds.len() as f64;
        let sum = |of: fn(&Second) -> f64| held.seconds.iter().map(of).sum::<f64>();
        let begun = sum(|second| second.begun as f64);
        let ended = sum(|second| second.ended as f64);
        let unanswered = held.seconds.last().map_or(0, |second| second.unanswered) as f64;
        // As many can be younger than the limit as begin within it; the others are overdue.
        let overdue = |within_s: f64| (unanswered - begun / seconds.max(1.0) * within_s).max(0.0);
        let limits = goals.shares.iter().filter_map(|share| share.within_s);
        let attempts = ended + limits.map(overdue).fold(0.0, f64::max);
        let bad = goals.shares.iter().enumerate().map(|(index, share)| {
            let counted: u64 = held.seconds.iter().map(|second| second.bad[index]).sum();
            counted as f64 + share.within_s.map_or(0.0, overdue)
        });
        let bad: Vec<f64> = bad.collect();
        let strain = goals.strain(attempts, &bad);
        let bad_min = if hold.purpose == Purpose::Confirm { 0.0 } else { BAD_MIN };
        Level {
            load: hold.load,
            purpose: hold.purpose,
            at_s: self.spent_s + held.settled_s,
            seconds,
            offered: begun / seconds.max(1.0),
            served: sum(|second| second.good as f64) / seconds.max(1.0),
            attempts,
            strain,
            response_s: sum(|second| second.response_s) / ended.max(1.0),
            percentiles: held.percentiles,
            in_flight: sum(|second| second.unanswered as f64) / seconds.max(1.0),
            online: held.online,
            was_skipped: held.ended == Ended::Skipped,
            verdict: verdict(held, strain, (&bad, bad_min)),
            bad,
        }
    }
}

fn verdict(
    held: &Held,
    strain: Option<(usize, f64)>,
    (bad, bad_min): (&[f64], f64),
) -> LevelVerdict {
    let seconds = held.seconds.len() as f64;
    let not_met = LevelVerdict::NotMet;
    match (held.ended, held.unmet, strain) {
        (Ended::GeneratorBound(limit), ..) => LevelVerdict::GeneratorBound(limit),
        (_, _, Some((index, strain))) if strain > 1.0 && bad[index] >= bad_min => {
            not_met(FailedBy::Share(index))
        }
        (Ended::GaveUp(why), ..) => not_met(FailedBy::GaveUp(why)),
        (_, Some(index), _) => not_met(FailedBy::Plain(index)),
        (Ended::Skipped, ..) if seconds < SKIPPED_MIN_S => {
            not_met(strain.map_or(FailedBy::GaveUp(GaveUp::Silence), |it| FailedBy::Share(it.0)))
        }
        // Nothing ended at all.
        (_, None, None) => not_met(FailedBy::GaveUp(GaveUp::Silence)),
        _ => LevelVerdict::Met,
    }
}

/// The goodput of the last seconds.
fn tail(seconds: &[Second]) -> f64 {
    let last = &seconds[seconds.len().saturating_sub(3)..];
    last.iter().map(|second| second.good).sum::<u64>() as f64 / last.len().max(1) as f64
}

/// The load rounded down to few digits, at most 0.1 % lower.
fn round(load: f64) -> f64 {
    rounded(load, [0.001, 0.002, 0.005])
}

/// A promise: rounded down, by at most 2 %.
fn rounded_down(load: f64) -> f64 {
    rounded(load, [0.02, 0.05, 0.1])
}

/// Down to a multiple of the step for loads that begin with 1, with 2 to 4, and with 5 to 9.
fn rounded(load: f64, steps: [f64; 3]) -> f64 {
    let ten = 10_f64.powf(load.log10().floor());
    let step = match load / ten {
        first if first < 2.0 => steps[0],
        first if first < 5.0 => steps[1],
        _ => steps[2],
    };
    // 10^n is not exact in binary.
    let steps = (load / ten / step + 1e-9).floor();
    (steps * step * ten * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests;
