//! `cargo xtask bench`: throng compared with other tools and with the truth, in one run. The only
//! source of performance claims.

mod capacity;
mod child;
mod contest;
mod duel;
mod fleet;
pub(crate) mod instructions;
mod machine;
mod peers;
mod rate;
mod readings;
mod report;
mod scene;
mod served;
mod server;
mod tool;

use std::fs;
use std::path::{Path, PathBuf};
use throng_base::units;

use crate::{files, programs, workspace};

/// Tools run here …
const TOOL_CORE: usize = 0;
/// … and the servers here, so that neither takes time from the other.
const SERVER_CORE: usize = 1;
const SECONDS_MAX: u64 = 600;
const ROUNDS_MAX: u64 = 100;
const USERS_MAX: u64 = 10_000_000;

/// What can be measured, in one command.
struct Bench {
    name: &'static str,
    /// Measures, and returns the section of the report.
    run: fn(&Options, &Places) -> Result<String, String>,
    rounds: u32,
    /// The values of `--only`.
    parts: &'static [&'static str],
    /// The tools beside throng.
    tools: &'static [&'static str],
    /// Generator and target have a core each.
    is_pinned: bool,
    /// A scenario below `benches/`.
    is_scene: bool,
    /// `--against` is possible.
    is_duel: bool,
}

const DUEL: Bench = Bench {
    name: "http",
    run: duel::run,
    rounds: 3,
    parts: &["keep-alive", "short", "websocket"],
    tools: &["wrk", "ab", "h2load", "hey", "k6"],
    is_pinned: true,
    is_scene: false,
    is_duel: true,
};
const SCENE: Bench = Bench {
    name: "million",
    run: million,
    parts: &["run", "peers"],
    tools: &["tsung", "k6", "locust", "artillery"],
    is_pinned: false,
    is_scene: true,
    is_duel: false,
    ..DUEL
};
const BENCHES: [Bench; 10] = [
    DUEL,
    Bench { name: "http2", parts: &["requests", "calls"], tools: &["h2load", "ghz"], ..DUEL },
    Bench { name: "protocol", parts: &["64", "1000"], tools: &[], ..DUEL },
    Bench { name: "language", parts: &[], tools: &[], ..DUEL },
    Bench {
        name: "rate",
        run: rate::run,
        rounds: 5,
        parts: &["cost", "served"],
        tools: &["wrk2", "vegeta", "h2load"],
        is_duel: false,
        ..DUEL
    },
    Bench {
        name: "truth",
        run: served::truth,
        parts: &served::NAMES,
        tools: &[],
        is_duel: false,
        ..DUEL
    },
    Bench {
        name: "fleet",
        run: fleet::run,
        parts: fleet::PARTS,
        tools: &[],
        is_pinned: false,
        is_duel: false,
        ..DUEL
    },
    SCENE,
    Bench { name: "chat", run: scene::run, parts: &[], tools: &[], ..SCENE },
    Bench { name: "push", run: scene::run, parts: &[], tools: &[], ..SCENE },
];

/// The options of the command line.
struct Options {
    bench: &'static Bench,
    name: &'static str,
    /// The command that reproduces this bench.
    command: String,
    seconds: u32,
    rounds: u32,
    only: Vec<String>,
    tools: Vec<String>,
    /// Another version of throng, which is measured in turn with this one.
    against: Option<PathBuf>,
    /// For scenarios: the numbers of users, TLS, and variables.
    users: Vec<u64>,
    tls: bool,
    sets: Vec<String>,
    /// Nothing was left out or changed: the results may be published.
    is_whole: bool,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    /// By its command line.
    fn wants_tool(&self, line: &str) -> bool {
        let name = line.split(' ').next().unwrap_or_default();
        self.tools.is_empty() || self.tools.iter().any(|tool| tool == name)
    }

    /// The tools beside throng whose versions matter; those of a scenario have their own list.
    fn others(&self) -> Vec<&'static str> {
        let tools = self.bench.tools.iter().filter(|_| !self.bench.is_scene);
        tools.copied().filter(|tool| self.wants_tool(tool)).collect()
    }

    /// The name of the section in the document: runs with other numbers have separate sections.
    fn section(&self) -> String {
        match (self.users.as_slice(), self.tls) {
            ([], true) => format!("{}-tls", self.name),
            ([users], _) => format!("{}-{users}", self.name),
            _ => self.name.to_string(),
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (name, arguments) = arguments.split_first().ok_or(crate::USAGE)?;
    if *name == "capacity" {
        return capacity::run(arguments);
    }
    let options = parse(name, arguments)?;
    if machine::cores() < 2 {
        return Err("a bench needs two cores: one for the tools, one for the servers".to_string());
    }
    let workspace = workspace::load()?;
    let folder = workspace.target.join("bench");
    files::create(&folder)?;
    let throng = throng_binary(&workspace.root, &workspace.target)?;
    let places = Places { folder, throng, root: workspace.root, target: workspace.target };
    let section = (options.bench.run)(&options, &places)?;
    let file = match options.is_whole {
        true => places.root.join("docs/benchmarks.md"),
        false => places.folder.join("benchmarks.md"),
    };
    let before = fs::read_to_string(&file).unwrap_or_default();
    files::write(&file, report::with_section(&before, &options.section(), &section))?;
    crate::say(&format!("\n{section}\nwritten to {}", file.display()));
    Ok(())
}

/// Users of a messenger, and the cost of as many in other tools.
fn million(options: &Options, places: &Places) -> Result<String, String> {
    let with_peers = options.users.is_empty() && !options.tls && options.wants("peers");
    // First, because a million connections keep a host busy for a while after they end.
    let beside = if with_peers { peers::run(options, places) } else { String::new() };
    let run = if options.wants("run") { scene::run(options, places)? } else { String::new() };
    Ok(run + &beside)
}

/// Where the bench's files, throng's binary and the workspace are.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) folder: PathBuf,
    pub(super) throng: PathBuf,
    pub(super) root: PathBuf,
    /// Of cargo.
    pub(super) target: PathBuf,
}

