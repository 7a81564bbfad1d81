//! `cargo xtask ci`: every check and every test of the project, in one command. Nothing in it
//! depends on the commit, the time of day or an earlier run.

use std::process::Command;
use std::thread::{self, JoinHandle};

use throng_base::{Clock, Time};

use crate::packages::{self, Environment};
use crate::programs::{cargo, finish};
use crate::suite::{Compiled, Report, Test, compile, run_all};
use crate::workspace::Workspace;
use crate::{dist, files, say, tidy, web, workspace};

/// What the steps share and what they found.
struct Ci {
    workspace: Workspace,
    quick: bool,
    clock: Clock,
    /// Installs what the tests need while the compiler works.
    installing: Option<JoinHandle<Result<Environment, String>>>,
    /// The environment variables of the tests.
    environment: Environment,
    compiled: Option<Compiled>,
    report: Report,
    failed: Vec<&'static str>,
    /// How long each step took, in seconds.
    took: Vec<(&'static str, f64)>,
}

/// A headline and what is done below it.
struct Step {
    name: &'static str,
    run: fn(&mut Ci) -> Result<(), String>,
    /// `--quick` leaves it out.
    slow: bool,
    /// If it fails, the following steps would fail for the same reason.
    needed: bool,
}

/// The minimum that all steps write, starting from an empty target folder.
const DISK_NEEDED_KB: u64 = 5_000_000;

const STEPS: &[Step] = &[
    Step { name: "disk", run: check_disk, slow: false, needed: true },
    Step { name: "format", run: check_format, slow: false, needed: false },
    Step { name: "tidy", run: |_| tidy::run(), slow: false, needed: false },
    Step { name: "compile and lint", run: compile_tests, slow: false, needed: true },
    Step { name: "release build", run: build_release, slow: true, needed: true },
    Step { name: "packages", run: install_packages, slow: false, needed: true },
    Step { name: "web", run: |ci| web::check(&ci.workspace), slow: true, needed: false },
    Step { name: "package", run: package, slow: true, needed: false },
    Step { name: "tests", run: test, slow: false, needed: false },
];

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let quick = match arguments {
        [] => false,
        ["--quick"] => true,
        _ => return Err("usage: cargo xtask ci [--quick]".to_string()),
    };
    let workspace = workspace::load()?;
    let target = workspace.target.clone();
    let mut ci = Ci {
        workspace,
        quick,
        clock: Clock::start(),
        installing: Some(thread::spawn(move || packages::ensure(&target))),
        environment: Environment::new(),
        compiled: None,
        report: Report::default(),
        failed: Vec::new(),
        took: Vec::new(),
    };
    for step in STEPS.iter().filter(|step| !(quick && step.slow)) {
        if !ci.take(step) && step.needed {
            break;
        }
    }
    ci.sum_up();
    if ci.failed.is_empty() { Ok(()) } else { Err(String::new()) }
}

impl Ci {
    /// Runs a step under its headline. Returns whether it succeeded.
    fn take(&mut self, step: &Step) -> bool {
        say(&format!("\n== {}", step.name));
        let start = self.clock.now();
        let done = (step.run)(self);
        let seconds = self.clock.now().since(start).as_secs_f64();
        self.took.push((step.name, seconds));
        match &done {
            Ok(()) => say(&format!("== {}: ok, {seconds:.1} s", step.name)),
            Err(message) => {
                say(message.trim_end());
                say(&format!("== {}: FAILED, {seconds:.1} s", step.name));
                self.failed.push(step.name);
            }
        }
        done.is_ok()
    }

    /// Prints the time of each step, what was skipped and what failed, and last the sum of all
    /// tests.
    fn sum_up(&self) {
        let total = self.clock.now().since(Time::default()).as_secs_f64();
        say(&format!("\n== ci: {total:.0} s"));
        for (name, seconds) in &self.took {
            say(&format!("{seconds:>7.1} s  {name}"));
        }
        if self.quick {
            let steps: Vec<&str> = STEPS.iter().filter(|it| it.slow).map(|it| it.name).collect();
            say(&format!("left out: {}, end-to-end tests", steps.join(", ")));
        }
        if !self.failed.is_empty() {
            say(&format!("failed steps: {}", self.failed.join(", ")));
        }
        self.report.print();
    }
}

fn install_packages(ci: &mut Ci) -> Result<(), String> {
    let Some(installing) = ci.installing.take() else { return Ok(()) };
    let found = installing.join().map_err(|_| "installing packages panicked")??;
    ci.environment.extend(found);
    Ok(())
}

/// A full disk would end the compiler minutes later, in the middle of its messages.
fn check_disk(ci: &mut Ci) -> Result<(), String> {
    let folder = &ci.workspace.target;
    files::create(folder)?;
    let kilobytes = |command: &mut Command, row: usize, column: usize| {
        // Its status does not matter: `du` fails where a file goes away meanwhile.
        let output = command.arg(folder).output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let word = text.lines().nth(row).and_then(|line| line.split_whitespace().nth(column));
        word.and_then(|word| word.parse::<u64>().ok()).ok_or(format!("no number in `{text}`"))
    };
    let free = kilobytes(Command::new("df").arg("-Pk"), 1, 3)?;
    let written = kilobytes(Command::new("du").arg("-sk"), 0, 0)?;
    match free + written >= DISK_NEEDED_KB {
        true => Ok(()),
        false => Err(format!(
            "{} MB are free on the disk of {}, but all steps write about {} MB: delete files, or \
             set CARGO_TARGET_DIR to a folder on another disk",
            free / 1_000,
            folder.display(),
            (DISK_NEEDED_KB - written) / 1_000
        )),
    }
}

fn check_format(ci: &mut Ci) -> Result<(), String> {
    finish(&mut cargo(&ci.workspace.root, &["fmt", "--all", "--check"]))
}

fn compile_tests(ci: &mut Ci) -> Result<(), String> {
    ci.compiled = Some(compile(&ci.workspace)?);
    Ok(())
}

fn build_release(ci: &mut Ci) -> Result<(), String> {
    finish(&mut cargo(&ci.workspace.root, &["build", "--release", "-p", "throng"]))?;
    ci.environment.push(("THRONG_BIN", ci.workspace.target.join("release/throng").into()));
    Ok(())
}

/// The binary just built, in a package that is installed into an empty root.
fn package(ci: &mut Ci) -> Result<(), String> {
    dist::package_of(&ci.workspace, &ci.workspace.target.join("release/throng"))
}

fn test(ci: &mut Ci) -> Result<(), String> {
    let Some(compiled) = &ci.compiled else { return Ok(()) };
    let chosen = |test: &&Test| !(ci.quick && test.is_end_to_end());
    let tests: Vec<&Test> = compiled.tests.iter().filter(chosen).collect();
    ci.report = run_all(&ci.workspace, &tests, &ci.environment)?;
    match (compiled.lints, ci.report.has_failed()) {
        (0, false) => Ok(()),
        (0, true) => Err("tests failed".to_string()),
        (lints, _) => Err(format!("{lints} warnings of the compiler and clippy, see above")),
    }
}
