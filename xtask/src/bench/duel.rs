//! `bench http`, `http2`, `protocol` and the transaction of `bench language`: the same load with
//! several tools or scenarios, side by side, and the cost of each.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::contest::{self, Entrant, Row};
use super::report::{self, Gate};
use super::server::{self, Server};
use super::tool::{self, Load, Places, Tool, ToolKind};
use super::{Options, machine, memory};
use crate::packages;

/// Short connections exhaust ports: each measurement is short and has its own address.
const SHORT_SECONDS_MAX: u32 = 2;
/// Account rows for the transactions, one each; more than a run needs.
const ACCOUNTS: u32 = 3_000_000;

/// A load for a server, and the baseline tool.
struct Case {
    bench: &'static str,
    part: &'static str,
    title: &'static str,
    unit: &'static str,
    server: Served,
    kind: ToolKind,
    connections: u32,
    tools: &'static [Tool],
    base: Tool,
    /// CPU as a multiple of the baseline's.
    thresholds: &'static [(Tool, f64)],
}

#[derive(Clone, Copy)]
enum Served {
    /// `listen` followed by this.
    Nginx(&'static str),
    /// `ws` of npm.
    Echo,
    /// `throng target …`, and the scheme of its URL.
    Target(&'static [&'static str], &'static str),
    /// A target that issues grants and tokens.
    Shop,
}

const SCENARIO: Tool = Tool::Scenario("throng run, checked", "page.yaml");
const DECLARED: Tool = Tool::Scenario("declared `ping`", "ping.yaml");
const BY_HAND: Tool = Tool::Scenario("the same bytes, undeclared", "ping-by-hand.yaml");
const SAY: Tool = Tool::Scenario("declared `say`, with checks and delivery tracking", "say.yaml");
const CHECKED: Tool = Tool::Scenario("with checks, extractors and templates", "transaction.yaml");
const RAW: Tool = Tool::Scenario("raw", "transaction-raw.yaml");

const KEPT: Case = Case {
    bench: "http",
    part: "keep-alive",
    title: "Keep-alive, 64 connections",
    unit: "request",
    server: Served::Nginx(""),
    kind: ToolKind::KeepAlive,
    connections: 64,
    tools: &[Tool::Throng, SCENARIO, Tool::Wrk, Tool::Ab, Tool::H2load, Tool::Hey, Tool::K6],
    base: Tool::Wrk,
    thresholds: &[(Tool::Throng, 0.95), (SCENARIO, 1.05)],
};
const SHORT: Case = Case {
    part: "short",
    title: "A connection per request, 64 at a time",
    kind: ToolKind::Short,
    tools: &[Tool::Throng, Tool::Wrk, Tool::Ab, Tool::H2load, Tool::Hey, Tool::K6],
    base: Tool::Ab,
    thresholds: &[(Tool::Throng, 0.95)],
    ..KEPT
};
const STREAMS: Case = Case {
    bench: "http2",
    part: "requests",
    title: "64 connections, 1 request at a time on each",
    server: Served::Nginx(" http2"),
    kind: ToolKind::Streams(1),
    tools: &[Tool::Throng, Tool::H2load],
    base: Tool::H2load,
    thresholds: &[(Tool::Throng, 1.1)],
    ..KEPT
};
const PING: Case = Case {
    bench: "protocol",
    part: "64",
    title: "A declared request and its reply, 64 users",
    server: Served::Target(&["chat", "--connections", "2000"], "tcp"),
    tools: &[DECLARED, BY_HAND, SAY],
    base: BY_HAND,
    thresholds: &[(DECLARED, 1.15)],
    ..KEPT
};

static CASES: [Case; 9] = [
    KEPT,
    SHORT,
    Case {
        part: "websocket",
        title: "WebSocket echo of `hello`, 64 connections, npm's ws",
        unit: "message",
        server: Served::Echo,
        kind: ToolKind::Echo,
        tools: &[Tool::Throng, Tool::K6],
        base: Tool::K6,
        thresholds: &[],
        ..KEPT
    },
    STREAMS,
    Case {
        title: "8 connections, 32 concurrent requests on each",
        kind: ToolKind::Streams(32),
        connections: 8,
        ..STREAMS
    },
    Case {
        part: "calls",
        title: "Unary gRPC calls to throng's own target, 64 users",
        unit: "call",
        server: Served::Target(&["http"], "grpc"),
        kind: ToolKind::Call,
        tools: &[Tool::Throng, Tool::Ghz],
        base: Tool::Ghz,
        thresholds: &[(Tool::Throng, 0.5)],
        ..STREAMS
    },
    PING,
    Case {
        part: "1000",
        title: "A declared request and its reply, 1000 users",
        connections: 1000,
        ..PING
    },
    Case {
        bench: "language",
        part: "transaction",
        title: "A transaction of three requests",
        server: Served::Shop,
        tools: &[CHECKED, RAW],
        base: RAW,
        thresholds: &[(CHECKED, 1.6)],
        ..KEPT
    },
];

/// Runs everything asked for and gives the section of the report.
pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let mut text = machine::facts(options, places);
    let note = match options.is("http2") {
        true => "HTTP/2 without TLS".to_string(),
        false => format!("a round of short connections lasts at most {SHORT_SECONDS_MAX} s"),
    };
    let _ = writeln!(text, "Medians of {} rounds; {note}.\n", options.rounds);
    let mut gates = hold(options, places, &mut text)?;
    let is_memory = options.is("http") && options.wants("memory");
    if is_memory && options.wants_tool(Tool::Throng.word()) {
        let (told, gate) = memory::run(places);
        text.push_str(&told);
        gates.push(gate);
    }
    text.push_str(&report::thresholds(&gates));
    Ok(text)
}

