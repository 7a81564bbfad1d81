//! Replies of several packets, from servers that know nothing of the declaration.

use crate::faulty::{Faulty, Peer};
use crate::run::{Run, throng};
use crate::scenarios::one_session;
use crate::servers::Node;

/// Replies of several lines, as in SMTP (RFC 5321, 4.2.1): `250-` continues, `250 ` ends.
const SMTP: &str = r#"delimiter: "\r\n"
packet: [{id: body}]
messages:
  command: {body: [{id: text, type: str}]}
  reply:
    answers: command
    more: mark == more
    body:
      - {id: code, type: str, size: 3}
      - {id: mark, type: u8, enum: {32: last, 45: more}}
      - {id: text, type: str}
"#;

fn run(server: &Faulty, steps: &str) -> Run {
    let head = "protocol: smtp.protocol.yaml\nload: [{iterations: 20, users: 5}]";
    throng("run it.yaml --json --out record --shards 2")
        .file("it.yaml", one_session(&server.address.to_string(), head, steps))
        .file("smtp.protocol.yaml", SMTP)
        .run()
}

/// Answers each line with all its lines, a byte at a time every other time.
fn smtp() -> Faulty {
    Faulty::start(|mut peer: Peer| {
        for turn in 0.. {
            let asked = peer.bytes();
            let answer: &[u8] = match asked.get(..4) {
                Some(b"EHLO") => {
                    b"250-mail.example\r\n250-SIZE 1000\r\n250-STARTTLS\r\n250 HELP\r\n"
                }
                Some(b"HANG") => b"250-one\r\n250-two\r\n",
                Some(_) => b"250 OK\r\n",
                None => return,
            };
            let pieces = answer.chunks(if turn % 2 == 0 { answer.len() } else { 1 });
            if !pieces.into_iter().all(|piece| peer.says(piece)) {
                return;
            }
        }
    })
}

#[test]
fn a_reply_of_several_lines_is_one_response() {
    let server = smtp();
    let steps = r#"- connect
- {request: {command: {text: "NOOP"}}, name: noop, check: {code: "250", packets: 1}}
- request: {command: {text: "EHLO me"}}
  name: hello
  check: {code: "250", field: {text: HELP}, packets: "> 2"}
  save: {lines: packets}
- {request: {command: {text: "NOOP"}}, name: again, check: {field: {text: OK}}}
- log: "it has ${saved.lines} lines"
- disconnect"#;
    let run = run(&server, steps).exits(0);
    for name in ["noop", "hello", "again"] {
        let row = run.row("steps", name);
        run.check(row["ok"] == 20, name);
        run.check(row["first_byte"].is_object(), name);
    }
    run.has("/total/failed", 0);
    run.has("/messages/received", 120);
    run.has("/messages/unasked", 0);
    run.says(&["it has 4 lines"]);
}

#[test]
fn a_reply_without_its_last_line_times_out() {
    let server = smtp();
    let steps = "- connect\n- {request: {command: {text: HANG}}, timeout: 300ms}\n- disconnect";
    let run = run(&server, steps);
    run.fails("timeout", "target", Some(20));
    run.says(&["received 2 packets of the reply, but not its last packet within"]);
}

#[test]
fn the_packets_of_a_reply_are_decoded() {
    // `get a b`, a value and the end.
    let talk = "676574206120620d0a 56414c55452061203020310d0a780d0a 454e440d0a";
    let decoded = throng("protocol throng:memcached --decode").arg(talk).run().exits(0);
    decoded.says(&["part of the reply to get", "reply to get"]);
    let page = throng("protocol smtp.protocol.yaml").file("smtp.protocol.yaml", SMTP).run();
    page.exits(0).says(&["more packets follow if"]);
}

/// goim and Bilibili have the same head: length, 16, version, operation, sequence.
const WEB: &str = r"
const { WebSocketServer } = require('ws');
const zlib = require('zlib');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
server.on('listening', () => console.log('listening ' + server.address().port));
const packet = (version, operation, sequence, body) => {
  const head = Buffer.alloc(16);
  head.writeUInt32BE(16 + body.length, 0);
  head.writeUInt16BE(16, 4);
  head.writeUInt16BE(version, 6);
  head.writeUInt32BE(operation, 8);
  head.writeUInt32BE(sequence, 12);
  return Buffer.concat([head, body]);
};
const json = (value) => Buffer.from(JSON.stringify(value));
server.on('connection', (socket) => socket.on('message', (data) => {
  const operation = data.readUInt32BE(8), sequence = data.readUInt32BE(12);
  const asked = data.length > 16 ? JSON.parse(data.subarray(16)) : {};
  if (operation === 2) return socket.send(packet(1, 3, sequence, Buffer.from([0, 0, 0, 9])));
  if (operation !== 7) return socket.terminate();
  if (asked.mid !== undefined) {
    const all = [1, 2, 3].map((n) => packet(1, 1000, 0, json({ n })));
    socket.send(packet(1, 8, sequence, Buffer.alloc(0)));
    socket.send(packet(1, 9, 0, Buffer.concat(all)));
    return socket.send(Buffer.concat([packet(1, 1000, 0, json({ n: 4 })), all[0]]));
  }
  socket.send(packet(1, 8, 1, json({ code: 0 })));
  const all = (cmd) => Buffer.concat([1, 2].map((n) => packet(0, 5, 1, json({ cmd, n }))));
  socket.send(packet(2, 5, 1, zlib.deflateSync(all('ZLIB'))));
  socket.send(packet(3, 5, 1, zlib.brotliCompressSync(all('BROTLI'))));
  socket.send(packet(2, 5, 1, zlib.deflateSync(all('ZLIB')).subarray(0, 20)));
  socket.send(packet(0, 5, 1, json({ cmd: 'PLAIN' })));
}));";

fn web(protocol: &str, steps: &str) -> Run {
    let node = Node::start(WEB, &[]);
    let head = format!("protocol: throng:{protocol}\nload: [{{iterations: 20, users: 5}}]");
    throng("run it.yaml --json --out record --shards 2")
        .file("it.yaml", one_session(&node.url("ws"), &head, steps))
        .run()
}

#[test]
fn several_messages_of_goim_come_in_one_packet() {
    let steps = r#"- connect
- request: {auth: {token: {mid: "${user.id}", room_id: "live://1"}}}
- {expect: {message: {content.n: 3}}, name: third}
- {expect: {message: {content.n: 4}}, name: fourth}
- {expect: {message: {content.n: 1}}, name: again}
- disconnect"#;
    let run = web("goim", steps).exits(0);
    for name in ["auth", "third", "fourth", "again"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    run.has("/total/failed", 0);
    // A packet that contains others is no message itself.
    run.has("/messages/received", 120);
    run.has("/messages/broken", 0);
}

#[test]
fn compressed_messages_of_bilibili_are_unpacked() {
    let steps = r#"- connect
- {request: {auth: {user: {uid: 0, roomid: 1}}}, check: {result.code: 0}}
- {expect: {message: {command.cmd: ZLIB, command.n: 2}}, name: zlib}
- {expect: {message: {command.cmd: BROTLI, command.n: 2}}, name: brotli}
- {expect: {message: {command.cmd: PLAIN}}, name: plain}
- disconnect"#;
    let run = web("bilibili", steps).exits(0);
    for name in ["auth", "zlib", "brotli", "plain"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    run.has("/messages/broken", 20);
    run.says(&["the zlib data is incomplete"]);
}
