//! The figures of a run over time, in columns. A longer run has coarser points; the sums are exact,
//! and so are the percentiles of each point. Steps together have so many numbers and no more, so
//! their points may be coarser still.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use throng_base::Diagnostic;
use throng_metrics::{Cause, Gauges, Histogram, Interval, StepInterval};

use crate::directory::RunInfo;
use crate::read::Run;
use crate::summary::{Attempts, Summary};

/// The seconds of a point, up to so many seconds of a run.
const WIDTHS: [(u64, u64); 2] = [(1, 3_600), (10, 36_000)];
const WIDTH_MAX: u64 = 60;
/// Numbers of all steps together.
const NUMBERS_MAX: u64 = 100_000;
/// Columns of a step.
const COLUMNS: u64 = 8;
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];
/// Points of a percentile curve, as shares of what is longer: each third of a decade.
const CURVE_POINTS: i32 = 18;

/// See the module's description.
pub struct Series {
    width_s: u64,
    /// A step's point is so many of the others.
    step_points: u64,
    points: Vec<Point>,
    steps: BTreeMap<u16, StepSeries>,
    total: Histogram,
}

/// All loads on all machines, for one time.
#[derive(Default)]
struct Point {
    sum: Interval,
    /// By machine and load: the latest phase, and how many there were.
    gauges: BTreeMap<(u16, u16), (u16, Gauges)>,
    attempts: StepInterval,
}

#[derive(Default)]
struct StepSeries {
    current: (u64, StepInterval),
    rows: Vec<(u64, StepRow)>,
    total: Histogram,
}

/// Times in microseconds.
struct StepRow {
    ok: u64,
    failed: u64,
    times: [Option<f64>; QUANTILES.len() + 2],
}

impl Series {
    /// Reads the record once, or its sums by minute.
    pub fn read(run: &Run, summary: &Summary) -> Result<Series, Box<Diagnostic>> {
        let seconds = summary.lasted.as_secs().max(1);
        let width_s = WIDTHS.iter().find(|(_, until)| seconds <= *until);
        let width_s = width_s.map_or(WIDTH_MAX, |(width, _)| *width);
        let points = seconds.div_ceil(width_s);
        let numbers = points * COLUMNS * run.info.steps.len() as u64;
        let mut series = Series {
            width_s,
            step_points: numbers.div_ceil(NUMBERS_MAX).max(1),
            points: Vec::new(),
            steps: BTreeMap::new(),
            total: Histogram::new(),
        };
        let attempts = Attempts::new(&run.info);
        run.summed(width_s, |sum| series.add(&run.info, &attempts, sum))?;
        series.steps.values_mut().for_each(StepSeries::end);
        Ok(series)
    }

    fn add(&mut self, info: &RunInfo, attempts: &Attempts, mut sum: Interval) {
        let place = sum.second / self.width_s;
        // A record may tell of any second.
        let Some(at) = usize::try_from(place).ok().filter(|at| *at < POINTS_MAX) else { return };
        if self.points.len() <= at {
            self.points.resize_with(at + 1, Point::default);
        }
        let phase = info.phases.get(usize::from(sum.phase));
        let total = attempts.total(&sum);
        let steps = std::mem::take(&mut sum.steps);
        self.points[at].add(phase.map_or(0, |phase| phase.load), &sum, &total);
        if phase.is_none_or(|phase| phase.measured) {
            self.total.merge(&total.latency);
        }
        for row in &steps {
            let measured = phase.is_none_or(|phase| phase.measured);
            let step = self.steps.entry(row.step).or_default();
            step.add(place / self.step_points, row, measured);
        }
    }

