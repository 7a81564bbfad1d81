//! The data of a live page: all columns so far, and one more second at a time. Memory is limited:
//! if there are too many points, pairs are merged. A percentile of a pair is then the larger one;
//! sums stay exact. The final report is made from the run directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use throng_metrics::{Histogram, Interval};

use super::monitors::Monitored;
use super::renderings::Renderings;
use super::series::{
    COLUMNS, FIGURES, HEAT_COLUMNS, Point, PointRow, StepSeries, TIMES, columns, curve, heat_json,
    heat_rows, step_times,
};
use super::tables::tables;
use super::{EVENTS_MAX, names, number, picture, told};
use crate::collector::Collector;
use crate::directory::RunInfo;
use crate::event::Event;
use crate::json::summary_json;
use crate::summary::{Attempts, Summary};

/// Points of all steps together: an hour in seconds, then coarser.
const POINTS_MAX: usize = 3_600;
/// Maximum number of values of all steps, and minimum number of points per step.
const NUMBERS_MAX: u64 = 200_000;
const STEP_POINTS_MIN: u64 = 60;

/// The state of a live page.
pub struct LivePage {
    info: Arc<RunInfo>,
    attempts: Attempts,
    collector: Collector,
    width_s: u64,
    rows: Vec<PointRow>,
    /// The current point, after the rows.
    point: Point,
    step_width_s: u64,
    step_points_max: u64,
    steps: BTreeMap<u16, StepSeries>,
    heat_s: u64,
    heat: BTreeMap<(usize, u32), u64>,
    total: Histogram,
    monitors: Monitored,
    events: Vec<Value>,
    /// Renderings of the events.
    renderings: Renderings,
    /// Seconds that have started.
    seconds: u64,
}

impl LivePage {
    pub fn new(info: Arc<RunInfo>) -> LivePage {
        let of_step = NUMBERS_MAX / COLUMNS / (info.tables.steps.len() as u64).max(1);
        LivePage {
            attempts: Attempts::new(&info),
            collector: Collector::new(&info),
            info,
            width_s: 1,
            rows: Vec::new(),
            point: Point::default(),
            step_width_s: 1,
            step_points_max: of_step.clamp(STEP_POINTS_MIN, POINTS_MAX as u64),
            steps: BTreeMap::new(),
            heat_s: 1,
            heat: BTreeMap::new(),
            total: Histogram::new(),
            monitors: Monitored::new(POINTS_MAX, 1),
            events: Vec::new(),
            renderings: Renderings::default(),
            seconds: 0,
        }
    }

    /// Adds a line. Returns true if points were merged, so that all data must be sent again.
    pub fn line(&mut self, interval: Interval) -> bool {
        self.collector.interval(&interval);
        let second = interval.second;
        let widths = (self.width_s, self.step_width_s);
        while second / self.width_s >= POINTS_MAX as u64 {
            self.fold();
        }
        while second / self.step_width_s >= self.step_points_max {
            self.step_width_s *= 2;
            self.steps.values_mut().for_each(StepSeries::fold);
        }
        let at = (second / self.width_s) as usize;
        while self.rows.len() < at {
            self.rows.push(PointRow::of(&std::mem::take(&mut self.point)));
        }
        self.seconds = self.seconds.max(second + 1);
        self.add(interval);
        widths != (self.width_s, self.step_width_s)
    }

    /// Adds to the current point, even if the interval is late.
    fn add(&mut self, mut interval: Interval) {
        let phase = self.info.tables.phases.get(usize::from(interval.phase));
        let measured = phase.is_none_or(|phase| phase.measured);
        let load = phase.map_or(0, |phase| phase.load);
        let total = self.attempts.total(&interval);
        let steps = std::mem::take(&mut interval.steps);
        let place = interval.second.max(self.seconds - 1);
        for row in &steps {
            self.steps.entry(row.step).or_default().add(place / self.step_width_s, row, measured);
        }
        while place / self.heat_s >= HEAT_COLUMNS as u64 {
            self.heat_s *= 2;
            for ((column, row), count) in std::mem::take(&mut self.heat) {
                *self.heat.entry((column / 2, row)).or_default() += count;
            }
        }
        for (row, count) in heat_rows(&total.latency) {
            *self.heat.entry(((place / self.heat_s) as usize, row)).or_default() += count;
        }
        if measured {
            self.total.merge(&total.latency);
        }
        self.point.add(load, &interval, &total);
    }

    fn fold(&mut self) {
        self.rows.push(PointRow::of(&std::mem::take(&mut self.point)));
        self.width_s *= 2;
        self.monitors.fold();
        let pairs = self.rows.chunks(2).map(|pair| match pair {
            [one, later] => one.folded(later),
            rest => rest.first().cloned().unwrap_or_default(),
        });
        self.rows = pairs.collect();
    }

