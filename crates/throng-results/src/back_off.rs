//! Tracks which machines backed off during a run (`--back-off`), and how much of the load was
//! generated.

use throng_base::Said;

use crate::directory::RunInfo;
use crate::event::{Event, TEXT_CHARS_MAX};

/// Maximum number of steps kept in full.
const KEPT_MAX: usize = 50;

/// A machine reduces or restores its part of the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackOff {
    pub at_ns: u64,
    /// Index of the machine.
    pub machine: u16,
    /// The percentage of its part that it generates from then on.
    pub percent: u8,
    pub detail: Said,
}

/// The back-off steps of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackOffs {
    pub count: u64,
    /// The first steps.
    pub first: Vec<BackOff>,
    /// By machine: the first step, with the minimum percentage.
    pub machines: Vec<BackOff>,
    /// What machines with a full part generated; above 100 % while they replace others.
    whole: Made,
    /// Machines that have ever generated less.
    less: Vec<Less>,
}

/// A percentage of a part of the load over time.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    percent: f64,
    since_ns: u64,
    /// The sum before the last change, in percent times nanoseconds.
    sum: f64,
}

impl Default for Made {
    fn default() -> Made {
        Made { percent: 100.0, since_ns: 0, sum: 0.0 }
    }
}

impl Made {
    fn until(&self, ns: u64) -> f64 {
        self.sum + self.percent * ns.saturating_sub(self.since_ns) as f64
    }

    fn change(&mut self, ns: u64, percent: f64) {
        self.sum = self.until(ns);
        self.since_ns = self.since_ns.max(ns);
        self.percent = percent;
    }
}

/// What a machine generated that did not always generate its whole part.
#[derive(Clone, Debug, PartialEq)]
struct Less {
    machine: u16,
    /// What it generated at a reduced percentage; 0 at other times.
    made: Made,
    /// What the others generated while this machine was reduced.
    missed: f64,
    /// What the others had generated when this machine was reduced.
    since: Option<f64>,
}

impl BackOffs {
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::BackedOff { at_ns, machine, percent, detail } => {
                let (at_ns, machine, percent) = (*at_ns, *machine, *percent);
                let detail = detail.clone().shortened(TEXT_CHARS_MAX);
                self.add(BackOff { at_ns, machine, percent, detail });
            }
            Event::MachineLost { at_ns, machine, .. } => self.makes(*machine, *at_ns, 0),
            Event::Amended { at_ns, change, .. } => self.amended(*at_ns, change),
            _ => {}
        }
    }

    pub(crate) fn add(&mut self, step: BackOff) {
        self.count += 1;
        self.makes(step.machine, step.at_ns, step.percent);
        match self.machines.iter_mut().find(|known| known.machine == step.machine) {
            Some(known) => known.percent = known.percent.min(step.percent),
            None => self.machines.push(step.clone()),
        }
        if self.first.len() < KEPT_MAX {
            self.first.push(step);
        }
    }

    /// Sets the percentage of a machine's part; 0 if it is lost.
    fn makes(&mut self, machine: u16, at_ns: u64, percent: u8) {
        let place = self.less.iter().position(|known| known.machine == machine);
        let place = place.unwrap_or_else(|| {
            let made = Made { percent: 0.0, ..Made::default() };
            self.less.push(Less { machine, made, missed: 0.0, since: None });
            self.less.len() - 1
        });
        let (whole, less) = (self.whole.until(at_ns), &mut self.less[place]);
        less.missed += less.since.map_or(0.0, |since| whole - since);
        less.since = (percent < 100).then_some(whole);
        less.made.change(at_ns, if percent < 100 { f64::from(percent) } else { 0.0 });
    }

    /// A recorded load change: `redistribute` makes machines replace others.
    fn amended(&mut self, at_ns: u64, change: &str) {
        let times = change.strip_prefix("redistribute ").and_then(|times| times.parse().ok());
        if let Some(times) = times.filter(|times: &f64| (1.0..1e6).contains(times)) {
            self.whole.change(at_ns, times * 100.0);
        }
    }

    /// The share of the load generated up to this time, at most 1.
    pub fn generated(&self, info: &RunInfo, end_ns: u64) -> f64 {
        let whole = self.whole.until(end_ns);
        let of = |machine: usize| {
            let less = self.less.iter().find(|less| usize::from(less.machine) == machine);
            less.map_or(whole, |less| {
                let missed = less.missed + less.since.map_or(0.0, |since| whole - since);
                whole - missed + less.made.until(end_ns)
            })
        };
        let widths: Vec<u64> =
            info.generator.machines.iter().map(|machine| machine.part.width).collect();
        let widths = if widths.is_empty() { vec![1] } else { widths };
        let all = widths.iter().sum::<u64>() as f64;
        let parts = widths.iter().enumerate();
        let made: f64 = parts.map(|(nth, width)| *width as f64 * of(nth)).sum();
        match end_ns {
            0 => 1.0,
            _ => (made / all / (end_ns as f64 * 100.0)).min(1.0),
        }
    }
}

/// The name of a machine.
pub fn machine_name(info: &RunInfo, machine: u16) -> String {
    let own = info.generator.machines.get(usize::from(machine)).map(|machine| &machine.name);
    let name = own.or(info.generator.host.hostname.as_ref());
    name.cloned().unwrap_or_else(|| format!("machine {}", u32::from(machine) + 1))
}

#[cfg(test)]
mod tests {
    use throng_base::{LoadPart, Said};

    use super::*;
    use crate::directory::{GeneratorInfo, MachineInfo};

    fn step(at_s: u64, machine: u16, percent: u8) -> BackOff {
        BackOff { at_ns: at_s * 1_000_000_000, machine, percent, detail: Said::default() }
    }

    fn machines(widths: [u64; 2]) -> RunInfo {
        let machine = |width| MachineInfo {
            part: LoadPart { first: 0, width, of: 4 },
            ..MachineInfo::default()
        };
        let machines = widths.map(machine).to_vec();
        let generator = GeneratorInfo { machines, ..GeneratorInfo::default() };
        RunInfo { generator, ..RunInfo::default() }
    }

    #[test]
    fn generated_load_is_averaged_over_time_and_machines() {
        let alone = RunInfo::default();
        let mut steps = BackOffs::default();
        assert_eq!(steps.generated(&alone, 10_000_000_000), 1.0);
        // Half from 2 s on, a quarter from 4 s on, all from 8 s on.
        for step in [step(2, 0, 50), step(4, 0, 25), step(8, 0, 100)] {
            steps.add(step);
        }
        let generated = |end_s: u64| steps.generated(&alone, end_s * 1_000_000_000);
        assert_eq!([generated(8), generated(10)], [4.0 / 8.0, 6.0 / 10.0]);
        let two = machines([1, 3]);
        assert_eq!(steps.generated(&two, 10_000_000_000), (0.6 + 3.0) / 4.0);
    }

    #[test]
    fn redistributed_load_counts_as_generated() {
        let two = machines([1, 1]);
        let mut steps = BackOffs::default();
        steps.add(step(0, 0, 50));
        steps.amended(0, "redistribute 1.50");
        steps.amended(0, "times 1.1");
        assert_eq!(steps.generated(&two, 10_000_000_000), 1.0);
        // The machine is lost, and no other replaces it.
        steps.makes(0, 5_000_000_000, 0);
        assert_eq!(steps.generated(&two, 10_000_000_000), (0.25 + 1.5) / 2.0);
    }
}
