//! The runs of a folder: descriptions and outcomes immediately, figures once they are read. Only
//! directories directly in the folder are read; links are named and not followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use throng_base::{Diagnostic, Said};
use throng_metrics::Percentile;
use throng_results::compare::{Asked, History, Sampled, compare, history_json};
use throng_results::page::{compared_data, may_compare, renderings, report_data};
use throng_results::{Run, Summary};
use throng_run::control::command::SOCKET;

use crate::Job;

/// Maximum number of runs, the newest by name; older ones are counted.
const RUNS_MAX: usize = 5_000;
/// Maximum number of skipped entries that are reported.
const PASSED_OVER_MAX: usize = 100;
/// Maximum number of runs in the trend of a scenario.
const TREND_MAX: usize = 100;
const RUN_FILE: &str = "run.json";

/// A request of a page.
pub(super) enum Wanted {
    List,
    Report(String),
    Compare(Vec<String>),
    /// Of all scenarios; or of the scenario of a run, compared with that run.
    History(Option<String>),
}

/// Runs by name, with their modification times.
type Stamps = Vec<(String, Option<SystemTime>)>;

/// See the module's description.
pub(super) struct Folder {
    path: PathBuf,
    /// By the name of the directory.
    runs: BTreeMap<String, Listed>,
    passed_over: Vec<(String, Said)>,
    left_off: usize,
    /// The trends, and the runs that they include.
    history: Option<(Stamps, Value)>,
}

struct Listed {
    /// The modification time for which the data is valid.
    stamp: Option<SystemTime>,
    row: Value,
    figures: Option<Value>,
    /// Its figures were read, or are unreadable.
    is_read: bool,
}

impl Folder {
    pub(super) fn new(path: &Path) -> Folder {
        let (runs, passed_over) = (BTreeMap::new(), Vec::new());
        Folder { path: path.to_path_buf(), runs, passed_over, left_off: 0, history: None }
    }

    /// Replies to requests, and reads further figures when idle.
    pub(super) fn work(&mut self, jobs: &Receiver<Job>) {
        loop {
            let job = match jobs.try_recv() {
                Ok(job) => Some(job),
                Err(TryRecvError::Empty) if self.read_next() => None,
                Err(TryRecvError::Empty) => jobs.recv().ok(),
                Err(TryRecvError::Disconnected) => return,
            };
            if let Some((wanted, reply)) = job {
                // A client that is gone needs no reply.
                let _ = reply.send(self.answer(&wanted));
            }
        }
    }

    fn answer(&mut self, wanted: &Wanted) -> Value {
        let told = match wanted {
            Wanted::List => Ok(self.list()),
            Wanted::Report(name) => self.report(name),
            Wanted::Compare(names) => self.compare(names),
            Wanted::History(baseline) => self.history(baseline.as_deref()),
        };
        told.unwrap_or_else(|error| json!({"error": error.message.spoken()}))
    }

    fn list(&mut self) -> Value {
        self.look();
        let row = |(name, listed): (&String, &Listed)| {
            let mut row = listed.row.clone();
            row["name"] = json!(name);
            row["figures"] = json!(listed.figures);
            row
        };
        let passed_over = self.passed_over.iter().take(PASSED_OVER_MAX);
        let passed_over =
            passed_over.map(|(name, why)| json!({"name": name, "why": why.english()}));
        json!({
            "folder": self.path.display().to_string(),
            "runs": self.runs.iter().rev().map(row).collect::<Vec<_>>(),
            "waiting": self.runs.values().filter(|it| !it.is_read).count(),
            "left_off": self.left_off,
            "passed_over": passed_over.collect::<Vec<_>>(),
            "renderings": renderings(self.passed_over.iter().map(|(_, why)| why)),
            "passed_over_count": self.passed_over.len(),
        })
    }

