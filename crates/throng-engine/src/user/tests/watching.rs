//! Traces of every step for an observer, and running step by step.

use super::*;

fn heard(outcome: &Outcome) -> Vec<String> {
    outcome.traces.iter().map(|trace| words(&trace.what)).collect()
}

fn words(what: &What) -> String {
    let text = |shown: &crate::trace::Shown| String::from_utf8_lossy(&shown.bytes).into_owned();
    match what {
        What::StepBegins { verb, pc, retry, .. } => format!("{verb} at {pc} retry {retry}"),
        What::StepEnds { failure: None, figures, .. } => {
            format!("ok {} {} bytes", figures.code, figures.bytes_in)
        }
        What::TryFails { failure: (cause, detail), .. } => {
            format!("retried {cause:?}: {}", detail.english())
        }
        What::StepEnds { failure: Some((cause, detail)), .. } => {
            format!("{cause:?}: {}", detail.english())
        }
        What::Sent(shown) => format!("> {}", text(shown).lines().next().unwrap_or_default()),
        What::Received(shown) => format!("< {}", text(shown).replace("\r\n", "|")),
        What::PartOfHead(shown) => format!("<… {}", text(shown).replace("\r\n", "|")),
        What::Connected { target, stages } => format!("connected {target} {}", stages.len()),
        What::Set { name, value } => format!("{name} = {value}"),
        other => format!("{other:?}"),
    }
}

fn watched(code: Block, times: u64, server: Server) -> Vec<String> {
    let play = Play { traced: true, ..Play::new(one(code, times), 1) };
    let outcome = play.run(|world| world, server);
    outcome.is_sound(1);
    heard(&outcome)
}

#[test]
fn a_request_is_traced_from_start_to_end() {
    let code = vec![step(0, Failing::default()), set(2, "1 + 1"), pause(5 * MS)];
    let heard = watched(code, 1, ok_server());
    let want = [
        "IterationBegins",
        "http at 0 retry 0",
        "connected 127.0.0.1:1 1",
        "> GET / HTTP/1.1",
        "< HTTP/1.1 200 OK|Content-Length: 5|",
        "< hello",
        "ok 200 43 bytes",
        "a = 2",
        "think at 2 retry 0",
        "Paused(5ms)",
        "IterationEnds { finished: true }",
        "Gone",
    ];
    assert_eq!(heard, want);
}

#[test]
fn a_head_in_pieces_is_traced_when_complete() {
    let pieces = [&HELLO[..10], &HELLO[10..25], &HELLO[25..]];
    let server = http_server(move |_| pieces.map(|piece| (MS, say(piece))).to_vec());
    let heard = watched(vec![step(0, Failing::default())], 1, server);
    let received: Vec<&String> = heard.iter().filter(|line| line.starts_with('<')).collect();
    let want =
        ["<… HTTP/1.1 2", "<… 00 OK|Content-", "< HTTP/1.1 200 OK|Content-Length: 5|", "< hello"];
    assert_eq!(received, want);
}

#[test]
fn failures_and_retries_are_traced() {
    let sorry = http_server(|_| vec![(MS, say(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))]);
    let retry = throng_program::Retry {
        on: throng_program::RetryOn::Any,
        times: Some(1),
        low: 10 * MS,
        high: 10 * MS,
    };
    let again = Failing { retry: Some(retry), then: throng_program::OnError::Next };
    let heard = watched(vec![step(0, again), log("1")], 1, sorry);
    let begun: Vec<&String> = heard.iter().filter(|line| line.contains("retry")).collect();
    assert_eq!(begun, ["http at 0 retry 0", "http at 0 retry 1"]);
    let lines = heard.iter().map(String::as_str);
    let failed: Vec<&str> = lines.filter(|line| line.contains("StatusUnexpected")).collect();
    let words = "StatusUnexpected: expected the status to be 200, got 503";
    assert_eq!(failed, [&*format!("retried {words}"), words], "{heard:#?}");
    assert!(heard.contains(&"IterationEnds { finished: false }".to_string()));
}

#[test]
fn messages_are_shown_without_their_frames() {
    let code = vec![connect(), ask("hello", Until::Any)];
    let kinds = [StepKind::Connect, StepKind::Request];
    let program = program(Scheme::Ws, vec![session(code, 1)], &kinds, iterations(1, 1));
    let play = Play { traced: true, ..Play::new(program, 1) };
    let outcome = play.run(|world| world, chat_server(0));
    outcome.is_sound(1);
    let heard = heard(&outcome);
    assert!(heard.contains(&"> hello".to_string()), "{heard:#?}");
    assert!(heard.contains(&"< hello".to_string()), "{heard:#?}");
    assert!(heard.contains(&"connected 127.0.0.1:1 2".to_string()), "{heard:#?}");
}

#[test]
fn users_wait_for_a_permit_before_each_step() {
    let gate = Arc::new(Gate::default());
    let code = vec![step(0, Failing::default()), step(1, Failing::default())];
    let play = |permits: u64, open: bool, stop_at: Option<Time>| {
        (0..permits).for_each(|_| gate.permit());
        if open {
            gate.open();
        }
        let program = one(code.clone(), 2);
        let gate = Some(Arc::clone(&gate));
        let outcome =
            Play { gate, stop_at, ..Play::new(program, 1) }.run(|world| world, ok_server());
        outcome.is_sound(1);
        (outcome.sum.total().count, outcome.end)
    };
    let stop = Time::from_secs(3);
    let (count, end) = play(3, false, Some(stop));
    assert_eq!(count, 3);
    assert!(end >= stop && end < stop + 150 * MS, "{end}");
    assert_eq!(play(4, false, None).0, 4);
    assert_eq!(play(0, true, None).0, 4);
}

#[test]
fn nothing_is_traced_without_an_observer() {
    let outcome = run(one(vec![step(0, Failing::default())], 10), 1, |world| world, ok_server());
    assert!(outcome.traces.is_empty());
    assert_eq!(outcome.sum.total().ok, 10);
}
