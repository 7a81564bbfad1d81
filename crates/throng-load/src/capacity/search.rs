//! The state of a search, and the next order.

mod rate;
mod users;

pub(in crate::capacity) use rate::refined_s;

use throng_base::random::Random;
use throng_metrics::capacity::{
    Basis, Capacity, Collapse, EndedBy, FailedBy, Level, LevelVerdict, LoadUnit, Overload, Purpose,
};

use crate::capacity::fit::Curve;
use crate::capacity::hold::{
    COLLAPSED, Ended, Goals, Held, Hold, Order, Outcome, Second, Tally, Until, Wait, Waited, Why,
};
use crate::capacity::judge::{Judge, Watch};
use crate::capacity::knee::knee;

/// The first level is this part of the rate that a scenario or a virtual target has: surely light.
pub const BASE_PART: f64 = 20.0;
/// Before a level counts: what the level before left ends, and queues get their length.
const SETTLE_S: u32 = 2;
/// A drain that takes longer is repeated at half the load, at most `HALVINGS_MAX` times.
const DRAIN_MAX_S: u32 = 60;
const HALVINGS_MAX: u32 = 3;
const OVERLOAD: f64 = 1.3;
const OVERLOAD_S: u32 = 20;
const RECOVER_MAX_S: u32 = 60;
/// Fewer bad attempts fail no level but the promise: one of 90 is no proof of more than 1 %.
const BAD_MIN: f64 = 5.0;
/// A level of users fails if less than this share of them is online at its end.
const ONLINE_MIN: f64 = 0.999;
/// A level that was skipped before this many seconds has no verdict of its own.
const SKIPPED_MIN_S: f64 = 5.0;

/// The settings of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub goals: Goals,
    pub unit: LoadUnit,
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
            LoadUnit::PerS => rate::budget_min_s(),
            LoadUnit::Users => users::budget_min_s(),
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

