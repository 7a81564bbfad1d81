//! Benches that are scenarios: users of a file below `benches/` at a reference target beside them,
//! both on all cores. The file has the thresholds; here is what both ends cost meanwhile, and
//! whether what throng counted is what the target counted.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::child::{self, Ended};
use super::contest::{self, Entrant, Sample};
use super::costs::{Asked, Costs};
use super::look::{self, Counted, Host, Look, Watcher};
use super::report::{self, Gate, Line, spaced};
use super::server::{self, Redis};
use super::tool::{self, Places, Tool};
use super::{Folder, Options, machine, throng};

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
/// Between two heartbeats of a user for each user there is: 33,333 heartbeats a second of all.
const EVERY: Duration = Duration::from_micros(30);
/// From so many users on one round has to do: it takes minutes.
const USERS_ONCE: u64 = 500_000;
/// CPU of the generator as a multiple of another throng's.
const RATIO_MAX: f64 = 0.65;

/// A bench that is a scenario.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    /// `throng target …`, beside its room.
    target: &'static [&'static str],
    has_redis: bool,
    users: &'static [u64],
    /// What the target counts of what the bench is about.
    unit: &'static str,
    counted: Counted,
    witnesses: &'static [Witness],
    /// Variables of the scenario that depend on the number of users.
    vars: fn(&Options, u64) -> Vec<(&'static str, String)>,
    asked: &'static [Asked],
    /// The arguments of runs that are published, but for `--against`.
    pub(super) published: &'static [&'static str],
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

const MILLION: Scene = Scene {
    name: "million",
    file: "benches/million.yaml",
    target: &["im", "--by-source"],
    has_redis: false,
    users: &[1_000_000],
    unit: "heartbeat",
    counted: look::MESSENGER,
    witnesses: &[("logins", &["/connections/opened"], &["/logins"]), BEATS],
    vars: messenger,
    // A million that comes with 15,000 a second.
    asked: &[
        ("time until all users are online", 66.7),
        ("time until all users have left", 120.0),
        ("memory per user, generator", 1_200.0),
        ("memory per connection, target", 1_000.0),
        ("maximum memory of the machine", 14.0),
    ],
    published: &["", "--tls"],
};

pub(super) const SCENES: [Scene; 4] = [
    MILLION,
    Scene {
        name: "heartbeat",
        users: &[50_000, 1_000_000],
        asked: &[],
        published: &[""],
        ..MILLION
    },
    Scene {
        name: "chat",
        file: "benches/chat.yaml",
        // A member of a busy room gets some messages in this time, and one write for all of them.
        target: &["chat", "--lose-every", "10000", "--batch", "400ms"],
        has_redis: false,
        users: &[100_000],
        unit: "message",
        counted: Counted { logged_in: "/chat/online", done: "/chat/says" },
        witnesses: &[EXPECTED, DELIVERED, LOST],
        vars: |_, users| vec![("rooms", users.div_ceil(1_000).to_string())],
        asked: &[],
        published: &[""],
    },
    Scene {
        name: "push",
        file: "benches/push.yaml",
        target: &["push"],
        has_redis: true,
        users: &[1_000_000],
        unit: "acknowledgement",
        counted: Counted { logged_in: "/push/online", done: "/push/acknowledged" },
        witnesses: &[EXPECTED, DELIVERED, LOST, ACKNOWLEDGED, BEATS],
        vars: |_, _| Vec::new(),
        asked: &[],
        published: &[""],
    },
];

/// What a run has shown.
struct Outcome {
    before: Host,
    looks: Vec<Look>,
    ended: Ended,
    summary: Value,
    stats: Value,
    /// The most that were in its set of those who are online.
    in_redis: Option<u64>,
}

pub(super) fn run(scene: &Scene, options: &Options, places: &Places) -> Result<String, String> {
    let mut text = machine::facts(options, places);
    let users = match (options.users.as_slice(), options.tls) {
        ([], true) => &[100_000],
        ([], false) if options.quick => &scene.users[..1],
        ([], false) => scene.users,
        (chosen, _) => chosen,
    };
    for users in users {
        text.push_str(&scene.hold(*users, options, places)?);
    }
    Ok(text)
}

