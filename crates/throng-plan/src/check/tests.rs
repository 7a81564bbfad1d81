//! The estimates for sessions of real scenarios.

use std::path::PathBuf;

use throng_base::Source;
use throng_load::{Expected, SessionExpected};
use throng_program::Program;
use throng_scenario::outline::outline;
use throng_scenario::{CompileOptions, RunOptions, compile, read_disk};

fn program_of(text: &str) -> Program {
    let options = CompileOptions {
        set: Vec::new(),
        base: PathBuf::new(),
        read_file: &read_disk,
        env: &|_| None,
        run: RunOptions::default(),
    };
    compile(&Source::new("test.yaml", text), &options).unwrap().0
}

fn expected_of(text: &str) -> Vec<SessionExpected> {
    program_of(text).sessions.iter().map(SessionExpected::of).collect()
}

fn usual(steps: &str) -> Vec<String> {
    let text = format!(
        "target: http://a\nload: [{{users: 10, for: 1h}}]\nsessions: {{s: {{steps: [{steps}]}}}}"
    );
    let session = outline(&program_of(&text), 1).sessions.remove(0);
    super::usual_notes(&session).into_iter().map(str::to_string).collect()
}

#[test]
fn notes_of_every_step_are_shown() {
    let leave = "{http: GET /, on_error: leave}";
    assert_eq!(usual(&format!("{leave}, {leave}, {{think: 1s}}")), ["on_error leave"]);
    assert!(usual(&format!("{leave}, {leave}, {{http: GET /}}")).is_empty(), "one step lacks it");
    assert!(usual(leave).is_empty(), "there is only one step");
}

#[test]
fn defaults_are_said_once_with_every_protocol() {
    let said = |target: &str, steps: &str| {
        let head = "defaults: {timeout: 5s, on_error: leave}\nload: [{users: 10, for: 1h}]";
        let session = format!("sessions: {{s: {{steps: [connect, {steps}]}}}}");
        let text = format!("target: {target}\n{head}\n{session}");
        let session = outline(&program_of(&text), 1).sessions.remove(0);
        super::usual_notes(&session).into_iter().map(str::to_string).collect::<Vec<_>>()
    };
    let both = ["on_error leave", "timeout 5s"];
    assert_eq!(said("redis://a", "redis: PING, redis: PING"), both);
    assert_eq!(
        said("mqtt://a", "{publish: t, text: a}, {publish: t, qos: 1}, {subscribe: t}"),
        both
    );
    assert_eq!(said("tcp://a:1", "{send: {text: a}}, {expect: any}"), both);
    let slower = "redis: PING, {redis: PING, timeout: 9s}";
    assert_eq!(said("redis://a", slower), ["on_error leave"]);
}

fn expected(steps: &str) -> Expected {
    let head = "target: http://a\nload: [{users: 10, for: 1h}]\nsessions:\n  s:\n    steps:\n";
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    expected_of(&format!("{head}{steps}"))[0].steps
}

#[test]
fn expectations_multiply() {
    let times = |one: Expected| (one.low_seconds, one.mean_seconds, one.high_seconds);
    let loops =
        expected("- repeat: 2..4\n  steps: [{http: GET /}, {http: GET /}, {think: 1s..3s}]");
    assert_eq!((times(loops), loops.requests, loops.guessed), ((2.0, 6.0, 12.0), 6.0, false));
    let chance = expected(
        "- http: GET /\n- choose: [{weight: 3, steps: [{think: 4s}]}, {weight: 1, \
         steps: [{http: GET /}, next]}]\n- http: GET /",
    );
    assert_eq!((times(chance), chance.requests), ((0.0, 3.0, 4.0), 2.0));
    let during = expected("- {during: 10s, steps: [{http: GET /}, {think: 2s}]}");
    assert_eq!((times(during), during.requests), ((10.0, 10.0, 12.0), 5.0));
    let forever = expected("- {repeat: forever, steps: [{http: GET /}, {think: 1s}]}");
    assert_eq!((forever.mean_seconds, forever.requests), (f64::INFINITY, f64::INFINITY));
    let stay = expected("- http: GET /\n- stay: forever");
    assert_eq!((stay.mean_seconds, stay.requests, stay.guessed), (f64::INFINITY, 1.0, false));
    let branch = expected(
        "- http: GET /\n- {if: \"${iteration == 1}\", then: [{think: 2s}], else: [{http: GET /}]}",
    );
    assert_eq!((times(branch), branch.requests, branch.guessed), ((0.0, 2.0, 2.0), 1.0, true));
    let list = expected("- {for_each: [1, 2, 3], steps: [{http: GET /}]}");
    assert_eq!((list.requests, list.guessed), (3.0, false));
    let normal = expected("- {think: {normal: 3s, deviation: 2s}}");
    assert_eq!(times(normal), (0.0, 3.0, 9.0));
    // A branch with `next` ends the iteration: later steps do not run.
    let parallel = expected(
        "- parallel: [[{http: GET /a}, {repeat: 2, steps: [{http: GET /b}]}], [{http: GET /c}], \
         [{think: 1s}, next]]\n- parallel: [[{http: GET /d}]]\n- {think: 9s}",
    );
    assert_eq!((parallel.requests, parallel.mean_seconds), (4.0, 1.0));
}

#[test]
fn heartbeats_and_what_is_done_every_so_often_are_rates() {
    let stays = expected_of(
        "target: ws://a
sessions:
  s:
    steps:
      - {connect: /acc}
      - {request: {text: hi}}
      - {stay: 1m, heartbeat: {json: {a: 1}, every: 5s, expect: {json: {a: 2}}}}
      - {stay: forever, heartbeat: {ping: true, every: 30s, lost_after: 3s}}
load: [{users: 10, for: 1h}]
",
    );
    assert_eq!((stays[0].steps.requests, stays[0].steps.beats), (1.0, 1.0 / 30.0));
    let several = expected_of(
        "targets: {api: http://a, chat: ws://a:81}
sessions:
  one:
    every: [{time: 10s, do: [{http: POST /here}]}]
    heartbeat: {ping: true, every: 5s}
    steps: [{http: GET /}, {connect: /, as: room}, {send: {text: a}}, {stay: 1s}]
load: [{users: 100, for: 1m}]
",
    );
    let beats = several[0].steps.beats;
    assert!((beats - 0.3).abs() < 1e-9, "{beats}");
}
