//! Steps and their compiled trees.

use throng_program::{
    Escape, Failing, OnError, Pause, Program, Retry, RetryOn, Session, Statement, StepKind,
};

use crate::tests::{User, program};

fn session_of(target: &str, steps: &str) -> (Program, Session) {
    let head = format!("target: {target}\nload: [{{users: 10, for: 1h}}]\nsessions:\n  s:\n");
    let steps: String = steps.lines().map(|line| format!("    {line}\n")).collect();
    let program = program(&format!("{head}{steps}"));
    let session = program.sessions[0].clone();
    (program, session)
}

/// The statements in short form, nested ones in brackets.
fn code(steps: &[Statement]) -> String {
    let all = steps.iter().map(|one| match one {
        Statement::Repeat { low, high, steps } => format!("repeat {low}..{high} [{}]", code(steps)),
        Statement::During { steps, .. } => format!("during [{}]", code(steps)),
        Statement::ForEach { list, item, steps, .. } => {
            format!("for list {list} item {item} [{}]", code(steps))
        }
        Statement::While { steps, .. } => format!("while [{}]", code(steps)),
        Statement::If { then, otherwise, .. } => {
            format!("if [{}] [{}]", code(then), code(otherwise))
        }
        Statement::Choose(ways) => {
            let ways: Vec<String> =
                ways.iter().map(|way| format!("{} [{}]", way.weight, code(&way.steps))).collect();
            format!("choose {}", ways.join(" "))
        }
        Statement::Set { slot, .. } => format!("set {slot}"),
        Statement::Transaction { step, steps } => format!("time {} [{}]", step.0, code(steps)),
        Statement::Http(one) => format!("http {}", one.step.0),
        Statement::Log(_) => "log".into(),
        Statement::Next => "next".into(),
        other => panic!("{other:?}"),
    });
    all.collect::<Vec<_>>().join(", ")
}

#[test]
fn loops_and_branches_keep_their_structure() {
    let (_, session) = session_of(
        "http://a",
        "before: [{set: {n: 1}}]
steps:
  - during: 5s
    steps:
      - for_each: [a, b]
        as: x
        steps: [{http: GET /x}, {repeat: 2, steps: [{http: GET /x}]}]
  - while: \"${saved.n < 3}\"
    steps: [{set: {n: 2}}, {http: GET /x}]
  - if: \"${saved.n == 2}\"
    then: [next]
    else: [{http: GET /x}]
  - if: saved.n > 2
    steps: []
  - choose:
      - {weight: 3, steps: [{http: GET /x}]}
      - {steps: []}
      - {weight: 2, steps: [{transaction: t, steps: [{http: GET /x}]}]}
after: [{log: bye}]",
    );
    let want = "during [for list 1 item 2 [http 0, repeat 2..2 [http 0]]], \
                while [set 0, http 0], if [next] [http 0], if [] [], \
                choose 3 [http 0] 1 [] 2 [time 1 [http 0]]";
    assert_eq!(code(&session.steps), want);
    assert_eq!((code(&session.before), code(&session.after)), ("set 0".into(), "log".into()));
    assert_eq!(&*session.slots[0], "n");
    assert_eq!(&*session.slots[2], "x");
}