    /// In columns, one number for each point.
    pub fn json(&self) -> Value {
        let column = |figure: &dyn Fn(&Point) -> Value| -> Value {
            self.points.iter().map(figure).collect()
        };
        let gauge = |figure: fn(&Gauges) -> u64| {
            column(&|point| json!(point.gauges.values().map(|(_, it)| figure(it)).sum::<u64>()))
        };
        let sum = |figure: fn(&Interval) -> u64| column(&|point| json!(figure(&point.sum)));
        let attempts =
            |figure: fn(&StepInterval) -> u64| column(&|point| json!(figure(&point.attempts)));
        let mut times = Map::new();
        for (word, quantile) in QUANTILES {
            let value = column(&|point| json!(micros(&point.attempts.latency, quantile)));
            times.insert(word.into(), value);
        }
        times.insert("max".into(), column(&|point| json!(max(&point.attempts.latency))));
        let service = column(&|point| json!(micros(point.attempts.service(), 0.99)));
        let resource = |figure: fn(&throng_metrics::Resources) -> f64| {
            let one = |point: &Point| point.sum.resources.as_ref().map(figure);
            column(&|point| json!(one(point)))
        };
        json!({
            "width_s": self.width_s,
            "step_width_s": self.width_s * self.step_points,
            "users_wanted": gauge(|it| it.users_wanted),
            "users_present": gauge(|it| it.users_present),
            "users_online": gauge(|it| it.users_online),
            "connections_open": gauge(|it| it.connections_open),
            "in_flight": gauge(|it| it.in_flight),
            "backlog": gauge(|it| it.backlog),
            "ok": attempts(|it| it.ok),
            "failed": attempts(StepInterval::failed),
            "wanted": sum(|it| it.population.wanted),
            "begun": sum(|it| it.population.begun),
            "bytes_in": sum(|it| it.bytes_in),
            "bytes_out": sum(|it| it.bytes_out),
            "opened": sum(|it| it.connections.opened),
            "heartbeats_lost": sum(|it| it.heartbeats.lost),
            "delivered": sum(|it| it.deliveries.iter().map(|row| row.delivered).sum()),
            "lost": sum(|it| it.deliveries.iter().map(|row| row.lost).sum()),
            "times": times,
            "service_p99": service,
            "lateness_p99": column(&|point| json!(micros(&point.sum.lateness, 0.99))),
            "cpu_ns": resource(|it| (it.cpu_user_ns + it.cpu_system_ns) as f64),
            "host_cpu": resource(|it| (it.host_cpu * 1000.0).round() / 1000.0),
            "memory_bytes": resource(|it| it.memory_bytes as f64),
            "errors": self.errors(),
            "stages": self.stages(),
            "steps": self.steps.iter().map(|(step, it)| it.json(*step)).collect::<Vec<_>>(),
            "curve": curve(&self.total),
            "heat": self.heat(),
        })
    }

    /// By cause, those that there are.
    fn errors(&self) -> Value {
        let all = || self.points.iter().flat_map(|point| &point.attempts.errors);
        let causes: std::collections::BTreeSet<Cause> = all().map(|(cause, _)| *cause).collect();
        let column = |cause: Cause| -> Value {
            let of = |point: &Point| -> u64 {
                let all = point.attempts.errors.iter().filter(|(it, _)| *it == cause);
                all.map(|(_, count)| count).sum()
            };
            self.points.iter().map(|point| json!(of(point))).collect()
        };
        let told = |cause: Cause| json!({"cause": cause.word(), "text": cause.text().spoken(), "count": column(cause)});
        causes.into_iter().map(told).collect()
    }

    /// By stage of opening a connection, those that there are: p99 of the successful ones.
    fn stages(&self) -> Value {
        let all = || self.points.iter().flat_map(|point| &point.sum.stages);
        let stages: std::collections::BTreeSet<_> = all().map(|it| it.stage).collect();
        let column = |stage| -> Value {
            let of = |point: &Point| {
                let row = point.sum.stages.iter().find(|it| it.stage == stage);
                row.and_then(|row| micros(&row.latency, 0.99))
            };
            self.points.iter().map(|point| json!(of(point))).collect()
        };
        let told =
            |stage: throng_metrics::Stage| json!({"stage": stage.word(), "p99": column(stage)});
        stages.into_iter().map(told).collect()
    }

