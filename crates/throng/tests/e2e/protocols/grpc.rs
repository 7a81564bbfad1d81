//! gRPC calls; the target keeps the books.

use crate::run::{Run, Throng, throng};
use crate::scenarios::{one_session, running, times};
use crate::servers::Target;

/// A scenario of calls of `examples/echo.proto`.
fn calling(url: &str, steps: &str, load: &str) -> Throng {
    let text = one_session(url, &format!("proto: echo.proto\n{load}"), steps);
    running(&text).file("echo.proto", include_str!("../../../../../examples/echo.proto"))
}

/// How many attempts failed with this cause.
fn failed(run: &Run, cause: &str) -> u64 {
    let errors = run.json()["errors"].as_array().cloned().unwrap_or_default();
    let found = errors.iter().filter(|error| error["cause"] == cause);
    found.filter_map(|error| error["count"].as_u64()).sum()
}

/// The target's calls, the messages that came and went, and the calls that ended well.
#[track_caller]
fn assert_books(target: &Target, expected: [u64; 4]) {
    let books = ["calls", "messages_in", "messages_out", "statuses/OK"];
    let books = books.map(|name| target.counts(&format!("/grpc/{name}")));
    assert_eq!(books, expected, "calls, messages in and out, those that ended well");
}

#[test]
fn unary_calls_match_the_counts_of_the_target() {
    for (kind, scheme) in [("http", "grpc"), ("http --tls", "grpcs")] {
        let target = Target::start(kind);
        let url = target.url(scheme, "");
        let steps = "- {grpc: Echo/Say, message: {text: \"a ${user.id}\", repeat: 2}, \
                     check: {text: \"a ${user.id} a ${user.id}\", number: 1}}";
        let load = "tls: {verify: false}\n".to_owned() + &times(200, 10);
        let load = if scheme == "grpc" { times(200, 10) } else { load };
        let run = calling(&url, steps, &load).run().exits(0);
        run.has("/total/ok", 200);
        run.has("/connections/opened", 10);
        run.has("/connections/http2", 10);
        assert_books(&target, [200, 200, 200, 200]);
        assert_eq!(target.counts("/http2/connections"), 10);
    }
}

#[test]
fn streamed_calls_match_the_counts_of_the_target() {
    let target = Target::start("http");
    let steps = "- {grpc: Echo/Count, message: {to: 7}, save: {last: number}}\n\
                 - {grpc: Echo/Collect, messages: [{text: a}, {text: \"${saved.last}\"}, {text: c}], \
                 check: {text: a 7 c, number: 3}}\n\
                 - {grpc: Echo/Chat, messages: [{text: x}, {text: x, repeat: 1}], check: {text: x}}";
    let run = calling(&target.url("grpc", ""), steps, &times(50, 5)).run().exits(0);
    run.has("/total/ok", 150);
    assert_books(&target, [150, 50 * (1 + 3 + 2), 50 * (7 + 1 + 2), 150]);
}

#[test]
fn each_reply_has_to_hold_its_checks_and_the_call_the_others() {
    let target = Target::start("http");
    let steps = "- {grpc: Echo/Count, name: good, message: {to: 7}, check: {number: \"< 8\", \
                 status: OK, header: {content-type: present}, time: < 1h}}\n\
                 - {grpc: Echo/Count, name: bad, message: {to: 7}, check: {number: \"< 4\", \
                 status: OK}}\n\
                 - {grpc: Echo/Count, name: last, message: {to: 7}, check: {number: \"> 6\"}}";
    let run = calling(&target.url("grpc", ""), steps, &times(10, 2)).run();
    assert_eq!(run.row("steps", "good")["ok"], 10, "{run}");
    assert_eq!(run.row("steps", "bad")["failed"], 10, "{run}");
    assert_eq!(run.row("steps", "last")["failed"], 10, "{run}");
    assert_eq!(failed(&run, "field-unexpected"), 20, "{run}");
}

