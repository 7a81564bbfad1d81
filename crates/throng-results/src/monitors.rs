//! Series of monitors during a run. Gauges are reported as read, and counters as their increase per
//! second.

mod busy;
pub(crate) mod watch;

use std::collections::BTreeMap;

use serde::Serialize;
use throng_base::Said;
use throng_metrics::host::{self, MODES, PROCESS, PROCESSORS, Series};
use throng_metrics::{HostFigure, Measure, Monitored, Threshold, Verdict};
use throng_why::{BUSY, Watched};

use crate::directory::{MonitorInfo, RunInfo};
use crate::event::Event;
pub(crate) use busy::Busy;

/// Maximum per monitor, because a run directory can contain anything.
const SERIES_MAX: u16 = 1_000;

/// Maximum number of points per series kept for findings; beyond it, pairs are merged.
const POINTS_MAX: usize = 4_096;

fn keep(points: &mut Vec<(f64, f64)>, point: (f64, f64), is_counter: bool) {
    if points.len() >= POINTS_MAX {
        // For a gauge, keep the larger value, which is closer to a limit. A counter's increases are
        // averaged.
        let one = |pair: &[(f64, f64)]| {
            let values = pair.iter().map(|it| it.1);
            let value = match is_counter {
                true => values.sum::<f64>() / pair.len() as f64,
                false => values.fold(0.0, f64::max),
            };
            (pair[pair.len() - 1].0, value)
        };
        *points = points.chunks(2).map(one).collect();
    }
    points.push(point);
}

/// The results of a monitor.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MonitorRow {
    pub name: String,
    pub url: String,
    /// The machine that read it, if there are several.
    pub machine: Option<String>,
    /// Successful and failed readings.
    pub read: u64,
    pub failed: u64,
    /// The most recent reason.
    #[serde(skip)]
    pub trouble: Option<Said>,
    /// Maximum number of matching series that were not kept.
    pub left_out: u64,
    pub series: Vec<SeriesRow>,
}

/// Values of a series in measured phases. The count is 0 if there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesRow {
    pub name: String,
    /// Values are per second.
    pub counter: bool,
    pub count: u64,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

/// Converts readings to values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings {
    known: BTreeMap<(u16, u16), Known>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) counter: bool,
    last: Option<(u64, f64)>,
    sight: Sight,
}

/// The meaning of a series for findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sight {
    #[default]
    None,
    /// Used by findings.
    Kept,
    /// Busy time of a host's processor.
    Works,
    /// Idle time of a host's processor.
    Rests,
    /// CPU time of a watched process.
    Process,
}

impl Sight {
    fn of(name: &str) -> Sight {
        let is_work = |mode: &str| MODES.iter().all(|(it, works)| *it != mode || *works);
        match host::base(name) {
            PROCESSORS if host::label(name, "mode").is_none_or(is_work) => Sight::Works,
            PROCESSORS => Sight::Rests,
            PROCESS => Sight::Process,
            _ if Series::find(name).is_some_and(|known| !known.used_by.is_empty()) => Sight::Kept,
            _ => Sight::None,
        }
    }
}

impl Readings {
    /// By monitor and number.
    pub(crate) fn known(&self) -> &BTreeMap<(u16, u16), Known> {
        &self.known
    }

    /// The row of a monitor for a single reading.
    pub(crate) fn row(&self, name: &str, monitor: u16, figures: &[(u16, f64)]) -> MonitorRow {
        let series = figures.iter().filter_map(|&(number, figure)| {
            let known = self.known.get(&(monitor, number))?;
            let (name, counter) = (known.name.clone(), known.counter);
            let (mean, min, max, last) = (figure, figure, figure, figure);
            Some(SeriesRow { name, counter, count: 1, mean, min, max, last })
        });
        let series = series.collect();
        MonitorRow { name: name.to_string(), series, ..MonitorRow::default() }
    }

