//! The results of a run over time, in columns. Longer runs have coarser points; sums and the
//! percentiles of each point are exact. The number of values of all steps is limited, so their
//! points can be coarser still.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Map, Value, json};
use throng_base::Diagnostic;
use throng_metrics::Percentile::{P50, P90, P99, P999};
use throng_metrics::{
    Cause, DeliveryInterval, Gauges, Histogram, Interval, Merge as _, Output, Percentile, Reading,
    Resources, Stage, StepInterval,
};

use super::machines::Machines;
use super::number;
use super::renderings::Renderings;
use crate::directory::RunInfo;
use crate::read::Run;
use crate::summary::{Attempts, Summary};

/// Seconds per point, and the maximum length of a run for it.
const WIDTHS: [(u64, u64); 2] = [(1, 3_600), (10, 36_000)];
const WIDTH_MAX: u64 = 60;
/// Maximum number of values of all steps.
const NUMBERS_MAX: u64 = 100_000;
/// Columns per step.
pub(super) const COLUMNS: u64 = 8;
/// The percentiles drawn over time.
const QUANTILES: [Percentile; 4] = [P50, P90, P99, P999];
/// Points of a percentile curve, by the share of longer times: three per decade.
const CURVE_POINTS: i32 = 18;

/// The results of a run over time.
pub struct Series {
    width_s: u64,
    /// Points of the run per point of a step.
    step_points: u64,
    points: Vec<Point>,
    steps: BTreeMap<u16, StepSeries>,
    total: Histogram,
    machines: Machines,
}

/// The results of all loads on all machines at one point.
#[derive(Default)]
pub(super) struct Point {
    pub(super) sum: Interval,
    /// By machine and load: the latest phase, and its gauges.
    gauges: BTreeMap<(u16, u16), (u16, Gauges)>,
    pub(super) attempts: StepInterval,
}

#[derive(Default)]
pub(super) struct StepSeries {
    current: (u64, StepInterval),
    pub(super) rows: Vec<(u64, StepRow)>,
    pub(super) total: Histogram,
}

/// Times in microseconds.
pub(super) struct StepRow {
    ok: u64,
    failed: u64,
    times: [Option<f64>; QUANTILES.len() + 2],
}

impl Series {
    /// Reads the run directory once, or its sums by minute.
    pub fn read(run: &Run, summary: &Summary) -> Result<Series, Box<Diagnostic>> {
        let seconds = summary.lasted.as_secs().max(1);
        let width_s = WIDTHS.iter().find(|(_, until)| seconds <= *until);
        let width_s = width_s.map_or(WIDTH_MAX, |(width, _)| *width);
        let points = seconds.div_ceil(width_s);
        let numbers = points * COLUMNS * run.info.tables.steps.len() as u64;
        let mut series = Series {
            width_s,
            step_points: numbers.div_ceil(NUMBERS_MAX).max(1),
            points: Vec::new(),
            steps: BTreeMap::new(),
            total: Histogram::new(),
            machines: Machines::new(&run.info),
        };
        let attempts = Attempts::new(&run.info);
        run.summed(width_s, |sum| series.add(&run.info, &attempts, sum))?;
        series.steps.values_mut().for_each(StepSeries::end);
        Ok(series)
    }

    fn add(&mut self, info: &RunInfo, attempts: &Attempts, mut sum: Interval) {
        let place = sum.second / self.width_s;
        // A damaged run directory can contain any second.
        let Some(at) = usize::try_from(place).ok().filter(|at| *at < POINTS_MAX) else { return };
        if self.points.len() <= at {
            self.points.resize_with(at + 1, Point::default);
        }
        let phase = info.tables.phases.get(usize::from(sum.phase));
        for row in &mut sum.steps {
            // These are not drawn, and merging them would double the time.
            row.first_byte.clear();
            row.with_pauses.clear();
        }
        let total = attempts.total(&sum);
        let steps = std::mem::take(&mut sum.steps);
        let load = phase.map_or(0, |phase| phase.load);
        self.points[at].add(load, &sum, &total);
        self.machines.add(at, load, &sum);
        if phase.is_none_or(|phase| phase.measured) {
            self.total.merge(&total.latency);
        }
        for row in &steps {
            let measured = phase.is_none_or(|phase| phase.measured);
            let step = self.steps.entry(row.step).or_default();
            step.add(place / self.step_points, row, measured);
        }
    }

    /// The number of points, and the seconds per point.
    pub(super) fn points(&self) -> (usize, u64) {
        (self.points.len(), self.width_s)
    }

