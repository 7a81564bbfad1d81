//! A fleet on this machine: keys, a real bus, agents, and the run to measure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::super::child::{self, Ended, Running, holds_within};
use super::super::server;
use super::super::{Places, tool};
use crate::programs::text_of;
use crate::{files, packages};

/// The time for a bus to start, and for agents to join it.
const JOIN_TIME: Duration = Duration::from_secs(60);
/// The time for a run with real agents.
const RUN_TIME: Duration = Duration::from_secs(180);

pub(super) struct Stage {
    pub(super) folder: PathBuf,
    pub(super) throng: PathBuf,
    serve: Option<Running>,
    agents: Vec<Running>,
}

impl Drop for Stage {
    /// The server outlives the process that started it.
    fn drop(&mut self) {
        self.agents.clear();
        self.serve = None;
        let id = fs::read_to_string(self.keys().join("server.pid")).unwrap_or_default();
        if let Ok(server) = id.trim().parse() {
            // SAFETY: a signal to the server of this fleet, by its own file.
            unsafe { libc::kill(server, libc::SIGTERM) };
            let is_gone = || !Path::new(&format!("/proc/{server}")).exists();
            let _ = holds_within(Duration::from_secs(10), is_gone);
        }
    }
}

impl Stage {
    /// Only keys: agents that are admitted before the bus starts cost it nothing.
    pub(super) fn new(places: &Places, folder: &Path) -> Result<Stage, String> {
        let (folder, throng) = (folder.to_path_buf(), places.throng.clone());
        let stage = Stage { folder, throng, serve: None, agents: Vec::new() };
        stage.fleet(&["init", "--address", &format!("127.0.0.1:{}", server::free_port()?)])?;
        Ok(stage)
    }

    pub(super) fn keys(&self) -> PathBuf {
        self.folder.join("fleet")
    }

    /// Runs `throng fleet …` and returns its output.
    fn fleet(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.throng);
        text_of(command.arg("fleet").args(words).arg("--fleet").arg(self.keys()))
    }

    pub(super) fn serve(&mut self, places: &Places) -> Result<(), String> {
        let program = match std::env::var_os("THRONG_NATS_SERVER") {
            Some(path) => path.into(),
            None => packages::ensure_nats(&places.target)?,
        };
        let mut command = Command::new(&self.throng);
        command.args(["fleet", "serve", "--nats-server"]).arg(program);
        command.arg("--fleet").arg(self.keys());
        let serve = child::start(command, None, &self.folder, "serve")?;
        let is_up = holds_within(JOIN_TIME, || serve.errors().contains("is running at"));
        let said = serve.errors();
        self.serve = Some(serve);
        if is_up { Ok(()) } else { Err(format!("the bus does not start: {}", said.trim())) }
    }

    /// The keeper of the bus: nats-server is its child.
    pub(super) fn bus(&self) -> Result<i32, String> {
        self.serve.as_ref().map(Running::pid).ok_or_else(|| "no bus is running".to_string())
    }

    /// Starts real agents until there are this many.
    fn agents(&mut self, count: usize) -> Result<(), String> {
        for number in self.agents.len()..count {
            let name = format!("r{number:02}");
            let token = self.folder.join(&name);
            files::write(&token, self.fleet(&["token", &name])?)?;
            let mut command = Command::new(&self.throng);
            command.args(["agent", "--label", "real=yes", "--join"]).arg(token);
            command.arg("--dir").arg(self.folder.join("agents"));
            self.agents.push(child::start(command, None, &self.folder, &name)?);
        }
        let are_there = || self.agents.iter().all(|agent| agent.errors().contains("joined"));
        match holds_within(JOIN_TIME, are_there) {
            true => Ok(()),
            false => Err(format!("{count} agents do not join")),
        }
    }

    /// The file with the lines that the first agent has sent for its last run, and its length.
    pub(super) fn lines_of_an_agent(&self) -> Result<(PathBuf, u64), String> {
        let own = self.folder.join("agents/r00");
        let parts = fs::read_dir(&own).map_err(|error| format!("{}: {error}", own.display()))?;
        let files = parts.flatten().map(|part| part.path().join("lines.ndjson"));
        let last = files.filter(|file| file.exists()).max().ok_or("the agent has sent nothing")?;
        // A later run with this agent must not change what is replayed.
        let lines = self.folder.join("recorded.ndjson");
        let copied = fs::copy(&last, &lines);
        let bytes = copied.map_err(|error| format!("{}: {error}", last.display()))?;
        Ok((lines, bytes))
    }

    /// The agents' version of throng.
    pub(super) fn version(&self) -> Result<String, String> {
        let agents: Value = serde_json::from_str(&self.fleet(&["agents", "--json"])?)
            .map_err(|error| format!("fleet agents: {error}"))?;
        let version = agents.as_array().into_iter().flatten().find_map(|it| it["version"].as_str());
        Ok(version.ok_or("no agent has told its version")?.to_string())
    }

    /// Starts a fleet run on so many agents, with its results as JSON.
    pub(super) fn run(
        &self,
        scenario: &str,
        count: usize,
        words: &[&str],
    ) -> Result<Running, String> {
        let file = self.folder.join("s.yaml");
        files::write(&file, scenario)?;
        let record = self.record();
        let _ = fs::remove_dir_all(&record);
        let mut command = Command::new(&self.throng);
        command.arg("run").arg(file).arg(format!("--fleet={}", self.keys().display()));
        command.arg(format!("--agents={count}")).args(["--json", "--no-color"]);
        command.arg("--out").arg(record).args(words);
        child::start(command, None, &self.folder, "run")
    }

    /// Runs a scenario on so many real agents to its end, and returns its summary.
    pub(super) fn ran(
        &mut self,
        scenario: &str,
        count: usize,
        words: &[&str],
    ) -> Result<Value, String> {
        self.agents(count)?;
        let ended = self.run(scenario, count, &[words, &["--quiet"]].concat())?.wait(RUN_TIME)?;
        match tool::has_figures(&ended) {
            true => json(&ended),
            false => Err(format!("{count} agents: {}", ended.complaint())),
        }
    }

    fn record(&self) -> PathBuf {
        self.folder.join("record")
    }

    /// The start of the load in nanoseconds since the Unix epoch, once it is known.
    pub(super) fn zero_unix_ns(&self) -> Option<u64> {
        let text = fs::read_to_string(self.record().join("run.json")).ok()?;
        let info: Value = serde_json::from_str(&text).ok()?;
        info["zero_unix_ns"].as_u64().filter(|zero| *zero > 0)
    }
}

/// What a program has printed as JSON.
pub(super) fn json(ended: &Ended) -> Result<Value, String> {
    serde_json::from_str(ended.output.trim())
        .map_err(|error| format!("no JSON: {error}; {}", ended.complaint()))
}
