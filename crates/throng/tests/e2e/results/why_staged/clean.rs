//! Real servers without a fault, under loads of all kinds: nothing is more than a hint.

use std::path::Path;

use super::sure;
use crate::run::{Child, Run, throng};
use crate::servers::{Nginx, Node, Target, program};

/// The usual server of many services: JSON, with the keep-alive that is the default.
pub(super) const NODE: &str = r#"
const server = require("http").createServer((request, response) => {
  request.resume().on("end", () => {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ path: request.url, at: Date.now() }));
  });
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

/// A service that counts in Redis, in its own protocol (RESP).
const COUNTS: &str = r#"
const redis = require("net").connect(process.argv[2]).setNoDelay(true);
const waiting = [];
redis.on("data", (data) => {
  for (const line of data.toString().trim().split("\r\n")) waiting.shift()(line.slice(1));
});
const server = require("http").createServer((_, response) => {
  waiting.push((count) => response.end("visit " + count));
  redis.write("INCR visits\r\n");
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

/// Redis on a unix socket in the folder.
fn redis(folder: &Path) -> (Child, String) {
    let socket = folder.join("redis.sock");
    let mut command = std::process::Command::new(program("redis-server", "redis-server"));
    command.args(["--port", "0", "--save", "", "--dir"]).arg(folder);
    command.arg("--unixsocket").arg(&socket);
    let child = Child::start(command);
    child.until("Redis to listen", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    (child, socket.display().to_string())
}

/// What users do with a service that answers to `GET /`.
const LOADS: [(&str, &str); 4] = [
    ("load: [{users: 10, for: 24s}]", "[http: GET /, {think: 100ms..300ms}]"),
    ("load: [{iterations: 40/s, users: 20, for: 24s}]", "[http: GET /]"),
    (
        "load: [{arrivals: {from: 5/s, to: 20/s}, for: 12s}, {arrivals: 20/s, spacing: poisson, for: \
         12s}]\nconnection: {keep_alive: false}",
        "[http: GET /, {think: 200ms}, http: GET /]",
    ),
    (
        "load: [{users: {to: 20, rate: 2/s}}, {users: 20, for: 14s}]",
        "[http: GET /, {think: 300ms}, {http: GET /, name: again}, {think: {exponential: 400ms}}]",
    ),
];

/// Long-lived connections, whose users come back.
const LIVES: [(&str, &str); 4] = [
    (
        "load: [{users: 40, for: 24s}]",
        "[connect: /, {repeat: forever, steps: [{request: {text: \
      hello}}, {think: 500ms}]}]",
    ),
    ("load: [{users: 40, for: 24s, churn: 5/s}]", "[connect: /, stay: forever]"),
    ("load: [{users: 30, for: 24s}]", "[connect: /, {request: {text: hello}}, {stay: 2s}]"),
    ("load: [{arrivals: 10/s, for: 24s}]", "[connect: /, {stay: 3s}, disconnect]"),
];

fn begin(target: &str, (load, steps): (&str, &str)) -> Child {
    let text = format!("target: {target}\n{load}\nsessions: {{s: {{steps: {steps}}}}}\n");
    throng("run s.yaml --json").file("s.yaml", text).start()
}

/// Twenty at once: each is small.
#[test]
fn nothing_is_found_in_twenty_runs_without_a_fault() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_redis, socket) = redis(folder.path());
    let counts = Node::start(COUNTS, &[socket.as_ref()]);
    let (node, nginx, target) =
        (Node::start(NODE, &[]), Nginx::start("", ""), Target::start("http"));
    let echo = Target::start("echo");
    let targets = [node.url("http"), nginx.url("/"), target.http("/"), counts.url("http")];
    let requests = targets.iter().flat_map(|url| LOADS.map(|load| begin(url, load)));
    let lives = LIVES.map(|load| begin(&echo.url("ws", "/"), load));
    let runs: Vec<Child> = requests.chain(lives).collect();
    assert_eq!(runs.len(), 20);
    let ended: Vec<Run> = runs.into_iter().map(Child::wait).collect();
    let mut hints = 0;
    for run in &ended {
        // That this machine is busy is no fault of a server, and it is true.
        let found: Vec<String> =
            sure(run).into_iter().filter(|code| code != "generator-bound").collect();
        run.check(found.is_empty(), &format!("{found:?} in a run without a fault"));
        run.has("/total/failed", 0);
        hints += run.json()["findings"].as_array().map_or(0, Vec::len) - sure(run).len();
    }
    assert!(hints <= 2, "{hints} hints");
}

/// A steady load is stable, and Little's law holds.
#[test]
fn a_soak_is_judged_and_its_books_add_up() {
    let node = Node::start(NODE, &[]);
    let text = format!(
        "target: {}\nload: [{{users: 10, for: 2s}}]\nsessions: {{s: {{steps: [http: GET /, \
         {{think: 20ms}}]}}}}\n",
        node.url("http")
    );
    let run = throng("run s.yaml --json --soak 6s").file("s.yaml", text).run().exits(0);
    run.check(run.json()["stability"]["verdict"] == "too-short", "six seconds tell nothing");
    let level = run.json()["levels"][0].clone();
    let pair = level["users_mean"].as_f64().zip(level["users_explained"].as_f64());
    run.check(pair.is_some_and(|(users, busy)| (busy / users - 1.0).abs() < 0.03), "the books");
}
