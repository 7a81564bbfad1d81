//! The cost of a connected user in throng and other tools: each connects the same number of users
//! to its own target, at the same rate, and holds them over a heartbeat. Their scenarios are in
//! `benches/peers`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::child::{self, Ended};
use super::look::{self, Look, Watcher};
use super::report::in_bytes;
use super::tool::{self, Places};
use super::{Folder, machine, server};
use crate::packages;

const USERS: u64 = 10_000;
/// Users per second.
const PACE: u64 = 1_000;
/// How long all users are online: longer than the heartbeat interval.
const HOLD: Duration = Duration::from_secs(40);
const HEARTBEAT: Duration = Duration::from_secs(30);
/// The hold time of the run with one user, which measures the base memory.
const HOLD_ALONE: Duration = Duration::from_secs(8);
const TICK: Duration = Duration::from_millis(200);
/// The time for a tool to start, to fall behind and to end.
const GRACE: Duration = Duration::from_secs(90);
const RATIO_MAX: f64 = 0.9;

pub(super) const NAMES: [&str; 5] = ["throng", "tsung", "k6", "locust", "artillery"];

/// A tool that holds users. In its script and its arguments, `@NAME@` is a placeholder.
struct Peer {
    name: &'static str,
    /// Below the folder of cargo's target, or else on the PATH.
    program: &'static str,
    install: &'static str,
    script: &'static str,
    words: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

const PEERS: [Peer; 5] = [
    Peer {
        name: "throng",
        program: "release/throng",
        install: "cargo build --release -p throng",
        script: "million.yaml",
        words: "run @SCRIPT@ --quiet --json --no-record --set target=@ORIGIN@ --set \
                users=@USERS@ --set fill=@PACE@/s --set fill_2=@PACE@/s --set fill_3=@PACE@/s \
                --set fill_4=@PACE@/s --set settle=1s --set hold=@HOLD@s",
        environment: &[],
    },
    Peer {
        name: "tsung",
        program: "",
        install: "apt-get install tsung",
        script: "peers/tsung.xml",
        words: "-n -f @SCRIPT@ -l @FOLDER@/tsung start",
        // Its cookie is kept in its home. `epmd`, which it starts and leaves behind, is ours alone
        // by its port, so that it can be ended.
        environment: &[("HOME", "@FOLDER@"), ("ERL_EPMD_PORT", "@EPMD@")],
    },
    Peer {
        name: "k6",
        program: "",
        install: "go install go.k6.io/k6@latest",
        script: "peers/k6.js",
        words: "run --quiet --no-usage-report @SCRIPT@",
        environment: &[],
    },
    Peer {
        name: "locust",
        program: "ci/python/bin/locust",
        install: "python3 -m venv target/ci/python && \
                  target/ci/python/bin/pip install locust websocket-client",
        script: "peers/locustfile.py",
        // It counts from its start and needs longer than it was told.
        words: "-f @SCRIPT@ --headless --only-summary --loglevel ERROR --stop-timeout 10 -u \
                @USERS@ -r @PACE@ -t @RUN@s",
        environment: &[],
    },
    Peer {
        name: "artillery",
        program: "ci/artillery/node_modules/.bin/artillery",
        install: "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 \
                  npm install --prefix target/ci/artillery artillery",
        script: "peers/artillery.yaml",
        words: "run --quiet @SCRIPT@",
        environment: &[("ARTILLERY_DISABLE_TELEMETRY", "true"), ("HOME", "@FOLDER@")],
    },
];

/// The cost of a tool with its users.
#[derive(Debug, PartialEq)]
struct Cost {
    /// From the first user's start until all are logged in.
    connecting_us: f64,
    /// From the start of the program until all are logged in.
    starting_us: f64,
    bytes_per_user: f64,
    /// While all are online.
    cores_in_hold: f64,
    heartbeats: u64,
    seconds_to_connect: f64,
}

impl Peer {
    /// The program, or how to get it.
    fn program(&self, places: &Places) -> Result<PathBuf, String> {
        let own = match self.name {
            "throng" => places.throng.clone(),
            _ => places.target.join(self.program),
        };
        let found = (!self.program.is_empty() && own.is_file()).then_some(own);
        found
            .or_else(|| packages::program(self.name).filter(|_| self.name != "throng"))
            .ok_or_else(|| format!("missing; install it with: {}", self.install))
    }

