//! `bench push`: devices that are bound to `throng target push` and get one push each, every one
//! of which has to be accounted for; and what it looks like when the service's Redis dies.

mod outage;
mod redis;
mod scenario;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::child::{self, Ended};
use super::ledger::{self, Ledger, Served};
use super::look::{self, Counted, Look, Usage, Watcher};
use super::record::{self, Phase};
use super::report::{self, Line, in_bytes, spaced};
use super::server::{self, Server};
use super::tool::{self, Tool};
use super::{Folder, machine, truth};
use redis::Redis;
use scenario::Plan;

const EXAMPLE: &str = "examples/push-service.yaml";
const PROTOCOL: &str = "examples/miop.protocol.yaml";
const ROW: &str = "pushes";
const COUNTED: Counted = Counted { logged_in: "/push/online", done: "/push/acknowledged" };

const USERS: u64 = 1_000_000;
const USERS_MAX: u64 = 5_000_000;
const REDIS_USERS: u64 = 20_000;
const RATE_MAX: u64 = 1_000_000;
const FILL_RATE: u64 = 8_000;
const PUSH_RATE: u64 = 10_000;
/// Heartbeats alone, before the push: each device has one at least.
const HOLD: Duration = Duration::from_secs(60);
const HOLD_MAX: Duration = Duration::from_secs(6 * 3600);
const TICK: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(120);

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Wish {
    command: String,
    users: u64,
    redis_users: u64,
    /// Devices a second; half of it from 60 % of them on.
    fill_rate: u64,
    /// Pushes a second.
    push_rate: u64,
    hold: Duration,
    parts: Vec<String>,
    whole: bool,
}

/// All that is known when a run is over.
struct Outcome {
    ended: Ended,
    ledger: Ledger,
    stats: Value,
    served: Served,
    /// Why throng ended with another exit code than 0; empty when it did not.
    reasons: String,
    /// What the machine looked like, and its Redis at the same time.
    looks: Vec<Seen>,
}

/// The machine and Redis at a moment.
type Seen = (Look, Mirror);

/// Redis at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Mirror {
    usage: Usage,
    /// How many it has for online; none while it is dead.
    present: Option<u64>,
}

pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let wish = parse(arguments)?;
    let (workspace, places) = super::prepare()?;
    let program = Tool::Throng.program(&places)?;
    let folder = Folder::new(&places.folder, "push")?;
    let example = folder.example(&workspace.root, EXAMPLE, PROTOCOL)?;
    let mut text = machine::shared_facts(&wish.command, &places, &workspace);
    if wish.wants("devices") {
        text.push_str(&devices(&wish, &program, &folder.0, &example)?);
    }
    if wish.wants("redis") {
        text.push_str(&outage::run(&wish, &program, &folder.0, &example)?);
    }
    super::publish(&workspace, &places, "push", &text, wish.whole)
}

