//! Findings on real servers that have the fault: each is found with at least *likely*.

use serde_json::Value;

use crate::run::{Run, throng};
use crate::servers::{Node, free_port};

/// The run has a finding of this code, and it is sure enough.
fn finds(run: &Run, code: &str) {
    let findings = run.json()["findings"].as_array().cloned().unwrap_or_default();
    let is_it = |row: &Value| row["code"] == code && row["level"] != "hint";
    run.check(findings.iter().any(is_it), &format!("{code} is found"));
}

/// It refuses an ID that it has.
const UNIQUE: &str = r#"
const seen = new Set();
const server = require("http").createServer((request, response) => {
  let body = "";
  request.on("data", (data) => (body += data));
  request.on("end", () => {
    response.statusCode = seen.has(body) ? 409 : 201;
    seen.add(body);
    response.end("x");
  });
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

#[test]
fn conflicts_of_repeated_data_are_those_of_the_scenario() {
    let node = Node::start(UNIQUE, &[]);
    let text = format!(
        "target: {}\nsessions: {{s: {{steps: [{{http: POST /users, json: {{id: \"${{random.int(1, \
         1000)}}\"}}}}]}}}}\nload: [{{iterations: 2_000, users: 8}}]\n",
        node.url("http")
    );
    let repeated = throng("run s.yaml --json --shards 1").file("s.yaml", text).run().exits(0);
    finds(&repeated, "own-duplicates");
    let row = repeated.json()["samples"][0].clone();
    let share = row["conflicts_repeated"].as_f64().zip(row["conflicts"].as_f64());
    repeated.check(share.is_some_and(|(own, all)| own >= all * 0.4 && own <= all), "a part");
}

/// Head and body in two writes with Nagle's algorithm: the second waits for the acknowledgement of
/// the first, and that for its timer.
const NAGLE: &str = r#"
let count = 0;
const server = require("net").createServer((socket) => {
  socket.setNoDelay(false);
  socket.on("error", () => {});
  socket.on("data", () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    if (++count % 4 === 0) {
      socket.write(head);
      setImmediate(() => socket.write("hello"));
    } else socket.write(head + "hello");
  });
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

#[test]
fn forty_milliseconds_of_nagle_are_named() {
    let node = Node::start(NAGLE, &[]);
    let line = format!("bench {} -c 20 -d 4s --json", node.url("http"));
    let run = throng(&line).run().exits(0);
    finds(&run, "two-peaks");
    run.check(run.json()["findings"].to_string().contains("TCP_NODELAY"), "the cause is named");
}

/// One process with three addresses; the second is slow.
const ADDRESSES: &str = r#"
const port = Number(process.argv[2]);
let up = 0;
["127.0.0.1", "127.0.0.2", "127.0.0.3"].forEach((address, at) => {
  const answer = (_, response) => setTimeout(() => response.end("x"), at === 1 ? 30 : 3);
  const told = () => { if (++up === 3) console.log("listening " + port); };
  require("http").createServer(answer).listen(port, address, told);
});
"#;

#[test]
fn one_slow_address_of_three_is_named() {
    let port = free_port();
    let number = port.to_string();
    let _node = Node::start(ADDRESSES, &[number.as_ref()]);
    let addresses: Vec<String> =
        (1..=3).map(|last| format!("http://127.0.0.{last}:{port}")).collect();
    let text = format!(
        "target: {{addresses: [{}]}}\nload: [{{users: 12, for: 4s}}]\nsessions: {{s: {{steps: \
         [http: GET /]}}}}\n",
        addresses.join(", ")
    );
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    finds(&run, "one-bad-address");
    run.check(run.json()["findings"].to_string().contains(&format!("127.0.0.2:{port}")), "which");
}

/// A short accept queue, and a process that does not accept for 0.7 s of every second.
const BACKLOG: &str = r#"
const server = require("http").createServer((_, response) => {
  response.setHeader("Connection", "close");
  response.end("x");
});
const port = () => console.log("listening " + server.address().port);
server.listen({ port: 0, host: "127.0.0.1", backlog: 8 }, port);
setInterval(() => {
  const begin = Date.now();
  while (Date.now() - begin < 700);
}, 1000);
"#;

#[test]
fn a_full_accept_queue_is_counted() {
    let node = Node::start(BACKLOG, &[]);
    let line = format!("bench {} -c 100 -d 5s --json", node.url("http"));
    finds(&throng(&line).run(), "accept-queue-full");
}

/// A target of the service dies with all its connections, and another one takes its port.
#[test]
fn a_killed_target_was_restarted() {
    const SERVER: &str = r#"
const server = require("http").createServer((_, response) => setTimeout(() => response.end("x"), 20));
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log("listening " + process.argv[2]));
"#;
    let port = free_port().to_string();
    let first = Node::start(SERVER, &[port.as_ref()]);
    let text = format!(
        "target: http://127.0.0.1:{port}\nload: [{{users: 40, for: 8s}}]\nsessions: {{s: {{steps: \
         [{{http: GET /, timeout: 1s}}, {{think: 50ms}}]}}}}\n"
    );
    let child = throng("run s.yaml --json --out record").file("s.yaml", text).start();
    let seconds = |second: &str| {
        child.hears("seconds of the run", |_, err| err.contains(second).then_some(()));
    };
    seconds(" 3s ");
    first.child.signal(libc::SIGKILL);
    seconds(" 5s ");
    let _second = Node::start(SERVER, &[port.as_ref()]);
    finds(&child.wait(), "target-restarted");
}

/// A steady load is stable, and Little's law holds.
#[test]
fn a_soak_is_judged_and_its_books_add_up() {
    let node = Node::start(UNIQUE, &[]);
    let text = format!(
        "target: {}\nload: [{{users: 10, for: 2s}}]\nsessions: {{s: {{steps: [{{http: GET /, check: \
         {{status: [201, 409]}}}}, {{think: 20ms}}]}}}}\n",
        node.url("http")
    );
    let run = throng("run s.yaml --json --soak 6s").file("s.yaml", text).run().exits(0);
    run.check(run.json()["stability"]["verdict"] == "too-short", "six seconds tell nothing");
    let level = run.json()["levels"][0].clone();
    let pair = level["users_mean"].as_f64().zip(level["users_explained"].as_f64());
    run.check(pair.is_some_and(|(users, busy)| (busy / users - 1.0).abs() < 0.03), "the books");
}
