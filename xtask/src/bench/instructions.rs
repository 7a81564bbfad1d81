//! `cargo xtask instructions`: how many instructions throng executes for one request, in scenes
//! whose numbers are kept in the tree ([`FILE`]). Times depend on what else a machine does;
//! instructions do not. They are counted by valgrind, which counts alike on every machine; why not
//! by the processor is told in docs/decisions/instructions.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::child;
use super::server::{self, Server};
use super::tool::has_figures;
use super::{SERVER_CORE, TOOL_CORE};
use crate::workspace::{self, Workspace};
use crate::{packages, say};

/// The numbers that are expected, one line a scene.
const FILE: &str = "benches/instructions.txt";

const ABOUT: &str = "\
# Instructions of throng for one request, as `cargo xtask instructions` counts them. A change that
# makes one cost more fails, apart from a tolerance; `cargo xtask instructions --write` updates them.
";

/// So much more may a scene cost, in percent. Runs of one binary differ by less than half of it.
const TOLERANCE_PERCENT: u64 = 2;

/// The start of a run costs the same in both of these, so their difference is that of the requests.
const FEW: u64 = 2_000;
const MANY: u64 = 22_000;

/// A run takes a few seconds; on a machine that is busy with other things, a minute.
const PATIENCE: Duration = Duration::from_secs(900);

/// What is loaded, and how.
struct Scene {
    name: &'static str,
    target: &'static str,
    scheme: &'static str,
    path: &'static str,
    flags: &'static [&'static str],
}

const SCENES: &[Scene] = &[
    Scene { name: "closed", target: "http", scheme: "http", path: "", flags: &[] },
    Scene {
        name: "checked",
        target: "http",
        scheme: "http",
        path: "json",
        flags: &["--expect-json", "code=0", "--expect-text", "token", "-H", "X-Id: ${user.id}"],
    },
    Scene { name: "rate", target: "http", scheme: "http", path: "", flags: &["-q", "2000"] },
    Scene {
        name: "messages",
        target: "echo",
        scheme: "ws",
        path: "",
        flags: &["--body", "hello, throng"],
    },
    Scene {
        name: "grpc",
        target: "http",
        scheme: "grpc",
        path: "echo.v1.Echo/Say",
        flags: &["--proto", "examples/echo.proto", "--body", "{\"text\":\"hello\"}"],
    },
];

const USAGE: &str = "usage: cargo xtask instructions [--write] [--binary FILE]";

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let workspace = workspace::load()?;
    let own = workspace.target.join("release/throng");
    match arguments {
        [] => check(&workspace, &own),
        ["--write"] => write(&workspace, &own),
        ["--write", "--binary", file] => write(&workspace, Path::new(file)),
        ["--binary", file] => check(&workspace, Path::new(file)),
        _ => Err(USAGE.to_string()),
    }
}

/// Compares the numbers of a binary with those in the tree.
fn check(workspace: &Workspace, throng: &Path) -> Result<(), String> {
    let text = fs::read_to_string(workspace.root.join(FILE));
    let text = text.map_err(|error| format!("{FILE}: {error}"))?;
    let expected = read(&text)?;
    let mut wrong = Vec::new();
    for (name, count) in counted(workspace, throng)? {
        let Some(expected) = expected.get(name) else {
            wrong.push(format!("{FILE} has no line for `{name}`, which takes {count}"));
            continue;
        };
        let percent = (count as f64 / *expected as f64 - 1.0) * 100.0;
        say(&format!("{name:>10} {percent:+.1} % of {expected}"));
        if count * 100 > expected * (100 + TOLERANCE_PERCENT) {
            wrong.push(format!(
                "`{name}` takes {count} instructions a request, {percent:+.1} % of {expected}; \
                 at most +{TOLERANCE_PERCENT} % are allowed\n  cure: find what costs that; if it \
                 is wanted, `cargo xtask instructions --write`"
            ));
        } else if count * 100 < expected * (100 - TOLERANCE_PERCENT) {
            say(&format!("{name:>10} costs less: `cargo xtask instructions --write`"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn write(workspace: &Workspace, throng: &Path) -> Result<(), String> {
    let mut text = ABOUT.to_string();
    for (name, count) in counted(workspace, throng)? {
        let _ = writeln!(text, "{name} {count}");
    }
    fs::write(workspace.root.join(FILE), text).map_err(|error| format!("{FILE}: {error}"))
}

fn read(text: &str) -> Result<BTreeMap<&str, u64>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let entry = |line| {
        let (name, count) = str::split_once(line, ' ')?;
        Some((name, count.parse().ok()?))
    };
    let told = |line| entry(line).ok_or_else(|| format!("{FILE}: `{line}` is no name and number"));
    lines.map(told).collect()
}

/// Every scene with its instructions for one request.
fn counted(workspace: &Workspace, throng: &Path) -> Result<Vec<(&'static str, u64)>, String> {
    if !throng.is_file() {
        let file = throng.display();
        return Err(format!("{file} is missing: cargo build --release -p throng"));
    }
    let valgrind = packages::program("valgrind");
    let valgrind = valgrind.ok_or("valgrind is missing: apt-get install valgrind")?;
    let folder = workspace.target.join("instructions");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut all = Vec::new();
    for scene in SCENES {
        let target = server::target(throng, &folder, &[scene.target], Some(SERVER_CORE))?;
        let count = |requests| {
            let command = scene.command(&valgrind, throng, &target, requests);
            executed(command, workspace, &folder)
                .map_err(|error| format!("{}: {error}", scene.name))
        };
        let (few, many) = (count(FEW)?, count(MANY)?);
        let each = many.saturating_sub(few) / (MANY - FEW);
        say(&format!("{:>10} {each:>8} a request", scene.name));
        all.push((scene.name, each));
    }
    Ok(all)
}

impl Scene {
    fn command(&self, valgrind: &Path, throng: &Path, target: &Server, requests: u64) -> Command {
        let mut command = Command::new(valgrind);
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(throng);
        command.args(["bench", &format!("{}{}", target.url(self.scheme, 1), self.path)]);
        command.args(["-c", "1", "-n", &requests.to_string(), "--shards", "1", "--seed", "1"]);
        command.args(self.flags).args(["--quiet", "--json", "--no-record"]);
        command
    }
}

/// How many instructions a program executed, as valgrind says at its end.
fn executed(mut command: Command, workspace: &Workspace, folder: &Path) -> Result<u64, String> {
    command.current_dir(&workspace.root);
    let ended = child::start(command, Some(TOOL_CORE), folder, "throng")?.wait(PATIENCE)?;
    if !has_figures(&ended) {
        return Err(ended.complaint());
    }
    collected(&ended.errors).ok_or_else(|| format!("no count from valgrind: {}", ended.complaint()))
}

/// `==7== Collected : 123456`.
fn collected(errors: &str) -> Option<u64> {
    errors.lines().rev().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_what_valgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 123456\n==7==\n==7== I   refs: 1\n";
        assert_eq!(collected(said), Some(123_456));
        assert_eq!(collected("==7== nothing\n"), None);
    }

    #[test]
    fn numbers_are_kept_by_scene() {
        let read_back = read("# about\nclosed 10\n\nrate 20\n").unwrap();
        assert_eq!(read_back, BTreeMap::from([("closed", 10), ("rate", 20)]));
        assert!(read("closed ten\n").unwrap_err().contains("`closed ten` is no name and number"));
    }
}
