//! The printed plan: the requested load, the cost of a user, the total needs, and the number of
//! machines.

use std::fmt::Write as _;
use std::time::Duration;

use crate::reckon::{CORES_SHARE, MEMORY_SHARE, Resource, Row};
use crate::{Measured, NAMES, arrives_only};
use throng_base::Said;
use throng_base::columns::{left, right, wrap};
use throng_base::units::{format_bytes, format_count, format_duration};
use throng_load::Forecast;
use throng_program::Program;
use throng_results::terminal::Style;
use unicode_width::UnicodeWidthStr as _;

use super::Planned;

/// Wider text is hard to read.
const WIDTH_MAX: usize = 110;

/// Labels before figures and above columns.
const KERNEL: Said = say!("kernel");
const CORES: Said = say!("cores");
const SHARDS: Said = say!("shards");
const DESCRIPTORS: Said = say!("descriptors");
const MACHINES: Said = say!("machines");

pub(super) fn page(planned: &Planned, style: &Style) -> String {
    let mut out = wanted(planned, style);
    out += &peak(planned, style);
    out += &cost(planned, style);
    out += &needs(planned, style);
    out += &machines(planned, style);
    out
}

/// A heading.
#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
pub(super) fn head(text: Said, style: &Style) -> String {
    format!("\n{}\n", style.bold(&text.spoken()))
}

/// A sentence, wrapped and indented by two.
#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
pub(super) fn sentence(text: Said, style: &Style) -> String {
    let lines = wrap(&text.spoken(), style.width.clamp(40, WIDTH_MAX) - 2);
    lines.into_iter().map(|line| format!("  {line}\n")).collect()
}

/// Rows of cells: the first aligned left, numbers right, the last unchanged.
pub(super) fn table(rows: &[[String; 3]], style: &Style) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let mut out = String::new();
    for [name, figure, note] in rows {
        let start = format!("  {}  {}", left(name, first), right(figure, second));
        let room = style.width.clamp(40, 200).saturating_sub(start.width() + 2);
        match note.width() <= room {
            true => drop(writeln!(out, "{}", format!("{start}  {note}").trim_end())),
            // It starts on a separate line if it would not fit.
            false => drop(writeln!(out, "{start}\n      {note}")),
        }
    }
    out
}

