//! What a service does wrong while its host has all it needs.

use super::{finds, running};
use crate::run::throng;
use crate::servers::{Node, Target};

/// Two pages, of which one becomes slower.
#[test]
fn the_step_that_takes_the_time_is_named() {
    const SHOP: &str = r#"
const begun = Date.now();
const server = require("http").createServer((request, response) => {
  const more = request.url === "/order" ? (Date.now() - begun) / 300 : 0;
  setTimeout(() => response.end("x"), 10 + more);
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;
    let node = Node::start(SHOP, &[]);
    let text = format!(
        "target: {}\nload: [{{users: 10, for: 24s}}]\nsessions: {{s: {{steps: [http: GET /cart, \
         http: POST /order, {{think: 20ms}}]}}}}\n",
        node.url("http").trim_end_matches('/')
    );
    let found = finds(&running(&text).run(), "slow-step");
    assert!(found.contains("POST /order caused"), "{found}");
}

/// One request of twenty fails from a moment on.
#[test]
fn errors_that_begin_at_a_moment_are_told_with_it() {
    const SHOP: &str = r#"
const begun = Date.now();
let count = 0;
const server = require("http").createServer((_, response) => {
  if (Date.now() - begun > 13_000 && ++count % 20 === 0) response.statusCode = 500;
  response.end("x");
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;
    let node = Node::start(SHOP, &[]);
    let text = format!(
        "target: {}\nload: [{{users: 10, for: 25s}}]\nsessions: {{s: {{steps: [http: GET /, \
         {{think: 20ms}}]}}}}\n",
        node.url("http")
    );
    let found = finds(&running(&text).run(), "rising-errors");
    assert!(found.contains("although the load did not increase"), "{found}");
}

/// Each fifth connection is never answered: its user waits for longer than the run takes.
#[test]
fn users_whose_requests_have_no_end_are_missed() {
    const SILENT: &str = r#"
let connections = 0;
const server = require("http").createServer((request, response) => {
  if (request.socket.isSilent) return;
  setTimeout(() => response.end("x"), 5);
});
server.on("connection", (socket) => (socket.isSilent = ++connections % 5 === 0));
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;
    let node = Node::start(SILENT, &[]);
    let text = format!(
        "target: {}\nload: [{{users: 20, for: 26s}}]\ngraceful_stop: 0s\nsessions: {{s: {{steps: \
         [{{http: GET /, timeout: 60s}}, {{think: 100ms}}]}}}}\n",
        node.url("http")
    );
    let run = running(&text).run();
    let findings = run.json()["findings"].as_array().cloned().unwrap_or_default();
    let found = findings.into_iter().find(|it| it["code"] == "time-unaccounted");
    let found = found.unwrap_or_default();
    run.check(found["text"].to_string().contains("explain only 16"), &found.to_string());
    // A generator that is late itself makes it a hint.
    let is_late = run.figure("/generator/late_seconds") > 0.0;
    run.check(found["level"] != "hint" || is_late, &found.to_string());
}

/// A hundred users, of whom the service drops forty and takes nobody for four seconds.
#[test]
fn users_that_come_back_too_often_are_a_storm() {
    const DROPS: &str = r#"
const { WebSocketServer } = require("ws");
const sockets = [];
function listen(port, then) {
  const server = require("http").createServer();
  new WebSocketServer({ server }).on("connection", (socket) => {
    socket.on("error", () => {});
    if (sockets.push(socket) === 100) setTimeout(() => drop(server), 3_000);
  });
  server.listen(port, "127.0.0.1", () => then(server.address().port));
}
function drop(server) {
  const port = server.address().port;
  server.close();
  sockets.slice(0, 40).forEach((socket) => socket.terminate());
  setTimeout(() => listen(port, () => {}), 5_000);
}
listen(0, (port) => console.log("listening " + port));
"#;
    let node = Node::start(DROPS, &[]);
    let text = format!(
        "target: {}\nload: [{{users: 100, for: 14s}}]\ngraceful_stop: 0s\nsessions: {{s: {{steps: \
         [{{connect: /, reconnect: {{times: 1000, wait: 200ms}}}}, stay: forever]}}}}\n",
        node.url("ws")
    );
    let found = finds(&running(&text).run(), "reconnect-storm");
    assert!(found.contains("after 40 lost connections"), "{found}");
}

/// Users keep their connections, whose handshakes take longer than all that is asked over them.
#[test]
fn handshakes_that_reuse_hides_are_a_hint() {
    let target = Target::start("http --tls");
    let text = format!(
        "target: {}\ntls: {{verify: false}}\nload: [{{users: 8, for: 3s}}]\nsessions: {{s: {{steps: \
         [http: GET /, {{think: 5ms}}]}}}}\n",
        target.url("https", "/")
    );
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    let found = run.json()["findings"].to_string();
    run.check(found.contains("tls-hidden"), "handshakes are hidden");
}
