//! The metrics of a second. Names follow Prometheus: base units, `_total` for counters. A counter
//! has its increase in the second; `totals` adds them up for receivers that need sums.

use std::borrow::Cow;

use throng_metrics::gauges::Exported;
use throng_metrics::{
    Ending, Gauge, Gauges, Histogram, Interval, Percentile, Resources, StepKind, Timed,
};
use throng_results::RunInfo;

/// A second of all loads on all machines.
pub struct Second<'a> {
    pub info: &'a RunInfo,
    pub figures: &'a Interval,
}

impl Second<'_> {
    /// The end of the second, in nanoseconds since the Unix epoch.
    pub fn end_unix_ns(&self) -> u64 {
        self.begin_unix_ns().saturating_add(SECOND_NS)
    }

    pub fn begin_unix_ns(&self) -> u64 {
        self.info.time.zero_unix_ns.saturating_add(self.figures.second.saturating_mul(SECOND_NS))
    }
}

const SECOND_NS: u64 = 1_000_000_000;

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// A metric with its name and labels.
pub struct Metric<'a> {
    pub name: &'static str,
    pub help: &'static str,
    pub labels: Labels<'a>,
    pub value: Value<'a>,
}

pub enum Value<'a> {
    /// Its increase.
    Counter(f64),
    Gauge(f64),
    /// The times in the second, in nanoseconds.
    Times(&'a Histogram),
}

/// The percentiles and the maximum of times, in nanoseconds.
pub(crate) fn figures(times: &Histogram) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let quantiles = Percentile::MAIN.iter();
    let quantiles = quantiles.map(|it| (it.plain(), times.value_at(it.quantile())));
    quantiles.chain([("max", times.max())])
}

/// Labels of all metrics of a run: those that identify it, and its own.
pub fn labels_of(info: &RunInfo) -> Vec<(String, String)> {
    let own = [("run", &info.id), ("scenario", &info.name)];
    let own = own.into_iter().map(|(name, value)| (name.to_string(), value.clone()));
    let taken = |name: &String| !["run", "scenario", "step", "kind"].contains(&name.as_str());
    let labels = info.labels.iter().filter(|(name, _)| taken(name));
    own.chain(labels.map(|(name, value)| (word(name), value.clone()))).collect()
}

/// A name that all receivers accept: letters, digits and `_`.
fn word(name: &str) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let word: String = name.chars().map(part).collect();
    if word.starts_with(|c: char| c.is_ascii_digit()) { format!("_{word}") } else { word }
}

/// The metrics of a second; metrics with the same name are adjacent.
pub fn metrics<'a>(second: &'a Second<'_>) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    steps(second, &mut all);
    connections(second.figures, &mut all);
    users(second.figures, &mut all);
    generator(second.figures, &mut all);
    all
}

fn steps<'a>(second: &'a Second<'_>, all: &mut Vec<Metric<'a>>) {
    let rows = || second.figures.steps.iter();
    let labels = |step: u16| {
        let kind =
            second.info.tables.steps.get(usize::from(step)).map_or(StepKind::NONE, |it| it.kind);
        vec![("step", Cow::from(second.info.step_name(step))), ("kind", Cow::from(kind.word()))]
    };
    let with = |step: u16, name: &'static str, value: &'static str| {
        let mut labels = labels(step);
        labels.push((name, Cow::from(value)));
        labels
    };
    let (name, help) = ("throng_attempts_total", "Completed attempts by step and result.");
    for row in rows() {
        for (result, count) in
            [("ok", row.ok), ("failed", row.failed()), ("interrupted", row.interrupted)]
        {
            let value = Value::Counter(count as f64);
            all.push(Metric { name, help, labels: with(row.step, "result", result), value });
        }
    }
    let (name, help) = ("throng_errors_total", "Failed attempts by step and cause.");
    for row in rows() {
        for (cause, count) in &row.errors {
            let value = Value::Counter(*count as f64);
            all.push(Metric { name, help, labels: with(row.step, "cause", cause.word()), value });
        }
    }
    let (name, help) = ("throng_codes_total", "Responses by step and status code.");
    for row in rows() {
        for (code, count) in &row.codes {
            let mut labels = labels(row.step);
            labels.push(("code", Cow::from(code.to_string())));
            all.push(Metric { name, help, labels, value: Value::Counter(*count as f64) });
        }
    }
    times(|| rows().map(|row| (row, labels(row.step))), all);
}

