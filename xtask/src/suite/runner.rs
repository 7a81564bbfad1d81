//! Runs tests, each in a process of its own: end-to-end tests beside those within a crate, then
//! those that look at the clock, one after another. What failed runs again, alone: if it passes
//! then, it is flaky, which is reported by name and is no failure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use throng_base::{Clock, Time};

use super::{FLAKY_MAX, Test};
use crate::packages::Environment;
use crate::workspace::Workspace;
use crate::{files, say};

/// How many end-to-end tests run at once for each core: most wait for a server or for a second to
/// pass. The tests within a crate, as many as there are cores, fill the time in which they wait.
const WAITING_PER_CORE: usize = 5;
/// Tests within a crate have a lower priority than tests that depend on time.
const NICENESS: &str = "10";
/// A test that takes longer hangs.
const SECONDS_MAX: &str = "600";
/// If more tests than this fail, it is not by chance: none runs again.
const AGAIN_MAX: usize = 10;
const SLOWEST: usize = 10;

/// The result of a test.
pub(super) struct Outcome {
    pub(super) name: String,
    took: Duration,
    /// All that the test printed, if it failed.
    pub(super) failure: Option<String>,
}

/// The results of all tests.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<String>,
    /// Failed once, and passed when they ran again alone.
    pub(crate) flaky: Vec<String>,
    /// The slowest first.
    slowest: Vec<(Duration, String)>,
}

/// Tests that run together.
pub(super) struct Group<'a> {
    pub(super) name: &'static str,
    pub(super) tests: Vec<&'a Test>,
    pub(super) at_once: usize,
    pub(super) niceness: &'static str,
}

pub(crate) fn run_all(
    workspace: &Workspace,
    tests: &[&Test],
    environment: &Environment,
) -> Result<Report, String> {
    let crew = Crew::new(workspace, environment)?;
    let clock = Clock::start();
    let take = |group: &Group| {
        let (begun, outcomes) = (clock.now(), crew.run(group));
        let Group { name, tests, at_once, .. } = group;
        let seconds = clock.now().since(begun).as_secs_f64();
        say(&format!("{} {name}, {at_once} at once: {seconds:.0} s", tests.len()));
        outcomes
    };
    let [computing, waiting, alone] = groups(tests);
    let mut outcomes = thread::scope(|scope| {
        let beside = scope.spawn(|| take(&computing));
        let mut outcomes = take(&waiting);
        outcomes.extend(beside.join().expect("no worker panics"));
        outcomes
    });
    outcomes.extend(take(&alone));
    Ok(crew.judge(tests, outcomes))
}

/// The tests within a crate, the end-to-end tests, and those that look at the clock.
fn groups<'a>(tests: &[&'a Test]) -> [Group<'a>; 3] {
    let (alone, others): (Vec<&Test>, Vec<&Test>) =
        tests.iter().partition(|test| test.looks_at_the_clock());
    let (mut waiting, computing): (Vec<&Test>, Vec<&Test>) =
        others.into_iter().partition(|test| test.is_end_to_end());
    waiting.sort_by_key(|test| !test.is_long());
    let group = |name, tests, at_once, niceness| Group { name, tests, at_once, niceness };
    [
        group("tests within a crate", computing, cores(), NICENESS),
        group("end-to-end tests", waiting, cores() * WAITING_PER_CORE, "0"),
        group("tests that look at the clock", alone, 1, "0"),
    ]
}

pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What all tests share.
pub(super) struct Crew<'a> {
    environment: &'a Environment,
    /// For what tests print.
    folder: PathBuf,
}

