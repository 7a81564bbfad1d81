//! `bench fleet`: what a fleet of many machines costs and how well it keeps together, over a real
//! nats-server with certificates on both sides that writes to its disk at once. A thousand agents
//! are one process that sends the lines of a real one (`crates/throng-fleet/examples/swarm.rs`); up
//! to twenty are real.

mod stage;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;
use throng_base::clock::wall_now;

use super::child;
use super::contest::Spread;
use super::readings::{Usage, usage_of};
use super::report::{LINES, line, spaced};
use super::{Folder, Options, Places, machine, server};
use crate::programs::{cargo, finish, text_of};
use stage::Stage;

pub(super) const PARTS: &[&str] = &["thousand", "starts", "counts"];
const FLEETS: [usize; 4] = [1, 2, 5, 20];
/// The latency of their target.
const LATENCY: &str = "20ms";
/// The relative width of histogram buckets.
const BUCKET: f64 = 0.008;
const STARTERS: usize = 20;
const STARTS_MS_MAX: f64 = 5.0;

const SWARM: usize = 1_000;
const SWARM_SECONDS: u64 = 30;
/// Iterations per second of the run whose lines are replayed, each with ten steps.
const BUSY: u32 = 40;
/// Of bus and controller together.
const CORES_MAX: f64 = 1.0;
const BEHIND_S_MAX: f64 = 3.0;
const TICK: Duration = Duration::from_millis(20);
/// For agents to join and for the run to end, beside its load.
const AROUND: Duration = Duration::from_secs(150);
const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let mut text = machine::facts(options, places);
    let mut add = |title: &str, lines: String| {
        let load = machine::load_average();
        text += &format!("## {title}\n\nSystem load: {load}\n\n{LINES}{lines}\n");
    };
    if options.wants("thousand") {
        add(&format!("{SWARM} agents for {SWARM_SECONDS} s"), thousand(places)?);
    }
    if options.wants("starts") || options.wants("counts") {
        let folder = Folder::new(&places.folder, "fleet")?;
        let mut stage = Stage::new(places, &folder.0)?;
        stage.serve(places)?;
        if options.wants("counts") {
            add("One scenario on 1, 2, 5 and 20 agents", counts(&mut stage)?);
        }
        if options.wants("starts") {
            let lines = starts(&mut stage, options.rounds)?;
            add(&format!("{STARTERS} agents start at the same time"), lines);
        }
    }
    Ok(text)
}

/// A row for each fleet: its counts and times, compared with those of one agent.
fn counts(stage: &mut Stage) -> Result<String, String> {
    let mut text = String::new();
    let mut one = None;
    for count in FLEETS {
        let words = ["http", "--latency", LATENCY];
        let target = server::target(&stage.throng, &stage.folder, &words, None)?;
        let scenario = format!(
            "target: http://127.0.0.1:{}
seed: 7
sessions:
  comer: {{steps: [{{http: GET /come}}, {{think: 30ms}}, {{http: GET /go}}]}}
  worker: {{steps: [{{http: GET /work}}]}}
loads:
  comers: {{sessions: comer, phases: [{{arrivals: 60/s, for: 8s}}]}}
  workers: {{sessions: worker, phases: [{{iterations: 1203, users: 40}}]}}
",
            target.port
        );
        let summary = stage.ran(&scenario, count, &["--shards=1"])?;
        let steps = summary["steps"].as_array().into_iter().flatten();
        let rows: Vec<(Value, Value)> =
            steps.map(|row| (row["name"].clone(), row["begun"].clone())).collect();
        let begun: u64 = rows.iter().filter_map(|(_, begun)| begun.as_u64()).sum();
        let served = target.stats()?["requests"].as_u64().unwrap_or(0);
        let times = ["p50_ns", "p90_ns"]
            .map(|name| summary["total"]["latency"][name].as_f64().unwrap_or(f64::NAN));
        let (wanted, before) = one.get_or_insert_with(|| (rows.clone(), times));
        let apart = times.iter().zip(before.iter()).map(|(now, then)| (now / then - 1.0).abs());
        let apart = apart.fold(0.0, f64::max);
        let is_same = rows == *wanted && served == begun;
        let seen = format!(
            "{count} agents: {begun} started, {served} at the target; p50 {:.2} ms, p90 {:.2} ms",
            times[0] / 1e6,
            times[1] / 1e6
        );
        let goal = "same counts as 1 agent, same buckets";
        text += &line("one scenario", goal, Some(seen), Some(is_same && apart <= 2.0 * BUCKET));
    }
    Ok(text)
}

