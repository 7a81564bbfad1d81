//! The number of agents for the load: the limiting resource of each, the uncertainty, and the
//! commands that start them.

use std::time::Duration;

use crate::agents::{Agents, Load};
use crate::reckon::Resource;
use crate::{arrives_only, wish};
use serde_json::{Value, json};
use throng_base::units::{format_bytes, format_count, format_duration};
use throng_load::Forecast;
use throng_results::terminal::Style;

use super::Planned;
use super::commands::{command, quoted};
use super::page::{head, resource_word, sentence, table};

/// A load above this multiple of the measured one is a large extrapolation.
const TIMES_FAR: f64 = 10.0;

pub(super) fn json(agents: &Agents) -> Value {
    let load = |load: &Load| {
        let word = resource_word(load.resource);
        json!({ "resource": word, "taken": load.taken, "given": load.given, "share": load.share() })
    };
    let range = |(low, high): (u64, u64)| json!({ "low": low, "high": high });
    let network =
        |(input, output): (f64, f64)| json!({ "received_per_s": input, "sent_per_s": output });
    json!({
        "agents": agents.count,
        "range": agents.range.map(range),
        "limit": agents.limit().map(|load| resource_word(load.resource)),
        "each": agents.rows.iter().map(load).collect::<Vec<_>>(),
        "network": agents.network.map(network),
        "times_measured": agents.times,
    })
}

pub(super) fn page(planned: &Planned, agents: &Agents, style: &Style) -> String {
    if agents.count == u64::MAX {
        return String::new();
    }
    let count = format_count(agents.count);
    let mut out = head(say!("fleet agents"), style);
    let (cores, memory) = (planned.plan.machine.cores, planned.plan.machine.memory_bytes as f64);
    let memory = format_bytes(memory);
    out += &sentence(say!("{count}, each with {cores} cores and {memory} of memory"), style);
    let mut rows: Vec<[String; 3]> = agents.rows.iter().map(|load| row(load, agents)).collect();
    if let Some((input, output)) = agents.network {
        let rate = format!("{}/s", format_bytes(input + output));
        let (input, output) = (format_bytes(input), format_bytes(output));
        let note = say!("{input} received, {output} sent; the link capacity was not measured");
        rows.push([say!("network").spoken(), rate, note.spoken()]);
    }
    out += &table(&rows, style);
    out + &sureness(agents, style) + &commands(planned, agents, style)
}

fn row(load: &Load, agents: &Agents) -> [String; 3] {
    let (name, figure): (_, fn(f64) -> String) = match load.resource {
        Resource::Memory => (say!("memory"), format_bytes),
        Resource::Cores => (say!("cores"), |cores| format!("{cores:.2}")),
        Resource::Addresses => (say!("source addresses"), |count| match count < 10.0 {
            true => format!("{count:.1}"),
            false => format_count(count as u64),
        }),
        Resource::Descriptors => (say!("descriptors"), |count| format_count(count as u64)),
    };
    let percent = load.share() * 100.0;
    let percent = if percent < 9.5 { format!("{percent:.1}") } else { format!("{percent:.0}") };
    let given = figure(load.given);
    let note = match agents.limit() == Some(load) {
        true => say!("{percent} % of the usable {given}, which is the limit"),
        false => say!("{percent} % of the usable {given}"),
    };
    [name.spoken(), figure(load.taken), note.spoken()]
}

/// The options that give the scenario the requested load.
fn load(planned: &Planned) -> String {
    let program = &planned.plan.program;
    let own = wish(program, &planned.plan.given.of_scenario(), planned.plan.measured.as_ref());
    let times = match own.requests_per_s > 0.0 {
        true => planned.plan.wish.requests_per_s / own.requests_per_s,
        false => planned.plan.wish.users as f64 / own.users.max(1) as f64,
    };
    let rate = Forecast::new(program).arrivals_per_second();
    match rate.filter(|_| arrives_only(program)) {
        _ if (times - 1.0).abs() < 1e-6 => String::new(),
        Some(rate) => format!(" --rate {}/s", (rate * times * 10.0).round() / 10.0),
        None => format!(" --users {}", planned.plan.wish.users),
    }
}

/// The uncertainty of the number.
fn sureness(agents: &Agents, style: &Style) -> String {
    let time = |ns: f64| format_duration(Duration::from_nanos(ns as u64));
    let mut out = match (agents.range, agents.request_ns) {
        (Some((low, high)), Some(cost)) => {
            let (low, high) = (format_count(low), format_count(high));
            let (cheap, dear) = (time(cost.0), time(cost.1));
            let text = say!(
                "between {low} and {high} agents: the CPU time per request varied from {cheap} \
                 to {dear} during the run"
            );
            sentence(text, style)
        }
        _ => sentence(say!("the run is too short to show how the costs vary"), style),
    };
    if agents.times > TIMES_FAR {
        let times = format_count(agents.times.round() as u64);
        let text = say!(
            "each agent must generate {times} times the load of the measured run: measure again \
             with a larger load"
        );
        out += &sentence(text, style);
    }
    out
}

fn commands(planned: &Planned, agents: &Agents, style: &Style) -> String {
    let count = agents.count;
    let tokens =
        format!("for n in $(seq {count}); do throng fleet token agent-$n > agent-$n.token; done");
    let mut out = head(say!("what to do"), style);
    let init = "throng fleet init --address IP:4222 && throng fleet serve";
    out += &command(say!("on the bus host (replace IP with its address):"), init, style);
    out += &command(say!("on the bus host, create a token for each agent:"), &tokens, style);
    let join = "throng agent --join agent-1.token";
    out += &command(say!("on each machine, with its own token:"), join, style);
    let run = match planned.file.as_deref() {
        Some(file) => {
            let set: String = planned.set.iter().map(|set| format!(" --set {set}")).collect();
            format!("throng run {}{set}{}", quoted(file), load(planned))
        }
        None => "throng run SCENARIO".to_string(),
    };
    let agents = match count <= planned.agents_max {
        true => format!(" --agents {count}"),
        false => String::new(),
    };
    out + &command(say!("run it:"), &format!("{run} --fleet{agents}"), style)
}