impl Scene {
    pub(super) fn find(name: &str) -> Option<&'static Scene> {
        const ALL: &[Scene] = &SCENES;
        ALL.iter().find(|scene| scene.name == name)
    }

    /// All rounds with so many users, of this throng and of another one in turns.
    fn hold(&self, users: u64, options: &Options, places: &Places) -> Result<String, String> {
        let outcomes = RefCell::new(Vec::new());
        let program = Tool::Throng.program(places)?;
        let measure = |generator: &Path, is_own: bool| {
            let outcome = self.measure(generator, &program, users, options, places)?;
            let sample = outcome.sample(users)?;
            if is_own {
                outcomes.borrow_mut().push(outcome);
            }
            Ok(sample)
        };
        let entrants: Vec<Entrant<'_>> = options
            .throngs(&program)
            .into_iter()
            .map(|(name, generator)| {
                let (measure, is_own) = (&measure, name == super::OWN);
                Entrant { name, run: Box::new(move |_| measure(&generator, is_own)) }
            })
            .collect();
        let rounds = if users < USERS_ONCE { options.rounds } else { 1 };
        let title = format!("{} users of `{}`", spaced(users), self.file);
        let rows = contest::hold(&title, rounds, &entrants);
        drop(entrants);
        if let ([], Some(trouble)) = (&outcomes.borrow()[..], rows[0].trouble.clone()) {
            return Err(trouble);
        }
        let base = rows.last().map_or(super::OWN, |row| row.name.as_str());
        let mut text = report::table(&title, self.unit, &rows, base);
        if let Some(outcome) = outcomes.borrow().last() {
            text.push_str(&self.report(outcome, users, options));
        }
        let cost = options.against.is_some().then(|| Gate {
            threshold: format!(
                "{title}: CPU per {} at most {RATIO_MAX} x that of {base}",
                self.unit
            ),
            measured: contest::ratio(&rows, super::OWN, base).map(|ratio| ratio.median),
            max: RATIO_MAX,
            unit: "x",
        });
        text.push_str(&report::thresholds(&Vec::from_iter(cost)));
        Ok(text)
    }

    /// The target is of this throng always: what differs is the generator.
    fn measure(
        &self,
        generator: &Path,
        program: &Path,
        users: u64,
        options: &Options,
        places: &Places,
    ) -> Result<Outcome, String> {
        let folder = Folder::new(&places.folder, self.name)?;
        let redis = self.has_redis.then(|| Redis::start(&folder.0)).transpose()?;
        let room = (users + users * ROOM_PERCENT / 100 + 100).to_string();
        let threads = users.div_ceil(USERS_PER_THREAD).max(2).to_string();
        let url = redis.as_ref().map(Redis::url);
        let mut words = [self.target, &["--connections", &room]].concat();
        words.extend(url.iter().flat_map(|url| ["--redis", url]));
        if self.counted.logged_in == look::MESSENGER.logged_in {
            words.extend(["--workers", &threads]);
        }
        words.extend(options.tls.then_some("--tls"));
        let before = look::host();
        let (target, admin) = server::throng_target_everywhere(program, &folder.0, &words)?;
        let mut command = Command::new(generator);
        command.arg("run").arg(self.scenario(options, &folder, places)?);
        command.args(["--quiet", "--json", "--no-record", "--shards", &threads]);
        let scheme = match (self.counted.logged_in == look::MESSENGER.logged_in, options.tls) {
            (true, true) => "wss://",
            (true, false) => "ws://",
            _ => "",
        };
        command.arg("--set").arg(format!("target={scheme}127.0.0.1:{}", target.port));
        command.arg("--set").arg(format!("users={users}"));
        if self.has_redis {
            command.arg("--set").arg(format!("admin=127.0.0.1:{admin}"));
        }
        for (name, value) in (self.vars)(options, users) {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        for set in &options.sets {
            command.args(["--set", set]);
        }
        if generator == program {
            command.args(&options.more);
        }
        let mut watcher = Watcher::new(&target, admin, self.counted);
        let mut in_redis = None;
        let running = child::start(command, None, &folder.0, "scene")?;
        let ended = running.watch(TICK, LIMIT, |id| {
            let look = watcher.look(id);
            in_redis = in_redis.max(redis.as_ref().and_then(Redis::present));
            if watcher.looks.len() % 10 == 1 {
                crate::say(&told(&look, self.unit));
            }
        })?;
        let summary = serde_json::from_str(&ended.output)
            .map_err(|error| format!("throng's summary: {error}; {}", ended.complaint()))?;
        let stats = server::stats(admin)?;
        Ok(Outcome { before, looks: watcher.looks, ended, summary, stats, in_redis })
    }

    /// The file as it lies there, so that it finds its protocol; or with what TLS needs.
    fn scenario(
        &self,
        options: &Options,
        folder: &Folder,
        places: &Places,
    ) -> Result<std::path::PathBuf, String> {
        let file = places.root.join(self.file);
        if !options.tls {
            return Ok(file);
        }
        let text = fs::read_to_string(&file).map_err(|it| format!("{}: {it}", file.display()))?;
        tool::write(&folder.0, "scene.yaml", &format!("{text}\ntls: {{verify: false}}\n"))
    }

    fn report(&self, outcome: &Outcome, users: u64, options: &Options) -> String {
        let summary = &outcome.summary;
        let mut text = throng::figures(summary);
        text.push_str("| | goal | measured | |\n| --- | ---: | ---: | --- |\n");
        let is_judged = users == self.users[0] && !options.tls;
        let asked = if is_judged { self.asked } else { &[] };
        let costs = Costs::new(&outcome.before, &outcome.looks, users);
        text.push_str(&report::lines(&costs.lines(asked)));
        let sum = |of: &Value, places: &[&str]| -> u64 {
            places.iter().filter_map(|place| of.pointer(place)?.as_u64()).sum()
        };
        let witnesses = self.witnesses.iter().map(|(what, ours, theirs)| {
            let (ours, theirs) = (sum(summary, ours), sum(&outcome.stats, theirs));
            let seen = format!("{} / {}", spaced(ours), spaced(theirs));
            Line::new(what, "the same", Some(seen)).met(Some(ours == theirs))
        });
        text.push_str(&report::lines(&Vec::from_iter(witnesses)));
        if let Some(present) = outcome.in_redis {
            let line = Line::new("most users in Redis", spaced(users), Some(spaced(present)));
            text.push_str(&report::lines(&[line.met(Some(present >= users))]));
        }
        let _ = writeln!(text, "\n- throng ended with {}", outcome.ended.status);
        for reason in throng::reasons(summary) {
            let _ = writeln!(text, "- {reason}");
        }
        text.push('\n');
        text
    }
}

