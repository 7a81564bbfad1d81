//! `bench capacity`: searches for the known capacity of simulated services, and the table of the
//! results. The example `capacity` of `throng-load` runs them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::{programs, workspace};

const PAGE: &str = "docs/decisions/capacity.md";
/// The first line of the page's table.
const TABLE: &str = "| target | rate |";
/// What the example is told for it: seeds, the first of them, rates.
const PUBLISHED: [&str; 3] = ["100", "1", "200,1000"];

/// Prints the table of the example with these arguments; without any, it is written to the page.
pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let workspace = workspace::load()?;
    let words = ["run", "--release", "-q", "-p", "throng-load", "--example", "capacity", "--"];
    let mut command = programs::cargo(&workspace.root, &words);
    command.args(if arguments.is_empty() { &PUBLISHED[..] } else { arguments });
    let failed = |error: std::io::Error| format!("the example `capacity`: {error}");
    let mut running = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut table = String::new();
    for line in running.stdout.take().into_iter().flat_map(|it| BufReader::new(it).lines()) {
        let line = line.map_err(failed)?;
        crate::say(&line);
        table += &(line + "\n");
    }
    let status = running.wait().map_err(failed)?;
    if !status.success() {
        return Err(format!("the example `capacity` failed: {status}"));
    }
    if arguments.is_empty() {
        let file = workspace.root.join(PAGE);
        let page = fs::read_to_string(&file).map_err(|error| format!("{PAGE}: {error}"))?;
        fs::write(file, with_table(&page, &table)?).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    Ok(())
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
    fn a_table_replaces_the_one_before() {
        let page = format!("before\n\n{TABLE} old |\n| --- |\n| 1 |\n\nafter\n");
        let new = with_table(&page, "| new |\n");
        assert_eq!(new.as_deref(), Ok("before\n\n| new |\n\nafter\n"));
        assert!(with_table("nothing", "").is_err());
    }
}
