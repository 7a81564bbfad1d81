//! How a connection ends that is no longer needed, and what is read of a response whose request was
//! not sent completely.

use throng_base::{Side, Turns};

use super::*;

const CLOSING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

#[test]
fn no_user_waits_for_a_target_that_does_not_close() {
    let server = http_server(|_| vec![(MS, say(CLOSING))]);
    let outcome = run(one(vec![get(Vec::new())], 100), 1, |world| world, server);
    outcome.is_sound(1);
    // A connection takes up to 0.1 ms, and an answer up to 1.2 ms.
    assert!(outcome.end < Time::ZERO + 200 * MS, "{:?}", outcome.end);
    assert_eq!(outcome.sum.total().ok, 100);
    let connections = &outcome.sum.connections.counts;
    assert_eq!((connections.opened, connections.closed_by_us), (100, 100));
}

#[test]
fn connections_are_new_in_each_slice_of_a_duel() {
    let slice = Duration::from_secs(3);
    let users = Drive::Users(Users { to: 4, coming: Coming::AtOnce });
    let phase = phase(users, Some(8 * slice));
    let mut program =
        program(Scheme::Http, vec![session(vec![get(Vec::new())], 0)], &[StepKind::Http], phase);
    program.loads[0].turns = Some(Turns { slice, seed: 9, side: Side::A });
    let server = http_server(|_| vec![(50 * MS, say(HELLO))]);
    let outcome = run(program, 1, |world| world, server);
    outcome.is_sound(1);
    assert_eq!(outcome.sum.total().errors, []);
    let connections = &outcome.sum.connections.counts;
    assert_eq!(connections.opened, 4 * 4, "one of each user in each slice of its side");
}

/// TLS marks the end of its stream (RFC 8446, 6.1): a body that only the end of the connection
/// delimits is incomplete without that mark (RFC 9112, 9.8).
#[test]
fn a_body_until_close_needs_the_tls_close_alert() {
    let chunked = "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    for (rest, end, is_good) in [
        ("\r\nhalf", Deed::Close, true),
        ("\r\nhalf", Deed::Cut, false),
        ("Content-Length: 2\r\n\r\nok", Deed::Cut, true),
        (chunked, Deed::Cut, true),
    ] {
        let whole = format!("HTTP/1.1 200 OK\r\n{rest}");
        let told = format!("{rest} {end:?}");
        let server = http_server(move |_| vec![(MS, say(whole.as_bytes())), (MS, end.clone())]);
        let outcome = run(one(vec![get(Vec::new()), pause(5 * MS)], 3), 1, |world| world, server);
        outcome.is_sound(1);
        let failed = if is_good { vec![] } else { vec![(Cause::ClosedEarly, 3)] };
        assert_eq!(outcome.ended(0), (if is_good { 3 } else { 0 }, failed), "{told}");
        if let Some(example) = outcome.examples.first() {
            assert!(example.detail.english().contains("close_notify"), "{:?}", example.detail);
        }
    }
}

#[test]
fn the_close_is_left_to_a_target_that_announced_it() {
    let server = http_server(|_| vec![(MS, say(CLOSING)), (5 * MS, Deed::Close)]);
    let outcome = run(one(vec![get(Vec::new()), pause(MS)], 100), 1, |world| world, server);
    outcome.is_sound(1);
    let connections = &outcome.sum.connections.counts;
    assert_eq!(connections.closed_by_us + connections.closed_by_target, 100);
    // The last few may still be open when the run is over.
    assert!(connections.closed_by_target >= 90, "{connections:?}");
}

#[test]
fn the_number_of_connections_left_to_close_is_limited() {
    let server = http_server(|_| vec![(MS, say(CLOSING))]);
    let drive = Drive::Iterations(Iterations::new(500, None, Some(5000)));
    let sessions = vec![session(vec![get(Vec::new())], 0)];
    let program = program(Scheme::Http, sessions, HTTP, phase(drive, None));
    let outcome = run(program, 1, |world| world, server);
    outcome.is_sound(1);
    assert_eq!(outcome.sum.connections.counts.closed_by_us, 5000);
    let most = outcome.intervals.iter().map(|one| one.gauges.connections_open).max();
    assert!(most <= Some(500 + 256), "{most:?}");
}

#[test]
fn bytes_after_the_end_of_a_response_are_reported() {
    let server = http_server(|_| {
        vec![(MS, say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more"))]
    });
    let outcome = run(one(vec![get(Vec::new())], 3), 1, |world| world, server);
    outcome.is_sound(1);
    assert_eq!(outcome.ended(0), (0, vec![(Cause::Malformed, 3)]));
    let detail = &outcome.examples[0].detail;
    assert_eq!(detail, "at least 10 bytes were received after the end of the response");
}

/// Steps of `after` are skipped if their connection never opened, and run otherwise.
#[test]
fn a_user_that_never_connected_has_nothing_to_close() {
    let bye = || {
        let mut there = stay(2, None);
        if let Statement::Stay(there) = &mut there {
            Arc::make_mut(there).time = Some(10 * MS);
        }
        vec![there, ask("bye", Until::Any)]
    };
    const STEPS: [StepKind; 3] = [StepKind::Connect, StepKind::Request, StepKind::Stay];
    for (refused, ok) in [(1.0, 0), (0.0, 10)] {
        let mut one = session(vec![connect(), pause(100 * MS)], 1);
        one.after = bye();
        let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
        let program = program(Scheme::Ws, vec![one], &STEPS, phase(drive, Some(S)));
        let outcome = run(program, 5, |world| world.refuse(refused), chat_server(0));
        outcome.is_sound(5);
        let ended = [1, 2].map(|step| outcome.ended(step));
        assert_eq!(ended, [(ok, vec![]), (ok, vec![])], "refused {refused}");
        assert_eq!(outcome.errors(Cause::ConnectRefused) > 0, ok == 0);
    }
}
