//! The load generators that are compared: how to get each, and how to read what it prints. What
//! each of them runs is in the rows of the benches, as a command line with values such as `@URL@`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::contest::Sample;
use super::server::{self, Server};
use super::{Places, child};
use crate::packages;

/// A tool that falls behind may take this many times as long as it was told …
const PATIENCE: u32 = 8;
/// … and this, to start and to end.
const GRACE: Duration = Duration::from_secs(60);
/// Where the target's times are compared, neither throng nor the target counts this time: each
/// connection is opened by its first request, whose latency includes the time to connect, of which
/// the target knows nothing.
pub(super) const WARM_UP: &str = " --warm-up 1s";
const WARM_UP_TIME: Duration = Duration::from_secs(1);

/// A load generator. The first word of a command line is its name.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Below cargo's target folder; if empty, on the PATH.
    program: &'static str,
    install: &'static str,
    /// What makes it print its version; empty if it prints none.
    version: &'static str,
    /// Appended to each of its command lines.
    more: &'static str,
    environment: &'static [(&'static str, &'static str)],
    read: fn(&str) -> Option<Sample>,
}

const fn tool(
    name: &'static str,
    install: &'static str,
    version: &'static str,
    read: fn(&str) -> Option<Sample>,
) -> Tool {
    Tool { name, program: "", install, version, more: "", environment: &[], read }
}

const TOOLS: [Tool; 12] = [
    Tool {
        program: "release/throng",
        more: " --quiet --json --no-record",
        ..tool("throng", "cargo build --release -p throng", "--version", throng_done)
    },
    tool("wrk", "apt-get install wrk", "-v", wrk_done),
    tool("ab", "apt-get install apache2-utils", "-V", ab_done),
    tool("h2load", "apt-get install nghttp2-client", "--version", h2load_done),
    tool("hey", "go install github.com/rakyll/hey@latest", "", hey_done),
    Tool {
        more: " --quiet --no-usage-report",
        ..tool("k6", "go install go.k6.io/k6@latest", "version", k6_done)
    },
    Tool {
        // It has no flag for that, and would take both cores.
        environment: &[("GOMAXPROCS", "1")],
        ..tool("ghz", "go install github.com/bojand/ghz/cmd/ghz@latest", "--version", ghz_done)
    },
    tool(
        "wrk2",
        "build https://github.com/giltene/wrk2 and put its `wrk` on the PATH, as `wrk2`",
        "",
        wrk2_done,
    ),
    tool("vegeta", "go install github.com/tsenart/vegeta/v12@latest", "-version", vegeta_done),
    Tool {
        // Its cookie is kept in its home. `epmd`, which it starts and leaves behind, is ours alone
        // by its port, so that it can be ended.
        environment: &[("HOME", "@FOLDER@"), ("ERL_EPMD_PORT", "@EPMD@")],
        ..tool("tsung", "apt-get install tsung", "-v", |_| None)
    },
    Tool {
        program: "ci/python/bin/locust",
        ..tool(
            "locust",
            "python3 -m venv target/ci/python && \
             target/ci/python/bin/pip install locust websocket-client",
            "--version",
            |_| None,
        )
    },
    Tool {
        program: "ci/artillery/node_modules/.bin/artillery",
        environment: &[("ARTILLERY_DISABLE_TELEMETRY", "true"), ("HOME", "@FOLDER@")],
        ..tool(
            "artillery",
            "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 \
             npm install --prefix target/ci/artillery artillery",
            "",
            |_| None,
        )
    },
];

/// The values that a command line names: `@URL@` is the one called `URL`.
pub(super) type Values = Vec<(&'static str, String)>;

pub(super) fn filled(text: &str, values: &Values) -> String {
    let fill =
        |text: String, (name, value): &(&str, String)| text.replace(&format!("@{name}@"), value);
    values.iter().fold(text.to_string(), fill)
}

/// A command line to measure.
pub(super) struct Load<'a> {
    pub(super) line: &'a str,
    pub(super) values: Values,
    pub(super) seconds: u32,
    /// Where it runs, unless on all cores.
    pub(super) core: Option<usize>,
    /// A target that measures its responses.
    pub(super) served: Option<&'a Server>,
}

impl Tool {
    /// The tool of a command line, and its words.
    fn of(line: &str) -> Result<(&'static Tool, impl Iterator<Item = &str>), String> {
        const ALL: &[Tool] = &TOOLS;
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let tool = ALL.iter().find(|tool| tool.name == name);
        Ok((tool.ok_or_else(|| format!("`{name}` is not a tool"))?, words))
    }