impl Outcome {
    fn sample(&self, users: u64) -> Result<Sample, String> {
        let working = Costs::new(&self.before, &self.looks, users).working();
        let (from, to) = working.ok_or_else(|| {
            let reasons = throng::reasons(&self.summary).join("; ");
            format!(
                "not all users stayed online; throng ended with {}: {reasons}",
                self.ended.status
            )
        })?;
        Ok(Sample {
            ok: to.done - from.done,
            failed: self.summary.pointer("/total/failed").and_then(Value::as_u64).unwrap_or(0),
            cpu: to.tool.cpu.saturating_sub(from.tool.cpu),
            seconds: (to.at - from.at).as_secs_f64(),
            ..Sample::default()
        })
    }
}

fn told(look: &Look, unit: &str) -> String {
    format!(
        "{:4.0} s: {} logged in; throng {}, target {}, free {}; {} {unit}s",
        look.at.as_secs_f64(),
        look.logged_in,
        units::format_bytes(look.tool.resident_bytes as f64),
        units::format_bytes(look.target.resident_bytes as f64),
        units::format_bytes(look.host.available_bytes as f64),
        look.done
    )
}

/// Users of a messenger: how often they beat, and how fast they come beside that.
fn messenger(options: &Options, users: u64) -> Vec<(&'static str, String)> {
    let beats = options.is("heartbeat");
    let heartbeat = match users {
        _ if beats => EVERY * u32::try_from(users).unwrap_or(u32::MAX),
        0..=1_000_000 => Duration::from_secs(30),
        // Two processors do not carry both ends of more than some 40,000 heartbeats a second.
        _ => Duration::from_secs(120),
    };
    let hold = match users {
        _ if beats => Duration::from_secs(if options.quick { 10 } else { 20 }).max(heartbeat * 3),
        1_000_000 if !options.tls => Duration::from_secs(600),
        _ => Duration::from_secs(120),
    };
    let settle = Duration::from_secs(if beats { 5 } else { 20 }).max(heartbeat);
    let settle = if beats { settle } else { Duration::from_secs(20) };
    let lost_after = heartbeat.min(Duration::from_secs(10));
    let time = |time: Duration| units::write_duration(time);
    let mut vars = vec![
        ("heartbeat", time(heartbeat)),
        ("hold", time(hold)),
        ("settle", time(settle)),
        ("lost_after", time(lost_after)),
    ];
    if beats {
        // What is judged is the CPU; of so many users also the time.
        vars.push(("p99", (if users < 1_000_000 { "1s" } else { "20ms" }).to_string()));
    }
    for (stage, name) in (1..).zip(["fill", "fill_2", "fill_3", "fill_4"]) {
        let rate = carried(users * stage / 4, heartbeat, options.tls, machine::cores());
        vars.push((name, format!("{rate}/s")));
    }
    vars
}