/// The cases of the bench, whose tables are added to the text, and their thresholds.
pub(super) fn hold(
    options: &Options,
    places: &Places,
    text: &mut String,
) -> Result<Vec<Gate>, String> {
    let mut gates = Vec::new();
    let cases = CASES.iter().enumerate().filter(|(_, case)| options.is(case.bench));
    for (number, case) in cases.filter(|(_, case)| options.wants(case.part)) {
        let rows = case.hold(number, options, places)?;
        text.push_str(&report::table(case.title, case.unit, &rows, &case.base.name()));
        gates.extend(case.thresholds.iter().map(|(tool, max)| case.gate(&rows, *tool, *max)));
    }
    Ok(gates)
}

impl Case {
    fn hold(&self, number: usize, options: &Options, places: &Places) -> Result<Vec<Row>, String> {
        let (server, scheme) = self.server.start(places)?;
        let seconds = match self.kind {
            ToolKind::Short => options.seconds.min(SHORT_SECONDS_MAX),
            _ => options.seconds,
        };
        let load = Load {
            more: self.server.vars(&server, places)?,
            ..Load::new(server.url(scheme, 1), self.kind, self.connections, seconds)
        };
        let tools = self.tools.iter().filter(|tool| options.wants_tool(tool.word()));
        let all: Vec<(String, Tool, Places)> = tools
            .flat_map(|tool| options.throngs(&places.throng).into_iter().map(move |it| (tool, it)))
            .filter(|(tool, (who, _))| who == super::OWN || tool.is_throng())
            .map(|(tool, (who, throng))| {
                let other = (who != super::OWN).then(|| format!(", {who}"));
                let name = tool.name() + &other.unwrap_or_default();
                (name, *tool, Places { throng, ..places.clone() })
            })
            .collect();
        let count = all.len();
        let entrant = |(turn, (name, tool, places)): (usize, &(String, Tool, Places))| {
            let (tool, places, load, server) = (*tool, places.clone(), load.clone(), &server);
            let run = move |round: u32| {
                // Ports stay in TIME_WAIT for a minute after a connection; another address has its
                // own ports.
                let turn = (number * 5 + round as usize) * count + turn;
                let address = match self.kind {
                    ToolKind::Short => 1 + (turn % usize::from(server::ADDRESSES)) as u8,
                    _ => 1,
                };
                tool.measure(&Load { url: server.url(scheme, address), ..load.clone() }, &places)
            };
            Entrant { name: name.clone(), run: Box::new(run) }
        };
        let entrants: Vec<Entrant<'_>> = all.iter().enumerate().map(entrant).collect();
        Ok(contest::hold(self.title, options.rounds, &entrants))
    }

