//! Servers that say much at once: nothing that came is lost, and what throng has no room for is
//! its own fault and counted.

use crate::faulty::{Faulty, Peer};
use crate::run::{Run, throng};
use crate::scenarios::one_session;
use crate::servers::Target;

const MIOP: &str = include_str!("../../../../../examples/miop.protocol.yaml");

/// Lines that are answered by lines, as many protocols of the internet have them.
const LINES: &str = r#"delimiter: "\r\n"
packet: [{id: body}]
messages:
  command: {body: [{id: text, type: str}]}
  reply: {answers: command, body: [{id: text, type: str}]}
"#;

/// Says so many lines at once to whatever it hears, and closes when the client does.
fn lines(many: usize) -> Faulty {
    Faulty::start(move |mut peer: Peer| {
        while peer.hears() {
            let text: String = (0..many).map(|line| format!("line {line}\r\n")).collect();
            peer.says(text.as_bytes());
        }
    })
}

fn run(head: &str, target: &str, steps: &str) -> Run {
    throng("run it.yaml --json --out record --shards 1")
        .file("it.yaml", one_session(target, head, steps))
        .file("it.protocol.yaml", LINES)
        .run()
}

/// The bytes of a row, in and out.
fn bytes(run: &Run, name: &str) -> (u64, u64) {
    let row = run.row("steps", name);
    let figure = |key: &str| row[key].as_u64().unwrap_or_default();
    (figure("received_bytes"), figure("sent_bytes"))
}

#[test]
fn a_burst_of_declared_answers_is_there_for_each_expect() {
    let server = lines(2_001);
    let head = "protocol: it.protocol.yaml\nload: [{iterations: 1, users: 1}]";
    let steps = r#"- connect
- request: {command: {text: go}}
- repeat: 2000
  steps: [{expect: reply, name: next, timeout: 5s}]
- disconnect"#;
    let run = run(head, &server.address.to_string(), steps).exits(0);
    run.has("/total/failed", 0);
    run.has("/messages/dropped", 0);
    run.check(run.row("steps", "next")["ok"] == 2_000, "all of them are there");
    // Rows have the delimiter in both directions, and all bytes are in them.
    let ((first, asked), (rest, _)) = (bytes(&run, "command"), bytes(&run, "next"));
    run.has("/received_bytes", first + rest);
    run.has("/sent_bytes", asked);
}

#[test]
fn each_byte_of_a_raw_stream_is_counted_once() {
    let server = lines(500);
    let steps = r#"- connect
- {request: {text: "go\r\n"}, expect: {delimiter: "\r\n"}, name: first}
- repeat: 499
  steps: [{expect: {delimiter: "\r\n"}, name: next, timeout: 5s}]
- disconnect"#;
    let target = format!("tcp://{}", server.address);
    let run = run("load: [{iterations: 1, users: 1}]", &target, steps).exits(0);
    run.has("/total/failed", 0);
    let ((first, _), (rest, _)) = (bytes(&run, "first"), bytes(&run, "next"));
    run.check(first == 8 && rest > 0, "the first line has eight bytes");
    run.has("/received_bytes", first + rest);
}

/// One pushes as fast as the target takes it (503 says that too many pushes are on their way); a
/// device takes its time for each push and leaves at once.
const SLOW: &str = r#"name: slow
target: TARGET
protocol: miop.protocol.yaml
sessions:
  admin:
    users: 1
    target: http://ADMIN
    protocol: none
    steps:
      - {rendezvous: it is there, users: 2}
      - repeat: PUSHES
        steps:
          - http: POST /push
            name: push
            json: {to: all, id: "${random.int(1, 1000000000)}"}
            check: {status: 202}
            retry: {on: [503], times: forever, wait: 1ms..10ms}
      - think: 200ms
      - {rendezvous: it is told, users: 2}
  device:
    users: 1
    before:
      - connect
      - request: {bind: {device: "d${user.id}", key: pk}}
        check: {code: 0}
      - {rendezvous: it is there, users: 2}
    on:
      - {message: push, name: pushed, do: [{think: 10ms}, {send: {received: {id: "${message.id}"}}}]}
    steps: [{rendezvous: it is told, users: 2, timeout: 1m}]
load: [{iterations: 2, users: 2}]
graceful_stop: 1m
thresholds: [pushed count = PUSHES]
"#;

#[test]
fn pushes_wait_for_a_slow_handler_and_are_acknowledged_before_the_user_leaves() {
    let target = Target::start("push");
    let text = SLOW
        .replace("TARGET", &target.address.to_string())
        .replace("ADMIN", &target.admin.to_string())
        .replace("PUSHES", "600");
    let run = throng("run slow.yaml --json --out record --shards 1")
        .file("slow.yaml", text)
        .file("miop.protocol.yaml", MIOP)
        .run()
        .exits(0);
    run.check(run.row("pushed", "pushed")["count"] == 600, "all of them came");
    run.check(run.row("steps", "received")["ok"] == 600, "all of them are acknowledged");
    run.has("/messages/skipped", 0);
    run.has("/messages/dropped", 0);
    assert_eq!(target.counts("/push/acknowledged"), 600, "{run}");
    assert_eq!(target.counts("/push/misnumbered"), 0, "{run}");
}