/// A level, and the counts behind it.
#[derive(Clone, Debug)]
struct Visit {
    level: Level,
    /// Attempts that ended, and those that were overdue at the end.
    attempts: f64,
    /// What each threshold of [`Goals::shares`] counts of them.
    counted: Vec<Tally>,
    /// The threshold with the greatest strain.
    strained_by: Option<usize>,
    seconds: Vec<Second>,
    was_skipped: bool,
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
    overload: Overload,
    collapses: u32,
    curve: Curve,
    /// Position of the refinement in its round, and the number of visits so far.
    turn: usize,
    estimate: Option<Estimate>,
    promise: Option<f64>,
    tries: u32,
    confirmed_s: f64,
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
            overload: Overload::default(),
            collapses: 0,
            curve: Curve::new(base),
            turn: 0,
            estimate: None,
            promise: None,
            tries: 0,
            confirmed_s: 0.0,
            ended_by: None,
        };
        search.order = match search.settings.unit {
            LoadUnit::PerS => {
                search.hold(base, (SETTLE_S, rate::CLIMB_S), Purpose::Climb, Why::Base)
            }
            LoadUnit::Users => {
                search.hold(base, (SETTLE_S, users::HOLD_S), Purpose::Climb, Why::Base)
            }
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

    /// What was found; while the search goes on, what is known so far.
    pub fn answer(&self) -> Capacity {
        let levels: Vec<Level> = self.levels().cloned().collect();
        let border = self.estimate.map(|it| it.border).or(self.passed);
        let fails = levels
            .iter()
            .filter(|level| border.is_none_or(|border| level.load > border))
            .filter(|level| matches!(level.verdict, LevelVerdict::NotMet(_)))
            .min_by(|a, b| a.load.total_cmp(&b.load));
        let (basis, low, high) = self.found();
        let goals = &self.settings.goals;
        let thresholds = goals.shares.iter().map(|share| &share.text).chain(&goals.plain);
        Capacity {
            unit: self.settings.unit,
            varied: None,
            thresholds: thresholds.cloned().collect(),
            carries: self.promise.filter(|_| self.confirmed_s > 0.0),
            low,
            high,
            basis,
            confirmed_s: self.confirmed_s,
            fails_at: fails.map(|level| level.load),
            fails_by: fails.and_then(|level| match &level.verdict {
                LevelVerdict::NotMet(by) => Some(by.clone()),
                LevelVerdict::Met | LevelVerdict::GeneratorBound(_) => None,
            }),
            overload: self.overload,
            trend: self.estimate.and_then(|it| it.trend).map(|trend| trend.exp() - 1.0),
            knee: knee(&levels, self.settings.unit),
            levels,
            ended_by: self.ended_by.clone().unwrap_or(EndedBy::Asked),
            spent_s: self.spent_s,
            budget_s: self.settings.budget_s,
            at_least: None,
            peak: None,
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
        let visit = self.visit(&hold, held);
        self.spent_s = visit.level.at_s + visit.level.seconds;
        let verdict = visit.level.verdict.clone();
        let fell = !visit.was_skipped && self.has_collapsed(&hold, &visit);
        let load = visit.level.load;
        self.visits.push(visit);
        let is_met = verdict == LevelVerdict::Met;
        match verdict {
            LevelVerdict::GeneratorBound(by) => return self.finish(EndedBy::Generator(by)),
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
            (LoadUnit::Users, _) => self.users_held(),
            (LoadUnit::PerS, Purpose::Beyond) => self.recover(),
            (LoadUnit::PerS, _) if is_met => self.rate_next(),
            (LoadUnit::PerS, _) => self.drain(),
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
        match &mut self.overload.collapse {
            Some(known) if known.at == at => known.stays |= stays,
            _ => {
                self.collapses += 1;
                let before = self.overload.collapse.map_or(f64::INFINITY, |it| it.at);
                let at = at.min(before);
                self.overload.collapse = Some(Collapse { at, served, recovers_at: None, stays });
            }
        }
        let again = self.collapses > 1;
        if again {
            self.finish(EndedBy::CollapsedAgain);
        }
        again
    }

    fn has_collapsed(&self, hold: &Hold, visit: &Visit) -> bool {
        let verdict = &visit.level.verdict;
        let is_gone = *verdict == LevelVerdict::NotMet(FailedBy::Gone);
        let highest = self.levels().filter(|level| level.is_met()).map(|level| level.served);
        let highest = highest.fold(0.0, f64::max);
        let failed = matches!(verdict, LevelVerdict::NotMet(_));
        let is_above = self.passed.is_some_and(|passed| hold.load > passed);
        let is_paced = self.settings.unit == LoadUnit::PerS;
        is_gone || is_paced && failed && is_above && tail(&visit.seconds) < COLLAPSED * highest
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
        let p50 = |level: &Level| level.p50_s;
        let met = || self.levels().filter(|level| level.is_met());
        let first = || met().next().and_then(p50);
        let Some(load) = load else { return first() };
        let near = met().filter(|level| level.load >= load && level.load <= 2.0 * load);
        near.last().and_then(p50).or_else(first)
    }

    fn waited(&mut self, wait: Wait, waited: Waited) {
        self.spent_s += waited.delayed_s + waited.seconds;
        match (self.stage, wait.until) {
            (_, Until::Back { .. }) => {
                self.overload.recovered_s = waited.reached.then_some(waited.seconds);
                self.finish(EndedBy::Found);
            }
            (Stage::Recover, _) => self.recovering(&wait, &waited),
            _ if waited.reached => {
                if let Some(known) = &mut self.overload.collapse {
                    known.recovers_at.get_or_insert(wait.load);
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
        (self.halvings, self.overload.recovered_s) = (0, None);
        self.wait_met(self.promise.unwrap_or(self.settings.base));
    }

    fn wait_met(&mut self, load: f64) {
        self.order = Order::Wait(Wait { load, seconds_max: RECOVER_MAX_S, until: Until::Met });
    }

    fn recovering(&mut self, wait: &Wait, waited: &Waited) {
        if waited.reached && self.halvings == 0 {
            self.overload.recovered_s = Some(waited.seconds);
            return self.finish(EndedBy::Found);
        }
        let at = self.overload.at.unwrap_or(wait.load);
        if self.halvings == 0 && self.collapsed(at, true) {
            return;
        }
        if waited.reached {
            if let Some(known) = &mut self.overload.collapse {
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

    /// The row of a hold and its counts, with what was overdue at its end.
    fn visit(&self, hold: &Hold, held: Held) -> Visit {
        let goals = &self.settings.goals;
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
            // Those without a response are as many of each step as those with one.
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
            at_s: self.spent_s + held.settled_s,
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
