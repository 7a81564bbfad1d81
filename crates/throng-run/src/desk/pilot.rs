//! Controls the load of a run by a capacity search: counts each second for the search, and orders
//! the levels that it requests.

use throng_base::units::{format_count, format_duration};
use throng_base::{Said, StepId};
use throng_load::capacity::{
    Ended, Held, Hold, Judge, Order, Outcome, Percentiles, Search, Second, Settings, Share, Status,
    Tally, Waited, Watch, Why,
};
use throng_metrics::capacity::{Capacity, GeneratorLimit, LoadUnit, Purpose};
use throng_metrics::{
    Cause, Comparison, Gauges, Histogram, Interval, Measure, StepInterval, Subject, Threshold,
};
use throng_program::Change;

use crate::SearchOptions;

/// What a search looks for, and which load of the run it varies.
#[derive(Clone)]
pub struct Wanted {
    pub settings: Settings,
    /// In the order of [`Goals::shares`].
    pub shares: Vec<Threshold>,
    /// Thresholds that do not count attempts, in their order.
    pub plain: Vec<Threshold>,
    /// The load that is varied.
    pub load: usize,
    /// The name of that load, if there are several.
    pub varied: Option<String>,
    pub at_least: Option<f64>,
    pub peak: Option<f64>,
    /// The options of the search.
    pub options: SearchOptions,
}

/// A shard was late if the 99th percentile of its lateness was above this.
const LATE_NS: u64 = 10_000_000;
/// A level is generator bound if this part of its seconds was late.
const LATE_PART: f64 = 1.0 / 3.0;
/// Seconds after which users that are still connecting are not waited for.
const SETTLE_MAX: u32 = 120;
/// A level is generator bound for lack of users if the service alone would have this part of the
/// bad attempts that a threshold allows.
const BY_SERVICE: f64 = 0.5;

/// What the desk must do.
pub(crate) enum Deed {
    /// Go to this level.
    Load,
    Say(Said),
    /// The search is over.
    Finish,
}

pub(crate) struct Pilot {
    wanted: Wanted,
    search: Search,
    judge: Option<Judge>,
    watch: Option<Watch>,
    /// The steps that are attempts.
    attempts: Vec<StepId>,
    /// Results since the last second that was counted.
    part: Interval,
    /// The second in which the order was given, and the first one that belongs to it.
    ordered: u64,
    from: u64,
    level: f64,
    /// Seconds of the order so far, including those before the measurement.
    passed: u32,
    settled: Option<u32>,
    sum: Interval,
    seconds: Vec<Second>,
    late: u32,
    skips: bool,
}

impl Pilot {
    pub(crate) fn new(wanted: Wanted, program: &throng_program::Program) -> Pilot {
        let search = Search::new(wanted.settings.clone());
        let steps = (0u16..).zip(&program.steps);
        let attempts = steps.filter(|(_, step)| step.kind.is_attempt());
        Pilot {
            judge: search.judge(),
            watch: None,
            search,
            attempts: attempts.map(|(id, _)| StepId(id)).collect(),
            part: Interval::default(),
            ordered: 0,
            from: 0,
            level: wanted.settings.base,
            wanted,
            passed: 0,
            settled: None,
            sum: Interval::default(),
            seconds: Vec::new(),
            late: 0,
            skips: false,
        }
    }

    /// The load that it varies.
    pub(crate) fn load(&self) -> usize {
        self.wanted.load
    }

    /// What makes the load that of the current level.
    pub(crate) fn change(&self) -> Change {
        match self.unit() {
            LoadUnit::PerS => Change::Rate(self.level),
            LoadUnit::Users => Change::Users(self.level.round() as u64),
        }
    }

    fn unit(&self) -> LoadUnit {
        self.wanted.settings.unit
    }

    /// Part of a second of a load; counted if it varies this load.
    pub(crate) fn add(&mut self, load: usize, interval: &Interval) {
        if load == self.load() {
            self.part.merge_later(interval);
        }
    }

    /// Skips the level, on request of a user.
    pub(crate) fn skip(&mut self) {
        self.skips = true;
    }

    /// Nothing has been counted for the order yet.
    pub(crate) fn is_new(&self) -> bool {
        self.passed == 0
    }

    /// The level holds from this second on.
    pub(crate) fn begins(&mut self, second: u64) {
        self.from = second;
    }

