//! Findings on real servers that have the fault: each is found with at least *likely*, and real
//! servers without a fault have none.

mod clean;
mod connections;
mod hosts;
mod network;
mod requests;
mod services;
mod stalls;

use serde_json::Value;

use crate::run::{Run, Throng, throng_first};

/// Code and level of each finding that is more than a hint.
fn sure(run: &Run) -> Vec<String> {
    let findings = run.json()["findings"].as_array().cloned().unwrap_or_default();
    let sure = findings.iter().filter(|row| row["level"] != "hint");
    let word = |row: &Value| row["code"].as_str().unwrap_or_default().to_string();
    sure.map(word).collect()
}

/// The run has a finding of this code that is sure enough: the text of it.
#[track_caller]
fn finds(run: &Run, code: &str) -> String {
    run.check(sure(run).iter().any(|it| it == code), &format!("{code} is found"));
    let findings = run.json()["findings"].as_array().cloned().unwrap_or_default();
    let found = findings.into_iter().find(|row| row["code"] == code && row["level"] != "hint");
    found.unwrap_or_default().to_string()
}

/// A scenario as a person runs it. Findings about times need a generator that is in time: whatever
/// else this machine does has to wait, where that can be had.
fn running(text: &str) -> Throng {
    throng_first("run s.yaml --json --out record").file("s.yaml", text)
}
