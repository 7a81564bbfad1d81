//! Evaluates conditions on monitors during a run.

use std::collections::{BTreeMap, VecDeque};

use throng_metrics::{Measure, Monitored, Subject, Threshold};

use super::MonitorRow;

/// The readings in the window of a condition.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    monitored: Monitored,
    measure: Measure,
    seconds: u64,
    /// By monitor: times and values.
    seen: BTreeMap<u16, VecDeque<(u64, f64)>>,
}

impl Watch {
    /// `None` if the condition does not concern monitors.
    pub(crate) fn new(condition: &Threshold) -> Option<Watch> {
        let Subject::Monitored(monitored) = &condition.subject else { return None };
        let (measure, seconds) = (condition.measure, condition.over_s.max(1));
        Some(Watch { monitored: monitored.clone(), measure, seconds, seen: BTreeMap::new() })
    }

    /// A monitor was read, or could not be read.
    pub(crate) fn see(&mut self, source: u16, row: Option<&MonitorRow>, second: u64) {
        let is_meant = |row: &&MonitorRow| {
            self.monitored.source.is_empty() || row.name == self.monitored.source
        };
        let Some(row) = row else {
            self.seen.remove(&source);
            return;
        };
        let figure = Some(row).filter(is_meant);
        let figure = figure.and_then(|row| row.figure(&self.monitored.figure, Measure::Mean));
        let Some(figure) = figure else { return };
        let seen = self.seen.entry(source).or_default();
        seen.push_back((second, figure));
        while seen.front().is_some_and(|(at, _)| at + self.seconds <= second) {
            seen.pop_front();
        }
    }

    /// The value of the monitor that satisfies the condition best; `None` without readings.
    pub(crate) fn figure(&self, condition: &Threshold) -> Option<f64> {
        let figures = self.seen.values().filter_map(|seen| {
            let figures = seen.iter().map(|(_, figure)| *figure);
            match self.measure {
                Measure::Min => figures.reduce(f64::min),
                Measure::Max => figures.reduce(f64::max),
                _ => Some(figures.sum::<f64>() / seen.len().max(1) as f64),
            }
        });
        figures.reduce(|one, other| if condition.holds(other) { other } else { one })
    }
}