fn connections<'a>(figures: &'a Interval, all: &mut Vec<Metric<'a>>) {
    let (name, help) =
        ("throng_connections_total", "Connections by state: attempted, opened, or how they ended.");
    let mut counts = figures.connections.counts.clone();
    let opened = [("attempted", counts.attempted), ("opened", counts.opened)];
    let ended = Ending::ALL.map(|ending| (ending.word(), *ending.of(&mut counts)));
    for (state, count) in opened.into_iter().chain(ended) {
        let labels = vec![("state", Cow::from(state))];
        all.push(Metric { name, help, labels, value: Value::Counter(count as f64) });
    }
    let stages = || figures.connections.stages.iter();
    times(|| stages().map(|row| (row, vec![("stage", Cow::from(row.stage.word()))])), all);
    let (name, help) = ("throng_bytes_total", "Payload bytes by direction.");
    for (direction, count) in [("in", figures.traffic.bytes_in), ("out", figures.traffic.bytes_out)]
    {
        let labels = vec![("direction", Cow::from(direction))];
        all.push(Metric { name, help, labels, value: Value::Counter(count as f64) });
    }
}

fn users<'a>(figures: &'a Interval, all: &mut Vec<Metric<'a>>) {
    gauges(Gauges::gauges(), &figures.gauges, all);
    let population = &figures.population;
    let (name, help) = ("throng_starts_total", "Starts of users and iterations by outcome.");
    for (state, count) in [
        ("begun", population.iterations_started),
        ("delayed", population.waited),
        ("dropped", population.dropped),
        ("unmet", population.unmet),
    ] {
        let labels = vec![("state", Cow::from(state))];
        all.push(Metric { name, help, labels, value: Value::Counter(count as f64) });
    }
}

fn generator<'a>(figures: &'a Interval, all: &mut Vec<Metric<'a>>) {
    times(|| std::iter::once((&figures.generator, Vec::new())), all);
    let Some(resources) = &figures.generator.resources else { return };
    let cpu = resources.cpu.time_ns() as f64 / 1e9;
    let (name, help) = ("throng_cpu_seconds_total", "CPU time used by throng.");
    all.push(Metric { name, help, labels: Vec::new(), value: Value::Counter(cpu) });
    gauges(Resources::gauges(), resources, all);
}

/// The exported times of a table, whose rows have labels.
fn times<'a, T: Timed, R: Iterator<Item = (&'a T, Labels<'a>)>>(
    rows: impl Fn() -> R,
    all: &mut Vec<Metric<'a>>,
) {
    for times in T::TIMES {
        let Some(Exported { name, help, .. }) = times.export else { continue };
        let told = rows().map(|(row, labels)| ((times.of)(row), labels));
        all.extend(told.filter(|(times, _)| !times.is_empty()).map(|(times, labels)| Metric {
            name,
            help,
            labels,
            value: Value::Times(times),
        }));
    }
}

/// The same for gauges.
fn gauges<T: 'static>(
    table: impl Iterator<Item = &'static Gauge<T>>,
    figures: &T,
    all: &mut Vec<Metric<'_>>,
) {
    for gauge in table {
        let (Some(told), Some(value)) = (gauge.export, (gauge.of)(figures).number()) else {
            continue;
        };
        let labels = told.state.map(|state| ("state", Cow::from(state)));
        all.push(Metric {
            name: told.name,
            help: told.help,
            labels: labels.into_iter().collect(),
            value: Value::Gauge(value),
        });
    }
}
