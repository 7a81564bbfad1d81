//! `cargo xtask fuzz`: the fuzz tests with new seeds, for as long as asked. A case that fails is
//! kept as a file below `crates/throng-fuzz/corpus`; every later run of its test tries it first.

use std::path::Path;
use std::time::Duration;

use throng_base::{Clock, Time, random};

use super::runner::{Crew, Group, cores};
use super::{Test, compile};
use crate::workspace::{self, Workspace};
use crate::{packages, say};

const USAGE: &str = "usage: cargo xtask fuzz [--minutes N] [NAME]…";
/// How many cases a test draws before the next test has its turn.
const ROUNDS: &str = "2000";
const CORPUS: &str = "crates/throng-fuzz/corpus";

pub(crate) fn fuzz(arguments: &[&str]) -> Result<(), String> {
    let (length, names) = parse(arguments)?;
    let workspace = workspace::load()?;
    let mut environment = packages::ensure(&workspace.target)?;
    let compiled = compile(&workspace)?;
    let wanted = |test: &&Test| {
        let name = test.full_name();
        name.contains("fuzz") && (names.is_empty() || names.iter().any(|it| name.contains(it)))
    };
    let tests: Vec<&Test> = compiled.tests.iter().filter(wanted).collect();
    if tests.is_empty() {
        return Err(format!("no fuzz test is called {}", names.join(" or ")));
    }
    environment.push(("THRONG_FUZZ_ROUNDS", ROUNDS.into()));
    environment.push(("THRONG_FUZZ_KEEP", "1".into()));
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

fn parse<'a>(arguments: &[&'a str]) -> Result<(Duration, Vec<&'a str>), String> {
    let (mut minutes, mut names) = (10, Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--minutes" => {
                let number = words.next().and_then(|number| number.parse().ok());
                minutes = number.ok_or(USAGE)?;
            }
            flag if flag.starts_with('-') => return Err(USAGE.to_string()),
            name => names.push(name),
        }
    }
    Ok((Duration::from_mins(minutes), names))
}

/// How many cases are kept.
fn kept(workspace: &Workspace) -> usize {
    fn files(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
    }
    files(&workspace.root.join(CORPUS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_and_names_are_told_apart() {
        let (length, names) = parse(&["hpack", "--minutes", "90"]).unwrap();
        assert_eq!((length, names), (Duration::from_mins(90), vec!["hpack"]));
        assert_eq!(parse(&[]).unwrap().0, Duration::from_mins(10));
        assert!(parse(&["--minutes"]).is_err() && parse(&["--hours", "1"]).is_err());
    }
}
