//! Sessions with several connections in the program.

use throng_program::{Link, Program, Session, Statement};

use super::{Beat, program};

/// Each link as its name, the numbers of its targets, its protocol and whether it is long-lived.
fn links(session: &Session) -> Vec<(&str, &[u16], Option<u16>, bool)> {
    let one = |link: &'_ Link| (link.lasts, link.protocol);
    let links = session.links.iter().map(|link| (link, one(link)));
    links.map(|(link, (lasts, own))| (&*link.name, &*link.targets, own, lasts)).collect()
}

/// The links that the statements use, including bodies.
fn used<'p>(all: impl Iterator<Item = &'p Statement>) -> Vec<u8> {
    all.filter_map(Statement::link).collect()
}

fn member(head: &str, session: &str) -> Program {
    program(&format!("{head}\nsessions:\n  member: {session}\nload: [{{users: 10, for: 1m}}]\n"))
}

#[test]
fn each_connection_has_a_link_with_its_background_tasks() {
    let program = member(
        "targets:
  api: http://a
  many: [http://b, {url: http://c, weight: 3}]
  chat: ws://a
  game: {url: \"a:9000\", protocol: chat.protocol.yaml}",
        "
    steps:
      - {http: GET /, target: many}
      - connect: /
        target: chat
        as: room
        heartbeat: {ping: true, every: 30s}
        on: [{message: any, do: [{http: POST /, target: api}, {send: ping, on: game}]}]
      - connect:
        target: game
        heartbeat: {send: ping, every: 5s, expect: pong}
        every: [{time: 5s, do: [{send: {text: x}, on: room}, {send: ping, on: game}]}]
      - {request: {text: a}, on: room}
      - {slow: {read: 1KiB/s}, on: game}
      - {http: GET /, target: api}
      - {stay: 10s, on: [{message: said, from: game}]}
      - {disconnect: , on: room}",
    );
    let session = &program.sessions[0];
    let want: [(&str, &[u16], _, _); 4] = [
        ("room", &[3], None, true),
        ("game", &[4], Some(0), true),
        ("many", &[1, 2], None, false),
        ("api", &[0], None, false),
    ];
    assert_eq!(links(session), want);
    assert_eq!(used(session.own()), [2, 0, 1, 0, 1, 3, 1, 0]);
    assert_eq!(used(session.all().skip(session.own().count())), [3, 1, 0, 1]);
    let [room, game, ..] = &*session.links else { panic!("{session:?}") };
    let beat = room.heartbeat.as_ref().unwrap();
    assert!(matches!(beat.beat, Beat::Ping));
    assert_eq!((game.heartbeat.as_ref().unwrap().every.as_secs(), room.every.len()), (5, 0));
    // Messages that the protocol acknowledges have handlers too.
    assert_eq!((room.handlers.len(), game.every.len()), (1, 1));
    let weights: Vec<u32> = program.targets.iter().map(|target| target.weight).collect();
    assert_eq!(weights, [1, 1, 3, 1, 1]);
}

#[test]
fn settings_of_a_session_apply_to_its_only_long_lived_connection() {
    let program = member(
        "targets: {api: http://a, chat: ws://a}",
        "
    heartbeat: {ping: true, every: 30s}
    on: [{message: any, do: [{http: GET /}]}]
    every: [{time: 20s, do: [{http: POST /}, {send: {text: here}}]}]
    steps: [{http: POST /}, {connect: /}, {send: {text: a}}, {stay: 10s}, disconnect]",
    );
    let session = &program.sessions[0];
    assert_eq!(links(session), [("chat", &[1][..], None, true), ("api", &[0], None, false)]);
    assert_eq!(used(session.all()), [1, 0, 0, 0, 0, 1, 1, 0]);
    let chat = &session.links[0];
    assert!(chat.heartbeat.is_some());
    assert_eq!((chat.handlers.len(), chat.every.len()), (1, 1));
    assert!(session.links[1].every.is_empty());
}

#[test]
fn a_session_with_one_connection_has_one_link_without_a_name() {
    let targets = "targets: {api: http://a, chat: ws://a}";
    let one = |steps: &str| member(targets, &format!("{{steps: [{steps}]}}"));
    let loaded = |program: &Program| {
        let [link] = &*program.sessions[0].links else { panic!("{:?}", program.sessions) };
        (link.name.clone(), link.targets.to_vec(), link.lasts)
    };
    let unused = "{http: GET /, target: api}, {http: GET /}";
    let both = super::compile_set(
        &super::Source::new(
            "test.yaml",
            format!(
                "{targets}\nsessions: {{a: {{steps: [{unused}]}}}}\nload: [{{users: 1, for: 1s}}]\n"
            ),
        ),
        &[],
    );
    let (program, warnings) = both.unwrap();
    assert_eq!(loaded(&program), (String::new(), vec![0], false));
    assert_eq!(warnings.len(), 1);
    // Connections to the same target with different names are different links.
    let two = one("{http: GET /}, {connect: /, as: a}, {connect: /, as: b}, {stay: 1s}");
    let names: Vec<&str> = two.sessions[0].links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "api"]);
    assert_eq!(used(two.sessions[0].all()), [2, 0, 1, 0]);
    // Without a step that needs a connection there is still a target.
    let idle = program_of_thinking();
    assert_eq!(loaded(&idle), (String::new(), vec![0], true));
}