    /// As columns with one value per point.
    pub fn json(self) -> Value {
        let rows: Vec<PointRow> = self.points.iter().map(PointRow::of).collect();
        let mut told = columns(&rows);
        told.insert("width_s".into(), json!(self.width_s));
        told.insert("step_width_s".into(), json!(self.width_s * self.step_points));
        let steps = self.steps.iter().map(|(step, it)| it.json(*step));
        told.insert("steps".into(), steps.collect());
        told.insert("curve".into(), curve(&self.total));
        told.insert("heat".into(), self.heat());
        told.insert("machines".into(), self.machines.json());
        Value::Object(told)
    }

    /// The renderings of texts in the columns. The summary contains none of warm-ups.
    pub(super) fn rendered(&self, renderings: &mut Renderings) {
        self.points.iter().for_each(|point| PointRow::of(point).rendered(renderings));
    }

    /// Attempts by time and duration: triples of column, row and count. A row is a quarter of a
    /// power of two in microseconds.
    fn heat(&self) -> Value {
        let width = self.points.len().div_ceil(HEAT_COLUMNS).max(1);
        let mut cells: BTreeMap<(usize, u32), u64> = BTreeMap::new();
        for (at, point) in self.points.iter().enumerate() {
            for (row, count) in heat_rows(&point.attempts.latency) {
                *cells.entry((at / width, row)).or_default() += count;
            }
        }
        heat_json(width, cells)
    }
}

/// The rows of the heat map, and their numbers of attempts.
pub(super) fn heat_rows(times: &Histogram) -> impl Iterator<Item = (u32, u64)> + '_ {
    times.buckets().map(|(index, count)| {
        let micros = throng_metrics::histogram::bucket(index).start as f64 / 1e3;
        ((micros.max(1.0).log2() * 4.0) as u32, count)
    })
}

/// By column and row; a column covers several points.
pub(super) fn heat_json(points: usize, cells: BTreeMap<(usize, u32), u64>) -> Value {
    let flat = |((column, row), count)| [column as u64, u64::from(row), count];
    let cells: Vec<u64> = cells.into_iter().flat_map(flat).collect();
    json!({"points": points, "cells": cells})
}

/// How values of points are merged when their histograms are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Sum,
    Later,
    /// An upper limit of the percentile of both.
    Larger,
}

/// The name of a column, and its value of a point. Times are in microseconds.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) fold: Fold,
    of: Of,
}

/// The origin of a column.
enum Of {
    Gauge(fn(&Gauges) -> Reading),
    Resource(fn(&Resources) -> Reading),
    Point(fn(&Point) -> Option<f64>),
}

const fn figure(name: &'static str, fold: Fold, of: fn(&Point) -> Option<f64>) -> Figure {
    Figure { name, fold, of: Of::Point(of) }
}

impl Figure {
    pub(super) fn of(&self, point: &Point) -> Option<f64> {
        match self.of {
            Of::Gauge(of) => {
                let all = point.gauges.values().filter_map(|(_, it)| of(it).number());
                Some(all.fold(0.0, |sum, value| sum + value))
            }
            Of::Resource(of) => {
                let value = of(point.sum.generator.resources.as_ref()?).number()?;
                Some((value * 1_000.0).round() / 1_000.0)
            }
            Of::Point(of) => of(point),
        }
    }
}

/// Gauges of the table, and counts of a point.
pub(super) static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let gauges = Gauges::gauges().filter(|gauge| gauge.is_in(Output::Page));
    let gauges =
        gauges.map(|it| Figure { name: it.field, fold: Fold::Later, of: Of::Gauge(it.of) });
    let resources = Resources::gauges().filter(|gauge| gauge.is_in(Output::Page));
    let resources =
        resources.map(|it| Figure { name: it.field, fold: Fold::Larger, of: Of::Resource(it.of) });
    gauges.chain(resources).chain(COUNTED).collect()
});

const COUNTED: [Figure; 12] = [
    figure("ok", Fold::Sum, |it| Some(it.attempts.ok as f64)),
    figure("failed", Fold::Sum, |it| Some(it.attempts.failed() as f64)),
    figure("wanted", Fold::Sum, |it| Some(it.sum.population.wanted as f64)),
    figure("begun", Fold::Sum, |it| Some(it.sum.population.begun as f64)),
    figure("bytes_in", Fold::Sum, |it| Some(it.sum.traffic.bytes_in as f64)),
    figure("bytes_out", Fold::Sum, |it| Some(it.sum.traffic.bytes_out as f64)),
    figure("opened", Fold::Sum, |it| Some(it.sum.connections.counts.opened as f64)),
    figure("heartbeats_lost", Fold::Sum, |it| Some(it.sum.heartbeats.lost as f64)),
    figure("delivered", Fold::Sum, |it| delivery(it, |row| row.delivered)),
    figure("lost", Fold::Sum, |it| delivery(it, |row| row.lost)),
    figure("cpu_ns", Fold::Sum, |it| {
        it.sum.generator.resources.as_ref().map(|it| it.cpu.time_ns() as f64)
    }),
    figure("lateness_p99", Fold::Larger, |it| micros(&it.sum.generator.lateness, 0.99)),
];

