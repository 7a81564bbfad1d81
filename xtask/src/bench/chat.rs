//! `bench chat`: users in rooms who talk at a rate, and `throng target chat` that fans out and is
//! told to lose deliveries; what the ledger says of them beside what the target counted, and the
//! rate that this machine carries.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::child::{self, Ended};
use super::ledger::{self, Ledger, Served};
use super::look::{Counted, Look, Watcher};
use super::report::{self, Line, in_bytes, spaced};
use super::tool::{self, Tool};
use super::{Folder, machine, server, truth};

const EXAMPLE: &str = "examples/chat-room.yaml";
const PROTOCOL: &str = "examples/chat.protocol.yaml";
const ROW: &str = "room talk";
const COUNTED: Counted = Counted { logged_in: "/chat/online", done: "/chat/says" };

const USERS: u64 = 100_000;
const USERS_MAX: u64 = 2_000_000;
const RATE: u64 = 2_000;
const RATE_MAX: u64 = 1_000_000;
/// Slower than this is nothing to look for.
const RATE_MIN: u64 = 10;
const ROOM: u64 = 1_000;
const LOSE_EVERY: u64 = 10_000;
/// A member of a busy room gets some messages in this time, and one write for all of them.
const BATCH: &str = "400ms";
const FILL_RATE: u64 = 5_000;
const TALK: Duration = Duration::from_secs(30);
const TALK_MAX: Duration = Duration::from_secs(3600);
/// How often a lower rate is tried.
const ATTEMPTS_MAX: usize = 8;
/// A rate is carried when so much of it is said …
const SAID_PERCENT_MIN: u64 = 95;
/// … and 99 % of all deliveries come within this.
const P99_MAX: Duration = Duration::from_secs(1);
const LOST_AFTER: Duration = Duration::from_secs(10);
/// Longer than a message needs to be lost: who leaves before that is excused.
const SETTLE: Duration = Duration::from_secs(20);
/// All are there and say nothing, for a look at what that takes.
const SILENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(120);

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Wish {
    command: String,
    users: u64,
    /// Messages a second, of all users together; the first that is tried.
    rate: u64,
    room: u64,
    fill_rate: u64,
    talk: Duration,
    lose_every: u64,
    /// How long the target gathers deliveries, as it is told; at once without.
    batch: Option<String>,
    whole: bool,
}

/// What came of one rate.
struct Attempt {
    rate: u64,
    ledger: Ledger,
    served: Served,
    looks: Vec<Look>,
    /// Why throng itself does not stand by it; empty when it does.
    reasons: String,
    differences: Vec<String>,
}

pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let wish = parse(arguments)?;
    let (workspace, places) = super::prepare()?;
    let program = Tool::Throng.program(&places)?;
    let folder = Folder::new(&places.folder, "chat")?;
    let example = folder.example(&workspace.root, EXAMPLE, PROTOCOL)?;
    let mut text = machine::shared_facts(&wish.command, &places, &workspace);
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut rate = wish.rate;
    while attempts.len() < ATTEMPTS_MAX && rate >= RATE_MIN {
        let attempt = attempt(&wish, rate, &program, &folder.0, &example)?;
        let (carried, next) = (attempt.is_carried(&wish), attempt.next_rate());
        attempts.push(attempt);
        if carried {
            break;
        }
        rate = next;
    }
    text.push_str(&report(&wish, &attempts));
    super::publish(&workspace, &places, "chat", &text, wish.whole)
}

