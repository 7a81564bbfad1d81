//! WebSocket users who come, are held and leave again, and the server they are connected to: the
//! scenario of `bench million` and `bench heartbeat`, and both ends beside each other on all cores.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::child::{self, Ended};
use super::look::{self, Host, Look, Watcher};
use super::record::{self, Phase};
use super::server::{self, Server};
use super::{tool, truth};

pub(super) const EXAMPLE: &str = "examples/im-websocket.yaml";
/// The target has room for this share of users more.
const ROOM_PERCENT: u64 = 10;
/// Shards and threads of the target are as many, and each shard's users are with one thread: both
/// ends then wake each other least. A table of descriptors holds 20,000 here.
const USERS_PER_THREAD: u64 = 16_000;
/// What a login and a heartbeat cost both ends together on the machine of docs/benchmarks.md, and
/// the part of the processors that they may use while users come.
pub(super) const LOGIN_CPU_S: f64 = 110e-6;
pub(super) const LOGIN_CPU_TLS_S: f64 = 900e-6;
pub(super) const HEARTBEAT_CPU_S: f64 = 45e-6;
pub(super) const USED_WHILE_FILLING: f64 = 0.75;
/// Users come in so many phases, each at a pace of its own.
const STAGES: u64 = 4;
const PACE_STEP: u64 = 100;
const PACE_MAX: u64 = 20_000;
/// A second, at most so many leave.
const LEAVING: u64 = 12_000;
const TICK: Duration = Duration::from_secs(1);
/// The slowest pace at which users may come and go before the bench gives up.
const PACE_MIN: u64 = 2_000;
const GRACE: Duration = Duration::from_secs(120);

/// What is changed of the example.
pub(super) struct Change {
    pub(super) tls: bool,
    pub(super) port: u16,
    pub(super) users: u64,
    pub(super) pace: Pace,
    pub(super) hold: Duration,
    pub(super) heartbeat: Duration,
}

/// How fast users come.
pub(super) enum Pace {
    /// A second, all of them.
    Even(u64),
    /// As this machine carries both ends beside their heartbeats: it has so many processors.
    /// Nothing happens for a while between their coming and the hold; what was behind has come
    /// then.
    Carried { cores: usize, settle: Duration },
}

/// All that is known about a run when it is over.
pub(super) struct Outcome {
    pub(super) before: Host,
    pub(super) looks: Vec<Look>,
    /// fill, settle, hold and drain.
    pub(super) phases: [Phase; 4],
    pub(super) ended: Ended,
    /// What the target counted.
    pub(super) target: Value,
}

/// Both ends before the first user comes.
pub(super) struct Ends {
    before: Host,
    target: Server,
    admin_port: u16,
    folder: PathBuf,
    pub(super) scenario: PathBuf,
    /// Of the target, and shards of the generator.
    threads: String,
    /// How long the generator may take.
    limit: Duration,
}

/// The example with these changes; an error if it does not have what is to be changed.
pub(super) fn scenario_of(example: &str, change: &Change) -> Result<String, String> {
    let Change { tls, port, users, hold, .. } = change;
    let (scheme, trust) = if *tls { ("wss", "\ntls: {verify: false}") } else { ("ws", "") };
    let lines = example.lines().map(|line| match line {
        _ if line.starts_with("target:") => {
            format!("target: {{addresses: [\"{scheme}://127.0.0.1:{port}\"]}}{trust}\n")
        }
        _ if line.contains(FILL) => filling(change),
        _ if line.contains(DRAIN) => {
            format!("{DRAIN}, users: {{to: 0, rate: {LEAVING}/s}}}}\n")
        }
        _ => format!("{line}\n"),
    });
    let text: String = lines.collect();
    let hold = format!("for: {}", units::write_duration(*hold));
    let beats = format!("every: {}", units::write_duration(change.heartbeat));
    let mut changes =
        vec![("1_000_000", users.to_string()), ("for: 10m", hold), ("every: 30s", beats)];
    // A heartbeat is answered before the next one, or lost.
    if change.heartbeat < LOST_AFTER {
        let lost_after = units::write_duration(change.heartbeat);
        changes.push(("lost_after: 10s", format!("lost_after: {lost_after}")));
    }
    let places = changes.iter().map(|(old, _)| *old).chain(["\ntarget:", FILL, DRAIN]);
    match places.into_iter().find(|place| !example.contains(place)) {
        Some(missing) => Err(format!("the scenario has no `{}`", missing.trim())),
        None => Ok(changes.iter().fold(text, |text, (old, new)| text.replace(old, new))),
    }
}

