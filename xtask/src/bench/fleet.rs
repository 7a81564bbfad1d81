//! `bench fleet`: what a fleet of many machines costs and how well it keeps together, over a real
//! nats-server with certificates on both sides that writes to its disk at once. Hundreds of agents
//! are one process that tells the lines of a real one (`crates/throng-fleet/examples/swarm.rs`);
//! up to twenty are real.

mod real;
mod stage;
mod swarm;

use super::report::{self, Line};
use super::tool::Places;
use super::{Folder, Options, machine, server};
use stage::Stage;
use swarm::Asked;

pub(super) const PARTS: &[&str] = &["many", "thousand", "starts", "counts"];
const FLEETS: [usize; 4] = [1, 2, 5, 20];
const STARTERS: usize = 20;
/// Iterations per second of the run whose lines are replayed, each with ten steps.
const BUSY: u32 = 40;

const SWARMS: [(&str, Asked); 2] = [
    ("many", Asked { agents: 200, seconds: 60, cores: 0.5, behind_s: None, apart_ms: Some(50.0) }),
    (
        "thousand",
        Asked { agents: 1_000, seconds: 30, cores: 1.0, behind_s: Some(3.0), apart_ms: None },
    ),
];

pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let mut text = machine::facts(options, places);
    for (part, asked) in &SWARMS {
        if options.wants(part) {
            let title = format!("{} agents for {} s", asked.agents, asked.seconds);
            text.push_str(&table(&title, &many(asked, places)?));
        }
    }
    if options.wants("starts") || options.wants("counts") {
        let folder = Folder::new(&places.folder, "fleet")?;
        let mut stage = Stage::new(places, &folder.0)?;
        stage.serve(places)?;
        if options.wants("counts") {
            let lines = real::counts(&mut stage, &FLEETS)?;
            text.push_str(&table("One scenario on 1, 2, 5 and 20 agents", &lines));
        }
        if options.wants("starts") {
            let lines = real::starts(&mut stage, STARTERS, options.rounds)?;
            text.push_str(&table(&format!("{STARTERS} agents start at the same time"), &lines));
        }
    }
    Ok(text)
}

fn many(asked: &Asked, places: &Places) -> Result<Vec<Line>, String> {
    let program = real::swarm_program(places)?;
    let folder = Folder::new(&places.folder, "swarm")?;
    let mut stage = Stage::new(places, &folder.0)?;
    asked.admit(&stage, &program)?;
    stage.serve(places)?;
    let target = server::throng_target_everywhere(&places.throng, &folder.0, &["http"])?;
    let text = busy(target.0.port, asked.seconds);
    let recorded = real::recorded(&mut stage, &text)?;
    let mut lines = vec![described(&recorded, asked.seconds)];
    lines.extend(asked.hold(&stage, (&program, &text), &recorded)?);
    Ok(lines)
}

/// The lines that each agent sends.
fn described(recorded: &str, seconds: u64) -> Line {
    let bytes = recorded.len() as u64 / seconds.max(1);
    let seen = format!("{} B/s as JSON", report::spaced(bytes));
    Line::new("data per agent", "", Some(seen))
}

fn busy(port: u16, seconds: u64) -> String {
    let steps = (0..10).map(|step| format!("{{http: GET /{step}}}")).collect::<Vec<_>>();
    format!(
        "target: http://127.0.0.1:{port}\nsessions: {{busy: {{steps: [{}]}}}}\n\
         load: [{{arrivals: {BUSY}/s, for: {seconds}s}}]\n",
        steps.join(", ")
    )
}

fn table(title: &str, lines: &[Line]) -> String {
    format!(
        "## {title}\n\nSystem load: {}\n\n| | goal | measured | |\n| --- | ---: | ---: | --- |\n{}\n",
        machine::load_average(),
        report::lines(lines)
    )
}
