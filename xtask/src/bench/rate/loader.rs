//! The tools that keep a rate: how each is told it, and what each says it did.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use crate::bench::child;
use crate::bench::tool::{self, Places, Tool};
use crate::bench::{TOOL_CORE, throng, truth};
use crate::packages;

/// wrk2 opens a connection in so much time, each thread its own, before it keeps the whole rate.
const WRK2_OPENS_ONE_S: f64 = 0.005;
/// A tool that falls behind may take this many times as long as it was told …
const PATIENCE: u32 = 8;
/// … and this, to start and to end.
const GRACE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loader {
    /// With this precision, or with its default.
    Throng(Option<&'static str>),
    Wrk2,
    Vegeta,
    H2load,
}

/// What every tool is told.
pub(super) struct Load {
    pub(super) url: String,
    pub(super) connections: u32,
    /// Requests a second, of all connections together.
    pub(super) rate: u32,
    pub(super) seconds: u32,
    /// On a core of its own with one thread, or on all of them with two.
    pub(super) pinned: bool,
    /// The port of a target that is to count nothing of the first second, where the tool can leave
    /// it out as well.
    pub(super) warm: Option<u16>,
}

/// What a tool says it did. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) ok: u64,
    pub(super) failed: u64,
    /// How long it loaded.
    pub(super) seconds: f64,
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) starts: Option<Starts>,
    /// The tool stands by it.
    pub(super) valid: bool,
}

/// What throng says about its sending.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Starts {
    pub(super) precision: Option<f64>,
    pub(super) late_p50: Option<f64>,
    pub(super) late_p99: Option<f64>,
    pub(super) late_max: Option<f64>,
    /// Requests that were sent by one waking.
    pub(super) together_mean: Option<f64>,
    pub(super) together_max: Option<f64>,
}

impl Loader {
    pub(super) const ALL: [Loader; 7] = [
        Loader::Throng(Some("100us")),
        Loader::Throng(Some("250us")),
        Loader::Throng(Some("1ms")),
        Loader::Throng(None),
        Loader::Wrk2,
        Loader::Vegeta,
        Loader::H2load,
    ];
    pub(super) const WORDS: [&str; 4] = ["throng", "wrk2", "vegeta", "h2load"];

    pub(super) fn name(self) -> String {
        match self {
            Loader::Throng(Some(precision)) => format!("throng, {precision}"),
            Loader::Throng(None) => "throng, default".to_string(),
            other => other.word().to_string(),
        }
    }

    /// The word for it on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Loader::Throng(_) => "throng",
            Loader::Wrk2 => "wrk2",
            Loader::Vegeta => "vegeta",
            Loader::H2load => "h2load",
        }
    }

    /// Whether it tells percentiles.
    pub(super) fn tells_times(self) -> bool {
        self != Loader::H2load
    }

    fn program(self, places: &Places) -> Result<PathBuf, String> {
        let install = match self {
            Loader::Throng(_) => return Tool::Throng.program(places),
            Loader::H2load => return Tool::H2load.program(places),
            Loader::Wrk2 => "build https://github.com/giltene/wrk2 and put its `wrk` on the PATH",
            Loader::Vegeta => "go install github.com/tsenart/vegeta/v12@latest",
        };
        let name = if self == Loader::Wrk2 { ", as `wrk2`" } else { "" };
        packages::program(self.word()).ok_or_else(|| format!("missing; to get it: {install}{name}"))
    }

    /// Makes the load; with the CPU time that the tool took for it.
    pub(super) fn run(self, load: &Load, places: &Places) -> Result<(Told, Duration), String> {
        let core = load.pinned.then_some(TOOL_CORE);
        let limit = Duration::from_secs((load.seconds * PATIENCE).into()) + GRACE;
        let start = |command, core| child::start(command, core, &places.folder, self.word());
        let running = start(self.command(load, places)?, core)?;
        if let (Loader::Throng(_), Some(port)) = (self, load.warm) {
            truth::warm_up(&running, port)?;
        }
        let ended = running.wait(limit)?;
        let told = match self {
            Loader::Throng(_) if throng::has_figures(ended.status) => {
                throng_told(&ended.output, load)
            }
            _ if !ended.status.success() => None,
            Loader::Vegeta => {
                // What it wrote while it loaded is read afterwards: that is no part of the load.
                let mut report = Command::new(self.program(places)?);
                report.args(["report", "-type=json"]).arg(results(places));
                vegeta_told(&start(report, None)?.wait(limit)?.output)
            }
            Loader::Wrk2 => wrk2_told(&ended.output, load),
            _ => h2load_told(&ended.output, load),
        };
        told.filter(|told| told.ok > 0)
            .map(|told| (told, ended.cpu))
            .ok_or_else(|| ended.complaint())
    }

    fn command(self, load: &Load, places: &Places) -> Result<Command, String> {
        let program = self.program(places)?;
        let (rate, connections) = (load.rate.to_string(), load.connections.to_string());
        let seconds = format!("{}s", load.seconds);
        let threads = load.threads().to_string();
        let mut command = Command::new(program);
        match self {
            Loader::Throng(precision) => {
                let mut more = vec!["--rate", &rate];
                more.extend(precision.into_iter().flat_map(|precision| ["--precision", precision]));
                more.extend(load.warm.map(|_| truth::WARM_UP).into_iter().flatten());
                let (url, throng) = (&load.url, &places.throng);
                return Ok(throng::bench(throng, url, load.connections, load.seconds, &more));
            }
            Loader::Wrk2 => {
                command.args(["-t", &threads, "-c", &connections, "-d", &seconds]);
                command.args(["-R", &rate, "--latency", &load.url]);
            }
            Loader::Vegeta => {
                let targets = format!("GET {}\n", load.url);
                let targets = tool::write(&places.folder, "vegeta.targets", &targets)?;
                command.args(["attack", "-rate", &rate, "-duration", &seconds, "-max-body", "0"]);
                command.args(["-connections", &connections, "-max-workers", &connections]);
                command.arg("-targets").arg(targets).arg("-output").arg(results(places));
            }
            Loader::H2load => {
                let each = f64::from(load.rate) / f64::from(load.connections);
                command.args(["--h1", "-t", &threads, "-c", &connections]);
                command.args(["-D", &load.seconds.to_string(), "--rps", &each.to_string()]);
                command.arg(&load.url);
            }
        }
        Ok(command)
    }
}

