//! The state of a search, and the next order.

mod levels;
mod rate;
mod users;

pub(in crate::capacity) use rate::refined_s;

use throng_base::random::Random;
use throng_metrics::capacity::{
    Basis, Capacity, Collapse, EndedBy, Level, LevelVerdict, LoadUnit, Overload, Purpose,
};

use crate::capacity::fit::Curve;
use crate::capacity::hold::{Goals, Held, Hold, Order, Outcome, Until, Wait, Waited, Why};
use crate::capacity::judge::{Judge, Watch};
use crate::capacity::knee::knee;

use levels::{Levels, Visit};

/// The first level is the rate of the scenario or virtual target divided by this: certainly light.
pub const BASE_PART: f64 = 20.0;
/// Settle time before a level counts: attempts of the previous level end, and queues fill.
const SETTLE_S: u32 = 2;
/// A drain that takes longer is repeated at half the load, at most `HALVINGS_MAX` times.
const DRAIN_MAX_S: u32 = 60;
const HALVINGS_MAX: u32 = 3;
const OVERLOAD: f64 = 1.3;
const OVERLOAD_S: u32 = 20;
const RECOVER_MAX_S: u32 = 60;
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
    /// Seed of the resampling.
    pub seed: u64,
}

impl Settings {
    /// With a smaller budget, in seconds, no bracket can be expected: six levels of the climb, four
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
    levels: Levels,
    spent_s: f64,
    /// How often the current drain was repeated at half its load.
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
            levels: Levels::default(),
            spent_s: 0.0,
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

    /// The current order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Watches the ordered hold; None if there is none.
    pub fn judge(&self) -> Option<Judge> {
        let Order::Hold(hold) = self.order else { return None };
        Some(Judge::new(&self.settings.goals, hold, self.levels.usual_s(None).unwrap_or(0.0)))
    }

    /// Watches the ordered wait; None if there is none.
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
            passed: self.levels.passed,
            failed: self.levels.failed,
            interval: self.estimate.map(|it| (it.low, it.high)),
            spent_s: self.spent_s,
            left_s: self.left_s(),
        }
    }

    /// The result, or what is known so far.
    pub fn answer(&self) -> Capacity {
        let levels: Vec<Level> = self.levels.all().cloned().collect();
        let border = self.estimate.map(|it| it.border).or(self.levels.passed);
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
        match (self.estimate, self.levels.carried(), self.levels.failed) {
            (Some(it), ..) if !is_bound => (Basis::Interval, Some(it.low), Some(it.high)),
            (_, None, failed) => (Basis::Nothing, None, failed),
            (_, Some(passed), Some(failed)) if !is_bound => {
                (Basis::Bracket, Some(passed), Some(failed))
            }
            (_, Some(passed), _) => (Basis::AtLeast, Some(passed), None),
        }
    }

    fn held(&mut self, hold: Hold, held: Held) {
        let visit = Visit::new(&self.settings.goals, self.spent_s, &hold, held);
        self.spent_s = visit.level.at_s + visit.level.seconds;
        let (load, verdict) = (visit.level.load, visit.level.verdict.clone());
        self.levels.add(visit);
        let is_met = verdict == LevelVerdict::Met;
        match verdict {
            LevelVerdict::GeneratorBound(by) => return self.finish(EndedBy::Generator(by)),
            LevelVerdict::NotMet(by) if self.levels.all().count() == 1 => {
                return self.finish(EndedBy::BaseFails(by));
            }
            LevelVerdict::Met | LevelVerdict::NotMet(_) => {}
        }
        // Users may only stay connected, so goodput says nothing about their number.
        let fell = self.settings.unit == LoadUnit::PerS && self.levels.has_collapsed();
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

    /// Records a collapse. Returns true if it is the second one, which ends the search.
    fn collapsed(&mut self, at: f64, stays: bool) -> bool {
        let served = self.levels.last().map_or(0.0, Visit::tail);
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

    /// After a failure, applies a light load until the service has recovered.
    fn drain(&mut self) {
        self.halvings = 0;
        let carried = self.levels.carried().unwrap_or(self.settings.base);
        self.wait_drained(carried / 2.0);
    }

    fn wait_drained(&mut self, load: f64) {
        let until = Until::Drained { p50_s: self.levels.usual_s(Some(load)) };
        self.order = Order::Wait(Wait { load: round(load), seconds_max: DRAIN_MAX_S, until });
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
                let at = self.levels.last().map_or(wait.load, |visit| visit.level.load);
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

    /// After the deliberate overload, returns to the promised load.
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
}

/// The load rounded down to few digits, at most 0.1 % lower.
fn round(load: f64) -> f64 {
    rounded(load, [0.001, 0.002, 0.005])
}

/// A promise: rounded down, by at most 2 %.
fn rounded_down(load: f64) -> f64 {
    rounded(load, [0.02, 0.05, 0.1])
}

/// Rounds down to a multiple of the step for loads whose first digit is 1, 2 to 4, or 5 to 9.
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