/// Times of the attempts of all steps.
pub(super) static TIMES: [Figure; 6] = [
    figure(P50.plain(), Fold::Larger, |it| micros(&it.attempts.latency, P50.quantile())),
    figure(P90.plain(), Fold::Larger, |it| micros(&it.attempts.latency, P90.quantile())),
    figure(P99.plain(), Fold::Larger, |it| micros(&it.attempts.latency, P99.quantile())),
    figure(P999.plain(), Fold::Larger, |it| micros(&it.attempts.latency, P999.quantile())),
    figure("max", Fold::Larger, |it| max(&it.attempts.latency)),
    figure("service_p99", Fold::Larger, |it| micros(it.attempts.service(), 0.99)),
];

fn delivery(point: &Point, figure: fn(&DeliveryInterval) -> u64) -> Option<f64> {
    Some(point.sum.deliveries.iter().map(figure).sum::<u64>() as f64)
}

/// Columns of the heat map.
pub(super) const HEAT_COLUMNS: usize = 240;
/// More points than any run has: a day in seconds.
const POINTS_MAX: usize = 100_000;

impl Point {
    pub(super) fn add(&mut self, load: u16, sum: &Interval, total: &StepInterval) {
        let (phase, gauges) = self.gauges.entry((sum.machine, load)).or_default();
        if *phase <= sum.phase {
            (*phase, *gauges) = (sum.phase, sum.gauges.clone());
        }
        self.sum.merge_later(sum);
        self.attempts.merge(total);
    }
}

/// The values of a point in all columns.
#[derive(Clone, Default)]
pub(super) struct PointRow {
    pub(super) figures: Vec<Option<f64>>,
    pub(super) times: Vec<Option<f64>>,
    pub(super) errors: Vec<(Cause, u64)>,
    /// The p99 of successful attempts.
    pub(super) stages: Vec<(Stage, Option<f64>)>,
}

impl PointRow {
    pub(super) fn of(point: &Point) -> PointRow {
        let stages = point.sum.connections.stages.iter();
        PointRow {
            figures: FIGURES.iter().map(|figure| figure.of(point)).collect(),
            times: TIMES.iter().map(|figure| figure.of(point)).collect(),
            errors: point.attempts.errors.clone(),
            stages: stages.map(|it| (it.stage, micros(&it.latency, 0.99))).collect(),
        }
    }

    pub(super) fn rendered(&self, renderings: &mut Renderings) {
        self.errors.iter().for_each(|(cause, _)| renderings.cause(*cause));
        self.stages.iter().for_each(|(stage, _)| renderings.stage(*stage));
    }

    /// Merges this point with the next one.
    pub(super) fn folded(&self, later: &PointRow) -> PointRow {
        let mut both = self.clone();
        let figures = both.figures.iter_mut().zip(&later.figures).zip(FIGURES.iter());
        let times = both.times.iter_mut().zip(&later.times).zip(&TIMES);
        for ((mine, theirs), figure) in figures.chain(times) {
            *mine = match figure.fold {
                Fold::Sum => {
                    mine.zip(*theirs).map(|(one, other)| one + other).or(*mine).or(*theirs)
                }
                Fold::Later => theirs.or(*mine),
                Fold::Larger => larger(*mine, *theirs),
            };
        }
        both.errors.merge(&later.errors);
        for (stage, p99) in &later.stages {
            match both.stages.iter_mut().find(|(mine, _)| mine == stage) {
                Some((_, mine)) => *mine = larger(*mine, *p99),
                None => both.stages.push((*stage, *p99)),
            }
        }
        both
    }
}

/// One value per point, by the name of the column.
pub(super) fn columns(rows: &[PointRow]) -> Map<String, Value> {
    let all = |figures: &[Figure], of: fn(&PointRow) -> &[Option<f64>]| -> Map<String, Value> {
        let column = |at: usize| rows.iter().map(|row| number(of(row)[at])).collect();
        figures.iter().enumerate().map(|(at, it)| (it.name.to_string(), column(at))).collect()
    };
    let mut told = all(&FIGURES, |row| &row.figures);
    told.insert("times".into(), Value::Object(all(&TIMES, |row| &row.times)));
    told.insert("errors".into(), errors(rows));
    told.insert("stages".into(), stages(rows));
    told
}