#[test]
fn parts_are_inserted_where_they_are_used() {
    let text = "
target: http://a
vars: {kind: usual}
parts:
  visit: [{http: \"GET /${vars.kind}/${vars.page}/${saved.token}\"}, {use: inner}]
  inner: [{http: \"GET /inner/${vars.kind}\"}]
sessions:
  s:
    steps:
      - {http: \"GET /${vars.kind}\", save: {token: body}}
      - {use: visit, with: {page: 1}, }
      - {use: visit, with: {page: 2, kind: rare}}
load: [{users: 1, for: 1s}]
";
    let program = program(text);
    let mut user = User::new(1, 1);
    user.slots[0] = throng_expression::Value::Text("t".into());
    let paths: Vec<String> = program.sessions[0]
        .steps
        .iter()
        .map(|one| {
            let Statement::Http(http) = one else { panic!("{one:?}") };
            let mut out = Vec::new();
            http.path.render(&mut out, &mut user).unwrap();
            String::from_utf8(out).unwrap()
        })
        .collect();
    let want = ["/usual", "/usual/1/t", "/inner/usual", "/rare/2/t", "/inner/rare"];
    assert_eq!(paths, want);
}

#[test]
fn error_handling_is_inherited_from_the_defaults() {
    let text = "
target: tcp://a:1
defaults: {on_error: next, timeout: 5s}
sessions:
  a:
    on_error: retry
    timeout: 2s
    steps:
      - connect
      - {send: {text: a}, on_error: stop}
      - {request: {text: a}, retry: {times: forever, wait: 2s..9s}, timeout: 1s}
      - {expect: any, retry: 1, on_error: leave}
  b: {steps: [connect, {expect: any}]}
load: [{users: 1, for: 1s}]
";
    let program = program(text);
    let code = &program.sessions[0].steps;
    let seconds = std::time::Duration::from_secs;
    let usual = Retry { on: RetryOn::Any, times: Some(3), low: seconds(1), high: seconds(30) };
    let Statement::Connect(connect) = &code[0] else { panic!("{code:?}") };
    assert_eq!(connect.failing, Failing { retry: Some(usual), then: OnError::Count });
    let Statement::Send(send) = &code[1] else { panic!("{code:?}") };
    assert_eq!(send.failing, Failing { retry: None, then: OnError::Stop });
    let Statement::Request(request) = &code[2] else { panic!("{code:?}") };
    let retry = Retry { on: RetryOn::Any, times: None, low: seconds(2), high: seconds(9) };
    assert_eq!(request.failing, Failing { retry: Some(retry), then: OnError::Count });
    assert_eq!(request.timeout, seconds(1));
    let Statement::Expect(expect) = &code[3] else { panic!("{code:?}") };
    let retry = Retry { times: Some(1), ..usual };
    assert_eq!(expect.failing, Failing { retry: Some(retry), then: OnError::Leave });
    assert_eq!(expect.timeout, seconds(2));
    let Statement::Expect(expect) = &program.sessions[1].steps[1] else { panic!("b") };
    assert_eq!(expect.failing, Failing { retry: None, then: OnError::Next });
    assert_eq!(expect.timeout, seconds(5));
}

#[test]
fn pauses_have_their_distributions() {
    let (_, session) = session_of(
        "http://a",
        "steps:
  - think: {exponential: 20s}
  - think: {normal: 3s, deviation: 1s}
  - think: \"${user.id}s\"
  - think: \"${2}s\"",
    );
    let seconds = std::time::Duration::from_secs;
    let pauses: Vec<&Pause> = session
        .steps
        .iter()
        .map(|one| match one {
            Statement::Think(pause) => pause,
            other => panic!("{other:?}"),
        })
        .collect();
    let [exponential, normal, text, two] = pauses[..] else { panic!("{pauses:?}") };
    assert!(matches!(exponential, Pause::Exponential { mean, max }
        if (*mean, *max) == (seconds(20), seconds(200))));
    assert!(matches!(normal, Pause::Normal { mean, deviation }
        if (*mean, *deviation) == (seconds(3), seconds(1))));
    let Pause::Text(text) = text else { panic!("{text:?}") };
    let shown = &text.segments[0];
    assert!(matches!(shown, throng_program::Segment::Value { escape: Escape::None, .. }));
    assert!(
        matches!(two, Pause::Uniform { low, high } if (*low, *high) == (seconds(2), seconds(2)))
    );
}

#[test]
fn rendezvous_with_the_same_name_share_a_point() {
    let text = "
target: http://a
sessions:
  a: {steps: [{rendezvous: start}, {rendezvous: end, users: 3}, {http: GET /}]}
  b: {steps: [{rendezvous: end, timeout: 5s}, {rendezvous: start}]}
load: [{users: {to: 40, rate: 10/s}, for: 2s}, {users: 7, for: 1s}]
";
    // The first phase ends with 20 users.
    let source = throng_base::Source::new("test.yaml", text);
    let (program, warnings) = crate::tests::compile_set(&source, &[]).unwrap();
    assert_eq!(warnings.iter().map(|one| one.code).collect::<Vec<_>>(), ["ramp-cut"]);
    assert_eq!(program.rendezvous, 2);
    let meetings: Vec<(u16, u64, u64)> = program
        .sessions
        .iter()
        .flat_map(Session::all)
        .filter_map(|one| match one {
            Statement::Rendezvous(one) => Some((one.place, one.users, one.timeout.as_secs())),
            _ => None,
        })
        .collect();
    assert_eq!(meetings, [(0, 20, 60), (1, 3, 60), (1, 3, 5), (0, 20, 60)]);
    assert_eq!(program.steps[0].kind, StepKind::Rendezvous);
}

#[test]
fn headers_of_a_session_are_sent_once_their_values_exist() {
    let (_, session) = session_of(
        "http://a",
        "headers: {Authorization: \"Bearer ${saved.token}\", X-Kind: shop}
steps:
  - http: POST /login
    save: {token: json.token}
  - http: GET /a
  - http: GET /b
    headers: {authorization: none}",
    );
    let headers: Vec<Vec<&str>> = session
        .steps
        .iter()
        .map(|one| match one {
            Statement::Http(http) => http.headers.iter().map(|(name, _)| &**name).collect(),
            other => panic!("{other:?}"),
        })
        .collect();
    let all = vec![
        vec!["Authorization", "X-Kind"],
        vec!["Authorization", "X-Kind"],
        vec!["authorization", "X-Kind"],
    ];
    assert_eq!(headers, all);
    // The step that saves the value is sent without it the first time.
    let needs = session.steps.iter().map(|one| match one {
        Statement::Http(http) => http.headers.iter().map(|(_, text)| text.needs().is_some()),
        other => panic!("{other:?}"),
    });
    let needs: Vec<Vec<bool>> = needs.map(Iterator::collect).collect();
    assert_eq!(needs, [[true, false], [false, false], [false, false]]);
}
