//! Restores a run that the bus has lost from the disks of its agents: merges their directories into
//! one run, line by line, in the order of the log.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throng_base::{Diagnostic, Exit, Said, plain};
use throng_fleet::wire::{Plan, Raw, from_json};
use throng_results::Run;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::yield_now;

use super::begun::{Begun, Machine};
use crate::controller::monitors::Hosts;
use crate::controller::{Orders, Posts};
use crate::fleet::Collect;
use crate::generator::Lines;
use crate::wire::Message;
use crate::{Operator, hear};

/// Files that an agent keeps for each part: its description, its inputs, and its lines.
pub const PART_FILE: &str = "part.json";
pub const BUNDLE: &str = "bundle";
pub const LINES_FILE: &str = "lines.ndjson";
/// Maximum size of a part's description.
const PART_BYTES_MAX: usize = 256 << 20;

/// The description of a part, next to its inputs and lines.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    /// Index in the plan.
    pub place: usize,
    /// Facts about the host for the run directory.
    pub host: Raw,
    pub plan: Plan,
}

struct CollectedPart {
    home: PathBuf,
    kept: Kept,
}

fn unfit(message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("collect-impossible", message).help(help))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Box<Diagnostic> {
    let error = Said::of_error(error);
    let message = say!("{}: {error}", path.display());
    unfit(message, say!("give the `--dir` directories of the agents, or copies of them"))
}

/// Merges the directories of agents into one run.
pub(crate) async fn collect(asked: &Collect, errors: &dyn Operator) -> Exit {
    let collected = async {
        let signals = hear(errors)?;
        let refused = |told: Box<Diagnostic>| errors.fail(&told, Exit::Usage);
        let parts = found(&asked.directories).map_err(refused)?;
        let parts = of_one_run(parts, asked.run.as_deref()).map_err(refused)?;
        let (begun, paths) = begun(parts).map_err(refused)?;
        let (lines, told) = unbounded_channel();
        // No agent receives the orders.
        let (orders, _) = unbounded_channel();
        let orders = Orders::Fleet(paths.len(), orders);
        let clock = begun.clock();
        let generators = Posts::new(clock, orders, told, std::iter::empty());
        tokio::spawn(async move { tell_all(&paths, &lines).await });
        let hosts = Hosts::default();
        begun.goes_on((generators, hosts), (&asked.settings, signals), errors).await
    };
    collected.await.unwrap_or_else(|exit| exit)
}

/// Finds all parts below these directories.
fn found(directories: &[PathBuf]) -> Result<Vec<CollectedPart>, Box<Diagnostic>> {
    let mut parts = Vec::new();
    for directory in directories {
        let before = parts.len();
        look(directory, 3, &mut parts).map_err(|error| unreadable(directory, &error))?;
        if parts.len() == before {
            let message = say!("{} does not contain any part of a run", directory.display());
            return Err(unfit(message, say!("give the `--dir` directory of `throng agent`")));
        }
    }
    Ok(parts)
}

