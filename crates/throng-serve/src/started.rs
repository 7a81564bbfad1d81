//! Runs that are started from the page: child processes of this binary, each with its own live
//! page. Only scenarios in the given folder can be run; only their load and their declared
//! variables can be set.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use throng_base::clock::wall_now;
use throng_base::system::in_own_group;
use throng_base::{Clock, Said, Source, Time, plain};
use throng_results::create_directory;
use throng_run::control::command;
use throng_run::control::socket::ask;
use throng_scenario::inputs;

/// Maximum number of listed scenarios, and the maximum size of one.
const SCENARIOS_MAX: usize = 500;
const SCENARIO_BYTES_MAX: usize = 1024 * 1024;
/// How much of a run's output for people is kept, from its end.
const SAID_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of finished runs in the list.
const OVER_MAX: usize = 20;
/// How long runs may take to end when the server stops.
const STOP_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// A request to start a run.
#[derive(Deserialize)]
pub(super) struct Begin {
    scenario: String,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    load: Load,
}

/// Changes of the load, with the syntax of the flags of `throng run`; empty fields change nothing.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Load {
    users: String,
    rate: String,
    duration: String,
}

impl Load {
    fn flags(&self) -> impl Iterator<Item = String> {
        let all = [("users", &self.users), ("rate", &self.rate), ("duration", &self.duration)];
        let all = all.into_iter().map(|(flag, value)| (flag, value.trim()));
        let given = all.filter(|(_, value)| !value.is_empty());
        given.map(|(flag, value)| format!("--{flag}={value}"))
    }
}

/// See the module's description.
pub(super) struct Started {
    scenarios: PathBuf,
    runs: PathBuf,
    /// The address of their live pages.
    ip: IpAddr,
    runs_max: usize,
    refusal: fn(Vec<OsString>) -> Option<Said>,
    all: Vec<One>,
}

struct One {
    scenario: String,
    directory: PathBuf,
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
    /// The link to its live page, once it is printed.
    live: Option<String>,
    /// None while it is running.
    ended: Option<Option<i32>>,
}