#[test]
fn messages_are_compressed_both_ways() {
    let target = Target::start("http");
    let steps = "- {grpc: Echo/Say, message: {text: letter, repeat: 10000}, compress: gzip, \
                 check: {text: {contains: letter letter}}}";
    let run = calling(&target.url("grpc", ""), steps, &times(20, 2)).run().exits(0);
    run.has("/total/ok", 20);
    assert_books(&target, [20, 20, 20, 20]);
    // 70,000 bytes each, but for gzip.
    assert!(target.counts("/bytes_out") < 20 * 7_000, "{run}");
}

#[test]
fn an_unchecked_error_status_is_a_failure() {
    let target = Target::start("http");
    let steps = "- {grpc: Echo/Say, name: wanted, message: {text: gone, code: 5}, \
                 check: {status: [OK, NOT_FOUND]}, save: {code: status}}\n\
                 - {grpc: Echo/Say, name: saved, message: {text: \"${saved.code}\"}, \
                 check: {text: \"5\"}}\n\
                 - {grpc: Echo/Say, name: unwanted, message: {text: gone, code: 8}}";
    let run = calling(&target.url("grpc", ""), steps, &times(10, 2)).run();
    assert_eq!(run.row("steps", "wanted")["ok"], 10, "{run}");
    assert_eq!(run.row("steps", "saved")["ok"], 10, "{run}");
    assert_eq!(run.row("steps", "unwanted")["failed"], 10, "{run}");
    assert_eq!(failed(&run, "grpc-status"), 10, "{run}");
    run.check(run.to_string().contains("RESOURCE_EXHAUSTED"), "the name of the status is told");
    assert_eq!(target.counts("/grpc/statuses/NOT_FOUND"), 10);
    assert_eq!(target.counts("/grpc/statuses/RESOURCE_EXHAUSTED"), 10);
}

#[test]
fn faults_are_counted_on_both_sides() {
    let target = Target::start("http --errors 10% --resets 5% --latency 2ms");
    let steps = "- {grpc: Echo/Say, message: {text: a}}\n- {grpc: Echo/Count, message: {to: 3}}";
    let run = calling(&target.url("grpc", ""), steps, &times(1000, 20)).run();
    let (errors, resets) = (failed(&run, "grpc-status"), failed(&run, "reset"));
    run.check(errors > 100 && resets > 50, "both kinds of faults came");
    run.has("/total/ok", 2000 - errors - resets);
    let statuses = ["INTERNAL", "UNAVAILABLE", "OK"];
    let [internal, unavailable, ok] =
        statuses.map(|name| target.counts(&format!("/grpc/statuses/{name}")));
    assert_eq!((internal + unavailable, ok), (errors, 2000 - errors - resets), "{run}");
    assert_eq!(target.counts("/errors_sent"), errors);
    assert_eq!(target.counts("/resets_sent"), resets);
    // What fails is the stream, not the connection.
    run.has("/connections/opened", 20);
}

#[test]
fn a_deadline_ends_the_call() {
    let target = Target::start("http --latency 1h");
    let steps = "- {grpc: Echo/Say, message: {text: a}, timeout: 50ms}";
    let run = calling(&target.url("grpc", ""), steps, &times(20, 4)).run();
    run.has("/total/failed", 20);
    // Whichever end is the first to see that the time is over.
    assert_eq!(failed(&run, "grpc-status") + failed(&run, "timeout"), 20, "{run}");
    target.comes_to("/connections/open", 0);
    let stats = target.stats();
    let over = stats["grpc"]["statuses"]["DEADLINE_EXCEEDED"].as_u64().unwrap_or(0);
    let left = stats["unanswered"].as_u64().unwrap_or(0);
    assert_eq!((&stats["grpc"]["calls"], over + left), (&20.into(), 20), "{stats}");
}

