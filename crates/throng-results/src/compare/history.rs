//! The runs of a folder by scenario and time, each compared with the previous one, or all with one
//! baseline.
//!
//! Runs are read one after another, and only a few values of each are kept, so memory does not grow
//! with the size of runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Exit, Said};
use throng_metrics::Quantity;

use super::shift::{Point, SHIFTING, Shift, shifts};
use super::unlike::Facts;
use super::{
    CapacityChange, Carried, Condition, Figure, Judged, MEASURES, Sampled, Side, figures, measured,
    name_findings,
};
use super::{did_you_mean, subject};
use crate::directory::{RUN_FILE, RunInfo};
use crate::read::Run;
use crate::summary::{Damage, Summary};
use crate::verdict::{exit_code, is_unreachable};

/// Maximum number of skipped directories that an error names.
const NOTES_MAX: usize = 10;

/// The selection of runs and values.
#[derive(Debug, Default)]
pub struct Asked {
    /// A step, a kind of steps or `connect`; by default, all attempts.
    pub step: Option<String>,
    /// Only runs with all these labels.
    pub labels: Vec<(String, String)>,
    /// Only the newest runs of each scenario.
    pub last: Option<usize>,
    /// Compare all runs of its scenario with this run, and read no other scenario: a directory, or
    /// its name in the folder.
    pub baseline: Option<PathBuf>,
    /// Applied to the newest run of each scenario.
    pub conditions: Vec<Condition>,
    /// Ignore directories that are symbolic links.
    pub without_links: bool,
}

#[derive(Debug)]
pub struct History {
    pub folder: PathBuf,
    pub step: Option<String>,
    /// Sorted by name.
    pub scenarios: Vec<Trend>,
    pub passed_over: Vec<PassedOver>,
}

/// A directory that was skipped.
#[derive(Debug)]
pub struct PassedOver {
    pub directory: PathBuf,
    pub reason: Said,
}

/// The runs of a scenario.
#[derive(Debug)]
pub struct Trend {
    pub scenario: String,
    /// The common baseline, if there is one.
    pub baseline: Option<String>,
    /// Sorted by time.
    pub runs: Vec<Past>,
    pub shifts: Vec<Shift>,
    /// Number of changes that were tested.
    pub compared: usize,
    /// The results of the conditions for the newest run.
    pub judged: Vec<Judged>,
}

/// A run in a history.
#[derive(Debug)]
pub struct Past {
    pub directory: PathBuf,
    pub id: String,
    pub labels: BTreeMap<String, String>,
    pub started: String,
    pub exit: Exit,
    pub verdict: Said,
    /// In the order of [`MEASURES`]; `before` is the value of the compared run.
    pub figures: Vec<Figure>,
    /// The capacity, if it searched for it.
    pub carried: Option<Carried>,
    /// Compared with the last earlier run that has an interval.
    pub capacity_change: Option<CapacityChange>,
    /// Other differences from the previous run, which may be the cause.
    pub unlike: Vec<Said>,
    side: Side,
    facts: Facts,
    /// Rows for the conditions; empty if not needed.
    looks: Vec<Option<Side>>,
}

/// A run directory that matches the selection.
struct Entry {
    directory: PathBuf,
    started: String,
    knows_step: bool,
}

impl History {
    pub fn read(folder: &Path, asked: &Asked) -> Result<History, Box<Diagnostic>> {
        let baseline = asked.baseline.as_ref().map(|path| Baseline::read(folder, path, asked));
        let baseline = baseline.transpose()?;
        let mut passed_over = Vec::new();
        let found = entries(folder, asked, baseline.as_ref(), &mut passed_over)?;
        let mut scenarios = Vec::new();
        let mut unknown = Vec::new();
        for (scenario, entries) in found {
            let trend = Trend::read(scenario, entries, asked, baseline.as_ref(), &mut passed_over);
            let Some((trend, wrong)) = trend else { continue };
            unknown.push(wrong);
            scenarios.push(trend);
        }
        if scenarios.is_empty() {
            return Err(nothing(folder, asked, &passed_over));
        }
        // Each condition must apply to at least one of the scenarios.
        for at in 0..asked.conditions.len() {
            let mut wrong: Vec<_> = unknown.iter_mut().map(|wrong| wrong[at].take()).collect();
            if wrong.iter().all(Option::is_some)
                && let Some(Some(first)) = wrong.pop()
            {
                return Err(first);
            }
        }
        let (folder, step) = (folder.to_path_buf(), asked.step.clone());
        Ok(History { folder, step, scenarios, passed_over })
    }
}