impl Load {
    fn threads(&self) -> u32 {
        if self.pinned { 1 } else { 2 }
    }
}

/// Where vegeta writes what it did.
fn results(places: &Places) -> PathBuf {
    places.folder.join("vegeta.results")
}

fn throng_told(output: &str, load: &Load) -> Option<Told> {
    let summary: Value = serde_json::from_str(output).ok()?;
    let number = |place: &str| summary.pointer(place).and_then(Value::as_f64);
    let us = |place: &str| number(place).map(|ns| ns / 1e3);
    let count = |place: &str| summary.pointer(place).and_then(Value::as_u64);
    Some(Told {
        ok: count("/total/ok")?,
        failed: count("/total/failed")?,
        seconds: f64::from(load.seconds),
        p50: us("/total/latency/p50_ns"),
        p99: us("/total/latency/p99_ns"),
        starts: Some(Starts {
            precision: us("/generator/precision_ns"),
            late_p50: us("/generator/lateness/p50_ns"),
            late_p99: us("/generator/lateness/p99_ns"),
            late_max: us("/generator/lateness/max_ns"),
            together_mean: number("/generator/together_mean"),
            together_max: number("/generator/together_max"),
        }),
        valid: summary.pointer("/outcome/valid").and_then(Value::as_bool)?,
    })
}

fn wrk2_told(output: &str, load: &Load) -> Option<Told> {
    let done = tool::wrk_done(output)?;
    let at = |share: &str| {
        let line = output.lines().find_map(|line| line.trim().strip_prefix(share))?;
        Some(units::parse_duration(line).ok()?.as_secs_f64() * 1e6)
    };
    let opened_last = f64::from(load.connections / load.threads()) - 1.0;
    Some(Told {
        ok: done.ok,
        failed: done.failed,
        seconds: f64::from(load.seconds) - opened_last.max(0.0) / 2.0 * WRK2_OPENS_ONE_S,
        p50: at("50.000%"),
        p99: at("99.000%"),
        starts: None,
        valid: true,
    })
}

fn vegeta_told(output: &str) -> Option<Told> {
    let report: Value = serde_json::from_str(output).ok()?;
    let us = |place: &str| Some(report.pointer(place)?.as_f64()? / 1e3);
    let all = report.get("requests")?.as_u64()?;
    let codes = report.get("status_codes")?.as_object()?.iter();
    let good = codes.filter(|(code, _)| code.starts_with('2'));
    let ok = good.filter_map(|(_, count)| count.as_u64()).sum();
    Some(Told {
        ok,
        failed: all.saturating_sub(ok),
        seconds: us("/duration")? / 1e6,
        p50: us("/latencies/50th"),
        p99: us("/latencies/99th"),
        starts: None,
        valid: true,
    })
}

fn h2load_told(output: &str, load: &Load) -> Option<Told> {
    let done = tool::h2load_done(output)?;
    let seconds = f64::from(load.seconds);
    Some(Told { ok: done.ok, failed: done.failed, seconds, valid: true, ..Told::default() })
}

#[cfg(test)]
mod tests;
