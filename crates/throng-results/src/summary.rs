//! All figures of a run, made of its record and of nothing else: the summary at the end of a run
//! and the one of `throng report` are the same.

mod collector;

use std::path::PathBuf;
use std::time::Duration;

use throng_metrics::{
    Blame, Cause, Connections, Histogram, Interval, Measure, Messages, Population, Stage,
    StepInterval, interval,
};

use crate::directory::{RunInfo, VerdictInfo};
use crate::read::Damage;
use crate::verdict::Validity;
pub use collector::Collector;

/// A run in figures. Where nothing else is said they are of the measured phases only.
#[derive(Clone, Debug)]
pub struct Summary {
    /// With the verdicts of the thresholds and the outcome filled in.
    pub info: RunInfo,
    /// Where the record is, when there is one.
    pub directory: Option<PathBuf>,
    /// The run has no end: it was killed, or it still goes on.
    pub unended: bool,
    /// When the run was given up because the target was gone, in nanoseconds of the run.
    pub target_lost_ns: Option<u64>,
    /// The time of the measured phases: what rates are counted by.
    pub measured: Duration,
    /// The time of the whole run.
    pub lasted: Duration,
    /// All answers together, and whatever failed. Where users only connect and stay, their
    /// connects are the answers.
    pub total: Row,
    /// One for each step of the scenario, in its order.
    pub steps: Vec<Row>,
    /// Resolve, connect, TLS, upgrade: those that happened.
    pub stages: Vec<StageRow>,
    /// One for each phase, measured or not.
    pub phases: Vec<PhaseRow>,
    /// The most frequent first.
    pub errors: Vec<ErrorRow>,
    /// The most frequent first.
    pub codes: Vec<(u16, u64)>,
    pub goals: Vec<GoalRow>,
    /// All bytes that went over the connections, those of no step too.
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Of the whole run.
    pub users_online_max: u64,
    /// Of the whole run.
    pub connections_open_max: u64,
    pub connections: Connections,
    pub population: Population,
    pub messages: Messages,
    pub generator: Generator,
    pub validity: Validity,
    pub damage: Damage,
}

/// What one step did, or all of them together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub name: String,
    pub kind: String,
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    pub ok_per_s: f64,
    pub latency: Latency,
    pub first_byte: Latency,
    pub codes: Vec<(u16, u64)>,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// A histogram in a few figures, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    pub count: u64,
    pub min_ns: u64,
    pub mean_ns: f64,
    pub deviation_ns: f64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub p9999_ns: u64,
    pub max_ns: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StageRow {
    pub stage: Stage,
    pub ok: u64,
    pub failed: u64,
    pub latency: Latency,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PhaseRow {
    pub name: String,
    pub measured: bool,
    /// False: the run ended before.
    pub begun: bool,
    pub lasted: Duration,
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    pub ok_per_s: f64,
    pub users_online: u64,
    pub latency: Latency,
}

/// How often a step failed for one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRow {
    pub step: String,
    pub cause: Cause,
    pub blame: Blame,
    pub count: u64,
    /// Of all attempts of all steps, 0 to 1.
    pub share: f64,
    pub example: Option<Example>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub at_ns: u64,
    pub detail: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GoalRow {
    pub text: String,
    pub measure: Measure,
    /// The subject is a gauge: its figure is a plain number, whatever the measure.
    pub is_gauge: bool,
    pub verdict: VerdictInfo,
}

/// What the generator says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generator {
    /// How late it was with what was due.
    pub lateness: Latency,
    /// Seconds in which the lateness was above [`crate::verdict::LATENESS_NS_MAX`] at p99.
    pub late_seconds: u64,
    /// Seconds from which there are figures.
    pub seconds: u64,
    /// User and system time of this process.
    pub cpu_ns: u64,
    /// Processors used, on average.
    pub cores: f64,
    /// CPU time for each attempt.
    pub cpu_per_attempt_ns: f64,
    pub memory_bytes_max: u64,
    /// Shares of all processors of the host, by everything that ran there.
    pub host_cpu_mean: f64,
    pub host_cpu_max: f64,
    /// The first second of the run in which the host was busy at
    /// [`crate::verdict::HOST_CPU_BUSY`] or more.
    pub host_busy_from: Option<u64>,
    /// The most good answers in a second that was not late.
    pub sustained_per_s: u64,
}