/// A number of processors, or a smaller value, in three digits.
fn figure(number: f64) -> String {
    match number {
        n if n >= 100.0 => format_count(n.round() as u64),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

fn rate(per_s: f64) -> String {
    match per_s {
        n if n >= 10.0 || n == n.round() => format_count(n.round() as u64),
        n => format!("{n:.1}"),
    }
}

/// Nanoseconds of CPU.
fn cpu(ns: f64) -> String {
    format_duration(Duration::from_nanos(ns.max(0.0) as u64))
}

fn wanted(planned: &Planned, style: &Style) -> String {
    let wish = &planned.plan.wish;
    let name = match planned.file {
        Some(_) => planned.plan.program.name.clone(),
        None => NAMES
            .into_iter()
            .find(|name| *name == planned.plan.program.name)
            .map(|said| said.spoken())
            .unwrap_or_default(),
    };
    let mut out = format!("{}\n", style.bold(&name));
    let users = format_count(wish.users);
    let target = planned.plan.program.targets.first().filter(|_| planned.file.is_some());
    let to = target.map(|it| format!("{}://{}", it.scheme.word(), it.authority()));
    out += &match (to, wish.endpoints) {
        (None, _) => sentence(say!("{users} concurrent users, one connection each"), style),
        (Some(to), _) if wish.is_local => sentence(
            say!("{users} concurrent users that connect to {to} on the same machine"),
            style,
        ),
        (Some(to), 1) => sentence(say!("{users} concurrent users that connect to {to}"), style),
        (Some(to), more) => sentence(
            say!("{users} concurrent users that connect to {to} and others ({more} addresses)"),
            style,
        ),
    };
    match (wish.opened_per_s, planned.plan.reckoned.coming_seconds) {
        (Some(per_s), _) if per_s >= 1.0 => {
            out += &sentence(say!("up to {} users start per second", rate(per_s)), style);
        }
        (None, Some(seconds)) if seconds >= 1.0 => {
            let time = format_duration(Duration::from_secs_f64(seconds.min(1e9)));
            out += &sentence(
                say!("all users start as fast as possible, which takes about {time}"),
                style,
            );
        }
        _ => {}
    }
    if planned.plan.measured.is_none() && arrives_only(&planned.plan.program) {
        out += &sentence(guessed_users(&planned.plan.program), style);
    }
    let requests = wish.requests_per_s - wish.heartbeats_per_s;
    if requests >= 0.05 {
        out += &sentence(say!("{} requests/s", rate(requests)), style);
    }
    if wish.heartbeats_per_s >= 0.05 {
        out += &sentence(say!("{} heartbeats/s", rate(wish.heartbeats_per_s)), style);
    }
    if wish.reopened_per_s >= 0.05 {
        let per_s = rate(wish.reopened_per_s);
        out += &sentence(say!("{per_s} connections/s are closed and reopened"), style);
    }
    if planned.plan.reckoned.kept > 0 {
        let kept = format_count(planned.plan.reckoned.kept);
        let text = say!("{kept} silently dropped connections are kept for 2 minutes");
        out += &sentence(text, style);
    }
    out
}

/// How the users of arrivals were estimated.
fn guessed_users(program: &Program) -> Said {
    match Forecast::new(program).pauses_say_who_is_there() {
        true => say!(
            "the number of concurrent users is estimated from pauses alone; a slow target keeps \
             more users online (give --users N, or measure a run)"
        ),
        false => say!(
            "the number of concurrent users is unknown, so the number of arrivals per second is \
             used instead (give --users N, or measure a run)"
        ),
    }
}

/// A day's views and their peak, with the formula.
fn peak(planned: &Planned, style: &Style) -> String {
    let Some(peak) = planned.plan.peak else { return String::new() };
    let (views, rate) = (format_count(peak.views), peak.rate().ceil());
    let percent = |share: f64| format!("{}%", (share * 1e4).round() / 1e2);
    let (share, of_day) = (percent(peak.share), percent(peak.of_day));
    let mut out = head(say!("daily peak"), style);
    let at = format_count(rate as u64);
    out += &sentence(say!("({views} x {share}) / (86,400 s x {of_day}) = {at}/s"), style);
    let (per_machine, from) = match (planned.per_machine, planned.plan.sustained()) {
        (Some(given), _) => (given, String::new()),
        (None, Some(sustained)) => (sustained, "measured".to_string()),
        (None, None) => {
            let text = say!(
                "give `--per-machine RATE`, or run this scenario first, to calculate the number \
                 of service machines"
            );
            return out + &sentence(text, style);
        }
    };
    let machines = format_count(peak.machines(per_machine));
    let each = self::rate(per_machine);
    out += &sentence(say!("{at}/s / {each}/s per machine = {machines} service machines"), style);
    if !from.is_empty() {
        let text = say!(
            "all targets of that run count as one machine, with their highest throughput in one \
             second; their capacity may be higher"
        );
        out += &sentence(text, style);
    }
    out
}

fn cost(planned: &Planned, style: &Style) -> String {
    let cost = &planned.plan.cost;
    let measured = planned.plan.measured.as_ref();
    let (users, name) = measured.map_or((String::new(), String::new()), |it| {
        let name = it.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        (format_count(it.users), name.unwrap_or_else(|| it.directory.display().to_string()))
    });
    let by = |is_told: bool, otherwise: Said| match is_told {
        true => say!("measured").spoken(),
        false => otherwise.spoken(),
    };
    let told = |of: fn(&Measured) -> Option<f64>| measured.and_then(of).is_some();
    let sizes = say!("from the object sizes in this build, +15 %");
    let kernel = match planned.plan.socket.1 {
        true => say!("from the slab sizes of this kernel"),
        false => say!("from Linux 6.18; run as root to use the values of this kernel"),
    };
    let row = |name: Said, figure: String, note: String| [name.spoken(), figure, note];
    let bench = say!("typical, from throng's benchmarks");
    let mut rows = vec![
        ["throng".to_string(), format_bytes(cost.user_bytes), by(told(|it| it.user_bytes), sizes)],
        row(KERNEL, format_bytes(cost.kernel_bytes), kernel.clone().spoken()),
    ];
    if planned.plan.wish.is_local {
        let note = say!("maximum, based on `throng target`");
        rows.push(row(say!("target"), format_bytes(cost.target_bytes), note.spoken()));
        rows.push(row(
            say!("kernel, for the target"),
            format_bytes(cost.kernel_bytes),
            kernel.spoken(),
        ));
    }
    let connect = by(told(|it| it.connect_ns), bench.clone());
    rows.push(row(say!("CPU per user start"), cpu(cost.connect_ns), connect));
    let request = by(told(|it| it.request_ns), bench);
    let asking = match planned.plan.asks_over_http() {
        true => say!("CPU per request"),
        false => say!("CPU per message"),
    };
    rows.push(row(asking, cpu(cost.request_ns), request));
    let mut out = head(say!("cost per user"), style) + &table(&rows, style);
    if measured.is_some_and(|it| it.name != planned.plan.program.name) {
        let other = measured.map_or("", |it| it.name.as_str());
        out += &sentence(say!("that run used a different scenario, `{other}`"), style);
    }
    match measured {
        Some(it) if [it.user_bytes, it.connect_ns, it.request_ns].iter().any(Option::is_some) => {
            out += &sentence(say!("measured in run {name}, with {users} users"), style);
        }
        Some(_) => {
            out += &sentence(say!("run {name} is too small to measure the cost per user"), style);
        }
        None if planned.file.is_some() => {
            let text = say!(
                "the cost was not measured: there is no run of this scenario in ./throng-runs"
            );
            out += &sentence(text, style);
        }
        None => {}
    }
    out
}

/// The identifier in JSON.
pub(super) fn resource_word(resource: Resource) -> &'static str {
    match resource {
        Resource::Memory => "memory",
        Resource::Cores => "cores",
        Resource::Addresses => "source-addresses",
        Resource::Descriptors => "descriptors",
    }
}

fn needs(planned: &Planned, style: &Style) -> String {
    let machine = &planned.plan.machine;
    let name = |row: &Row| match row.resource {
        Resource::Memory => say!("memory").spoken(),
        Resource::Cores => CORES.spoken(),
        Resource::Addresses => say!("source addresses").spoken(),
        Resource::Descriptors => DESCRIPTORS.spoken(),
    };
    let needed = |row: &Row| match row.resource {
        Resource::Memory => format_bytes(row.needed),
        Resource::Cores => figure(row.needed),
        Resource::Addresses | Resource::Descriptors => format_count(row.needed as u64),
    };
    let percent = |share: f64| (share * 100.0).round();
    let given = |row: &Row| match row.resource {
        Resource::Memory => {
            let (all, given) = (format_bytes(machine.memory_bytes as f64), format_bytes(row.given));
            say!("{given}, {} % of {all}", percent(MEMORY_SHARE))
        }
        Resource::Cores => {
            let (all, given) = (figure(machine.cores), figure(row.given));
            say!("{given}, {} % of {all}", percent(CORES_SHARE))
        }
        Resource::Addresses => {
            let ports = format_count(machine.ports);
            say!("{} with {ports} ports", format_count(row.given as u64))
        }
        Resource::Descriptors => {
            let tables = planned.plan.reckoned.each.tables;
            let size = format_count(machine.descriptors);
            match tables {
                1 => say!("1 table of {size}"),
                tables => say!("{} tables of {size}, created automatically", format_count(tables)),
            }
        }
    };
    let head_of = match machine.is_this_host {
        true => say!("this host has"),
        false => say!("a machine has"),
    };
    let heads = [say!("total need"), head_of, MACHINES].map(|said| said.spoken());
    let mut rows = vec![[String::new(), heads[0].clone(), heads[1].clone(), heads[2].clone()]];
    for row in &planned.plan.reckoned.rows {
        let machines = match row.machines {
            u64::MAX => "∞".to_string(),
            machines => format_count(machines),
        };
        rows.push([name(row), needed(row), given(row).spoken(), machines]);
    }
    head(say!("total requirements"), style) + &wide_table(&rows)
}

/// Rows of a name, a number, words, a number.
fn wide_table(rows: &[[String; 4]]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let mut out = String::new();
    for [name, needed, given, machines] in rows {
        let (name, needed) = (left(name, widths[0]), right(needed, widths[1]));
        let (given, machines) = (left(given, widths[2]), right(machines, widths[3]));
        let _ = writeln!(out, "  {name}  {needed}   {given}  {machines}");
    }
    out
}

fn machines(planned: &Planned, style: &Style) -> String {
    let (reckoned, machine) = (&planned.plan.reckoned, &planned.plan.machine);
    let each = &reckoned.each;
    let mut out = head(say!("how many machines"), style);
    let count = reckoned.machines_with_addresses;
    if count == u64::MAX {
        return out
            + &sentence(
                say!("machines of this size cannot generate the load, regardless of their number"),
                style,
            );
    }
    let number = format_count(count);
    out += &match (count, machine.is_this_host) {
        (1, true) => sentence(say!("1 machine: this host is enough"), style),
        (1, false) => sentence(say!("1 such machine is enough"), style),
        (_, true) => sentence(say!("{number} machines like this host"), style),
        (_, false) => sentence(say!("{number} such machines"), style),
    };
    if reckoned.machines > count {
        let wanted = format_count(each.addresses);
        let (has, more) = (format_count(machine.addresses), format_count(reckoned.machines));
        let text = say!(
            "each machine needs {wanted} source addresses; with the current {has}, you need \
             {more} machines, or a target with more addresses or ports"
        );
        out += &sentence(text, style);
    }
    if let Some((fewer, per_s)) = reckoned.slower {
        let (fewer, per_s) = (format_count(fewer), format_count(per_s as u64));
        let text = match fewer.as_str() {
            "1" => {
                say!("1 machine is enough if users start at {per_s}/s: the CPU is the only limit")
            }
            _ => say!(
                "{fewer} machines are enough if users start at {per_s}/s: the CPU is the only \
                 limit"
            ),
        };
        out += &sentence(text, style);
    }
    if planned.plan.wish.is_local && count > 1 {
        let text = say!(
            "other machines cannot reach a target on the loopback interface: move the target to \
             another host, with an address that they can reach"
        );
        out += &sentence(text, style);
    }
    let row = |name: Said, figure: String| [name.spoken(), figure, String::new()];
    let rows = [
        row(say!("users"), format_count(each.users)),
        row(say!("memory"), format_bytes(each.memory_bytes)),
        row(CORES, figure(each.cores)),
        row(say!("source addresses"), format_count(each.addresses)),
        row(say!("source ports"), format_count(each.ports)),
        row(say!("descriptor tables"), format_count(each.tables)),
        row(SHARDS, format_count(each.shards)),
    ];
    if count > 1 {
        out += &sentence(say!("per machine"), style);
    }
    out + &table(&rows, style)
}
