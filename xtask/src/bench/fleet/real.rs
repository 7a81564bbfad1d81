//! Real agents as processes of this machine: up to 20 together generate the load of one, and start
//! at the same time.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use throng_base::clock::wall_now;

use super::super::report::Line;
use super::super::server;
use super::super::throng::has_figures;
use super::super::tool::Places;
use super::stage::{Stage, summary};
use crate::programs::{cargo, finish};

const LIMIT: Duration = Duration::from_secs(180);
/// The latency of the target.
const LATENCY: &str = "20ms";
/// The relative width of histogram buckets.
const BUCKET: f64 = 0.008;
const STARTS_MS_MAX: f64 = 5.0;

/// The number of attempts of each step.
type Rows = Vec<(String, u64)>;

/// Rows of one scenario on this many agents, compared with those of one.
pub(super) fn counts(stage: &mut Stage, fleets: &[usize]) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let mut one: Option<(Rows, [f64; 2])> = None;
    for count in fleets {
        stage.agents(*count)?;
        let throng = stage.throng.clone();
        let words = ["http", "--latency", LATENCY];
        let (target, admin) = server::throng_target_everywhere(&throng, &stage.folder, &words)?;
        let text = scenario(target.port);
        let flag = format!("--agents={count}");
        let ended = stage.run(&text, &[&flag, "--quiet", "--shards=1"])?.wait(LIMIT)?;
        if !has_figures(ended.status) {
            return Err(format!("{count} agents: {}", ended.complaint()));
        }
        let summary = summary(&ended)?;
        let rows = rows(&summary);
        let begun: u64 = rows.iter().map(|(_, begun)| begun).sum();
        let served = server::stats(admin)?["requests"].as_u64().unwrap_or(0);
        let time = |name: &str| summary["total"]["latency"][name].as_f64().unwrap_or(f64::NAN);
        let times = [time("p50_ns"), time("p90_ns")];
        let (wanted, before) = one.get_or_insert_with(|| (rows.clone(), times));
        let apart = times.iter().zip(before.iter()).map(|(now, then)| (now / then - 1.0).abs());
        let apart = apart.fold(0.0, f64::max);
        let is_same = rows == *wanted && served == begun;
        let seen = format!(
            "{count} agents: {begun} started, {served} at the target; p50 {:.2} ms, p90 {:.2} ms",
            times[0] / 1e6,
            times[1] / 1e6
        );
        let line = Line::new("one scenario", "same counts as 1 agent, same buckets", Some(seen));
        lines.push(line.met(Some(is_same && apart <= 2.0 * BUCKET)));
    }
    Ok(lines)
}

fn rows(summary: &Value) -> Rows {
    let rows = summary["steps"].as_array().into_iter().flatten();
    let row = |row: &Value| Some((row["name"].as_str()?.to_string(), row["begun"].as_u64()?));
    rows.filter_map(row).collect()
}

fn scenario(port: u16) -> String {
    format!(
        "target: http://127.0.0.1:{port}
seed: 7
sessions:
  comer: {{steps: [{{http: GET /come}}, {{think: 30ms}}, {{http: GET /go}}]}}
  worker: {{steps: [{{http: GET /work}}]}}
loads:
  comers: {{sessions: comer, phases: [{{arrivals: 60/s, for: 8s}}]}}
  workers: {{sessions: worker, phases: [{{iterations: 1203, users: 40}}]}}
"
    )
}

/// The spread of the first requests of all agents at the target, per round.
pub(super) fn starts(stage: &mut Stage, count: usize, rounds: u32) -> Result<Vec<Line>, String> {
    stage.agents(count)?;
    let mut spreads = Vec::new();
    for _ in 0..rounds {
        let clock = Arrivals::listen()?;
        let port = clock.port;
        let text = format!(
            "target: http://127.0.0.1:{port}\nsessions: {{one: {{steps: [{{http: GET /}}, {{think: 1h}}]}}}}\n\
             load: [{{users: {count}, for: 2s}}]\n"
        );
        let flag = format!("--agents={count}");
        let words = [flag.as_str(), "--quiet", "--shards=1"];
        let ended = stage.run(&text, &words)?.wait(LIMIT)?;
        if !has_figures(ended.status) {
            return Err(format!("{count} agents: {}", ended.complaint()));
        }
        let zero = stage.zero_unix_ns().ok_or("the record tells no start")?;
        let mut times = clock.times();
        times.sort_unstable();
        if times.len() != count {
            return Err(format!("{} of {count} first requests arrived", times.len()));
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        spreads.push((ms(times[count - 1] - times[0]), ms(times[0].saturating_sub(zero))));
    }
    spreads.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shown = spreads.iter().map(|(spread, late)| format!("{spread:.1} ms (+{late:.1})"));
    let seen = shown.collect::<Vec<_>>().join(", ");
    let worst = spreads.last().map(|(spread, _)| *spread);
    let line = Line::new(
        "first to last start, per round (and delay of the first)",
        format!("{STARTS_MS_MAX} ms"),
        Some(seen),
    );
    Ok(vec![line.met(worst.map(|worst| worst <= STARTS_MS_MAX))])
}

/// Responds once to each agent, and records the arrivals.
struct Arrivals {
    port: u16,
    times: Arc<Mutex<Vec<u64>>>,
}

impl Arrivals {
    fn listen() -> Result<Arrivals, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let times = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&times);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let now = u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX);
                own.lock().unwrap_or_else(PoisonError::into_inner).push(now);
                std::thread::spawn(move || answer(stream));
            }
        });
        Ok(Arrivals { port, times })
    }

    fn times(&self) -> Vec<u64> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(mut stream: TcpStream) {
    let mut buffer = [0; 2048];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// The lines of one real agent under the load of `text`.
pub(super) fn recorded(stage: &mut Stage, text: &str) -> Result<String, String> {
    stage.agents(1)?;
    let words = ["--agents=1", "--agent-label", "real=yes", "--quiet"];
    let ended = stage.run(text, &words)?.wait(LIMIT)?;
    if !has_figures(ended.status) {
        return Err(format!("a run to be repeated: {}", ended.complaint()));
    }
    stage.told_by(0)
}

/// Builds the program that simulates many agents.
pub(super) fn swarm_program(places: &Places) -> Result<std::path::PathBuf, String> {
    let words = ["build", "--release", "-p", "throng-fleet", "--example", "swarm"];
    finish(&mut cargo(&places.root, &words))?;
    Ok(places.target.join("release/examples/swarm"))
}