impl Latency {
    pub fn of(histogram: &Histogram) -> Latency {
        Latency {
            count: histogram.count(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean(),
            deviation_ns: histogram.deviation(),
            p50_ns: histogram.value_at(0.5),
            p90_ns: histogram.value_at(0.9),
            p95_ns: histogram.value_at(0.95),
            p99_ns: histogram.value_at(0.99),
            p999_ns: histogram.value_at(0.999),
            p9999_ns: histogram.value_at(0.9999),
            max_ns: histogram.max(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Summary {
    /// The attempts of all steps, also of those that the totals leave out.
    pub fn attempts(&self) -> u64 {
        self.steps.iter().map(|row| row.count).sum()
    }
}

impl Row {
    fn new(name: String, kind: String, figures: &StepInterval, measured: Duration) -> Row {
        let mut codes = figures.codes.clone();
        most_first(&mut codes);
        Row {
            name,
            kind,
            count: figures.count,
            ok: figures.ok,
            failed: figures.failed(),
            ok_per_s: per_second(figures.ok, measured),
            latency: Latency::of(&figures.latency),
            first_byte: Latency::of(&figures.first_byte),
            codes,
            bytes_in: figures.bytes_in,
            bytes_out: figures.bytes_out,
        }
    }
}

/// The kind of steps in which users only stay: how long is no latency.
pub(crate) const STAY: &str = "stay";
const CONNECT: &str = "connect";

/// Which steps the totals of a run count: those that are answered. To connect and to stay is no
/// answer, but where users do nothing else their connects count.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    left_out: Vec<u16>,
    is_idle: bool,
}

impl Counted {
    pub(crate) fn new(info: &RunInfo) -> Counted {
        let mut steps = info.steps.iter();
        let is_idle =
            !info.steps.is_empty() && steps.all(|step| step.kind == CONNECT || step.kind == STAY);
        let is_left_out = |kind: &str| kind == STAY || (kind == CONNECT && !is_idle);
        let steps = info.steps.iter().zip(0u16..);
        let left_out = steps.filter(|(step, _)| is_left_out(&step.kind)).map(|(_, id)| id);
        Counted { left_out: left_out.collect(), is_idle }
    }

    /// Whether what went well in the step counts.
    pub(crate) fn holds(&self, step: u16) -> bool {
        !self.left_out.contains(&step)
    }

    /// Whether users only connect and stay.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle
    }

    pub(crate) fn is_all(&self) -> bool {
        self.left_out.is_empty()
    }

    /// All steps together. Of those that are left out only what failed counts: it is the reason
    /// why there was no answer. Their codes and bytes are as true as all others.
    pub(crate) fn total(&self, interval: &Interval) -> StepInterval {
        let mut total = StepInterval::default();
        for step in &interval.steps {
            if self.holds(step.step) {
                total.merge(step);
                continue;
            }
            total.count += step.failed();
            step.errors.iter().for_each(|(cause, n)| interval::add(&mut total.errors, *cause, *n));
            step.codes.iter().for_each(|(code, n)| interval::add(&mut total.codes, *code, *n));
            total.bytes_in += step.bytes_in;
            total.bytes_out += step.bytes_out;
        }
        total
    }
}

fn per_second(count: u64, duration: Duration) -> f64 {
    if duration.is_zero() { 0.0 } else { count as f64 / duration.as_secs_f64() }
}

fn most_first<K: Ord + Copy>(counters: &mut [(K, u64)]) {
    counters.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
}

#[cfg(test)]
mod tests;
