//! All that the benches know of throng's command line and of its JSON summary.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use serde_json::Value;

use super::contest::{Sample, Starts};

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

/// True if a run ended with figures: thresholds met or not (0, 1), or a result that throng itself
/// calls invalid (5), as it may when the bench gives it a single core to exhaust.
pub(super) fn has_figures(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 1 | 5))
}

/// What the summary of `--json` tells; see docs/json.md.
pub(super) fn sample(summary: &str) -> Option<Sample> {
    let summary: Value = serde_json::from_str(summary).ok()?;
    let count = |place: &str| summary.pointer(place).and_then(Value::as_u64);
    let number = |place: &str| summary.pointer(place).and_then(Value::as_f64);
    let us = |place: &str| number(place).map(|ns| ns / 1e3);
    Some(Sample {
        ok: count("/total/ok")?,
        failed: count("/total/failed")?,
        times_us: [us("/total/latency/p50_ns"), us("/total/latency/p99_ns")],
        starts: Starts {
            precision: us("/generator/precision_ns"),
            late_p50: us("/generator/lateness/p50_ns"),
            late_p99: us("/generator/lateness/p99_ns"),
            late_max: us("/generator/lateness/max_ns"),
            together_mean: number("/generator/together_mean"),
            together_max: number("/generator/together_max"),
        },
        valid: summary.pointer("/outcome/valid").and_then(Value::as_bool)?,
        ..Sample::default()
    })
}

/// Why a run ended with another exit code than 0, in throng's words.
pub(super) fn reasons(summary: &Value) -> Vec<&str> {
    rows(summary, "/outcome/reasons").filter_map(Value::as_str).collect()
}

fn rows<'a>(summary: &'a Value, place: &str) -> impl Iterator<Item = &'a Value> {
    summary.pointer(place).and_then(Value::as_array).into_iter().flatten()
}

/// The thresholds of the scenario, its phases, and times, as tables.
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
    let mut out = String::from("| threshold | figure | |\n| --- | ---: | --- |\n");
    for threshold in rows(summary, "/thresholds") {
        let figure = match (threshold["unit"].as_str(), threshold["figure"].as_f64()) {
            (Some("ns"), Some(ns)) => format!("{:.2} ms", ns / 1e6),
            (_, Some(figure)) => figure.to_string(),
            _ => "–".to_string(),
        };
        let _ = writeln!(
            out,
            "| {} | {figure} | {} |",
            text(threshold, "text"),
            text(threshold, "verdict")
        );
    }
    out.push_str(
        "\n| phase | online, lowest / highest | connections/s | attempts ok / failed | \
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
    out.push_str("\n| time | p50 / p99 / max |\n| --- | ---: |\n");
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
