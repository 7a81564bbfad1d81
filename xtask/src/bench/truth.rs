//! `bench truth`: the percentiles that throng reports beside those that the target knows it
//! served, under every latency law, in closed and in open load.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::pair::{self, DIFFERENCE_PERCENT_MAX, DIFFERENCE_US_MAX, Pair};
use super::server;
use super::tool::{Places, Tool};
use super::{Options, TOOL_CORE, child, machine, throng};
use crate::workspace::Workspace;

/// Names on the command line, and each law as the target reads it.
pub(super) const NAMES: [&str; 6] = ["none", "fixed", "short", "uniform", "exponential", "stall"];
const LAWS: [&str; 6] =
    ["none", "20ms", "5ms", "10ms..50ms", "exponential 20ms", "stall 500ms every 5s"];
/// What is compared.
const PERCENTILES: [&str; 2] = ["p50", "p99"];
/// Closed load: so many users with a pause between two requests.
const CLOSED: (u32, [&str; 2]) = (64, ["--think", "10ms"]);
/// Open load: enough connections for what is under way at a time, and for what comes due while
/// the target stands still.
const OPEN: (u32, [&str; 2]) = (100, ["--rate", "2000"]);
const OPEN_STALL_CONNECTIONS: u32 = 1200;
/// Neither side counts before: each connection is opened by its first request, whose latency has
/// the time to connect, of which the target knows nothing. They may be one in a hundred.
pub(super) const WARM_UP: [&str; 2] = ["--warm-up", "1s"];
const WARM_UP_TIME: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(20);

pub(super) fn run(
    options: &Options,
    places: &Places,
    workspace: &Workspace,
) -> Result<String, String> {
    let program = Tool::Throng.program(places)?;
    let mut text = machine::facts(options, places, workspace);
    let _ = writeln!(
        text,
        "## Truth: what throng reports and what the target served\n\n\
         `throng target http --latency LAW` knows how long each request took: from the kernel's \
         stamp of its last byte, and so with what it waited in the target's socket, until its \
         answer was written.\nThe target's percentiles are exact to 0.1 %, throng's to 0.8 %. A \
         difference of at most {DIFFERENCE_PERCENT_MAX} % or {DIFFERENCE_US_MAX} µs is within \
         the goal. Neither counts the first second.\nEach row is the round of {} with the median difference.\n\n\
         | law | load | | served | reported | difference | | goal |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: | --- |",
        options.rounds
    );
    for (name, law) in NAMES.iter().zip(LAWS).filter(|(name, _)| options.wants(name)) {
        for open in [false, true] {
            let (users, [flag, value]) = load_of(law, open);
            let word = if open { "open" } else { "closed" };
            let load = format!("{word}, {users} connections, {flag} {value}");
            for row in rows(places, &program, law, open, options) {
                crate::say(&format!("{name}, {load}: {row}"));
                let _ = writeln!(text, "| {law} | {load} {row}");
            }
        }
    }
    text.push('\n');
    Ok(text)
}

fn load_of(law: &str, open: bool) -> (u32, [&'static str; 2]) {
    match open {
        true if law.starts_with("stall") => (OPEN_STALL_CONNECTIONS, OPEN.1),
        true => OPEN,
        false => CLOSED,
    }
}

fn row(percentile: &str, pair: Pair) -> String {
    format!(
        "| {percentile} | {:.0} µs | {:.0} µs | {:+.0} µs | {:+.2} % | {} |",
        pair.served_us,
        pair.reported_us,
        pair.difference_us(),
        pair.percent(),
        match (pair.is_true(), pair.valid) {
            (true, true) => "met",
            (true, false) => "met, in a run that throng does not stand by",
            (false, true) => "**not met**",
            (false, false) => "**not met**, and throng says not to trust the run",
        }
    )
}

/// A row for each percentile, or one that says why there are none.
fn rows(
    places: &Places,
    program: &std::path::Path,
    law: &str,
    open: bool,
    options: &Options,
) -> Vec<String> {
    let rounds = (0..options.rounds).map(|_| measure(places, program, law, open, options.seconds));
    match rounds.collect::<Result<Vec<[Pair; 2]>, String>>() {
        Ok(rounds) => PERCENTILES
            .iter()
            .enumerate()
            .filter_map(|(index, percentile)| {
                let pairs = rounds.iter().map(|pairs| pairs[index]).collect();
                pair::median(pairs).map(|pair| row(percentile, pair))
            })
            .collect(),
        Err(trouble) => vec![format!("| | | | | | not measured: {} |", trouble.replace('|', "/"))],
    }
}

fn measure(
    places: &Places,
    program: &std::path::Path,
    law: &str,
    open: bool,
    seconds: u32,
) -> Result<[Pair; 2], String> {
    let target = server::throng_target(program, &places.folder, &["http", "--latency", law])?;
    let (users, more) = load_of(law, open);
    let more = [more, WARM_UP].concat();
    let command = throng::bench(program, &target.url("http", 1), users, seconds, &more);
    let running = child::start(command, TOOL_CORE, &places.folder, "truth")?;
    warm_up(&running, target.port)?;
    let ended = running.wait(Duration::from_secs(u64::from(seconds)) + GRACE)?;
    let stats = server::stats(target.port)?;
    let pair = |percentile: &str| {
        let reported_ns = throng::latency_ns(&ended.output, percentile)
            .map_err(|trouble| format!("{trouble}; {}", ended.complaint()))?;
        let place = format!("/service_time/{percentile}_ns");
        let served_ns = stats.pointer(&place).and_then(Value::as_u64);
        let served_ns = served_ns.ok_or(format!("the target's statistics have no {place}"))?;
        let (reported_us, served_us) = (reported_ns as f64 / 1e3, served_ns as f64 / 1e3);
        Ok::<Pair, String>(Pair { reported_us, served_us, valid: ended.status.success() })
    };
    let [p50, p99] = PERCENTILES.map(pair);
    Ok([p50?, p99?])
}

/// Lets a throng that was told `WARM_UP` warm up, and the target at this port then forget it.
pub(super) fn warm_up(running: &child::Running, port: u16) -> Result<(), String> {
    running.stay(WARM_UP_TIME)?;
    server::ask(port, "POST /throng/reset HTTP/1.1", "").map(|_| ())
}
