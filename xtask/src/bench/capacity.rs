//! Searches for the known capacity of simulated services, and the table of the results. The example
//! `capacity` of `throng-load` runs them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use throng_base::units;

use crate::{programs, workspace};

const PAGE: &str = "docs/decisions/capacity.md";
/// The first line of the page's table.
const TABLE: &str = "| target | rate |";
const SEEDS_MAX: u64 = 10_000;
const RATES: [u64; 3] = [200, 1_000, 10_000];

#[derive(Debug, PartialEq)]
struct Options {
    seeds: u64,
    first: u64,
    rates: Vec<u64>,
    targets: Option<String>,
}

impl Default for Options {
    /// The options of the published table.
    fn default() -> Options {
        Options { seeds: 100, first: 1, rates: vec![200, 1_000], targets: None }
    }
}

/// Prints the table; with the published options, it is written to the page, otherwise to `target/`.
pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = parse(arguments)?;
    super::child::end_children_on_signals();
    let workspace = workspace::load()?;
    let table = searched(&options, &workspace.root)?;
    let file = match options == Options::default() {
        true => workspace.root.join(PAGE),
        false => workspace.target.join("bench/capacity.md"),
    };
    let told = |error: std::io::Error| format!("{}: {error}", file.display());
    let text = match options == Options::default() {
        true => with_table(&fs::read_to_string(&file).map_err(told)?, &table)?,
        false => table,
    };
    fs::create_dir_all(workspace.target.join("bench")).map_err(told)?;
    fs::write(&file, text).map_err(told)?;
    crate::say(&format!("written to {}", file.display()));
    Ok(())
}

fn parse(arguments: &[&str]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let value =
            rest.next().ok_or_else(|| format!("{flag}: unknown, or its value is missing"))?;
        match *flag {
            "--seeds" => options.seeds = super::count(flag, value, SEEDS_MAX)?,
            "--first-seed" => options.first = super::count(flag, value, u64::from(u32::MAX))?,
            "--rates" => {
                let rates = value.split(',').map(|rate| {
                    let known = units::parse_count(rate).ok().filter(|rate| RATES.contains(rate));
                    known.ok_or_else(|| format!("{flag} {rate}: expected some of {RATES:?}"))
                });
                options.rates = rates.collect::<Result<_, _>>()?;
            }
            "--targets" => options.targets = Some((*value).to_string()),
            _ => return Err(format!("{flag}: unknown\n\n{}", crate::USAGE)),
        }
    }
    Ok(options)
}

/// The lines of the table, printed as they come.
fn searched(options: &Options, root: &Path) -> Result<String, String> {
    let rates: Vec<String> = options.rates.iter().map(u64::to_string).collect();
    let words = ["run", "--release", "-q", "-p", "throng-load", "--example", "capacity", "--"];
    let mut command = programs::cargo(root, &words);
    command
        .args([options.seeds.to_string(), options.first.to_string(), rates.join(",")])
        .args(&options.targets)
        .stdout(Stdio::piped());
    let mut running = command.spawn().map_err(|error| format!("cargo: {error}"))?;
    let mut table = String::new();
    if let Some(output) = running.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| format!("the example `capacity`: {error}"))?;
            crate::say(&line);
            table += &(line + "\n");
        }
    }
    let status = running.wait().map_err(|error| format!("the example `capacity`: {error}"))?;
    match status.success() {
        true => Ok(table),
        false => Err(format!("the example `capacity` failed: {status}")),
    }
}

/// The page with this table instead of the old one.
fn with_table(page: &str, table: &str) -> Result<String, String> {
    let missing = || format!("{PAGE} has no table that begins with `{TABLE}`");
    let from = page.find(TABLE).ok_or_else(missing)?;
    let rows = page[from..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let to = from + rows.map(str::len).sum::<usize>();
    Ok(format!("{}{table}{}", &page[..from], &page[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_choice_of_the_page_is_written_to_it() {
        assert_eq!(parse(&[]), Ok(Options::default()));
        let fewer = parse(&["--seeds", "10", "--rates", "10k", "--targets", "USL"]).unwrap();
        assert_eq!((fewer.seeds, fewer.rates), (10, vec![10_000]));
        for wrong in [["--seeds", "0"], ["--rates", "300"], ["--odd", "1"]] {
            assert!(parse(&wrong).is_err_and(|told| told.contains(wrong[0])), "{wrong:?}");
        }
    }

    #[test]
    fn a_table_replaces_the_one_before() {
        let page = format!("before\n\n{TABLE} old |\n| --- |\n| 1 |\n\nafter\n");
        let new = with_table(&page, "| new |\n");
        assert_eq!(new.as_deref(), Ok("before\n\n| new |\n\nafter\n"));
        assert!(with_table("nothing", "").is_err());
    }
}
