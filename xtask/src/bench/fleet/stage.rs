//! A fleet on this machine: keys, a real bus, agents, and the run to measure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::super::child::{self, Ended, Running, holds_within};
use super::super::server;
use super::super::tool::{self, Places};
use crate::packages;
use crate::programs::text_of;

/// The time for a bus to start, and for agents to join it.
const JOIN_TIME: Duration = Duration::from_secs(60);

pub(super) struct Stage {
    pub(super) folder: PathBuf,
    pub(super) throng: PathBuf,
    keys: PathBuf,
    serve: Option<Running>,
    agents: Vec<Running>,
}

impl Drop for Stage {
    /// The server outlives the process that started it.
    fn drop(&mut self) {
        self.agents.clear();
        self.serve = None;
        if let Some(server) = self.server() {
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
        let stage = Stage {
            folder: folder.to_path_buf(),
            throng: places.throng.clone(),
            keys: folder.join("fleet"),
            serve: None,
            agents: Vec::new(),
        };
        let address = format!("127.0.0.1:{}", server::free_port()?);
        stage.fleet(&["init", "--address", &address])?;
        Ok(stage)
    }

    /// Runs `throng fleet …` and returns its output.
    fn fleet(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.throng);
        command.arg("fleet").args(words).arg("--fleet").arg(&self.keys);
        text_of(&mut command)
    }

    pub(super) fn keys(&self) -> &Path {
        &self.keys
    }

    pub(super) fn serve(&mut self, places: &Places) -> Result<(), String> {
        let program = match std::env::var_os("THRONG_NATS_SERVER") {
            Some(path) => path.into(),
            None => packages::ensure_nats(&places.target)?,
        };
        let mut command = Command::new(&self.throng);
        command.args(["fleet", "serve", "--nats-server"]).arg(program);
        command.arg("--fleet").arg(&self.keys);
        let serve = child::start(command, None, &self.folder, "serve")?;
        let is_up = holds_within(JOIN_TIME, || serve.errors().contains("is running at"));
        let said = serve.errors();
        self.serve = Some(serve);
        if is_up { Ok(()) } else { Err(format!("the bus does not begin: {}", said.trim())) }
    }

    /// The keeper of the bus: nats-server is its child.
    pub(super) fn bus(&self) -> Vec<i32> {
        self.serve.iter().map(Running::pid).collect()
    }

    fn server(&self) -> Option<i32> {
        fs::read_to_string(self.keys.join("server.pid")).ok()?.trim().parse().ok()
    }

    /// This many real agents, with the flags `more` for each by number.
    pub(super) fn agents(&mut self, count: usize) -> Result<(), String> {
        for number in self.agents.len()..count {
            let name = format!("r{number:02}");
            let token = tool::write(&self.folder, &name, &self.fleet(&["token", &name])?)?;
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

    /// The lines that an agent has sent for its last run.
    pub(super) fn told_by(&self, number: usize) -> Result<String, String> {
        let own = self.folder.join(format!("agents/r{number:02}"));
        let parts = fs::read_dir(&own).map_err(|error| format!("{}: {error}", own.display()))?;
        let files = parts.flatten().map(|part| part.path().join("lines.ndjson"));
        let last = files.filter(|file| file.exists()).max();
        let last = last.ok_or("the agent has told nothing")?;
        fs::read_to_string(&last).map_err(|error| format!("{}: {error}", last.display()))
    }

    /// The agents' version of throng.
    pub(super) fn version(&self) -> Result<String, String> {
        let agents: Value = serde_json::from_str(&self.fleet(&["agents", "--json"])?)
            .map_err(|error| format!("fleet agents: {error}"))?;
        let version = agents.as_array().into_iter().flatten().find_map(|it| it["version"].as_str());
        Ok(version.ok_or("no agent has said its version")?.to_string())
    }

    /// A fleet run with its results as JSON.
    pub(super) fn run(&self, scenario: &str, words: &[&str]) -> Result<Running, String> {
        let file = tool::write(&self.folder, "s.yaml", scenario)?;
        let record = self.record();
        let _ = fs::remove_dir_all(&record);
        let mut command = Command::new(&self.throng);
        command.arg("run").arg(file).arg(format!("--fleet={}", self.keys.display()));
        command.args(["--json", "--no-color", "--out"]).arg(record).args(words);
        child::start(command, None, &self.folder, "run")
    }

    pub(super) fn record(&self) -> PathBuf {
        self.folder.join("record")
    }

    /// The start of the load in nanoseconds since the Unix epoch, once it is known.
    pub(super) fn zero_unix_ns(&self) -> Option<u64> {
        let text = fs::read_to_string(self.record().join("run.json")).ok()?;
        let info: Value = serde_json::from_str(&text).ok()?;
        info["zero_unix_ns"].as_u64().filter(|zero| *zero > 0)
    }
}

/// The results of a run that has ended.
pub(super) fn summary(ended: &Ended) -> Result<Value, String> {
    serde_json::from_str(&ended.output)
        .map_err(|error| format!("no summary: {error}; {}", ended.complaint()))
}
