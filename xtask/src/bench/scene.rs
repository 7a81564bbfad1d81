//! Benches that are scenarios: users of a file below `benches/` at a reference target beside them,
//! both on all cores. The file has the thresholds; here is what both ends cost meanwhile, and
//! whether what throng counted is what the target counted.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::child;
use super::readings::{self, Costs, Counted, Reading, Watcher};
use super::report::{self, spaced};
use super::server;
use super::tool;
use super::{Folder, Options, Places, machine};
use crate::files;

const TICK: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(2 * 3600);
/// The target has room for this share of users more.
const ROOM_PERCENT: u64 = 10;
/// Shards and threads of the target are as many, and each shard's users are with one thread: both
/// ends then wake each other least. A table of descriptors holds 20,000 here.
const USERS_PER_THREAD: u64 = 16_000;
/// What a login and a heartbeat cost both ends together on the machine of docs/benchmarks.md, and
/// the part of the processors that they may use while users come.
const LOGIN_CPU_S: f64 = 110e-6;
const LOGIN_CPU_TLS_S: f64 = 900e-6;
const HEARTBEAT_CPU_S: f64 = 45e-6;
const USED_WHILE_FILLING: f64 = 0.75;
const PACE_STEP: u64 = 100;
const PACE_MAX: u64 = 20_000;

/// A bench that is a scenario.
pub(super) struct Scene {
    name: &'static str,
    /// `throng target …`, beside its room.
    target: &'static [&'static str],
    users: u64,
    counted: Counted,
    witnesses: &'static [Witness],
    /// Variables of the scenario that depend on the number of users.
    vars: fn(&Options, u64) -> Vec<(&'static str, String)>,
    /// Costs with their maximum.
    goals: &'static [(&'static str, f64)],
}

