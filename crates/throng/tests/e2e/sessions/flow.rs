//! How users go through their steps, counted by the requests that came.

use std::collections::BTreeMap;

use crate::run::{Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::scribe::{Scribe, answer, ok};
use crate::servers::{Target, free_port};

/// Runs the steps of one user so often against a server that writes everything down.
#[track_caller]
fn walk(head: &str, steps: &str, code: i32) -> (Scribe, Run) {
    let scribe = Scribe::answering(|asked, number| match asked.what.as_str() {
        "GET /bad" => answer("500 Internal Server Error", "", "broken"),
        "GET /list" => ok(r#"{"ids": [7, 8, 9], "n": 0}"#),
        _ => ok(&format!("{{\"n\":{number}}}")),
    });
    let run = running(&one_session(&scribe.target(), head, steps)).run().exits(code);
    (scribe, run)
}

/// How often each path was asked for.
fn counts(scribe: &Scribe) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for asked in scribe.asked() {
        *counts.entry(asked.trim_start_matches("GET /").to_string()).or_default() += 1;
    }
    counts
}

#[test]
fn a_failure_may_stop_the_run() {
    let head = format!("{}\ndefaults: {{timeout: 5s}}", times(1000, 3));
    let steps = "- http: GET /good\n- http: GET /bad\n  on_error: stop\n- http: GET /never";
    let (scribe, run) = walk(&head, steps, 4);
    let stopped = run.json()["outcome"]["stopped"].clone();
    run.check(stopped["by"] == "rule", "a rule stopped it");
    let reason = stopped["reason"].as_str().unwrap_or_default();
    run.check(reason.contains("`GET /bad`") && reason.contains("500"), "the reason");
    run.check(run.json()["outcome"]["exit_code"] == 4, "the exit code");
    run.check(run.events("stopped").len() == 1, "it is recorded once");
    run.check(run.took.as_secs() < 20, "it goes on");
    assert_eq!(scribe.count("GET /never"), 0);
    assert!(scribe.count("GET /bad") <= 3, "each user at most once");
}

#[test]
fn a_step_may_stop_the_run() {
    let steps = "- http: GET /good\n- if: ${iteration == 5}\n  then: [{stop: enough of it}]";
    let (scribe, run) = walk(&times(1000, 1), steps, 4);
    assert_eq!(counts(&scribe), [("good".into(), 5)].into());
    run.check(run.json()["outcome"]["stopped"]["reason"] == "enough of it", "the reason");
    let reasons = run.json()["outcome"]["reasons"].to_string();
    run.check(reasons.contains("enough of it"), "the reason of the exit code");
}

#[test]
fn a_load_without_users_is_reported() {
    let scribe = Scribe::answering(|asked, _| match asked.what.as_str() {
        "GET /bad" => answer("404 Not Found", "", ""),
        _ => ok("{}"),
    });
    let steps = "- http: GET /\n- {http: GET /bad, on_error: leave}";
    let text = one_session(&scribe.target(), "load: [{users: 3, for: 4s}]", steps);
    let run = throng("run scenario.yaml").file("scenario.yaml", &text).run().exits(0);
    // On a busy machine it takes them longer than a second.
    run.says(&["no users from ", " s onward: all left"]);
}

#[test]
fn a_user_may_leave() {
    let scribe = Scribe::start();
    let text = format!(
        "target: {}\nsessions:
  user:
    before: [{{http: GET /come}}]
    steps:
      - http: GET /stay
      - if: ${{iteration == 3}}
        then: [leave]
      - http: GET /on
    after: [{{http: GET /go}}]
load: [{{arrivals: 10/s, for: 1s}}]\n",
        scribe.target()
    );
    // Who arrives does his steps once.
    let run = running(&text).run().exits(0);
    run.has("/users/started", 10);
    let wanted = [("come".into(), 10), ("stay".into(), 10), ("on".into(), 10), ("go".into(), 10)];
    assert_eq!(counts(&scribe), wanted.into());

    // In a load of users who stay, who has left is gone; nobody is left to do the rest.
    for load in ["load: [{users: 2, for: 1s}]", "load: [{iterations: 100, users: 2}]"] {
        let scribe = Scribe::start();
        let (at, from) =
            (text.find("load:").expect("the load"), text.find("sessions").unwrap_or(0));
        let text = format!("target: {}\n{}{load}", scribe.target(), &text[from..at]);
        let run = running(&text).run().exits(0);
        let wanted = [("come".into(), 2), ("stay".into(), 6), ("on".into(), 4), ("go".into(), 2)];
        assert_eq!(counts(&scribe), wanted.into(), "{run}");
        run.has("/users/finished", 2);
    }
}

#[test]
fn a_failure_may_end_an_iteration_or_a_user() {
    let steps = |word: &str| {
        format!("- http: GET /1\n- http: GET /bad\n  on_error: {word}\n- http: GET /2")
    };
    let (scribe, run) = walk(&times(6, 2), &steps("next"), 0);
    assert_eq!(counts(&scribe), [("1".into(), 6), ("bad".into(), 6)].into());
    run.has("/total/failed", 6);
    let (scribe, _) = walk(&times(6, 2), &steps("count"), 0);
    assert_eq!(counts(&scribe), [("1".into(), 6), ("2".into(), 6), ("bad".into(), 6)].into());
    let (scribe, run) = walk("load: [{arrivals: 10/s, for: 500ms}]", &steps("leave"), 0);
    assert_eq!(counts(&scribe), [("1".into(), 5), ("bad".into(), 5)].into());
    run.has("/users/finished", 5);
    let (scribe, _) = walk(
        &times(4, 1),
        "- http: GET /1\n- if: ${iteration < 3}\n  then: [next]\n- http: GET /2",
        0,
    );
    assert_eq!(counts(&scribe), [("1".into(), 4), ("2".into(), 2)].into());
}

/// What a branch gets last may be a response behind which the connection is of no more use.
#[test]
fn parallel_branches_continue_when_the_connection_of_one_is_dropped() {
    let scribe = Scribe::answering(|_, number| match number % 20 {
        0 => format!("{} and more", ok("here")),
        10 => ok("twice").repeat(2),
        _ => ok("here"),
    });
    let steps = "- parallel:\n    - [{http: GET /1}, {http: GET /2}]\n    - [{http: GET /3}]";
    let run = running(&one_session(&scribe.target(), &times(200, 5), steps)).run().exits(0);
    run.has("/users/iterations_finished", 200);
    assert_eq!(scribe.asked().len(), 600, "{run}");
    run.check(run.took.as_secs() < 20, "users stood still");
}

/// A user that never waits needs no moment at which it is woken.
#[test]
fn a_loop_without_waits_is_not_a_stall() {
    let steps = "- during: 9s\n  steps:\n    - if: ${iteration < 0}\n      then: [{think: 1s}]\n\
                 - http: GET /";
    let (scribe, run) = walk(&times(1, 1), steps, 0);
    assert_eq!(counts(&scribe), [("".into(), 1)].into());
    run.check(run.took.as_secs() >= 9, "it looped");
}

#[test]
fn a_step_is_retried_until_the_target_is_up() {
    let port = free_port();
    let steps = "- http: GET /\n  retry: {times: forever, wait: 50ms..200ms}";
    let text = one_session(&format!("http://127.0.0.1:{port}"), &times(3, 3), steps);
    let child = running(&text).start();
    child.hears("failed attempts", |_, err| err.contains("connect-ref").then_some(()));
    let scribe = Scribe::on(&format!("127.0.0.1:{port}"), |_, _| ok(""));
    let run = child.wait().exits(0);
    assert_eq!(scribe.asked().len(), 3);
    run.has("/total/ok", 3);
    run.has("/total/failed", 0);
    run.check(run.figure("/retries/retried") >= 6.0, "every try counts");
    run.has("/users/iterations_finished", 3);
}

#[test]
fn retries_are_limited() {
    let steps = "\
- http: GET /bad
  retry: {times: 2, wait: 10ms..20ms}
  on_error: next
- http: GET /never";
    let (scribe, run) = walk(&times(4, 2), steps, 1);
    assert_eq!(counts(&scribe), [("bad".into(), 12)].into());
    // Four attempts of three tries each.
    run.has("/total/failed", 4);
    run.has("/retries/retried", 8);
    run.has("/retries/given_up", 4);
}

#[test]
fn loops_run_as_often_as_configured() {
    let steps = "\
- http: GET /list
  save: {ids: json.ids, n: json.n}
- repeat: 3
  steps: [{http: GET /repeat}]
- for_each: ${saved.ids}
  as: id
  steps:
    - http: GET /each-${id}
    - repeat: 2
      steps: [{http: GET /inner}]
- for_each: [a, b]
  steps: [{http: \"GET /item-${item}\"}]
- while: ${saved.n < 4}
  steps: [{set: {n: \"${saved.n + 1}\"}}, {http: GET /while}]
- while: ${saved.n < 4}
  steps: [{http: GET /never}]
- if: ${saved.n == 4}
  then: [{http: GET /then}]
  else: [{http: GET /else}]
- if: ${size(saved.ids) > 5}
  then: [{http: GET /then2}]
  else: [{http: GET /else2}]
- repeat: 2..4
  steps: [{http: GET /range}]
- choose:
    - {steps: [{http: GET /only}]}
    - {weight: 0, steps: [{http: GET /nobody}]}";
    let (scribe, run) = walk(&times(10, 2), steps, 0);
    let mut counts = counts(&scribe);
    let range = counts.remove("range").unwrap_or_default();
    assert!((20..=40).contains(&range) && range != 20 && range != 40, "{range}");
    let wanted = [
        ("list", 1),
        ("repeat", 3),
        ("each-7", 1),
        ("each-8", 1),
        ("each-9", 1),
        ("inner", 6),
        ("item-a", 1),
        ("item-b", 1),
        ("while", 4),
        ("then", 1),
        ("else2", 1),
        ("only", 1),
    ];
    let wanted: BTreeMap<String, usize> =
        wanted.into_iter().map(|(path, count)| (path.to_string(), 10 * count)).collect();
    assert_eq!(counts, wanted, "{run}");
}

#[test]
fn during_lasts_for_its_duration() {
    let steps = "- during: 600ms\n  steps: [{http: GET /in}, {think: 50ms}]\n- http: GET /after";
    let (scribe, run) = walk(&times(1, 1), steps, 0);
    let book = scribe.book();
    let inside = book.iter().filter(|asked| asked.what == "GET /in").count();
    run.check((3..=12).contains(&inside), "passes of 50 ms");
    let took = book[book.len() - 1].at - book[0].at;
    run.check(took.as_millis() >= 590, "it is over too soon");
    assert_eq!(book[book.len() - 1].what, "GET /after");
}

#[test]
fn choices_follow_weight_and_seed() {
    let steps = "\
- choose:
    - {weight: 70, steps: [{http: GET /a}]}
    - {weight: 30, steps: [{http: GET /b}]}
- choose:
    - {weight: 20%, steps: [{http: GET /c}]}
    - {weight: 80%, steps: []}";
    let seeded = |seed: u64| {
        let (scribe, _) = walk(&format!("seed: {seed}\n{}", times(1000, 1)), steps, 0);
        counts(&scribe)
    };
    let first = seeded(7);
    assert_eq!(first["a"] + first["b"], 1000, "{first:?}");
    // Five deviations: 14.5 for 70 of 100, 12.6 for 20 of 100.
    assert!((627..=773).contains(&first["a"]), "{first:?}");
    assert!((137..=263).contains(&first["c"]), "{first:?}");
    assert_eq!(seeded(7), first, "the same seed gives the same users");
    assert_ne!(seeded(8), first, "another seed gives others");
}

#[test]
fn transactions_are_timed_with_and_without_pauses() {
    let target = Target::start("http --latency 20ms");
    let steps = "\
- transaction: all
  steps:
    - http: GET /
    - think: 100ms
    - transaction: inner
      steps: [{http: GET /bytes/5}, {http: GET /bytes/6}]
- transaction: bad
  steps:
    - http: GET /status/500
    - http: GET /";
    let text = one_session(&target.http(""), &times(20, 4), steps);
    let run = running(&text).run().exits(0);
    let time = |name: &str, of: &str, at: &str| {
        let row = run.row("transactions", name);
        (row[of][at].as_f64().unwrap_or_default() / 1e6) as u64
    };
    for (name, least) in [("all", 60), ("inner", 40)] {
        run.check(time(name, "latency", "min_ns") >= least, "three requests of 20 ms");
        run.check(time(name, "latency", "p50_ns") < 2_000, "and not more");
    }
    run.check(time("all", "latency_with_pauses", "min_ns") >= 160, "with its pause");
    let pause = time("all", "latency_with_pauses", "mean_ns") - time("all", "latency", "mean_ns");
    run.check((99..=1000).contains(&pause), &format!("the pause is the difference: {pause}"));
    run.check(
        time("inner", "latency_with_pauses", "mean_ns") == time("inner", "latency", "mean_ns"),
        "no pause",
    );
    let bad = run.row("transactions", "bad");
    run.check(bad["failed"] == 20 && bad["ok"] == 0, "a step in it failed");
    run.check(run.row("transactions", "all")["ok"] == 20, "none failed");
    // They are counted nowhere else.
    run.has("/total/count", 100);
    run.has("/total/failed", 20);
}

#[test]
fn lines_are_logged() {
    let steps = "\
- http: GET /list
  save: {n: json.n}
- set: {m: \"${saved.n + 40}\", word: \"x${user.id}y\"}
- log: user ${user.id} has ${saved.m} and ${saved.word}\u{7}
- http: GET /m-${saved.m}";
    let (scribe, run) = walk(&times(3, 1), steps, 0);
    assert_eq!(scribe.count("GET /m-40"), 3, "{run}");
    run.has("/log_lines", 3);
    let events = run.events("log");
    run.check(events.len() == 3, "lines in the record");
    for event in events {
        let text = event["text"].as_str().unwrap_or_default();
        run.check(text.starts_with("user 1 has 40 and x1y") && event["user"] == 1, "the text");
        run.check(event["at_ns"].is_u64(), "the time");
    }
    let lines = run.err.lines().filter(|line| {
        line.ends_with("user 1] user 1 has 40 and x1y\u{fffd}")
            || line.contains("user 1] user 1 has 40 and x1y")
    });
    run.check(lines.count() == 3, "lines in the output");
    run.check(!run.err.contains('\u{7}'), "the bell does not ring");
}

#[test]
fn parts_are_steps_by_name() {
    let head = format!(
        "{}\nparts:\n  get: [{{http: \"GET /${{vars.path}}\"}}]\n  \
         two: [{{use: get}}, {{use: get, with: {{path: q}}}}]\nvars: {{path: p}}",
        times(2, 1)
    );
    let (scribe, _) = walk(&head, "- use: two\n- use: get\n  with: {path: r}", 0);
    assert_eq!(counts(&scribe), [("p".into(), 2), ("q".into(), 2), ("r".into(), 2)].into());
}

#[test]
fn sessions_start_by_weight() {
    let scribe = Scribe::start();
    let text = format!(
        "target: {}\nsessions:
  often: {{weight: 3, steps: [{{http: GET /often}}]}}
  rare: {{weight: 1, steps: [{{http: GET /rare}}]}}
load: [{{arrivals: 400/s, for: 1s}}, {{users: 0, for: 500ms}}]\n",
        scribe.target()
    );
    let run = running(&text).run().exits(0);
    let counts = counts(&scribe);
    // On a busy machine a user or two may start after the second: the load goes on for them.
    assert_eq!(run.json()["users"]["started"], counts["often"] + counts["rare"], "{run}");
    assert!((255..=345).contains(&counts["often"]), "{counts:?}\n{run}");
    assert!((55..=145).contains(&counts["rare"]), "{counts:?}\n{run}");
}

#[test]
fn users_leave_when_the_run_is_interrupted() {
    let scribe = Scribe::start();
    let text = format!(
        "target: {}\nsessions:
  user:
    steps: [{{http: GET /in}}, {{think: 60s}}, {{http: GET /never}}]
    after: [{{http: GET /bye}}]
load: [{{users: 5, for: 60s}}]\n",
        scribe.target()
    );
    let child = running(&text).start();
    child.until("all to be there", || scribe.count("GET /in") == 5);
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    run.check(run.took.as_secs() < 15, "it waits for those who think");
    assert_eq!(counts(&scribe), [("in".into(), 5), ("bye".into(), 5)].into());
    run.has("/users/finished", 5);
    run.check(run.json()["run"]["interrupted"] == true, "it is recorded");
}

#[test]
fn the_end_of_the_load_lets_users_finish_their_step() {
    let target = Target::start("http --latency 700ms");
    let text = one_session(&target.http(""), "load: [{users: 4, for: 500ms}]", "- http: GET /");
    let run = running(&text).run().succeeds(4);
    target.comes_to("/connections/open", 0);
    assert_eq!(target.counts("/requests"), 4, "{run}");
    // What takes longer than they may is cut off, and is no failure.
    let head = "graceful_stop: 100ms\nload: [{users: 4, for: 500ms}]";
    let text = one_session(&target.http(""), head, "- http: GET /");
    let run = running(&text).run();
    run.has("/users/cut_off", 4);
    run.has("/total/count", 0);
    run.exits(5).says(&["nothing-answered"]);
}

#[test]
fn a_header_of_the_session_is_sent_as_soon_as_its_value_is_saved() {
    let scribe = Scribe::answering(|asked, number| match asked.what.as_str() {
        "POST /login" => ok(&format!("{{\"token\":\"t{number}\"}}")),
        _ => ok("{}"),
    });
    let text = format!(
        "target: {}\nload: [{{iterations: 2, users: 1}}]\nsessions:\n  user:\n    \
         headers: {{Authorization: 'Bearer ${{saved.token}}', Cookie: 'sid=${{saved.token}}'}}\n\
         \x20   \
         steps:\n      - http: GET /early\n      \
         - {{http: POST /login, save: {{token: json.token}}}}\n      - http: GET /late\n",
        scribe.target()
    );
    let run = running(&text).run().exits(0);
    let sent = |name: &'static str| {
        let book = scribe.book().into_iter();
        book.map(|asked| asked.header(name).unwrap_or_default().to_string()).collect::<Vec<_>>()
    };
    let want = ["", "", "Bearer t2", "Bearer t2", "Bearer t2", "Bearer t5"];
    assert_eq!(sent("authorization"), want, "{run}");
    let want = ["", "", "sid=t2", "sid=t2", "sid=t2", "sid=t5"];
    assert_eq!(sent("cookie"), want, "{run}");
    let check = throng("check scenario.yaml").file("scenario.yaml", &text).run().exits(0);
    check.check(check.out.matches("without Authorization until token is saved").count() == 2, "");
}

#[test]
fn few_users_are_distributed_exactly_by_weight() {
    for (weights, want, shards) in [((1, 1), (3, 3), 1), ((50, 50), (3, 3), 2), ((1, 2), (2, 4), 2)]
    {
        let scribe = Scribe::start();
        let session = |name: &str, weight: u32| {
            format!(
                "  {name}: {{weight: {weight}, before: [{{http: GET /{name}}}], steps: [{{think: 1s}}]}}"
            )
        };
        let text = format!(
            "target: {}\nload: [{{users: 6, for: 300ms}}]\nsessions:\n{}\n{}\n",
            scribe.target(),
            session("a", weights.0),
            session("b", weights.1)
        );
        let run =
            throng(&format!("run s.yaml --json --shards {shards}")).file("s.yaml", text).run();
        assert_eq!((scribe.count("GET /a"), scribe.count("GET /b")), want, "{run}");
    }
}

#[test]
fn times_to_the_first_byte_have_thresholds() {
    let scribe = Scribe::start();
    let steps = "- {http: GET /, name: home}";
    for (threshold, code) in [
        ("first byte p95 < 10s", 0),
        ("home first byte max < 10s", 0),
        ("http first byte p50 < 1ns", 1),
    ] {
        let head = format!("{}\nthresholds: [{threshold}]", times(3, 1));
        let run = running(&one_session(&scribe.target(), &head, steps)).run().exits(code);
        run.check(run.json()["thresholds"][0]["figure"].as_f64() > Some(0.0), threshold);
    }
}

#[test]
fn a_query_is_added_to_the_path_and_encoded() {
    let scribe = Scribe::start();
    let steps = "\
- http: GET /search
  query: {q: 'tea & milk+50%', page: 2, tag: [red, '#1'], empty: '', user: 'u${user.id}'}
- http: GET /more?a=1
  name: more
  query: {b: \"2\"}
- {http: GET /none, query: {}}";
    let run = running(&one_session(&scribe.target(), &times(1, 1), steps)).run().exits(0);
    let want = [
        "GET /search?q=tea+%26+milk%2B50%25&page=2&tag=red&tag=%231&empty=&user=u1",
        "GET /more?a=1&b=2",
        "GET /none",
    ];
    assert_eq!(scribe.asked(), want, "{run}");
    run.row("steps", "GET /search");
}

#[test]
fn an_ipv6_address_may_have_a_zone_which_is_not_sent() {
    for zone in ["%1", "%251"] {
        let scribe = Scribe::on("[::1]:0", |_, _| ok("{}"));
        let port = scribe.target().rsplit(':').next().unwrap_or_default().to_string();
        let target = format!("\"http://[::1{zone}]:{port}\"");
        let run = running(&one_session(&target, &times(1, 1), "- http: GET /")).run().exits(0);
        let host = scribe.book()[0].header("host").map(str::to_string);
        assert_eq!(host, Some(format!("[::1]:{port}")), "{run}");
    }
}
