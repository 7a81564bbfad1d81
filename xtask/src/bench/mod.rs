//! `cargo xtask bench`: throng beside other tools and beside the truth, in one run. The only
//! source of claims about performance.

mod chat;
mod child;
mod contest;
mod heartbeat;
mod http;
mod http2;
mod language;
mod ledger;
mod look;
mod machine;
mod memory;
mod million;
mod pair;
mod population;
mod protocol;
mod push;
mod rate;
mod record;
mod report;
mod server;
mod throng;
mod tool;
mod truth;
mod websocket;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use crate::workspace::{self, Workspace};
use tool::Places;

/// Tools run here …
const TOOL_CORE: usize = 0;
/// … and the servers here, so that neither takes time from the other.
const SERVER_CORE: usize = 1;
const SECONDS_MAX: u32 = 600;
const ROUNDS_MAX: u32 = 100;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Options {
    /// The command that repeats this bench.
    command: String,
    seconds: u32,
    rounds: u32,
    quick: bool,
    only: Vec<String>,
    tools: Vec<String>,
    /// Requests a second, of `bench rate`.
    rates: Vec<u32>,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    fn wants_tool(&self, word: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|tool| tool == word)
    }

    fn wants_rate(&self, rate: u32) -> bool {
        self.rates.is_empty() || self.rates.contains(&rate)
    }

    /// Only a whole run may replace the published figures.
    fn is_whole(&self) -> bool {
        let whole = self.only.is_empty() && self.tools.is_empty() && self.rates.is_empty();
        whole && !self.quick
    }
}

/// Measures, and gives the section of the report.
type Bench = fn(&Options, &Places, &Workspace) -> Result<String, String>;

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (run, name): (Bench, _) = match arguments.first() {
        Some(&"http") => (http::run, "http"),
        Some(&"http2") => (http2::run, "http2"),
        Some(&"language") => (language::run, "language"),
        Some(&"protocol") => (protocol::run, "protocol"),
        Some(&"rate") => (rate::run, "rate"),
        Some(&"truth") => (truth::run, "truth"),
        Some(&"chat") => return chat::run(&arguments[1..]),
        Some(&"push") => return push::run(&arguments[1..]),
        Some(&"heartbeat") => return heartbeat::run(&arguments[1..]),
        Some(&"million") => return million::run(&arguments[1..]),
        _ => return Err(crate::USAGE.to_string()),
    };
    let options = parse(&arguments[1..], name)?;
    if machine::cores() < 2 {
        return Err("a bench needs two cores: one for the tools, one for the servers".to_string());
    }
    let (workspace, places) = prepare()?;
    let section = run(&options, &places, &workspace)?;
    publish(&workspace, &places, name, &section, options.is_whole())
}

/// The workspace, and throng's binary with a folder for what the bench writes.
fn prepare() -> Result<(Workspace, Places), String> {
    child::end_children_on_signals();
    let workspace = workspace::load()?;
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let places = Places { folder, throng: throng_binary(&workspace)? };
    Ok((workspace, places))
}

/// A folder for the files of one bench, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &Path, name: &str) -> Result<Folder, String> {
        let folder = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Folder(folder))
    }

    /// Takes the protocol of an example along, and gives the text of the example.
    fn example(&self, root: &Path, example: &str, protocol: &str) -> Result<String, String> {
        let read = |name: &str| {
            let file = root.join(name);
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
        };
        let name = protocol.rsplit('/').next().unwrap_or(protocol);
        tool::write(&self.0, name, &read(protocol)?)?;
        read(example)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies below target/ and harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Prints the section and puts it into the document: the published one if the run was a whole one.
fn publish(
    workspace: &Workspace,
    places: &Places,
    name: &str,
    section: &str,
    whole: bool,
) -> Result<(), String> {
    // Figures without throng are a rehearsal, not something to publish.
    let file = if whole && places.throng.is_file() {
        workspace.root.join("docs/benchmarks.md")
    } else {
        places.folder.join("benchmarks.md")
    };
    let before = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, report::with_section(&before, name, section))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    crate::say(&format!("\n{section}\nwritten to {}", file.display()));
    Ok(())
}

/// The binary to measure: `THRONG_BIN`, or built now, so that no figure is of an older one.
fn throng_binary(workspace: &Workspace) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("THRONG_BIN") {
        return Ok(PathBuf::from(path));
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let status = Command::new(cargo)
        .args(["build", "--release", "-p", "throng"])
        .current_dir(&workspace.root)
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("throng cannot be built: {status}"));
    }
    Ok(workspace.target.join("release/throng"))
}