fn errors(rows: &[PointRow]) -> Value {
    let mut counts: BTreeMap<Cause, Vec<u64>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        for (cause, count) in &row.errors {
            counts.entry(*cause).or_insert_with(|| vec![0; rows.len()])[at] += count;
        }
    }
    let told = |(cause, count): (Cause, Vec<u64>)| json!({"cause": cause.word(), "text": cause.text().english(), "count": count});
    counts.into_iter().map(told).collect()
}

fn stages(rows: &[PointRow]) -> Value {
    let mut times: BTreeMap<Stage, Vec<Option<f64>>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        for (stage, p99) in &row.stages {
            times.entry(*stage).or_insert_with(|| vec![None; rows.len()])[at] = *p99;
        }
    }
    let told = |(stage, p99): (Stage, Vec<_>)| json!({"stage": stage.word(), "p99": p99});
    times.into_iter().map(told).collect()
}

impl StepSeries {
    pub(super) fn add(&mut self, place: u64, row: &StepInterval, measured: bool) {
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
        let row = StepRow::of(&std::mem::take(&mut self.current.1));
        self.rows.extend(row.map(|row| (self.current.0, row)));
    }

    /// The current point, if it has results.
    pub(super) fn going_on(&self) -> Option<(u64, StepRow)> {
        StepRow::of(&self.current.1).map(|row| (self.current.0, row))
    }

    /// Merges pairs of points.
    pub(super) fn fold(&mut self) {
        self.end();
        self.current.0 /= 2;
        let mut rows: Vec<(u64, StepRow)> = Vec::with_capacity(self.rows.len() / 2 + 1);
        for (at, row) in std::mem::take(&mut self.rows) {
            match rows.last_mut().filter(|(last, _)| *last == at / 2) {
                Some((_, last)) => last.fold(&row),
                None => rows.push((at / 2, row)),
            }
        }
        self.rows = rows;
    }

    /// Columns, and in `at` the points they belong to: a step need not be active at all times.
    pub(super) fn json(&self, step: u16) -> Value {
        let going_on = self.going_on();
        let rows = || self.rows.iter().chain(&going_on);
        let column = |figure: &dyn Fn(&StepRow) -> Value| -> Value {
            rows().map(|(_, row)| figure(row)).collect()
        };
        let mut told = Map::new();
        told.insert("step".into(), json!(step));
        told.insert("at".into(), rows().map(|(at, _)| json!(at)).collect());
        told.insert("ok".into(), column(&|row| json!(row.ok)));
        told.insert("failed".into(), column(&|row| json!(row.failed)));
        for (index, word) in step_times().enumerate() {
            told.insert(word.into(), column(&|row| number(row.times[index])));
        }
        told.insert("curve".into(), curve(&self.total));
        Value::Object(told)
    }
}

/// Names of the times in a step's point, in order.
pub(super) fn step_times() -> impl Iterator<Item = &'static str> {
    QUANTILES.iter().map(|it| it.plain()).chain(["max", "service_p99"])
}

impl StepRow {
    /// `None` without results.
    fn of(row: &StepInterval) -> Option<StepRow> {
        if row.count == 0 {
            return None;
        }
        let mut times = [None; QUANTILES.len() + 2];
        for (time, percentile) in times.iter_mut().zip(QUANTILES) {
            *time = micros(&row.latency, percentile.quantile());
        }
        times[QUANTILES.len()] = max(&row.latency);
        times[QUANTILES.len() + 1] = micros(row.service(), 0.99);
        Some(StepRow { ok: row.ok, failed: row.failed(), times })
    }

    fn fold(&mut self, later: &StepRow) {
        self.ok += later.ok;
        self.failed += later.failed;
        for (time, theirs) in self.times.iter_mut().zip(later.times) {
            *time = larger(*time, theirs);
        }
    }

    /// The column values: successful and failed attempts, and times.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Value> {
        let counts = [json!(self.ok), json!(self.failed)];
        counts.into_iter().chain(self.times.into_iter().map(number))
    }
}

/// The larger of two optional values.
pub(super) fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).map(|(one, other)| one.max(other)).or(one).or(other)
}

/// In microseconds, with three digits; `None` without values.
pub(super) fn micros(histogram: &Histogram, quantile: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| short(Duration::from_nanos(histogram.value_at(quantile))))
}

fn max(histogram: &Histogram) -> Option<f64> {
    (!histogram.is_empty()).then(|| short(Duration::from_nanos(histogram.max())))
}

/// Rounds to four digits, which is enough for a curve.
fn short(time: Duration) -> f64 {
    let micros = time.as_nanos() as f64 / 1e3;
    let scale = 10f64.powi(3 - micros.max(0.1).log10().floor() as i32);
    (micros * scale).round() / scale
}

/// A percentile curve: pairs of the share of longer attempts and the time in microseconds, as far
/// as there are enough attempts.
pub(super) fn curve(histogram: &Histogram) -> Value {
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
