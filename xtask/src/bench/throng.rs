//! All that the benches know of throng's command line and of its JSON summary.

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