/// The error of each condition.
type Wrong = Vec<Option<Box<Diagnostic>>>;

struct Baseline {
    scenario: String,
    past: Past,
    wrong: Wrong,
}

impl Baseline {
    fn read(folder: &Path, path: &Path, asked: &Asked) -> Result<Baseline, Box<Diagnostic>> {
        let inside = folder.join(path);
        let run = Run::open(if inside.join(RUN_FILE).exists() { &inside } else { path })?;
        let sampled = Sampled::read(&run)?;
        let scenario = sampled.summary.info.name.clone();
        if let Some(step) = asked.step.as_ref().filter(|step| !knows(&run.info, step)) {
            return Err(unknown_step(step, Some(&run.info)));
        }
        let past = Past::of(&sampled, asked, true);
        let past = past.map_err(|reason| {
            let message = say!("the baseline {} cannot be used: {reason}", path.display());
            Box::new(Diagnostic::error("not-comparable", message))
        })?;
        Ok(Baseline { scenario, past, wrong: wrong(&sampled, asked) })
    }
}

fn wrong(run: &Sampled, asked: &Asked) -> Wrong {
    asked.conditions.iter().map(|condition| condition.check(&run.summary.info).err()).collect()
}

/// The directories to read, by scenario, oldest first.
fn entries(
    folder: &Path,
    asked: &Asked,
    baseline: Option<&Baseline>,
    passed_over: &mut Vec<PassedOver>,
) -> Result<BTreeMap<String, Vec<Entry>>, Box<Diagnostic>> {
    let mut found: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let mut some = None;
    for directory in directories(folder, asked.without_links)? {
        let info = match Run::open(&directory) {
            Ok(run) => run.info,
            Err(told) => {
                passed_over.push(PassedOver { directory, reason: told.message });
                continue;
            }
        };
        let has = |(name, value): &(String, String)| info.labels.get(name) == Some(value);
        let is_of = |baseline: &Baseline| baseline.scenario == info.name;
        if !asked.labels.iter().all(has) || !baseline.is_none_or(is_of) {
            continue;
        }
        let knows_step = asked.step.as_ref().is_none_or(|step| knows(&info, step));
        let (scenario, started) = (info.name.clone(), info.time.started.clone());
        found.entry(scenario).or_default().push(Entry { directory, started, knows_step });
        some.get_or_insert(info);
    }
    let any_knows = |entries: &Vec<Entry>| entries.iter().any(|entry| entry.knows_step);
    if let Some(step) = asked.step.as_ref().filter(|_| !found.values().any(any_knows)) {
        return Err(unknown_step(step, some.as_ref()));
    }
    // A step of one scenario need not exist in another.
    found.retain(|_, entries| any_knows(entries));
    for entries in found.values_mut() {
        entries.sort_by(|a, b| (&a.started, &a.directory).cmp(&(&b.started, &b.directory)));
    }
    Ok(found)
}

fn directories(folder: &Path, without_links: bool) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    if folder.join(RUN_FILE).exists() {
        let message = say!("{} is the directory of a single run", folder.display());
        let help = say!("give the folder that contains the runs, such as ./throng-runs");
        return Err(Box::new(Diagnostic::error("run-unreadable", message).help(help)));
    }
    let entries = std::fs::read_dir(folder).map_err(|error| {
        let error = Said::of_error(&error);
        let message = say!("cannot read the folder {}: {error}", folder.display());
        let help = say!("give the folder that contains the runs, such as ./throng-runs");
        Box::new(Diagnostic::error("run-unreadable", message).help(help))
    })?;
    let mut directories: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    directories.retain(|path| path.is_dir() && !(without_links && path.is_symlink()));
    directories.sort();
    Ok(directories)
}