/// As the example has it.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// Where the phases begin in which users come and go.
const FILL: &str = "  - {name: fill";
const DRAIN: &str = "  - {name: drain";

/// The phases in which users come, and the one in which nothing happens after them. All of the
/// former have names that begin with `fill`.
fn filling(change: &Change) -> String {
    let line = |name: &str, to: u64, rate: u64| {
        format!("  - {{name: {name}, users: {{to: {to}, rate: {rate}/s}}}}\n")
    };
    let (cores, settle) = match change.pace {
        Pace::Even(rate) => return line("fill", change.users, rate),
        Pace::Carried { cores, settle } => (cores, settle),
    };
    let mut text = String::new();
    for stage in 1..=STAGES {
        let to = change.users * stage / STAGES;
        let name = if stage == 1 { "fill".to_string() } else { format!("fill {stage}") };
        text.push_str(&line(&name, to, carried(change, to, cores)));
    }
    let _ = writeln!(text, "  - {{name: settle, for: {}}}", units::write_duration(settle));
    text
}

/// How many users may come a second when so many are there.
fn carried(change: &Change, there: u64, cores: usize) -> u64 {
    let beating = there as f64 / change.heartbeat.as_secs_f64() * HEARTBEAT_CPU_S;
    let login = if change.tls { LOGIN_CPU_TLS_S } else { LOGIN_CPU_S };
    let rate = (cores as f64 - beating).max(0.0) * USED_WHILE_FILLING / login;
    (rate as u64 / PACE_STEP * PACE_STEP).clamp(PACE_STEP, PACE_MAX)
}

impl Ends {
    /// Starts the target and writes the scenario, which is the example with this change.
    pub(super) fn prepare(
        program: &Path,
        folder: &Path,
        example: &str,
        change: Change,
    ) -> Result<Ends, String> {
        let Change { users, hold, tls, .. } = change;
        let room = (users + users * ROOM_PERCENT / 100).to_string();
        let threads = users.div_ceil(USERS_PER_THREAD).max(2).to_string();
        let mut arguments =
            vec!["im", "--connections", &room, "--by-source", "--workers", &threads];
        if tls {
            arguments.push("--tls");
        }
        let before = look::host();
        let (target, admin_port) = server::throng_target_everywhere(program, folder, &arguments)?;
        let text = scenario_of(example, &Change { port: target.port, ..change })?;
        let scenario = tool::write(folder, "population.yaml", &text)?;
        let limit = hold + GRACE + Duration::from_secs(2 * users / PACE_MIN);
        let folder = folder.to_path_buf();
        Ok(Ends { before, target, admin_port, folder, scenario, threads, limit })
    }

    /// Runs this generator, with further flags, and looks at both ends.
    pub(super) fn run(self, program: &Path, more: &[&str]) -> Result<Outcome, String> {
        let record = self.folder.join("record");
        let mut command = Command::new(program);
        command.arg("run").arg(&self.scenario).args(["--quiet", "--json", "--shards"]);
        command.arg(&self.threads).arg("--out").arg(&record).args(more);
        let mut watcher = Watcher::new(&self.target, self.admin_port, look::MESSENGER);
        let running = child::start(command, None, &self.folder, "population")?;
        let ended = running.watch(TICK, self.limit, |id| {
            let look = watcher.look(id);
            if watcher.looks.len() % 10 == 1 {
                crate::say(&said(&look));
            }
        })?;
        let phases = record::phases(&record, ["fill", "settle", "hold", "drain"])
            .map_err(|trouble| format!("{trouble}; throng ended with {}", ended.complaint()))?;
        let (before, looks) = (self.before, watcher.looks);
        let target = truth::stats_at(self.admin_port).unwrap_or_default();
        Ok(Outcome { before, looks, phases, ended, target })
    }
}

fn said(look: &Look) -> String {
    format!(
        "{:4.0} s: {} logged in; throng {}, target {}, free {}; heartbeats {}",
        look.at.as_secs_f64(),
        look.logged_in,
        units::format_bytes(look.tool.resident_bytes as f64),
        units::format_bytes(look.target.resident_bytes as f64),
        units::format_bytes(look.host.available_bytes as f64),
        look.done
    )
}

#[cfg(test)]
mod tests;