/// The spread of the first requests of all agents at the target, per round.
fn starts(stage: &mut Stage, rounds: u32) -> Result<String, String> {
    let mut spreads = Vec::new();
    for _ in 0..rounds {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let (sender, arrivals) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if sender.send(unix_ns()).is_err() {
                    return;
                }
                std::thread::spawn(move || answer(stream));
            }
        });
        let scenario = format!(
            "target: http://127.0.0.1:{port}\nsessions: {{one: {{steps: [{{http: GET /}}, {{think: 1h}}]}}}}\n\
             load: [{{users: {STARTERS}, for: 2s}}]\n"
        );
        stage.ran(&scenario, STARTERS, &["--shards=1"])?;
        let zero = stage.zero_unix_ns().ok_or("the record tells no start")?;
        let mut times: Vec<u64> = arrivals.try_iter().collect();
        times.sort_unstable();
        if times.len() != STARTERS {
            return Err(format!("{} of {STARTERS} first requests arrived", times.len()));
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        spreads.push((ms(times[STARTERS - 1] - times[0]), ms(times[0].saturating_sub(zero))));
    }
    spreads.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shown = spreads.iter().map(|(spread, late)| format!("{spread:.1} ms (+{late:.1})"));
    Ok(line(
        "first to last start, per round (and delay of the first)",
        &format!("{STARTS_MS_MAX} ms"),
        Some(shown.collect::<Vec<_>>().join(", ")),
        spreads.last().map(|(worst, _)| *worst <= STARTS_MS_MAX),
    ))
}

fn unix_ns() -> u64 {
    u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX)
}

