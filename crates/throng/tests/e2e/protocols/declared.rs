//! Declared protocols on every transport, against servers that know nothing of the declaration.

mod documents;
mod replies;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::faulty::{Faulty, Peer};
use crate::protocols::push::Redis;
use crate::run::{Run, throng};
use crate::scenarios::one_session;
use crate::servers::{Node, Target};

/// A run of the steps of one session, so often by so many users, over a protocol.
#[track_caller]
fn run(protocol: &str, target: &str, head: &str, steps: &str) -> Run {
    let head = format!("protocol: it.protocol.yaml\n{head}");
    throng("run it.yaml --json --out record --shards 2")
        .file("it.yaml", one_session(target, &head, steps))
        .file("it.protocol.yaml", protocol)
        .run()
}

const TWENTY: &str = "load: [{iterations: 20, users: 5}]";

/// Lines without kinds, as many protocols of the internet have them.
const LINES: &str = r#"delimiter: "\r\n"
max: 4KiB
packet: [{id: body}]
messages: {line: {body: [{id: text, type: str}]}}
"#;

/// The same with a message for each direction, so that there are requests.
const COMMANDS: &str = r#"delimiter: "\r\n"
packet: [{id: body}]
messages:
  command: {body: [{id: text, type: str}]}
  reply: {answers: command, body: [{id: text, type: str}]}
"#;