    /// How many attempts took how long at what time: triples of column, row and count; a row is a
    /// quarter of a power of two of microseconds.
    fn heat(&self) -> Value {
        let width = self.points.len().div_ceil(HEAT_COLUMNS).max(1);
        let mut cells: BTreeMap<(usize, u32), u64> = BTreeMap::new();
        for (at, point) in self.points.iter().enumerate() {
            for (index, count) in point.attempts.latency.buckets() {
                let micros = throng_metrics::histogram::bucket(index).start as f64 / 1e3;
                let row = (micros.max(1.0).log2() * 4.0) as u32;
                *cells.entry((at / width, row)).or_default() += count;
            }
        }
        let cells: Vec<u64> = cells
            .into_iter()
            .flat_map(|((column, row), count)| [column as u64, u64::from(row), count])
            .collect();
        json!({"points": width, "cells": cells})
    }
}

/// Columns of the heat map.
const HEAT_COLUMNS: usize = 240;
/// More points than any run has: a day of seconds.
const POINTS_MAX: usize = 100_000;

impl Point {
    fn add(&mut self, load: u16, sum: &Interval, total: &StepInterval) {
        let (phase, gauges) = self.gauges.entry((sum.machine, load)).or_default();
        if *phase <= sum.phase {
            (*phase, *gauges) = (sum.phase, sum.gauges.clone());
        }
        self.sum.merge_later(sum);
        self.attempts.merge(total);
    }
}

impl StepSeries {
    fn add(&mut self, place: u64, row: &StepInterval, measured: bool) {
        if self.current.0 != place {
            self.end();
            self.current.0 = place;
        }
        self.current.1.merge(row);
        if measured {
            self.total.merge(&row.latency);
        }
    }

    fn end(&mut self) {
        let (place, row) = (self.current.0, std::mem::take(&mut self.current.1));
        if row.count == 0 {
            return;
        }
        let mut times = [None; QUANTILES.len() + 2];
        for (time, (_, quantile)) in times.iter_mut().zip(QUANTILES) {
            *time = micros(&row.latency, quantile);
        }
        times[QUANTILES.len()] = max(&row.latency);
        times[QUANTILES.len() + 1] = micros(row.service(), 0.99);
        self.rows.push((place, StepRow { ok: row.ok, failed: row.failed(), times }));
    }

    /// Columns, and in `at` the points they are of: a step need not do something at all times.
    fn json(&self, step: u16) -> Value {
        let column = |figure: &dyn Fn(&StepRow) -> Value| -> Value {
            self.rows.iter().map(|(_, row)| figure(row)).collect()
        };
        let mut told = Map::new();
        told.insert("step".into(), json!(step));
        told.insert("at".into(), self.rows.iter().map(|(at, _)| json!(at)).collect());
        told.insert("ok".into(), column(&|row| json!(row.ok)));
        told.insert("failed".into(), column(&|row| json!(row.failed)));
        let words = QUANTILES.iter().map(|(word, _)| *word).chain(["max", "service_p99"]);
        for (index, word) in words.enumerate() {
            told.insert(word.into(), column(&|row| json!(row.times[index])));
        }
        told.insert("curve".into(), curve(&self.total));
        Value::Object(told)
    }
}

/// In microseconds, to three digits; None where there was nothing.
fn micros(histogram: &Histogram, quantile: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| short(Duration::from_nanos(histogram.value_at(quantile))))
}

fn max(histogram: &Histogram) -> Option<f64> {
    (!histogram.is_empty()).then(|| short(Duration::from_nanos(histogram.max())))
}

/// Four digits are more than a curve shows.
fn short(time: Duration) -> f64 {
    let micros = time.as_nanos() as f64 / 1e3;
    let scale = 10f64.powi(3 - micros.max(0.1).log10().floor() as i32);
    (micros * scale).round() / scale
}

/// The time that so many were at most: pairs of the share of those that were longer, and
/// microseconds, as far as there are attempts for it.
fn curve(histogram: &Histogram) -> Value {
    let mut pairs = Vec::new();
    for point in 0..=CURVE_POINTS {
        let longer = 10f64.powf(-f64::from(point) / 3.0);
        if longer * histogram.count() as f64 >= 1.0 {
            pairs.push(json!([longer, micros(histogram, 1.0 - longer)]));
        }
    }
    if let Some(max) = max(histogram) {
        pairs.push(json!([1.0 / histogram.count() as f64, max]));
    }
    Value::Array(pairs)
}