fn answer(mut stream: TcpStream) {
    let mut buffer = [0; 2048];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// What was seen while a swarm sent its lines.
#[derive(Default)]
struct Display {
    /// After the first line of the display and after the last: when, and the usage of controller
    /// and bus.
    span: Option<[(u64, [Usage; 2]); 2]>,
    /// Seconds of the run, with when each was shown.
    seconds: Vec<(u64, u64)>,
    resident: [u64; 2],
}

impl Display {
    fn look(&mut self, pids: [i32; 2], said: &str) {
        let Some(second) = said.lines().filter_map(second_of).max() else { return };
        if self.seconds.last().is_some_and(|(last, _)| *last >= second) {
            return;
        }
        let now = (unix_ns(), pids.map(usage_of));
        self.seconds.push((second, now.0));
        for (most, usage) in self.resident.iter_mut().zip(now.1) {
            *most = usage.resident_bytes.max(*most);
        }
        self.span = Some([self.span.map_or(now, |[first, _]| first), now]);
    }

    /// The rows about this run: what the controller and the swarm have counted, the CPU and the
    /// memory of controller and bus, and how many seconds after its end each second was shown.
    fn lines(&self, zero_unix_ns: u64, summary: &Value, swarm: &Value) -> String {
        let (ours, theirs) = (summary["total"]["count"].as_u64(), swarm["count"].as_u64());
        let is_whole = summary["record"]["lines_missing"] == 0;
        let counts = ours.zip(theirs).map(|(ours, theirs)| {
            format!("{} / {}, {} lines", spaced(ours), spaced(theirs), swarm["lines"])
        });
        let is_same = Some(ours == theirs && is_whole);
        let cores = self.span.map(|[(from, before), (to, after)]| {
            let seconds = (to.saturating_sub(from) as f64 / SECOND_NS as f64).max(1e-9);
            [0, 1].map(|of| after[of].cpu.saturating_sub(before[of].cpu).as_secs_f64() / seconds)
        });
        let cores_text = cores.map(|[controller, bus]| {
            format!("{:.2} (controller {controller:.2}, bus {bus:.2})", controller + bus)
        });
        let is_cheap = cores.map(|[controller, bus]| controller + bus <= CORES_MAX);
        let [controller, bus] = self.resident.map(|bytes| bytes / 1_000_000);
        let due = |second: u64| zero_unix_ns + second * SECOND_NS;
        let behind = |(second, at): &(u64, u64)| at.saturating_sub(due(*second)) as f64 / 1e9;
        let behind = Spread::of(self.seconds.iter().map(behind).collect());
        let behind_text = behind.map(|it| format!("{:.2} s, maximum {:.2} s", it.median, it.max));
        [
            line("attempts merged / sent by agents", "the same", counts, is_same),
            line("CPU of controller and bus, cores", &CORES_MAX.to_string(), cores_text, is_cheap),
            line("memory of controller, bus", "", Some(format!("{controller} MB, {bus} MB")), None),
            line(
                "delay until the results of a second are displayed",
                &format!("{BEHIND_S_MAX} s"),
                behind_text,
                behind.map(|it| it.max <= BEHIND_S_MAX),
            ),
        ]
        .concat()
    }
}

/// A run whose agents are simulated, except for the one whose lines they send.
fn thousand(places: &Places) -> Result<String, String> {
    let words = ["build", "--release", "-p", "throng-fleet", "--example", "swarm"];
    finish(&mut cargo(&places.root, &words))?;
    let program = places.target.join("release/examples/swarm");
    let folder = Folder::new(&places.folder, "swarm")?;
    let mut stage = Stage::new(places, &folder.0)?;
    let tokens = folder.0.join("tokens");
    // They are admitted before the bus starts.
    let mut admit = Command::new(&program);
    text_of(admit.arg("admit").arg(stage.keys()).arg(SWARM.to_string()).arg(&tokens))?;
    stage.serve(places)?;
    let target = server::target(&places.throng, &folder.0, &["http"], None)?;
    let steps = (0..10).map(|step| format!("{{http: GET /{step}}}")).collect::<Vec<_>>();
    let scenario = format!(
        "target: http://127.0.0.1:{}\nsessions: {{busy: {{steps: [{}]}}}}\n\
         load: [{{arrivals: {BUSY}/s, for: {SWARM_SECONDS}s}}]\n",
        target.port,
        steps.join(", ")
    );
    stage.ran(&scenario, 1, &["--agent-label", "real=yes"])?;
    let (lines, bytes) = stage.lines_of_an_agent()?;
    let limit = AROUND + Duration::from_secs(SWARM_SECONDS);
    let mut join = Command::new(program);
    join.arg("join").arg(tokens).arg(lines).arg(stage.version()?).arg(limit.as_secs().to_string());
    let swarm = child::start(join, None, &folder.0, "swarm")?;
    let run = stage.run(&scenario, SWARM, &["--agent-label", "swarm=yes"])?;
    let bus = stage.bus()?;
    let errors = folder.0.join("run.err");
    let mut display = Display::default();
    let ended = run.watch(TICK, limit, |controller| {
        display.look([controller, bus], &std::fs::read_to_string(&errors).unwrap_or_default());
    })?;
    let summary = stage::json(&ended)?;
    let swarm = stage::json(&swarm.wait(Duration::from_secs(30))?)?;
    let zero = stage.zero_unix_ns().ok_or("the record tells no start")?;
    let data = Some(format!("{} B/s as JSON", spaced(bytes / SWARM_SECONDS)));
    let lines = display.lines(zero, &summary, &swarm);
    Ok(line("data per agent", "", data, None) + &lines)
}

/// The second of the run that a line of the display is about.
fn second_of(line: &str) -> Option<u64> {
    let word = line.split_whitespace().next()?.strip_suffix('s')?;
    let (minutes, seconds) = word.split_once('m').unwrap_or(("0", word));
    Some(minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_display_are_about_a_second() {
        assert_eq!(second_of("   7s  1000/s"), Some(7));
        assert_eq!(second_of("1m05s"), Some(65));
        assert_eq!((second_of("time  rate"), second_of("")), (None, None));
    }
}
