//! Starts and supervises the load generators of this machine. Each is a child process (`throng
//! post`) that reads orders from standard input, like every process of a run, and appends its
//! messages to a file. The agent therefore cannot block it, and no line is lost if the agent is
//! killed. When its standard input ends, the child stops its load gracefully.

mod bounds;
mod spool;
pub mod work;

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use throng_base::private::Private as _;
use throng_base::system::{LocalStream, in_own_group, to_child};
use throng_base::{Said, clock::wall_now};
use throng_fleet::agent::{Begin, Child, Host};
use throng_fleet::presence::Incarnation;
use throng_fleet::wire::{Announcement, Ceiling, Raw, Start, to_json};
use throng_results::MachineInfo;

use crate::files::{inside, private_directory, private_file};
use crate::fleet::{BUNDLE, Kept, LINES_FILE, PART_FILE};
use crate::wire::{Assignment, Heard, Order, PlanDetails};
use bounds::Bounds;
use spool::{ERRORS_FILE, SENT_FILE, Spooled};

/// Starts the child processes of an agent.
pub struct Supervisor {
    /// Contains one directory per part of a run.
    pub directory: PathBuf,
    /// Flags set by the owner of the machine, which limit the child's resources.
    pub flags: Vec<String>,
    /// Maximum load of a child. Orders cannot raise it.
    pub ceiling: Ceiling,
    /// Facts about this host for the run directory.
    pub host: Raw,
}

impl Host for Supervisor {
    type Child = LoadProcess;
    type Spool = Spooled;

    fn unix_ns(&self) -> u64 {
        u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX)
    }

    async fn begin(&self, begin: Begin<'_>) -> Result<(LoadProcess, Spooled), Said> {
        let home = self.home(&begin.plan.run, begin.life);
        let failed = |error: io::Error| {
            let error = Said::of_error(&error);
            say!("{}: {error}", home.display())
        };
        let told: PlanDetails = begin
            .plan
            .told
            .read()
            .ok_or_else(|| say!("the plan of run {} cannot be read", begin.plan.run))?;
        private_directory(&home).map_err(failed)?;
        for (file, blob) in begin.plan.files.iter().zip(&begin.files) {
            let path = inside(&home.join(BUNDLE), &file.path).ok_or_else(|| {
                say!("the file `{}` of the run is outside its directory", file.path)
            })?;
            private_file(&path, blob).map_err(failed)?;
        }
        let plan = begin.plan.clone();
        let kept = Kept { place: place(&begin), host: self.host.clone(), plan };
        private_file(&home.join(PART_FILE), &to_json(&kept)).map_err(failed)?;
        let part = self.part(&home, &begin, &told);
        self.start(&home, (&part, begin.plan.rate_max), &told).map_err(failed)
    }

    fn left(&self) -> Vec<(String, Incarnation, Spooled)> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let mut left = Vec::new();
        for home in entries.flatten().map(|entry| entry.path()) {
            let name = home.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some((run, life)) = name.rsplit_once('.') else { continue };
            let Ok(life) = life.parse() else { continue };
            if let Some(spool) = Spooled::left(&home) {
                left.push((run.to_string(), Incarnation(life), spool));
            }
        }
        left
    }
}

impl Supervisor {
    fn home(&self, run: &str, life: Incarnation) -> PathBuf {
        self.directory.join(format!("{run}.{}", life.0))
    }

    fn part(&self, home: &Path, begin: &Begin<'_>, told: &PlanDetails) -> Assignment {
        let name = told.names.get(place(begin)).cloned().unwrap_or_default();
        let bundle = home.join(BUNDLE).display().to_string();
        let words = ["throng", "rerun", &bundle].map(String::from).into_iter();
        Assignment {
            words: words.chain(told.flags.clone()).chain(self.flags.clone()).collect(),
            // The digest of each file has been checked.
            scenario: None,
            inputs: told.inputs.clone(),
            machine: MachineInfo { name, part: begin.part, ..MachineInfo::default() },
            neighbours: 1,
            audits: true,
        }
    }

