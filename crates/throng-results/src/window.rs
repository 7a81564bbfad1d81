//! Sliding windows of seconds, during a run and from its directory: thresholds over every stretch,
//! and rules that end a run.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Time;
use throng_metrics::{AbortRule, Around, Gauges, Interval, Measure, Threshold, Verdict};

use crate::directory::{PhaseInfo, RunInfo};
use crate::event::Event;
use crate::monitors::watch::Watch;
use crate::monitors::{MonitorRow, Readings};

/// A threshold over a sliding window. Lines must be in the order of their seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Window {
    threshold: Threshold,
    seconds: u64,
    /// The seconds of the window except the current one, as two stacks, so that each second is
    /// added twice, regardless of the length: older seconds have the sums up to the newest of them,
    /// and newer ones are stored individually and as a sum.
    older: Vec<(u64, Interval)>,
    newer: VecDeque<(u64, Interval)>,
    newer_sum: Interval,
    current: Option<(u64, Interval)>,
    /// The first full second: a later phase starts within a second.
    first: Option<u64>,
}

impl Window {
    pub(crate) fn new(threshold: &Threshold, seconds: u64) -> Window {
        Window {
            threshold: threshold.clone(),
            seconds: seconds.max(1),
            older: Vec::new(),
            newer: VecDeque::new(),
            newer_sum: Interval::default(),
            current: None,
            first: None,
        }
    }

    /// Adds a line of a phase that counts, with the current gauges. If this completes a second,
    /// returns it with the value of the window that ends there, if there is one.
    pub(crate) fn add(&mut self, interval: &Interval, gauges: &Gauges) -> Option<(u64, f64)> {
        let mut part = self.threshold.part(interval);
        part.gauges = gauges.clone();
        let second = interval.second;
        self.first.get_or_insert(if second == 0 { 0 } else { second + 1 });
        match &mut self.current {
            Some((second, sum)) if *second >= interval.second => {
                sum.merge_later(&part);
                None
            }
            _ => {
                let told = self.end_second();
                self.current = Some((interval.second, part));
                told
            }
        }
    }

    /// Ends the current second.
    pub(crate) fn end_second(&mut self) -> Option<(u64, f64)> {
        let (second, sum) = self.current.take()?;
        self.newer_sum.merge_later(&sum);
        self.newer.push_back((second, sum));
        self.forget(second);
        let is_full = second + 1 >= self.first? + self.seconds;
        let mut stretch = self.older.last().map(|(_, sum)| sum.clone()).unwrap_or_default();
        if !self.newer.is_empty() {
            stretch.merge_later(&self.newer_sum);
        }
        let time = Duration::from_secs(self.seconds);
        let figure = self.threshold.figure(&stretch, time).filter(|_| is_full)?;
        Some((second, figure))
    }

    /// Drops seconds before the window that ends with `last`.
    fn forget(&mut self, last: u64) {
        let is_old = |second: u64| second + self.seconds <= last;
        loop {
            while self.older.last().is_some_and(|(second, _)| is_old(*second)) {
                self.older.pop();
            }
            if !self.older.is_empty() || self.newer.front().is_none_or(|(it, _)| !is_old(*it)) {
                return;
            }
            let mut later: Option<Interval> = None;
            for (second, mut own) in self.newer.drain(..).rev() {
                later.iter().for_each(|later| own.merge_later(later));
                self.older.push((second, own.clone()));
                later = Some(own);
            }
            self.newer_sum = Interval::default();
        }
    }
}

/// Whether a threshold was met in every window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stretches {
    window: Window,
    /// By phase: whether it counts.
    phases: Vec<bool>,
    worst: Option<f64>,
}

impl Stretches {
    /// `None` unless the threshold is over a window.
    pub(crate) fn of(threshold: &Threshold, info: &RunInfo) -> Option<Stretches> {
        let seconds = threshold.over_s;
        (seconds > 0).then(|| Stretches {
            window: Window::new(threshold, seconds),
            phases: phases(threshold, info),
            worst: None,
        })
    }

    pub(crate) fn add(&mut self, interval: &Interval, gauges: &Gauges) {
        if counts(&self.phases, interval) {
            let told = self.window.add(interval, gauges);
            self.take(told);
        }
    }

    fn take(&mut self, told: Option<(u64, f64)>) {
        if let Some((_, figure)) = told {
            let threshold = &self.window.threshold;
            let worst = self.worst.map_or(figure, |worst| threshold.worse(worst, figure));
            self.worst = Some(worst);
        }
    }

    pub(crate) fn verdict(&mut self) -> Verdict {
        // The last second may be incomplete, which lowers a rate.
        if self.window.threshold.measure != Measure::Rate {
            let told = self.window.end_second();
            self.take(told);
        }
        self.window.threshold.judge_figure(self.worst)
    }
}

