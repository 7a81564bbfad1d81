//! Merges the run directories of several machines exactly, because each line is part of a sum. Runs
//! that do not belong together are rejected; missing lines are also missing in the result.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use throng_base::{Diagnostic, LoadPart, Said};
use throng_metrics::Interval;

use crate::directory::{
    EndInfo, GeneratorInfo, MachineInfo, MonitorInfo, RunInfo, TablesInfo, TargetsInfo, TimeInfo,
};
use crate::event::Event;
use crate::read::Run;
use crate::record::Recorder;
use crate::record::lines::Records;

const SECOND_NS: i64 = 1_000_000_000;

/// Merges these runs into a new directory. Their order determines the order of the machines.
pub fn merge_runs(runs: &[Run], directory: &Path) -> Result<(), Box<Diagnostic>> {
    let read: Result<Vec<Read>, _> = runs.iter().map(Read::of).collect();
    let read = read?;
    let plan = Plan::new(runs, &read)?;
    let lost: u64 = read.iter().map(|read| read.lost).sum();
    let failed = |error: crate::record::RecordError| Box::new(error.diagnostic());
    let mut recorder =
        Recorder::create(directory, &plan.info, &runs[0].scenario).map_err(failed)?;
    for (run, place) in runs.iter().zip(&plan.places) {
        for mut event in run.events()? {
            place.shift(&mut event);
            recorder.event_of(place.first, &event).map_err(failed)?;
        }
    }
    for (machine, detail) in &plan.missing {
        let (machine, detail) = (*machine, detail.clone());
        recorder.event(&Event::MachineLost { at_ns: 0, machine, detail }).map_err(failed)?;
    }
    let mut all: Vec<Records<Interval>> =
        runs.iter().map(Run::intervals).collect::<Result<_, _>>()?;
    let next = |records: &mut Records<Interval>, place: &Place| {
        records.next().map(|interval| place.shifted(interval))
    };
    let mut heads: Vec<Option<Interval>> =
        all.iter_mut().zip(&plan.places).map(|(records, place)| next(records, place)).collect();
    while let Some(first) = first_of(&heads) {
        if let Some(interval) = heads[first].take() {
            recorder.interval(&interval).map_err(failed)?;
        }
        heads[first] = next(&mut all[first], &plan.places[first]);
    }
    let info = RunInfo { lines_lost: plan.info.lines_lost + lost, ..plan.info };
    recorder.finish(&info).map_err(failed)
}

/// Properties of a run that the merge needs.
struct Read {
    lasted_ns: i64,
    /// Lines that are missing or unreadable, and so missing in the result, too.
    lost: u64,
}

impl Read {
    fn of(run: &Run) -> Result<Read, Box<Diagnostic>> {
        let summary = run.summary()?;
        let damage = &summary.verdict.damage;
        let torn = u64::from(damage.torn);
        Ok(Read {
            lasted_ns: i64::try_from(summary.lasted.as_nanos()).unwrap_or(i64::MAX),
            lost: damage.missing + damage.unreadable + damage.unequal + torn,
        })
    }
}

fn first_of(heads: &[Option<Interval>]) -> Option<usize> {
    let seconds = heads.iter().enumerate();
    let seconds = seconds.filter_map(|(number, head)| Some((head.as_ref()?.second, number)));
    seconds.min().map(|(_, number)| number)
}

/// The position of a run in the merged run.
struct Place {
    /// The number of its first machine.
    first: u16,
    /// The number of its first monitor.
    monitors: u16,
    /// Added to its times.
    offset_ns: i64,
}

impl Place {
    fn shift(&self, event: &mut Event) {
        if let Event::MachineLost { machine, .. } | Event::BackedOff { machine, .. } = event {
            *machine = machine.saturating_add(self.first);
        }
        if let Event::Capacity { capacity, .. } = event {
            capacity.shift(self.offset_ns as f64 / SECOND_NS as f64);
        }
        if let Some(monitor) = event.monitor_mut() {
            *monitor = monitor.saturating_add(self.monitors);
        }
        if let Some(at_ns) = event.at_ns_mut() {
            *at_ns = at_ns.saturating_add_signed(self.offset_ns);
        }
    }