fn look(directory: &Path, depth: usize, parts: &mut Vec<CollectedPart>) -> std::io::Result<()> {
    match plain::read(&directory.join(PART_FILE), PART_BYTES_MAX) {
        Ok(text) => {
            let kept: Kept = from_json(&text).ok_or(std::io::ErrorKind::InvalidData)?;
            parts.push(CollectedPart { home: directory.to_path_buf(), kept });
            return Ok(());
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if depth > 0 && path.is_dir() {
            look(&path, depth - 1, parts)?;
        }
    }
    Ok(())
}

/// The parts of the named run, or of the only run.
fn of_one_run(
    parts: Vec<CollectedPart>,
    named: Option<&str>,
) -> Result<Vec<CollectedPart>, Box<Diagnostic>> {
    let mut runs: BTreeMap<String, Vec<CollectedPart>> = BTreeMap::new();
    for part in parts {
        runs.entry(part.kept.plan.run.clone()).or_default().push(part);
    }
    let names: Vec<&str> = runs.keys().map(String::as_str).collect();
    let names = names.join(", ");
    match named {
        Some(run) => runs.remove(run).ok_or_else(|| {
            unfit(say!("no part of run {run} was found"), say!("runs found: {names}"))
        }),
        None if runs.len() == 1 => Ok(runs.into_values().next().unwrap_or_default()),
        None => {
            let help = say!("choose one of them with --run: {names}");
            Err(unfit(say!("parts of {} runs were found", runs.len()), help))
        }
    }
}

/// The run, and the lines of each part that was found, by index in its plan.
fn begun(parts: Vec<CollectedPart>) -> Result<(Begun, Vec<Option<PathBuf>>), Box<Diagnostic>> {
    let Some(first) = parts.first() else {
        return Err(unfit(say!("its directory was not given"), say!("give each part only once")));
    };
    let (plan, bundle) = (first.kept.plan.clone(), Run::open(&first.home.join(BUNDLE))?);
    let mut paths: Vec<Option<PathBuf>> = plan.parts.iter().map(|_| None).collect();
    let mut machines: Vec<Machine> = plan.parts.iter().map(|_| Machine::default()).collect();
    let mut start_unix_ns = None;
    for CollectedPart { home, kept } in parts {
        let place = kept.place;
        let Some(part) = plan.parts.get(place).filter(|_| kept.plan == plan) else {
            let message = say!("{} belongs to a different run with the same ID", home.display());
            return Err(unfit(message, say!("omit it")));
        };
        if paths[place].is_some() {
            let message = say!("{} contains the same part as `{}`", home.display(), part.agent);
            return Err(unfit(message, say!("give each part only once")));
        }
        let lines = home.join(LINES_FILE);
        let (shards, start) = said_first(&lines).map_err(|error| unreadable(&lines, &error))?;
        start_unix_ns = start_unix_ns.or(start);
        let host = kept.host.read().unwrap_or_default();
        machines[place] = Machine { host, shards };
        paths[place] = Some(lines);
    }
    let Some(start_unix_ns) = start_unix_ns else {
        let help = say!("nothing was sent in this run");
        return Err(unfit(say!("run {} did not start", plan.run), help));
    };
    let told = plan.told.read().ok_or_else(|| {
        unfit(
            say!("the plan of run {} cannot be read", plan.run),
            say!("use the same version of throng"),
        )
    })?;
    let past = VecDeque::new();
    Ok((Begun { plan, told, start_unix_ns, machines, bundle, past, is_over: true }, paths))
}

/// The first messages of a child: its number of shards, and the start of its load.
fn said_first(lines: &Path) -> std::io::Result<(u64, Option<u64>)> {
    let mut shards = 0;
    for line in BufReader::new(plain::open(lines)?).split(b'\n').take(2) {
        match serde_json::from_slice(&line?) {
            Ok(Message::Ready(ready)) => shards = ready.shards,
            Ok(Message::Begun(start)) => return Ok((shards, Some(start.unix_ns))),
            _ => break,
        }
    }
    Ok((shards, None))
}

/// Sends the lines of all parts to the controller, and reports missing parts.
async fn tell_all(paths: &[Option<PathBuf>], lines: &Lines) {
    let mut readers: Vec<Option<CopyReader>> = Vec::new();
    for (place, path) in paths.iter().enumerate() {
        readers.push(CopyReader::open(place, path.as_deref(), lines));
    }
    // The parts take turns, so that the controller buffers few lines.
    while readers.iter().any(Option::is_some) {
        for reader in &mut readers {
            if let Some(one) = reader
                && !one.tell(lines)
            {
                *reader = None;
            }
        }
        yield_now().await;
    }
}

struct CopyReader {
    machine: u16,
    lines: std::io::Split<BufReader<File>>,
}

impl CopyReader {
    fn open(place: usize, path: Option<&Path>, tell: &Lines) -> Option<CopyReader> {
        let machine = u16::try_from(place).unwrap_or(u16::MAX);
        let opened = path
            .ok_or_else(|| say!("its directory was not given"))
            .and_then(|path| plain::open(path).map_err(|error| Said::of_error(&error)));
        match opened {
            Ok(file) => Some(CopyReader { machine, lines: BufReader::new(file).split(b'\n') }),
            Err(detail) => {
                let _ = tell.send((machine, Message::Lost { detail }));
                None
            }
        }
    }

    /// Sends the next line. Returns false at the end.
    fn tell(&mut self, tell: &Lines) -> bool {
        let message = self.lines.next().and_then(|line| serde_json::from_slice(&line.ok()?).ok());
        let message = message.unwrap_or_else(|| Message::Lost {
            detail: say!("its log ends before the end of its load"),
        });
        let is_last = matches!(message, Message::Over { .. } | Message::Lost { .. });
        tell.send((self.machine, message)).is_ok() && !is_last
    }
}
