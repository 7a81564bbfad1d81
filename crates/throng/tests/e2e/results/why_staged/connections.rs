//! What becomes of connections: timeouts, limits, full queues, and ends of a process.

use std::net::TcpListener;
use std::os::fd::AsRawFd as _;

use super::{finds, running};
use crate::run::throng;
use crate::servers::{Haproxy, Node, Target, free_port};
use crate::service::host_monitor::Monitor;

/// HAProxy forwards bytes and ends connections that are silent for two seconds.
#[test]
fn a_timeout_of_haproxy_makes_a_plateau() {
    let echo = Target::start("echo");
    let sections = format!(
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 2s\n  timeout server 2s\n\
         backend echo\n  server a {}\n",
        echo.address
    );
    let haproxy = Haproxy::start(&sections, "echo");
    let text = format!(
        "target: tcp://127.0.0.1:{}\nload: [{{arrivals: 100/s, for: 18s}}]\ngraceful_stop: 0s\n\
         sessions: {{s: {{steps: [connect, {{stay: forever, on_error: leave}}]}}}}\n",
        haproxy.port
    );
    let run = running(&text).run();
    let found = finds(&run, "plateau-residence");
    run.check(found.contains("each ends after 2.00s (closed by the target)"), "when, and by whom");
}

/// Node closes what is idle for five seconds, and users pause for longer.
#[test]
fn node_closes_first() {
    let node = Node::start(super::clean::NODE, &[]);
    let text = format!(
        "target: {}\nload: [{{users: 60, for: 8s}}]\ngraceful_stop: 0s\nsessions: {{s: {{steps: \
         [http: GET /, {{think: 7s}}]}}}}\n",
        node.url("http")
    );
    let run = running(&text).run();
    let found = finds(&run, "closes-first");
    // It looks once a second.
    let is_it = ["5.", "6."].iter().any(|it| found.contains(&format!("half of them lasted {it}")));
    run.check(is_it, "after how long");
}

/// WebSockets, as many as it has descriptors for.
const SOCKETS: &str = r#"
const { WebSocketServer } = require("ws");
const server = new WebSocketServer({ port: 0, host: "127.0.0.1" }, () => {
  console.log("listening " + server.address().port);
});
server.on("connection", (socket) => socket.on("error", () => {}));
"#;

#[test]
fn a_process_without_descriptors_is_seen_by_its_monitor() {
    let node = Node::under("prlimit --nofile=64:64", SOCKETS, &[]);
    let (id, port) = (node.child.id(), node.port);
    let words = format!("--listen 127.0.0.1:0 --process {id} --port {port}");
    let monitor = Monitor::start_first(&words);
    let text = format!(
        "target: {}\nmonitor: [{{url: \"{}\", every: 2s}}]\nload: [{{users: 100, for: 9s}}]\n\
         graceful_stop: 0s\nsessions: {{s: {{steps: [connect: /, stay: forever]}}}}\n",
        node.url("ws"),
        monitor.url()
    );
    let run = throng("run s.yaml --json").file("s.yaml", text).run();
    let found = finds(&run, "descriptor-limit");
    run.check(found.contains("limit of 64 descriptors"), "which limit");
}

/// Nobody looks at the target's host: connections stop just below 1,024, and others fail.
#[test]
fn a_plateau_below_a_usual_limit_is_that_of_descriptors() {
    let node = Node::under("prlimit --nofile=1024:1024", SOCKETS, &[]);
    let text = format!(
        "target: {}\nload: [{{users: {{to: 1_060, rate: 300/s}}}}, {{users: 1_060, for: 18s}}]\ngraceful_stop: 0s\nsessions: {{s: {{\
         steps: [{{connect: /, reconnect: {{times: 1000, wait: 1s}}}}, stay: forever]}}}}\n",
        node.url("ws"),
    );
    let run = running(&text).run();
    let found = finds(&run, "descriptor-limit");
    run.check(found.contains("limit of 1,024"), "which limit");
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

/// Nobody accepts while the run goes on: connects wait for the queue to empty, and do not end.
#[test]
fn a_full_accept_queue_of_a_slow_target_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    // SAFETY: the socket is open. Listening once more sets the length of its queue.
    let done = unsafe { libc::listen(listener.as_raw_fd(), 8) };
    assert_eq!(done, 0, "the queue is short");
    let address = listener.local_addr().expect("an address");
    let text = format!(
        "target: http://{address}\nload: [{{users: 60, for: 7s}}]\ngraceful_stop: 0s\nsessions: \
         {{s: {{steps: [{{http: GET /, timeout: 60s}}]}}}}\n"
    );
    let found = finds(&throng("run s.yaml --json").file("s.yaml", text).run(), "accept-queue-full");
    assert!(found.contains("connects that waited for 3 s or longer"), "{found}");
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
    let found = finds(&child.wait(), "target-restarted");
    assert!(found.contains("was available again"), "{found}");
}

/// Each request leaves something behind, until nothing more is had: the process ends by itself.
#[test]
fn a_target_that_runs_out_of_memory_was_restarted() {
    const LEAK: &str = r#"
const kept = [];
const server = require("http").createServer((_, response) => {
  kept.push(new Array(30_000).fill(kept.length));
  setTimeout(() => response.end("x"), 20);
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log("listening " + process.argv[2]));
"#;
    let port = free_port().to_string();
    let first = Node::under("env NODE_OPTIONS=--max-old-space-size=64", LEAK, &[port.as_ref()]);
    let text = format!(
        "target: http://127.0.0.1:{port}\nload: [{{users: 20, for: 10s}}]\nsessions: {{s: {{steps: \
         [{{http: GET /, timeout: 1s}}, {{think: 250ms}}]}}}}\n"
    );
    let child = running(&text).start();
    child.until("no memory", || !first.child.is_alive());
    child.hears("a second without it", |_, err| err.contains("connect-ref").then_some(()));
    let second = Node::start(LEAK, &[port.as_ref()]);
    let found = finds(&child.wait(), "target-restarted");
    assert!(found.contains("was available again"), "{found}");
    drop(second);
}