    /// Seconds are shifted as a whole.
    fn shifted(&self, mut interval: Interval) -> Interval {
        interval.machine = interval.machine.saturating_add(self.first);
        let seconds = self.offset_ns.div_euclid(SECOND_NS)
            + i64::from(self.offset_ns.rem_euclid(SECOND_NS) >= SECOND_NS / 2);
        interval.second = interval.second.saturating_add_signed(seconds);
        for slow in &mut interval.slowest {
            slow.at_ns = slow.at_ns.saturating_add_signed(self.offset_ns);
        }
        interval
    }
}

/// The plan of the merge.
struct Plan {
    info: RunInfo,
    places: Vec<Place>,
    /// Parts of the load without a run directory count as lost machines.
    missing: Vec<(u16, Said)>,
}

impl Plan {
    fn new(runs: &[Run], read: &[Read]) -> Result<Plan, Box<Diagnostic>> {
        let Some((first, others)) = runs.split_first() else {
            let told = Diagnostic::error("runs-unmergeable", say!("there are no runs to merge"));
            return Err(Box::new(told.help(say!("give at least two run directories"))));
        };
        for other in others {
            alike(first, other)?;
        }
        let zero = runs.iter().map(|run| run.info.time.zero_unix_ns).min().unwrap_or(0);
        let mut machines: Vec<MachineInfo> = Vec::new();
        let mut places = Vec::new();
        let mut monitors = 0;
        for run in runs {
            let offset_ns = i64::try_from(run.info.time.zero_unix_ns - zero).unwrap_or(i64::MAX);
            places.push(Place { first: machines.len() as u16, monitors, offset_ns });
            monitors += run.info.tables.monitors.len() as u16;
            let own = own_machines(run).into_iter();
            machines
                .extend(own.map(|it| MachineInfo { offset_ns: it.offset_ns + offset_ns, ..it }));
        }
        together(runs, read, &places)?;
        let missing = gaps(&mut machines)?;
        let own = |(run, place): (&Run, &Place)| {
            let told = run.info.tables.monitors.clone().into_iter();
            let first = place.first;
            told.map(move |it| {
                let machine = Some(it.machine.unwrap_or(0).saturating_add(first));
                MonitorInfo { machine, ..it }
            })
        };
        let monitors = runs.iter().zip(&places).flat_map(own).collect();
        let mut info = info_of(runs, machines);
        info.tables.monitors = monitors;
        Ok(Plan { info, places, missing })
    }
}

/// The machines of a run; a run without a list is itself a machine.
fn own_machines(run: &Run) -> Vec<MachineInfo> {
    let info = &run.info;
    // Labels of the run become labels of its machines.
    let labels = |own: BTreeMap<String, String>| info.labels.clone().into_iter().chain(own);
    if !info.generator.machines.is_empty() {
        let machine = |machine: &MachineInfo| MachineInfo {
            labels: labels(machine.labels.clone()).collect(),
            ..machine.clone()
        };
        return info.generator.machines.iter().map(machine).collect();
    }
    let name = info.generator.host.hostname.clone().unwrap_or_default();
    let (host, shards) = (info.generator.host.clone(), info.generator.shards);
    let (labels, part) = (info.labels.clone(), LoadPart { first: 0, width: 1, of: 1 });
    vec![MachineInfo { name, host, shards, part, labels, ..MachineInfo::default() }]
}

fn refused(run: &Run, what: &Said) -> Box<Diagnostic> {
    let directory = run.directory.display();
    let message = say!("{directory} cannot be merged: {what}");
    let help = say!("merge only runs that shared one load: same scenario, same seed, same time");
    Box::new(Diagnostic::error("runs-unmergeable", message).help(help))
}

/// Checks that both runs have the same load.
fn alike(first: &Run, other: &Run) -> Result<(), Box<Diagnostic>> {
    let (one, two) = (&first.info, &other.info);
    let than = first.directory.display().to_string();
    if first.scenario != other.scenario
        || one.tables.steps != two.tables.steps
        || one.tables.loads != two.tables.loads
    {
        return Err(refused(other, &say!("its scenario differs from that of {than}")));
    }
    if one.seed != two.seed {
        let (one, two) = (one.seed, two.seed);
        return Err(refused(other, &say!("its seed is {two}, but the seed of {than} is {one}")));
    }
    if one.time.zero_unix_ns == 0 || two.time.zero_unix_ns == 0 {
        return Err(refused(
            other,
            &say!(
                "it was recorded by a version of throng that does not record the exact start time"
            ),
        ));
    }
    Ok(())
}