fn knows(info: &RunInfo, step: &str) -> bool {
    subject(info, step).is_some()
}

fn unknown_step(step: &str, info: Option<&RunInfo>) -> Box<Diagnostic> {
    let message = say!("no run has a step named `{step}`");
    let help = match info.and_then(|info| did_you_mean(info, step)) {
        Some(known) => say!("did you mean `{known}`?"),
        None => say!("`throng report RUN` lists the steps of a run"),
    };
    Box::new(Diagnostic::error("unknown-step", message).help(help))
}

fn nothing(folder: &Path, asked: &Asked, passed_over: &[PassedOver]) -> Box<Diagnostic> {
    let message = match asked.labels.as_slice() {
        [] => say!("no run in {} can be read", folder.display()),
        _ => say!("no run in {} has these labels", folder.display()),
    };
    let told = Diagnostic::error("run-unreadable", message)
        .help(say!("give the folder that contains the runs, such as ./throng-runs"));
    let told = passed_over.iter().take(NOTES_MAX).fold(told, |told, over| {
        let name = name_of(&over.directory);
        told.note(say!("skipped: {name}: {reason}", reason = over.reason.clone()))
    });
    Box::new(told)
}

fn name_of(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| directory.display().to_string())
}

impl PassedOver {
    pub fn name(&self) -> String {
        name_of(&self.directory)
    }
}

impl Trend {
    /// Reads the newest runs first, as many as requested; `None` if no run can be used.
    fn read(
        scenario: String,
        entries: Vec<Entry>,
        asked: &Asked,
        baseline: Option<&Baseline>,
        passed_over: &mut Vec<PassedOver>,
    ) -> Option<(Trend, Wrong)> {
        let mut runs: Vec<Past> = Vec::new();
        let mut wrong = baseline.map(|baseline| baseline.wrong.clone()).unwrap_or_default();
        // The oldest displayed run is compared with one more.
        let most = asked.last.map_or(usize::MAX, |last| last.saturating_add(1));
        for entry in entries.into_iter().rev() {
            if runs.len() == most {
                break;
            }
            let has_reference = runs.iter().skip(1).any(Past::is_comparable);
            let is_judged = runs.is_empty() || baseline.is_none() && !has_reference;
            let past = match entry.knows_step {
                false => Err(say!("it does not have this step")),
                true => read(&entry, asked, is_judged),
            };
            match past {
                Ok((past, its_wrong)) => {
                    if baseline.is_none() && is_judged {
                        wrong = its_wrong;
                    }
                    runs.push(past);
                }
                Err(reason) => passed_over.push(PassedOver { directory: entry.directory, reason }),
            }
        }
        runs.reverse();
        (!runs.is_empty()).then(|| (Trend::of(scenario, runs, asked, baseline), wrong))
    }

    fn of(
        scenario: String,
        mut runs: Vec<Past>,
        asked: &Asked,
        baseline: Option<&Baseline>,
    ) -> Trend {
        let judged = judge(&runs, asked, baseline);
        for at in (0..runs.len()).rev() {
            let (before, from) = runs.split_at_mut(at);
            let run = &mut from[0];
            if let Some(before) = before.last() {
                run.unlike = before.facts.changed(&run.facts);
            }
            if let Some(reference) = reference(before, run, baseline) {
                run.figures = figures(&reference.side, &run.side);
            }
        }
        let mut before: Option<Carried> = None;
        for run in &mut runs {
            let Some(carried) = run.carried else { continue };
            run.capacity_change = before.map(|before| carried.since(&before));
            before = Some(carried).filter(|it| it.interval.is_some()).or(before);
        }
        let is_more = asked.last.is_some_and(|last| runs.len() > last);
        if is_more {
            runs.remove(0);
        }
        let changes = runs.iter_mut().flat_map(|run| &mut run.figures).collect();
        let compared = name_findings(changes);
        let shifts = SHIFTING.iter().flat_map(|measure| shifts(*measure, &points(&runs, *measure)));
        let mut shifts: Vec<Shift> = shifts.collect();
        shifts.sort_by_key(|shift| shift.since);
        let baseline = baseline.map(|baseline| baseline.past.name());
        Trend { scenario, baseline, runs, shifts, compared, judged }
    }
}