impl One {
    /// The end of its output for people.
    fn words(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Started {
    pub(super) fn new(
        (scenarios, runs): (&Path, &Path),
        (ip, runs_max): (IpAddr, usize),
        refusal: fn(Vec<OsString>) -> Option<Said>,
    ) -> Started {
        let (scenarios, runs) = (scenarios.to_path_buf(), runs.to_path_buf());
        Started { scenarios, runs, ip, runs_max, refusal, all: Vec::new() }
    }

    /// The names of regular files in the folder itself; links are ignored.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.scenarios).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let is_scenario =
            |name: &String| [".yaml", ".yml"].iter().any(|ending| name.ends_with(ending));
        let mut names: Vec<String> = names.filter(is_scenario).collect();
        names.sort();
        names.truncate(SCENARIOS_MAX);
        names
    }

    /// The scenarios, and their variables.
    pub(super) fn scenarios(&self) -> Value {
        let inputs = |name: &String| {
            let all = self.inputs(name).into_iter();
            let told =
                all.map(|it| json!({"name": it.name, "default": it.default, "secret": it.secret}));
            json!({"name": name, "inputs": told.collect::<Vec<_>>()})
        };
        self.files().iter().map(inputs).collect()
    }

    fn inputs(&self, name: &str) -> Vec<throng_scenario::Input> {
        let text = plain::read_text(&self.scenarios.join(name), SCENARIO_BYTES_MAX);
        text.map_or_else(|_| Vec::new(), |text| inputs(&Source::new(name, text)))
    }

    /// Starts a run; returns its name in the folder of runs.
    pub(super) fn begin(&mut self, wanted: &Begin) -> Result<String, Said> {
        self.look();
        if self.all.iter().filter(|it| it.ended.is_none()).count() >= self.runs_max {
            return Err(say!(
                "a run is already in progress: wait until it ends, or raise --runs-max"
            ));
        }
        let name = &wanted.scenario;
        if !self.files().contains(name) {
            return Err(say!("there is no scenario `{}` in this folder", name.clone()));
        }
        let known = self.inputs(name);
        let unknown = wanted.set.keys().find(|key| known.iter().all(|input| input.name != **key));
        if let Some(key) = unknown {
            return Err(say!("`{}` is not a variable of this scenario", key.clone()));
        }
        let scenario = self.scenarios.join(name).into_os_string();
        let mut words = vec!["run".into(), scenario];
        words.extend(wanted.load.flags().map(OsString::from));
        words.extend(wanted.set.iter().map(|(name, value)| format!("--set={name}={value}").into()));
        // Mistakes in flags are reported here, with the same messages.
        let line = std::iter::once("throng".into()).chain(words.iter().cloned()).collect();
        if let Some(wrong) = (self.refusal)(line) {
            return Err(wrong);
        }
        let one = self.spawn(name, &words).map_err(|error| {
            let error = Said::of_error(&error);
            say!("the scenario cannot be started: {}", error)
        })?;
        let directory = one.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        self.all.push(one);
        Ok(directory.unwrap_or_default())
    }

    fn spawn(&self, name: &str, words: &[OsString]) -> std::io::Result<One> {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let directory = create_directory(&self.runs, wall_now(), stem)?;
        let ip = match self.ip {
            IpAddr::V6(ip) => format!("[{ip}]:0"),
            ip => format!("{ip}:0"),
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).arg("--out").arg(&directory);
        command.args(["--no-color", "--quiet", "--lang", throng_base::language::spoken().word()]);
        command.arg(format!("--live={ip}"));
        // Ctrl-C is for this process, which then stops the run.
        in_own_group(&mut command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().inspect_err(|_| drop(std::fs::remove_dir(&directory)))?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (kept, errors) = (Arc::clone(&said), child.stderr.take());
        std::thread::Builder::new().name("said".into()).spawn(move || keep(errors, &kept))?;
        Ok(One { scenario: name.to_string(), directory, child, said, live: None, ended: None })
    }

    /// Checks which runs have ended, and reads their output.
    fn look(&mut self) {
        for one in &mut self.all {
            if one.live.is_none() {
                let said = one.words();
                let link = said.split_whitespace().find(|word| word.contains("/?token="));
                one.live = link.map(str::to_string);
            }
            if one.ended.is_none()
                && let Ok(Some(status)) = one.child.try_wait()
            {
                one.ended = Some(status.code());
                // A run that did not start leaves nothing.
                let _ = std::fs::remove_dir(&one.directory);
            }
        }
        let over = self.all.iter().filter(|it| it.ended.is_some()).count();
        let mut surplus = over.saturating_sub(OVER_MAX);
        self.all.retain(|it| {
            let goes = it.ended.is_some() && surplus > 0;
            surplus -= usize::from(goes);
            !goes
        });
    }

    /// Newest first.
    pub(super) fn json(&mut self) -> Value {
        self.look();
        let one = |one: &One| {
            let failed = one.ended.is_some_and(|code| code != Some(0));
            json!({
                "scenario": one.scenario,
                "name": one.directory.file_name().map(|name| name.to_string_lossy().into_owned()),
                "live": one.live.as_ref().filter(|_| one.ended.is_none()),
                "goes_on": one.ended.is_none(),
                "exit_code": one.ended.flatten(),
                "said": failed.then(|| without_links(&one.words())),
            })
        };
        self.all.iter().rev().map(one).collect()
    }

    fn going(&self) -> impl Iterator<Item = &One> {
        self.all.iter().filter(|one| one.ended.is_none())
    }

    /// Stops running children, and waits for them for a limited time.
    pub(super) fn stop(mut self) {
        let (version, command) = (command::VERSION, command::Command::Stop);
        let request = command::Request { version, command, load: None };
        self.look();
        let clock = Clock::start();
        // A run that is just starting does not listen yet. A second request would end a run
        // immediately.
        let mut untold: Vec<PathBuf> = self.going().map(|one| one.directory.clone()).collect();
        while self.going().next().is_some() && clock.now() - Time::ZERO < STOP_MAX {
            untold.retain(|directory| ask(directory, &request).is_err());
            std::thread::park_timeout(LOOK);
            self.look();
        }
        for one in self.all.iter_mut().filter(|it| it.ended.is_none()) {
            let _ = one.child.kill();
            let _ = one.child.wait();
        }
    }
}

/// Removes links: the token of a finished live page is useless, and must not be disclosed.
fn without_links(said: &str) -> String {
    let lines = said.lines().filter(|line| !line.contains("/?token="));
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads to the end, and keeps the last part.
fn keep(errors: Option<ChildStderr>, kept: &Mutex<Vec<u8>>) {
    let Some(mut errors) = errors else { return };
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut part) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&part[..count]);
        let surplus = kept.len().saturating_sub(SAID_BYTES_MAX);
        kept.drain(..surplus);
    }
}
