//! Phases of a search for a rate: climb, bracket, refine, confirm, beyond.

use throng_metrics::capacity::{EndedBy, Level, Purpose};

use crate::capacity::fit::{Assumed, Curve, Point, curve, resampled, spread};
use crate::capacity::hold::{Goals, Hold, Order, Share, Why};

use super::{Estimate, OVERLOAD, OVERLOAD_S, SETTLE_S, Search, Stage, round, rounded_down};

pub(super) const CLIMB_S: u32 = 10;
const VISIT_S: u32 = 20;
/// The budget has room for at least this many visits.
const VISITS: f64 = 20.0;
/// How many autocorrelation times a visit settles, and how many it counts.
const SETTLE_TIMES: f64 = 3.0;
const TIMES: f64 = 12.0;
/// How long a drain usually takes.
const DRAIN_S: u32 = 5;
const LIGHT: f64 = 2.0;
const STRAINED: f64 = 1.3;
const CAREFUL: f64 = 1.05;
const CAREFUL_REFINE: f64 = 1.02;
/// The ratio of the ends of a bracket at which the refinement begins, and at which a search ends
/// that has no share to fit.
const BRACKET: f64 = 1.10;
const BRACKET_PLAIN: f64 = 1.02;
/// Loads of the first round of the refinement, relative to the middle of the bracket. Later rounds
/// use the strains expected at these loads.
const ROUND: [f64; 4] = [0.93, 0.97, 1.01, 1.05];
const STRAINS: [f64; 4] = [0.5, 0.9, 1.5, 2.5];
/// How far from the border a visit is.
const BELOW: f64 = 0.93;
const ABOVE: f64 = 1.05;
const ROUNDS_MIN: usize = 6;
/// Resampled intervals of few visits are too narrow (simulated). They are widened by this value
/// divided by the effective number of visits with bad attempts.
const WIDEN: f64 = 7.0;
/// Visits with few bad attempts are more frequent than visits with many, so a small number of
/// visits places the border too high rather than too low (simulated). The lower part of an interval
/// is at least this multiple of the upper one.
const MIRROR: f64 = 1.5;
/// No interval is narrower: the counts do not show what changes within the window.
const HALF_MIN: f64 = 0.01;
/// A trend counts if it is at least this multiple of its own standard deviation.
const TREND_SURE: f64 = 3.0;
/// After a collapse, the highest strain that is tried.
const STRAIN_CAREFUL: f64 = 2.0;
const ABOVE_CAREFUL: f64 = 1.01;
const HALF_ENOUGH: f64 = 0.03;
const LOWER: f64 = 0.97;
const TRIES_MAX: u32 = 3;

pub(super) fn budget_min_s() -> f64 {
    let (climb, bracket) = (SETTLE_S + CLIMB_S, SETTLE_S + VISIT_S);
    f64::from(6 * climb + 4 * bracket + 2 * DRAIN_S)
}

impl Search {
    /// The next order after a level that was met, or after a drain.
    pub(super) fn rate_next(&mut self) {
        match self.stage {
            Stage::Climb => self.climb(),
            Stage::Bracket => self.bracket(),
            Stage::Refine => self.refine(),
            Stage::Confirm => self.confirm(),
            Stage::Beyond | Stage::Recover | Stage::Finished => self.finish(EndedBy::Found),
        }
    }

    /// Orders a hold if the unreserved budget allows it.
    fn order_hold(&mut self, load: f64, (settle, seconds): (u32, u32), purpose: Purpose, why: Why) {
        let takes_s = f64::from(settle + seconds);
        if self.left_s() < takes_s {
            return self.finish(EndedBy::Budget);
        }
        self.order = self.hold(round(load), (settle, seconds), purpose, why);
    }