    /// The level cannot be set.
    pub(crate) fn refused(&mut self, limit: GeneratorLimit) -> Vec<Deed> {
        self.held(Ended::GeneratorBound(limit))
    }

    /// The first message of a search.
    pub(crate) fn first(&self) -> Said {
        self.next_said()
    }

    /// A second is complete.
    pub(crate) fn second(&mut self, number: u64, gauges: &Gauges) -> Vec<Deed> {
        let part = std::mem::take(&mut self.part);
        if number < self.from {
            return Vec::new();
        }
        let second = self.count(&part, gauges);
        self.passed += 1;
        match self.search.order() {
            Order::Hold(hold) => self.hold_second(hold, second, (&part, gauges)),
            Order::Wait(_) => self.wait_second(&second, gauges),
            Order::Finish => Vec::new(),
        }
    }

    /// How long it took from the order to the first second that belongs to it.
    fn delayed_s(&self) -> f64 {
        self.from.saturating_sub(self.ordered) as f64
    }

    fn hold_second(
        &mut self,
        hold: Hold,
        second: Second,
        (part, gauges): (&Interval, &Gauges),
    ) -> Vec<Deed> {
        let gave_up = self.judge.as_mut().and_then(|judge| judge.second(&second));
        if self.settled.is_none() && self.is_settled(hold, gauges) {
            self.settled = Some(self.passed.saturating_sub(1));
        }
        // A level that is given up while it settles is judged by what was seen. Users connect while
        // their level settles, so their attempts count from the order on.
        let counts = self.settled.is_some() || gave_up.is_some();
        if counts || self.settling_counts() {
            self.sum.merge_later(part);
        }
        if counts {
            self.late += u32::from(part.generator.lateness.value_at(0.99) > LATE_NS);
        }
        self.seconds.push(second);
        if let Some(gave_up) = gave_up {
            return self.held(Ended::GaveUp(gave_up));
        }
        if std::mem::take(&mut self.skips) {
            return self.held(Ended::Skipped);
        }
        let settled = self.settled.unwrap_or(self.passed);
        match self.passed >= settled + hold.seconds {
            true => self.held(Ended::Full),
            false => Vec::new(),
        }
    }

    /// Users that are added connect while their level settles. If fewer users are to be online,
    /// those that were refused try again meanwhile, so that does not count.
    fn settling_counts(&self) -> bool {
        let Order::Hold(hold) = self.search.order() else { return false };
        self.unit() == LoadUnit::Users && hold.purpose == Purpose::Climb
    }

    fn is_settled(&self, hold: Hold, gauges: &Gauges) -> bool {
        let is_there = match self.unit() {
            LoadUnit::PerS => true,
            LoadUnit::Users => {
                gauges.users_online as f64 >= hold.load.round()
                    || gauges.connections_opening == 0 && self.passed > hold.settle_s
                    || self.passed > SETTLE_MAX
            }
        };
        self.passed > hold.settle_s && is_there
    }

    fn wait_second(&mut self, second: &Second, gauges: &Gauges) -> Vec<Deed> {
        let online = gauges.users_online as f64 / self.level.max(1.0);
        let watch = self.watch.as_mut();
        let reached = watch.is_some_and(|watch| watch.second(second, Some(online)))
            || std::mem::take(&mut self.skips);
        let Order::Wait(wait) = self.search.order() else { return Vec::new() };
        if !reached && self.passed < wait.seconds_max {
            return Vec::new();
        }
        let seconds = f64::from(self.passed);
        let delayed_s = self.delayed_s();
        self.search.handle(Outcome::Waited(Waited { delayed_s, seconds, reached }));
        self.next()
    }

