//! `bench http`, `http2`, `protocol` and `language`: the same load with several tools or scenarios,
//! side by side, and the cost of each.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use super::contest::{self, Row};
use super::report::{self, Goal};
use super::server::{self, Server};
use super::tool::{self, Load, Values};
use super::{Options, Places, SERVER_CORE, TOOL_CORE, machine};

/// Short connections exhaust ports: each measurement is short and has its own address.
const SHORT_SECONDS_MAX: u32 = 2;
/// Account rows for the transactions, one each; more than a run needs.
const ACCOUNTS: u32 = 3_000_000;

/// A load for a server: what each tool runs.
struct Case {
    bench: &'static str,
    part: &'static str,
    title: &'static str,
    unit: &'static str,
    server: Served,
    users: u32,
    /// The names of the tools in the table, and their command lines.
    tools: &'static [(&'static str, &'static str)],
    /// The name of the tool that the others are compared with.
    base: &'static str,
    /// CPU as a multiple of that tool's.
    goals: &'static [(&'static str, f64)],
}

#[derive(Clone, Copy, PartialEq)]
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

const RUN: &str = "--set target=@ORIGIN@ --set users=@USERS@ --set time=@SECONDS@s";
const DECLARED: &str = "declared `ping`";
const BY_HAND: &str = "the same bytes, undeclared";
const CHECKED: &str = "with checks, extractors and templates";

const KEPT: Case = Case {
    bench: "http",
    part: "keep-alive",
    title: "Keep-alive, 64 connections",
    unit: "request",
    server: Served::Nginx(""),
    users: 64,
    tools: &[
        ("throng bench", "throng bench @URL@ -c @USERS@ -d @SECONDS@s"),
        ("throng run, checked", "throng run @BENCHES@/page.yaml @RUN@"),
        ("wrk", "wrk -t1 -c @USERS@ -d @SECONDS@s @URL@"),
        // `-t` implies a small `-n`, so `-n` comes after it.
        ("ab", "ab -k -q -r -c @USERS@ -t @SECONDS@ -n 10000000 @URL@"),
        ("h2load", "h2load --h1 -t 1 -c @USERS@ -D @SECONDS@ @URL@"),
        ("hey", "hey -z @SECONDS@s -c @USERS@ @URL@"),
        ("k6", "k6 run --vus @USERS@ --duration @SECONDS@s -e URL=@URL@ @BENCHES@/page.k6.js"),
    ],
    base: "wrk",
    goals: &[("throng bench", 0.95), ("throng run, checked", 1.05)],
};
const STREAMS: Case = Case {
    bench: "http2",
    part: "requests",
    title: "64 connections, 1 request at a time on each",
    server: Served::Nginx(" http2"),
    tools: &[
        ("throng bench", "throng bench @URL@ -c @USERS@ -d @SECONDS@s --http2 --streams 1"),
        ("h2load", "h2load -m 1 -t 1 -c @USERS@ -D @SECONDS@ @URL@"),
    ],
    base: "h2load",
    goals: &[("throng bench", 1.1)],
    ..KEPT
};
const PING: Case = Case {
    bench: "protocol",
    part: "64",
    title: "A declared request and its reply, 64 users",
    server: Served::Target(&["chat", "--connections", "2000"], "tcp"),
    tools: &[
        (DECLARED, "throng run @BENCHES@/ping.yaml @RUN@"),
        (BY_HAND, "throng run @BENCHES@/ping-by-hand.yaml @RUN@"),
        (
            "declared `say`, with checks and delivery tracking",
            "throng run @BENCHES@/say.yaml @RUN@",
        ),
    ],
    base: BY_HAND,
    goals: &[(DECLARED, 1.15)],
    ..KEPT
};

