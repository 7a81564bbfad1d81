//! `cargo xtask bench`: throng compared with other tools and with the truth, in one run. The only
//! source of performance claims.

mod capacity;
mod child;
mod contest;
mod costs;
mod duel;
mod fleet;
pub(crate) mod instructions;
mod language;
mod look;
mod machine;
mod memory;
mod page;
mod peers;
mod rate;
mod report;
mod scene;
mod served;
mod server;
mod throng;
mod tool;

use std::fs;
use std::path::{Path, PathBuf};
use throng_base::units;

use crate::{programs, workspace};
use scene::Scene;
use tool::Places;

/// Tools run here …
const TOOL_CORE: usize = 0;
/// … and the servers here, so that neither takes time from the other.
const SERVER_CORE: usize = 1;
const SECONDS_MAX: u32 = 600;
const ROUNDS_MAX: u32 = 100;

const USERS_MAX: u64 = 10_000_000;
/// The name of throng in rows, and of another version to compare with.
const OWN: &str = "throng";
const OTHER: &str = "the other throng";

/// The options of the command line.
#[derive(Debug, Default, PartialEq)]
struct Options {
    name: String,
    /// The command that reproduces this bench.
    command: String,
    /// The same without its name and without the other version.
    choice: String,
    seconds: u32,
    rounds: u32,
    quick: bool,
    only: Vec<String>,
    tools: Vec<String>,
    /// Requests per second, for `bench rate`.
    rates: Vec<u32>,
    /// Another version of throng, which is measured in turn with this one.
    against: Option<PathBuf>,
    /// For scenarios: the numbers of users, TLS, variables, and further flags for `throng run`.
    users: Vec<u64>,
    tls: bool,
    sets: Vec<String>,
    more: Vec<String>,
}

impl Options {
    fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// True for a scenario, whose generator and target share all cores.
    fn is_scene(&self) -> bool {
        Scene::find(&self.name).is_some()
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    fn wants_tool(&self, word: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|tool| tool == word)
    }

    fn wants_rate(&self, rate: u32) -> bool {
        self.rates.is_empty() || self.rates.contains(&rate)
    }

    /// This throng, and the one it is compared with.
    fn throngs(&self, program: &Path) -> Vec<(String, PathBuf)> {
        let own = (OWN.to_string(), program.to_path_buf());
        let other = self.against.iter().map(|file| (OTHER.to_string(), file.clone()));
        std::iter::once(own).chain(other).collect()
    }

    /// Only a complete run replaces the published results; the cost of an expression is not
    /// published.
    fn is_whole(&self) -> bool {
        match Scene::find(&self.name) {
            Some(scene) => scene.published.contains(&self.choice.as_str()),
            None => {
                let whole = self.only.is_empty() && self.tools.is_empty() && self.rates.is_empty();
                whole && self.name != "language" && !self.quick && self.against.is_none()
            }
        }
    }

    /// The name of the section in the document: runs with other numbers have separate sections.
    fn section(&self) -> String {
        match (self.users.as_slice(), self.tls) {
            ([], true) => format!("{}-tls", self.name),
            ([users], _) => format!("{}-{users}", self.name),
            _ => self.name.clone(),
        }
    }
}

/// Measures, and returns the section of the report.
type Bench = fn(&Options, &Places) -> Result<String, String>;

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let name = *arguments.first().ok_or_else(|| crate::USAGE.to_string())?;
    if name == "capacity" {
        return capacity::run(&arguments[1..]);
    }
    let run: Bench = match name {
        "http" | "http2" | "protocol" => duel::run,
        "language" => language::run,
        "page" => page::run,
        "rate" => rate::run,
        "truth" => served::truth,
        "fleet" => fleet::run,
        _ if Scene::find(name).is_some() => populate,
        _ => return Err(crate::USAGE.to_string()),
    };
    let options = parse(&arguments[1..], name)?;
    if machine::cores() < 2 {
        return Err("a bench needs two cores: one for the tools, one for the servers".to_string());
    }
    let places = prepare()?;
    let section = run(&options, &places)?;
    publish(&places, &options.section(), &section, options.is_whole())
}

/// Users of a scenario, and the cost of as many in other tools.
fn populate(options: &Options, places: &Places) -> Result<String, String> {
    let with_peers = options.is("million") && options.users.is_empty() && !options.tls;
    // First, because a million connections keep a host busy for a while after they end.
    let beside = (with_peers && options.wants("peers")).then(|| peers::run(&options.tools, places));
    let scene = Scene::find(&options.name).filter(|_| options.wants("run"));
    let run = scene.map(|scene| scene::run(scene, options, places)).transpose()?;
    Ok(run.unwrap_or_default() + &beside.unwrap_or_default())
}

/// The workspace, and throng's binary with a folder for what the bench writes.
fn prepare() -> Result<Places, String> {
    child::end_children_on_signals();
    let workspace = workspace::load()?;
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let throng = throng_binary(&workspace.root, &workspace.target)?;
    Ok(Places { folder, throng, root: workspace.root, target: workspace.target })
}

/// A folder for the files of one bench, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &Path, name: &str) -> Result<Folder, String> {
        let folder = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be deleted is below target/ and does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Prints the section and inserts it into the document: the published one if the run was complete.
fn publish(places: &Places, name: &str, section: &str, whole: bool) -> Result<(), String> {
    // Results without throng are a rehearsal and are not published.
    let file = if whole && places.throng.is_file() {
        places.root.join("docs/benchmarks.md")
    } else {
        places.folder.join("benchmarks.md")
    };
    let before = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, report::with_section(&before, name, section))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    crate::say(&format!("\n{section}\nwritten to {}", file.display()));
    Ok(())
}

