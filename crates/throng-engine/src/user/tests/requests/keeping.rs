//! The memory of all users together is limited: beyond it responses fail, and nothing else does.

use throng_extract::Digest;
use throng_metrics::Comparison;
use throng_program::Slow;

use super::values::text_with;
use super::*;

/// Forty thousand bytes, in two pieces that arrive separately.
fn large_answers() -> Server {
    http_server(|_| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n".to_vec();
        let first = [head, vec![b'x'; 20_000]].concat();
        vec![(MS, Deed::Say(first)), (20 * MS, Deed::Say(vec![b'x'; 20_000]))]
    })
}

fn eight_users(checks: Vec<Check>, kept_bytes_max: Option<u64>) -> Outcome {
    let drive = Drive::Iterations(Iterations::new(8, None, Some(80)));
    let code = vec![get(checks)];
    let program =
        program(Scheme::Http, vec![session(code, 0)], &[StepKind::Http], phase(drive, None));
    let play = Play { kept_bytes_max, ..Play::new(program, 1) };
    let outcome = play.run(|world| world, large_answers());
    outcome.is_sound(1);
    outcome
}

#[test]
fn bodies_beyond_the_budget_fail_and_the_run_continues() {
    let contains = || vec![Check { pick: Pick::Body, want: Want::Contains(Text::literal("xx")) }];
    let outcome = eight_users(contains(), None);
    assert_eq!((outcome.sum.total().ok, outcome.sum.total().count), (80, 80));
    // Two whole bodies.
    let outcome = eight_users(contains(), Some(100_000));
    let refused = outcome.errors(Cause::MemoryLimit);
    let total = outcome.sum.total();
    assert!(refused > 0 && total.ok > 0, "{refused} refused, {} ok", total.ok);
    assert_eq!((total.ok + refused, total.count), (80, 80));
    let example = outcome.examples.iter().find(|one| one.cause == Cause::MemoryLimit).unwrap();
    assert!(example.detail.english().contains("100 KB"), "{:?}", example.detail);
    // The connection can be used for the next response.
    assert_eq!(outcome.sum.connections.counts.opened, 8);
    // Not even one.
    let outcome = eight_users(contains(), Some(30_000));
    assert_eq!(outcome.errors(Cause::MemoryLimit), 80);
    // Bodies that nothing needs are not kept.
    assert_eq!(eight_users(Vec::new(), Some(1)).sum.total().ok, 80);
}

#[test]
fn size_and_digest_checks_do_not_keep_the_body() {
    let size =
        |size: f64| Check { pick: Pick::Size, want: Want::Number(Comparison::Equal, size.into()) };
    let digest = |digest: Digest, body: &[u8]| Check {
        pick: Pick::Digest(digest),
        want: Want::Equals(Text::literal(digest.of(body).as_bytes())),
    };
    let body = [b'x'; 40_000];
    let good = vec![size(40e3), digest(Digest::Sha256, &body), digest(Digest::Crc32, &body)];
    assert_eq!(eight_users(good, Some(1)).sum.total().ok, 80);
    for bad in [size(20e3), digest(Digest::Sha256, &body[1..])] {
        assert_eq!(eight_users(vec![bad], Some(1)).errors(Cause::CheckFailed), 80);
    }
}

/// Eight users send this body at the same time, each for twenty seconds.
fn slow_uploads(body: Text, kept_bytes_max: u64) -> Outcome {
    let drive = Drive::Iterations(Iterations::new(8, None, Some(8)));
    let mut post = get(Vec::new());
    if let Statement::Http(http) = &mut post {
        let http = Arc::make_mut(http);
        http.method = "POST".into();
        http.body = Body::Text(body);
        http.timeout = 3600 * S;
    }
    let slow = Slow { write: Some(1000), ..Slow::default() };
    let code = vec![get(Vec::new()), Statement::Slow { link: 0, slow }, post];
    let steps = [StepKind::Http];
    let program = program(Scheme::Http, vec![session(code, 0)], &steps, phase(drive, None));
    let play = Play { kept_bytes_max: Some(kept_bytes_max), ..Play::new(program, 1) };
    let outcome = play.run(|world| world, http_server(|_| vec![(MS, say(HELLO))]));
    outcome.is_sound(1);
    outcome
}

#[test]
fn unsent_data_stays_within_the_budget() {
    let own = format!("${{user.id}}{}", "x".repeat(20_000));
    let outcome = slow_uploads(text_with(&own, Escape::None), 100_000);
    let refused = outcome.errors(Cause::MemoryLimit);
    assert!((1..8).contains(&refused), "{refused} refused");
    assert_eq!(outcome.sum.total().ok, 16 - refused);
}

#[test]
fn a_body_that_all_users_share_is_stored_once() {
    // Less than one body for all users together: there is room for their heads.
    let outcome = slow_uploads(Text::literal([b'x'; 20_000]), 2_000);
    assert_eq!((outcome.sum.total().ok, outcome.errors(Cause::MemoryLimit)), (16, 0));
    // A short one is copied.
    let outcome = slow_uploads(Text::literal([b'x'; 2_000]), 2_000);
    assert!(outcome.errors(Cause::MemoryLimit) > 0);
}

#[test]
fn incomplete_messages_stay_within_the_budget() {
    let chat = chat_server(0);
    let server: Server = Box::new(move |asked, random| {
        if asked.starts_with(b"GET ") {
            return chat(asked, random);
        }
        let mut frame = Vec::new();
        write_frame(&mut frame, Opcode::Text, true, false, None, &[b'x'; 40_000]);
        asked.clear();
        let rest = frame.split_off(20_000);
        vec![(MS, Deed::Say(frame)), (20 * MS, Deed::Say(rest))]
    });
    let drive = Drive::Iterations(Iterations::new(8, None, Some(8)));
    let code = vec![connect(), ask("now", Until::Any)];
    let steps = [StepKind::Connect, StepKind::Request];
    let program = program(Scheme::Ws, vec![session(code, 0)], &steps, phase(drive, None));
    let play = Play { kept_bytes_max: Some(100_000), ..Play::new(program, 1) };
    let outcome = play.run(|world| world, server);
    outcome.is_sound(1);
    let refused = outcome.errors(Cause::MemoryLimit);
    assert!((1..8).contains(&refused), "{refused} refused");
}
