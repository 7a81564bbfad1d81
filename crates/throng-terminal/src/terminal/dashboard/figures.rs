//! The data on the screen: the last minutes second by second, and sums by step and cause.

use std::collections::{BTreeMap, VecDeque};

use throng_base::{Time, clean};
use throng_metrics::{Cause, Census, Gauges, Histogram, Interval, Stage, StepKind};
use throng_results::RunInfo;

/// The time span of charts, in seconds.
pub(super) const SECONDS_MAX: usize = 300;
/// Maximum number of events, and of kinds of errors, that are kept.
const EVENTS_MAX: usize = 100;
const ERRORS_MAX: usize = 1_000;

/// A second of the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Second {
    pub(super) second: u64,
    /// Starts that were due in it; None without a rate.
    pub(super) wanted: u64,
    pub(super) begun: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) latency: Histogram,
    pub(super) users: u64,
    pub(super) present: u64,
    pub(super) open: u64,
    pub(super) late_ns: u64,
    pub(super) host_cpu: f64,
}

/// The sums of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) name: String,
    kind: StepKind,
    pub(super) count: u64,
    pub(super) failed: u64,
    /// In the last complete second.
    pub(super) per_s: u64,
    now: u64,
    latency: Histogram,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
}

/// Connections at a stage, by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Funnel {
    pub(super) began: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
}

/// See the module's description.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) name: String,
    pub(super) targets: Vec<String>,
    steps: Vec<Step>,
    /// The indexes of the steps, the worst first; updated once per second.
    pub(super) order: Vec<usize>,
    pub(super) seconds: VecDeque<Second>,
    pub(super) funnel: BTreeMap<Stage, Funnel>,
    errors: BTreeMap<(u16, Cause), u64>,
    /// The most frequent first: step, cause, count.
    pub(super) causes: Vec<(String, Cause, u64)>,
    pub(super) events: VecDeque<(Time, String)>,
    pub(super) ok: u64,
    pub(super) failed: u64,
    /// The states of users; without cells if no user has a long-lived connection.
    pub(super) census: Census,
}

impl Figures {
    pub(super) fn new(info: &RunInfo) -> Figures {
        let step = |step: &throng_results::StepInfo| Step {
            name: clean(&step.name),
            kind: step.kind,
            ..Step::default()
        };
        Figures {
            name: clean(&info.name),
            targets: info.targets.urls.iter().map(|target| clean(target)).collect(),
            steps: info.tables.steps.iter().map(step).collect(),
            ..Figures::default()
        }
    }

    pub(super) fn step(&self, place: usize) -> &Step {
        &self.steps[place]
    }

    pub(super) fn event(&mut self, at: Time, text: &str) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back((at, clean(text)));
    }

    pub(super) fn add(&mut self, interval: &Interval, gauges: &Gauges) {
        if self.seconds.back().is_none_or(|last| last.second < interval.second) {
            self.end_second();
            if self.seconds.len() == SECONDS_MAX {
                self.seconds.pop_front();
            }
            let second = Second { second: interval.second, ..Second::default() };
            self.seconds.push_back(second);
        }
        self.census.add(&interval.cells);
        // Late figures are added to the last second; sums always include them.
        if let Some(second) = self.seconds.back_mut() {
            second.wanted += interval.population.wanted;
            second.begun += interval.population.begun;
            second.users = gauges.users_online;
            second.present = gauges.users_present.max(gauges.users_online);
            second.open = gauges.connections_open;
            second.late_ns = second.late_ns.max(interval.generator.lateness.value_at(0.99));
            let resources = interval.generator.resources.as_ref();
            second.host_cpu = second.host_cpu.max(resources.map_or(0.0, |it| it.host_cpu));
        }
        for stage in &interval.connections.stages {
            let funnel = self.funnel.entry(stage.stage).or_default();
            funnel.began += stage.began;
            funnel.ok += stage.ok;
            funnel.failed += stage.failed;
        }
        for row in &interval.steps {
            let Some(step) = self.steps.get_mut(usize::from(row.step)) else { continue };
            step.count += row.count;
            step.now += row.count;
            step.failed += row.failed();
            step.latency.merge(&row.latency);
            for (cause, count) in &row.errors {
                if self.errors.len() < ERRORS_MAX || self.errors.contains_key(&(row.step, *cause)) {
                    *self.errors.entry((row.step, *cause)).or_default() += count;
                }
            }
            if step.kind.is_attempt()
                && let Some(second) = self.seconds.back_mut()
            {
                second.ok += row.ok;
                second.failed += row.failed();
                second.latency.merge(&row.latency);
                self.ok += row.ok;
                self.failed += row.failed();
            }
        }
    }

    /// Updates once per second what would be expensive while drawing.
    fn end_second(&mut self) {
        for step in &mut self.steps {
            step.per_s = std::mem::take(&mut step.now);
            let of = |share, least: u64| {
                (step.latency.count() >= least).then(|| step.latency.value_at(share))
            };
            (step.p50_ns, step.p99_ns) = (of(0.5, 2), of(0.99, 100));
        }
        let mut order: Vec<usize> =
            (0..self.steps.len()).filter(|place| self.steps[*place].count > 0).collect();
        order.sort_by_key(|place| {
            let step = &self.steps[*place];
            std::cmp::Reverse((step.failed, step.p99_ns, step.count))
        });
        self.order = order;
        let name = |step: u16| self.steps.get(usize::from(step)).map(|step| step.name.clone());
        let cause =
            |((step, cause), count): (&(u16, Cause), &u64)| Some((name(*step)?, *cause, *count));
        self.causes = self.errors.iter().filter_map(cause).collect();
        self.causes.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_metrics::StepInterval;
    use throng_results::{StepInfo, TablesInfo};

    #[test]
    fn seconds_are_kept_for_a_while_and_sums_forever() {
        let step =
            |name: &str| StepInfo { name: name.into(), kind: StepKind::Http, ..<_>::default() };
        let steps = vec![step("good"), step("bad")];
        let info = RunInfo {
            tables: TablesInfo { steps, ..TablesInfo::default() },
            ..RunInfo::new("run", std::time::Duration::ZERO)
        };
        let mut figures = Figures::new(&info);
        for second in 0..400 {
            let good = StepInterval { count: 10, ok: 10, ..StepInterval::default() };
            let errors = vec![(Cause::Timeout, 2)];
            let bad = StepInterval { step: 1, count: 2, errors, ..StepInterval::default() };
            let unknown = StepInterval { step: 9, count: 2, ..StepInterval::default() };
            let steps = vec![good, bad, unknown];
            let gauges = Gauges { users_online: second, ..Gauges::default() };
            figures.add(&Interval { second, steps, ..Interval::default() }, &gauges);
        }
        assert_eq!((figures.seconds.len(), figures.seconds[0].second), (SECONDS_MAX, 100));
        assert_eq!((figures.ok, figures.failed), (4_000, 800));
        assert_eq!(figures.order, [1, 0], "what fails stands first");
        assert_eq!(figures.causes, [("bad".to_string(), Cause::Timeout, 798)]);
        assert_eq!(figures.step(0).per_s, 10);
    }
}