/// The run to compare with.
fn reference<'a>(
    before: &'a [Past],
    run: &Past,
    baseline: Option<&'a Baseline>,
) -> Option<&'a Past> {
    match baseline {
        Some(baseline) => Some(&baseline.past).filter(|past| past.id != run.id),
        None => before.iter().rev().find(|past| past.is_comparable()),
    }
}

fn judge(runs: &[Past], asked: &Asked, baseline: Option<&Baseline>) -> Vec<Judged> {
    let Some((newest, before)) = runs.split_last() else { return Vec::new() };
    let Some(reference) = reference(before, newest, baseline) else { return Vec::new() };
    let looks = asked.conditions.iter().zip(&reference.looks).zip(&newest.looks);
    // A step of one scenario need not exist in another.
    let known = looks.filter(|((_, before), _)| before.is_some());
    let judged =
        known.map(|((condition, before), after)| condition.judge(before.as_ref(), after.as_ref()));
    judged.collect()
}

fn points(runs: &[Past], measure: Quantity) -> Vec<Point> {
    let Some(at) = MEASURES.iter().position(|known| *known == measure) else { return Vec::new() };
    let point = |(run, past): (usize, &Past)| {
        let value = past.side.figures[at]?;
        let error = past.side.noise.as_ref().map_or(0.0, |noise| noise.errors[at]);
        past.is_comparable().then_some(Point { run, value, error })
    };
    runs.iter().enumerate().filter_map(point).collect()
}

fn read(entry: &Entry, asked: &Asked, is_judged: bool) -> Result<(Past, Wrong), Said> {
    let sampled = Run::open(&entry.directory).and_then(|run| Sampled::read(&run));
    let sampled = sampled.map_err(|told| told.message)?;
    let past = Past::of(&sampled, asked, is_judged)?;
    Ok((past, wrong(&sampled, asked)))
}

impl Past {
    fn of(sampled: &Sampled, asked: &Asked, is_judged: bool) -> Result<Past, Said> {
        let (summary, info) = (&sampled.summary, &sampled.summary.info);
        if summary.verdict.unended {
            return Err(say!("it has not ended"));
        }
        if summary.verdict.damage != Damage::default() || info.lines_lost > 0 {
            return Err(say!("its data is incomplete"));
        }
        let name = asked.step.as_deref().unwrap_or_default();
        let subject = subject(info, name).ok_or(say!("it does not have this step"))?;
        let side = measured(sampled, &subject, &MEASURES);
        let alone = MEASURES.iter().zip(&side.figures).map(|(measure, after)| Figure {
            measure: *measure,
            before: None,
            after: *after,
            change: None,
        });
        let looks = asked.conditions.iter().filter(|_| is_judged);
        Ok(Past {
            directory: summary.directory.clone().unwrap_or_default(),
            id: info.id.clone(),
            labels: info.labels.clone(),
            started: info.time.started.clone(),
            exit: exit_code(summary),
            verdict: verdict(summary),
            figures: alone.collect(),
            carried: Carried::of(summary),
            capacity_change: None,
            unlike: Vec::new(),
            facts: Facts::of(sampled),
            looks: looks.map(|condition| condition.side(sampled)).collect(),
            side,
        })
    }

    pub fn name(&self) -> String {
        name_of(&self.directory)
    }

    /// Whether its results describe a complete load that the generator sustained.
    pub fn is_comparable(&self) -> bool {
        matches!(self.exit, Exit::Success | Exit::ThresholdsNotMet)
    }

    pub fn figure(&self, measure: Quantity) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.measure == measure)
    }
}

/// The result of a run in one word.
fn verdict(summary: &Summary) -> Said {
    match exit_code(summary) {
        Exit::Success => say!("passed"),
        Exit::TargetUnreachable if is_unreachable(summary) => say!("unreachable"),
        Exit::TargetUnreachable => say!("stopped"),
        Exit::ResultInvalid => say!("invalid"),
        Exit::Interrupted => say!("interrupted"),
        _ => say!("failed"),
    }
}

#[cfg(test)]
mod tests;