static CASES: [Case; 9] = [
    KEPT,
    Case {
        part: "short",
        title: "A connection per request, 64 at a time",
        // Without h2load: 1.52 opens connections for ever if the server closes them.
        tools: &[
            ("throng bench", "throng bench @URL@ -c @USERS@ -d @SECONDS@s --no-keepalive"),
            ("wrk", "wrk -t1 -c @USERS@ -d @SECONDS@s -H Connection:close @URL@"),
            ("ab", "ab -q -r -c @USERS@ -t @SECONDS@ -n 10000000 @URL@"),
            ("hey", "hey -z @SECONDS@s -c @USERS@ -disable-keepalive @URL@"),
            (
                "k6",
                "k6 run --vus @USERS@ --duration @SECONDS@s --no-connection-reuse \
                 -e URL=@URL@ @BENCHES@/page.k6.js",
            ),
        ],
        base: "ab",
        goals: &[("throng bench", 0.95)],
        ..KEPT
    },
    Case {
        part: "websocket",
        title: "WebSocket echo of `hello`, 64 connections, npm's ws",
        unit: "message",
        server: Served::Echo,
        tools: &[
            ("throng bench", "throng bench @URL@ -c @USERS@ -d @SECONDS@s --body hello"),
            (
                "k6",
                "k6 run --vus @USERS@ --iterations @USERS@ -e SECONDS=@SECONDS@ \
                 -e URL=@URL@ @BENCHES@/echo.k6.js",
            ),
        ],
        base: "k6",
        goals: &[],
        ..KEPT
    },
    STREAMS,
    Case {
        title: "8 connections, 32 concurrent requests on each",
        users: 8,
        tools: &[
            ("throng bench", "throng bench @URL@ -c @USERS@ -d @SECONDS@s --http2 --streams 32"),
            ("h2load", "h2load -m 32 -t 1 -c @USERS@ -D @SECONDS@ @URL@"),
        ],
        ..STREAMS
    },
    Case {
        part: "calls",
        title: "Unary gRPC calls to throng's own target, 64 users",
        unit: "call",
        server: Served::Target(&["http"], "grpc"),
        tools: &[
            (
                "throng bench",
                "throng bench @URL@echo.v1.Echo/Say -c @USERS@ -d @SECONDS@s \
                 --body {\"text\":\"hello\"}",
            ),
            (
                "ghz",
                "ghz --insecure --call echo.v1.Echo/Say -d {\"text\":\"hello\"} -O json \
                 -c @USERS@ --connections @USERS@ -z @SECONDS@s @ADDRESS@",
            ),
        ],
        base: "ghz",
        goals: &[("throng bench", 0.5)],
        ..STREAMS
    },
    PING,
    Case {
        part: "1000",
        title: "A declared request and its reply, 1000 users",
        users: 1000,
        ..PING
    },
    Case {
        bench: "language",
        part: "transaction",
        title: "A transaction of three requests",
        server: Served::Shop,
        tools: &[
            (CHECKED, "throng run @BENCHES@/transaction.yaml @RUN@ --set accounts=@ACCOUNTS@"),
            (
                "raw",
                "throng run @BENCHES@/transaction-raw.yaml @RUN@ --set grant=@GRANT@ \
                 --set token=@TOKEN@",
            ),
        ],
        base: "raw",
        goals: &[(CHECKED, 1.6)],
        ..KEPT
    },
];

/// Runs the cases asked for, and returns the section of the report.
pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let mut text = machine::facts(options, places);
    let note = match options.name {
        "http" => format!("; a round of short connections lasts at most {SHORT_SECONDS_MAX} s"),
        "http2" => "; HTTP/2 without TLS".to_string(),
        _ => String::new(),
    };
    let _ = writeln!(text, "Medians of {} rounds{note}.\n", options.rounds);
    let mut goals = Vec::new();
    let cases = CASES.iter().enumerate().filter(|(_, case)| options.name == case.bench);
    for (number, case) in cases.filter(|(_, case)| options.wants(case.part)) {
        let rows = case.hold(number, options, places)?;
        text += &report::table(case.title, case.unit, &rows, case.base);
        goals.extend(case.goals.iter().map(|(name, max)| case.goal(&rows, name, *max)));
    }
    Ok(text + &report::goals(&goals))
}

impl Case {
    fn hold(&self, number: usize, options: &Options, places: &Places) -> Result<Vec<Row>, String> {
        let (server, scheme) = self.server.start(places)?;
        let is_short = self.part == "short";
        let seconds = match is_short {
            true => options.seconds.min(SHORT_SECONDS_MAX),
            false => options.seconds,
        };
        let values = self.values(&server, places)?;
        let other = options.against.iter().map(|throng| (", the other throng", throng));
        let throngs: Vec<(&str, &PathBuf)> =
            std::iter::once(("", &places.throng)).chain(other).collect();
        let tools = self.tools.iter().filter(|(_, line)| options.wants_tool(line));
        let entrants: Vec<_> = tools
            .flat_map(|tool| throngs.iter().map(move |throng| (tool, throng)))
            .filter(|((_, line), (who, _))| who.is_empty() || line.starts_with("throng "))
            .collect();
        let names = entrants.iter().map(|((name, _), (who, _))| format!("{name}{who}"));
        Ok(contest::hold(self.title, options.rounds, names, |index, round| {
            let ((_, line), (_, throng)) = entrants[index];
            // Ports stay in TIME_WAIT for a minute after a connection; another address has its own
            // ports.
            let turn = (number * 5 + round) * entrants.len() + index;
            let address = match is_short {
                true => 1 + (turn % usize::from(server::ADDRESSES)) as u8,
                false => 1,
            };
            let url = server.url(scheme, address);
            let origin = url.trim_end_matches('/');
            let mut values = values.clone();
            values.extend([
                ("ADDRESS", origin.rsplit('/').next().unwrap_or_default().to_string()),
                ("ORIGIN", origin.to_string()),
                ("URL", url),
                ("USERS", self.users.to_string()),
                ("SECONDS", seconds.to_string()),
            ]);
            let (line, core) = (&line.replace("@RUN@", RUN), Some(TOOL_CORE));
            let places = Places { throng: (*throng).clone(), ..places.clone() };
            tool::measure(&Load { line, values, seconds, core, served: None }, &places)
        }))
    }