#[test]
fn redis_is_spoken_in_lines() {
    let redis = Redis::start();
    let steps = r#"- connect
- {send: {line: {text: PING}}}
- {send: {line: {text: "SET k${user.id} v${user.id}"}}}
- {send: {line: {text: "GET k${user.id}"}}}
- {send: {line: {text: "INCR all"}}}
- {expect: {line: {text: "+PONG"}}, name: ping}
- {expect: line, check: {field: {text: "+OK"}}, name: set}
- {expect: {line: {text: "$2"}}, name: size}
- {expect: line, check: {field: {text: "v${user.id}"}}, name: get, save: {got: {field: text}}}
- {expect: any, check: {text: ":"}, name: number}
- log: "it is ${saved.got}"
- disconnect"#;
    let run = run(LINES, &format!("127.0.0.1:{}", redis.port), TWENTY, steps).exits(0);
    for name in ["ping", "set", "size", "get", "number"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    run.has("/total/failed", 0);
    run.has("/messages/sent", 80);
    run.has("/messages/received", 100);
    run.has("/messages/broken", 0);
    run.has("/messages/pushes", 0);
    run.says(&["it is v1", "it is v5"]);
    assert_eq!(redis.number("GET nothing"), None);
    assert_eq!(redis.number("INCR all"), Some(21), "{run}");
}

#[test]
fn replies_match_requests_in_order() {
    let redis = Redis::start();
    let steps = r#"- connect
- {send: {command: {text: "ECHO one"}}}
- {send: {command: {text: "INCR all"}}}
- {expect: {reply: {text: "$3"}}, name: size}
- {expect: reply, check: {field: {text: one}}, name: one}
- {expect: reply, check: {field: {text: {contains: ":"}}}, name: number}
- {request: {command: {text: PING}}, check: {field: {text: "+PONG"}}, name: ping}
- repeat: 5
  steps:
    - {request: {command: {text: "SET a ${user.id}"}}, check: {field: {text: "+OK"}}, name: set}
- disconnect"#;
    let run = run(COMMANDS, &format!("127.0.0.1:{}", redis.port), TWENTY, steps).exits(0);
    run.has("/total/failed", 0);
    run.check(run.row("steps", "set")["ok"] == 100, "each is answered");
    run.has("/messages/unasked", 0);
    run.has("/messages/pushes", 0);
    assert_eq!(redis.number("INCR all"), Some(21), "{run}");
}

/// The first byte tells what a line is: replies belong to requests by their kind alone.
const KINDS: &str = r#"delimiter: "\r\n"
packet: [{id: kind, type: u8, selects: message}, {id: body}]
messages:
  ping:   {kind: 0x50, body: [{id: rest, type: str}]}
  incr:   {kind: 0x49, body: [{id: rest, type: str}]}
  simple: {kind: 0x2B, answers: ping, body: [{id: said, type: str}]}
  number: {kind: 0x3A, answers: incr, body: [{id: said, type: str}]}
  error:  {kind: 0x2D, answers: [incr, ping], body: [{id: said, type: str}]}
"#;

#[test]
fn replies_are_told_by_their_kind() {
    let redis = Redis::start();
    let steps = r#"- connect
- {request: {ping: {rest: ING}}, check: {said: PONG}}
- {send: {ping: {rest: ING}}}
- {request: {incr: {rest: "NCR all"}}, check: {said: present}, save: {said: said}}
- {expect: simple, check: {said: PONG}, name: the first}
- {request: {incr: {rest: "NCRR all"}}, name: wrong, check: {said: {contains: unknown command}}}
- log: "${saved.said}"
- disconnect"#;
    let run = run(KINDS, &format!("127.0.0.1:{}", redis.port), TWENTY, steps).exits(0);
    run.has("/total/failed", 0);
    for name in ["incr", "the first", "wrong"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    assert_eq!(redis.number("INCR all"), Some(21), "{run}");
    run.check(run.row("steps", "ping")["kind"] == "request", "a request");
}

/// An echo sends requests back, so that no message of it is a reply.
fn notes(transport: &str) -> String {
    format!(
        "transport: {transport}
packet:
  - {{id: length, type: u16, counts: body, max: 1KiB}}
  - {{id: kind, type: u8, selects: message}}
  - {{id: body}}
messages:
  note:
    kind: 1
    body: [{{id: n, type: varint}}, {{id: user, type: u32le}}, {{id: text, type: str}}]
  mark: {{kind: 2}}
"
    )
}

const IN_FLIGHT: &str = r#"- connect
- {send: {note: {n: 300, user: "${user.id}", text: "a ${user.id}"}}}
- {send: mark}
- {send: {note: {n: 2, user: "${user.id}", text: größer}}}
- {expect: {note: {n: 2}}, check: {user: "${user.id}", field: {text: größer}}, name: second}
- {expect: mark, name: between}
- {expect: note, check: {n: 300, field: {text: "a ${user.id}"}}, name: first}
- {expect: mark, timeout: 200ms, name: nothing, on_error: count}
- disconnect"#;

#[track_caller]
fn notes_are_echoed(target: &Target, transport: &str, head: &str) -> Run {
    let head = format!("{head}\n{TWENTY}");
    let run = run(&notes(transport), &target.address.to_string(), &head, IN_FLIGHT).exits(0);
    for name in ["second", "between", "first"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    run.check(run.row("steps", "nothing")["failed"] == 20, "nothing comes twice");
    run.fails("timeout", "target", Some(20));
    run.has("/messages/received", 60);
    run.has("/messages/broken", 0);
    run.has("/connections/opened", 20);
    run
}

#[test]
fn messages_are_in_flight_on_every_transport() {
    let echo = Target::start("echo");
    notes_are_echoed(&echo, "tcp", "");
    let run = notes_are_echoed(&echo, "ws", "");
    run.check(run.row("stages", "upgrade")["ok"] == 20, "an upgrade");
    let secret = Target::start("echo --tls");
    let run = notes_are_echoed(&secret, "tls", "tls: {verify: false}");
    run.check(run.row("stages", "tls")["ok"] == 20, "a handshake");
    notes_are_echoed(&secret, "wss", "tls: {verify: false}");
}

const ORDERS: &str = "proto: shop.proto
packet: [{id: length, type: u16, counts: body}, {id: body}]
messages: {order: {answers: order, body: [{id: order, type: protobuf(Order)}]}}
";

const SHOP: &str = "syntax = \"proto3\";
import \"google/protobuf/timestamp.proto\";
enum State { OPEN = 0; PAID = 1; }
message Item { string name = 1; sint64 unit_price = 2; repeated int32 sizes = 3; }
message Order {
  uint64 id = 1;
  State state = 2;
  repeated Item items = 3;
  map<string, Item> labels = 4;
  bytes seal = 5;
  optional string note = 6;
  google.protobuf.Timestamp at = 7;
  int32 count = 8;
}
";

const BUYING: &str = r#"- connect
- request:
    order:
      order:
        id: "${user.id}"
        state: PAID
        items: [{name: "tea ${user.id}", unitPrice: -3, sizes: [1, "${user.id}"]}, {}]
        labels: {"a.b": {name: x}}
        seal: AQID
        at: 2026-01-31T10:00:00Z
  check:
    order.id: "${user.id}"
    order.state: PAID
    order.items[0]: {name: "tea ${user.id}", unit_price: -3, sizes: [1]}
    order.items[1].unitPrice: 0
    'order.labels["a.b"].name': x
    order.at: "2026-01-31T10:00:00Z"
    order.count: 0
    order.note: absent
    order.seal: present
  save: {state: order.state, all: order}
- {request: {order: {order: "${saved.all}"}}, check: {order: {state: 1, labels: present}}, name: again}
- {request: {order: {order: {note: ""}}}, check: {order.note: present, order.state: OPEN}, name: empty}
- {request: {order: {order: {id: 1}}}, check: {order.note: present}, name: none, on_error: count}
- {request: {order: {order: {state: "${saved.state}D"}}}, name: no such, on_error: count}"#;

#[test]
fn protobuf_messages_are_sent_and_checked() {
    let echo = Target::start("echo");
    let scenario = one_session(
        &echo.address.to_string(),
        &format!("protocol: it.protocol.yaml\n{TWENTY}"),
        BUYING,
    );
    let run = throng("run it.yaml --json --out record --shards 2")
        .file("it.yaml", scenario)
        .file("it.protocol.yaml", ORDERS)
        .file("shop.proto", SHOP)
        .run()
        .exits(0);
    for name in ["order", "again", "empty"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    for name in ["none", "no such"] {
        run.check(run.row("steps", name)["failed"] == 20, name);
    }
    run.says(&["`PAIDD` is not a value of `State`"]);
}

/// A server of datagrams that answers each as the test says, given its number from 1 on.
pub(crate) struct Datagrams {
    pub(crate) address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Datagrams {
    pub(crate) fn start(answer: impl Fn(&[u8], u64) -> Vec<Vec<u8>> + Send + 'static) -> Datagrams {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("an address");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let (mut buffer, mut number) = (vec![0; 65536], 0);
            while !end.load(Ordering::SeqCst) {
                let Ok((many, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                number += 1;
                for datagram in answer(&buffer[..many], number) {
                    socket.send_to(&datagram, from).expect("a datagram is sent");
                }
            }
        });
        Datagrams { address, ends, thread: Some(thread) }
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const QUESTIONS: &str = r#"transport: udp
packet:
  - {id: kind, type: u8, selects: message}
  - {id: seq, type: u16, correlates: request}
  - {id: body}
messages:
  ask:  {kind: 1, body: [{id: n, type: u32}]}
  told: {kind: 2, answers: ask, body: [{id: n, type: u32}]}
"#;

const ASK: &str = r#"- connect
- repeat: 10
  steps:
    - request: {ask: {n: "${user.id}"}}
      timeout: 500ms
      check: {n: "${user.id}"}
- disconnect"#;

/// The right answer to a datagram.
fn told(datagram: &[u8]) -> Vec<u8> {
    let mut answer = datagram.to_vec();
    answer[0] = 2;
    answer
}

#[track_caller]
fn ask(server: &Datagrams) -> Run {
    asked(server).exits(0)
}

fn asked(server: &Datagrams) -> Run {
    let head = "load: [{iterations: 5, users: 5}]";
    run(QUESTIONS, &server.address.to_string(), head, ASK)
}

#[test]
fn datagrams_are_packets() {
    let run = ask(&Datagrams::start(|datagram, _| vec![told(datagram)])).succeeds(50);
    run.has("/messages/received", 50);
    run.has("/sent_bytes", 50 * 7);
    // What comes twice is a reply that nobody waits for.
    let run = ask(&Datagrams::start(|datagram, _| vec![told(datagram), told(datagram)]));
    let run = run.succeeds(50);
    run.within("/messages/unasked", 45.0, 50.0);
    // Each fifth question is lost.
    let run = ask(&Datagrams::start(|datagram, number| match number % 5 {
        0 => vec![],
        _ => vec![told(datagram)],
    }));
    run.fails("timeout", "target", Some(10));
    run.check(run.row("steps", "ask")["ok"] == 40, "the others are answered");
}

#[test]
fn datagrams_that_break_the_declaration_are_counted() {
    let server = Datagrams::start(|datagram, number| match number % 5 {
        0 => vec![vec![], vec![9; 7], vec![2], told(datagram)],
        _ => vec![told(datagram)],
    });
    let run = ask(&server);
    let json = run.json();
    run.has("/messages/broken", 3 * 10);
    run.check(run.row("steps", "ask")["ok"] == 50, "the right answer is found");
    let rows = json["errors"].as_array().cloned().unwrap_or_default();
    for row in &rows {
        run.check(row["cause"] == "malformed" && row["blame"] == "target", "the target's fault");
    }
    // It says which question it answers, and is too long.
    let run = asked(&Datagrams::start(|datagram, _| vec![[told(datagram), vec![0xEE]].concat()]));
    let run = run.exits(1);
    run.fails("malformed", "target", Some(50));
    run.has("/messages/broken", 50);
}

#[test]
fn a_text_is_no_packet() {
    let node = Node::start(
        "const { WebSocketServer } = require('ws');
        const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
        server.on('listening', () => console.log('listening ' + server.address().port));
        server.on('connection', (socket) => socket.on('message', (data) => {
          socket.send('a text');
          socket.send(data);
        }));",
        &[],
    );
    let steps = "- connect\n- send: mark\n- expect: mark\n- disconnect";
    let run = run(&notes("ws"), &format!("127.0.0.1:{}", node.port), TWENTY, steps).exits(0);
    run.has("/messages/broken", 20);
    run.check(run.row("steps", "mark")["ok"] == 20, "sent");
}

/// Every part of a packet that a server can break.
const FRAGILE: &str = r#"packet:
  - {id: magic, type: u16, const: 0xABCD}
  - {id: length, type: u16, counts: body, max: 100}
  - {id: kind, type: u8, selects: message}
  - {id: seq, type: u32, correlates: request}
  - {id: body}
  - {id: check, type: u8, checksum: sum}
messages:
  ask:   {kind: 1, body: [{id: n, type: u32}]}
  told:  {kind: 2, answers: ask, body: [{id: n, type: u32}, {id: text, type: str, length: u8}]}
  other: {kind: 3}
  news:  {kind: 4, push: true, body: [{id: on, type: bool}]}
"#;

/// A packet with its head and its sum.
fn packet(kind: u8, sequence: &[u8], body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("a short body").to_be_bytes();
    let mut packet = [&[0xAB, 0xCD], &length[..], &[kind], sequence, body].concat();
    packet.push(packet.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
    packet
}

/// Asks six times a server that answers so, and wants it to be known what is wrong with it.
#[track_caller]
fn lies(answer: impl Fn(&[u8], Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Run {
    let server = Faulty::start(move |mut peer: Peer| {
        loop {
            let asked = peer.bytes();
            if asked.len() < 14 {
                return;
            }
            let right = packet(2, &asked[5..9], &[&asked[9..13], b"\x03yes"].concat());
            if !peer.says(&answer(&asked[5..9], right)) {
                return;
            }
        }
    });
    let steps = "- connect\n- request: {ask: {n: 7}}\n  timeout: 500ms\n  check: {n: 7, field: \
                 {text: yes}}\n- disconnect";
    let head = "load: [{iterations: 6, users: 3}]\nthresholds: [errors = 0, messages.broken = 0]";
    run(FRAGILE, &server.address.to_string(), head, steps)
}

/// The rows of errors: cause, count and what exactly happened.
fn errors(run: &Run) -> Vec<(String, u64, String)> {
    let json = run.json();
    let rows = json["errors"].as_array().cloned().unwrap_or_default();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let of = |row: &serde_json::Value| {
        let blame = match row["cause"] == "field-unexpected" {
            true => "target or scenario",
            false => "target",
        };
        run.check(row["blame"] == blame, "the target is to blame");
        let count = row["count"].as_u64().unwrap_or_default();
        (word(&row["cause"]), count, word(&row["example"]["detail"]))
    };
    rows.iter().map(of).collect()
}

/// It is a broken packet, at this place; whose it is, is known if it says what it answers.
#[track_caller]
fn is_broken(run: Run, is_reply: bool, place: &str, hex: &str) {
    run.has("/messages/broken", 6);
    let errors = errors(&run);
    run.check(errors.len() == 1, "nothing else is wrong");
    let (cause, count, detail) = &errors[0];
    run.check(cause == "malformed" && *count == 6, "each is counted");
    run.check(detail.contains(place), &format!("`{detail}` does not say `{place}`"));
    run.check(detail.contains(hex), &format!("`{detail}` does not show `{hex}`"));
    // Behind what is nobody's reply, the right answer is found.
    run.check(run.row("steps", "ask")["ok"] == if is_reply { 0 } else { 6 }, "answered");
    let threshold = run.row("thresholds", "messages.broken = 0")["verdict"].clone();
    run.check(threshold == "not-met", "a threshold");
    run.exits(1);
}

#[test]
fn valid_replies_are_accepted() {
    let run = lies(|_, right| right).succeeds(6);
    run.has("/messages/broken", 0);
    // In pieces, and two at a time.
    let run = lies(|_, right| [packet(4, &[0; 4], &[1]), right].concat()).succeeds(6);
    run.has("/messages/pushes", 6);
}

#[test]
fn packets_that_break_the_declaration_are_shown() {
    let kind = lies(|seq, right| [packet(9, seq, b""), right].concat());
    is_broken(kind, true, "`kind`", "abcd000009");
    // Of none that was asked.
    let kind = lies(|_, right| [packet(9, &[0xff; 4], b""), right].concat());
    is_broken(kind, false, "`kind`", "abcd000009");
    let push = lies(|_, right| [packet(4, &[0; 4], &[7]), right].concat());
    is_broken(push, false, "`on`", "abcd000104");
    for (body, place, hex) in [
        (&b"\0"[..], "`n`", "abcd000102"),
        (b"\0\0\0\x07\x09no", "`text`", "abcd000702"),
        (b"\0\0\0\x07\x01no", "byte 15", "abcd000702"),
    ] {
        is_broken(lies(move |seq, _| packet(2, seq, body)), true, place, hex);
    }
    let sum = |_: &[u8], mut right: Vec<u8>| {
        right[17] ^= 0x40;
        right
    };
    is_broken(lies(sum), true, "`check`", "abcd000802");
}

#[test]
fn bytes_that_are_not_a_packet_end_the_connection() {
    // The place where the next one begins cannot be known.
    for (run, place) in [
        (lies(|_, right| [&b"\xAB\xCE"[..], &right[2..]].concat()), "`magic`"),
        (lies(|_, right| [&b"\xAB\xCD\xFF\xFF"[..], &right[4..]].concat()), "`length`"),
        (lies(|_, _| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), "`magic`"),
    ] {
        let errors = errors(&run);
        run.check(errors.len() == 1 && errors[0].0 == "malformed", "it is malformed");
        run.check(errors[0].1 == 6, "each is counted once");
        run.check(errors[0].2.contains(place), place);
        run.has("/messages/broken", 6);
        run.has("/connections/opened", 6);
        run.exits(1);
    }
}

#[test]
fn replies_that_are_none_are_told_apart() {
    let run = lies(|seq, right| [packet(3, seq, b""), right].concat());
    let told = errors(&run);
    run.check(told.len() == 1 && told[0].1 == 6, "each is counted");
    run.check(told[0].2.contains("`other`") && told[0].2.contains("`ask`"), "both are named");
    run.exits(1);
    let run = lies(|seq, right| {
        let other: Vec<u8> = seq.iter().map(|byte| byte ^ 0x55).collect();
        [packet(2, &other, b"\0\0\0\x07\x03yes"), right].concat()
    });
    run.has("/messages/unasked", 6);
    run.check(run.row("steps", "ask")["ok"] == 6, "its own reply is found");
    run.exits(0);
    let run = lies(|seq, _| packet(2, seq, b"\0\0\0\x08\x02no"));
    run.fails("field-unexpected", "target or scenario", Some(6));
    run.exits(1);
}

#[test]
fn packets_without_an_end_are_no_packets() {
    let server = Faulty::start(|mut peer: Peer| {
        peer.hears();
        peer.says(b"\xAB\xCD\x00\x08\x02\0\0");
        peer.closes();
    });
    let steps = "- connect\n- request: {ask: {n: 7}}\n  timeout: 5s\n- disconnect";
    let head = "load: [{iterations: 6, users: 3}]";
    let run = run(FRAGILE, &server.address.to_string(), head, steps);
    run.fails("closed-early", "target", Some(6));
}

/// The packet of most of them, in one line.
const HEAD: &str = "\
packet: [{id: length, type: u16, counts: after}, {id: k, type: u8, selects: message}, {id: body}]";

/// Declarations that contradict themselves. The line with the mistake ends with `#` and its code.
const CONTRADICTIONS: &[&str] = &[
    // Two kinds alike.
    "HEAD
messages:
  ask: {kind: 1}
  say: {kind: 1} #protocol-kind-twice
",
    // A length that cannot hold its limit.
    "packet:
  - {id: length, type: u8, counts: body, max: 64KiB} #protocol-bad-length
  - {id: kind, type: u8, selects: message}
  - {id: body}
messages: {ask: {kind: 1}}
",
    // A reply to nothing.
    "HEAD
messages:
  ask: {kind: 1}
  told: {kind: 2, answers: asked} #protocol-bad-reply
",
    // A kind that its field cannot hold.
    "HEAD
messages:
  ask: {kind: 256} #protocol-bad-kind
",
    // Nothing tells where a packet ends.
    "packet: [{id: kind, type: u8, selects: message}, {id: body}] #protocol-no-length
messages: {ask: {kind: 1}}
",
    // What is left comes before something else.
    "HEAD
messages:
  ask:
    kind: 1
    body:
      - {id: all, type: str, rest: true} #protocol-rest-not-last
      - {id: n, type: u8}
",
    // A structure in itself.
    "HEAD
types:
  tree: [{id: left, type: tree}] #protocol-recursive
messages: {ask: {kind: 1, body: [{id: root, type: tree}]}}
",
    // A heartbeat of a message that is not there.
    "HEAD
messages: {ask: {kind: 1}}
heartbeat: {send: ping, every: 30s} #protocol-bad-heartbeat
",
    // Two requests, and nothing that tells them apart.
    "delimiter: \"\\n\"
packet: [{id: body}]
messages:
  ask: {}
  order: {} #protocol-ambiguous
",
];

#[test]
fn contradictions_are_reported_before_anything_is_sent() {
    let server = Faulty::start(|peer| peer.waits());
    for protocol in CONTRADICTIONS {
        let protocol = protocol.replace("HEAD", HEAD);
        let (line, code) = protocol
            .lines()
            .enumerate()
            .find_map(|(index, line)| Some((index + 1, line.split_once(" #")?.1)))
            .expect("a line with a mistake");
        let head = format!("protocol: it.protocol.yaml\n{TWENTY}");
        let steps = "- connect\n- request: ask\n  check: {code: 0}";
        let text = one_session(&server.address.to_string(), &head, steps);
        for command in ["check", "run", "try"] {
            let run = throng(&format!("{command} it.yaml"))
                .file("it.yaml", &text)
                .file("it.protocol.yaml", &protocol)
                .run()
                .exits(2);
            run.check(run.err.contains(&format!("error[{code}]: ")), &format!("it is {code}"));
            let place = format!("--> it.protocol.yaml:{line}:");
            run.check(run.err.contains(&place), &format!("no `{place}`"));
            run.check(run.err.contains("= help: "), "no cure");
            run.check(run.err.matches("error[").count() == 1, "one mistake, one message");
            run.says(&["1 error; nothing was sent"]);
            run.check(run.out.is_empty(), "nothing was done");
        }
    }
    assert_eq!(server.accepted(), 0, "nothing is sent");
}

#[test]
fn one_mistake_in_a_protocol_gives_one_message() {
    let protocol = LINES.replace("type: str", "type: string");
    let steps = r#"- connect
- send: {line: {text: a}}
- {expect: line, check: {field: {text: a}}, save: {a: {field: text}}}
- log: "${saved.a}""#;
    let run = run(&protocol, "127.0.0.1:9", TWENTY, steps).exits(2);
    run.check(run.err.matches("error[").count() == 1, "one mistake, one message");
    run.says(&["--> it.protocol.yaml:4:", "did you mean `str`?"]);
}

#[test]
fn unknown_steps_of_a_protocol_are_reported() {
    let server = Faulty::start(|peer| peer.waits());
    for (step, wanted) in [
        ("- request: {asks: {n: 1}}", "did you mean `ask`?"),
        ("- request: {ask: {m: 1}}", "did you mean `n`?"),
        ("- request: {ask: {n: 4294967296}}", "4294967296"),
        ("- request: {ask: {}}", "`n`"),
        ("- request: other", "answers"),
        ("- {request: {ask: {n: 1}}, check: {m: 1}}", "did you mean `n`?"),
        ("- {request: {ask: {n: 1}}, check: {field: {txt: a}}}", "did you mean `text`?"),
        ("- expect: tol", "did you mean `told`?"),
        ("- {send: {ask: {n: 1}}, cut: 0B}", "cut"),
    ] {
        let steps = format!("- connect\n{step}");
        let run = run(FRAGILE, &server.address.to_string(), TWENTY, &steps).exits(2);
        run.check(run.err.contains("--> it.yaml:9:"), "its place");
        run.says(&[wanted, "= help: ", "nothing was sent"]);
    }
    assert_eq!(server.accepted(), 0, "nothing is sent");
}
