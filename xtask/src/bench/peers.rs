//! The cost of a connected user in throng and other tools: each connects the same number of users
//! to its own target, at the same rate, and holds them over a heartbeat. Their scenarios are in
//! `benches/peers`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::child::{self, Ended};
use super::readings::{self, Costs, Host, Reading, Watcher};
use super::report::{self, in_bytes};
use super::tool::{self, Values, filled};
use super::{Folder, Options, Places, server};
use crate::{files, packages};

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

/// Each tool with its script and its command line.
const PEERS: [(&str, &str, &str); 5] = [
    (
        "throng",
        "million.yaml",
        "throng run @SCRIPT@ --set target=@ORIGIN@ --set users=@USERS@ --set fill=@PACE@/s --set \
         fill_2=@PACE@/s --set fill_3=@PACE@/s --set fill_4=@PACE@/s --set settle=1s --set \
         hold=@HOLD@s",
    ),
    ("tsung", "peers/tsung.xml", "tsung -n -f @SCRIPT@ -l @FOLDER@/tsung start"),
    ("k6", "peers/k6.js", "k6 run @SCRIPT@"),
    (
        "locust",
        "peers/locustfile.py",
        // It counts from its start and needs longer than it was told.
        "locust -f @SCRIPT@ --headless --only-summary --loglevel ERROR --stop-timeout 10 \
         -u @USERS@ -r @PACE@ -t @RUN@s",
    ),
    ("artillery", "peers/artillery.yaml", "artillery run --quiet @SCRIPT@"),
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

impl Cost {
    /// From the readings; an error if not all users came.
    fn of(readings: &[Reading], users: u64, bytes_alone: u64) -> Result<Cost, String> {
        let host = Host::default();
        let costs = Costs::new(&host, readings, users);
        let all = costs
            .connecting_us()
            .zip(costs.holding_cores())
            .zip(costs.filling_s())
            .zip(costs.last())
            .filter(|_| costs.came >= users);
        let ((([connecting_us, starting_us], cores_in_hold), seconds_to_connect), last) =
            all.ok_or("not all users logged in")?;
        let bytes = last.tool.resident_bytes.saturating_sub(bytes_alone);
        let bytes_per_user = bytes as f64 / users.saturating_sub(1).max(1) as f64;
        let heartbeats = last.done;
        Ok(Cost {
            connecting_us,
            starting_us,
            bytes_per_user,
            cores_in_hold,
            heartbeats,
            seconds_to_connect,
        })
    }
}

/// Runs a tool to its end and takes readings.
fn watch(
    (name, script, line): (&str, &str, &str),
    users: u64,
    hold: Duration,
    places: &Places,
) -> Result<Vec<Reading>, String> {
    let folder = Folder::new(&places.folder, name)?;
    let places = &Places { folder: folder.0.clone(), ..places.clone() };
    let room = (users * 2).to_string();
    let words = ["im", "--connections", &room, "--workers", "2"];
    let target = server::target(&places.throng, &folder.0, &words, None)?;
    let epmd = server::free_port()?.to_string();
    let mut values = values(users, hold, target.port, &epmd, &folder.0);
    let source = places.root.join("benches").join(script);
    let own = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = places.write(&own, &filled(&files::text(&source)?, &values))?;
    values.push(("SCRIPT", file.display().to_string()));
    let (_, command) = tool::command(line, &values, places)?;
    let mut watcher = Watcher::new(&target, readings::MESSENGER);
    let limit = coming(users) * 6 + (hold + HEARTBEAT) * 2 + GRACE;
    let ended = child::start(command, None, &folder.0, name)?.watch(TICK, limit, |id| {
        watcher.read(id);
    });
    if let ("tsung", Some(program)) = (name, packages::program("epmd")) {
        // If it never started, there is nothing to end.
        let _ = Command::new(program).args(["-port", &epmd, "-kill"]).output();
    }
    let most = watcher.readings.iter().map(|it| it.logged_in).max().unwrap_or(0);
    if most < users {
        let complaint = ended.as_ref().map_or_else(Clone::clone, Ended::complaint);
        return Err(format!("only {most} of {users} logged in: {complaint}"));
    }
    Ok(watcher.readings)
}

fn measure(peer: (&str, &str, &str), places: &Places) -> Result<Cost, String> {
    let alone = watch(peer, 1, HOLD_ALONE, places)?;
    let alone = alone.iter().rfind(|it| it.logged_in >= 1).map_or(0, |it| it.tool.resident_bytes);
    Cost::of(&watch(peer, USERS, HOLD, places)?, USERS, alone)
}

/// The time until all users have started.
fn coming(users: u64) -> Duration {
    Duration::from_secs(users.div_ceil(PACE))
}

/// The values of placeholders in scripts.
fn values(users: u64, hold: Duration, port: u16, epmd: &str, folder: &Path) -> Values {
    // Users stay long enough for all to be online during the hold, even if a tool takes twice the
    // configured time to start them; and after the heartbeat, because Tsung refuses to wait for 0
    // s.
    let (coming, beat) = (coming(users).as_secs(), HEARTBEAT.as_secs());
    let stay = (coming * 2 + hold.as_secs()).max(beat + 1);
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

/// Measures all installed tools and returns the text of the report.
pub(super) fn run(options: &Options, places: &Places) -> String {
    let mut rows = Vec::new();
    for peer in PEERS.into_iter().filter(|(.., line)| options.wants_tool(line)) {
        let cost = measure(peer, places);
        let said = match &cost {
            Ok(cost) => format!("{:.1} µs of CPU per connection", cost.connecting_us),
            Err(trouble) => trouble.clone(),
        };
        crate::say(&format!("{USERS} users by {}: {said}", peer.0));
        rows.push((peer.0, cost));
    }
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    let versions: Vec<String> = tool::versions(&names, places).collect();
    format!("{}Versions: {}.\n", table(&rows), versions.join("; "))
}

fn table(rows: &[(&str, Result<Cost, String>)]) -> String {
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
    let mut best: Option<(&str, f64)> = None;
    for (name, cost) in rows {
        let ratio = |of: fn(&Cost) -> f64, cost| {
            throng.map_or_else(String::new, |throng| format!("{:.3}", of(throng) / of(cost)))
        };
        let cells = match cost {
            Ok(cost) => format!(
                "{:.1} µs | {} | {:.1} µs | {:.1} s | {} | {} | {:.3} cores | {}",
                cost.connecting_us,
                ratio(|cost| cost.connecting_us, cost),
                cost.starting_us,
                cost.seconds_to_connect,
                in_bytes(cost.bytes_per_user),
                ratio(|cost| cost.bytes_per_user, cost),
                cost.cores_in_hold,
                cost.heartbeats
            ),
            Err(trouble) => report::not_measured(trouble, 8),
        };
        let _ = writeln!(text, "| {name} | {cells} |");
        if let (Ok(cost), true) = (cost, *name != "throng")
            && best.is_none_or(|(_, best)| cost.connecting_us < best)
        {
            best = Some((name, cost.connecting_us));
        }
    }
    let verdict = match throng.zip(best) {
        Some((throng, (name, best))) => {
            let ratio = throng.connecting_us / best;
            let met = if ratio <= RATIO_MAX { "met" } else { "**not met**" };
            format!("{met}: {ratio:.2} x {name}")
        }
        None => "not measured".to_string(),
    };
    format!(
        "{text}\nCPU per established connection at most {RATIO_MAX} x the best other tool — \
         {verdict}\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::readings::Usage;

    fn reading(at: u64, cpu_ms: u64, logged_in: u64) -> Reading {
        let tool = Usage { cpu: Duration::from_millis(cpu_ms), resident_bytes: 0 };
        Reading { at: Duration::from_secs(at), tool, logged_in, done: at, ..Reading::default() }
    }

    #[test]
    fn what_a_connection_costs_is_seen() {
        let readings = [
            reading(0, 0, 0),
            reading(1, 500, 0),
            reading(2, 600, 40),
            reading(3, 900, 100),
            reading(13, 1900, 100),
            reading(14, 2000, 3),
        ];
        let cost = Cost::of(&readings, 100, 7).unwrap();
        assert_eq!((cost.connecting_us, cost.starting_us), (4000.0, 9000.0));
        assert_eq!((cost.cores_in_hold, cost.heartbeats), (0.1, 13));
        assert_eq!(cost.seconds_to_connect, 2.0);
        assert!(Cost::of(&readings, 101, 7).is_err());
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
        let text = table(&rows);
        assert!(text.contains("met: 0.50 x tsung"), "{text}");
        assert!(text.contains("| k6 | 5000.0 µs | 0.100 |"), "{text}");
        assert!(text.contains("| locust | not measured: missing / gone |"), "{text}");
        assert!(table(&rows[1..]).trim_end().ends_with("not measured"));
    }

    #[test]
    fn every_script_is_filled() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches");
        let values = values(10_000, HOLD, 7, "8", Path::new("/"));
        for (name, script, _) in &PEERS {
            let script = files::text(&root.join(script)).unwrap();
            let script = filled(&script, &values);
            assert!(!script.contains(concat!('@', "U")) && !script.contains("@S"), "{script}");
            assert!(*name == "throng" || script.contains("10000") || script.contains("7/acc"));
        }
    }
}
