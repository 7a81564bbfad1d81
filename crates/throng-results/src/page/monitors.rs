//! Series of monitors over time, in columns at the points of the run: the mean of the readings in
//! each point.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::event::Event;
use crate::monitors::Readings;

/// Maximum number of values of all series. Of a long run, the first series are shown; tables have
/// all.
const NUMBERS_MAX: usize = 100_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A point of a series.
pub(super) struct Place {
    monitor: u16,
    number: u16,
    point: usize,
}

/// The series of all monitors.
#[derive(Default)]
pub(super) struct Monitored {
    points_max: usize,
    width_s: u64,
    readings: Readings,
    /// By monitor and number: the sum and the count of readings per point.
    columns: BTreeMap<(u16, u16), BTreeMap<usize, (f64, u64)>>,
}

impl Monitored {
    /// `points_max` points of `width_s` seconds each.
    pub(super) fn new(points_max: usize, width_s: u64) -> Monitored {
        Monitored { points_max, width_s, ..Monitored::default() }
    }

    /// The points that changed.
    pub(super) fn take(&mut self, event: &Event) -> Vec<Place> {
        let mut changed = Vec::new();
        let figures = self.readings.take(event);
        let Event::Scrape { at_ns, monitor, .. } = event else { return changed };
        let Ok(point) = usize::try_from(at_ns / SECOND_NS / self.width_s) else { return changed };
        let columns_max = NUMBERS_MAX / self.points_max.max(1);
        for (number, figure) in figures.into_iter().filter(|_| point < self.points_max) {
            let key = (*monitor, number);
            if self.columns.len() < columns_max || self.columns.contains_key(&key) {
                let cell = self.columns.entry(key).or_default().entry(point).or_default();
                *cell = (cell.0 + figure, cell.1 + 1);
                changed.push(Place { monitor: *monitor, number, point });
            }
        }
        changed
    }

    /// Merges pairs of points.
    pub(super) fn fold(&mut self) {
        self.width_s *= 2;
        for cells in self.columns.values_mut() {
            let mut folded: BTreeMap<usize, (f64, u64)> = BTreeMap::new();
            for (point, (sum, count)) in std::mem::take(cells) {
                let cell = folded.entry(point / 2).or_default();
                *cell = (cell.0 + sum, cell.1 + count);
            }
            *cells = folded;
        }
    }

    /// A point with its series and its mean.
    pub(super) fn reading(&self, place: &Place) -> Option<Value> {
        let key = (place.monitor, place.number);
        let (sum, count) = self.columns.get(&key)?.get(&place.point)?;
        let known = self.readings.known().get(&key)?;
        Some(json!({
            "monitor": place.monitor,
            "number": place.number,
            "name": known.name,
            "counter": known.counter,
            "at": place.point,
            "value": short(sum / *count as f64),
        }))
    }

    /// By source and series, as in the summary. Columns have `points` values.
    pub(super) fn json(&self, points: usize) -> Value {
        let column = |cells: &BTreeMap<usize, (f64, u64)>| -> Value {
            let cell = |point: usize| cells.get(&point).map(|(sum, count)| sum / *count as f64);
            (0..points).map(|point| json!(cell(point).map(short))).collect()
        };
        let one = |(key, cells): (&(u16, u16), _)| {
            let known = self.readings.known().get(key)?;
            Some(json!({
                "monitor": key.0,
                "number": key.1,
                "name": known.name,
                "counter": known.counter,
                "values": column(cells),
            }))
        };
        self.columns.iter().filter_map(one).collect()
    }
}

/// Rounds to six digits.
fn short(figure: f64) -> f64 {
    format!("{figure:.5e}").parse().unwrap_or(figure)
}