    fn program(&self, places: &Places) -> Result<PathBuf, String> {
        let found = match self.name {
            "throng" => Some(places.throng.clone()),
            name => Some(places.target.join(self.program))
                .filter(|_| !self.program.is_empty())
                .filter(|own| own.is_file())
                .or_else(|| packages::program(name)),
        };
        let found = found.filter(|program| program.is_file());
        found.ok_or_else(|| format!("missing; install it with: {}", self.install))
    }

    fn version(&self, places: &Places) -> Option<String> {
        let program = self.program(places).ok()?;
        match self.name {
            "artillery" => {
                // It prints ASCII art before its version.
                let package = program.parent()?.parent()?.join("artillery/package.json");
                let package: Value =
                    serde_json::from_str(&fs::read_to_string(package).ok()?).ok()?;
                Some(format!("artillery {}", package["version"].as_str()?))
            }
            name if self.version.is_empty() => Some(format!("{name} (no version)")),
            name => version(name, &program, &[self.version], &places.folder),
        }
    }
}

/// Those of these tools that are installed, with their versions.
pub(super) fn versions<'a>(
    names: &'a [&'a str],
    places: &'a Places,
) -> impl Iterator<Item = String> + 'a {
    let tools = TOOLS.iter().filter(|tool| names.contains(&tool.name));
    tools.filter_map(|tool| tool.version(places))
}

/// The label with the version that the program prints when it is started in this folder.
pub(super) fn version(
    label: &str,
    program: &Path,
    arguments: &[&str],
    folder: &Path,
) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().find(|line| !line.trim().is_empty())?;
    Some(format!("{label} {}", version_in(line, label)))
}

/// The version alone, of lines such as `This is ApacheBench, Version 2.3 <$Revision$>` and
/// `wrk debian/4.1.0-3+b2 [epoll] Copyright …`.
fn version_in<'a>(line: &'a str, label: &str) -> &'a str {
    let start = [" version: ", "Version: ", "Version ", " version "]
        .iter()
        .find_map(|word| line.split_once(word));
    let rest = start.map_or(line, |(_, rest)| rest).trim_start();
    let rest = rest.strip_prefix(label).filter(|rest| rest.starts_with(' ')).unwrap_or(rest);
    rest.split([' ', '(', '<', '[']).find(|word| !word.is_empty()).unwrap_or("unknown")
}

pub(super) fn command(
    line: &str,
    values: &Values,
    places: &Places,
) -> Result<(&'static str, Command), String> {
    let (tool, words) = Tool::of(line)?;
    let mut command = Command::new(tool.program(places)?);
    command.args(words.chain(tool.more.split_whitespace()).map(|word| filled(word, values)));
    command.envs(tool.environment.iter().map(|(name, value)| (name, filled(value, values))));
    Ok((tool.name, command))
}

/// True if a run of throng ended with figures: thresholds met or not (0, 1), or a result that
/// throng itself calls invalid (5), as it may when the bench gives it a single core to exhaust.
pub(super) fn has_figures(ended: &child::Ended) -> bool {
    matches!(ended.status.code(), Some(0 | 1 | 5))
}

/// Runs the command line once.
pub(super) fn measure(load: &Load<'_>, places: &Places) -> Result<Sample, String> {
    let limit = Duration::from_secs((load.seconds * PATIENCE).into()) + GRACE;
    let start = |line, core| {
        let (name, command) = command(line, &load.values, places)?;
        child::start(command, core, &places.folder, name)
    };
    let (tool, _) = Tool::of(load.line)?;
    let running = start(load.line, load.core)?;
    if let ("throng", Some(target)) = (tool.name, load.served) {
        running.stay(WARM_UP_TIME)?;
        server::ask(target.admin, "POST /throng/reset HTTP/1.1", "")?;
    }
    let mut ended = running.wait(limit)?;
    let is_good = match tool.name {
        "throng" => has_figures(&ended),
        _ => ended.status.success(),
    };
    if tool.name == "vegeta" && is_good {
        // Its results are read afterwards: that is not part of the load.
        ended.output =
            start("vegeta report -type=json @FOLDER@/vegeta.results", None)?.wait(limit)?.output;
    }
    let sample = (tool.read)(&ended.output).filter(|sample| is_good && sample.ok > 0);
    let sample = sample.ok_or_else(|| ended.complaint())?;
    let seconds = if sample.seconds > 0.0 { sample.seconds } else { load.seconds.into() };
    let served_us = load.served.map(served_us).transpose()?;
    Ok(Sample { cpu: ended.cpu, seconds, served_us, ..sample })
}