/// How many users may come a second when so many are there.
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
        let chat = Scene::find("chat").unwrap();
        let options = super::super::parse(&[], "chat").unwrap();
        let outcome = |written: u64| Outcome {
            before: Host::default(),
            looks: Vec::new(),
            ended: Ended {
                status: Command::new("true").status().unwrap(),
                cpu: Duration::ZERO,
                output: String::new(),
                errors: String::new(),
            },
            summary: serde_json::json!({
                "deliveries": [{"expected": 100, "delivered": 98, "lost": 1, "twice": 1}],
                "outcome": {"reasons": ["it was late"]},
            }),
            stats: serde_json::json!({"deliveries": {"owed": 100, "written": written, "lost": 1}}),
            in_redis: None,
        };
        let text = chat.report(&outcome(99), 100_000, &options);
        for line in [
            "| maximum number of users logged in | 100 000 | 0 | **not met** |",
            "| deliveries expected / owed | the same | 100 / 100 | met |",
            "| deliveries made / written | the same | 99 / 99 | met |",
            "- throng ended with exit status: 0\n- it was late\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let text = chat.report(&outcome(98), 100_000, &options);
        assert!(text.contains("| the same | 99 / 98 | **not met** |"), "{text}");
        assert!(outcome(99).sample(100_000).is_err());
    }

    #[test]
    fn heartbeats_are_as_many_whatever_the_users() {
        let options = super::super::parse(&[], "heartbeat").unwrap();
        let var = |users, name| {
            let vars = messenger(&options, users);
            vars.into_iter().find(|(known, _)| *known == name).unwrap().1
        };
        assert_eq!((var(50_000, "heartbeat"), var(1_000_000, "heartbeat")), {
            ("1500ms".to_string(), "30s".to_string())
        });
        assert_eq!((var(50_000, "lost_after"), var(50_000, "settle")), {
            ("1500ms".to_string(), "5s".to_string())
        });
        assert_eq!((var(50_000, "hold"), var(1_000_000, "hold")), {
            ("20s".to_string(), "90s".to_string())
        });
    }
}