#[test]
fn a_chat_stays_and_its_messages_are_answered() {
    let target = Target::start("http");
    let steps = "- {connect: echo.v1.Echo/Chat, message: {text: hello}}\n\
                 - {expect: {text: hello, number: 1}}\n\
                 - repeat: 5\n  \
                   steps: [{request: {text: \"${user.id}\", repeat: 2}, \
                 check: {text: \"${user.id} ${user.id}\"}, name: say}]\n\
                 - disconnect";
    let run = calling(&target.url("grpc", ""), steps, &times(20, 20)).run().exits(0);
    assert_eq!(run.row("steps", "say")["ok"], 100, "{run}");
    target.comes_to("/connections/open", 0);
    assert_books(&target, [20, 120, 120, 20]);
}

#[test]
fn a_status_that_ends_a_chat_is_a_loss() {
    let target = Target::start("http");
    let steps = "- {connect: echo.v1.Echo/Chat}\n\
                 - {send: {text: enough, code: 8}}\n\
                 - {expect: {text: enough}, timeout: 10s}";
    let run = calling(&target.url("grpc", ""), steps, &times(10, 10)).run();
    run.check(failed(&run, "grpc-status") > 0, "the status is the cause");
    run.check(run.to_string().contains("RESOURCE_EXHAUSTED"), "the name of the status is told");
    let statuses = &target.stats()["grpc"]["statuses"];
    run.check(statuses["RESOURCE_EXHAUSTED"].as_u64() >= Some(10), &statuses.to_string());
}

/// A stream that never ends by itself is given up when its user disconnects, and that is no
/// failure of the target.
#[test]
fn a_stream_that_has_not_ended_is_canceled() {
    let target = Target::start("http");
    let steps = "- {connect: echo.v1.Echo/Count, message: {to: 100000, pause_ms: 20}}\n\
                 - {expect: {number: 3}}\n\
                 - disconnect";
    let run = calling(&target.url("grpc", ""), steps, &times(8, 4)).run().exits(0);
    run.check(run.took.as_secs() < 5, "it waits for no stream");
    run.has("/lifecycle/complete", 8);
    run.has("/lifecycle/broken", 0);
    run.has("/connections/closed_by_us", 8);
    target.comes_to("/connections/open", 0);
}

#[test]
fn a_status_is_shown_as_grpc_numbers_and_names_it() {
    let target = Target::start("http");
    let (url, steps) = (target.url("grpc", ""), "- {grpc: Echo/Say, message: {text: a, code: 5}}");
    let text = one_session(&url, &format!("proto: echo.proto\n{}", times(1, 1)), steps);
    let proto = include_str!("../../../../../examples/echo.proto");
    for (line, told) in
        [("run --details", "grpc-status 5 NOT_FOUND · user 1"), ("try", "5 NOT_FOUND")]
    {
        let run = throng(&format!("{line} s.yaml")).file("s.yaml", &text).file("echo.proto", proto);
        let run = run.run();
        run.says(&[told]);
        run.check(!run.to_string().contains("10005"), "only the record numbers it so");
    }
}

/// The scenario and the target do not agree what a reply is, and nothing looks at replies.
#[test]
fn a_reply_that_is_not_what_the_method_returns_is_a_failure() {
    let target = Target::start("http");
    let proto = include_str!("../../../../../examples/echo.proto");
    let (head, reply) = proto.split_once("message SayReply").expect("the reply");
    let other = reply.replacen("string text", "int32 text", 1);
    let other = head.to_owned() + "message SayReply" + &other.replace("int64", "string");
    let steps = "- {grpc: Echo/Say, message: {text: a}}\n- {grpc: Echo/Count, message: {to: 3}}";
    let head = format!("proto: echo.proto\n{}", times(10, 2));
    let text = one_session(&target.url("grpc", ""), &head, steps);
    let run = running(&text).file("echo.proto", other).run();
    assert_eq!(failed(&run, "malformed"), 20, "{run}");
    let told = "reply 1 is not a valid `echo.v1.SayReply` at byte 0: `text` is not encoded as";
    run.says(&[told, "reply 1 is not a valid `echo.v1.SayReply` at byte 0: `number`"]);
    run.has("/total/ok", 0);
}
