//! `cargo xtask fuzz`: the fuzz tests with new seeds, for as long as asked. A case that fails is
//! kept as a file below `crates/throng-fuzz/corpus`; every later run of its test tries it first.

use std::path::Path;
use std::time::Duration;

use throng_base::{Clock, Time, random};

use super::runner::{Crew, Group, cores, keep_a_core_busy};
use super::{Test, compile, parse};
use crate::workspace::{self, Workspace};
use crate::{packages, say};

/// How many cases a test draws before the next test has its turn.
const ROUNDS: &str = "2000";
const CORPUS: &str = "crates/throng-fuzz/corpus";

pub(crate) fn fuzz(arguments: &[&str]) -> Result<(), String> {
    let options = parse(arguments, "--minutes", 10)?;
    let length = Duration::from_mins(options.runs);
    let workspace = workspace::load()?;
    let mut environment = packages::ensure(&workspace.target)?;
    let compiled = compile(&workspace)?;
    let wanted = |test: &&Test| test.full_name().contains("fuzz") && options.wants(test);
    let tests: Vec<&Test> = compiled.tests.iter().filter(wanted).collect();
    if tests.is_empty() {
        return Err(format!("no fuzz test is called {}", options.names.join(" or ")));
    }
    environment.push(("THRONG_FUZZ_ROUNDS", ROUNDS.into()));
    environment.push(("THRONG_FUZZ_KEEP", "1".into()));
    if options.busy {
        keep_a_core_busy();
    }
    let clock = Clock::start();
    let begun = kept(&workspace);
    let mut turns = 0;
    while turns == 0 || clock.now().since(Time::default()) < length {
        // Each turn has a seed of its own, which a failure names.
        let seed = random::fresh_seed().to_string();
        say(&format!("turn {}: {} tests with seed {seed}", turns + 1, tests.len()));
        environment.push(("THRONG_FUZZ_SEED", seed.into()));
        let group =
            Group { name: "fuzz tests", tests: tests.clone(), at_once: cores(), niceness: "0" };
        for outcome in Crew::new(&workspace, &environment)?.run(&group) {
            if let Some(failure) = outcome.failure {
                say(&format!("\n---- {} ----\n{failure}", outcome.name));
            }
        }
        environment.pop();
        turns += 1;
    }
    match kept(&workspace) - begun {
        0 => say(&format!("{turns} turns, {} tests: no case failed", tests.len())),
        found => {
            return Err(format!(
                "{found} cases failed and are kept in {CORPUS}; fix the cause, then commit them"
            ));
        }
    }
    Ok(())
}

/// How many cases are kept.
fn kept(workspace: &Workspace) -> usize {
    fn files(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
    }
    files(&workspace.root.join(CORPUS))
}
