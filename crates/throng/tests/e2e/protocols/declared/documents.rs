//! Documents in CBOR and MessagePack, against servers that use the libraries of Python.

use std::path::Path;
use std::process::Command;

use throng_fuzz::python_packages;

use crate::run::{Child, Run, throng};
use crate::scenarios::one_session;
use crate::servers::program;

const CBOR: &str = r#"format: cbor
packet: [{id: type, type: str, selects: message}, {id: body}]
messages:
  report:
    kind: report
    body:
      - {id: seq, type: u32, correlates: request}
      - {id: name, path: "-2", type: str}
      - {id: value, path: "values[1]", type: f64}
      - {id: raw, type: bytes}
  stored:
    kind: stored
    answers: report
    body:
      - {id: seq, type: u32, correlates: request}
      - {id: name, type: str}
      - {id: sum, type: f64}
      - {id: at, type: u32, optional: true}
  alarm: {kind: alarm, push: true, body: [{id: list}]}
"#;

const MESSAGE_PACK: &str = r#"transport: ws
format: msgpack
packet: [{id: kind, path: "[0]", type: u8, selects: message}, {id: body}]
messages:
  join:
    kind: 1
    body:
      - {id: id, path: "[1]", type: u32, correlates: request}
      - {id: room, path: "[2].room", type: str}
      - {id: token, path: "[2].token", type: bytes}
  joined:
    kind: 2
    answers: join
    body:
      - {id: id, path: "[1]", type: u32, correlates: request}
      - {id: code, path: "[2].code", type: u8}
      - {id: users, path: "[2].users"}
  refused:
    kind: 3
    answers: join
    body: [{id: id, path: "[1]", type: u32, correlates: request}, {id: why, path: "[2]", type: str}]
  say: {kind: 4, body: [{id: level, path: "[1]", type: f32}, {id: text, path: "[2]", type: str}]}
  said: {kind: 5, push: true, body: [{id: text, path: "[1]", type: str}, {id: level, path: "[2]", type: f64}]}
"#;

/// A server written in Python, and its port. It prints what it receives.
#[track_caller]
fn python(name: &str, package: &str) -> (Child, String) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/protocols/declared").join(name);
    let mut command = Command::new(program("python3", "python3"));
    command.arg(file).env("PYTHONPATH", python_packages(package));
    let child = Child::start(command);
    let port = child.line("listening ");
    (child, port)
}

/// Runs the steps 100 times, of which nothing may fail.
#[track_caller]
fn spoken(protocol: &str, target: &str, steps: &str) -> Run {
    let head = "protocol: it.protocol.yaml\nload: [{iterations: 100, users: 5}]";
    let run = throng("run it.yaml --json --out record")
        .file("it.yaml", one_session(target, head, steps))
        .file("it.protocol.yaml", protocol)
        .run()
        .exits(0);
    run.has("/total/failed", 0);
    run.has("/messages/broken", 0);
    run
}

/// Waits until a server has printed so many of these lines.
#[track_caller]
fn prints(server: &Child, line: &str, times: usize) {
    server.hears(&format!("{times} times `{line}`"), |out, _| {
        (out.lines().filter(|one| *one == line).count() == times).then_some(())
    });
}

#[test]
fn cbor_of_python_is_spoken_over_tcp() {
    let (server, port) = python("cbor_server.py", "cbor2");
    let steps = r#"- connect
- request: {report: {name: "s${user.id}", value: 1.25, raw: "${hex.decode('00ff')}"}}
  expect: {stored: {name: "s${user.id}", sum: 2.5, at: 1700000000}}
  name: report
- expect: alarm
  check: {field: {"list[0]": "s${user.id}", "list[1]": null}}
  name: alarm
- disconnect"#;
    let run = spoken(CBOR, &format!("tcp://127.0.0.1:{port}"), steps);
    for step in ["report", "alarm"] {
        run.check(run.row("steps", step)["ok"] == 100, step);
    }
    prints(&server, "report", 100);
}

#[test]
fn message_pack_of_python_is_spoken_over_websocket() {
    let (server, port) = python("msgpack_server.py", "msgpack");
    let steps = r#"- connect
- request: {join: {room: lobby, token: "${hex.decode('00ff746f6b656e')}"}}
  expect: joined
  check: {field: {code: 0, "users[0].id": 70000}}
  name: join
- request: {join: {room: lobby, token: wrong}}
  expect: {refused: {why: denied}}
  name: refused
- send: {say: {level: 0.5, text: "h\u00e9"}}
- expect: {said: {text: "H\u00c9", level: 0.5}}
  name: said
- disconnect"#;
    let run = spoken(MESSAGE_PACK, &format!("ws://127.0.0.1:{port}"), steps);
    for step in ["join", "refused", "said"] {
        run.check(run.row("steps", step)["ok"] == 100, step);
    }
    for (kind, times) in [("1", 200), ("4", 100)] {
        prints(&server, kind, times);
    }
}

#[test]
fn documents_are_drawn_encoded_and_decoded() {
    let with = |line: &str| throng(line).file("it.protocol.yaml", CBOR);
    let drawn = with("protocol it.protocol.yaml").run().exits(0);
    drawn.says(&["CBOR documents", "each packet is one document", "path values[1]", "bytes"]);
    let stored = "stored: {seq: 7, name: s7, sum: 2.5}";
    let hex = with("protocol it.protocol.yaml --encode").arg(stored).run().exits(0).out.clone();
    // {"type": "stored", "seq": 7, "name": "s7", "sum": 2.5}
    assert_eq!(
        hex.split_whitespace().collect::<String>(),
        "a46474797065\
         6673746f72656463736571\
         07646e616d65\
         6273376373756d\
         fb4004000000000000"
    );
    let decoded = with("protocol it.protocol.yaml --decode").arg(&hex).run().exits(0);
    decoded.says(&["stored", "\"s7\"", "2.5", "all bytes match the declaration"]);
    let broken = with("protocol it.protocol.yaml --decode a11c").run();
    broken.says(&["this is not valid CBOR: 0x1c"]);
}