/// The p50 and the p99 of what the target served.
fn served_us(target: &Server) -> Result<[f64; 2], String> {
    let stats = target.stats()?;
    let us = |place| at(&stats, place).map(|ns| ns / 1e3);
    let times = us("/service_time/p50_ns").zip(us("/service_time/p99_ns"));
    times.map(Into::into).ok_or_else(|| "the target tells no times".to_string())
}

fn done(ok: u64, failed: u64) -> Sample {
    Sample { ok, failed, ..Sample::default() }
}

/// The number at a place of a JSON document.
pub(super) fn at(document: &Value, place: &str) -> Option<f64> {
    document.pointer(place)?.as_f64()
}

fn count(document: &Value, place: &str) -> Option<u64> {
    document.pointer(place)?.as_u64()
}

/// What the summary of `--json` tells; see docs/json.md.
fn throng_done(output: &str) -> Option<Sample> {
    let summary: Value = serde_json::from_str(output).ok()?;
    let us = |place| at(&summary, place).map(|ns| ns / 1e3);
    let times_us = [us("/total/latency/p50_ns"), us("/total/latency/p99_ns")];
    let sample = done(count(&summary, "/total/ok")?, count(&summary, "/total/failed")?);
    Some(Sample { times_us, summary, ..sample })
}

/// The number directly before `after`.
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
    let numbers = errors.into_iter().flat_map(|line| line.split(|c: char| !c.is_ascii_digit()));
    let lost: u64 = numbers.filter_map(|number| number.parse::<u64>().ok()).sum();
    Some(done(all.saturating_sub(bad), bad + lost))
}

fn wrk2_done(output: &str) -> Option<Sample> {
    let at = |share: &str| {
        let line = output.lines().find_map(|line| line.trim().strip_prefix(share))?;
        Some(units::parse_duration(line).ok()?.as_secs_f64() * 1e6)
    };
    Some(Sample { times_us: [at("50.000%"), at("99.000%")], ..wrk_done(output)? })
}

fn ab_done(output: &str) -> Option<Sample> {
    let all = number_after(output, "Complete requests:")?;
    let failed = number_after(output, "Failed requests:")?
        + number_after(output, "Non-2xx responses:").unwrap_or(0);
    Some(done(all.saturating_sub(failed), failed))
}

fn h2load_done(output: &str) -> Option<Sample> {
    let (_, requests) = output.split_once("requests: ")?;
    let failed = number_before(requests, " failed")? + number_before(requests, " errored")?;
    Some(done(number_before(requests, " 2xx")?, failed))
}

/// hey prints `  [200]\t64894 responses` per status and `  [12]\tGet …` per error.
fn hey_done(output: &str) -> Option<Sample> {
    let mut sample = Sample::default();
    for line in output.lines() {
        let line = line.trim().strip_prefix('[').and_then(|line| line.split_once("]\t"));
        let Some((label, rest)) = line else { continue };
        match rest.strip_suffix(" responses").map(str::parse::<u64>) {
            Some(Ok(count)) if label.starts_with('2') => sample.ok += count,
            Some(Ok(count)) => sample.failed += count,
            _ => sample.failed += label.parse().unwrap_or(0),
        }
    }
    Some(sample)
}

fn k6_done(output: &str) -> Option<Sample> {
    let summary: Value = serde_json::from_str(output.trim()).ok()?;
    if let Some(messages) = count(&summary, "/metrics/ws_msgs_received/values/count") {
        return Some(done(messages, 0));
    }
    let all = count(&summary, "/metrics/http_reqs/values/count")?;
    let failed = count(&summary, "/metrics/http_req_failed/values/passes")?;
    Some(done(all.saturating_sub(failed), failed))
}

/// Calls that do not end in time are counted as `Unavailable` or `Canceled`.
fn ghz_done(output: &str) -> Option<Sample> {
    let summary: Value = serde_json::from_str(output.trim()).ok()?;
    let ok = count(&summary, "/statusCodeDistribution/OK")?;
    Some(done(ok, count(&summary, "/count")?.saturating_sub(ok)))
}

fn vegeta_done(output: &str) -> Option<Sample> {
    let report: Value = serde_json::from_str(output).ok()?;
    let us = |place| at(&report, place).map(|ns| ns / 1e3);
    let all = count(&report, "/requests")?;
    let codes = report["status_codes"].as_object()?.iter();
    let good = codes.filter(|(code, _)| code.starts_with('2'));
    let ok = good.filter_map(|(_, count)| count.as_u64()).sum();
    let times_us = [us("/latencies/50th"), us("/latencies/99th")];
    let seconds = us("/duration")? / 1e6;
    Some(Sample { seconds, times_us, ..done(ok, all.saturating_sub(ok)) })
}

#[cfg(test)]
mod tests;