    /// The values of an event by series number. The first reading of a counter gives none.
    pub(crate) fn take(&mut self, event: &Event) -> Vec<(u16, f64)> {
        match event {
            Event::Series { monitor, number, name, counter, .. } if *number < SERIES_MAX => {
                let (name, counter, sight) = (name.clone(), *counter, Sight::of(name));
                let known = Known { name, counter, last: None, sight };
                self.known.entry((*monitor, *number)).or_insert(known);
                Vec::new()
            }
            Event::Scrape { at_ns, monitor, values, .. } => {
                let figure = |(number, value): &(u16, f64)| {
                    let known = self.known.get_mut(&(*monitor, *number))?;
                    Some((*number, known.figure(*at_ns, *value)?))
                };
                values.iter().filter_map(figure).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Known {
    fn figure(&mut self, at_ns: u64, value: f64) -> Option<f64> {
        if !self.counter {
            return Some(value);
        }
        let (before_ns, before) = self.last.replace((at_ns, value))?;
        let seconds = at_ns.checked_sub(before_ns).filter(|passed| *passed > 0)? as f64 / 1e9;
        // A smaller value means that the counter restarted at 0.
        let grown = if value < before { value } else { value - before };
        Some(grown / seconds).filter(|rate| rate.is_finite())
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Monitors {
    readings: Readings,
    rows: BTreeMap<u16, MonitorRow>,
    sums: BTreeMap<(u16, u16), Sum>,
    /// Series used by findings: seconds of the run, and values.
    watched: BTreeMap<(u16, u16), Vec<(f64, f64)>>,
    /// By monitor: CPU usage of its host.
    busy: BTreeMap<u16, Vec<(f64, f64)>>,
    /// Current measured phases, and their number of machines.
    going: BTreeMap<u16, u64>,
    /// Processors that the target used.
    cores: Busy,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    last: f64,
}

impl Sum {
    fn add(&mut self, figure: f64) {
        self.min = if self.count == 0 { figure } else { self.min.min(figure) };
        self.max = if self.count == 0 { figure } else { self.max.max(figure) };
        self.count += 1;
        self.sum += figure;
        self.last = figure;
    }
}

impl Monitors {
    /// `is_measured` applies to the phase that starts or ends.
    pub(crate) fn event(&mut self, event: &Event, is_measured: impl Fn(u16) -> bool) {
        match event {
            Event::PhaseBegun { phase, .. } if is_measured(*phase) => {
                *self.going.entry(*phase).or_default() += 1;
            }
            Event::PhaseEnded { phase, .. } => {
                if let Some(machines) = self.going.get_mut(phase) {
                    *machines = machines.saturating_sub(1);
                }
                self.going.retain(|_, machines| *machines > 0);
            }
            Event::Scrape { monitor, left_out, .. } => {
                let row = self.rows.entry(*monitor).or_default();
                row.read += 1;
                row.left_out = row.left_out.max(*left_out);
            }
            Event::ScrapeFailed { monitor, detail, .. } => {
                let row = self.rows.entry(*monitor).or_default();
                row.failed += 1;
                row.trouble = Some(detail.clone());
            }
            _ => {}
        }
        if let Event::Series { monitor, .. } | Event::Scrape { monitor, .. } = event {
            let figures = self.readings.take(event);
            if let Event::Scrape { at_ns, .. } = event {
                self.watch(*monitor, *at_ns as f64 / 1e9, &figures);
                self.cores.add(*monitor, *at_ns, &figures, self.readings.known());
            }
            for (number, figure) in figures.into_iter().filter(|_| !self.going.is_empty()) {
                self.sums.entry((*monitor, number)).or_default().add(figure);
            }
        }
    }

    /// Keeps the values that findings use.
    fn watch(&mut self, monitor: u16, at_s: f64, figures: &[(u16, f64)]) {
        let (mut works, mut rests) = (0.0, 0.0);
        for (number, figure) in figures {
            let Some(known) = self.readings.known.get(&(monitor, *number)) else { continue };
            match known.sight {
                Sight::None | Sight::Process => {}
                Sight::Kept => {
                    let points = self.watched.entry((monitor, *number)).or_default();
                    keep(points, (at_s, *figure), known.counter);
                }
                Sight::Works => works += figure,
                Sight::Rests => rests += figure,
            }
        }
        // Usage cannot be computed without idle time.
        if rests > 0.0 {
            let busy = works / (works + rests);
            keep(self.busy.entry(monitor).or_default(), (at_s, busy), true);
        }
    }

    /// The series that findings use.
    pub(crate) fn watched(&self, run: &RunInfo) -> Vec<Watched> {
        let source = |monitor: u16| {
            let info = run.tables.monitors.get(usize::from(monitor));
            info.map(|info| info.name.clone()).unwrap_or_default()
        };
        let own = self.watched.iter().filter_map(|((monitor, number), points)| {
            let name = self.readings.known.get(&(*monitor, *number))?.name.clone();
            Some(Watched { source: source(*monitor), name, points: points.clone() })
        });
        let busy = self.busy.iter().map(|(monitor, points)| {
            let (source, name) = (source(*monitor), BUSY.to_string());
            Watched { source, name, points: points.clone() }
        });
        own.chain(busy).collect()
    }

    /// Processors that the target used over time.
    pub(crate) fn cores(&mut self) -> Busy {
        std::mem::take(&mut self.cores)
    }

    pub(crate) fn rows(mut self, run: &RunInfo) -> Vec<MonitorRow> {
        let row = |(number, info): (u16, &MonitorInfo)| {
            let series = |((_, number), known): (&(u16, u16), &Known)| {
                (
                    *number,
                    SeriesRow {
                        name: known.name.clone(),
                        counter: known.counter,
                        ..SeriesRow::default()
                    },
                )
            };
            let own = self.readings.known.range((number, 0)..=(number, u16::MAX)).map(series);
            let filled = own.map(|(of, row)| match self.sums.get(&(number, of)) {
                None => row,
                Some(sum) => SeriesRow {
                    count: sum.count,
                    mean: sum.sum / sum.count.max(1) as f64,
                    min: sum.min,
                    max: sum.max,
                    last: sum.last,
                    ..row
                },
            });
            let machine = info.machine.and_then(|it| run.generator.machines.get(usize::from(it)));
            MonitorRow {
                name: info.name.clone(),
                url: info.url.clone(),
                machine: machine.map(|it| it.name.clone()),
                series: filled.collect(),
                ..self.rows.remove(&number).unwrap_or_default()
            }
        };
        (0..).zip(&run.tables.monitors).map(row).collect()
    }
}

/// The verdict of a threshold on monitors: every source with the series must meet it, and the worst
/// is reported.
pub(crate) fn verdict(
    threshold: &Threshold,
    monitored: &Monitored,
    rows: &[MonitorRow],
) -> Verdict {
    let is_meant = |row: &&MonitorRow| monitored.source.is_empty() || row.name == monitored.source;
    let figures = rows.iter().filter(is_meant);
    let figures = figures.filter_map(|row| row.figure(&monitored.figure, threshold.measure));
    threshold.judge_figure(figures.reduce(|one, other| threshold.worse(one, other)))
}

impl MonitorRow {
    fn figure(&self, figure: &HostFigure, measure: Measure) -> Option<f64> {
        let series = |name: &str| self.series.iter().find(|it| it.name == name && it.count > 0);
        match figure {
            HostFigure::Cpu => self.cpu(),
            HostFigure::Memory => {
                let total = series("node_memory_MemTotal_bytes")?.last;
                let left = series("node_memory_MemAvailable_bytes")?;
                // Less free memory means more usage.
                let left = match measure {
                    Measure::Min => left.max,
                    Measure::Max => left.min,
                    _ => left.mean,
                };
                (total > 0.0).then(|| 1.0 - left / total)
            }
            HostFigure::Series(name) => {
                let series = series(name)?;
                Some(match measure {
                    Measure::Min => series.min,
                    Measure::Max => series.max,
                    _ => series.mean,
                })
            }
        }
    }

    /// CPU usage of the host, from 0 to 1.
    pub(crate) fn cpu(&self) -> Option<f64> {
        let told = |sight: Sight| {
            let own =
                self.series.iter().filter(move |it| it.count > 0 && Sight::of(&it.name) == sight);
            own.map(|series| series.mean).reduce(|sum, mean| sum + mean)
        };
        let rests = told(Sight::Rests)?;
        let all = told(Sight::Works).unwrap_or(0.0) + rests;
        (all > 0.0).then(|| 1.0 - rests / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{GeneratorInfo, MachineInfo, TablesInfo};

    const SECOND_NS: u64 = 1_000_000_000;

    fn scrape(at_s: u64, values: &[(u16, f64)]) -> Event {
        let (at_ns, values) = (at_s * SECOND_NS, values.to_vec());
        Event::Scrape { at_ns, monitor: 0, values, left_out: 0 }
    }

    fn series(number: u16, name: &str, counter: bool) -> Event {
        Event::Series { at_ns: 0, monitor: 0, number, name: name.into(), counter }
    }

    #[test]
    fn gauges_are_reported_as_read_and_counters_as_increases() {
        let mut readings = Readings::default();
        readings.take(&series(0, "load", false));
        readings.take(&series(1, "requests_total", true));
        let mut figures = |at_s, values: &[(u16, f64)]| readings.take(&scrape(at_s, values));
        assert_eq!(figures(1, &[(0, 2.5), (1, 100.0), (9, 1.0)]), [(0, 2.5)]);
        assert_eq!(figures(6, &[(0, 3.5), (1, 150.0)]), [(0, 3.5), (1, 10.0)]);
        assert_eq!(figures(6, &[(1, 150.0)]), [], "no time has passed");
        assert_eq!(figures(16, &[(1, 20.0)]), [(1, 2.0)], "it has begun again");
    }

    #[test]
    fn a_threshold_applies_to_the_worst_source() {
        let row = |name: &str, idle: f64| {
            let one = |name: &str, mean: f64, min: f64| SeriesRow {
                name: name.into(),
                count: 3,
                mean,
                min,
                max: mean * 2.0,
                last: mean,
                ..SeriesRow::default()
            };
            let series = vec![
                one("node_cpu_seconds_total{mode=\"user\"}", 4.0 - idle, 0.0),
                one("node_cpu_seconds_total{mode=\"idle\"}", idle, 0.0),
                one("node_memory_MemTotal_bytes", 1e9, 1e9),
                one("node_memory_MemAvailable_bytes", 5e8, 2e8),
            ];
            MonitorRow { name: name.into(), series, ..MonitorRow::default() }
        };
        let rows = [row("a", 3.0), row("b", 1.0), MonitorRow::default()];
        let judge = |source: &str, figure: HostFigure, measure, value| {
            let monitored = Monitored { source: source.into(), figure };
            let threshold = Threshold::new(
                String::new(),
                throng_metrics::Subject::Monitored(monitored.clone()),
                measure,
                throng_metrics::Comparison::Less,
                value,
            );
            verdict(&threshold, &monitored, &rows)
        };
        let (cpu, mean) = (HostFigure::Cpu, Measure::Mean);
        assert_eq!(judge("a", cpu.clone(), mean, 0.5), Verdict::Met(0.25));
        assert_eq!(judge("", cpu.clone(), mean, 0.5), Verdict::NotMet(0.75));
        assert_eq!(judge("c", cpu, mean, 0.5), Verdict::Unknown);
        assert_eq!(judge("", HostFigure::Memory, mean, 0.7), Verdict::Met(0.5));
        assert_eq!(judge("", HostFigure::Memory, Measure::Max, 0.7), Verdict::NotMet(0.8));
        let series = HostFigure::Series("node_memory_MemAvailable_bytes".into());
        assert_eq!(judge("b", series, Measure::Min, 1e9), Verdict::Met(2e8));
    }

    #[test]
    fn only_readings_in_measured_phases_count() {
        let mut monitors = Monitors::default();
        let began = |phase| Event::PhaseBegun { at_ns: 0, phase };
        let ended = |phase| Event::PhaseEnded { at_ns: 0, phase };
        let detail = Said::of_others("refused".to_string());
        for event in [
            began(0),
            series(0, "load", false),
            scrape(1, &[(0, 100.0)]),
            began(1),
            ended(0),
            scrape(2, &[(0, 2.0)]),
            Event::ScrapeFailed { at_ns: 3, monitor: 0, detail: detail.clone() },
            scrape(4, &[(0, 4.0)]),
            ended(1),
            scrape(5, &[(0, 100.0)]),
        ] {
            monitors.event(&event, |phase| phase == 1);
        }
        let info = MonitorInfo { name: "a".into(), machine: Some(0), ..MonitorInfo::default() };
        let machine = MachineInfo { name: "box-1".into(), ..MachineInfo::default() };
        let rows = monitors.rows(&RunInfo {
            generator: GeneratorInfo { machines: vec![machine], ..GeneratorInfo::default() },
            tables: TablesInfo {
                monitors: vec![info, MonitorInfo::default()],
                ..TablesInfo::default()
            },
            ..RunInfo::default()
        });
        let row = &rows[0];
        assert_eq!((row.read, row.failed, row.trouble.clone()), (4, 1, Some(detail)));
        assert_eq!(row.machine.as_deref(), Some("box-1"));
        let load = SeriesRow {
            name: "load".into(),
            counter: false,
            count: 2,
            mean: 3.0,
            min: 2.0,
            max: 4.0,
            last: 4.0,
        };
        assert_eq!(row.series, [load]);
        assert_eq!(rows[1], MonitorRow::default(), "never read");
    }
}
