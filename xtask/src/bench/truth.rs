//! `bench truth`: the p99 that throng reports beside the p99 that the target knows it served,
//! under every latency law, in closed and in open load.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::server::{self, Server};
use super::tool::{Places, Tool};
use super::{Options, TOOL_CORE, child, machine, throng};
use crate::workspace::Workspace;

/// Name on the command line and law as the target reads it.
const LAWS: [(&str, &str); 4] = [
    ("fixed", "5ms"),
    ("uniform", "1ms..20ms"),
    ("exponential", "exponential 10ms"),
    ("stall", "stall 200ms every 2s"),
];
/// Either is good enough.
const DIFFERENCE_PERCENT_MAX: f64 = 5.0;
const DIFFERENCE_US_MAX: f64 = 100.0;
const CONNECTIONS: u32 = 64;
const OPEN_RATE: &str = "2000";
const GRACE: Duration = Duration::from_secs(20);

/// Both views of one run.
#[derive(Clone, Copy, Debug)]
struct Pair {
    reported_us: f64,
    served_us: f64,
    /// throng itself stands by the run.
    valid: bool,
}

impl Pair {
    fn difference_us(self) -> f64 {
        self.reported_us - self.served_us
    }

    fn percent(self) -> f64 {
        100.0 * self.difference_us() / self.served_us.max(1e-9)
    }

    fn is_true(self) -> bool {
        self.percent().abs() < DIFFERENCE_PERCENT_MAX
            || self.difference_us().abs() < DIFFERENCE_US_MAX
    }
}

pub(super) fn run(
    options: &Options,
    places: &Places,
    workspace: &Workspace,
) -> Result<String, String> {
    let program = Tool::Throng.program(places)?;
    let mut text = machine::facts(options, places, workspace);
    let _ = writeln!(
        text,
        "## Truth: the p99 reported and the p99 served\n\n\
         `throng target http --latency LAW` knows how long it took from reading a request to \
         writing its answer.\nA difference below {DIFFERENCE_PERCENT_MAX} % or \
         {DIFFERENCE_US_MAX} µs is within the goal.\n\n\
         | law | load | p99 served | p99 reported | difference | | goal |\n\
         | --- | --- | ---: | ---: | ---: | ---: | --- |"
    );
    for (name, law) in LAWS.iter().filter(|(name, _)| options.wants(name)) {
        for open in [false, true] {
            let load = if open { format!("open, {OPEN_RATE}/s") } else { "closed".to_string() };
            let row = match measure(places, &program, law, open, options.seconds) {
                Ok(pair) => row(pair),
                Err(trouble) => format!("| | | | not measured: {} |", trouble.replace('|', "/")),
            };
            crate::say(&format!("{name}, {load}: {row}"));
            let _ = writeln!(text, "| {law} | {load}, {CONNECTIONS} connections {row}");
        }
    }
    text.push('\n');
    Ok(text)
}

fn row(pair: Pair) -> String {
    format!(
        "| {:.0} µs | {:.0} µs | {:+.0} µs | {:+.2} % | {} |",
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

fn measure(
    places: &Places,
    program: &std::path::Path,
    law: &str,
    open: bool,
    seconds: u32,
) -> Result<Pair, String> {
    let target = server::throng_target(program, &places.folder, &["http", "--latency", law])?;
    let more: &[&str] = if open { &["--rate", OPEN_RATE] } else { &[] };
    let command = throng::bench(program, &target.url("http", 1), CONNECTIONS, seconds, more);
    let running = child::start(command, TOOL_CORE, &places.folder, "truth")?;
    let ended = running.wait(Duration::from_secs(u64::from(seconds)) + GRACE)?;
    let reported_ns = throng::p99_ns(&ended.output)
        .map_err(|trouble| format!("{trouble}; {}", ended.complaint()))?;
    let stats = stats(&target)?;
    let served_ns = stats.pointer("/service_time/p99_ns").and_then(Value::as_u64);
    let served_ns = served_ns.ok_or("the target's statistics have no service_time.p99_ns")?;
    Ok(Pair {
        reported_us: reported_ns as f64 / 1e3,
        served_us: served_ns as f64 / 1e3,
        valid: ended.status.success(),
    })
}

/// Asks the target for its statistics.
fn stats(target: &Server) -> Result<Value, String> {
    let text = get(target.port, "/throng/stats").map_err(|error| format!("statistics: {error}"))?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).map_err(|error| format!("the statistics are no JSON: {error}"))
}

fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_bound_is_enough() {
        let is_true =
            |reported_us, served_us| Pair { reported_us, served_us, valid: true }.is_true();
        assert!(is_true(1040.0, 1000.0) && is_true(190.0, 100.0) && is_true(96_000.0, 100_000.0));
        assert!(!is_true(1200.0, 1000.0) && !is_true(90_000.0, 100_000.0));
    }
}