fn parse(arguments: &[&str]) -> Result<Wish, String> {
    let mut wish = Wish {
        command: format!("cargo xtask bench chat {}", arguments.join(" ")).trim_end().into(),
        users: USERS,
        rate: RATE,
        room: ROOM,
        fill_rate: FILL_RATE,
        talk: TALK,
        lose_every: LOSE_EVERY,
        batch: Some(BATCH.to_string()),
        whole: true,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let missing = || format!("{flag}: unknown, or its value is missing\n\n{}", crate::USAGE);
        let value = *rest.next().ok_or_else(missing)?;
        match *flag {
            "--users" => wish.users = super::count(flag, value, USERS_MAX)?,
            "--rate" => wish.rate = super::count(flag, value, RATE_MAX)?,
            "--room" => wish.room = super::count(flag, value, USERS_MAX)?,
            "--fill" => wish.fill_rate = super::count(flag, value, USERS_MAX)?,
            "--lose-every" => wish.lose_every = super::count(flag, value, u64::MAX)?,
            "--talk" => wish.talk = super::time(flag, value, TALK_MAX)?,
            "--batch" => wish.batch = (value != "none").then(|| value.to_string()),
            _ => return Err(missing()),
        }
    }
    // How the target gathers, how fast users come and for how long they talk is for who measures
    // to find out.
    wish.whole = (wish.users, wish.rate, wish.room) == (USERS, RATE, ROOM);
    Ok(wish)
}

impl Wish {
    fn rooms(&self) -> u64 {
        self.users.div_ceil(self.room)
    }

    fn fill(&self) -> Duration {
        Duration::from_secs(self.users.div_ceil(self.fill_rate))
    }
}

/// The users of the example, spread over rooms. They wait for each other, then they say something
/// at this rate together for as long as they are to talk, and stay.
fn scenario_of(example: &str, wish: &Wish, rate: u64, port: u16) -> Result<String, String> {
    let part = |begin: &str| {
        let line = example.lines().find_map(|line| Some(&line[line.find(begin)?..]));
        line.ok_or_else(|| format!("{EXAMPLE} has no `{begin}`"))
    };
    let room = format!("${{user.id % {}}}", wish.rooms());
    let placed = |text: &str| text.replace("${vars.room}", &room);
    let join = placed(part("request: {join:")?);
    let say = part("{request: {say:")?;
    let say = say.split_once("}]}").map_or(say, |(say, _)| say);
    let talk = placed(part("room talk: {")?);
    let talk = talk.trim_end().strip_suffix('}').ok_or_else(|| format!("not a map: {talk}"))?;
    let (users, fill) = (wish.users, wish.fill());
    // Each user's share of the rate, as the time between two of its messages.
    let each = Duration::from_secs_f64(users as f64 / rate as f64);
    let seconds = |time: Duration| format!("{}ms", time.as_millis());
    Ok(format!(
        "name: chat\ntarget: {{addresses: [\"127.0.0.1:{port}\"]}}\n\
         protocol: chat.protocol.yaml\nsource: {{addresses: 127.1.0.0/16}}\n\
         sessions:\n  viewer:\n    steps:\n      \
         - connect:\n        timeout: 15s\n        retry: {{times: forever, wait: 1s..10s}}\n      \
         - {join}\n        check: {{code: 0}}\n      \
         - {{rendezvous: all are in, users: {users}, timeout: {}}}\n      \
         - stay: {}\n      - stay: {}\n        every:\n          - {{time: {}, do: [{say}}}]}}\n      \
         - stay: forever\n\
         deliveries:\n  {talk}, lost_after: {}}}\n\
         load:\n  - {{name: fill, users: {{to: {users}, rate: {}/s}}}}\n  \
         - {{name: talk, for: {}}}\n  - {{name: settle, for: {}}}\n  \
         - {{name: drain, users: {{to: 0, rate: {}/s}}}}\n",
        seconds(fill * 2 + GRACE),
        seconds(SILENCE),
        seconds(wish.talk),
        seconds(each),
        seconds(LOST_AFTER),
        wish.fill_rate,
        seconds(SILENCE + wish.talk + SETTLE / 2),
        seconds(SETTLE),
        wish.fill_rate,
    ))
}