fn parse(arguments: &[&str], name: &str) -> Result<Options, String> {
    let mut options = Options {
        command: format!("cargo xtask bench {name} {}", arguments.join(" ")).trim_end().to_string(),
        seconds: 5,
        rounds: if name == "rate" { 5 } else { 3 },
        quick: false,
        only: Vec::new(),
        tools: Vec::new(),
        rates: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        if *flag == "--quick" {
            options.quick = true;
            options.seconds = 1;
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{flag}: unknown, or its value is missing"));
        match (*flag, value?) {
            ("--seconds", value) => options.seconds = number(flag, value, SECONDS_MAX)?,
            ("--rounds", value) => options.rounds = number(flag, value, ROUNDS_MAX)?,
            ("--only", value) => options.only = words(flag, value, parts(name))?,
            ("--tools", value) => options.tools = words(flag, value, &tools(name))?,
            ("--rates", value) if name == "rate" => {
                options.rates = value
                    .split(',')
                    .map(|rate| known_rate(flag, rate))
                    .collect::<Result<_, _>>()?;
            }
            _ => return Err(format!("{flag}: unknown\n\n{}", crate::USAGE)),
        }
    }
    Ok(options)
}

fn parts(name: &str) -> &'static [&'static str] {
    match name {
        "http" => &["keep-alive", "short", "websocket", "memory"],
        "http2" => &["requests", "calls"],
        "language" => &["transaction", "expressions", "compile"],
        "protocol" => &["64", "1000"],
        "rate" => &["cost", "served"],
        _ => &truth::NAMES,
    }
}

fn tools(name: &str) -> Vec<&'static str> {
    match name {
        "rate" => rate::TOOLS.to_vec(),
        _ => tool::Tool::ALL.iter().map(|tool| tool.word()).collect(),
    }
}

fn known_rate(flag: &str, value: &str) -> Result<u32, String> {
    let found = units::parse_count(value).ok();
    let found =
        found.and_then(|count| rate::RATES.into_iter().find(|rate| u64::from(*rate) == count));
    found.ok_or_else(|| format!("{flag} {value}: expected some of {:?}", rate::RATES))
}

fn number(flag: &str, value: &str, max: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("{flag} {value}: expected a number from 1 to {max}"))
}

/// A count such as `20_000`, at least one.
fn count(flag: &str, value: &str, max: u64) -> Result<u64, String> {
    let count = units::parse_count(value).ok().filter(|count| (1..=max).contains(count));
    count.ok_or_else(|| format!("{flag} {value}: expected a number from 1 to {max}"))
}

/// A time such as `10m`, longer than none.
fn time(flag: &str, value: &str, max: Duration) -> Result<Duration, String> {
    let time = units::parse_duration(value).ok();
    let time = time.filter(|time| !time.is_zero() && *time <= max);
    time.ok_or_else(|| {
        let max = units::write_duration(max);
        format!("{flag} {value}: expected a time such as 1m, at most {max}")
    })
}

/// Why a run ended with another exit code than 0, in throng's words; empty when it did not.
fn reasons(summary: &Value) -> String {
    let reasons = summary.pointer("/outcome/reasons").and_then(Value::as_array);
    let reasons: Vec<&str> = reasons.into_iter().flatten().filter_map(Value::as_str).collect();
    reasons.join("; ")
}

fn words(flag: &str, value: &str, known: &[&str]) -> Result<Vec<String>, String> {
    let words: Vec<String> = value.split(',').map(str::to_string).collect();
    match words.iter().find(|word| !known.contains(&word.as_str())) {
        Some(word) => Err(format!("{flag} {word}: expected some of {}", known.join(","))),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = parse(&["--quick", "--only", "short,memory", "--rounds", "5"], "http");
        let options = options.unwrap();
        assert_eq!((options.seconds, options.rounds, options.is_whole()), (1, 5, false));
        assert!(options.wants("memory") && !options.wants("websocket") && options.wants_tool("ab"));
        assert!(parse(&[], "truth").unwrap().is_whole());
        let options = parse(&["--rates", "1000,20_000", "--tools", "throng,wrk2"], "rate").unwrap();
        assert_eq!((options.rounds, options.is_whole()), (5, false));
        assert!(options.wants_rate(20_000) && !options.wants_rate(5_000));
        assert!(options.wants_tool("wrk2") && options.wants("served"));
    }

    #[test]
    fn wrong_options_are_refused() {
        for wrong in [
            &["--seconds"][..],
            &["--seconds", "0"],
            &["--rounds", "x"],
            &["--only", "stall"],
            &["--tools", "curl"],
            &["--fast", "1"],
        ] {
            assert!(parse(wrong, "http").is_err(), "{wrong:?}");
        }
        assert!(parse(&["--rates", "1000"], "http").is_err());
        for wrong in [&["--rates", "7"][..], &["--rates", "x"], &["--tools", "wrk"]] {
            assert!(parse(wrong, "rate").is_err(), "{wrong:?}");
        }
    }
}
