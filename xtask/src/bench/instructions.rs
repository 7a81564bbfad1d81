//! `cargo xtask instructions`: how many instructions throng executes for one request, in scenes
//! whose numbers are kept in the tree ([`FILE`]). Times depend on what else a machine does;
//! instructions do not. They are counted by valgrind, which counts alike on every machine; why not
//! by the processor is told in docs/decisions/instructions.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::child;
use super::server;
use super::tool::has_figures;
use super::{SERVER_CORE, TOOL_CORE};
use crate::workspace::{self, Workspace};
use crate::{files, packages, say};

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

/// A name, the words of `throng target`, the URL, and further flags of `throng bench`.
type Scene = (&'static str, &'static str, &'static str, &'static [&'static str]);

const SCENES: [Scene; 5] = [
    ("closed", "http", "http://", &[]),
    (
        "checked",
        "http",
        "http://json",
        &["--expect-json", "code=0", "--expect-text", "token", "-H", "X-Id: ${user.id}"],
    ),
    ("rate", "http", "http://", &["-q", "2000"]),
    ("messages", "echo", "ws://", &["--body", "hello, throng"]),
    (
        "grpc",
        "http",
        "grpc://echo.v1.Echo/Say",
        &["--proto", "examples/echo.proto", "--body", "{\"text\":\"hello\"}"],
    ),
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
    let mut wrong = Vec::new();
    for (name, count) in counted(workspace, throng)? {
        let Some(expected) = expected(&text, name) else {
            wrong.push(format!("{FILE} has no number for `{name}`, which takes {count}"));
            continue;
        };
        let percent = (count as f64 / expected as f64 - 1.0) * 100.0;
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

/// The number of a line such as `closed 1234`.
fn expected(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(own, _)| *own == name)?.1.parse().ok()
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
    files::create(&folder)?;
    let mut all = Vec::new();
    for (name, target, url, flags) in SCENES {
        let target = server::target(throng, &folder, &[target], Some(SERVER_CORE))?;
        let url = url.replace("://", &format!("://127.0.0.1:{}/", target.port));
        let count = |requests: u64| {
            let mut command = Command::new(&valgrind);
            command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(throng);
            command.args(["bench", &url, "-c", "1", "-n", &requests.to_string()]);
            command.args(["--shards", "1", "--seed", "1"]).args(flags);
            command.args(["--quiet", "--json", "--no-record"]).current_dir(&workspace.root);
            executed(command, &folder).map_err(|error| format!("{name}: {error}"))
        };
        let (few, many) = (count(FEW)?, count(MANY)?);
        let each = many.saturating_sub(few) / (MANY - FEW);
        say(&format!("{name:>10} {each:>8} a request"));
        all.push((name, each));
    }
    Ok(all)
}

/// How many instructions a program executed, as valgrind says at its end.
fn executed(command: Command, folder: &Path) -> Result<u64, String> {
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
        let text = "# about\nclosed 10\n\nrate 20\ngrpc ten\n";
        assert_eq!((expected(text, "closed"), expected(text, "rate")), (Some(10), Some(20)));
        assert_eq!((expected(text, "grpc"), expected(text, "messages")), (None, None));
    }
}
