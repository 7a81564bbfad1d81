//! The tools beside each other: how each is told the same load, and where each says what it did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::contest::Sample;
use super::{TOOL_CORE, child, server, throng};
use crate::packages;

/// A tool that falls behind may take this many times as long as it was told …
const PATIENCE: u32 = 8;
/// … and this, to start and to end.
const GRACE: Duration = Duration::from_secs(60);
/// wrk2 opens a connection in so much time, each thread its own, before it keeps the whole rate.
const WRK2_OPENS_ONE_S: f64 = 0.005;
/// Neither throng nor a target that counts begins before this is over: each connection is opened
/// by its first request, whose latency has the time to connect, of which the target knows nothing.
const WARM_UP: (&str, Duration) = ("1s", Duration::from_secs(1));
/// What is called in gRPC, and with what.
const METHOD: &str = "echo.v1.Echo/Say";
const MESSAGE: &str = r#"{"text":"hello"}"#;

/// A way to make load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// `throng bench`, with its default precision.
    Throng,
    /// The same with another one.
    Precise(&'static str),
    /// `throng run` of a file below `benches/`; what rows call it.
    Scenario(&'static str, &'static str),
    Wrk,
    Ab,
    H2load,
    Hey,
    K6,
    Ghz,
    Wrk2,
    Vegeta,
}

/// What is done over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolKind {
    KeepAlive,
    /// A connection for each request.
    Short,
    /// So many requests at once over HTTP/2.
    Streams(u32),
    Call,
    /// A message over WebSocket that comes back.
    Echo,
}

/// What every tool is told.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) url: String,
    pub(super) kind: ToolKind,
    pub(super) connections: u32,
    pub(super) seconds: u32,
    /// Requests a second, of all connections together; as many as can be if left out.
    pub(super) rate: Option<u32>,
    /// On a core of its own with one thread, or on all of them with two.
    pub(super) pinned: bool,
    /// The port of a target that knows how long it took. Where the tool can leave the first second
    /// out, it counts nothing of it either.
    pub(super) served: Option<u16>,
    /// Further flags of `throng bench`, and variables of scenarios, where they ask for them.
    pub(super) more: Vec<String>,
}

/// Where the bench's files, throng's binary and the workspace are.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) folder: PathBuf,
    pub(super) throng: PathBuf,
    pub(super) root: PathBuf,
    /// Of cargo.
    pub(super) target: PathBuf,
}

impl Tool {
    pub(super) fn is_throng(self) -> bool {
        matches!(self, Tool::Throng | Tool::Precise(_) | Tool::Scenario(..))
    }

    pub(super) fn name(self) -> String {
        match self {
            Tool::Throng => "throng bench".to_string(),
            Tool::Precise(precision) => format!("throng, {precision}"),
            Tool::Scenario(name, _) => name.to_string(),
            other => other.word().to_string(),
        }
    }

