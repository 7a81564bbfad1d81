//! The state of each machine, because a problem of one machine can vanish in the total.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_metrics::{Histogram, Interval, Merge as _};

use crate::directory::RunInfo;
use crate::summary::{Generator, HOST_CPU_BUSY, LATENESS_NS_MAX, MachineRow};

/// By machine; empty for a single machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Machines(Vec<Machine>);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Machine {
    /// When and how it was lost.
    lost: Option<(u64, Said)>,
    shards: u16,
    /// Only the generator's own figures.
    sum: Interval,
    attempts: u64,
    host_cpu_sum: f64,
    readings: u64,
    host_busy_from: Option<u64>,
    seconds: u64,
    late_seconds: u64,
    /// The current second, and the lateness in it.
    second: Option<(u64, Histogram)>,
}

impl Machines {
    pub(super) fn new(info: &RunInfo) -> Machines {
        let count = info.generator.machines.len();
        Machines(vec![Machine::default(); if count > 1 { count } else { 0 }])
    }

    /// Adds an interval of a measured phase; each machine's intervals are in order.
    pub(super) fn add(&mut self, interval: &Interval) {
        let Some(machine) = self.0.get_mut(usize::from(interval.machine)) else { return };
        machine.shards = machine.shards.max(interval.shards);
        machine.sum.generator.merge(&interval.generator);
        machine.attempts += interval.steps.iter().map(|row| row.count).sum::<u64>();
        if let Some(resources) = &interval.generator.resources {
            machine.host_cpu_sum += resources.host_cpu;
            machine.readings += 1;
            if resources.host_cpu >= HOST_CPU_BUSY {
                machine.host_busy_from.get_or_insert(interval.second);
            }
        }
        match &mut machine.second {
            Some((second, lateness)) if *second == interval.second => {
                lateness.merge(&interval.generator.lateness);
            }
            _ => {
                machine.end_second();
                machine.second = Some((interval.second, interval.generator.lateness.clone()));
            }
        }
    }

    pub(super) fn lost(&mut self, machine: u16, at_ns: u64, detail: &Said) {
        if let Some(machine) = self.0.get_mut(usize::from(machine)) {
            machine.lost.get_or_insert((at_ns, detail.clone()));
        }
    }

    /// Whether no machine was lost, so that every attempt has an end.
    pub(super) fn are_all_there(&self) -> bool {
        self.0.iter().all(|machine| machine.lost.is_none())
    }

    /// The sum of the peak memory of all machines.
    pub(super) fn memory_bytes(&self) -> u64 {
        let resources =
            self.0.iter().filter_map(|machine| machine.sum.generator.resources.as_ref());
        resources.map(|it| it.memory_bytes).sum()
    }

    /// The shards of all machines; `most` is the number on the machine with the most.
    pub(super) fn shards(&self, most: u16) -> u64 {
        let all: u64 = self.0.iter().map(|machine| u64::from(machine.shards)).sum();
        all.max(u64::from(most)).max(1)
    }

    pub(super) fn rows(&mut self, info: &RunInfo, measured: Duration) -> Vec<MachineRow> {
        let row = |(machine, info): (&mut Machine, &crate::directory::MachineInfo)| {
            machine.end_second();
            let name = info.name.clone();
            let (generator, lost) = (machine.generator(measured), machine.lost.take());
            MachineRow { name, shards: info.shards, generator, lost }
        };
        self.0.iter_mut().zip(&info.generator.machines).map(row).collect()
    }
}

impl Machine {
    fn end_second(&mut self) {
        let Some((_, lateness)) = self.second.take() else { return };
        self.seconds += 1;
        self.late_seconds += u64::from(lateness.value_at(0.99) > LATENESS_NS_MAX);
    }

    fn generator(&self, measured: Duration) -> Generator {
        Generator {
            late_seconds: self.late_seconds,
            seconds: self.seconds,
            host_cpu_mean: self.host_cpu_sum / self.readings.max(1) as f64,
            host_busy_from: self.host_busy_from,
            ..Generator::of(&self.sum.generator, self.shards.into(), self.attempts, measured)
        }
    }
}