    fn goal(&self, rows: &[Row], name: &str, max: f64) -> Goal {
        let ratio = contest::ratio(rows, name, self.base);
        Goal::of_ratio((self.title, self.unit), (name, self.base), ratio, max)
    }

    /// What does not change with the round; of a shop, accounts, and a grant and a token that were
    /// issued once.
    fn values(&self, server: &Server, places: &Places) -> Result<Values, String> {
        let mut values = vec![("BENCHES", places.root.join("benches").display().to_string())];
        if self.server == Served::Shop {
            let mut accounts = String::from("ssoid\n");
            (0..ACCOUNTS).for_each(|n| accounts += &format!("s{n:08}\n"));
            let accounts = places.write("accounts.csv", &accounts)?;
            let body = r#"{"ssoid":"s00000000","scope":"basic"}"#;
            let grant = issued(server, "/oauth/authorize", "application/json", body, "grant")?;
            let form = "application/x-www-form-urlencoded";
            let body = format!("grant={grant}");
            let token = issued(server, "/oauth/token", form, &body, "token")?;
            values.push(("ACCOUNTS", accounts.display().to_string()));
            values.extend([("GRANT", grant), ("TOKEN", token)]);
        }
        Ok(values)
    }
}

impl Served {
    fn start(self, places: &Places) -> Result<(Server, &'static str), String> {
        let target =
            |words| server::target(&places.throng, &places.folder, words, Some(SERVER_CORE));
        Ok(match self {
            Served::Nginx(protocol) => (server::nginx(&places.folder, protocol)?, "http"),
            Served::Echo => (server::ws_echo(places)?, "ws"),
            Served::Target(words, scheme) => (target(words)?, scheme),
            Served::Shop => (target(&["http"])?, "http"),
        })
    }
}

/// Sends a request to the target and takes a field of the response.
fn issued(
    target: &Server,
    path: &str,
    content_type: &str,
    body: &str,
    name: &str,
) -> Result<String, String> {
    let head = format!("POST {path} HTTP/1.1\r\nContent-Type: {content_type}");
    let body = server::ask(target.port, &head, body)?;
    let value: Value = serde_json::from_str(&body).map_err(|error| format!("{path}: {error}"))?;
    let field = value.pointer(&format!("/data/{name}")).and_then(Value::as_str);
    field.map(str::to_string).ok_or_else(|| format!("{path}: no `{name}` in the response: {body}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contest::Sample;
    use std::time::Duration;

    #[test]
    fn every_goal_is_of_tools_that_take_part() {
        for case in &CASES {
            let options = crate::bench::parse(case.bench, &[]).unwrap();
            for (_, line) in case.tools {
                let tool = line.split(' ').next().unwrap();
                assert!(tool == "throng" || options.others().contains(&tool), "{line}");
            }
            let goals = case.goals.iter().map(|(name, _)| name).chain([&case.base]);
            let has = |name: &&str| case.tools.iter().any(|(tool, _)| tool == name);
            assert!(goals.into_iter().all(has), "{}", case.title);
        }
    }

    #[test]
    fn a_case_is_judged_by_its_base() {
        let row = |name: &str, ms| {
            let cpu = Duration::from_millis(ms);
            let sample = Sample { ok: 1000, cpu, seconds: 2.0, ..Sample::default() };
            Row { name: name.to_string(), samples: vec![sample; 3], trouble: None }
        };
        let goal = KEPT.goal(&[row("throng bench", 9), row("wrk", 10)], "throng bench", 0.95);
        assert_eq!((goal.measured, goal.max), (Some(0.9), 0.95));
        let what = "Keep-alive, 64 connections: throng bench, CPU per request at most 0.95 x wrk";
        assert_eq!(goal.what, what);
    }
}
