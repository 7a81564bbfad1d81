//! Processors and memory used by the target over time: by the processes that its monitor watches,
//! or by its whole host. Dividing the processors by the attempts per second gives the CPU time per
//! attempt (utilization law: U = X D).

use std::collections::BTreeMap;

use throng_metrics::host;

use super::{Known, Sight};

/// Maximum per monitor; beyond it, pairs are merged.
const READINGS_MAX: usize = 20_000;
/// Minimum share of a level that readings must cover.
const COVERED_MIN: f64 = 0.5;

/// The target's usage by all monitors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy {
    /// By monitor.
    sources: BTreeMap<u16, Source>,
}

#[derive(Clone, Debug, Default)]
struct Source {
    last_ns: Option<u64>,
    /// The memory in the first reading that contains it.
    first_bytes: Option<f64>,
    readings: Vec<Reading>,
}

/// Average number of busy processors between two times, and the memory in use at the end.
#[derive(Clone, Copy, Debug)]
struct Reading {
    from_ns: u64,
    to_ns: u64,
    cores: f64,
    bytes: Option<f64>,
    /// Usage of the whole host instead of watched processes.
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
        let (mut host, mut processes) = (Used::default(), Used::default());
        for (number, figure) in figures {
            let Some(known) = known.get(&(monitor, *number)) else { continue };
            match host::base(&known.name) {
                host::RESIDENT => *processes.bytes.get_or_insert(0.0) += figure,
                host::MEMORY => *host.bytes.get_or_insert(0.0) += figure,
                host::AVAILABLE => *host.bytes.get_or_insert(0.0) -= figure,
                _ if known.sight == Sight::Process => {
                    *processes.cores.get_or_insert(0.0) += figure;
                }
                _ if known.sight == Sight::Works => *host.cores.get_or_insert(0.0) += figure,
                _ => {}
            }
        }
        let source = self.sources.entry(monitor).or_default();
        let from_ns = source.last_ns.replace(at_ns);
        let is_host = processes == Used::default();
        let used = if is_host { host } else { processes };
        source.first_bytes = source.first_bytes.or(used.bytes);
        if let (Some(from_ns), Some(cores)) = (from_ns, used.cores) {
            let bytes = used.bytes;
            source.readings.push(Reading { from_ns, to_ns: at_ns, cores, bytes, is_host });
            if source.readings.len() > READINGS_MAX {
                source.readings = source.readings.chunks(2).map(joined).collect();
            }
        }
    }

    /// Average number of busy processors between two times, summed over all sources. A host that
    /// also generates load counts only with its watched processes.
    pub(crate) fn cores(&self, (from_ns, to_ns): (u64, u64), is_shared: bool) -> Option<f64> {
        let of = |source: &Source| {
            let is_inside = |it: &&Reading| it.from_ns >= from_ns;
            let inside: Vec<&Reading> =
                source.ended((from_ns, to_ns), is_shared).filter(is_inside).collect();
            let time: f64 = inside.iter().map(|it| it.seconds()).sum();
            let work: f64 = inside.iter().map(|it| it.cores * it.seconds()).sum();
            let is_enough = time * 1e9 >= to_ns.saturating_sub(from_ns) as f64 * COVERED_MIN;
            (time > 0.0 && is_enough).then(|| work / time)
        };
        self.sources.values().filter_map(of).reduce(|sum, cores| sum + cores)
    }

    /// The memory in use at the end of a time span, summed over all sources, and its growth since
    /// the first reading.
    pub(crate) fn memory(&self, span: (u64, u64), is_shared: bool) -> Option<(f64, f64)> {
        let of = |source: &Source| {
            let last = source.ended(span, is_shared).filter_map(|it| it.bytes).next_back()?;
            Some((last, last - source.first_bytes?))
        };
        let sum = |one: (f64, f64), other: (f64, f64)| (one.0 + other.0, one.1 + other.1);
        self.sources.values().filter_map(of).reduce(sum)
    }
}

/// Usage as far as the source reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Used {
    cores: Option<f64>,
    bytes: Option<f64>,
}

impl Source {
    /// The readings that end in a time span. Readings of a host that also generates load do not
    /// count.
    fn ended(
        &self,
        (from_ns, to_ns): (u64, u64),
        is_shared: bool,
    ) -> impl DoubleEndedIterator<Item = &Reading> {
        let has_ended = move |it: &&Reading| {
            it.to_ns >= from_ns && it.to_ns <= to_ns && !(is_shared && it.is_host)
        };
        self.readings.iter().filter(has_ended)
    }
}

impl Reading {
    fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}

/// Merges consecutive readings, at least one.
fn joined(pair: &[Reading]) -> Reading {
    let (first, last) = (pair[0], pair[pair.len() - 1]);
    let seconds: f64 = pair.iter().map(Reading::seconds).sum();
    let work: f64 = pair.iter().map(|it| it.cores * it.seconds()).sum();
    let cores = if seconds > 0.0 { work / seconds } else { first.cores };
    Reading { to_ns: last.to_ns, cores, bytes: last.bytes, ..first }
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
    fn a_level_has_the_readings_within_it() {
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
    fn memory_growth_counts_from_the_first_reading() {
        let names = ["throng_process_resident_bytes{name=\"im\"}", "node_memory_MemTotal_bytes"];
        let names = [names[0], names[1], "node_memory_MemAvailable_bytes"];
        let names = known(&[&names[..], &["node_cpu_seconds_total{mode=\"user\"}"]].concat());
        let cpu = "throng_process_cpu_seconds_total{name=\"im\",mode=\"user\"}";
        let (mut processes, mut host) = (Busy::default(), Busy::default());
        let process = |(number, name): (u16, &str)| {
            let sight = Sight::of(name);
            ((0, number), Known { name: name.to_string(), sight, ..Known::default() })
        };
        let own = [(0, names[&(0, 0)].name.as_str()), (1, cpu)].map(process).into();
        for second in 0..20u64 {
            let used = 1e6 + second as f64 * 1e3;
            processes.add(0, second * SECOND_NS, &[(0, used), (1, 1.0)], &own);
            host.add(0, second * SECOND_NS, &[(1, 9e6), (2, 9e6 - used), (3, 1.0)], &names);
        }
        for (busy, is_shared) in [(&processes, true), (&processes, false), (&host, false)] {
            let memory = |from, to| busy.memory((from * SECOND_NS, to * SECOND_NS), is_shared);
            assert_eq!(memory(0, 10), Some((1_010e3, 10e3)));
            assert_eq!(memory(10, 19), Some((1_019e3, 19e3)));
            assert_eq!(memory(20, 30), None);
        }
        assert_eq!(host.memory((0, 10 * SECOND_NS), true), None);
    }

    #[test]
    fn watched_processes_replace_the_host_and_many_readings_are_merged() {
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
