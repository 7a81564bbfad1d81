//! Outlines of programs.

use super::*;
use crate::tests::program;

fn outline_of(steps: &str) -> SessionOutline {
    let head = "target: http://a\nload: [{users: 10, for: 1h}]\nsessions:\n  s:\n    steps:\n";
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    outline(&program(&format!("{head}{steps}")), usize::MAX).sessions.remove(0)
}

/// The tree, two spaces per level, notes in brackets.
fn tree(lines: &[Line]) -> String {
    fn write(lines: &[Line], depth: usize, out: &mut String) {
        for line in lines {
            let notes: String = line.notes.iter().map(|note| format!(" [{note}]")).collect();
            out.push_str(&format!("{}{}{notes}\n", "  ".repeat(depth), line.text));
            write(&line.steps, depth + 1, out);
        }
    }
    let mut out = String::new();
    write(lines, 0, &mut out);
    out
}

#[test]
fn users_that_stay_are_shown_with_their_handlers() {
    let text = "\
target: ws://a
load: [{users: 10, for: 1h}]
sessions:
  s:
    steps:
      - {connect: /acc, reconnect: {times: forever, wait: 1s..60s}}
      - {request: {text: hi}}
      - stay: 1m
        heartbeat: {json: {a: 1}, every: 5s, expect: {json: {a: 2}}, name: pulse}
      - stay: forever
        heartbeat: {ping: true, every: 30s, lost_after: 3s}
        on: [{message: {json: {cmd: msg}}}, {message: any, name: rest}]
        on_error: leave
      - disconnect: vanish
";
    let source = throng_base::Source::new("test.yaml", text);
    let program = crate::tests::compile_set(&source, &[]).unwrap().0;
    let session = outline(&program, usize::MAX).sessions.remove(0);
    let want = "\
connect /acc [reconnect forever, wait 1s..1m]
request hi
stay 1m [heartbeat pulse {\"a\":1} every 5s] [lost_after 5s] [expect json a 2]
stay forever [on_error leave] [heartbeat ping every 30s] [lost_after 3s] \
[on json cmd equals msg as cmd=msg] [on any as rest]
disconnect vanish
";
    assert_eq!(tree(&session.steps), want);
}

#[test]
fn statuses_have_the_names_of_their_protocols() {
    let text = "\
target: postgres://ann@a
load: [{users: 10, for: 1h}]
sessions:
  s:
    steps:
      - sql: insert into users values (1)
        check: {sqlstate: unique_violation}
";
    let source = throng_base::Source::new("test.yaml", text);
    let program = crate::tests::compile_set(&source, &[]).unwrap().0;
    let session = outline(&program, usize::MAX).sessions.remove(0);
    let want = "sql insert into users values (1) [check status 23505, 1062]\n";
    assert_eq!(tree(&session.steps), want);
}

const STEPS: &str = "\
- set: {n: 0, list: [1, 2]}
- http: POST /login/${user.id}
  name: login
  json: {a: 1}
  check: {status: [200, 3xx], json.ok: true, time: < 500ms}
  save: {token: json.token}
  timeout: 5s
  retry: {times: 2, wait: 1s..2s}
  on_error: leave
- think: {exponential: 20s}
- repeat: 3..5
  steps:
    - repeat: 2
      steps: [{http: GET /a}]
    - think: 1s..5s
- while: \"${saved.n < 3}\"
  steps:
    - set: {n: \"${saved.n + 1}\"}
    - if: \"${saved.n == 2}\"
      then: [{http: GET /two}, next]
      else: [{if: \"${true}\", then: [{log: \"${saved.token}\"}]}]
- for_each: \"${saved.list}\"
  as: one
  steps: [{http: \"GET /${one}\"}]
- choose:
    - {weight: 70%, steps: [{http: GET /look}]}
    - weight: 20%
      steps:
        - transaction: buy
          steps: [{http: GET /b}, {transaction: pay, steps: [{think: 2s}]}]
    - {weight: 10%, steps: []}
- during: 10s
  steps: [{http: GET /d}, {think: 2s}]
- repeat: forever
  steps:
    - repeat: forever
      steps:
        - while: \"${saved.n < 9}\"
          steps: [{http: GET /w}]
        - stay: 1s
        - {if: \"${saved.n > 9}\", then: [leave]}
";

#[test]
fn the_outline_has_the_structure_of_the_scenario() {
    let want = "\
set n = 0
set list = [1,2]
http POST /login/${user.id} [name login] [check status 200, 3xx] [check json ok true] \
[check time < 500ms] [save token = json token] [timeout 5s] [retry 2, wait 1s..2s] [on_error leave]
think exponential 20s, max 200s
repeat 3..5
  repeat 2
    http GET /a
  think 1s..5s
while ${saved.n < 3}
  set n = ${saved.n + 1}
  if ${saved.n == 2}
    http GET /two
    next
  else
    if ${true}
      log ${saved.token}
for_each ${saved.list} as one
  http GET /${one}
choose
  70%
    http GET /look
  20%
    transaction buy
      http GET /b
      transaction pay
        think 2s
  10%
during 10s
  http GET /d
  think 2s
repeat forever
  repeat forever
    while ${saved.n < 9}
      http GET /w
    stay 1s
    if ${saved.n > 9}
      leave
";
    assert_eq!(tree(&outline_of(STEPS).steps), want);
}

#[test]
fn counted_sessions_have_the_share_of_their_users() {
    let text = |load: &str| {
        format!(
            "target: http://a
data: {{keys: {{list: [1, 2, 3], take: per user}}, all: {{list: [1], take: per user}}}}
sessions:
  few: {{users: 2, steps: [{{http: \"GET /${{data.keys}}\"}}]}}
  some: {{users: 18, steps: [{{http: GET /}}]}}
  rest: {{steps: [{{http: GET /}}]}}
  more: {{weight: 3, steps: [{{http: \"GET /${{data.all}}\"}}]}}
load: [{load}]
"
        )
    };
    let closed = program(&text("{users: 100, for: 1m}"));
    let shares: Vec<f64> =
        outline(&closed, usize::MAX).sessions.iter().map(|it| it.share).collect();
    assert_eq!(shares, [0.02, 0.18, 0.2, 0.6]);
    // Arriving users are numbered like users that stay.
    let open = program(&text("{arrivals: 2/s, for: 50s}"));
    assert_eq!(open.session_shares(), shares);
    assert_eq!(closed.users_of_sessions(0, 10.0), [2.0, 8.0, 0.0, 0.0]);
    // Only the rows of the users' own numbers are needed.
    assert_eq!((closed.last_user_with(0, 0, 100), closed.last_user_with(0, 0, 1)), (2, 1));
    assert_eq!((closed.last_user_with(0, 1, 100), closed.last_user_with(0, 1, 20)), (100, 0));
}

#[test]
fn a_heartbeat_uses_rows_too() {
    let heartbeat = "{send: {text: \"${data.keys}\"}, every: 1s}";
    let beating = program(&format!(
        "target: ws://a
data: {{keys: {{list: [1, 2, 3], take: per user}}}}
sessions:
  one: {{heartbeat: {heartbeat}, steps: [{{connect: /}}, {{stay: 1s}}]}}
load: [{{users: 100, for: 1m}}]
"
    ));
    assert_eq!(beating.sessions_with(0), [true]);
    assert_eq!(beating.last_user_with(0, 0, 100), 100);
}

#[test]
fn steps_name_their_connection_if_there_are_several() {
    let several = program(
        "targets: {api: http://a, chat: ws://a:81}
sessions:
  one:
    every: [{time: 10s, do: [{http: POST /here}]}]
    on: [{message: any, name: said}]
    heartbeat: {ping: true, every: 5s}
    steps: [{http: GET /}, {connect: /, as: room}, {send: {text: a}}, {stay: 1s}]
  other: {weight: 3, target: api, steps: [{http: GET /}]}
load: [{users: 100, for: 1m}]
",
    );
    let sessions = outline(&several, usize::MAX).sessions;
    let want = ["room ws://a:81", "api http://a"];
    assert_eq!(sessions[0].connections.iter().map(|it| &it.text).collect::<Vec<_>>(), want);
    assert!(sessions[1].connections.is_empty());
    let want = "\
http GET / [target api]
connect / [as room]
send a [on room]
stay 1s
";
    assert_eq!(tree(&sessions[0].steps), want);
    let want = "\
heartbeat ping every 5s [lost_after 5s] [on room]
on any as said [from room]
every 10s
  http POST /here [target api]
";
    assert_eq!(tree(&sessions[0].beside), want);
    // A background task may send HTTP requests at the same time; the others need one connection
    // each.
    assert_eq!(several.sessions[0].connections(), 3);
}

#[test]
fn sessions_and_data_are_listed() {
    let text = "
target: ws://a
data: {colours: {list: [{name: red, code: 1}], take: random}}
sessions:
  a:
    weight: 3
    before: [{connect: \"/${data.colours.name}\"}]
    steps: [{request: {text: \"hi ${user.id}\"}, expect: {text: ok}}]
    after: [disconnect]
  b: {steps: [connect, {send: {hex: 00ff}}, {stay: 1m, name: wait}]}
load: [{users: 10, for: 1h}]
";
    let outline = outline(&program(text), usize::MAX);
    let [a, b] = &outline.sessions[..] else { panic!("{outline:?}") };
    assert_eq!((a.share, b.share, b.weight), (0.75, 0.25, 1));
    assert_eq!(tree(&a.before), "connect /${data.colours.name}\n");
    assert_eq!(tree(&a.steps), "request hi ${user.id} [check body contains ok]\n");
    assert_eq!(tree(&a.after), "disconnect\n");
    assert_eq!(tree(&b.steps), "connect /\nsend 2 B\nstay 1m [name wait]\n");
    let data = &outline.data[0];
    assert_eq!((data.origin.as_str(), data.take), ("list", "random"));
    assert_eq!(data.columns, ["name"]);
}

#[test]
fn headers_that_are_sent_later_are_named_at_their_steps() {
    let text = "\
target: http://a
load: [{users: 10, for: 1h}]
sessions:
  s:
    headers: {Authorization: 'Bearer ${saved.token}', X-Own: \"1\"}
    steps:
      - http: GET /early
      - {http: POST /login, save: {token: json.token}}
      - {http: GET /late, headers: {Accept: a/b}}
";
    let source = throng_base::Source::new("test.yaml", text);
    let program = crate::tests::compile_set(&source, &[]).unwrap().0;
    let session = outline(&program, usize::MAX).sessions.remove(0);
    let want = "\
http GET /early [header Authorization: Bearer ${saved.token}] [header X-Own: 1] \
[without Authorization until token is saved]
http POST /login [header Authorization: Bearer ${saved.token}] [header X-Own: 1] \
[without Authorization until token is saved] [save token = json token]
http GET /late [header Accept: a/b] [header Authorization: Bearer ${saved.token}] \
[header X-Own: 1]
";
    assert_eq!(tree(&session.steps), want);
}

#[test]
fn settings_of_connections_and_requests_are_shown_completely() {
    let text = "\
target: ws://a
load: [{users: 10, for: 1h}]
sessions:
  s:
    steps:
      - {connect: /chat, protocols: [chat.v1, 'room-${user.id}'], headers: {X-A: b}}
      - {request: {json: {id: 7}}, match: {json: {id: 7}, text: ok}}
      - {stay: 1m, ends: [1000, 4001]}
      - expect: {close: any}
";
    let source = throng_base::Source::new("test.yaml", text);
    let program = crate::tests::compile_set(&source, &[]).unwrap().0;
    let session = outline(&program, usize::MAX).sessions.remove(0);
    let want = "\
connect /chat [header X-A: b] [protocols chat.v1, room-${user.id}]
request {\"id\":7} [match body contains ok and json id 7]
stay 1m [ends 1000 or 4001]
expect close any
";
    assert_eq!(tree(&session.steps), want);
}
