//! `throng try`: what was sent and received, and why a step failed.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::faulty::Faulty;
use crate::run::{Child, Run, Throng, throng};
use crate::scenarios::{one_session, times};
use crate::scribe::{Scribe, answer, ok};
use crate::servers::{Target, free_port};

fn trying(line: &str, text: &str) -> Throng {
    throng(&format!("try scenario.yaml {line}")).file("scenario.yaml", text)
}

/// Two steps, of which the second is refused.
fn half_good() -> (Scribe, String) {
    let scribe = Scribe::answering(|asked, _| match asked.what.as_str() {
        "POST /login" => answer("200 OK", "X-Who: me\r\n", r#"{"token":"t-7"}"#),
        _ => answer("404 Not Found", "", "no such order"),
    });
    let steps = "\
- http: POST /login
  json: {user: \"u${user.id}\"}
  save: {token: json.token, who: header.x-who}
- think: 60s
- http: GET /orders
  headers: {Authorization: \"Bearer ${saved.token} of ${saved.who}\"}
  check: {status: 200, text: paid, \"header\": {x-who: me}}
- log: iteration ${iteration} of user ${user.id}
- set: {sum: \"${1 + 2}\"}
- if: ${saved.sum == 3}
  then: [{http: POST /login}]";
    let text = one_session(&scribe.target(), &times(1000, 100), steps);
    (scribe, text)
}

#[test]
fn sent_and_received_bytes_are_shown() {
    let (scribe, text) = half_good();
    let run = trying("--pause 10ms --show-secrets", &text).run().exits(1);
    run.says(&[
        "session user, user 1\n",
        "✓ http POST /login  200",
        "connected to 127.0.0.1:",
        "    → POST /login HTTP/1.1\n",
        "      Content-Length: 13\n",
        "      {\"user\":\"u1\"}\n",
        "    ← HTTP/1.1 200 OK\n",
        "      X-Who: me\n",
        "{\"token\":\"t-7\"}\n",
        "saved token = \"t-7\"",
        "saved who = \"me\"",
        "think  paused ",
        "      Authorization: Bearer t-7 of me\n",
        "log: iteration 1 of user 1",
        "set sum = 3",
        "the condition is true",
        "steps, 1 failed",
    ]);
    assert_eq!(scribe.asked(), ["POST /login", "GET /orders", "POST /login"], "{run}");
    let masked = trying("--pause 10ms", &text).run().exits(1);
    masked.says(&["{\"token\":\"***\"}\n", "saved token = ***", "Authorization: Bearer ***\n"]);
}

#[test]
fn actions_before_the_steps_are_below_the_heading() {
    let scribe = Scribe::answering(|_, _| ok("{}"));
    let text = format!(
        "target: {}\nload: [{{users: 1, for: 1s}}]\n\
         sessions: {{user: {{before: [{{http: GET /login}}], steps: [{{http: GET /home}}]}}}}\n",
        scribe.target()
    );
    let run = trying("", &text).run().exits(0);
    let [head, before, steps] = ["session user, user 1", "GET /login  200", "GET /home  200"]
        .map(|text| run.out.find(text));
    run.check(head.is_some() && head < before && before < steps, "the order");
    run.check(run.out.matches("session user").count() == 1, "one heading");
}

#[test]
fn a_head_that_arrives_in_pieces_is_shown_once() {
    let server = Faulty::start(|mut peer| {
        while peer.request().is_some() {
            for byte in b"HTTP/1.1 200 OK\r\nX-Who: me\r\nContent-Length: 2\r\n\r\nhi" {
                peer.says(&[*byte]);
            }
        }
    });
    let text = one_session(&server.url("http"), &times(1, 1), "- http: GET /");
    let run = trying("", &text).run().exits(0);
    run.says(&["    ← HTTP/1.1 200 OK\n      X-Who: me\n      Content-Length: 2\n    ← hi\n"]);
    run.check(run.out.matches("X-Who").count() == 1, "the head is shown once");
}

#[test]
fn a_failed_check_is_shown_with_the_actual_value() {
    let (_scribe, text) = half_good();
    let run = trying("--pause 10ms", &text).run().exits(1);
    let orders = run.out.split("✗ http GET /orders  404").nth(1).expect("the step that failed");
    for said in ["    ← HTTP/1.1 404 Not Found\n", "no such order", "status", "404"] {
        run.check(orders.contains(said), &format!("it does not say `{said}`"));
    }
}

#[test]
fn each_kind_of_failure_shows_the_actual_value() {
    let body = r#"{"code": 7, "items": [1, 2]}"#;
    let scribe = Scribe::answering(move |_, _| answer("200 OK", "Color: red\r\n", body));
    let said = |check: &str, words: &[&str]| {
        let steps = format!("- http: GET /\n  check: {check}");
        let text = one_session(&scribe.target(), &times(1, 1), &steps);
        let run = trying("", &text).run().exits(1);
        run.says(words);
        run.says(&["✗ http GET /  200"]);
    };
    said("{json.code: 0}", &["json-unexpected", "`json.code`", " 0", "got 7"]);
    said("{json.codes: present}", &["json-unexpected", "`json.codes`"]);
    said("{header: {color: blue}}", &["header-unexpected", "color", "blue", "red"]);
    said("{header: {size: present}}", &["header-unexpected", "size"]);
    said("{text: sold out}", &["body-unexpected", "sold out", "items"]);
    said("{size: < 10}", &["check-failed", "28"]);
    said("{regex: 'id=\\d+'}", &["body-unexpected", "id="]);
    said("{time: < 1ns}", &["too-slow"]);
    said("{that: \"${response.json.items.size() == 3}\"}", &["check-failed", "true", "false"]);
    said("{status: 201}", &["status-unexpected", "201", "200"]);
    said("{digest: {md5: 0123456789abcdef0123456789abcdef}}", &["check-failed", "md5"]);
}

#[test]
fn what_is_near_a_selector_that_finds_nothing_is_shown() {
    let scribe = Scribe::answering(|asked, _| match asked.what.as_str() {
        "GET /json" => ok(r#"{"data":{"token":"t-7","user":1}}"#),
        _ => ok("<form id=login><input name=csrf></form>"),
    });
    let steps = "\
- http: GET /json
  save: {t: json.data.tokn}
- http: GET /json
  check: {json.data.tokn: present, json.page: present}
- http: GET /page
  check: {css: {\"form input[name=crsf]\": present}, xpath: {\"//form/a\": present}}
- http: GET /page
  save: {id: {regex: 'id=(\\d+)'}}";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let run = trying("", &text).run().exits(1);
    run.says(&[
        "`json.data.tokn` has no match; did you mean `json.data.token`?\n",
        "`json.page` has no match; `json` contains `data`\n",
        "`form input[name=crsf]` has no match; matches of `form input`: 1\n",
        "`//form/a` has no match; matches of `//form`: 1\n",
        "`id=(\\d+)` has no match in 39 bytes\n",
        "4 steps, 4 failed",
    ]);
    let hint = "`json.data.tokn` has no match; did you mean";
    run.check(run.out.matches(hint).count() == 2, "once by each step");
    let after = run.out.split("json-unexpected").nth(1).is_some_and(|rest| rest.contains(hint));
    run.check(after, "it stands behind the failure");
}

#[test]
fn the_fields_of_a_form_are_shown_decoded() {
    let scribe = Scribe::start();
    let steps = "\
- http: POST /login
  form: {name: \"Ann & Bob\", password: \"pass word\", note: \"ä=1\"}";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let run = trying("", &text).run().exits(0);
    run.says(&["      name = Ann & Bob\n", "      password = ***\n", "      note = ä=1\n"]);
    run.check(!run.out.contains("pass word") && !run.out.contains("pass+word"), "a secret is told");
    trying("--show-secrets", &text).run().exits(0).says(&["      password = pass word\n"]);
}

#[test]
fn sessions_are_tried_one_after_the_other_or_alone() {
    let scribe = Scribe::start();
    let text = format!(
        "target: {}\nsessions:
  reader: {{steps: [{{http: GET /read}}]}}
  writer: {{weight: 9, steps: [{{http: POST /write}}]}}
load: [{{users: 5, for: 1h}}]\n",
        scribe.target()
    );
    let run = trying("", &text).run().exits(0);
    run.says(&["session reader, user 1", "session writer, user 1", "2 steps, all ok"]);
    assert_eq!(scribe.asked(), ["GET /read", "POST /write"]);
    let run = trying("--session writer", &text).run().exits(0);
    run.check(!run.out.contains("reader"), "only one was asked for");
    assert_eq!(scribe.asked().len(), 3);
    let run = trying("--session writter", &text).run().exits(2);
    run.says(&["error[unknown-name]", "`writter`", "did you mean `writer`?", "`reader`"]);
    assert_eq!(scribe.asked().len(), 3);
}

#[test]
fn several_users_are_distinguished() {
    let (scribe, text) = half_good();
    let run = trying("--pause 10ms --users 3", &text).run().exits(1);
    for user in 1..=3 {
        let body = format!("[{user}]       {{\"user\":\"u{user}\"}}");
        run.says(&[&format!("session user, user {user}"), &body]);
    }
    run.says(&["steps, 3 failed"]);
    assert_eq!(scribe.asked().len(), 9);
    trying("--users 0", &text).run().exits(2);
    trying("--users 5000", &text).run().exits(2).says(&["100"]);
}

#[test]
fn steps_wait_for_the_enter_key() {
    let scribe = Scribe::start();
    let steps = "- http: GET /1\n- http: GET /2\n- http: GET /3\n- http: GET /4";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let mut child = trying("--step", &text).listens().start();
    child.hears("the help", |out, _| {
        out.contains(
            "Press Enter to run the next step, `c` and Enter to run all remaining steps, or \
             Ctrl-C to quit",
        )
        .then_some(())
    });
    for step in 1..=2 {
        // What would happen too early would have happened until the step before is told.
        assert_eq!(scribe.asked().len(), step - 1);
        child.types("\n");
        let done = format!("✓ http GET /{step}");
        child.hears(&done, |out, _| out.contains(&done).then_some(()));
    }
    assert_eq!(scribe.asked().len(), 2);
    child.types("c\n");
    child.wait().exits(0).says(&["✓ http GET /4", "4 steps, all ok"]);
}

#[test]
fn without_a_keyboard_the_steps_go_on() {
    let scribe = Scribe::start();
    let steps = "- http: GET /1\n- http: GET /2\n- http: GET /3";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    trying("--step", &text).run().exits(0).says(&["3 steps, all ok"]);
    let mut child = trying("--step", &text).listens().start();
    child.types("\n");
    child.types_no_more();
    child.wait().exits(0).says(&["3 steps, all ok"]);
}

#[test]
fn a_target_that_is_not_there_is_a_failure() {
    let text =
        one_session(&format!("http://127.0.0.1:{}", free_port()), &times(1, 1), "- http: GET /");
    let run = trying("", &text).run().exits(4);
    run.says(&["✗ http GET /", "connect-refused", "1 step, failed", "start the service"]);
    run.check(run.took.as_secs() < 20, "it waits for nothing");
    let text = one_session("http://no-such-host.invalid:80", &times(1, 1), "- http: GET /");
    trying("", &text).run().exits(4).says(&["resolve-failed", "no-such-host.invalid"]);
}

#[test]
fn a_session_without_progress_stops_after_one_pass() {
    let port = free_port();
    for target in ["ws", "tcp"].map(|scheme| format!("{scheme}://127.0.0.1:{port}")) {
        let steps = "- connect:\n- send: {text: hello}";
        let run = trying("", &one_session(&target, &times(1, 1), steps)).run().exits(4);
        run.says(&["1 step, failed", "error[connect-refused]", "could not be reached", "target"]);
        run.check(run.took.as_secs() < 20, "it goes round");
    }
    // A path that speaks no WebSocket: it is reached, and gets no further.
    let scribe = Scribe::answering(|_, _| answer("404 Not Found", "", ""));
    let target = scribe.target().replace("http:", "ws:");
    let steps = "- connect: /nothing-here\n- send: {text: hello}";
    let run = trying("", &one_session(&target, &times(1, 1), steps)).run().exits(1);
    run.says(&["1 step, failed", "error[upgrade-refused]", "`connect:`"]);
    assert_eq!(scribe.asked(), ["GET /nothing-here"], "{run}");
    let users = trying("--users 3", &one_session(&target, &times(3, 3), steps)).run().exits(1);
    users.says(&["3 steps, 3 failed"]);
}

#[test]
fn without_a_reader_it_ends() {
    let target = Target::start("http");
    let steps = "- repeat: 100000\n  steps: [{http: GET /}]";
    let text = one_session(&target.http(""), &times(1, 1), steps);
    let mut command = std::process::Command::new("sh");
    let line = format!("{} try s.yaml --full | head -1", crate::run::binary().display());
    command.args(["-c", &line]);
    let run = Throng::new(command).file("s.yaml", &text).run();
    run.check(run.took.as_secs() < 30, "it goes on");
    assert!(target.counts("/requests") < 50_000, "{run}");
}

/// A child whose first request is under way, and never answered.
fn under_way(line: &str, steps: &str) -> (Target, Child) {
    let target = Target::start("http --latency 30s");
    let url = format!("http://{}", target.address);
    let child = trying(line, &one_session(&url, &times(1, 1), steps)).listens().start();
    target.comes_to("/connections/open", 1);
    (target, child)
}

fn interrupted(run: Run) {
    let run = run.exits(130);
    run.check(run.took.as_secs() < 15, "it does not end at once");
}

#[test]
fn ctrl_c_ends_it() {
    let (_target, child) = under_way("", "- http: GET /\n- http: GET /2");
    child.signal(libc::SIGINT);
    interrupted(child.wait());

    let scribe = Scribe::start();
    let text = one_session(&scribe.target(), &times(1, 1), "- http: GET /1\n- http: GET /2");
    let mut child = trying("--step", &text).listens().start();
    child.hears("the help", |out, _| out.contains("Enter").then_some(()));
    child.types("\n");
    child.hears("a step", |out, _| out.contains("✓ http GET /1").then_some(()));
    child.signal(libc::SIGINT);
    interrupted(child.wait());
    assert_eq!(scribe.asked(), ["GET /1"]);
}

#[test]
fn long_answers_are_cut_unless_all_is_wanted() {
    let lines: String =
        (1..=200).map(|line| format!("line {line} {}\n", "x".repeat(300))).collect();
    let scribe = Scribe::answering(move |asked, _| match asked.what.as_str() {
        "GET /lines" => ok(&lines),
        _ => ok("\x1b[2J\x07 bytes \u{0}"),
    });
    let steps =
        "- http: GET /lines\n- http: GET /bytes\n- repeat: 150\n  steps: [{http: GET /bytes}]";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let run = trying("", &text).run().exits(0);
    run.says(&[
        "only 100 of 150 loop iterations run; --full runs all",
        "only the first 2 loop iterations are shown with their data; --full shows all",
        "line 1 xxx",
        "more lines; --full shows them",
        "102 steps, all ok",
        "1b 5b 32 4a",
    ]);
    run.check(run.out.matches("\u{2192} GET /bytes").count() == 3, "two iterations with data");
    run.check(!run.out.contains('\x1b') && !run.out.contains('\x07'), "the terminal is not safe");
    run.check(run.out.lines().all(|line| line.chars().count() < 220), "a line is too long");
    let full = trying("--full", &text).run().exits(0);
    full.says(&["152 steps, all ok", &"x".repeat(300)]);
    full.check(!full.out.contains("loop iterations"), "it shows all of them");
    full.check(full.out.matches("\u{2192} GET /bytes").count() == 151, "all rounds");
}

#[test]
fn loops_run_in_full_and_show_failures_in_full() {
    let count = AtomicU32::new(0);
    let scribe = Scribe::answering(move |_, _| {
        let lines = count.fetch_add(1, Ordering::Relaxed) + 1;
        ok(&format!(r#"{{"lines":{lines}}}"#))
    });
    let steps = "\
- repeat: 5
  steps: [{http: GET /add}]
- for_each: ${[6, 7, 8]}
  steps: [{http: GET /add, check: {json.lines: < 8}}]
- http: GET /cart
  check: {json.lines: 9}";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let run = trying("", &text).run().exits(1);
    run.says(&["{\"lines\":2}", "{\"lines\":7}", "{\"lines\":8}", "9 steps, 1 failed"]);
    run.check(!run.out.contains("{\"lines\":3}"), "only two iterations are shown with data");
    run.check(run.out.matches("✓ http GET /add  200").count() == 7, "each step has a line");
    assert_eq!(scribe.asked().len(), 9);
}

#[test]
fn the_last_try_decides() {
    let count = AtomicU32::new(0);
    let scribe = Scribe::answering(move |_, _| match count.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => answer("503 Service Unavailable", "", "busy"),
        2 => ok("{}"),
        _ => answer("503 Service Unavailable", "", "still busy"),
    });
    let steps = "- http: GET /\n  retry: {times: 2, wait: 1ms..2ms, on: [503]}";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let good = trying("", &text).run().exits(0);
    good.says(&["↻ http GET /  503", "busy", "✓ http GET / · try 3  200", "1 step, ok"]);
    good.check(good.out.matches('↻').count() == 2, "two retried tries");
    let bad = trying("", &text).run().exits(1);
    bad.says(&["↻ http GET /  503", "✗ http GET / · try 3  503", "1 step, failed"]);
    assert_eq!(scribe.asked().len(), 6);
}

#[test]
fn messages_are_shown_too() {
    let target = Target::start("echo");
    let steps = r#"- connect
- request: {hex: 00 01 fe ff}
  expect: {length: 4}
- send: {text: "bye\n"}
- expect: {delimiter: "\n"}
- disconnect"#;
    let text = one_session(&format!("tcp://{}", target.address), &times(1, 1), steps);
    let run = trying("", &text).run().exits(0);
    run.says(&["✓ connect", "→ 00 01 fe ff", "← 00 01 fe ff", "→ bye", "← bye", "all ok"]);
}

#[test]
fn endless_loops_are_looked_at_once() {
    let scribe = Scribe::start();
    let steps = "\
- set: {n: 0}
- while: ${saved.n < 3}
  steps: [{set: {n: \"${saved.n + 1}\"}}, {http: GET /while}]
- repeat: forever
  steps:
    - http: GET /first
    - if: ${saved.n == 3}
      then: [{http: GET /then}]
      else: [{http: GET /else}]
    - repeat: forever
      steps: [{if: \"${saved.n == 3}\", then: [{http: GET /inner}]}, {think: 1h}]";
    let text = one_session(&scribe.target(), "load: [{users: 5, for: 1h}]", steps);
    for line in ["--pause 10ms", "--pause 10ms --full"] {
        let run = trying(line, &text).run().exits(0);
        run.says(&["6 steps, all ok", "`repeat: forever` runs only once"]);
        run.check(run.took.as_secs() < 20, "it goes round and round");
    }
    let asked = ["while", "while", "while", "first", "then", "inner"];
    assert_eq!(
        scribe.asked(),
        [asked, asked].concat().iter().map(|it| format!("GET /{it}")).collect::<Vec<_>>()
    );
}

#[test]
fn users_do_not_wait_for_missing_users() {
    let scribe = Scribe::start();
    let steps = "- rendezvous: gate\n  users: 50\n- http: GET /";
    let text = one_session(&scribe.target(), "load: [{users: 50, for: 1h}]", steps);
    let run = trying("--users 2", &text).run().exits(0);
    run.check(run.took.as_secs() < 20, "it waits");
    assert_eq!(scribe.asked().len(), 2);
}