/// Checks that the runs were concurrent.
fn together(runs: &[Run], read: &[Read], places: &[Place]) -> Result<(), Box<Diagnostic>> {
    let ends = places.iter().zip(read).map(|(place, it)| place.offset_ns + it.lasted_ns);
    let first_end = ends.min();
    for (run, place) in runs.iter().zip(places) {
        if first_end.is_some_and(|end| place.offset_ns >= end) {
            let late = throng_base::units::format_duration(std::time::Duration::from_nanos(
                place.offset_ns.unsigned_abs(),
            ));
            return Err(refused(
                run,
                &say!("it started {late} after the first run, when another run had already ended"),
            ));
        }
    }
    Ok(())
}

/// Rejects overlapping parts, and reports missing parts as lost machines. Runs that each generated
/// the whole load are added up, because their users differ.
fn gaps(machines: &mut Vec<MachineInfo>) -> Result<Vec<(u16, Said)>, Box<Diagnostic>> {
    if machines.iter().all(|machine| machine.part.width == machine.part.of) {
        return Ok(Vec::new());
    }
    let of = machines.first().map_or(1, |machine| machine.part.of);
    let mut taken = BTreeSet::new();
    for machine in machines.iter() {
        let MachineInfo { name, part: LoadPart { first, width, .. }, .. } = machine;
        let (begin, end) = (first + 1, first + width);
        let fault = if machine.part.of != of {
            let other = machine.part.of;
            let message = say!(
                "{name} ran part of a load split into {other} parts, but another machine's load \
                 was split into {of}"
            );
            let help = say!(
                "merge only runs of one fleet: all of them split the load into the same number of \
                 parts"
            );
            return Err(Box::new(Diagnostic::error("runs-unmergeable", message).help(help)));
        } else if (*first..first + width).any(|part| !taken.insert(part)) {
            Some(say!(
                "{name} ran parts {begin} to {end} of {of}, and another machine also ran some of \
                 them"
            ))
        } else {
            None
        };
        if let Some(message) = fault {
            let told = Diagnostic::error("runs-unmergeable", message);
            return Err(Box::new(told.help(say!("give each run only once"))));
        }
    }
    let mut missing = Vec::new();
    for part in (0..of).filter(|part| !taken.contains(part)) {
        let number = part + 1;
        let name = format!("part {number}/{of}");
        missing.push((machines.len() as u16, say!("no run of this part was given")));
        let part = LoadPart { first: part, width: 1, of };
        machines.push(MachineInfo { name, part, ..MachineInfo::default() });
    }
    Ok(missing)
}

fn info_of(runs: &[Run], machines: Vec<MachineInfo>) -> RunInfo {
    let first = &runs[0].info;
    let mut phases = first.tables.phases.clone();
    for (index, phase) in phases.iter_mut().enumerate() {
        let planned =
            runs.iter().filter_map(|run| run.info.tables.phases.get(index)?.users_planned);
        phase.users_planned = phase.users_planned.map(|_| planned.sum());
    }
    let earliest =
        runs.iter().min_by_key(|run| run.info.time.zero_unix_ns).map_or(first, |it| &it.info);
    let ends: Option<Vec<&String>> = runs.iter().map(|run| run.info.time.ended.as_ref()).collect();
    // Labels common to all. The others remain labels of machines.
    let mut labels = first.labels.clone();
    labels.retain(|label, value| runs.iter().all(|run| run.info.labels.get(label) == Some(value)));
    RunInfo {
        labels,
        time: TimeInfo {
            started: earliest.time.started.clone(),
            zero_unix_ns: earliest.time.zero_unix_ns,
            ended: ends.and_then(|ends| ends.into_iter().max().cloned()),
        },
        generator: GeneratorInfo {
            shards: runs.iter().map(|run| run.info.generator.shards).sum(),
            machines,
            ..first.generator.clone()
        },
        users_planned: runs.iter().map(|run| run.info.users_planned).sum(),
        service_times: runs.iter().all(|run| run.info.service_times),
        targets: TargetsInfo {
            same_host: runs.iter().any(|run| run.info.targets.same_host),
            ..first.targets.clone()
        },
        interrupted: runs.iter().any(|run| run.info.interrupted),
        lines_lost: runs.iter().map(|run| run.info.lines_lost).sum(),
        tables: TablesInfo { phases, ..first.tables.clone() },
        end: EndInfo::default(),
        ..first.clone()
    }
}