    /// The word for it on the command line, and for those of others the program.
    pub(super) fn word(self) -> &'static str {
        match self {
            Tool::Throng | Tool::Precise(_) => "throng",
            Tool::Scenario(..) => "scenario",
            Tool::Wrk => "wrk",
            Tool::Ab => "ab",
            Tool::H2load => "h2load",
            Tool::Hey => "hey",
            Tool::K6 => "k6",
            Tool::Ghz => "ghz",
            Tool::Wrk2 => "wrk2",
            Tool::Vegeta => "vegeta",
        }
    }

    /// Whether it tells percentiles.
    pub(super) fn tells_times(self) -> bool {
        self != Tool::H2load
    }

    /// The program, or how to get it.
    pub(super) fn program(self, places: &Places) -> Result<PathBuf, String> {
        let install = match self {
            _ if self.is_throng() && places.throng.is_file() => return Ok(places.throng.clone()),
            Tool::Throng | Tool::Precise(_) | Tool::Scenario(..) => {
                "cargo build --release -p throng"
            }
            Tool::Wrk => "apt-get install wrk",
            Tool::Ab => "apt-get install apache2-utils",
            Tool::H2load => "apt-get install nghttp2-client",
            Tool::Hey => "go install github.com/rakyll/hey@latest",
            Tool::K6 => "go install go.k6.io/k6@latest",
            Tool::Ghz => "go install github.com/bojand/ghz/cmd/ghz@latest",
            Tool::Wrk2 => {
                "build https://github.com/giltene/wrk2 and put its `wrk` on the PATH, as `wrk2`"
            }
            Tool::Vegeta => "go install github.com/tsenart/vegeta/v12@latest",
        };
        let found = if self.is_throng() { None } else { packages::program(self.word()) };
        found.ok_or_else(|| format!("missing; install it with: {install}"))
    }

    /// Makes the load once.
    pub(super) fn measure(self, load: &Load, places: &Places) -> Result<Sample, String> {
        if self == Tool::H2load && load.kind == ToolKind::Short {
            // Seen with 1.52: it opens connections for ever and does not end.
            return Err("does not end if the server closes connections".to_string());
        }
        let limit = Duration::from_secs((load.seconds * PATIENCE).into()) + GRACE;
        let start = |command, core| child::start(command, core, &places.folder, self.word());
        let running = start(self.command(load, places)?, load.pinned.then_some(TOOL_CORE))?;
        if let (true, Some(port)) = (self.is_throng(), load.served) {
            running.stay(WARM_UP.1)?;
            server::ask(port, "POST /throng/reset HTTP/1.1", "")?;
        }
        let mut ended = running.wait(limit)?;
        let has_ended_well = match self.is_throng() {
            true => throng::has_figures(ended.status),
            false => ended.status.success(),
        };
        if self == Tool::Vegeta && has_ended_well {
            // What it wrote while it loaded is read afterwards: that is no part of the load.
            let mut report = Command::new(self.program(places)?);
            report.args(["report", "-type=json"]).arg(results(places));
            ended.output = start(report, None)?.wait(limit)?.output;
        }
        let told = self.told(&ended.output, load).filter(|told| has_ended_well && told.ok > 0);
        let told = told.ok_or_else(|| ended.complaint())?;
        let served_us = load.served.map(served_us).transpose()?;
        Ok(Sample { cpu: ended.cpu, served_us, ..told })
    }

    /// The command that makes the load.
    fn command(self, load: &Load, places: &Places) -> Result<Command, String> {
        let (connections, seconds) = (load.connections.to_string(), load.seconds.to_string());
        let (time, threads) = (format!("{seconds}s"), load.threads().to_string());
        let rate = load.rate.unwrap_or(0);
        let mut command = Command::new(self.program(places)?);
        match self {
            Tool::Throng | Tool::Precise(_) => return Ok(self.bench(load, places)),
            Tool::Scenario(_, file) => return Ok(scenario(file, load, places)),
            Tool::Wrk => {
                command.args(["-t1", "-c", &connections, "-d", &time]);
                if load.kind == ToolKind::Short {
                    command.args(["-H", "Connection: close"]);
                }
            }
            Tool::Ab => {
                if load.kind != ToolKind::Short {
                    command.arg("-k");
                }
                // `-t` implies a small `-n`, so `-n` comes after it.
                command.args(["-q", "-r", "-c", &connections, "-t", &seconds, "-n", "10000000"]);
            }
            Tool::H2load => {
                match load.kind {
                    ToolKind::Streams(streams) => command.args(["-m", &streams.to_string()]),
                    _ => command.arg("--h1"),
                };
                command.args(["-t", &threads, "-c", &connections, "-D", &seconds]);
                if let Some(rate) = load.rate {
                    let each = f64::from(rate) / f64::from(load.connections);
                    command.args(["--rps", &each.to_string()]);
                }
            }
            Tool::Hey => {
                command.args(["-z", &time, "-c", &connections]);
                if load.kind == ToolKind::Short {
                    command.arg("-disable-keepalive");
                }
            }
            Tool::K6 => {
                let file = write(&places.folder, "k6.js", &k6_script(load))?;
                command.args(["run", "--quiet", "--no-usage-report"]).arg(file);
                return Ok(command);
            }
            Tool::Ghz => {
                command.args(["--insecure", "--call", METHOD, "-d", MESSAGE, "-O", "json"]);
                command.args(["-c", &connections, "--connections", &connections, "-z", &time]);
                // It has no flag for that, and would take both cores.
                command.env("GOMAXPROCS", "1");
                let address = load.url.trim_start_matches("grpc://").trim_end_matches('/');
                command.arg(address);
                return Ok(command);
            }
            Tool::Wrk2 => {
                command.args(["-t", &threads, "-c", &connections, "-d", &time]);
                command.args(["-R", &rate.to_string(), "--latency"]);
            }
            Tool::Vegeta => return vegeta(command, load, places),
        }
        command.arg(&load.url);
        Ok(command)
    }

    fn bench(self, load: &Load, places: &Places) -> Command {
        let mut more: Vec<String> =
            load.rate.iter().flat_map(|rate| ["--rate".to_string(), rate.to_string()]).collect();
        let mut add = |words: &[&str]| more.extend(words.iter().map(|word| (*word).to_string()));
        if let Tool::Precise(precision) = self {
            add(&["--precision", precision]);
        }
        match load.kind {
            ToolKind::KeepAlive => {}
            ToolKind::Short => add(&["--no-keepalive"]),
            ToolKind::Streams(streams) => add(&["--http2", "--streams", &streams.to_string()]),
            ToolKind::Call => add(&["--body", MESSAGE]),
            ToolKind::Echo => add(&["--body", "hello"]),
        }
        if load.served.is_some() {
            add(&["--warm-up", WARM_UP.0]);
        }
        let more: Vec<&str> = more.iter().chain(&load.more).map(String::as_str).collect();
        let method = if load.kind == ToolKind::Call { METHOD } else { "" };
        let url = format!("{}{method}", load.url);
        throng::bench(&places.throng, &url, load.connections, load.seconds, &more)
    }

    /// Reads what the tool did from what it printed.
    fn told(self, output: &str, load: &Load) -> Option<Sample> {
        let seconds = f64::from(load.seconds);
        let sample = match self {
            Tool::Throng | Tool::Precise(_) | Tool::Scenario(..) => throng::sample(output),
            Tool::Wrk => wrk_done(output),
            Tool::Wrk2 => wrk2_done(output, load),
            Tool::Ab => ab_done(output),
            Tool::H2load => h2load_done(output),
            Tool::Hey => Some(hey_done(output)),
            Tool::K6 => k6_done(output),
            Tool::Ghz => ghz_done(output),
            Tool::Vegeta => vegeta_done(output),
        };
        sample.map(|sample| match sample.seconds > 0.0 {
            true => sample,
            false => Sample { seconds, ..sample },
        })
    }
}