impl Wish {
    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

fn parse(arguments: &[&str]) -> Result<Wish, String> {
    let mut wish = Wish {
        command: format!("cargo xtask bench push {}", arguments.join(" ")).trim_end().into(),
        users: USERS,
        redis_users: REDIS_USERS,
        fill_rate: FILL_RATE,
        push_rate: PUSH_RATE,
        hold: HOLD,
        parts: Vec::new(),
        whole: true,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let missing = || format!("{flag}: unknown, or its value is missing\n\n{}", crate::USAGE);
        let value = *rest.next().ok_or_else(missing)?;
        match *flag {
            "--users" => wish.users = super::count(flag, value, USERS_MAX)?,
            "--redis-users" => wish.redis_users = super::count(flag, value, USERS_MAX)?,
            "--fill" => wish.fill_rate = super::count(flag, value, RATE_MAX)?,
            "--push-rate" => wish.push_rate = super::count(flag, value, RATE_MAX)?,
            "--hold" => wish.hold = super::time(flag, value, HOLD_MAX)?,
            "--only" => wish.parts = super::words(flag, value, &["devices", "redis"])?,
            _ => return Err(missing()),
        }
    }
    wish.whole = (wish.users, wish.redis_users) == (USERS, REDIS_USERS)
        && wish.hold >= HOLD
        && wish.parts.is_empty();
    Ok(wish)
}

/// Starts the target with its Redis.
fn start_target(
    program: &Path,
    folder: &Path,
    users: u64,
    redis: &Redis,
    more: &[&str],
) -> Result<(Server, u16), String> {
    let room = (users + users / 10 + 100).to_string();
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let arguments = [&["push", "--connections", &room, "--redis", &url], more].concat();
    server::throng_target_everywhere(program, folder, &arguments)
}

/// Runs the plan against the target and looks at all of them; `each` is called at every look, with
/// the time since the begin.
fn carry_out(
    plan: &Plan,
    example: &str,
    program: &Path,
    folder: &Path,
    (target, admin): (&Server, u16),
    redis: &mut Redis,
    mut each: impl FnMut(Duration, &mut Redis),
) -> Result<Outcome, String> {
    let file = tool::write(folder, "push.yaml", &plan.text(example, target.port, admin)?)?;
    let mut command = Command::new(program);
    command.arg("run").arg(&file).args(["--quiet", "--json", "--out"]).arg(folder.join("record"));
    let mut watcher = Watcher::new(target, admin, COUNTED);
    let mut looks = Vec::new();
    let running = child::start(command, None, folder, "push")?;
    let ended = running.watch(TICK, plan.limit() + GRACE, |id| {
        let look = watcher.look(id);
        each(look.at, redis);
        let usage = redis.pid().map(look::usage_of).unwrap_or_default();
        looks.push((look, Mirror { usage, present: redis.present() }));
        if looks.len() % 10 == 1 {
            let (at, online) = (look.at.as_secs(), look.logged_in);
            crate::say(&format!("{at:4} s: {online} online, {} pushes acknowledged", look.done));
        }
    })?;
    let stats = truth::stats_at(admin)?;
    let summary: Value = serde_json::from_str(&ended.output)
        .map_err(|error| format!("throng's summary: {error}; {}", ended.complaint()))?;
    Ok(Outcome {
        ledger: Ledger::of(&summary, ROW)?,
        served: Served::of(&stats),
        reasons: super::reasons(&summary),
        ended,
        stats,
        looks,
    })
}

fn devices(wish: &Wish, program: &Path, folder: &Path, example: &str) -> Result<String, String> {
    let mut redis = Redis::start(folder)?;
    let (target, admin) = start_target(program, folder, wish.users, &redis, &[])?;
    let plan = Plan::devices(wish.users, wish.fill_rate, wish.push_rate, wish.hold);
    let server = (&target, admin);
    let outcome = carry_out(&plan, example, program, folder, server, &mut redis, |_, _| ())?;
    let record = folder.join("record");
    let phases = record::phases(&record, ["fill", "fill 2", "hold"])
        .map_err(|trouble| format!("{trouble}; throng ended with {}", outcome.ended.complaint()))?;
    fs::remove_dir_all(&record).map_err(|error| format!("{}: {error}", record.display()))?;
    Ok(report(wish, &outcome, &phases))
}

fn report(wish: &Wish, outcome: &Outcome, phases: &[Phase; 3]) -> String {
    let mut text = format!(
        "## The push service: {} devices\n\n`throng target push` with a Redis of its own and the \
         devices of `{EXAMPLE}` with their heartbeats (every 60 s). When all are bound and {} \
         have passed, one POST pushes to all, {} a second. CPU is in cores, from the first \
         acknowledgement to the last.\n\n| | asked | seen | |\n| --- | ---: | ---: | --- |\n",
        spaced(wish.users),
        units::write_duration(wish.hold),
        spaced(wish.push_rate),
    );
    let mut lines = outcome.population(wish.users, &phases[2]);
    lines.extend(outcome.pushes());
    lines.extend(outcome.costs(wish.users));
    text.push_str(&report::lines(&lines));
    let _ = writeln!(text, "\n{}", outcome.remarks());
    text
}

impl Outcome {
    /// A count of the push service.
    fn counted(&self, name: &str) -> Option<u64> {
        self.stats.pointer(&format!("/push/{name}")).and_then(Value::as_u64)
    }

    fn online_most(&self) -> u64 {
        self.looks.iter().map(|(look, _)| look.logged_in).max().unwrap_or(0)
    }

    /// In what the two sides do not agree; acknowledgements are the third witness.
    fn differences(&self) -> Vec<String> {
        let mut said = ledger::disagreements(&self.ledger, &self.served);
        let acknowledged = self.counted("acknowledged").unwrap_or(0);
        if acknowledged != self.ledger.delivered {
            said.push(format!("acknowledged {}", spaced(acknowledged)));
        }
        said
    }

