//! The measured seconds of a run, merged to a limited number of equal units, so that a day fits in
//! memory.

use std::collections::BTreeMap;

use throng_metrics::{Histogram, Interval, Merge as _, Stage, merged};

use crate::directory::RunInfo;

/// At this number, the length of units is doubled.
const UNITS_MAX: usize = 120;

/// The subject of a compared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// These steps together, by index.
    Steps(Vec<u16>),
    Connect,
    /// The generator and its attempts at these steps.
    Generator(Vec<u16>),
}

merged! {
    /// The results of a row in one unit.
    #[derive(Clone, Debug, Default)]
    pub(super) struct Cell {
        pub(super) count: u64 => Sum,
        pub(super) ok: u64 => Sum,
        pub(super) in_time: u64 => Sum,
        /// Of the generator.
        pub(super) cpu_ns: u64 => Sum,
        pub(super) latency: Histogram => Sum,
    }
}

/// The results of one unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    steps: BTreeMap<u16, Cell>,
    connect: Cell,
    pub(super) cpu_ns: u64,
}

impl Unit {
    /// Adds the results of an interval without its host resources.
    pub(super) fn add(&mut self, interval: &Interval) {
        for row in &interval.steps {
            let cell = self.steps.entry(row.step).or_default();
            (cell.count, cell.ok) = (cell.count + row.count, cell.ok + row.ok);
            cell.in_time += row.ok_in_time();
            cell.latency.merge(&row.latency);
        }
        if let Some(stage) = interval.stage(Stage::Connect) {
            self.connect.count += stage.ok + stage.failed;
            self.connect.ok += stage.ok;
            self.connect.in_time += stage.ok;
            self.connect.latency.merge(&stage.latency);
        }
    }

    /// The results of the subject.
    pub(super) fn cell(&self, subject: &Subject) -> Cell {
        match subject {
            Subject::Connect => self.connect.clone(),
            Subject::Steps(steps) => self.sum(steps),
            Subject::Generator(attempts) => Cell { cpu_ns: self.cpu_ns, ..self.sum(attempts) },
        }
    }

    fn sum(&self, steps: &[u16]) -> Cell {
        let mut sum = Cell::default();
        steps.iter().filter_map(|step| self.steps.get(step)).for_each(|one| sum.merge(one));
        sum
    }

    pub(super) fn merge(&mut self, other: &Unit) {
        for (step, cell) in &other.steps {
            self.steps.entry(*step).or_default().merge(cell);
        }
        self.connect.merge(&other.connect);
        self.cpu_ns += other.cpu_ns;
    }
}

#[derive(Debug)]
pub(super) struct Units {
    /// By phase: whether it is measured.
    measured: Vec<bool>,
    /// The length of a unit in seconds.
    pub(super) width: u64,
    /// By number; unmeasured phases have none.
    units: BTreeMap<u64, Unit>,
}

impl Units {
    pub(super) fn new(info: &RunInfo) -> Units {
        let measured = info.tables.phases.iter().map(|phase| phase.measured).collect();
        Units { measured, width: 1, units: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, interval: &Interval) {
        // Lines without a known phase count toward the last, as in the summary.
        let last = self.measured.len().saturating_sub(1);
        let phase = usize::from(interval.phase).min(last);
        if !self.measured.get(phase).copied().unwrap_or(true) {
            return;
        }
        let unit = self.units.entry(interval.second / self.width).or_default();
        unit.add(interval);
        if let Some(own) = &interval.generator.resources {
            unit.cpu_ns += own.cpu.time_ns();
        }
        while self.units.len() > UNITS_MAX {
            self.width *= 2;
            for (number, unit) in std::mem::take(&mut self.units) {
                self.units.entry(number / 2).or_default().merge(&unit);
            }
        }
    }

    /// Whether the step has results.
    pub(super) fn holds(&self, step: u16) -> bool {
        self.units.values().any(|unit| unit.steps.get(&step).is_some_and(|cell| cell.count > 0))
    }

    /// The sum over the measured time.
    pub(super) fn whole(&self, subject: &Subject) -> Cell {
        let mut whole = Cell::default();
        self.units.values().for_each(|unit| whole.merge(&unit.cell(subject)));
        whole
    }

    /// In the order of time, without the first and the last unit, which are incomplete.
    pub(super) fn inner(&self, subject: &Subject) -> Vec<Cell> {
        let inner = self.units.len().saturating_sub(2);
        self.units.values().skip(1).take(inner).map(|unit| unit.cell(subject)).collect()
    }
}