    /// The hold has ended.
    fn held(&mut self, ended: Ended) -> Vec<Deed> {
        let ended = match (self.bound(), ended) {
            (Some(limit), Ended::Full | Ended::GaveUp(_)) => Ended::GeneratorBound(limit),
            (_, ended) => ended,
        };
        let settled = if self.settling_counts() { 0 } else { self.settled.unwrap_or(0) };
        let seconds = self.seconds.split_off((settled as usize).min(self.seconds.len()));
        let duration = std::time::Duration::from_secs(seconds.len() as u64);
        let is_unmet =
            |one: &Threshold| one.figure(&self.sum, duration).is_some_and(|it| !one.holds(it));
        let total = self.total(&self.sum);
        let at = |quantile: f64| total.latency.value_at(quantile) as f64 / 1e9;
        let percentiles = (!total.latency.is_empty()).then(|| Percentiles {
            p50_s: at(0.5),
            p90_s: at(0.9),
            p99_s: at(0.99),
        });
        let held = Held {
            settled_s: self.delayed_s() + f64::from(settled),
            seconds,
            ended,
            unmet: self.wanted.plain.iter().position(is_unmet),
            percentiles,
            online: (self.unit() == LoadUnit::Users).then_some(self.sum.gauges.users_online),
        };
        self.search.handle(Outcome::Held(held));
        self.next()
    }

    /// What kept the generator from the level, if something did.
    fn bound(&self) -> Option<GeneratorLimit> {
        let seconds = f64::from(self.passed.saturating_sub(self.settled.unwrap_or(0)));
        let resources = self.sum.generator.resources.clone().unwrap_or_default();
        if resources.ports_left == Some(0) {
            return Some(GeneratorLimit::Ports);
        }
        if resources.held {
            return Some(GeneratorLimit::Memory);
        }
        if seconds >= 3.0 && f64::from(self.late) > seconds * LATE_PART {
            return Some(GeneratorLimit::Lateness);
        }
        let has_no_users = self.sum.population.unmet > 0 || self.is_bound_by_users();
        has_no_users.then_some(GeneratorLimit::Users)
    }

    /// Starts wait for a free user, and the service alone, from sending to its response, would meet
    /// a threshold that is not met.
    fn is_bound_by_users(&self) -> bool {
        let waits = self.sum.population.waited > 0 && self.unit() == LoadUnit::PerS;
        let is_own = |threshold: &Threshold| {
            let row = self.row(threshold, &self.sum);
            let Some(within) = within_ns(threshold) else { return false };
            let allowed = allowed(threshold) * row.count as f64;
            let by_service = row.failed() as f64 + over(row.service(), within) as f64;
            bad(threshold, &row) as f64 > allowed && by_service <= allowed * BY_SERVICE
        };
        waits && self.wanted.shares.iter().any(is_own)
    }

    fn next(&mut self) -> Vec<Deed> {
        (self.judge, self.watch) = (self.search.judge(), self.search.watch());
        // Until it is set, no second belongs to the order.
        self.ordered = self.from + u64::from(self.passed);
        self.from = self.ordered;
        (self.passed, self.settled, self.late) = (0, None, 0);
        self.sum = Interval::default();
        self.seconds.clear();
        let level = match self.search.order() {
            Order::Hold(hold) => hold.load,
            Order::Wait(wait) => wait.load,
            Order::Finish => return vec![Deed::Finish],
        };
        let said = Deed::Say(self.next_said());
        // An unchanged level needs no order.
        let is_same = (level - self.level).abs() <= 1e-9 * level;
        self.level = level;
        match is_same {
            true => vec![said],
            false => vec![said, Deed::Load],
        }
    }

    fn count(&self, part: &Interval, gauges: &Gauges) -> Second {
        let total = self.total(part);
        let tally = |threshold: &Threshold| {
            let row = self.row(threshold, part);
            Tally { attempts: row.count as f64, bad: bad(threshold, &row) as f64 }
        };
        let latency = &total.latency;
        Second {
            begun: total.begun,
            ended: total.count,
            good: total.ok,
            counted: self.wanted.shares.iter().map(tally).collect(),
            unanswered: gauges.in_flight + gauges.backlog,
            response_s: latency.mean() * latency.count() as f64 / 1e9,
            p50_s: (!latency.is_empty()).then(|| latency.value_at(0.5) as f64 / 1e9),
        }
    }

    fn total(&self, part: &Interval) -> StepInterval {
        part.sum(|step| self.attempts.contains(&step))
    }

    fn row(&self, threshold: &Threshold, part: &Interval) -> StepInterval {
        match &threshold.subject {
            Subject::Steps(steps) => part.sum(|step| steps.contains(&step)),
            _ => StepInterval::default(),
        }
    }

    /// The answer; if the search is not over, what is known so far.
    pub(crate) fn answer(&mut self) -> Capacity {
        if self.search.order() != Order::Finish {
            self.search.end();
        }
        let Wanted { varied, at_least, peak, .. } = self.wanted.clone();
        Capacity { varied, at_least, peak, ..self.search.answer() }
    }

