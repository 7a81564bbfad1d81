//! `bench million`: as many scripted WebSocket users as are asked for, and the server they are
//! connected to, on this machine; what both cost, and what some of them cost other tools.

mod peers;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::look::{Host, Look};
use super::population::{
    Change, EXAMPLE, Ends, HEARTBEAT_CPU_S, LOGIN_CPU_S, LOGIN_CPU_TLS_S, Outcome, Pace,
    USED_WHILE_FILLING,
};
use super::report::{self, Line, in_bytes, spaced};
use super::tool::Tool;
use super::{Folder, child, machine};
use peers::Peer;

const USERS: u64 = 1_000_000;
const USERS_TLS: u64 = 100_000;
const USERS_MAX: u64 = 10_000_000;
const PEER_USERS: u64 = 10_000;
const HOLD: Duration = Duration::from_secs(600);
/// Of more users, or of fewer with TLS.
const HOLD_OTHER: Duration = Duration::from_secs(120);
const HOLD_MAX: Duration = Duration::from_secs(6 * 3600);
/// As the example has it; and of more than a million users, as two processors do not carry both
/// ends of more than some 40,000 heartbeats a second.
const HEARTBEAT: Duration = Duration::from_secs(30);
const HEARTBEAT_OF_MORE: Duration = Duration::from_secs(120);
/// Between coming and holding.
const SETTLE: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(120);

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Wish {
    command: String,
    users: u64,
    hold: Duration,
    /// Users a second; as this machine carries them if left out.
    rate: Option<u64>,
    heartbeat: Duration,
    tls: bool,
    /// Instead of the example: one that has the same places to be changed.
    scenario: Option<PathBuf>,
    /// Goes on on a host that cannot carry it.
    force: bool,
    peer_users: u64,
    parts: Vec<String>,
    tools: Vec<String>,
    /// One of the runs that are published: nothing but the number of users was chosen.
    whole: bool,
}

pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let wish = parse(arguments)?;
    let (workspace, places) = super::prepare()?;
    let program = Tool::Throng.program(&places)?;
    let folder = Folder::new(&places.folder, "million")?;
    let file = wish.scenario.clone().unwrap_or_else(|| workspace.root.join(EXAMPLE));
    let example = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut text = machine::shared_facts(&wish.command, &places, &workspace);
    // First, as a host is busy for a while with what a million connections leave behind.
    let beside = (wish.wants("peers") && !wish.tls).then(|| {
        let (users, tools) = (wish.peer_users, wish.tools.as_slice());
        peers::run(users, tools, &places, &workspace, &example, &folder.0)
    });
    if wish.wants("run") {
        let (outcome, doctor) = populate(&wish, &program, &folder.0, &example)?;
        text.push_str(&report(&wish, &outcome, &doctor));
    }
    text.push_str(&beside.unwrap_or_default());
    super::publish(&workspace, &places, &wish.section(), &text, wish.whole)
}

impl Wish {
    fn wants(&self, part: &str) -> bool {
        match self.parts.as_slice() {
            [] => part == "run" || self.users == USERS,
            parts => parts.iter().any(|wanted| wanted == part),
        }
    }

    /// The name of the section in the document: runs of other numbers stand beside each other.
    fn section(&self) -> String {
        match (self.tls, self.users) {
            (false, USERS) => "million".to_string(),
            (tls, users) => format!("million-{users}{}", if tls { "-tls" } else { "" }),
        }
    }
}

fn parse(arguments: &[&str]) -> Result<Wish, String> {
    let tls = arguments.contains(&"--tls");
    let mut wish = Wish {
        command: format!("cargo xtask bench million {}", arguments.join(" ")).trim_end().into(),
        users: if tls { USERS_TLS } else { USERS },
        hold: Duration::ZERO,
        rate: None,
        heartbeat: Duration::ZERO,
        tls,
        scenario: None,
        force: false,
        peer_users: PEER_USERS,
        parts: Vec::new(),
        tools: Vec::new(),
        whole: true,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        match *flag {
            "--tls" => continue,
            "--force" => {
                wish.force = true;
                continue;
            }
            _ => {}
        }
        let missing = || format!("{flag}: unknown, or its value is missing\n\n{}", crate::USAGE);
        let value = *rest.next().ok_or_else(missing)?;
        wish.whole &= *flag == "--users";
        match *flag {
            "--users" => wish.users = super::count(flag, value, USERS_MAX)?,
            "--rate" => wish.rate = Some(super::count(flag, value, USERS_MAX)?),
            "--peer-users" => wish.peer_users = super::count(flag, value, USERS_MAX)?,
            "--heartbeat" => wish.heartbeat = super::time(flag, value, HOLD_MAX)?,
            "--hold" => wish.hold = super::time(flag, value, HOLD_MAX)?,
            "--scenario" => wish.scenario = Some(PathBuf::from(value)),
            "--only" => wish.parts = super::words(flag, value, &["run", "peers"])?,
            "--tools" => {
                wish.tools = super::words(flag, value, &Peer::ALL.map(Peer::word))?;
            }
            _ => return Err(missing()),
        }
    }
    let published = [(USERS, false), (2 * USERS, false), (USERS_TLS, true)];
    wish.whole &= published.contains(&(wish.users, tls)) && !wish.force;
    if wish.heartbeat.is_zero() {
        wish.heartbeat = if wish.users <= USERS { HEARTBEAT } else { HEARTBEAT_OF_MORE };
    }
    if wish.hold.is_zero() {
        wish.hold = if wish.users == USERS && !tls { HOLD } else { HOLD_OTHER };
    }
    Ok(wish)
}