/// Whether a threshold was met in the seconds after each mark of a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Behind {
    threshold: Threshold,
    around: Around,
    phases: Vec<bool>,
    moments: Vec<Moment>,
}

/// The seconds after a mark, starting with its own, so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Moment {
    from: u64,
    until: u64,
    sum: Interval,
}

impl Behind {
    /// `None` unless the threshold is relative to marks.
    pub(crate) fn of(threshold: &Threshold, info: &RunInfo) -> Option<Behind> {
        let around = threshold.around.clone()?;
        let phases = phases(threshold, info);
        Some(Behind { threshold: threshold.clone(), around, phases, moments: Vec::new() })
    }

    /// A mark with this name was set. It may be passed twice.
    pub(crate) fn marked(&mut self, at_ns: u64, name: &str) {
        let from = at_ns / 1_000_000_000;
        let is_new = self.moments.iter().all(|moment| moment.from != from);
        if name == self.around.mark && is_new && self.moments.len() < MOMENTS_MAX {
            self.moments.push(Moment { from, until: from, sum: Interval::default() });
        }
    }

    pub(crate) fn add(&mut self, interval: &Interval, gauges: &Gauges) {
        if !counts(&self.phases, interval) {
            return;
        }
        let second = interval.second;
        let seconds = self.around.seconds;
        let is_behind =
            |it: &&mut Moment| it.from <= second && second < it.from.saturating_add(seconds);
        for moment in self.moments.iter_mut().filter(is_behind) {
            let mut part = self.threshold.part(interval);
            part.gauges = gauges.clone();
            moment.sum.merge_later(&part);
            moment.until = moment.until.max(second + 1);
        }
    }

    /// The worst of all marks.
    pub(crate) fn verdict(&self) -> Verdict {
        let judge = |it: &Moment| {
            let time = Duration::from_secs(it.until - it.from);
            if time.is_zero() { Verdict::Unknown } else { self.threshold.judge(&it.sum, time) }
        };
        let rank = |verdict: &Verdict| match verdict {
            Verdict::NotMet(_) => 0,
            Verdict::Unknown => 1,
            Verdict::Indeterminate(_) => 2,
            Verdict::Met(_) => 3,
        };
        let worse = |one: Verdict, other: Verdict| match (one, other) {
            (Verdict::NotMet(a), Verdict::NotMet(b)) => Verdict::NotMet(self.threshold.worse(a, b)),
            (Verdict::Met(a), Verdict::Met(b)) => Verdict::Met(self.threshold.worse(a, b)),
            _ if rank(&other) < rank(&one) => other,
            _ => one,
        };
        self.moments.iter().map(judge).reduce(worse).unwrap_or(Verdict::Unknown)
    }
}

/// Maximum number of marks per name; further ones are ignored.
const MOMENTS_MAX: usize = 100;

/// By phase: whether it counts for a threshold.
pub(crate) fn phases(threshold: &Threshold, info: &RunInfo) -> Vec<bool> {
    let counts = |(phase, own): (u16, &PhaseInfo)| match (threshold.phase, threshold.load) {
        (Some(wanted), _) => wanted == phase,
        (None, Some(load)) => own.measured && own.load == load,
        (None, None) => own.measured,
    };
    (0..).zip(&info.tables.phases).map(counts).collect()
}

/// A run directory can contain unknown phases.
fn counts(phases: &[bool], interval: &Interval) -> bool {
    phases.get(usize::from(interval.phase)).copied().unwrap_or(phases.is_empty())
}

/// The default window of a condition.
pub const ABORT_OVER_S: u64 = 10;

/// Evaluates the rules that end a run.
#[derive(Clone, Debug, Default)]
pub struct AbortRules {
    all: Vec<Rule>,
    /// Names of monitors, by index.
    sources: Vec<String>,
    readings: Readings,
}

#[derive(Clone, Debug)]
struct Rule {
    rule: AbortRule,
    window: Window,
    /// For a condition on monitors, which do not appear in lines.
    watch: Option<Watch>,
    /// By phase: whether it counts.
    phases: Vec<bool>,
    /// Since which second the condition has been true.
    since: Option<u64>,
}

/// The state of a rule at the end of a second.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// The condition is true. The run ends after `left` unless the condition becomes false.
    Warned { rule: AbortRule, figure: f64, left: Duration },
    /// The condition is no longer true.
    Cleared { rule: AbortRule },
    /// The run ends now.
    Aborted { rule: AbortRule, figure: f64 },
}

