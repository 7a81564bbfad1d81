//! `bench http2`: requests and gRPC calls as streams of HTTP/2, beside h2load and ghz.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::child;
use super::contest::{self, Entrant, Row, Sample};
use super::report::{self, Gate};
use super::server::{self, Server};
use super::tool::{self, Done, Places};
use super::{Options, TOOL_CORE, machine, throng};
use crate::packages;
use crate::workspace::Workspace;

/// Connections, and streams at once on each.
const CASES: [(u32, u32); 2] = [(64, 1), (8, 32)];
/// What a request may cost beside h2load, and a call beside ghz.
const REQUEST_MAX: f64 = 1.1;
const CALL_MAX: f64 = 0.5;
const CALLERS: u32 = 64;
const METHOD: &str = "echo.v1.Echo/Say";
const BODY: &str = r#"{"text":"hello"}"#;
const GRACE: Duration = Duration::from_secs(20);

const THRONG: &str = "throng bench";
const H2LOAD: &str = "h2load";
const GHZ: &str = "ghz";

/// Runs everything asked for and gives the section of the report.
pub(super) fn run(
    options: &Options,
    places: &Places,
    workspace: &Workspace,
) -> Result<String, String> {
    let mut text = machine::facts(options, places, workspace);
    text.push_str(&format!("Medians of {} rounds, HTTP/2 without TLS.\n\n", options.rounds));
    let mut gates = Vec::new();
    if options.wants("requests") {
        let nginx = server::nginx_http2(&places.folder)?;
        for (connections, streams) in CASES {
            let title = format!("{connections} connections, {streams} requests at once on each");
            let load = Requests { nginx: &nginx, connections, streams };
            let rows = contest::hold(&title, options.rounds, &load.entrants(options, places));
            text.push_str(&report::table(&title, "request", &rows, H2LOAD));
            gates.push(gate(&title, &rows, H2LOAD, REQUEST_MAX));
        }
    }
    if options.wants("calls") {
        let target = server::throng_target(&places.throng, &places.folder, &["http"])?;
        let title = format!("Unary gRPC calls of throng's own target, {CALLERS} users");
        let rows = contest::hold(&title, options.rounds, &callers(options, places, &target));
        text.push_str(&report::table(&title, "call", &rows, GHZ));
        gates.push(gate(&title, &rows, GHZ, CALL_MAX));
    }
    text.push_str(&report::goals(&gates));
    Ok(text)
}

fn gate(title: &str, rows: &[Row], base: &str, max: f64) -> Gate {
    let ratio = contest::ratio(rows, THRONG, base);
    Gate {
        goal: format!("{title}: CPU of {THRONG} at most {max} x {base}"),
        measured: ratio.map(|ratio| ratio.median),
        max,
        unit: "x",
    }
}

struct Requests<'a> {
    nginx: &'a Server,
    connections: u32,
    streams: u32,
}

impl<'a> Requests<'a> {
    fn entrants(&self, options: &'a Options, places: &'a Places) -> Vec<Entrant<'a>> {
        let (url, seconds) = (self.nginx.url("http", 1), options.seconds);
        let (connections, streams) = (self.connections, self.streams.to_string());
        let own = {
            let (url, streams) = (url.clone(), streams.clone());
            move |_| {
                let more = ["--http2", "--streams", &streams];
                let command = throng::bench(&places.throng, &url, connections, seconds, &more);
                measure(command, THRONG, seconds, places, told_by_throng)
            }
        };
        let other = move |_| {
            let mut command = Command::new(found(H2LOAD, "apt-get install nghttp2-client")?);
            command.args(["-t1", "-c", &connections.to_string(), "-m", &streams]);
            command.args(["-D", &seconds.to_string(), &url]);
            measure(command, H2LOAD, seconds, places, tool::h2load_done)
        };
        vec![entrant(THRONG, own), entrant(H2LOAD, other)]
    }
}

fn callers<'a>(options: &'a Options, places: &'a Places, target: &Server) -> Vec<Entrant<'a>> {
    let (url, seconds) = (target.url("grpc", 1), options.seconds);
    let address = format!("127.0.0.1:{}", target.port);
    let own = move |_| {
        let url = format!("{url}{METHOD}");
        let more = ["--body", BODY];
        let command = throng::bench(&places.throng, &url, CALLERS, seconds, &more);
        measure(command, THRONG, seconds, places, told_by_throng)
    };
    let other = move |_| {
        let install = "go install github.com/bojand/ghz/cmd/ghz@latest";
        let mut command = Command::new(found(GHZ, install)?);
        let callers = CALLERS.to_string();
        command.args(["--insecure", "--call", METHOD, "-d", BODY, "-O", "json"]);
        command.args(["-c", &callers, "--connections", &callers, "-z", &format!("{seconds}s")]);
        // It has no flag for that, and would take both cores.
        command.env("GOMAXPROCS", "1").arg(&address);
        measure(command, GHZ, seconds, places, ghz_done)
    };
    vec![entrant(THRONG, own), entrant(GHZ, other)]
}

fn entrant<'a>(name: &str, run: impl Fn(u32) -> Result<Sample, String> + 'a) -> Entrant<'a> {
    Entrant { name: name.to_string(), run: Box::new(run) }
}

fn found(name: &str, install: &str) -> Result<std::path::PathBuf, String> {
    packages::program(name).ok_or_else(|| format!("missing; to get it: {install}"))
}

fn measure(
    command: Command,
    name: &str,
    seconds: u32,
    places: &Places,
    told: fn(&str) -> Option<Done>,
) -> Result<Sample, String> {
    let running = child::start(command, TOOL_CORE, &places.folder, &name.replace(' ', "-"))?;
    let ended = running.wait(Duration::from_secs(u64::from(seconds)) + GRACE)?;
    match told(&ended.output).filter(|done| done.ok > 0) {
        Some(Done { ok, failed }) => {
            Ok(Sample { ok, failed, cpu: ended.cpu, seconds: f64::from(seconds) })
        }
        None => Err(ended.complaint()),
    }
}

fn told_by_throng(output: &str) -> Option<Done> {
    throng::counts(output).ok().map(|(ok, failed)| Done { ok, failed })
}

/// What ghz does not end in time it counts as `Unavailable` or `Canceled`.
fn ghz_done(output: &str) -> Option<Done> {
    let summary: Value = serde_json::from_str(output.trim()).ok()?;
    let all = summary["count"].as_u64()?;
    let ok = summary["statusCodeDistribution"]["OK"].as_u64()?;
    Some(Done { ok, failed: all.saturating_sub(ok) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ghz_is_read() {
        let output = r#"{"count":120,"statusCodeDistribution":{"OK":118,"Unavailable":2}}"#;
        assert_eq!(ghz_done(output), Some(Done { ok: 118, failed: 2 }));
        assert_eq!(ghz_done("Error: no such host"), None);
    }
}