    fn version(&self, program: &Path, folder: &Path) -> Option<String> {
        if self.name == "artillery" {
            // It prints ASCII art before its version.
            let package = program.parent()?.parent()?.join("artillery/package.json");
            let package: Value = serde_json::from_str(&fs::read_to_string(package).ok()?).ok()?;
            return Some(format!("artillery {}", package.get("version")?.as_str()?));
        }
        let flag = if self.name == "tsung" { "-v" } else { "--version" };
        machine::version(self.name, program, &[flag], folder)
    }

    /// Runs the tool to its end and takes readings.
    fn watch(
        &self,
        program: &Path,
        users: u64,
        hold: Duration,
        places: &Places,
    ) -> Result<Vec<Look>, String> {
        let folder = &Folder::new(&places.folder, self.name)?.0;
        let room = (users * 2).to_string();
        let words = ["im", "--connections", &room, "--workers", "2"];
        let (target, admin) = server::throng_target_everywhere(&places.throng, folder, &words)?;
        let epmd = server::free_port()?.to_string();
        let told = told(users, hold, target.port, &epmd, folder);
        let source = places.root.join("benches").join(self.script);
        let script = fs::read_to_string(&source)
            .map_err(|error| format!("{}: {error}", source.display()))?;
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = tool::write(folder, &name, &filled(&script, &told))?;
        let told = [told, vec![("SCRIPT", file.display().to_string())]].concat();
        let mut command = Command::new(program);
        command.args(self.words.split(' ').map(|word| filled(word, &told)));
        command.envs(self.environment.iter().map(|(name, value)| (name, filled(value, &told))));
        let mut watcher = Watcher::new(&target, admin, look::MESSENGER);
        let running = child::start(command, None, folder, self.name)?;
        let limit = coming(users) * 6 + (hold + HEARTBEAT) * 2 + GRACE;
        let ended = running.watch(TICK, limit, |id| {
            watcher.look(id);
        });
        if let ("tsung", Some(program)) = (self.name, packages::program("epmd")) {
            // If it never started, there is nothing to end.
            let _ = Command::new(program).args(["-port", &epmd, "-kill"]).output();
        }
        let most = watcher.looks.iter().map(|look| look.logged_in).max().unwrap_or(0);
        if most < users {
            let complaint = ended.as_ref().map_or_else(Clone::clone, Ended::complaint);
            return Err(format!("only {most} of {users} logged in: {complaint}"));
        }
        Ok(watcher.looks)
    }