fn program_of_thinking() -> Program {
    program("target: ws://a\nsessions: {a: {steps: [{think: 1s}]}}\nload: [{users: 1, for: 5s}]\n")
}

#[test]
fn sessions_choose_among_targets_and_protocols() {
    let program = program(
        "target: api
targets: {api: http://a, shop: http://b, chat: \"tcp://a:9000\"}
protocol: chat.protocol.yaml
sessions:
  member: {steps: [{http: GET /}, {http: GET /, target: shop}, connect, {send: ping}, {stay: 10s}]}
  raw: {protocol: none, steps: [{http: GET /}, connect, {send: {text: a}}, {stay: 10s}]}
  guest: {target: \"http://c\", steps: [{http: GET /}, {http: GET /, target: api}]}
  buyer: {target: shop, steps: [{http: GET /}]}
load: [{users: 10, for: 1m}]
",
    );
    let [member, raw, guest, buyer] = &program.sessions[..] else { panic!("{program:?}") };
    let chat = |protocol| ("chat", &[2][..], protocol, true);
    let (api, shop) = (("api", &[0][..], None, false), ("shop", &[1][..], None, false));
    assert_eq!(links(member), [chat(Some(0)), api, shop]);
    assert_eq!(links(raw), [chat(None), api]);
    assert_eq!(links(guest), [("c", &[3][..], None, false), api]);
    assert_eq!(links(buyer), [("", &[1][..], None, false)]);
}

#[test]
fn branches_are_bodies_that_the_session_waits_for() {
    let program = member(
        "target: http://a",
        "
    steps:
      - parallel:
          - [{http: GET /a}, {repeat: 2, steps: [{http: GET /b}]}]
          - [{http: GET /c}]
          - [{think: 1s}, next]
        max: 4
        name: page
      - parallel: [[{http: GET /d}]]
      - {repeat: 3, steps: [{think: 1s}]}",
    );
    let session = &program.sessions[0];
    let [page, Statement::Parallel(others), Statement::Repeat { .. }] = &session.steps[..] else {
        panic!("{:?}", session.steps)
    };
    let Statement::Transaction { steps, .. } = page else { panic!("{page:?}") };
    let [Statement::Parallel(branches)] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(branches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 2]);
    assert_eq!(others.len(), 1);
    assert!(matches!(branches[0][1], Statement::Repeat { low: 2, .. }));
    assert!(matches!(branches[2][1], Statement::Next));
    assert_eq!(session.links[0].width, Some(4));
    // Two of the branches send HTTP requests.
    assert_eq!(session.connections(), 2);
    let outline = crate::outline::outline(&program, usize::MAX).sessions.remove(0);
    let names: Vec<&str> = outline.steps[0].steps.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(names, ["parallel"]);
}