    /// Processes an event. Returns what the page shows immediately, by the name of the message:
    /// events on the time axis, and readings of monitors.
    pub fn event(&mut self, event: &Event) -> Vec<(&'static str, Value)> {
        self.collector.event(event);
        let mut messages = Vec::new();
        let changed = self.monitors.take(event);
        if !changed.is_empty() {
            let readings = changed.iter().filter_map(|place| self.monitors.reading(place));
            messages.push(("readings", readings.collect()));
        }
        if let Some(mut told) = told(event).filter(|_| self.events.len() < EVENTS_MAX) {
            self.events.push(told.clone());
            self.renderings.event(event);
            let mut own = Renderings::default();
            own.event(event);
            told["renderings"] = own.json();
            messages.push(("event", told));
        }
        messages
    }

    /// The change by the last second: one point per column.
    pub fn second(&self) -> Value {
        let row = PointRow::of(&self.point);
        let mut renderings = Renderings::default();
        row.rendered(&mut renderings);
        let figures = FIGURES.iter().zip(&row.figures);
        let times = TIMES.iter().zip(&row.times);
        let object = |(figure, value): (&super::series::Figure, &Option<f64>)| {
            (figure.name.to_string(), number(*value))
        };
        let stages = row.stages.iter().map(|(stage, p99)| json!([stage.word(), number(*p99)]));
        let errors = row
            .errors
            .iter()
            .map(|(cause, count)| json!([cause.word(), cause.text().english(), count]));
        let at = (self.seconds.saturating_sub(1)) / self.step_width_s;
        let steps = self.steps.iter().filter_map(|(step, it)| {
            let (_, row) = it.going_on().filter(|(place, _)| *place == at)?;
            Some(std::iter::once(json!(step)).chain(row.numbers()).collect::<Value>())
        });
        json!({
            "at": self.rows.len(),
            "seconds": self.seconds,
            "figures": Value::Object(figures.map(object).collect::<Map<_, _>>()),
            "times": Value::Object(times.map(object).collect::<Map<_, _>>()),
            "errors": errors.collect::<Value>(),
            "stages": stages.collect::<Value>(),
            "renderings": renderings.json(),
            "step_at": at,
            "steps": steps.collect::<Value>(),
        })
    }

    /// The data of the tables and of curves without a time axis.
    pub fn figures(&self) -> Value {
        let steps = self.steps.iter().map(|(step, it)| json!([step, curve(&it.total)]));
        let summary = self.summary();
        json!({
            "summary": summary_json(&summary),
            "requests": summary.only_requests(),
            "renderings": self.renderings(&summary).json(),
            "tables": tables(&summary),
            "curve": curve(&self.total),
            "curves": steps.collect::<Value>(),
            "heat": heat_json((self.heat_s / self.width_s) as usize, self.heat.clone()),
            "picture": picture(&summary),
        })
    }

    fn summary(&self) -> Summary {
        self.collector.clone().finish((*self.info).clone())
    }

    fn renderings(&self, summary: &Summary) -> Renderings {
        let mut all = self.renderings.clone();
        all.extend(Renderings::of(summary));
        all
    }

    /// All data of the page.
    pub fn all(&self) -> Value {
        let mut rows = self.rows.clone();
        rows.push(PointRow::of(&self.point));
        let mut series = columns(&rows);
        series.insert("width_s".into(), json!(self.width_s));
        series.insert("step_width_s".into(), json!(self.step_width_s));
        series.insert("step_times".into(), step_times().collect());
        let steps = self.steps.iter().map(|(step, it)| it.json(*step));
        series.insert("steps".into(), steps.collect());
        series.insert("curve".into(), curve(&self.total));
        let heat = heat_json((self.heat_s / self.width_s) as usize, self.heat.clone());
        series.insert("heat".into(), heat);
        let summary = self.summary();
        let mut renderings = self.renderings(&summary);
        // The summary contains no causes of warm-ups.
        rows.iter().for_each(|row| row.rendered(&mut renderings));
        json!({
            "language": throng_base::language::spoken().word(),
            "live": true,
            "seconds": self.seconds,
            "summary": summary_json(&summary),
            "requests": summary.only_requests(),
            "renderings": renderings.json(),
            "tables": tables(&summary),
            "names": names(&self.info),
            "series": series,
            "picture": picture(&summary),
            "monitors": self.monitors.json(rows.len()),
            "events": self.events,
            "scenario": "",
        })
    }
}

#[cfg(test)]
mod tests;