    fn population(&self, users: u64, hold: &Phase) -> Vec<Line> {
        let online = self.online_most();
        let told =
            format!("{} / {} / {}", spaced(hold.sent), spaced(hold.answered), spaced(hold.lost));
        // While all were there; at the end devices leave, and Redis hears of it.
        let mirrored = self.looks.iter().rfind(|(look, _)| look.logged_in == online);
        let mirrored = mirrored.and_then(|(_, mirror)| mirror.present);
        vec![
            Line::new("devices bound at one time, most", spaced(users), Some(spaced(online)))
                .met(Some(online >= users)),
            Line::new("of them in Redis", spaced(online), mirrored.map(spaced))
                .met(mirrored.map(|mirrored| mirrored == online)),
            Line::new("heartbeats from then on, sent / answered / lost", "none lost", Some(told))
                .met(Some(hold.sent > 0 && hold.lost == 0)),
            Line::new("heartbeat p50 / p99 / max", "", hold.heartbeat.times()),
            Line::new("lateness of the generator p50 / p99 / max", "", hold.lateness.times()),
        ]
    }

    fn pushes(&self) -> Vec<Line> {
        let (ledger, served, differences) = (&self.ledger, &self.served, self.differences());
        let acknowledged = self.counted("acknowledged").map_or("?".to_string(), spaced);
        vec![
            Line::new(
                "pushes expected by the ledger / owed by the target",
                "",
                Some(format!("{} / {}", spaced(ledger.expected), spaced(served.owed))),
            ),
            Line::new(
                "delivered / written / acknowledged",
                "",
                Some(format!(
                    "{} / {} / {acknowledged}",
                    spaced(ledger.delivered),
                    spaced(served.written)
                )),
            ),
            Line::new(
                "lost by the ledger / by the target",
                "",
                Some(format!("{} / {}", spaced(ledger.lost), spaced(served.lost))),
            ),
            Line::new(
                "every push accounted for",
                "yes",
                Some(match differences.is_empty() {
                    true => "yes".to_string(),
                    false => differences.join("; "),
                }),
            )
            .met(Some(differences.is_empty())),
            Line::new("push p50 / p99 / max", "", ledger.times()),
        ]
    }

    /// The looks before the first acknowledgement and at the last one.
    fn pushing(&self) -> Option<(&Seen, &Seen)> {
        let last = self.looks.iter().map(|(look, _)| look.done).max().filter(|done| *done > 0)?;
        let begin = self.looks.iter().rfind(|(look, _)| look.done == 0)?;
        let end = self.looks.iter().find(|(look, _)| look.done == last)?;
        (end.0.at > begin.0.at).then_some((begin, end))
    }

    fn costs(&self, users: u64) -> Vec<Line> {
        let pushing = self.pushing();
        let time = pushing.map(|(begin, end)| (end.0.at - begin.0.at).as_secs_f64());
        let cores = |cpu: fn(&Seen) -> Duration| {
            let (begin, end) = pushing?;
            let spent = cpu(end).saturating_sub(cpu(begin)).as_secs_f64();
            Some(format!("{:.2} cores", spent / time?))
        };
        let came = self.online_most().min(users).max(1);
        let all = self.looks.iter().filter(|(look, _)| look.logged_in >= came);
        let each = |bytes: fn(&Look) -> u64| {
            let most = all.clone().map(|(look, _)| bytes(look)).max()?;
            Some(in_bytes(most as f64 / came as f64))
        };
        let redis = self.looks.iter().map(|(_, mirror)| mirror.usage.resident_bytes).max();
        vec![
            Line::new(
                "pushes acknowledged a second",
                "",
                time.zip(pushing).map(|(time, (begin, end))| {
                    spaced(((end.0.done - begin.0.done) as f64 / time) as u64)
                }),
            ),
            Line::new("CPU meanwhile, generator", "", cores(|(look, _)| look.tool.cpu)),
            Line::new("CPU meanwhile, target", "", cores(|(look, _)| look.target.cpu)),
            Line::new("CPU meanwhile, Redis", "", cores(|(_, mirror)| mirror.usage.cpu)),
            Line::new("memory per device, generator", "", each(|look| look.tool.resident_bytes)),
            Line::new("memory per connection, target", "", each(|look| look.target.resident_bytes)),
            Line::new(
                "memory of Redis, most",
                "",
                redis.map(|bytes| units::format_bytes(bytes as f64)),
            ),
        ]
    }

    fn remarks(&self) -> String {
        let mut text = format!("- throng ended with {}", self.ended.status);
        if !self.reasons.is_empty() {
            let _ = write!(text, ": {}", self.reasons);
        }
        let count = |name: &str| self.counted(name).map_or("?".to_string(), spaced);
        let _ = writeln!(
            text,
            "\n- the target counted {} binds, {} of them confirmed, {} heartbeats and {} devices \
             bound a second time",
            count("binds"),
            count("bound"),
            count("heartbeats"),
            count("kicked"),
        );
        text
    }
}

#[cfg(test)]
mod tests;