    fn start(
        &self,
        home: &Path,
        (part, rate_max): (&Assignment, Option<f64>),
        told: &PlanDetails,
    ) -> io::Result<(LoadProcess, Spooled)> {
        let lines =
            File::options().create_new(true).append(true).private().open(home.join(LINES_FILE))?;
        // The lock belongs to the open file, so the child holds it until it exits.
        lines.try_lock()?;
        let errors =
            File::options().create(true).append(true).private().open(home.join(ERRORS_FILE))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("post").current_dir(home).envs(&told.environment);
        let (mut input, theirs) = to_child()?;
        let said = input.try_clone()?;
        in_own_group(&mut command).stdin(theirs).stdout(lines).stderr(errors);
        let mut child = command.spawn()?;
        // Closes the agent's handles of the file and the socket.
        drop(command);
        let announced = Announced::default();
        let heard = Arc::clone(&announced);
        let listener = std::thread::spawn(move || listen(said, &heard));
        let (sender, texts) = channel::<String>();
        std::thread::spawn(move || {
            for text in texts {
                // If the child has exited, its file shows how.
                if input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n")).is_err() {
                    return;
                }
            }
            let _ = input.shutdown(Shutdown::Write);
        });
        let text = serde_json::to_string(part)?;
        let _ = sender.send(text);
        let ended = Arc::new(OnceLock::new());
        let seen = Arc::clone(&ended);
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = seen.set(status);
            }
        });
        let spool = Spooled::of(home, Some(Arc::clone(&ended)))?;
        let process = LoadProcess {
            sender,
            lines: home.join(LINES_FILE),
            bounds: Bounds::new(self.ceiling, &part.machine, rate_max),
            announced,
            listener: Some(listener),
            ended,
        };
        Ok((process, spool))
    }

    /// Removes the parts whose results were sent completely at least `kept` ago.
    pub fn tidy(&self, kept: Duration) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for home in entries.flatten().map(|entry| entry.path()) {
            let sent = fs::metadata(home.join(SENT_FILE));
            let is_old = sent
                .and_then(|sent| sent.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > kept));
            if is_old {
                let _ = fs::remove_dir_all(home);
            }
        }
    }
}

/// The index of a part in its plan.
fn place(begin: &Begin<'_>) -> usize {
    begin.plan.parts.iter().position(|it| it.part == begin.part).unwrap_or(usize::MAX)
}

pub struct LoadProcess {
    sender: Sender<String>,
    lines: PathBuf,
    bounds: Bounds,
    announced: Announced,
    listener: Option<JoinHandle<()>>,
    ended: Arc<OnceLock<ExitStatus>>,
}

/// Announcements from a child to other machines that the agent has not collected yet.
type Announced = Arc<Mutex<Vec<String>>>;

/// Further announcements are dropped; their receivers detect the gap.
const ANNOUNCED_MAX: usize = 64;

fn listen(said: LocalStream, announced: &Announced) {
    for line in BufReader::new(said).lines().map_while(Result::ok) {
        let mut waiting = announced.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < ANNOUNCED_MAX {
            waiting.push(line);
        }
    }
}

impl Child for LoadProcess {
    fn start(&mut self, unix_ns: u64) {
        self.say(&Start { unix_ns });
    }

    fn order(&mut self, order: &str) -> bool {
        let Ok(order) = serde_json::from_str::<Order>(order) else { return false };
        // The owner's limits apply to every order.
        let is_allowed = self.bounds.allow(&order);
        self.say(&Heard::<()>::Order(if is_allowed { order } else { Order::Decline }));
        is_allowed
    }

    fn announced(&mut self) -> Vec<String> {
        // After the child's exit, only what the listener is still reading can arrive.
        if self.ended.get().is_some()
            && let Some(listener) = self.listener.take()
        {
            let _ = listener.join();
        }
        std::mem::take(&mut self.announced.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn hear(&mut self, announced: &str, error_ns: u64) {
        // Ignore announcements that are not valid JSON.
        if let Ok(announced) = serde_json::from_str::<&RawValue>(announced) {
            self.say(&Heard::Announced(Announcement { announced, error_ns }));
        }
    }

    fn is_ready(&self) -> bool {
        fs::metadata(&self.lines).is_ok_and(|lines| lines.len() > 0)
    }
}

impl LoadProcess {
    fn say(&self, line: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(line) {
            let _ = self.sender.send(text);
        }
    }
}
