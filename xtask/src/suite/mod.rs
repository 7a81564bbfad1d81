//! `cargo xtask test`: the tests of the workspace. They are compiled once, with clippy's lints on
//! the way (`binaries`), and each one runs in a process of its own (`runner`). `cargo xtask fuzz`
//! runs the fuzz tests among them with new seeds (`fuzz`).

mod binaries;
mod fuzz;
mod runner;

use throng_base::Clock;

use crate::workspace;
use crate::{packages, say};

pub(crate) use binaries::{Compiled, Test, compile};
pub(crate) use fuzz::fuzz;
pub(crate) use runner::{Report, run_all};

/// More tests than this may not fail once and pass when they run again alone.
const FLAKY_MAX: usize = 3;

const USAGE: &str =
    "usage: cargo xtask test [--runs N] [--busy] [NAME]…, cargo xtask fuzz [--minutes N] [NAME]…";

/// What a command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Options {
    /// Parts of names; a test runs if its name has one of them. Without any, all tests run.
    names: Vec<String>,
    /// How often everything is run, or for how many minutes.
    runs: u64,
    /// Keeps one core busy meanwhile, as another program on the machine would.
    busy: bool,
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = parse(arguments, "--runs", 1)?;
    let workspace = workspace::load()?;
    let mut environment = packages::ensure(&workspace.target)?;
    let release = workspace.target.join("release/throng");
    match release.is_file() {
        true => environment.push(("THRONG_BIN", release.into())),
        false => say("target/release/throng is missing: end-to-end tests use the debug build"),
    }
    let compiled = compile(&workspace)?;
    let chosen: Vec<&Test> = compiled.tests.iter().filter(|test| options.wants(test)).collect();
    if options.busy {
        runner::keep_a_core_busy();
    }
    let mut failed = false;
    for round in 1..=options.runs {
        let clock = Clock::start();
        let report = run_all(&workspace, &chosen, &environment)?;
        failed |= report.has_failed();
        if options.runs > 1 {
            say(&format!("run {round} of {}: {}", options.runs, report.in_short()));
        }
        say(&format!("{:.0} s", clock.now().as_secs_f64()));
        report.print();
    }
    if failed || compiled.lints > 0 { Err(String::new()) } else { Ok(()) }
}

/// `flag` sets how often everything is run.
fn parse(arguments: &[&str], flag: &str, runs: u64) -> Result<Options, String> {
    let mut options = Options { runs, ..Options::default() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--busy" => options.busy = true,
            word if word == flag => {
                let number = words.next().and_then(|number| number.parse().ok());
                options.runs = number.filter(|number| *number > 0).ok_or(USAGE)?;
            }
            word if word.starts_with('-') => return Err(USAGE.to_string()),
            name => options.names.push(name.to_string()),
        }
    }
    Ok(options)
}

impl Options {
    fn wants(&self, test: &Test) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| test.full_name().contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_flags_are_told_apart() {
        let options = parse(&["--runs", "20", "e2e", "--busy", "fuzz"], "--runs", 1).unwrap();
        let names = vec!["e2e".to_string(), "fuzz".to_string()];
        assert_eq!(options, Options { names, runs: 20, busy: true });
        assert_eq!(parse(&[], "--minutes", 10).unwrap().runs, 10);
        for wrong in [&["--runs"][..], &["--runs", "0"], &["--runs", "x"], &["--quick"]] {
            assert!(parse(wrong, "--runs", 1).is_err(), "{wrong:?}");
        }
    }
}