    fn measure(&self, program: &Path, users: u64, places: &Places) -> Result<Cost, String> {
        let alone = self.watch(program, 1, HOLD_ALONE, places)?;
        let looks = self.watch(program, users, HOLD, places)?;
        let resident = |looks: &[Look], users| {
            let online = looks.iter().rfind(|look| look.logged_in >= users);
            online.map(|look| look.tool.resident_bytes)
        };
        let (one, many) =
            resident(&alone, 1).zip(resident(&looks, users)).ok_or("not all users logged in")?;
        let each = many.saturating_sub(one) as f64 / users.saturating_sub(1).max(1) as f64;
        cost(&looks, users, each).ok_or_else(|| "not all users logged in".to_string())
    }
}

/// The time until all users have started.
fn coming(users: u64) -> Duration {
    Duration::from_secs(users.div_ceil(PACE))
}

/// The values of placeholders in scripts.
fn told(
    users: u64,
    hold: Duration,
    port: u16,
    epmd: &str,
    folder: &Path,
) -> Vec<(&'static str, String)> {
    // Users stay long enough for all to be online during the hold, even if a tool takes twice the
    // configured time to start them.
    let (coming, beat) = (coming(users).as_secs(), HEARTBEAT.as_secs());
    let stay = (coming * 2 + hold.as_secs()).max(beat);
    let origin = format!("ws://127.0.0.1:{port}");
    vec![
        ("PORT", port.to_string()),
        ("URL", format!("{origin}/acc")),
        ("ORIGIN", origin),
        ("EPMD", epmd.to_string()),
        ("FOLDER", folder.display().to_string()),
        ("USERS", users.to_string()),
        ("PACE", PACE.to_string()),
        ("BEAT", beat.to_string()),
        ("HOLD", hold.as_secs().to_string()),
        ("STAY", stay.to_string()),
        ("REST", (stay - beat).to_string()),
        ("COMING", coming.to_string()),
        ("COMING_LONG", (coming * 5 + 5).to_string()),
        ("RUN", (coming * 3 + hold.as_secs()).to_string()),
        ("LIMIT", (stay + 22).to_string()),
    ]
}

fn filled(text: &str, told: &[(&str, String)]) -> String {
    let fill =
        |text: String, (name, value): &(&str, String)| text.replace(&format!("@{name}@"), value);
    told.iter().fold(text.to_string(), fill)
}

/// Measures all installed tools and returns the text of the report.
pub(super) fn run(wanted: &[String], places: &Places) -> String {
    let mut rows = Vec::new();
    let mut versions = Vec::new();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    for peer in PEERS.iter().filter(|peer| is_wanted(peer.name)) {
        let cost = peer.program(places).and_then(|program| {
            versions.extend(peer.version(&program, &places.folder));
            peer.measure(&program, USERS, places)
        });
        let said = match &cost {
            Ok(cost) => format!("{:.1} µs of CPU per connection", cost.connecting_us),
            Err(trouble) => trouble.clone(),
        };
        crate::say(&format!("{USERS} users by {}: {said}", peer.name));
        rows.push((peer.name, cost));
    }
    table(&rows, &versions)
}

/// The cost from the readings; `None` if not all users started.
fn cost(looks: &[Look], users: u64, bytes_per_user: f64) -> Option<Cost> {
    let full = looks.iter().position(|look| look.logged_in >= users)?;
    let before = looks[..full].iter().rfind(|look| look.logged_in == 0)?;
    let last = looks.iter().rfind(|look| look.logged_in >= users)?;
    let full = &looks[full];
    let held = (last.at - full.at).as_secs_f64();
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / users as f64;
    Some(Cost {
        connecting_us: each(full.tool.cpu.saturating_sub(before.tool.cpu)),
        starting_us: each(full.tool.cpu),
        bytes_per_user,
        cores_in_hold: last.tool.cpu.saturating_sub(full.tool.cpu).as_secs_f64() / held.max(0.1),
        heartbeats: last.done,
        seconds_to_connect: (full.at - before.at).as_secs_f64(),
    })
}

type Measured = (&'static str, Result<Cost, String>);

fn table(rows: &[Measured], versions: &[String]) -> String {
    let throng = rows.iter().find(|(name, _)| *name == "throng");
    let throng = throng.and_then(|(_, cost)| cost.as_ref().ok());
    let mut text = format!(
        "### Compared with other tools, {USERS} users each\n\nEach tool connects {USERS} WebSocket \
         users to a separate `throng target im` at {PACE} per second, logs them in, and holds them \
         for {} s with a heartbeat every {} s. CPU is the CPU time of the tool and its child \
         processes from the first login until all users are logged in, divided by the number of \
         connections; *CPU with start* includes the program's start. Memory is the resident memory \
         at the end of the hold phase, minus the memory with 1 user, divided by the number of \
         users. A ratio is throng's value divided by the tool's.\n\n\
         | tool | CPU per connection | ratio | CPU with start | time to log in | \
         memory per user | ratio | CPU during the hold phase | heartbeats |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        HOLD.as_secs(),
        HEARTBEAT.as_secs()
    );
    for (name, cost) in rows {
        let cost = match cost {
            Ok(cost) => cost,
            Err(trouble) => {
                let trouble = trouble.replace('|', "/");
                let _ = writeln!(text, "| {name} | {} | | | | | | | |", trouble.trim());
                continue;
            }
        };
        let ratio = |of: fn(&Cost) -> f64| {
            throng.map_or_else(String::new, |throng| format!("{:.3}", of(throng) / of(cost)))
        };
        let _ = writeln!(
            text,
            "| {name} | {:.1} µs | {} | {:.1} µs | {:.1} s | {} | {} | {:.3} cores | {} |",
            cost.connecting_us,
            ratio(|cost| cost.connecting_us),
            cost.starting_us,
            cost.seconds_to_connect,
            in_bytes(cost.bytes_per_user),
            ratio(|cost| cost.bytes_per_user),
            cost.cores_in_hold,
            cost.heartbeats
        );
    }
    let _ = writeln!(text, "\n{}\n\nVersions: {}.", verdict(rows, throng), versions.join("; "));
    text
}

fn verdict(rows: &[Measured], throng: Option<&Cost>) -> String {
    let others = rows.iter().filter(|(name, _)| *name != "throng");
    let costs = others.filter_map(|(name, cost)| Some((name, cost.as_ref().ok()?)));
    let best = costs.min_by(|a, b| a.1.connecting_us.total_cmp(&b.1.connecting_us));
    let threshold =
        format!("CPU per established connection at most {RATIO_MAX} x the best other tool");
    match (throng, best) {
        (Some(throng), Some((name, best))) => {
            let ratio = throng.connecting_us / best.connecting_us;
            let met = if ratio <= RATIO_MAX { "met" } else { "**not met**" };
            format!("{threshold} — {met}: {ratio:.2} x {name}")
        }
        _ => format!("{threshold} — not measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::look::Usage;

    fn look(at: u64, cpu_ms: u64, logged_in: u64) -> Look {
        let tool = Usage { cpu: Duration::from_millis(cpu_ms), resident_bytes: 0 };
        Look { at: Duration::from_secs(at), tool, logged_in, done: at, ..Look::default() }
    }

    #[test]
    fn what_a_connection_costs_is_seen() {
        let looks = [
            look(0, 0, 0),
            look(1, 500, 0),
            look(2, 600, 40),
            look(3, 900, 100),
            look(13, 1900, 100),
            look(14, 2000, 3),
        ];
        let cost = cost(&looks, 100, 7.0).unwrap();
        assert_eq!((cost.connecting_us, cost.starting_us), (4000.0, 9000.0));
        assert_eq!((cost.cores_in_hold, cost.heartbeats), (0.1, 13));
        assert_eq!(cost.seconds_to_connect, 2.0);
        assert_eq!(super::cost(&looks, 101, 7.0), None);
    }

    #[test]
    fn the_best_other_is_the_measure() {
        let cost = |us| {
            Ok(Cost {
                connecting_us: us,
                starting_us: us,
                bytes_per_user: 1.0,
                cores_in_hold: 0.0,
                heartbeats: 0,
                seconds_to_connect: 1.0,
            })
        };
        let missing = Err("missing | gone".to_string());
        let rows = [("throng", cost(500.0)), ("k6", cost(5000.0)), ("tsung", cost(1000.0)), {
            ("locust", missing)
        }];
        let text = table(&rows, &[]);
        assert!(text.contains("met: 0.50 x tsung"), "{text}");
        assert!(text.contains("| k6 | 5000.0 µs | 0.100 |"), "{text}");
        assert!(text.contains("| locust | missing / gone |"), "{text}");
        assert!(verdict(&rows[1..], None).ends_with("not measured"));
    }

    #[test]
    fn every_script_is_filled() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches");
        let told = told(10_000, HOLD, 7, "8", Path::new("/"));
        for peer in &PEERS {
            let script = fs::read_to_string(root.join(peer.script)).unwrap();
            let script = filled(&script, &told);
            assert!(!script.contains(concat!('@', "U")) && !script.contains("@S"), "{script}");
            assert!(peer.name == "throng" || script.contains("10000") || script.contains("7/acc"));
        }
    }
}