    /// Updates the list of runs. Unchanged runs are not read again.
    fn look(&mut self) {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names: Vec<String> = Vec::new();
        self.passed_over.clear();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => self.pass_over(name, None),
                Ok(kind) if kind.is_dir() && entry.file_name().to_str().is_some() => {
                    names.push(name);
                }
                _ => {}
            }
        }
        names.sort();
        self.left_off = names.len().saturating_sub(RUNS_MAX);
        let names = names.split_off(self.left_off);
        self.runs.retain(|name, _| names.binary_search(name).is_ok());
        for name in names {
            let directory = self.path.join(&name);
            let stamp = stamp(&directory);
            if self.runs.get(&name).is_some_and(|it| it.stamp == stamp && stamp.is_some()) {
                continue;
            }
            match opened(&directory) {
                Ok(run) => {
                    let listed =
                        Listed { stamp, row: row(&run), figures: None, is_read: goes_on(&run) };
                    self.runs.insert(name, listed);
                }
                Err(error) => {
                    self.runs.remove(&name);
                    self.pass_over(name, Some(error.message.clone()));
                }
            }
        }
    }

    fn pass_over(&mut self, name: String, why: Option<Said>) {
        let shown = name.clone();
        let link = || say!("`{shown}` is a symbolic link; throng does not follow it");
        self.passed_over.push((name, why.unwrap_or_else(link)));
    }

    /// Reads the figures of the newest run without any; false if all are read.
    fn read_next(&mut self) -> bool {
        let Some((name, listed)) = self.runs.iter_mut().rev().find(|(_, it)| !it.is_read) else {
            return false;
        };
        listed.is_read = true;
        let run = opened(&self.path.join(name));
        listed.figures = run.and_then(|run| run.summary()).ok().map(|summary| figures(&summary));
        true
    }

    fn report(&self, name: &str) -> Result<Value, Box<Diagnostic>> {
        let run = find(&self.path, name)?;
        report_data(&run, &run.summary()?)
    }

    /// Curves of several runs, and comparisons with the first.
    fn compare(&self, names: &[String]) -> Result<Value, Box<Diagnostic>> {
        may_compare(names.len())?;
        let runs =
            names.iter().map(|name| find(&self.path, name)).collect::<Result<Vec<_>, _>>()?;
        let baseline = Sampled::read(&runs[0])?;
        let others = runs[1..].iter().map(|run| {
            let other = Sampled::read(run)?;
            let held = compare(&baseline, &other, &[])?;
            Ok((other, held))
        });
        let others = others.collect::<Result<Vec<_>, Box<Diagnostic>>>()?;
        compared_data((names, &runs), &baseline, &others)
    }

    /// Trends by scenario, computed again if a run was added or has changed.
    fn history(&mut self, baseline: Option<&str>) -> Result<Value, Box<Diagnostic>> {
        let asked = Asked { last: Some(TREND_MAX), without_links: true, ..Asked::default() };
        if let Some(name) = baseline {
            let asked = Asked { baseline: Some(find(&self.path, name)?.directory), ..asked };
            return Ok(trends(&History::read(&self.path, &asked)?));
        }
        self.look();
        let now: Stamps = self.runs.iter().map(|(name, it)| (name.clone(), it.stamp)).collect();
        if let Some((_, known)) = self.history.as_ref().filter(|(then, _)| *then == now) {
            return Ok(known.clone());
        }
        let told = trends(&History::read(&self.path, &asked)?);
        self.history = Some((now, told.clone()));
        Ok(told)
    }
}

fn trends(history: &History) -> Value {
    let runs = history.scenarios.iter().flat_map(|trend| &trend.runs);
    let mut told = history_json(history);
    told["renderings"] = renderings(runs.flat_map(|run| &run.unlike));
    told
}

fn stamp(directory: &Path) -> Option<SystemTime> {
    std::fs::symlink_metadata(directory.join(RUN_FILE)).ok()?.modified().ok()
}

/// The run of a directory in the folder; other paths are refused.
pub(super) fn find(folder: &Path, name: &str) -> Result<Run, Box<Diagnostic>> {
    let is_name = !name.is_empty() && !name.contains(['/', '\0']) && ![".", ".."].contains(&name);
    let directory = folder.join(name);
    let kind = std::fs::symlink_metadata(&directory).ok().filter(|_| is_name);
    if !kind.is_some_and(|kind| kind.is_dir()) {
        let message = say!("there is no run `{}` in this folder", name.to_string());
        return Err(Box::new(Diagnostic::error("run-unreadable", message)));
    }
    opened(&directory)
}

/// The run of a directory without links.
fn opened(directory: &Path) -> Result<Run, Box<Diagnostic>> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|it| it.is_symlink());
    if let Some(link) = entries.into_iter().find(is_link) {
        let shown = link.path().display().to_string();
        let message = say!("`{shown}` is a symbolic link; throng does not follow it");
        return Err(Box::new(Diagnostic::error("run-unreadable", message)));
    }
    Run::open(directory)
}

fn goes_on(run: &Run) -> bool {
    run.info.time.ended.is_none() && run.directory.join(SOCKET).exists()
}

fn row(run: &Run) -> Value {
    let info = &run.info;
    json!({
        "scenario": info.name,
        "started": info.time.started,
        "targets": info.targets.urls.iter().take(3).collect::<Vec<_>>(),
        "labels": info.labels,
        "exit_code": info.end.outcome.as_ref().map(|outcome| outcome.exit_code),
        "goes_on": goes_on(run),
    })
}

fn figures(summary: &Summary) -> Value {
    let total = &summary.steps.total;
    let (count, failed) = (total.count, total.failed);
    let mut figures = json!({
        "lasted_ns": nanos(summary.lasted),
        "count": count,
        "failed": failed,
        "ok_per_s": total.ok_per_s,
    });
    // Even with few values: the list of runs shows that there are some.
    for percentile in [Percentile::P50, Percentile::P95, Percentile::P99] {
        let ns = (!total.latency.is_empty()).then(|| total.latency.at(percentile));
        figures[percentile.word_ns()] = json!(ns);
    }
    figures
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