/// The binary to measure: `THRONG_BIN`, or a new build, so that no result is from an older one.
fn throng_binary(root: &Path, target: &Path) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("THRONG_BIN") {
        return Ok(PathBuf::from(path));
    }
    programs::finish(&mut programs::cargo(root, &["build", "--release", "-p", "throng"]))?;
    Ok(target.join("release/throng"))
}

fn parse(arguments: &[&str], name: &str) -> Result<Options, String> {
    let rounds = match name {
        "rate" | "heartbeat" => 5,
        _ if Scene::find(name).is_some() => 1,
        _ => 3,
    };
    let mut options = Options {
        name: name.to_string(),
        command: format!("cargo xtask bench {name} {}", arguments.join(" ")).trim_end().to_string(),
        seconds: 5,
        rounds,
        ..Options::default()
    };
    let is_scene = Scene::find(name).is_some();
    let mut rest = arguments.iter();
    let mut choice = Vec::new();
    while let Some(flag) = rest.next() {
        choice.push(*flag);
        match *flag {
            "--quick" => {
                (options.quick, options.seconds) = (true, 1);
                continue;
            }
            "--tls" if is_scene => {
                options.tls = true;
                continue;
            }
            "--" if is_scene => {
                options.more = rest.by_ref().map(|word| (*word).to_string()).collect();
                break;
            }
            _ => {}
        }
        let value = rest.next().ok_or_else(|| format!("{flag}: unknown, or its value is missing"));
        let value = *value?;
        choice.push(value);
        match *flag {
            "--seconds" if !is_scene => options.seconds = number(flag, value, SECONDS_MAX)?,
            "--rounds" => options.rounds = number(flag, value, ROUNDS_MAX)?,
            "--only" => options.only = words(flag, value, parts(name))?,
            "--tools" => options.tools = words(flag, value, &tools(name))?,
            "--rates" if name == "rate" => {
                let rates = value.split(',').map(|rate| known_rate(flag, rate));
                options.rates = rates.collect::<Result<_, _>>()?;
            }
            "--users" if is_scene => {
                let counts = value.split(',').map(|users| count(flag, users, USERS_MAX));
                options.users = counts.collect::<Result<_, _>>()?;
            }
            "--set" if is_scene => options.sets.push(value.to_string()),
            "--against" if !matches!(name, "fleet" | "page" | "rate" | "truth") => {
                options.against = Some(PathBuf::from(value)).filter(|file| file.is_file());
                options.against.as_ref().ok_or_else(|| format!("{flag} {value}: no such file"))?;
                choice.truncate(choice.len() - 2);
            }
            _ => return Err(format!("{flag}: unknown\n\n{}", crate::USAGE)),
        }
    }
    options.choice = choice.join(" ");
    Ok(options)
}

fn parts(name: &str) -> &'static [&'static str] {
    match name {
        "http" => &["keep-alive", "short", "websocket", "memory"],
        "http2" => &["requests", "calls"],
        "language" => &["transaction", "expressions", "compile"],
        "page" => &["report", "live"],
        "protocol" => &["64", "1000"],
        "rate" => &["cost", "served"],
        "million" => &["run", "peers"],
        "truth" => &served::NAMES,
        "fleet" => fleet::PARTS,
        _ => &[],
    }
}

fn tools(name: &str) -> Vec<&'static str> {
    match name {
        "rate" => rate::WORDS.to_vec(),
        "million" => peers::NAMES.to_vec(),
        _ => vec!["throng", "scenario", "wrk", "ab", "h2load", "hey", "k6", "ghz"],
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
    fn options_of_scenarios_are_read() {
        let whole = |words: &[&str], name| parse(words, name).unwrap().is_whole();
        assert!(whole(&[], "million") && whole(&["--tls"], "million"));
        assert!(!whole(&["--users", "7"], "million") && !whole(&["--set", "hold=1s"], "chat"));
        assert!(whole(&["--against", "/proc/self/exe"], "heartbeat"));
        let section = |words: &[&str]| parse(words, "million").unwrap().section();
        assert_eq!((section(&["--tls"]), section(&[])), ("million-tls".into(), "million".into()));
        assert_eq!(section(&["--users", "2_000_000"]), "million-2000000");
        let words = ["--users", "7,20_000", "--set", "hold=1m", "--", "--precision", "1ms"];
        let options = parse(&words, "heartbeat").unwrap();
        assert_eq!((options.users, options.sets), (vec![7, 20_000], vec!["hold=1m".to_string()]));
        assert_eq!((options.more.len(), options.rounds), (2, 5));
        let program = Path::new("throng");
        assert_eq!(parse(&[], "chat").unwrap().throngs(program).len(), 1);
        let options = parse(&["--against", "/proc/self/exe"], "http").unwrap();
        assert_eq!((options.throngs(program).len(), options.is_whole()), (2, false));
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
        for wrong in [&["--users", "0"][..], &["--against", "/no/such/throng"], &["--only", "run"]]
        {
            assert!(parse(wrong, "chat").is_err(), "{wrong:?}");
        }
        assert!(parse(&["--rates", "1000"], "http").is_err());
        assert!(parse(&["--users", "1"], "http").is_err());
        assert!(parse(&["--against", "/proc/self/exe"], "rate").is_err());
        for wrong in [&["--rates", "7"][..], &["--rates", "x"], &["--tools", "wrk"]] {
            assert!(parse(wrong, "rate").is_err(), "{wrong:?}");
        }
    }
}