impl Crew<'_> {
    pub(super) fn new<'a>(
        workspace: &Workspace,
        environment: &'a Environment,
    ) -> Result<Crew<'a>, String> {
        let folder = workspace.target.join("ci/output");
        files::create(&folder)?;
        Ok(Crew { environment, folder })
    }

    pub(super) fn run(&self, group: &Group) -> Vec<Outcome> {
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for worker in 0..group.at_once.min(group.tests.len()) {
                let (next, outcomes) = (&next, &outcomes);
                scope.spawn(move || {
                    while let Some(test) = group.tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = self.run_one(test, group.niceness, worker);
                        outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                    }
                });
            }
        });
        outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_one(&self, test: &Test, niceness: &str, worker: usize) -> Outcome {
        let clock = Clock::start();
        let printed = self.folder.join(format!("{niceness}-{worker}.txt"));
        let failure = self.start(test, niceness, &printed).err().map(|error| {
            let said = fs::read(&printed).unwrap_or_default();
            format!("{}\n{error}", String::from_utf8_lossy(&said).trim_end())
        });
        let name = test.full_name();
        if failure.is_some() {
            say(&format!("failed: {name}"));
        }
        Outcome { name, took: clock.now().since(Time::default()), failure }
    }

    /// Runs a test to its end. What it prints goes to a file: a pipe would stay open as long as any
    /// program that it has left behind.
    fn start(&self, test: &Test, niceness: &str, printed: &Path) -> Result<(), String> {
        let open = || File::options().create(true).append(true).open(printed);
        let _ = fs::remove_file(printed);
        let opened = open().and_then(|out| open().map(|err| (out, err)));
        let (out, err) = opened.map_err(|error| format!("{}: {error}", printed.display()))?;
        let status = Command::new("nice")
            .args(["-n", niceness, "timeout", "--kill-after=10", SECONDS_MAX])
            .arg(&test.binary)
            .args(["--exact", &test.name, "--nocapture"])
            .current_dir(&test.folder)
            .env("CARGO_MANIFEST_DIR", &test.folder)
            .envs(self.environment.iter().map(|(name, path)| (name, path)))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .status()
            .map_err(|error| format!("nice: {error}"))?;
        match status.code() {
            Some(0) => Ok(()),
            Some(124) => Err(format!("the test takes more than {SECONDS_MAX} s")),
            _ => Err(status.to_string()),
        }
    }

    /// Runs failed tests again.
    fn judge(&self, tests: &[&Test], outcomes: Vec<Outcome>) -> Report {
        let mut report = Report::default();
        let few = outcomes.iter().filter(|it| it.failure.is_some()).count() <= AGAIN_MAX;
        for outcome in outcomes {
            report.slowest.push((outcome.took, outcome.name.clone()));
            let Some(failure) = outcome.failure else {
                report.passed += 1;
                continue;
            };
            say(&format!("\n---- {} ----\n{failure}", outcome.name));
            let test = tests.iter().find(|test| test.full_name() == outcome.name);
            let again = test.filter(|_| few).map(|test| self.run_one(test, "0", 0));
            match again.is_some_and(|outcome| outcome.failure.is_none()) {
                true => {
                    report.passed += 1;
                    report.flaky.push(outcome.name);
                }
                false => report.failed.push(outcome.name),
            }
        }
        report.slowest.sort_by(|one, other| other.cmp(one));
        report.slowest.truncate(SLOWEST);
        report
    }
}

impl Report {
    pub(crate) fn has_failed(&self) -> bool {
        !self.failed.is_empty() || self.flaky.len() > FLAKY_MAX
    }

    pub(crate) fn in_short(&self) -> String {
        format!("{} failed, {} flaky", self.failed.len(), self.flaky.len())
    }

    /// The slowest tests, what was flaky, what failed, and the sum, which comes last.
    pub(crate) fn print(&self) {
        say("slowest tests:");
        for (took, name) in &self.slowest {
            say(&format!("{:>7.1} s  {name}", took.as_secs_f64()));
        }
        for name in &self.flaky {
            say(&format!("flaky: {name}"));
        }
        if self.flaky.len() > FLAKY_MAX {
            say(&format!("{} tests are flaky; at most {FLAKY_MAX} may be", self.flaky.len()));
        }
        for name in &self.failed {
            say(&format!("failed: {name}"));
        }
        say(&format!("{} passed, {} failed", self.passed, self.failed.len()));
    }
}

/// Keeps one core busy until this program ends.
pub(super) fn keep_a_core_busy() {
    thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
}