    fn climb(&mut self) {
        let (Some(last), None) = (self.levels.passed, self.levels.failed) else {
            self.stage = Stage::Bracket;
            return self.bracket();
        };
        if self.settings.max.is_some_and(|max| last >= max) {
            return self.promise(last, Why::Max);
        }
        let (factor, why) =
            if self.levels.is_strained() { (STRAINED, Why::Strained) } else { (LIGHT, Why::Light) };
        self.order_hold(last * factor, (SETTLE_S, CLIMB_S), Purpose::Climb, why);
    }

    fn bracket(&mut self) {
        let (Some(passed), Some(failed)) = (self.levels.carried(), self.levels.failed) else {
            return self.finish(EndedBy::Budget);
        };
        let points = self.levels.points(self.settings.goals.shares.len(), None, 0.0);
        let can_fit = points.iter().flatten().any(|point| point.bad > 0.0);
        let enough = if can_fit { BRACKET } else { BRACKET_PLAIN };
        if failed / passed <= enough && can_fit {
            self.stage = Stage::Refine;
            self.curve = Curve::new((passed * failed).sqrt());
            return self.refine();
        }
        if failed / passed <= enough {
            return self.promise(passed, Why::LowerEnd);
        }
        let middle = (passed * failed).sqrt();
        // After a collapse, the next load is only slightly above one that was survived.
        let careful = self.overload.collapse.map(|it| (passed * CAREFUL).min(it.at * 0.98));
        match careful {
            Some(max) if max < middle => {
                self.order_hold(max, (SETTLE_S, VISIT_S), Purpose::Bracket, Why::Careful);
            }
            _ => self.order_hold(middle, (SETTLE_S, VISIT_S), Purpose::Bracket, Why::Between),
        }
    }

    fn refine(&mut self) {
        let visits = self.levels.all().filter(|it| it.purpose == Purpose::Refine).count();
        if visits > 0 {
            self.curve = self.fitted();
        }
        let (settle, seconds) = self.visit_s();
        let takes_s = f64::from(settle + seconds);
        let is_last = self.left_s() < self.reserved_s() + takes_s;
        let is_round = visits >= ROUNDS_MIN * ROUND.len() && self.turn.is_multiple_of(ROUND.len());
        if is_last || is_round {
            self.estimate = self.interval();
            let enough = |it: &Estimate| it.high / it.low <= (1.0 + HALF_ENOUGH).powi(2);
            if is_last || self.estimate.as_ref().is_some_and(enough) {
                return self.refined();
            }
        }
        let (load, why) = self.next_visit(visits);
        self.order_hold(load, (settle, seconds), Purpose::Refine, why);
    }

    /// The next load of the round. The round restarts if a load above a failed one was already
    /// tried and no lower one has passed since.
    fn next_visit(&mut self, visits: usize) -> (f64, Why) {
        let curve = self.curve.later((self.spent_s - self.refined_s()) / 60.0);
        let border = curve.border.exp();
        let load = |turn: usize| {
            let factor = match visits < ROUND.len() {
                true => ROUND[turn],
                false => curve.load_at(STRAINS[turn]) / border,
            };
            let next = border * factor.clamp(BELOW, ABOVE);
            let careful = curve.load_at(STRAIN_CAREFUL).min(border * ABOVE_CAREFUL);
            if self.overload.collapse.is_some() { next.min(careful) } else { next }
        };
        let turn = self.turn % ROUND.len();
        let turn = if self.levels.is_barred(load(turn)) { 0 } else { turn };
        let mut next = load(turn);
        if let Some(floor) = self.levels.floor.filter(|_| self.levels.is_barred(next)) {
            next = floor * BELOW;
        }
        if self.overload.collapse.is_some() {
            next = next.min(self.survived() * CAREFUL_REFINE);
        }
        self.turn = turn + 1;
        (next, Why::Expected(curve.strain_at(next)))
    }

    /// The middle of the refinement in seconds since the start of the search.
    fn refined_s(&self) -> f64 {
        refined_s(self.levels.all()).unwrap_or(self.spent_s)
    }

