//! `cargo xtask ci`: every check and every test of the project, in one command.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use throng_base::Clock;

use crate::workspace::Workspace;
use crate::{dist, packages, say, tidy, web, workspace};

/// Enough to find what the everyday rounds miss, few enough for five minutes on two cores.
const FUZZ_ROUNDS: &str = "50000";

/// What the steps share and what they found.
struct Ci {
    workspace: Workspace,
    clock: Clock,
    tally: Tally,
    failed: Vec<&'static str>,
    /// Handed to the tests: where the binary is, and packages of others.
    environment: Vec<(&'static str, PathBuf)>,
}

/// Sums over the `test result:` lines of all test binaries.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
}

/// A headline and what is done below it.
struct Step {
    name: &'static str,
    run: fn(&mut Ci) -> Result<(), String>,
    /// Left out by `--quick`.
    slow: bool,
    /// When it fails, what follows would fail for the same reason.
    needed: bool,
}

const STEPS: &[Step] = &[
    Step { name: "packages", run: install_packages, slow: false, needed: true },
    Step { name: "fmt", run: check_format, slow: false, needed: false },
    Step { name: "clippy", run: check_clippy, slow: false, needed: false },
    Step { name: "tidy", run: check_tidy, slow: false, needed: false },
    Step { name: "web", run: check_web, slow: true, needed: false },
    Step { name: "release build", run: build_release, slow: true, needed: true },
    Step { name: "package", run: package, slow: true, needed: false },
    Step { name: "fuzz", run: fuzz, slow: true, needed: false },
    Step { name: "tests", run: test, slow: false, needed: false },
];

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let quick = match arguments {
        [] => false,
        ["--quick"] => true,
        _ => return Err("usage: cargo xtask ci [--quick]".to_string()),
    };
    let mut ci = Ci {
        workspace: workspace::load()?,
        clock: Clock::start(),
        tally: Tally::default(),
        failed: Vec::new(),
        environment: Vec::new(),
    };
    for step in STEPS.iter().filter(|step| !(quick && step.slow)) {
        if !ci.take(step) && step.needed {
            break;
        }
    }
    say(&format!("\n== ci: {:.0} s", ci.clock.now().as_secs_f64()));
    let failed = ci.failed.join(", ");
    let summary = format!("{} passed, {} failed", ci.tally.passed, ci.tally.failed);
    if failed.is_empty() {
        say(&summary);
        return Ok(());
    }
    say(&format!("failed steps: {failed}"));
    say(&summary);
    Err(String::new())
}

impl Ci {
    /// Runs a step under its headline; tells whether it succeeded.
    fn take(&mut self, step: &Step) -> bool {
        say(&format!("\n== {}", step.name));
        let start = self.clock.now();
        let done = (step.run)(self);
        let seconds = self.clock.now().since(start).as_secs_f64();
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

    fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
        let mut command = Command::new(cargo);
        command.args(arguments).current_dir(&self.workspace.root);
        // `cargo run` tells this program about xtask; handed on, that makes build scripts run anew.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, path)| (name, path)));
        command
    }

    /// Runs tests, lets their output through and counts their results.
    fn count_tests(&mut self, mut command: Command) -> Result<(), String> {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cargo: {error}"))?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                say(&line);
                self.tally.add(&line);
            }
        }
        let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("cargo test: {status}")) }
    }
}

fn install_packages(ci: &mut Ci) -> Result<(), String> {
    packages::ensure_debian()?;
    let modules = packages::ensure_node(&ci.workspace.target)?;
    ci.environment.push(("NODE_PATH", modules));
    let packages = packages::ensure_python(&ci.workspace.target)?;
    ci.environment.push(("THRONG_PYTHON", packages));
    let server = packages::ensure_nats(&ci.workspace.target)?;
    ci.environment.push(("THRONG_NATS_SERVER", server));
    Ok(())
}

fn check_format(ci: &mut Ci) -> Result<(), String> {
    finish(ci.cargo(&["fmt", "--all", "--check"]))
}

fn check_clippy(ci: &mut Ci) -> Result<(), String> {
    finish(ci.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn check_tidy(_: &mut Ci) -> Result<(), String> {
    tidy::run()
}

fn check_web(ci: &mut Ci) -> Result<(), String> {
    web::check(&ci.workspace)
}

fn build_release(ci: &mut Ci) -> Result<(), String> {
    finish(ci.cargo(&["build", "--release", "-p", "throng"]))?;
    ci.environment.push(("THRONG_BIN", ci.workspace.target.join("release/throng")));
    Ok(())
}

/// The binary just built, in a package that is installed into an empty root.
fn package(ci: &mut Ci) -> Result<(), String> {
    dist::package_of(&ci.workspace, &ci.workspace.target.join("release/throng"))
}

/// The fuzz tests again, longer and with a seed of this commit: every commit tries other inputs,
/// and one that has passed passes again. In the test profile: building everything anew, optimised,
/// would take longer than it saves.
fn fuzz(ci: &mut Ci) -> Result<(), String> {
    let commit = workspace::commit(&ci.workspace.root)?;
    let seed = commit.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let seed = seed.ok_or_else(|| format!("git rev-parse HEAD says {commit:?}"))?.to_string();
    say(&format!(
        "repeat: THRONG_FUZZ_ROUNDS={FUZZ_ROUNDS} THRONG_FUZZ_SEED={seed} \
         cargo test --workspace --lib fuzz"
    ));
    let mut command = ci.cargo(&["test", "--workspace", "--lib", "--no-fail-fast", "fuzz"]);
    command.env("THRONG_FUZZ_ROUNDS", FUZZ_ROUNDS).env("THRONG_FUZZ_SEED", &seed);
    ci.count_tests(command)
}

fn test(ci: &mut Ci) -> Result<(), String> {
    let command = ci.cargo(&["test", "--workspace", "--no-fail-fast"]);
    ci.count_tests(command)
}

fn finish(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{status}")) }
}

impl Tally {
    /// Adds a line such as `test result: ok. 12 passed; 0 failed; 0 ignored; …`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.trim().strip_prefix("test result:") else { return };
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let count = words.next().and_then(|word| word.parse::<u64>().ok());
            match (count, words.next()) {
                (Some(count), Some("passed")) => self.passed += count,
                (Some(count), Some("failed")) => self.failed += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed_over_binaries() {
        let mut tally = Tally::default();
        tally.add("running 3 tests");
        tally.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out");
        tally.add("test result: FAILED. 5 passed; 2 failed; 0 ignored; finished in 0.01s");
        assert_eq!(tally, Tally { passed: 17, failed: 2 });
    }
}