/// Runs target and generator beside each other and looks at both.
fn attempt(
    wish: &Wish,
    rate: u64,
    program: &Path,
    folder: &Path,
    example: &str,
) -> Result<Attempt, String> {
    let room = (wish.users + wish.users / 10 + 100).to_string();
    let lose_every = wish.lose_every.to_string();
    let mut arguments = vec!["chat", "--connections", &room, "--lose-every", &lose_every];
    if let Some(batch) = &wish.batch {
        arguments.extend(["--batch", batch]);
    }
    let (target, admin) = server::throng_target_everywhere(program, folder, &arguments)?;
    let text = scenario_of(example, wish, rate, target.port)?;
    let file = tool::write(folder, "chat.yaml", &text)?;
    let mut command = Command::new(program);
    command.arg("run").arg(&file).args(["--quiet", "--json", "--no-record"]);
    let mut watcher = Watcher::new(&target, admin, COUNTED);
    let limit = wish.fill() * 4 + wish.talk + SETTLE * 2 + GRACE * 2;
    let running = child::start(command, None, folder, "chat")?;
    let ended = running.watch(TICK, limit, |id| {
        let look = watcher.look(id);
        if watcher.looks.len() % 10 == 1 {
            let (at, in_rooms) = (look.at.as_secs(), look.logged_in);
            crate::say(&format!("{at:4} s: {in_rooms} in rooms, {} messages said", look.done));
        }
    })?;
    let stats = truth::stats_at(admin)?;
    let attempt = Attempt::new(rate, &ended, &stats, watcher.looks)?;
    crate::say(&attempt.row(wish));
    Ok(attempt)
}

impl Attempt {
    fn new(rate: u64, ended: &Ended, stats: &Value, looks: Vec<Look>) -> Result<Attempt, String> {
        let summary: Value = serde_json::from_str(&ended.output)
            .map_err(|error| format!("throng's summary: {error}; {}", ended.complaint()))?;
        let (ledger, served) = (Ledger::of(&summary, ROW)?, Served::of(stats));
        let differences = ledger::disagreements(&ledger, &served);
        let reasons = super::reasons(&summary);
        Ok(Attempt { rate, ledger, served, looks, reasons, differences })
    }

    fn said_per_s(&self, wish: &Wish) -> f64 {
        self.ledger.sent as f64 / wish.talk.as_secs_f64()
    }

    fn delivered_per_s(&self, wish: &Wish) -> f64 {
        self.ledger.delivered as f64 / wish.talk.as_secs_f64()
    }

    fn is_carried(&self, wish: &Wish) -> bool {
        let said = self.said_per_s(wish) * 100.0 >= (self.rate * SAID_PERCENT_MIN) as f64;
        let p99 = self.ledger.p99_ns.is_some_and(|ns| Duration::from_nanos(ns) <= P99_MAX);
        said && p99 && self.differences.is_empty() && self.served.dropped == 0
    }

    /// The looks before the first message and at the last one.
    fn talk(&self) -> Option<(&Look, &Look)> {
        let last = self.looks.iter().map(|look| look.done).max().filter(|said| *said > 0)?;
        let begin = self.looks.iter().rfind(|look| look.done == 0)?;
        let end = self.looks.iter().find(|look| look.done == last)?;
        (end.at > begin.at).then_some((begin, end))
    }

    /// A rate that is lower, and no more than the target was told in the time that it took: who is
    /// overloaded goes on talking for long.
    fn next_rate(&self) -> u64 {
        let told = self.talk().map_or(self.rate, |(begin, end)| {
            (end.done as f64 / (end.at - begin.at).as_secs_f64()) as u64
        });
        (self.rate * 7 / 10).min(told.max(self.rate / 4))
    }

    /// Cores used while users talked.
    fn cores(&self, cpu: fn(&Look) -> Duration) -> Option<f64> {
        let (begin, end) = self.talk()?;
        let spent = cpu(end).saturating_sub(cpu(begin)).as_secs_f64();
        Some(spent / (end.at - begin.at).as_secs_f64())
    }