/// Runs target and generator beside each other; with what the doctor says of it.
fn populate(
    wish: &Wish,
    program: &Path,
    folder: &Path,
    example: &str,
) -> Result<(Outcome, String), String> {
    let Wish { tls, users, rate, hold, heartbeat, .. } = *wish;
    let carried = Pace::Carried { cores: machine::cores(), settle: SETTLE };
    let pace = rate.map_or(carried, Pace::Even);
    let change = Change { tls, port: 0, users, pace, hold, heartbeat };
    let ends = Ends::prepare(program, folder, example, change)?;
    let doctor = ask_doctor(program, &ends.scenario, folder, wish)?;
    let force: &[&str] = if wish.force { &["--force"] } else { &[] };
    Ok((ends.run(program, force)?, doctor))
}

/// What the doctor says about this host; an error when it is not fit and nobody insists.
fn ask_doctor(program: &Path, file: &Path, folder: &Path, wish: &Wish) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("doctor").arg(file);
    let asked = child::start(command, None, folder, "doctor")?.wait(GRACE)?;
    match asked.status.code() {
        Some(0) => Ok("fit".to_string()),
        Some(3) if wish.force => Ok("not fit, but told to go on".to_string()),
        Some(3) => {
            let said = [asked.output, asked.errors].concat();
            Err(format!("{said}\nthis host is not fit for it; --force goes on"))
        }
        _ => Ok(format!("not asked: {}", asked.status)),
    }
}

fn report(wish: &Wish, outcome: &Outcome, doctor: &str) -> String {
    let mut text = format!(
        "## {}{}\n\nThe WebSocket users of `{EXAMPLE}` (login, a heartbeat every {}, \
         broadcasts listened for), held {}. They come as fast as {:.0} % of the processors left \
         by the heartbeats carry, reckoned beforehand with {:.0} µs for a login and {:.0} µs for a \
         heartbeat of both ends, and {} pass before the hold. Memory per user and per connection is all that the \
         process has resident, divided. The machine was looked at once a second.\n\n\
         | | asked | seen | |\n| --- | ---: | ---: | --- |\n",
        match wish.users {
            1_000_000 => "A million users".to_string(),
            2_000_000 => "Two million users".to_string(),
            users => format!("{} users", spaced(users)),
        },
        if wish.tls { " over TLS" } else { "" },
        units::write_duration(wish.heartbeat),
        units::write_duration(wish.hold),
        USED_WHILE_FILLING * 100.0,
        if wish.tls { LOGIN_CPU_TLS_S } else { LOGIN_CPU_S } * 1e6,
        HEARTBEAT_CPU_S * 1e6,
        units::write_duration(SETTLE),
    );
    let view = View::new(wish, outcome);
    text.push_str(&report::lines(&view.rows()));
    let _ = writeln!(text, "\n{}", view.remarks(doctor));
    text
}

/// The figures of an outcome, where they can be told.
struct View<'a> {
    wish: &'a Wish,
    outcome: &'a Outcome,
    /// The most users who were logged in at one time, as the target counts them, but no more than
    /// were asked for: what costs are divided by.
    came: u64,
    /// The last look before anybody came, the first one when so many were there, and the last one
    /// in which they were still to stay.
    empty: Option<&'a Look>,
    full: Option<&'a Look>,
    held: Option<&'a Look>,
}

