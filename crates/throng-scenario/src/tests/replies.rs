//! Requests whose reply has several packets.

use super::*;

fn list(step: &str) -> String {
    format!(
        "target: 127.0.0.1:9000
load: [{{users: 1, for: 1m}}]
protocol:
  packet: [{{id: length, type: u16, counts: after}}, {{id: k, type: u8, selects: message}}, {{id: body}}]
  messages:
    list: {{kind: 1}}
    entry: {{kind: 2, answers: list, more: true, body: [{{id: name, type: str}}]}}
    done: {{kind: 3, answers: list, body: [{{id: code, type: u8}}]}}
    other: {{kind: 4, answers: list}}
    ping: {{kind: 5}}
    pong: {{kind: 6, answers: ping}}
sessions:
  s: {{steps: [connect, {step}]}}
"
    )
}

#[test]
fn checks_and_saves_see_all_packets_of_a_reply() {
    let step = "{request: list, expect: done, check: {packets: {entry: 10, done: 1}, code: 0, \
                name: a}, save: {all: packets, entries: packets.entry, first: name}}, \
                {log: \"${saved.all} ${saved.entries} ${saved.first}\"}";
    let made = program(&list(step));
    let Statement::Request(request) = &made.sessions[0].steps[1] else { panic!() };
    let name = |extractor: &Extractor| match extractor {
        Extractor::Result(name) | Extractor::Kind(_, name) => name.clone(),
        Extractor::Field(paths) => format!("{} of {}", paths[0].written, paths.len()),
        other => panic!("{other:?}"),
    };
    let checks: Vec<_> = request.checks.iter().map(|check| name(&check.extractor)).collect();
    assert_eq!(checks, ["done", "packets.entry", "packets.done", "code of 1", "name of 1"]);
    let saves: Vec<_> = request.saves.iter().map(|save| name(&save.extractor)).collect();
    assert_eq!(saves, ["packets", "packets.entry", "name of 1"]);
    // The required packet can be in the middle.
    program(&list("{request: list, expect: {entry: {name: a}}, check: {packets: \"> 1\"}}"));
}

#[test]
fn only_replies_of_several_packets_have_a_packet_count() {
    let of = |text: String| compile_set(&Source::new("test.yaml", text), &[]).unwrap_err()[0].code;
    let code = |step: &str| of(list(step));
    let http = "target: http://127.0.0.1:8080\nload: [{users: 1, for: 1m}]\nsessions: {s: {steps: \
                [{http: GET /, check: {packets: 1}}]}}";
    assert_eq!(of(http.to_string()), "wrong-check");
    assert_eq!(code("{request: list, check: {packets: {pong: 1}}}"), "no-reply");
    assert_eq!(code("{request: list, check: {packets: {entri: 1}}}"), "no-reply");
    assert_eq!(code("{request: ping, check: {packets: 1}}"), "unknown-field");
    assert_eq!(code("{request: list, save: {n: packets.pong}}"), "no-reply");
}
