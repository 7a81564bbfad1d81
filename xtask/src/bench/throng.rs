//! All that the benches know of throng's command line and of its JSON summary.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use serde_json::Value;

/// Where the summary of `--json` tells what the benches need; see docs/json.md.
const OK: &str = "/total/ok";
const FAILED: &str = "/total/failed";
const LATENCY: &str = "/total/latency";

/// `throng bench URL`; `more` are further flags.
pub(super) fn bench(
    throng: &Path,
    url: &str,
    connections: u32,
    seconds: u32,
    more: &[&str],
) -> Command {
    let mut command = Command::new(throng);
    command.args(["bench", url, "-c", &connections.to_string(), "-d", &format!("{seconds}s")]);
    command.args(more).args(["--quiet", "--json", "--no-record"]);
    command
}

/// `throng run FILE`.
pub(super) fn run(throng: &Path, file: &Path) -> Command {
    let mut command = Command::new(throng);
    command.arg("run").arg(file).args(["--quiet", "--json", "--no-record"]);
    command
}

/// A scenario that asks for the page and checks the status.
pub(super) fn checked_scenario(url: &str, connections: u32, seconds: u32) -> String {
    format!(
        "name: the page, checked\ntarget: {}\nsessions:\n  reader:\n    steps:\n      \
         - http: GET /\n        check: {{status: 200}}\nload:\n  \
         - {{users: {connections}, for: {seconds}s}}\n",
        url.trim_end_matches('/')
    )
}

/// True if a run ended with figures: goals met or not (0, 1), or a result that throng itself
/// calls invalid (5), as it may when the bench gives it a single core to exhaust.
pub(super) fn has_figures(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 1 | 5))
}

/// How many requests or messages succeeded and failed.
pub(super) fn counts(summary: &str) -> Result<(u64, u64), String> {
    let summary = parse(summary)?;
    Ok((number(&summary, OK)?, number(&summary, FAILED)?))
}

/// A percentile of the requests' latency (`p99`), in nanoseconds.
pub(super) fn latency_ns(summary: &str, percentile: &str) -> Result<u64, String> {
    number(&parse(summary)?, &format!("{LATENCY}/{percentile}_ns"))
}

fn parse(summary: &str) -> Result<Value, String> {
    serde_json::from_str(summary).map_err(|error| format!("throng's summary is no JSON: {error}"))
}

fn number(summary: &Value, place: &str) -> Result<u64, String> {
    let value = summary.pointer(place).and_then(Value::as_u64);
    value.ok_or_else(|| format!("throng's summary has no {place}"))
}

/// Why a run ended with another exit code than 0, in throng's words.
pub(super) fn reasons(summary: &Value) -> Vec<&str> {
    rows(summary, "/outcome/reasons").filter_map(Value::as_str).collect()
}

fn rows<'a>(summary: &'a Value, place: &str) -> impl Iterator<Item = &'a Value> {
    summary.pointer(place).and_then(Value::as_array).into_iter().flatten()
}

/// The goals of the scenario, its phases, and times, as tables.
pub(super) fn figures(summary: &Value) -> String {
    let text = |row: &Value, name: &str| match &row[name] {
        Value::Null => "–".to_string(),
        Value::String(text) => text.replace('|', "/"),
        other => other.to_string(),
    };
    let times = |latency: &Value| {
        let ms = |name: &str| latency[name].as_f64().map(|ns| format!("{:.2}", ns / 1e6));
        let all: Option<Vec<String>> = ["p50_ns", "p99_ns", "max_ns"].map(ms).into_iter().collect();
        all.map_or_else(|| "–".to_string(), |all| format!("{} ms", all.join(" / ")))
    };
    let mut out = String::from("| goal | figure | |\n| --- | ---: | --- |\n");
    for goal in rows(summary, "/thresholds") {
        let figure = match (goal["unit"].as_str(), goal["figure"].as_f64()) {
            (Some("ns"), Some(ns)) => format!("{:.2} ms", ns / 1e6),
            (_, Some(figure)) => figure.to_string(),
            _ => "–".to_string(),
        };
        let _ = writeln!(out, "| {} | {figure} | {} |", text(goal, "text"), text(goal, "verdict"));
    }
    out.push_str(
        "\n| phase | online, fewest / most | connections/s | attempts good / failed | \
         p50 / p99 / max |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for phase in rows(summary, "/phases") {
        let opened = phase["opened_per_s"].as_f64().unwrap_or(0.0);
        let [name, fewest, most, ok, failed] =
            ["name", "users_online_min", "users_online_max", "ok", "failed"]
                .map(|it| text(phase, it));
        let latency = times(&phase["latency"]);
        let _ = writeln!(
            out,
            "| {name} | {fewest} / {most} | {opened:.0} | {ok} / {failed} | {latency} |"
        );
    }
    out.push_str("\n| times | p50 / p99 / max |\n| --- | ---: |\n");
    let stages = rows(summary, "/stages").map(|row| (text(row, "stage"), &row["latency"]));
    let deliveries = rows(summary, "/deliveries").map(|row| (text(row, "name"), &row["latency"]));
    let others = [
        ("heartbeat".to_string(), &summary["heartbeats"]["latency"]),
        ("lateness of the generator".to_string(), &summary["generator"]["lateness"]),
    ];
    for (name, latency) in stages.chain(deliveries).chain(others) {
        let _ = writeln!(out, "| {name} | {} |", times(latency));
    }
    out.push('\n');
    out
}