fn scenario(file: &str, load: &Load, places: &Places) -> Command {
    let file = places.root.join("benches").join(file);
    let text = fs::read_to_string(&file).unwrap_or_default();
    let target = load.url.trim_end_matches('/');
    let mut command = Command::new(&places.throng);
    command.arg("run").arg(file).args(["--set", &format!("target={target}")]);
    command.args(["--set", &format!("users={}", load.connections)]);
    command.args(["--set", &format!("time={}s", load.seconds)]);
    let is_asked = |var: &&String| {
        var.split('=').next().is_some_and(|name| text.contains(&format!("vars.{name}}}")))
    };
    for var in load.more.iter().filter(is_asked) {
        command.args(["--set", var]);
    }
    command.args(["--quiet", "--json", "--no-record"]);
    command
}

fn vegeta(mut command: Command, load: &Load, places: &Places) -> Result<Command, String> {
    let targets = write(&places.folder, "vegeta.targets", &format!("GET {}\n", load.url))?;
    let (rate, connections) = (load.rate.unwrap_or(0).to_string(), load.connections.to_string());
    command.args(["attack", "-rate", &rate, "-duration", &format!("{}s", load.seconds)]);
    command.args(["-max-body", "0", "-connections", &connections, "-max-workers", &connections]);
    command.arg("-targets").arg(targets).arg("-output").arg(results(places));
    Ok(command)
}

impl Load {
    /// On a core of its own, and as fast as it can.
    pub(super) fn new(url: String, kind: ToolKind, connections: u32, seconds: u32) -> Load {
        let (rate, served, more) = (None, None, Vec::new());
        Load { url, kind, connections, seconds, rate, pinned: true, served, more }
    }

    fn threads(&self) -> u32 {
        if self.pinned { 1 } else { 2 }
    }
}

/// The p50 and the p99 of what the target at this port served.
fn served_us(port: u16) -> Result<[f64; 2], String> {
    let stats = server::stats(port)?;
    let [p50, p99] = ["p50_ns", "p99_ns"].map(|name| {
        let ns = stats.pointer(&format!("/service_time/{name}")).and_then(Value::as_f64);
        ns.map(|ns| ns / 1e3).ok_or_else(|| format!("the target tells no {name}"))
    });
    Ok([p50?, p99?])
}

pub(super) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let file = folder.join(name);
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

/// Where vegeta writes what it did.
fn results(places: &Places) -> PathBuf {
    places.folder.join("vegeta.results")
}

/// Of an echo each user sends, waits for the answer and sends again, until the time is over.
fn k6_script(load: &Load) -> String {
    let Load { url, connections, seconds, kind, .. } = load;
    let summary = "export function handleSummary(data) \
                   { return { stdout: JSON.stringify(data) }; }\n";
    if *kind == ToolKind::Echo {
        return format!(
            "import ws from 'k6/ws';\n\
             export const options = {{ scenarios: {{ echo: {{ executor: 'per-vu-iterations', \
             vus: {connections}, iterations: 1, maxDuration: '{}s' }} }} }};\n\
             export default function () {{\n  ws.connect('{url}', {{}}, (socket) => {{\n    \
             socket.on('open', () => socket.send('hello'));\n    \
             socket.on('message', () => socket.send('hello'));\n    \
             socket.setTimeout(() => socket.close(), {seconds} * 1000);\n  }});\n}}\n{summary}",
            seconds + 10
        );
    }
    format!(
        "import http from 'k6/http';\n\
         export const options = {{ vus: {connections}, duration: '{seconds}s', \
         noConnectionReuse: {} }};\n\
         export default function () {{ http.get('{url}'); }}\n{summary}",
        *kind == ToolKind::Short
    )
}

