//! WebSocket echo: throng beside k6 against npm's `ws`, a server by others.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::child::{self, Ended};
use super::contest::{self, Entrant, Sample};
use super::server::{self, Server};
use super::tool::{self, Done, Places, Tool};
use super::{Options, TOOL_CORE, report, throng};
use crate::packages;
use crate::workspace::Workspace;

const CONNECTIONS: u32 = 64;
const GRACE: Duration = Duration::from_secs(20);

pub(super) fn run(
    options: &Options,
    places: &Places,
    workspace: &Workspace,
) -> Result<String, String> {
    let modules = packages::ensure_node(&workspace.target)?;
    let server = server::ws_echo(&places.folder, &modules)?;
    let entrants: Vec<Entrant<'_>> = [Tool::Throng, Tool::K6]
        .into_iter()
        .filter(|tool| options.wants_tool(tool.word()))
        .map(|tool| Entrant {
            name: tool.name().to_string(),
            run: Box::new({
                let server = &server;
                move |_| measure(tool, options.seconds, places, server)
            }),
        })
        .collect();
    let title = format!("WebSocket echo of `hello`, {CONNECTIONS} connections, npm's ws");
    let rows = contest::hold(&title, options.rounds, &entrants);
    Ok(report::table(&title, "message", &rows, Tool::K6.name()))
}

fn measure(tool: Tool, seconds: u32, places: &Places, server: &Server) -> Result<Sample, String> {
    let url = server.url("ws", 1);
    let program = tool.program(places)?;
    let command = if tool == Tool::K6 {
        let file = tool::write(&places.folder, "k6-echo.js", &k6_script(&url, seconds))?;
        let mut command = Command::new(program);
        command.args(["run", "--quiet", "--no-usage-report"]).arg(file);
        command
    } else {
        throng::bench(&program, &url, CONNECTIONS, seconds, &["--body", "hello"])
    };
    let running = child::start(command, TOOL_CORE, &places.folder, "echo")?;
    let ended = running.wait(Duration::from_secs(u64::from(seconds)) + GRACE)?;
    let done = match tool {
        Tool::K6 => k6_done(&ended),
        _ => throng::counts(&ended.output).ok().map(|(ok, failed)| Done { ok, failed }),
    };
    match done {
        Some(done) if done.ok > 0 => Ok(Sample {
            ok: done.ok,
            failed: done.failed,
            cpu: ended.cpu,
            seconds: f64::from(seconds),
        }),
        _ => Err(ended.complaint()),
    }
}

/// Each user sends, waits for the answer and sends again, until the time is over.
fn k6_script(url: &str, seconds: u32) -> String {
    format!(
        "import ws from 'k6/ws';\n\
         export const options = {{ scenarios: {{ echo: {{ executor: 'per-vu-iterations', \
         vus: {CONNECTIONS}, iterations: 1, maxDuration: '{limit}s' }} }} }};\n\
         export default function () {{\n  ws.connect('{url}', {{}}, (socket) => {{\n    \
         socket.on('open', () => socket.send('hello'));\n    \
         socket.on('message', () => socket.send('hello'));\n    \
         socket.setTimeout(() => socket.close(), {seconds} * 1000);\n  }});\n}}\n\
         export function handleSummary(data) {{ return {{ stdout: JSON.stringify(data) }}; }}\n",
        limit = seconds + 10
    )
}

fn k6_done(ended: &Ended) -> Option<Done> {
    let summary: Value = serde_json::from_str(ended.output.trim()).ok()?;
    let ok = summary["metrics"]["ws_msgs_received"]["values"]["count"].as_u64()?;
    Some(Done { ok, failed: 0 })
}
