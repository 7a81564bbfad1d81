//! Replies of several packets, from servers that know nothing of the declaration.

use crate::faulty::{Faulty, Peer};
use crate::run::{Run, throng};
use crate::scenarios::one_session;

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
    let talk = "45484c4f206d650d0a 3235302d610d0a 32353020620d0a";
    let decoded = throng("protocol smtp.protocol.yaml --decode")
        .arg(talk)
        .file("smtp.protocol.yaml", SMTP)
        .run()
        .exits(0);
    decoded.says(&["part of the reply to command", "reply to command"]);
    let page = throng("protocol smtp.protocol.yaml").file("smtp.protocol.yaml", SMTP).run();
    page.exits(0).says(&["more packets follow if mark == more"]);
}