    fn gate(&self, rows: &[Row], tool: Tool, max: f64) -> Gate {
        let (name, base) = (tool.name(), self.base.name());
        Gate {
            threshold: format!(
                "{}: {name}, CPU per {} at most {max} x {base}",
                self.title, self.unit
            ),
            measured: contest::ratio(rows, &name, &base).map(|ratio| ratio.median),
            max,
            unit: "x",
        }
    }
}

impl Served {
    fn start(self, places: &Places) -> Result<(Server, &'static str), String> {
        let (throng, folder) = (&places.throng, &places.folder);
        Ok(match self {
            Served::Nginx(protocol) => (server::nginx(folder, protocol)?, "http"),
            Served::Echo => {
                let modules = packages::ensure_node(&places.target)?;
                (server::ws_echo(folder, &modules)?, "ws")
            }
            Served::Target(words, scheme) => {
                (server::throng_target(throng, folder, words)?, scheme)
            }
            Served::Shop => (server::throng_target(throng, folder, &["http"])?, "http"),
        })
    }

    /// Variables of the scenarios: accounts, and a grant and a token that were issued once.
    fn vars(self, server: &Server, places: &Places) -> Result<Vec<String>, String> {
        let Served::Shop = self else { return Ok(Vec::new()) };
        let accounts = tool::write(&places.folder, "accounts.csv", &accounts())?;
        let body = r#"{"ssoid":"s00000000","scope":"basic"}"#;
        let grant = field(server, "/oauth/authorize", "application/json", body, "grant")?;
        let form = "application/x-www-form-urlencoded";
        let token = field(server, "/oauth/token", form, &format!("grant={grant}"), "token")?;
        let sets = [("accounts", path(&accounts)), ("grant", grant), ("token", token)];
        Ok(sets.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }
}

fn path(file: &Path) -> String {
    file.display().to_string()
}

/// Sends a request to the target and takes a field of the response.
fn field(
    target: &Server,
    path: &str,
    kind: &str,
    body: &str,
    name: &str,
) -> Result<String, String> {
    let head = format!("POST {path} HTTP/1.1\r\nContent-Type: {kind}");
    let body = server::ask(target.port, &head, body)?;
    let value: Value = serde_json::from_str(&body).map_err(|error| format!("{path}: {error}"))?;
    let field = value.pointer(&format!("/data/{name}")).and_then(Value::as_str);
    field.map(str::to_string).ok_or_else(|| format!("{path}: no `{name}` in the response: {body}"))
}

fn accounts() -> String {
    let mut text = String::with_capacity(ACCOUNTS as usize * 10 + 8);
    text.push_str("ssoid\n");
    for n in 0..ACCOUNTS {
        let _ = writeln!(text, "s{n:08}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contest::Sample;
    use std::time::Duration;

    #[test]
    fn every_threshold_is_of_tools_that_take_part() {
        for case in &CASES {
            let tools = case.thresholds.iter().map(|(tool, _)| tool).chain([&case.base]);
            assert!(tools.into_iter().all(|tool| case.tools.contains(tool)), "{}", case.title);
        }
    }

    #[test]
    fn a_case_is_judged_by_its_base() {
        let row = |tool: Tool, ms| {
            let cpu = Duration::from_millis(ms);
            let sample = Sample { ok: 1000, cpu, seconds: 2.0, ..Sample::default() };
            Row { name: tool.name(), samples: vec![sample; 3], trouble: None }
        };
        let gate = KEPT.gate(&[row(Tool::Throng, 9), row(Tool::Wrk, 10)], Tool::Throng, 0.95);
        assert_eq!((gate.measured, gate.max), (Some(0.9), 0.95));
        let threshold =
            "Keep-alive, 64 connections: throng bench, CPU per request at most 0.95 x wrk";
        assert_eq!(gate.threshold, threshold);
    }
}