    /// Counts of the visits near the border, for each threshold.
    fn points(&self) -> Vec<Vec<Point>> {
        self.levels.points(self.settings.goals.shares.len(), Some(self.curve), self.refined_s())
    }

    /// The highest load that did not make the service collapse.
    fn survived(&self) -> f64 {
        let below = |load: &f64| self.overload.collapse.is_none_or(|collapse| *load < collapse.at);
        self.levels.all().map(|level| level.load).filter(below).fold(0.0, f64::max)
    }

    fn fitted(&self) -> Curve {
        let points = self.points();
        let all: Vec<usize> = (0..points.first().map_or(0, Vec::len)).collect();
        lowest_curve(&self.settings.goals, &points, &all, Assumed::of(self.curve)).unwrap_or_else(
            || {
                // No attempt was bad, so the border is above all visits.
                let highest = points.iter().flatten().map(|point| point.at);
                let border = highest.fold(f64::NEG_INFINITY, f64::max) + ABOVE.ln();
                Curve { border: border.max(self.curve.border), ..self.curve }
            },
        )
    }

    fn interval(&mut self) -> Option<Estimate> {
        let points = self.points();
        let visits = points.first().map_or(0, Vec::len);
        if visits < ROUND.len() {
            return None;
        }
        let mut random = self.random.clone();
        let ends = points.iter().flatten().map(|point| point.at);
        let highest = ends.clone().fold(f64::NEG_INFINITY, f64::max);
        let lowest = ends.fold(f64::INFINITY, f64::min);
        let curves = resampled(visits, &mut random, |drawn| {
            lowest_curve(&self.settings.goals, &points, drawn, Assumed::again(self.curve))
                .unwrap_or(Curve { border: highest, ..self.curve })
        });
        self.random = random;
        let shares = points.iter().zip(&self.settings.goals.shares);
        let spread = shares.map(|(points, share)| spread(points, share.allowed, self.curve));
        let widen = 1.0 + WIDEN / spread.fold(1.0, f64::max);
        let border = self.curve.border;
        let mut borders: Vec<f64> = curves.iter().map(|curve| curve.border).collect();
        borders.sort_by(f64::total_cmp);
        let at = |part: f64| borders[((borders.len() - 1) as f64 * part).round() as usize];
        let up = at(0.975) - border;
        let down = (border - at(0.025)).max(up * MIRROR);
        let low = (-down * widen).min(-HALF_MIN);
        let high = (up * widen).max(HALF_MIN);
        (border > lowest && border < highest).then(|| Estimate {
            low: (border + low).exp(),
            border: border.exp(),
            high: (border + high).exp(),
            trend: sure_trend(self.curve.trend, &curves),
        })
    }

    fn refined(&mut self) {
        match self.estimate {
            // If the service becomes slower, the promise applies to its current state.
            Some(Estimate { low, trend, .. }) => {
                let minutes = (self.spent_s - self.refined_s()) / 60.0;
                let moved = (trend.unwrap_or(0.0).min(0.0) * minutes).exp();
                self.promise(rounded_down(low * moved), Why::LowerEnd);
            }
            // Too few visits for an interval; a load below the bracket can still be confirmed.
            None => match self.levels.carried() {
                Some(carried) => self.promise(rounded_down(carried * LOWER), Why::Lower),
                None => self.finish(EndedBy::Budget),
            },
        }
    }

    /// How long a visit settles and counts, based on the time after which the service no longer
    /// depends on its past.
    fn visit_s(&self) -> (u32, u32) {
        let time_s = self.levels.forgets_s(self.curve);
        let settle = (SETTLE_TIMES * time_s).ceil() as u32;
        let counted = (TIMES * time_s).ceil() as u32;
        // Many short visits give a better interval than a few long ones.
        let each_s = ((self.settings.budget_s - self.reserved_s()) / VISITS).max(0.0) as u32;
        let settle = settle.min(each_s / 4).max(SETTLE_S);
        (settle, counted.min(each_s.saturating_sub(settle)).max(VISIT_S))
    }