/// What both sides count: sums of figures of the summary, and of the target's statistics.
type Witness = (&'static str, &'static [&'static str], &'static [&'static str]);

const BEATS: Witness = ("heartbeats", &["/heartbeats/sent"], &["/heartbeats"]);
const EXPECTED: Witness =
    ("deliveries expected / owed", &["/deliveries/0/expected"], &["/deliveries/owed"]);
const DELIVERED: Witness = (
    "deliveries made / written",
    &["/deliveries/0/delivered", "/deliveries/0/twice"],
    &["/deliveries/written"],
);
const LOST: Witness = (
    "deliveries lost, undetermined or foreign / lost or dropped by the target",
    &["/deliveries/0/lost", "/deliveries/0/excused", "/deliveries/0/foreign"],
    &["/deliveries/lost", "/deliveries/dropped"],
);
const ACKNOWLEDGED: Witness =
    ("pushes delivered / acknowledged", &["/deliveries/0/delivered"], &["/push/acknowledged"]);

static SCENES: [Scene; 3] = [
    Scene {
        name: "million",
        target: &["im", "--by-source"],
        users: 1_000_000,
        counted: readings::MESSENGER,
        witnesses: &[("logins", &["/connections/opened"], &["/logins"]), BEATS],
        vars: messenger,
        // A million that comes with 15,000 a second.
        goals: &[
            ("time until all users are online", 66.7),
            ("time until all users have left", 120.0),
            ("memory per user, generator", 1_200.0),
            ("memory per connection, target", 1_000.0),
            ("maximum memory of the machine", 14.0),
        ],
    },
    Scene {
        name: "chat",
        // A member of a busy room gets some messages in this time, and one write for all of them.
        target: &["chat", "--lose-every", "10000", "--batch", "400ms"],
        users: 100_000,
        counted: Counted { logged_in: "/chat/online", done: "/chat/says" },
        witnesses: &[EXPECTED, DELIVERED, LOST],
        vars: |_, users| vec![("rooms", users.div_ceil(1_000).to_string())],
        goals: &[],
    },
    Scene {
        name: "push",
        target: &["push"],
        users: 1_000_000,
        counted: Counted { logged_in: "/push/online", done: "/push/acknowledged" },
        witnesses: &[EXPECTED, DELIVERED, LOST, ACKNOWLEDGED, BEATS],
        vars: |_, _| Vec::new(),
        goals: &[],
    },
];

pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let scene = SCENES.iter().find(|scene| scene.name == options.name);
    let scene = scene.ok_or_else(|| format!("no scene `{}`", options.name))?;
    let mut text = machine::facts(options, places);
    let users = match (options.users.as_slice(), options.tls) {
        ([], true) => &[100_000],
        ([], false) => &[scene.users][..],
        (chosen, _) => chosen,
    };
    for users in users {
        text += &scene.measure(*users, options, places)?;
    }
    Ok(text)
}

impl Scene {
    /// Runs the scenario with so many users, and returns the text of the report.
    fn measure(&self, users: u64, options: &Options, places: &Places) -> Result<String, String> {
        let folder = Folder::new(&places.folder, self.name)?;
        let room = (users + users * ROOM_PERCENT / 100 + 100).to_string();
        let threads = users.div_ceil(USERS_PER_THREAD).max(2).to_string();
        let is_messenger = self.name == "million";
        let mut words = [self.target, &["--connections", &room]].concat();
        if is_messenger {
            words.extend(["--workers", &threads]);
        }
        words.extend(options.tls.then_some("--tls"));
        let before = readings::host();
        let target = server::target(&places.throng, &folder.0, &words, None)?;
        let scheme = match (is_messenger, options.tls) {
            (true, true) => "wss://",
            (true, false) => "ws://",
            _ => "",
        };
        let mut sets =
            vec![format!("target={scheme}127.0.0.1:{}", target.port), format!("users={users}")];
        if self.name == "push" {
            sets.push(format!("admin=127.0.0.1:{}", target.admin));
        }
        let vars = (self.vars)(options, users);
        sets.extend(vars.into_iter().map(|(name, value)| format!("{name}={value}")));
        sets.extend(options.sets.iter().cloned());
        let summary = folder.0.join("summary.md");
        let line = "throng run @FILE@ --shards @THREADS@ --markdown @SUMMARY@";
        let values = vec![
            ("FILE", self.scenario(options, &folder, places)?.display().to_string()),
            ("THREADS", threads),
            ("SUMMARY", summary.display().to_string()),
        ];
        let (_, mut command) = tool::command(line, &values, places)?;
        command.args(sets.iter().flat_map(|set| ["--set", set]));
        let mut watcher = Watcher::new(&target, self.counted);
        let ended = child::start(command, None, &folder.0, "scene")?.watch(TICK, LIMIT, |id| {
            let reading = watcher.read(id);
            if watcher.readings.len() % 10 == 1 {
                crate::say(&told(&reading));
            }
        })?;
        let json = serde_json::from_str(&ended.output)
            .map_err(|error| format!("throng's summary: {error}; {}", ended.complaint()))?;
        let own = fs::read_to_string(&summary).unwrap_or_default();
        let costs = Costs::new(&before, &watcher.readings, users);
        let goals = if users == self.users && !options.tls { self.goals } else { &[] };
        Ok(format!(
            "## {} users of `benches/{}.yaml`\n\n{own}\n{}{}{}\n- throng ended with {}\n\n",
            spaced(users),
            self.name,
            report::LINES,
            costs.lines(goals),
            self.witnessed(&json, &target.stats()?),
            ended.status
        ))
    }

    /// The file where it is, so that it finds its protocol; or with what TLS needs.
    fn scenario(
        &self,
        options: &Options,
        folder: &Folder,
        places: &Places,
    ) -> Result<PathBuf, String> {
        let file = places.root.join(format!("benches/{}.yaml", self.name));
        if !options.tls {
            return Ok(file);
        }
        let own = folder.0.join("scene.yaml");
        files::write(&own, files::text(&file)? + "\ntls: {verify: false}\n")?;
        Ok(own)
    }

    /// Whether both ends have counted the same.
    fn witnessed(&self, summary: &Value, stats: &Value) -> String {
        let sum = |of: &Value, places: &[&str]| -> u64 {
            places.iter().filter_map(|place| of.pointer(place)?.as_u64()).sum()
        };
        let line = |(what, ours, theirs): &Witness| {
            let (ours, theirs) = (sum(summary, ours), sum(stats, theirs));
            let seen = format!("{} / {}", spaced(ours), spaced(theirs));
            report::line(what, "the same", Some(seen), Some(ours == theirs))
        };
        self.witnesses.iter().map(line).collect()
    }
}

fn told(reading: &Reading) -> String {
    format!(
        "{:4.0} s: {} logged in; throng {}, target {}, free {}; {} events",
        reading.at.as_secs_f64(),
        reading.logged_in,
        units::format_bytes(reading.tool.resident_bytes as f64),
        units::format_bytes(reading.target.resident_bytes as f64),
        units::format_bytes(reading.host.available_bytes as f64),
        reading.done
    )
}

/// Users of a messenger: how often they send a heartbeat, and how fast they come beside that.
fn messenger(options: &Options, users: u64) -> Vec<(&'static str, String)> {
    // Two processors do not carry both ends of more than some 40,000 heartbeats a second.
    let heartbeat = Duration::from_secs(if users <= 1_000_000 { 30 } else { 120 });
    let hold = if users == 1_000_000 && !options.tls { "10m" } else { "2m" };
    let mut vars =
        vec![("heartbeat", units::write_duration(heartbeat)), ("hold", hold.to_string())];
    for (stage, name) in (1..).zip(["fill", "fill_2", "fill_3", "fill_4"]) {
        let rate = carried(users * stage / 4, heartbeat, options.tls, machine::cores());
        vars.push((name, format!("{rate}/s")));
    }
    vars
}

/// How many users may come per second when so many are there.
fn carried(there: u64, heartbeat: Duration, tls: bool, cores: usize) -> u64 {
    let beating = there as f64 / heartbeat.as_secs_f64() * HEARTBEAT_CPU_S;
    let login = if tls { LOGIN_CPU_TLS_S } else { LOGIN_CPU_S };
    let rate = (cores as f64 - beating).max(0.0) * USED_WHILE_FILLING / login;
    (rate as u64 / PACE_STEP * PACE_STEP).clamp(PACE_STEP, PACE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_come_as_the_processors_carry_them() {
        let rates = |tls, cores| {
            let heartbeat = Duration::from_secs(30);
            [1, 2, 3, 4].map(|stage| carried(250_000 * stage, heartbeat, tls, cores))
        };
        assert_eq!(rates(false, 2), [11_000, 8_500, 5_900, 3_400]);
        assert!(rates(true, 2)[0] < 1_500);
        assert_eq!(rates(false, 64), [PACE_MAX; 4]);
        let never = carried(100_000_000, Duration::from_secs(30), false, 2);
        assert_eq!(never, PACE_STEP, "never not at all");
    }

    #[test]
    fn both_ends_are_held_against_each_other() {
        let chat = SCENES.iter().find(|scene| scene.name == "chat").unwrap();
        let summary = serde_json::json!({
            "deliveries": [{"expected": 100, "delivered": 98, "lost": 1, "twice": 1}],
        });
        let stats = |written: u64| serde_json::json!({"deliveries": {"owed": 100, "written": written, "lost": 1}});
        let text = chat.witnessed(&summary, &stats(99));
        for line in [
            "| deliveries expected / owed | the same | 100 / 100 | met |",
            "| deliveries made / written | the same | 99 / 99 | met |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let text = chat.witnessed(&summary, &stats(98));
        assert!(text.contains("| the same | 99 / 98 | **not met** |"), "{text}");
    }
}
