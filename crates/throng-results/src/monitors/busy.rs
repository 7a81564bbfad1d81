//! Processors that worked for the target, over time: those of the processes that its monitor
//! watches, or of its whole host. Divided by the attempts per second it is the CPU time of an
//! attempt (the utilisation law: U = X D).

use std::collections::BTreeMap;

use super::{Known, Sight};

/// Of a source; above it, two become one.
const READINGS_MAX: usize = 20_000;
/// Of this much of a level there must be readings.
const COVERED_MIN: f64 = 0.5;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy {
    /// By their monitor.
    sources: BTreeMap<u16, Source>,
}

#[derive(Clone, Debug, Default)]
struct Source {
    last_ns: Option<u64>,
    readings: Vec<Reading>,
}

/// Processors that worked from one moment to another.
#[derive(Clone, Copy, Debug)]
struct Reading {
    from_ns: u64,
    to_ns: u64,
    cores: f64,
    /// All of the host, and not only watched processes.
    is_host: bool,
}

impl Busy {
    pub(super) fn add(
        &mut self,
        monitor: u16,
        at_ns: u64,
        figures: &[(u16, f64)],
        known: &BTreeMap<(u16, u16), Known>,
    ) {
        let (mut host, mut processes) = (None, None);
        for (number, figure) in figures {
            match known.get(&(monitor, *number)).map(|known| known.sight) {
                Some(Sight::Process) => *processes.get_or_insert(0.0) += figure,
                Some(Sight::Works) => *host.get_or_insert(0.0) += figure,
                _ => {}
            }
        }
        let source = self.sources.entry(monitor).or_default();
        let from_ns = source.last_ns.replace(at_ns);
        if let (Some(from_ns), Some(cores)) = (from_ns, processes.or(host)) {
            let is_host = processes.is_none();
            source.readings.push(Reading { from_ns, to_ns: at_ns, cores, is_host });
            if source.readings.len() > READINGS_MAX {
                source.readings = source.readings.chunks(2).map(joined).collect();
            }
        }
    }

    /// Processors that worked between two moments, on average, for all sources together. A host
    /// that generates the load, too, tells only of its watched processes.
    pub(crate) fn cores(&self, (from_ns, to_ns): (u64, u64), is_shared: bool) -> Option<f64> {
        let of = |source: &Source| {
            let is_inside = |it: &&Reading| {
                it.from_ns >= from_ns && it.to_ns <= to_ns && !(is_shared && it.is_host)
            };
            let inside: Vec<&Reading> = source.readings.iter().filter(is_inside).collect();
            let time: f64 = inside.iter().map(|it| it.seconds()).sum();
            let work: f64 = inside.iter().map(|it| it.cores * it.seconds()).sum();
            let is_enough = time * 1e9 >= to_ns.saturating_sub(from_ns) as f64 * COVERED_MIN;
            (time > 0.0 && is_enough).then(|| work / time)
        };
        self.sources.values().filter_map(of).reduce(|sum, cores| sum + cores)
    }
}

impl Reading {
    fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}

/// Of neighbours, which are at least one.
fn joined(pair: &[Reading]) -> Reading {
    let (first, last) = (pair[0], pair[pair.len() - 1]);
    let seconds: f64 = pair.iter().map(Reading::seconds).sum();
    let work: f64 = pair.iter().map(|it| it.cores * it.seconds()).sum();
    let cores = if seconds > 0.0 { work / seconds } else { first.cores };
    Reading { to_ns: last.to_ns, cores, ..first }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn known(names: &[&str]) -> BTreeMap<(u16, u16), Known> {
        let one = |(number, name): (u16, &&str)| {
            ((0, number), {
                let (name, sight) = ((*name).to_string(), Sight::of(name));
                Known { name, sight, counter: true, ..Known::default() }
            })
        };
        (0..).zip(names).map(one).collect()
    }

    #[test]
    fn a_level_has_the_readings_that_lie_in_it() {
        let known = known(&[
            "node_cpu_seconds_total{mode=\"user\"}",
            "node_cpu_seconds_total{mode=\"idle\"}",
        ]);
        let mut busy = Busy::default();
        for second in 0..20 {
            let cores = if second <= 10 { 1.0 } else { 3.0 };
            busy.add(0, second * SECOND_NS, &[(0, cores), (1, 4.0 - cores)], &known);
        }
        let cores = |from: u64, to: u64, is_shared| {
            busy.cores((from * SECOND_NS + 1, to * SECOND_NS), is_shared)
        };
        assert_eq!(cores(0, 10, false), Some(1.0));
        assert_eq!(cores(10, 19, false), Some(3.0));
        assert_eq!(cores(5, 15, false).map(|it| (it * 10.0).round()), Some(21.0));
        assert_eq!(cores(0, 10, true), None, "the load is generated there, too");
        assert_eq!(cores(15, 60, false), None, "most of it has no reading");
    }

    #[test]
    fn watched_processes_count_instead_of_the_host_and_many_readings_are_joined() {
        let known = known(&[
            "node_cpu_seconds_total{mode=\"user\"}",
            "throng_process_cpu_seconds_total{name=\"nginx\",mode=\"user\"}",
        ]);
        let mut busy = Busy::default();
        let many = READINGS_MAX as u64 * 3;
        for second in 0..many {
            busy.add(0, second * SECOND_NS, &[(0, 4.0), (1, 1.5)], &known);
        }
        assert!(busy.sources[&0].readings.len() <= READINGS_MAX);
        assert_eq!(busy.cores((0, many * SECOND_NS), true), Some(1.5));
    }
}