impl<'a> View<'a> {
    fn new(wish: &'a Wish, outcome: &'a Outcome) -> View<'a> {
        let looks = &outcome.looks;
        let most = looks.iter().map(|look| look.logged_in).max().unwrap_or(0);
        let came = most.min(wish.users);
        let full = looks.iter().position(|look| came > 0 && look.logged_in >= came);
        let held = full.and_then(|full| {
            // Not the last second, in which the first may leave already.
            let until = looks[full].at + wish.hold.saturating_sub(TICK * 2);
            looks[full..].iter().rfind(|look| look.at <= until)
        });
        let empty = looks.iter().take_while(|look| look.logged_in == 0).last();
        View { wish, outcome, came, empty, full: full.map(|full| &looks[full]), held }
    }

    fn rows(&self) -> Vec<Line> {
        let mut rows = self.population();
        rows.extend(self.heartbeats());
        rows.extend(self.cpu());
        rows.extend(self.memory());
        rows
    }

    /// Whether this is the number of users for which the issue sets the goals of the machine.
    fn is_million(&self) -> bool {
        self.wish.users == USERS && !self.wish.tls
    }

    fn asked(&self, text: &str) -> String {
        if self.is_million() { text.to_string() } else { String::new() }
    }

    fn judged(&self, met: Option<bool>) -> Option<bool> {
        met.filter(|_| self.is_million())
    }

    fn population(&self) -> Vec<Line> {
        let [fill, settle, hold, drain] = &self.outcome.phases;
        let users = self.wish.users;
        let came = [fill, settle, hold].map(|phase| phase.logins.iter());
        let logins: Vec<u64> = came.into_iter().flatten().copied().collect();
        let filled = seconds_until(&logins, users);
        let rate = filled.map(|seconds| users as f64 / seconds as f64);
        let whole = fill.logins.get(1..fill.logins.len().saturating_sub(1)).unwrap_or_default();
        let (low, high) = (whole.iter().min(), whole.iter().max());
        let online = hold.online_min_after(users);
        let lost =
            hold.broken.max(hold.ended_by_others).max(users - online.unwrap_or(0).min(users));
        let drained = drain.open_until.map_or(drain.seconds.1, |until| until + 1);
        let drained = drained.saturating_sub(drain.seconds.0);
        let has_drained = drain.seconds.1 > 0 && drain.open_until < Some(drain.seconds.1);
        vec![
            Line::new("users online in hold, fewest", spaced(users), online.map(spaced))
                .met(online.map(|online| online >= users)),
            Line::new(
                "logged in at one time, as the target counts, most",
                "",
                Some(spaced(self.came)),
            ),
            Line::new("users lost in hold", "0", Some(spaced(lost))).met(Some(lost == 0)),
            Line::new(
                "logins/s while filling",
                self.asked("≥ 15 000"),
                rate.map(|rate| {
                    let range = low.zip(high).map(|(low, high)| format!(" ({low}–{high})"));
                    format!("{rate:.0}{}", range.unwrap_or_default())
                }),
            )
            .met(self.judged(rate.map(|rate| rate >= 15_000.0))),
            Line::new("time to fill", "", filled.map(|seconds| format!("{seconds} s"))),
            Line::new("login p50 / p99 / max", "", fill.login.times()),
            Line::new("connect p50 / p99 / max", "", fill.connect.times()),
            Line::new(
                "time to drain",
                self.asked("< 120 s"),
                match has_drained {
                    true => Some(format!("{drained} s")),
                    false => Some(format!("> {drained} s")),
                },
            )
            .met(self.judged(Some(has_drained && drained < 120))),
        ]
    }

    fn heartbeats(&self) -> Vec<Line> {
        let hold = &self.outcome.phases[2];
        let told =
            format!("{} / {} / {}", spaced(hold.sent), spaced(hold.answered), spaced(hold.lost));
        let p99 = hold.heartbeat.ms_at(0.99);
        vec![
            Line::new("heartbeats in hold, sent / answered / lost", "", Some(told)),
            Line::new(
                "heartbeat p50 / p99 / max in hold",
                self.asked("p99 < 50 ms"),
                hold.heartbeat.times(),
            )
            .met(self.judged(p99.map(|p99| p99 < 50.0))),
            Line::new(
                "lateness of the generator p50 / p99 / max in hold",
                "",
                hold.lateness.times(),
            ),
        ]
    }

    fn cpu(&self) -> Vec<Line> {
        let filling = self.empty.zip(self.full);
        let each = |cpu: fn(&Look) -> Duration| {
            let (empty, full) = filling?;
            let spent = cpu(full).saturating_sub(cpu(empty)).as_secs_f64();
            Some(format!("{:.1} µs", spent * 1e6 / self.came as f64))
        };
        let cores = |cpu: fn(&Look) -> Duration| {
            let (full, held) = self.full.zip(self.held)?;
            let time = (held.at - full.at).as_secs_f64();
            let spent = cpu(held).saturating_sub(cpu(full)).as_secs_f64();
            (time > 0.0).then(|| format!("{:.2} cores", spent / time))
        };
        vec![
            Line::new("CPU per established connection, generator", "", each(|look| look.tool.cpu)),
            Line::new("CPU per established connection, target", "", each(|look| look.target.cpu)),
            Line::new("CPU in hold, generator", "", cores(|look| look.tool.cpu)),
            Line::new("CPU in hold, target", "", cores(|look| look.target.cpu)),
        ]
    }

    fn memory(&self) -> Vec<Line> {
        let (tls, came) = (self.wish.tls, self.came);
        let (ours_max, target_max) = if tls { (16_384.0, 16_384.0) } else { (1_200.0, 1_000.0) };
        let looks = &self.outcome.looks;
        // While all are there; what a run holds at its end is no user's.
        let during = looks.iter().filter(|look| look.logged_in >= came.max(1));
        let most = |bytes: fn(&Look) -> u64| {
            let most = during.clone().map(bytes).max()?;
            Some(most as f64 / came as f64)
        };
        let row = |what, max: f64, seen: Option<f64>| {
            Line::new(what, format!("≤ {}", in_bytes(max)), seen.map(in_bytes))
                .met(seen.map(|seen| seen <= max))
        };
        let used = |host: &Host| host.total_bytes.saturating_sub(host.available_bytes);
        let highest = looks.iter().map(|look| used(&look.host)).max();
        let over = highest.map(|most| most.saturating_sub(used(&self.outcome.before)));
        let limit = 14.0 * GIBIBYTE;
        vec![
            row("memory per user, generator", ours_max, most(|look| look.tool.resident_bytes)),
            row(
                "memory per connection, target",
                target_max,
                most(|look| look.target.resident_bytes),
            ),
            Line::new("memory per socket, kernel", "", self.kernel_bytes().map(in_bytes)),
            Line::new("sockets", "", looks.iter().map(|look| look.host.sockets).max().map(spaced)),
            Line::new(
                "memory of the whole machine, most",
                self.asked("< 14 GiB"),
                highest.map(gib),
            )
            .met(self.judged(highest.map(|bytes| (bytes as f64) < limit))),
            Line::new("of it more than before", "", over.map(gib)),
            Line::new(
                "memory left, least",
                "",
                looks.iter().map(|look| look.host.available_bytes).min().map(gib),
            ),
            Line::new(
                "slab of the kernel, most",
                "",
                looks.iter().map(|look| look.host.slab_bytes).max().map(gib),
            ),
        ]
    }

    /// What the machine has less than before and neither process has, for each socket more.
    fn kernel_bytes(&self) -> Option<f64> {
        let (held, before) = (self.held?, &self.outcome.before);
        let gone = before.available_bytes.checked_sub(held.host.available_bytes)?;
        let kernel = gone.checked_sub(held.tool.resident_bytes + held.target.resident_bytes)?;
        let sockets = held.host.sockets.checked_sub(before.sockets).filter(|more| *more > 0)?;
        Some(kernel as f64 / sockets as f64)
    }

    /// What the run, the target and the host say beside the figures.
    fn remarks(&self, doctor: &str) -> String {
        let ended = &self.outcome.ended;
        let summary: Value = serde_json::from_str(&ended.output).unwrap_or_default();
        let reasons = super::reasons(&summary);
        let count = |place: &str| {
            self.outcome.target.pointer(place).and_then(Value::as_u64).map_or("?".into(), spaced)
        };
        let mut text = format!("- throng ended with {}", ended.status);
        if !reasons.is_empty() {
            let _ = write!(text, ": {reasons}");
        }
        let _ = write!(
            text,
            "\n- the doctor: {}\n- the target counted {} logins ({} of users already there), \
             {} heartbeats, {} connections reset and {} accepts that failed",
            doctor,
            count("/logins"),
            count("/double_logins"),
            count("/heartbeats"),
            count("/connections/reset"),
            count("/connections/accept_errors"),
        );
        if let Some(cores) = self.others() {
            let _ = write!(
                text,
                "\n- all else on this machine, interrupts among it, used {cores:.2} \
                 cores meanwhile"
            );
        }
        text.push('\n');
        text
    }

    /// How many cores were busy with neither of the two.
    fn others(&self) -> Option<f64> {
        let (first, last) = (self.outcome.looks.first()?, self.held.or(self.outcome.looks.last())?);
        let time = (last.at - first.at).as_secs_f64();
        let busy = (last.host.busy.checked_sub(first.host.busy)?).as_secs_f64();
        let both = |look: &Look| (look.tool.cpu + look.target.cpu).as_secs_f64();
        (time > 0.0).then(|| ((busy - (both(last) - both(first))) / time).max(0.0))
    }
}

/// How many seconds it took until so many had come.
fn seconds_until(each: &[u64], wanted: u64) -> Option<usize> {
    let mut sum = 0;
    let last = each.iter().position(|count| {
        sum += count;
        sum >= wanted
    })?;
    // Nobody comes in the seconds before the first.
    let first = each.iter().position(|count| *count > 0).unwrap_or(0);
    Some(last + 1 - first)
}

const GIBIBYTE: f64 = 1024.0 * 1024.0 * 1024.0;

fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / GIBIBYTE)
}

#[cfg(test)]
mod tests;