    fn row(&self, wish: &Wish) -> String {
        let cores = |cores: Option<f64>| cores.map_or("–".into(), |cores| format!("{cores:.2}"));
        let agree = if self.differences.is_empty() { "yes" } else { "no" };
        format!(
            "| {} | {:.0} | {} | {} | {} | {} / {} | {agree} | {} | {} | {} | {} |",
            spaced(self.rate),
            self.said_per_s(wish),
            spaced(self.delivered_per_s(wish) as u64),
            spaced(self.ledger.expected),
            spaced(self.ledger.delivered),
            spaced(self.ledger.lost),
            spaced(self.served.lost),
            self.ledger.times().unwrap_or_default(),
            cores(self.cores(|look| look.tool.cpu)),
            cores(self.cores(|look| look.target.cpu)),
            match (self.is_carried(wish), self.reasons.is_empty()) {
                (true, true) => "yes".to_string(),
                (true, false) => format!("yes; throng says: {}", self.reasons.replace('|', "/")),
                (false, _) => "no".to_string(),
            }
        )
    }

    /// The most that a process had while all were there, before anybody talked or at any time.
    fn memory(&self, users: u64, silent: bool, bytes: fn(&Look) -> u64) -> Option<String> {
        let all = self.looks.iter().filter(|look| look.logged_in >= users);
        let most = all.filter(|look| !silent || look.done == 0).map(bytes).max()?;
        Some(in_bytes(most as f64 / users as f64))
    }
}

fn report(wish: &Wish, attempts: &[Attempt]) -> String {
    let batch = wish.batch.as_ref().map_or(String::new(), |batch| format!(" --batch {batch}"));
    let mut text = format!(
        "## The chat room: {} users in rooms of {}\n\n`throng target chat --lose-every {}{batch}` \
         and the users of `{EXAMPLE}`: all join and wait for each other, then they talk for {} and \
         listen for {} more. A rate is carried when {SAID_PERCENT_MIN} % of it is said, ledger and \
         target agree to the last delivery, nothing is dropped, and the p99 of deliveries is at \
         most {} s. Latency is from the sender's stamp to each receiver; CPU is in cores while \
         they talk.\n\n\
         | messages/s | said/s | deliveries/s | expected | delivered | lost: ledger / target | \
         agree | p50 / p99 / max | generator | target | carried |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- |\n",
        spaced(wish.users),
        spaced(wish.room),
        wish.lose_every,
        units::write_duration(wish.talk),
        units::write_duration(SETTLE),
        P99_MAX.as_secs(),
    );
    for attempt in attempts {
        let _ = writeln!(text, "{}", attempt.row(wish));
    }
    text.push('\n');
    for attempt in attempts.iter().filter(|attempt| !attempt.differences.is_empty()) {
        let (rate, said) = (spaced(attempt.rate), attempt.differences.join("; "));
        let _ = writeln!(text, "- at {rate}/s the ledger has {said}\n");
    }
    text.push_str("| | asked | seen | |\n| --- | ---: | ---: | --- |\n");
    let carried = attempts.iter().find(|attempt| attempt.is_carried(wish));
    let shown = carried.or(attempts.last());
    let users = wish.users;
    let memory = |silent, bytes| shown.and_then(|shown| shown.memory(users, silent, bytes));
    let deliveries = carried.map(|carried| spaced(carried.delivered_per_s(wish) as u64));
    text.push_str(&report::lines(&[
        Line::new(
            "messages/s carried",
            spaced(wish.rate),
            carried.map(|carried| spaced(carried.rate)),
        )
        .met(Some(carried.is_some_and(|carried| carried.rate >= wish.rate))),
        Line::new("deliveries/s carried", spaced(wish.rate * wish.room.min(users)), deliveries),
        Line::new(
            "lost, by ledger and by target",
            "the same",
            shown.map(|one| format!("{} and {}", spaced(one.ledger.lost), spaced(one.served.lost))),
        )
        .met(shown.map(|shown| shown.ledger.lost == shown.served.lost)),
        Line::new("memory per user, silent", "", memory(true, |look| look.tool.resident_bytes)),
        Line::new("memory per user, most", "", memory(false, |look| look.tool.resident_bytes)),
        Line::new(
            "memory per connection, target, most",
            "",
            memory(false, |look| look.target.resident_bytes),
        ),
    ]));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