impl AbortRules {
    pub fn new(rules: &[AbortRule], info: &RunInfo) -> AbortRules {
        let rule = |rule: &AbortRule| {
            let seconds = match rule.condition.over_s {
                0 => ABORT_OVER_S,
                seconds => seconds,
            };
            let window = Window::new(&rule.condition, seconds);
            let phases = phases(&rule.condition, info);
            let watch = Watch::new(&rule.condition);
            Rule { rule: rule.clone(), window, watch, phases, since: None }
        };
        let sources = info.tables.monitors.iter().map(|monitor| monitor.name.clone()).collect();
        AbortRules { all: rules.iter().map(rule).collect(), sources, ..AbortRules::default() }
    }

    /// Adds a reading of a monitor.
    pub fn read(&mut self, event: &Event) -> Vec<Ruling> {
        let (source, at_ns, is_read) = match event {
            Event::Series { monitor, at_ns, .. } | Event::Scrape { monitor, at_ns, .. } => {
                (*monitor, *at_ns, true)
            }
            Event::ScrapeFailed { monitor, at_ns, .. } => (*monitor, *at_ns, false),
            _ => return Vec::new(),
        };
        if self.all.iter().all(|rule| rule.watch.is_none()) {
            return Vec::new();
        }
        let figures = self.readings.take(event);
        if matches!(event, Event::Series { .. }) {
            return Vec::new();
        }
        let name = self.sources.get(usize::from(source)).map_or("", String::as_str);
        let row = is_read.then(|| self.readings.row(name, source, &figures));
        let second = Time(at_ns).second();
        self.all.iter_mut().filter_map(|rule| rule.read(source, row.as_ref(), second)).collect()
    }

    /// Adds a line of the run, with the current gauges.
    pub fn add(&mut self, interval: &Interval, gauges: &Gauges) -> Vec<Ruling> {
        let mut rulings = Vec::new();
        for rule in &mut self.all {
            if rule.watch.is_none()
                && counts(&rule.phases, interval)
                && let Some((second, figure)) = rule.window.add(interval, gauges)
            {
                rulings.extend(rule.judge(second, figure));
            }
        }
        rulings
    }
}

impl Rule {
    fn read(&mut self, source: u16, row: Option<&MonitorRow>, second: u64) -> Option<Ruling> {
        let watch = self.watch.as_mut()?;
        watch.see(source, row, second);
        match watch.figure(&self.rule.condition) {
            Some(figure) => self.judge(second, figure),
            None => self.since.take().map(|_| Ruling::Cleared { rule: self.rule.clone() }),
        }
    }