    fn promise(&mut self, load: f64, why: Why) {
        // The overload that follows is the first load above a failed one.
        let barred = self.levels.floor.filter(|floor| load > *floor);
        let load = barred.map_or(load, |floor| rounded_down(floor * LOWER));
        self.stage = Stage::Confirm;
        self.promise = Some(load);
        self.tries += 1;
        // With fewer attempts, a met threshold proves nothing.
        let seconds = (self.settings.goals.attempts_min() / load).ceil() as u32;
        let seconds = seconds.max(self.settings.confirm_s);
        self.order_hold(load, (SETTLE_S, seconds), Purpose::Confirm, why);
    }

    fn confirm(&mut self) {
        let last = self.levels.all().next_back().filter(|level| level.purpose == Purpose::Confirm);
        let Some(last) = last else { return };
        if last.is_met() {
            self.confirmed_s = last.seconds;
            return self.beyond();
        }
        if self.settings.max.is_some_and(|max| last.load >= max) && self.estimate.is_none() {
            self.stage = Stage::Bracket;
            return self.bracket();
        }
        match self.tries > TRIES_MAX {
            true => self.finish(EndedBy::NotConfirmed),
            false => self.promise(rounded_down(last.load * LOWER), Why::Lower),
        }
    }

    fn beyond(&mut self) {
        let at_max = self.settings.max.is_some_and(|max| self.promise.is_some_and(|it| it >= max));
        if at_max && self.estimate.is_none() {
            return self.finish(EndedBy::Max);
        }
        let highest = self.estimate.map(|it| it.high).or(self.levels.failed);
        let load = highest.map(|highest| round(highest * OVERLOAD));
        let load = load.map(|load| self.settings.max.map_or(load, |max| load.min(max)));
        let Some(load) =
            load.filter(|_| self.settings.overload && self.overload.collapse.is_none())
        else {
            return self.finish(EndedBy::Found);
        };
        self.stage = Stage::Beyond;
        self.overload.at = Some(load);
        let (settle_s, seconds) = (0, OVERLOAD_S);
        let hold = Hold { load, settle_s, seconds, purpose: Purpose::Beyond, why: Why::Overload };
        self.order = Order::Hold(hold);
    }
}

/// The middle of the refinement of these levels in seconds since the start of the search; `None` if
/// it had no visit.
pub(in crate::capacity) fn refined_s<'a>(levels: impl Iterator<Item = &'a Level>) -> Option<f64> {
    let refined = levels.filter(|level| level.purpose == Purpose::Refine);
    let (sum, count) =
        refined.fold((0.0, 0.0), |(sum, count), level| (sum + level.middle_s(), count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// The curve of the threshold with the lowest border.
fn lowest_curve(
    goals: &Goals,
    points: &[Vec<Point>],
    drawn: &[usize],
    assumed: Assumed,
) -> Option<Curve> {
    let of_share = |(points, share): (&Vec<Point>, &Share)| {
        let drawn: Vec<Point> = drawn.iter().map(|index| points[*index]).collect();
        curve(&drawn, share.allowed, assumed)
    };
    let curves = points.iter().zip(&goals.shares).filter_map(of_share);
    curves.min_by(|a, b| a.border.total_cmp(&b.border))
}

/// The trend, if the curves of resampled visits agree on it.
fn sure_trend(trend: f64, curves: &[Curve]) -> Option<f64> {
    let count = curves.len() as f64;
    let mean = curves.iter().map(|curve| curve.trend).sum::<f64>() / count;
    let squares = curves.iter().map(|curve| (curve.trend - mean).powi(2)).sum::<f64>();
    (trend.abs() > TREND_SURE * (squares / count).sqrt()).then_some(trend)
}
