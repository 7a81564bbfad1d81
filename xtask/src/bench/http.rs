//! `bench http`: the same page of the same nginx, fetched by every tool.

use std::time::Duration;

use super::contest::{self, Entrant, Row, Sample};
use super::report::{self, Gate};
use super::server::{self, Server};
use super::tool::{Load, Places, Tool};
use super::{Options, TOOL_CORE, child, machine, memory, websocket};
use crate::workspace::Workspace;

const CONNECTIONS: [u32; 3] = [1, 64, 1000];
/// Where the goals are set.
const CONNECTIONS_GOAL: u32 = 64;
/// Short connections use up ports: each measurement is short and has an address of its own.
const SHORT_SECONDS_MAX: u32 = 2;
/// What a tool may take to start and to end, beside the time it was told.
const GRACE: Duration = Duration::from_secs(20);

/// One way to load the server, and who is the measure of it.
struct Case {
    connections: u32,
    seconds: u32,
    keep_alive: bool,
    base: Tool,
    /// Numbers the cases, to give each its addresses.
    number: u32,
}

/// Runs everything asked for and gives the section of the report.
pub(super) fn run(
    options: &Options,
    places: &Places,
    workspace: &Workspace,
) -> Result<String, String> {
    let mut text = machine::facts(options, places, workspace);
    text.push_str(&format!(
        "Medians of {} rounds; short connections at most {SHORT_SECONDS_MAX} s each.\n\n",
        options.rounds
    ));
    let mut gates = Vec::new();
    if options.wants("keep-alive") || options.wants("short") {
        let nginx = server::nginx(&places.folder)?;
        for case in cases(options) {
            let rows = case.hold(options, places, &nginx);
            text.push_str(&report::table(&case.title(), "request", &rows, case.base.name()));
            gates.extend(case.gates(&rows));
        }
    }
    if options.wants("websocket") {
        text.push_str(&websocket::run(options, places, workspace)?);
    }
    if options.wants("memory") && options.wants_tool(Tool::Throng.word()) {
        let (told, gate) = memory::run(places);
        text.push_str(&told);
        gates.push(gate);
    }
    text.push_str(&report::goals(&gates));
    Ok(text)
}

fn cases(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for (part, keep_alive) in [("keep-alive", true), ("short", false)] {
        if !options.wants(part) {
            continue;
        }
        for connections in CONNECTIONS {
            let number = cases.len() as u32;
            let (seconds, base) = if keep_alive {
                (options.seconds, Tool::Wrk)
            } else {
                (options.seconds.min(SHORT_SECONDS_MAX), Tool::Ab)
            };
            cases.push(Case { connections, seconds, keep_alive, base, number });
        }
    }
    cases
}

impl Case {
    fn title(&self) -> String {
        let kind = if self.keep_alive { "Keep-alive" } else { "A connection per request" };
        let plural = if self.connections == 1 { "" } else { "s" };
        let at_once = if self.keep_alive { "" } else { " at once" };
        format!("{kind}, {} connection{plural}{at_once}", self.connections)
    }

    fn hold(&self, options: &Options, places: &Places, nginx: &Server) -> Vec<Row> {
        let tools = Tool::ALL.into_iter().filter(|tool| options.wants_tool(tool.word()));
        let entrants: Vec<Entrant<'_>> = tools
            .filter(|tool| self.keep_alive || *tool != Tool::Scenario)
            .map(|tool| Entrant {
                name: tool.name().to_string(),
                run: Box::new(move |round| self.measure(tool, round, places, nginx)),
            })
            .collect();
        contest::hold(&self.title(), options.rounds, &entrants)
    }

    fn measure(
        &self,
        tool: Tool,
        round: u32,
        places: &Places,
        nginx: &Server,
    ) -> Result<Sample, String> {
        let load = Load {
            url: nginx.url("http", self.address(tool, round)),
            connections: self.connections,
            seconds: self.seconds,
            keep_alive: self.keep_alive,
        };
        tool.can(&load)?;
        let command = tool.command(&load, places)?;
        let running = child::start(command, TOOL_CORE, &places.folder, tool.word())?;
        let limit = Duration::from_secs(u64::from(self.seconds)) + GRACE;
        let ended = running.wait(limit)?;
        let done = tool.done(&ended)?;
        let seconds = f64::from(self.seconds);
        Ok(Sample { ok: done.ok, failed: done.failed, cpu: ended.cpu, seconds })
    }

    /// Ports wait a minute after a connection; another address has all of its own.
    fn address(&self, tool: Tool, round: u32) -> u8 {
        if self.keep_alive {
            return 1;
        }
        let tools = Tool::ALL.len() as u32;
        let turn = (self.number * 5 + round) * tools + tool as u32;
        1 + (turn % u32::from(server::ADDRESSES)) as u8
    }

    /// The goals of the project that this case decides.
    fn gates(&self, rows: &[Row]) -> Vec<Gate> {
        if self.connections != CONNECTIONS_GOAL {
            return Vec::new();
        }
        let gate = |tool: Tool, max: f64| {
            let ratio = contest::ratio(rows, tool.name(), self.base.name());
            Gate {
                goal: format!(
                    "{}: CPU per request of {} at most {max} x {}",
                    self.title(),
                    tool.name(),
                    self.base.name()
                ),
                measured: ratio.map(|ratio| ratio.median),
                max,
                unit: "x",
            }
        };
        if self.keep_alive {
            vec![gate(Tool::Throng, 0.95), gate(Tool::Scenario, 1.05)]
        } else {
            vec![gate(Tool::Throng, 0.95)]
        }
    }
}