impl Places {
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let file = self.folder.join(name);
        files::write(&file, text)?;
        Ok(file)
    }
}

/// A folder for the files of one bench, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &Path, name: &str) -> Result<Folder, String> {
        let folder = parent.join(format!("{name}-{}", std::process::id()));
        files::create(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be deleted is below target/ and does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The binary to measure: `THRONG_BIN`, or a new build, so that no result is from an older one.
fn throng_binary(root: &Path, target: &Path) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("THRONG_BIN") {
        return Ok(PathBuf::from(path));
    }
    programs::finish(&mut programs::cargo(root, &["build", "--release", "-p", "throng"]))?;
    Ok(target.join("release/throng"))
}

fn parse(name: &str, arguments: &[&str]) -> Result<Options, String> {
    static ALL: &[Bench] = &BENCHES;
    let bench = ALL.iter().find(|bench| bench.name == name).ok_or(crate::USAGE)?;
    let command = format!("cargo xtask bench {name} {}", arguments.join(" "));
    let mut options = Options {
        bench,
        name: bench.name,
        command: command.trim_end().to_string(),
        seconds: 5,
        rounds: bench.rounds,
        only: Vec::new(),
        tools: Vec::new(),
        against: None,
        users: Vec::new(),
        tls: false,
        sets: Vec::new(),
        is_whole: true,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        options.is_whole &= matches!(*flag, "--seconds" | "--rounds" | "--tls");
        match *flag {
            "--quick" if !bench.is_scene => {
                options.seconds = 1;
                continue;
            }
            "--tls" if name == "million" => {
                options.tls = true;
                continue;
            }
            _ => {}
        }
        let value = rest.next().ok_or_else(|| format!("{flag}: unknown, or its value is missing"));
        let value = *value?;
        match *flag {
            "--seconds" if !bench.is_scene => {
                options.seconds = count(flag, value, SECONDS_MAX)? as u32;
            }
            "--rounds" if !bench.is_scene => {
                options.rounds = count(flag, value, ROUNDS_MAX)? as u32;
            }
            "--only" => options.only = words(flag, value, bench.parts)?,
            "--tools" => {
                options.tools = words(flag, value, &[bench.tools, &["throng"]].concat())?;
            }
            "--users" if bench.is_scene => {
                let counts = value.split(',').map(|users| count(flag, users, USERS_MAX));
                options.users = counts.collect::<Result<_, _>>()?;
            }
            "--set" if bench.is_scene => options.sets.push(value.to_string()),
            "--against" if bench.is_duel => {
                options.against = Some(PathBuf::from(value)).filter(|file| file.is_file());
                options.against.as_ref().ok_or_else(|| format!("{flag} {value}: no such file"))?;
            }
            _ => return Err(format!("{flag}: unknown\n\n{}", crate::USAGE)),
        }
    }
    Ok(options)
}

/// A count such as `20_000`, at least one.
fn count(flag: &str, value: &str, max: u64) -> Result<u64, String> {
    let count = units::parse_count(value).ok().filter(|count| (1..=max).contains(count));
    count.ok_or_else(|| format!("{flag} {value}: expected a number from 1 to {max}"))
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
        let options = parse("http", &["--quick", "--only", "short", "--rounds", "5"]).unwrap();
        assert_eq!((options.seconds, options.rounds, options.is_whole), (1, 5, false));
        assert!(options.wants("short") && !options.wants("websocket"));
        assert!(options.wants_tool("ab -k") && options.others().contains(&"ab"));
        assert!(parse("truth", &["--seconds", "8"]).unwrap().is_whole);
        let options = parse("rate", &["--tools", "throng,wrk2"]).unwrap();
        assert_eq!((options.rounds, options.is_whole), (5, false));
        assert_eq!(options.others(), ["wrk2"]);
        let options = parse("http", &["--against", "/proc/self/exe"]).unwrap();
        assert!(options.against.is_some() && !options.is_whole);
    }

    #[test]
    fn options_of_scenarios_are_read() {
        let whole = |name, words: &[&str]| parse(name, words).unwrap().is_whole;
        assert!(whole("million", &[]) && whole("million", &["--tls"]));
        assert!(!whole("million", &["--users", "7"]) && !whole("chat", &["--set", "hold=1s"]));
        let section = |words: &[&str]| parse("million", words).unwrap().section();
        assert_eq!((section(&["--tls"]), section(&[])), ("million-tls".into(), "million".into()));
        assert_eq!(section(&["--users", "2_000_000"]), "million-2000000");
        let options = parse("push", &["--users", "7,20_000", "--set", "hold=1m"]).unwrap();
        assert_eq!((options.users, options.sets), (vec![7, 20_000], vec!["hold=1m".to_string()]));
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
            &["--users", "1"],
        ] {
            assert!(parse("http", wrong).is_err(), "{wrong:?}");
        }
        for wrong in [&["--users", "0"][..], &["--against", "/proc/self/exe"], &["--only", "run"]] {
            assert!(parse("chat", wrong).is_err(), "{wrong:?}");
        }
        assert!(parse("rate", &["--against", "/proc/self/exe"]).is_err());
        assert!(parse("page", &[]).is_err());
    }
}