    /// A message with the next level, the reason for it, and the results so far.
    fn next_said(&self) -> Said {
        let Status { order, passed, failed, interval, left_s, .. } = self.search.status();
        let load = |load: f64| self.load_text(load);
        let what = match order {
            Order::Hold(hold) => say!("{}: {}", load(hold.load), why(hold)),
            Order::Wait(wait) => {
                say!("{}: waiting until the service has recovered", load(wait.load))
            }
            Order::Finish => say!("the search is complete"),
        };
        let left = format_duration(std::time::Duration::from_secs(left_s.max(0.0) as u64));
        match (interval, passed, failed) {
            (Some((low, high)), ..) => {
                say!("{what} · 95 %: {} to {} · {left} left", load(low), load(high))
            }
            (_, Some(passed), Some(failed)) => {
                say!("{what} · met at {}, not at {} · {left} left", load(passed), load(failed))
            }
            (_, Some(passed), None) => say!("{what} · met at {} · {left} left", load(passed)),
            _ => say!("{what} · {left} left"),
        }
    }

    fn load_text(&self, load: f64) -> String {
        let count = format_count(load.round() as u64);
        match self.unit() {
            LoadUnit::PerS => format!("{count}/s"),
            LoadUnit::Users => tell!("{count} users"),
        }
    }
}

/// The reason for this level.
fn why(hold: Hold) -> Said {
    match hold.why {
        Why::Base => say!("the first level"),
        Why::Light => say!("the previous level was a light load"),
        Why::Strained => say!("a small step: the previous level was close to a threshold"),
        Why::Between => say!("between the levels that passed and those that failed"),
        Why::Careful => say!("a small step: the service collapsed at a higher load"),
        Why::Expected(_) => say!("to collect samples near the capacity"),
        Why::LowerEnd => say!("to confirm the lower end of the interval"),
        Why::Lower => say!("to confirm a lower level"),
        Why::Max => say!("the highest allowed level"),
        Why::StayedOnline => say!("as many users as stayed online"),
        Why::Overload => say!("a deliberate overload"),
    }
}

fn within_ns(threshold: &Threshold) -> Option<u64> {
    matches!(threshold.measure, Measure::Quantile(_)).then_some(threshold.value as u64)
}

fn allowed(threshold: &Threshold) -> f64 {
    share(threshold).map_or(1.0, |share| share.allowed)
}

/// Number of attempts of the row that violate a threshold: failures, and responses that took
/// longer. A timeout is both, and counts once.
fn bad(threshold: &Threshold, row: &StepInterval) -> u64 {
    let failed = row.failed();
    let Some(within) = within_ns(threshold) else { return failed };
    let times = if threshold.first_byte { &row.first_byte } else { &row.latency };
    let late = over(times, within);
    let timeouts = row.errors.iter().filter(|(cause, _)| *cause == Cause::Timeout);
    let timeouts = timeouts.map(|(_, count)| count).sum::<u64>().min(late);
    (failed + late - timeouts).max(failed).max(late)
}

/// Number of values above this one.
fn over(times: &Histogram, nanos: u64) -> u64 {
    let is_over = |index: usize| {
        let bucket = throng_metrics::histogram::bucket(index);
        bucket.start + (bucket.end - bucket.start) / 2 > nanos
    };
    times.buckets().filter(|(index, _)| is_over(*index)).map(|(_, count)| count).sum()
}

/// The threshold as a share of bad attempts; None if it does not count attempts.
pub(crate) fn share(threshold: &Threshold) -> Option<Share> {
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
    let Subject::Steps(_) = &threshold.subject else { return None };
    let is_below = matches!(threshold.comparison, Less | LessOrEqual);
    let is_above = matches!(threshold.comparison, Greater | GreaterOrEqual);
    let (allowed, within_s) = match threshold.measure {
        Measure::Quantile(quantile) if is_below => (1.0 - quantile, Some(threshold.value / 1e9)),
        Measure::FailedShare if is_below => (threshold.value, None),
        Measure::OkShare if is_above => (1.0 - threshold.value, None),
        _ => return None,
    };
    (allowed > 0.0 && allowed < 1.0).then(|| Share {
        text: threshold.text.clone(),
        allowed,
        within_s,
    })
}