fn done(ok: u64, failed: u64) -> Sample {
    Sample { ok, failed, valid: true, ..Sample::default() }
}

/// The number directly before `after`, on the first line that contains it.
fn number_before(output: &str, after: &str) -> Option<u64> {
    let (before, _) = output.split_once(after)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The number that follows `before` after blanks.
fn number_after(output: &str, before: &str) -> Option<u64> {
    let (_, after) = output.split_once(before)?;
    after.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn wrk_done(output: &str) -> Option<Sample> {
    let all = number_before(output, " requests in ")?;
    let bad = number_after(output, "Non-2xx or 3xx responses:").unwrap_or(0);
    let errors = output.lines().find_map(|line| line.trim().strip_prefix("Socket errors:"));
    let lost: u64 = errors
        .into_iter()
        .flat_map(|line| line.split(|c: char| !c.is_ascii_digit()))
        .filter_map(|number| number.parse::<u64>().ok())
        .sum();
    Some(done(all.saturating_sub(bad), bad + lost))
}

/// It is counted from when half of its connections are open.
fn wrk2_done(output: &str, load: &Load) -> Option<Sample> {
    let at = |share: &str| {
        let line = output.lines().find_map(|line| line.trim().strip_prefix(share))?;
        Some(units::parse_duration(line).ok()?.as_secs_f64() * 1e6)
    };
    let opened_last = f64::from(load.connections / load.threads()) - 1.0;
    let seconds = f64::from(load.seconds) - opened_last.max(0.0) / 2.0 * WRK2_OPENS_ONE_S;
    let times_us = [at("50.000%"), at("99.000%")];
    Some(Sample { seconds, times_us, ..wrk_done(output)? })
}

fn ab_done(output: &str) -> Option<Sample> {
    let all = number_after(output, "Complete requests:")?;
    let failed = number_after(output, "Failed requests:")?
        + number_after(output, "Non-2xx responses:").unwrap_or(0);
    Some(done(all.saturating_sub(failed), failed))
}

fn h2load_done(output: &str) -> Option<Sample> {
    let requests = output.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let failed = number_before(requests, " failed")? + number_before(requests, " errored")?;
    let good = output.lines().find_map(|line| line.strip_prefix("status codes: "))?;
    Some(done(number_before(good, " 2xx")?, failed))
}

/// hey prints `  [200]\t64894 responses` per status and `  [12]\tGet …` per error.
fn hey_done(output: &str) -> Sample {
    let (mut ok, mut failed) = (0, 0);
    for line in output.lines() {
        let Some((label, rest)) =
            line.trim().strip_prefix('[').and_then(|line| line.split_once("]\t"))
        else {
            continue;
        };
        match rest.strip_suffix(" responses").map(str::parse::<u64>) {
            Some(Ok(count)) if label.starts_with('2') => ok += count,
            Some(Ok(count)) => failed += count,
            _ => failed += label.parse().unwrap_or(0),
        }
    }
    done(ok, failed)
}

fn k6_done(output: &str) -> Option<Sample> {
    let summary: Value = serde_json::from_str(output.trim()).ok()?;
    let metrics = &summary["metrics"];
    if let Some(messages) = metrics["ws_msgs_received"]["values"]["count"].as_u64() {
        return Some(done(messages, 0));
    }
    let all = metrics["http_reqs"]["values"]["count"].as_u64()?;
    let failed = metrics["http_req_failed"]["values"]["passes"].as_u64()?;
    Some(done(all.saturating_sub(failed), failed))
}

/// What ghz does not end in time it counts as `Unavailable` or `Canceled`.
fn ghz_done(output: &str) -> Option<Sample> {
    let summary: Value = serde_json::from_str(output.trim()).ok()?;
    let ok = summary["statusCodeDistribution"]["OK"].as_u64()?;
    Some(done(ok, summary["count"].as_u64()?.saturating_sub(ok)))
}

fn vegeta_done(output: &str) -> Option<Sample> {
    let report: Value = serde_json::from_str(output).ok()?;
    let us = |place: &str| Some(report.pointer(place)?.as_f64()? / 1e3);
    let all = report.get("requests")?.as_u64()?;
    let codes = report.get("status_codes")?.as_object()?.iter();
    let good = codes.filter(|(code, _)| code.starts_with('2'));
    let ok = good.filter_map(|(_, count)| count.as_u64()).sum();
    let times_us = [us("/latencies/50th"), us("/latencies/99th")];
    let seconds = us("/duration")? / 1e6;
    Some(Sample { seconds, times_us, ..done(ok, all.saturating_sub(ok)) })
}

#[cfg(test)]
mod tests;