    fn judge(&mut self, second: u64, figure: f64) -> Option<Ruling> {
        let rule = self.rule.clone();
        if !rule.condition.holds(figure) {
            return self.since.take().map(|_| Ruling::Cleared { rule });
        }
        let is_new = self.since.is_none();
        let held = Duration::from_secs(second - *self.since.get_or_insert(second));
        match rule.after.checked_sub(held).filter(|left| !left.is_zero()) {
            None => Some(Ruling::Aborted { rule, figure }),
            Some(left) if is_new => Some(Ruling::Warned { rule, figure, left }),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_base::{Random, StepId};
    use throng_metrics::{Comparison, HostFigure, Monitored, StepInterval, Subject};

    use super::*;

    fn threshold(comparison: Comparison, value: f64, over_s: u64) -> Threshold {
        let subject = Subject::Steps(vec![StepId(0)]);
        Threshold {
            over_s,
            ..Threshold::new("errors", subject, Measure::FailedShare, comparison, value)
        }
    }

    fn line(second: u64, count: u64, failed: u64) -> Interval {
        let row = StepInterval { step: 0, count, ok: count - failed, ..StepInterval::default() };
        let other = StepInterval { step: 1, count: 1000, ..StepInterval::default() };
        Interval { second, steps: vec![row, other], ..Interval::default() }
    }

    #[test]
    fn a_rule_applies_if_one_source_exceeds_it() {
        let monitored =
            Monitored { source: String::new(), figure: HostFigure::Series("load".into()) };
        let condition = Threshold::new(
            "host load > 4 for 2s",
            Subject::Monitored(monitored),
            Measure::Mean,
            Comparison::Greater,
            4.0,
        );
        let rule = AbortRule { condition, after: Duration::from_secs(2) };
        let mut rules = AbortRules::new(std::slice::from_ref(&rule), &RunInfo::default());
        for monitor in [0, 1] {
            let (name, counter) = ("load".to_string(), false);
            let series = Event::Series { at_ns: 0, monitor, number: 0, name, counter };
            assert_eq!(rules.read(&series), []);
        }
        let mut read = |second: u64, monitor, value: f64| {
            let values = vec![(0, value)];
            let at_ns = second * 1_000_000_000;
            rules.read(&Event::Scrape { at_ns, monitor, values, left_out: 0 })
        };
        assert_eq!(read(1, 0, 1.0), []);
        let left = Duration::from_secs(2);
        assert_eq!(read(1, 1, 5.0), [Ruling::Warned { rule: rule.clone(), figure: 5.0, left }]);
        assert_eq!(read(2, 0, 1.0), [], "the other one still is");
        assert_eq!(read(3, 1, 6.0), [Ruling::Aborted { rule: rule.clone(), figure: 6.0 }]);
        assert_eq!(read(4, 1, 3.0), [Ruling::Cleared { rule: rule.clone() }]);
        read(5, 1, 9.0);
        let detail = throng_base::Said::default();
        let failed = Event::ScrapeFailed { at_ns: 6_000_000_000, monitor: 1, detail };
        assert_eq!(rules.read(&failed), [Ruling::Cleared { rule }], "nobody knows");
    }

    #[test]
    fn a_window_is_the_sum_of_its_seconds() {
        let mut random = Random::new(8);
        for over in [1, 2, 3, 7, 30] {
            let mut window = Window::new(&threshold(Comparison::Less, 0.5, over), over);
            let mut all: Vec<(u64, u64, u64)> = Vec::new();
            let mut second = 5;
            for _ in 0..300 {
                // In some seconds, nothing happens.
                second += 1 + random.below(3) / 2;
                let count = 1 + random.below(9);
                let failed = random.below(count + 1);
                let gauges = Gauges { users_online: second, ..Gauges::default() };
                let told = window.add(&line(second, count, failed), &gauges);
                if let Some((last, figure)) = told {
                    let within = all.iter().filter(|(it, ..)| *it + over > last && *it <= last);
                    let (count, failed) =
                        within.fold((0, 0), |(count, failed), it| (count + it.1, failed + it.2));
                    assert_eq!(figure, failed as f64 / count as f64, "{over} until {last}");
                }
                let is_full = all.last().is_some_and(|it| it.0 >= all[0].0 + over);
                assert_eq!(told.is_some(), is_full);
                all.push((second, count, failed));
            }
        }
    }

    #[test]
    fn gauges_of_a_window_are_those_of_its_end() {
        let online = Threshold {
            subject: Subject::UsersOnline,
            measure: Measure::Count,
            ..threshold(Comparison::GreaterOrEqual, 5.0, 3)
        };
        let mut window = Window::new(&online, 3);
        for second in 0..40 {
            let gauges = Gauges { users_online: second, ..Gauges::default() };
            let told = window.add(&line(second, 1, 0), &gauges);
            let wanted = (second > 2).then(|| (second - 1, (second - 1) as f64));
            assert_eq!(told, wanted);
        }
    }

    #[test]
    fn a_threshold_fails_if_one_window_exceeds_it() {
        let info = RunInfo::default();
        let of = |over| Stretches::of(&threshold(Comparison::Less, 0.2, over), &info);
        let mut stretches = of(3).expect("one");
        let gauges = Gauges::default();
        (0..20).for_each(|second| stretches.add(&line(second, 10, 1), &gauges));
        assert_eq!(stretches.clone().verdict(), Verdict::Met(0.1));
        (20..22).for_each(|second| stretches.add(&line(second, 10, 5), &gauges));
        (22..40).for_each(|second| stretches.add(&line(second, 1000, 0), &gauges));
        let worst = 11.0 / 30.0;
        assert_eq!(stretches.verdict(), Verdict::NotMet(worst));
        let mut short = of(30).expect("one");
        short.add(&line(0, 10, 9), &gauges);
        assert_eq!(short.verdict(), Verdict::Unknown);
        assert!(of(0).is_none());
    }

    #[test]
    fn a_rule_warns_before_it_ends_the_run() {
        let rule = AbortRule {
            condition: threshold(Comparison::Greater, 0.1, 2),
            after: Duration::from_secs(3),
        };
        let mut rules = AbortRules::new(std::slice::from_ref(&rule), &RunInfo::default());
        let mut told = Vec::new();
        let failed = [0, 0, 5, 0, 0, 0, 5, 5, 5, 5, 5, 5, 5];
        for (second, failed) in (0..).zip(failed) {
            let interval = line(second, 10, failed);
            for ruling in rules.add(&interval, &Gauges::default()) {
                told.push((second, ruling));
            }
        }
        let warned = |figure| Ruling::Warned { rule: rule.clone(), figure, left: rule.after };
        assert_eq!(told[0], (3, warned(0.25)));
        assert_eq!(told[1], (5, Ruling::Cleared { rule: rule.clone() }));
        assert_eq!(told[2], (7, warned(0.25)));
        assert_eq!(told[3], (10, Ruling::Aborted { rule, figure: 0.5 }));
    }
}
