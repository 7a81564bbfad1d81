//! Reactions to a failure: counting, retries, the next iteration, leaving, stopping.

use super::*;
use throng_metrics::StopBy;
use throng_program::{Expect, OnError, Retry, RetryOn, Send};

fn then(then: OnError) -> Failing {
    Failing { retry: None, then }
}

fn retry(times: Option<u32>, low: Duration, high: Duration) -> Failing {
    Failing { retry: Some(Retry { on: RetryOn::Any, times, low, high }), then: OnError::Count }
}

const SORRY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

/// Fails this many requests, then answers.
fn moody_server(failures: u64) -> Server {
    let asked = Cell::new(0);
    http_server(move |_| {
        asked.set(asked.get() + 1);
        vec![(MS, say(if asked.get() <= failures { SORRY } else { HELLO }))]
    })
}

fn played(program: Program, server: Server) -> Outcome {
    let outcome = run(program, 1, |world| world, server);
    outcome.is_sound(1);
    outcome
}

#[test]
fn a_step_is_retried_until_it_succeeds() {
    let again = retry(Some(5), 100 * MS, 400 * MS);
    let outcome = played(one(vec![step(0, again)], 1), moody_server(4));
    assert_eq!(outcome.ended(0), (1, vec![]));
    assert_eq!(outcome.tried(0), (1, vec![(Cause::StatusUnexpected, 4)], 0));
    assert_eq!(outcome.sum.population.iterations_finished, 1);
    // 100, 200, 400 and 400 ms, of each at least a half.
    assert!(outcome.end > Time::ZERO + 550 * MS, "{}", outcome.end);
    assert!(outcome.end < Time::ZERO + 1120 * MS, "{}", outcome.end);
    // The time is that of the last try.
    assert!(outcome.step(0).latency.max() < 2_000_000);
}

#[test]
fn the_failure_counts_when_no_try_is_left() {
    let again = retry(Some(2), MS, MS);
    let code = vec![step(0, again), step(1, again)];
    let outcome = played(one(code, 2), moody_server(u64::MAX));
    for index in 0..2 {
        assert_eq!(outcome.ended(index), (0, vec![(Cause::StatusUnexpected, 2)]));
        assert_eq!(outcome.tried(index), (2, vec![(Cause::StatusUnexpected, 4)], 2));
        assert_eq!(outcome.step(index).codes, [(503, 6)], "every answer is in the row");
    }
    assert_eq!(outcome.sum.population.iterations_finished, 2);
    assert_eq!((outcome.sum.retries.retried, outcome.sum.retries.given_up), (8, 4));
}

/// Retries only after these.
fn only(statuses: &[(u16, u16)], causes: &[Cause]) -> Failing {
    let at = |place: usize| (statuses.get(place).copied(), causes.get(place).copied());
    let on = RetryOn::Only {
        statuses: std::array::from_fn(|place| at(place).0),
        causes: std::array::from_fn(|place| at(place).1),
    };
    Failing { retry: Some(Retry { on, times: Some(5), low: MS, high: MS }), then: OnError::Count }
}

#[test]
fn causes_that_are_not_listed_are_not_retried() {
    let cause = Cause::StatusUnexpected;
    for (again, tries) in [
        (only(&[(429, 429), (500, 599)], &[]), 3),
        (only(&[(429, 429)], &[Cause::Timeout, cause]), 3),
        (only(&[(429, 429)], &[Cause::Timeout]), 1),
    ] {
        let outcome = played(one(vec![step(0, again)], 1), moody_server(2));
        let (ok, retried) = (outcome.ended(0).0, outcome.sum.retries.retried);
        assert_eq!((ok, retried), (u64::from(tries > 1), tries - 1), "{again:?}");
    }
}

#[test]
fn retry_after_is_respected_within_a_limit() {
    for (said, waits_s, counted) in [("7", 7, (1, 0)), ("900", 60, (1, 1)), ("soon", 0, (0, 0))] {
        let asked = Cell::new(0);
        let server = http_server(move |_| {
            asked.set(asked.get() + 1);
            let head = format!("503 Busy\r\nRetry-After: {said}\r\nContent-Length: 0\r\n\r\n");
            let busy = format!("HTTP/1.1 {head}").into_bytes();
            vec![(MS, say(if asked.get() == 1 { &busy } else { HELLO }))]
        });
        let outcome = played(one(vec![step(0, retry(Some(1), MS, MS))], 1), server);
        assert_eq!(outcome.ended(0), (1, vec![]), "{said}");
        assert_eq!(outcome.end.second(), waits_s, "{said}");
        let retries = &outcome.sum.retries;
        assert_eq!((retries.retry_after, retries.retry_after_cut), counted, "{said}");
    }
}

#[test]
fn the_same_seed_waits_the_same_time() {
    let play = |seed| {
        let mut program = one(vec![step(0, retry(Some(8), 10 * MS, S))], 3);
        program.seed = seed;
        run(program, 1, |world| world, moody_server(20)).end
    };
    assert_eq!(play(7), play(7));
    assert_ne!(play(7), play(8));
}

#[test]
fn a_user_with_unlimited_retries_still_leaves() {
    let code = vec![step(0, retry(None, 10 * MS, 20 * MS))];
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let program = program(Scheme::Http, vec![session(code, 0)], HTTP, phase(drive, Some(2 * S)));
    let outcome = played(program, moody_server(u64::MAX));
    assert!(outcome.end < Time::from_secs(2) + 50 * MS, "{}", outcome.end);
    assert_eq!(outcome.ended(0), (0, vec![]));
    let step = outcome.step(0);
    assert_eq!((step.begun, step.interrupted, step.given_up), (10, 10, 0));
    assert!(step.retried[0].1 > 500, "{:?}", step.retried);
    assert_eq!(outcome.sum.population.iterations_finished, 0);
}

#[test]
fn a_refused_connection_is_retried() {
    for scheme in [Scheme::Tcp, Scheme::Http] {
        let again = retry(Some(50), MS, 2 * MS);
        let mut open = connect();
        if let Statement::Connect(connect) = &mut open {
            Arc::make_mut(connect).failing = again;
        }
        let code = match scheme {
            Scheme::Http => vec![step(0, again)],
            _ => vec![open, Statement::Disconnect { link: 0, how: CloseMode::Fin }],
        };
        let program = program(scheme, vec![session(code, 0)], HTTP, iterations(10, 100));
        let outcome = run(program, 3, |world| world.refuse(0.5), ok_server());
        outcome.is_sound(3);
        let (ok, _) = outcome.ended(0);
        assert_eq!((ok, outcome.sum.population.iterations_finished), (100, 100), "{scheme:?}");
        let (begun, retried, given_up) = outcome.tried(0);
        assert_eq!((begun, given_up), (100, 0), "{scheme:?}");
        assert!(retried.iter().any(|(cause, _)| *cause == Cause::ConnectRefused), "{retried:?}");
    }
}

#[test]
fn the_next_iteration_starts_after_a_failure() {
    let code = vec![step(0, then(OnError::Next)), step(1, Failing::default())];
    let outcome = played(one(code, 10), moody_server(4));
    assert_eq!(outcome.ended(0), (6, vec![(Cause::StatusUnexpected, 4)]));
    assert_eq!(outcome.ended(1), (6, vec![]));
    let population = &outcome.sum.population;
    assert_eq!((population.iterations_started, population.iterations_finished), (10, 6));
}

#[test]
fn a_failed_login_restarts_the_session() {
    let code = vec![step(0, then(OnError::Next)), step(1, Failing::default())];
    let mut program = one(Vec::new(), 3);
    program.sessions[0] = session(code, 1);
    let outcome = played(program, moody_server(3));
    assert_eq!(outcome.ended(0), (1, vec![(Cause::StatusUnexpected, 3)]));
    assert_eq!((outcome.step(1).ok, outcome.sum.population.iterations_finished), (3, 3));
}

#[test]
fn a_user_that_leaves_after_a_failure_closes_gracefully() {
    let code = vec![step(0, then(OnError::Leave)), step(1, Failing::default())];
    let after = vec![step(2, then(OnError::Leave)), step(3, Failing::default())];
    let mut program = one(Vec::new(), 100);
    program.loads[0].phases[0] = iterations(4, 100);
    program.sessions[0] = Session { after, ..session(code, 0) };
    // The first four requests fail, one of each user.
    let outcome = played(program.clone(), moody_server(4));
    assert_eq!(outcome.ended(0), (0, vec![(Cause::StatusUnexpected, 4)]));
    assert_eq!((outcome.step(1).count, outcome.step(2).ok, outcome.step(3).ok), (0, 4, 4));
    assert_eq!(outcome.sum.population.iterations_finished, 0);
    // A failure while the user leaves ends the leaving.
    let outcome = played(program, moody_server(u64::MAX));
    assert_eq!((outcome.step(2).count, outcome.step(3).count), (4, 0));
}

#[test]
fn a_failure_may_stop_the_run() {
    let code = vec![pause(S), step(0, then(OnError::Stop)), step(1, Failing::default())];
    let drive = Drive::Users(Users { to: 50, coming: Coming::AtOnce });
    let program = program(Scheme::Http, vec![session(code, 0)], HTTP, phase(drive, Some(3600 * S)));
    let outcome = played(program, moody_server(u64::MAX));
    let stopped = outcome.stopped.expect("it was stopped");
    let want = "step `http` failed: the status is not as expected: expected the status to be 200, got \
         503";
    assert_eq!((stopped.reason.english().as_str(), stopped.by), (want, StopBy::Rule));
    assert!(outcome.end < Time::from_secs(2), "{}", outcome.end);
}

/// Every verb that can fail, and every reaction to a failure, against servers that do everything
/// wrong: nothing is lost, duplicated or left over.
#[test]
fn every_failure_of_every_verb_is_handled() {
    let answers = [OnError::Count, OnError::Next, OnError::Leave, OnError::Stop];
    let retries = [None, Some(Retry { on: RetryOn::Any, times: Some(2), low: MS, high: 5 * MS })];
    let message = || Message::plain(MessageKind::Text, Text::literal("hello"));
    let verbs = |failing: Failing| {
        let mut open = connect();
        let mut ask = ask("hello", Until::Any);
        if let (Statement::Connect(connect), Statement::Request(ask)) = (&mut open, &mut ask) {
            let (connect, ask) = (Arc::make_mut(connect), Arc::make_mut(ask));
            (connect.failing, ask.failing, ask.checks) = (failing, failing, vec![body("hello")]);
        }
        let send = Send { timeout: 30 * S, link: 0, step: StepId(2), message: message(), failing };
        let expect = Expect {
            step: StepId(3),
            link: 0,
            message: Which::default(),
            until: Until::Any,
            checks: vec![body("hello")],
            saves: Vec::new(),
            timeout: 100 * MS,
            failing,
        };
        let (send, expect) = (Statement::Send(Arc::new(send)), Statement::Expect(Arc::new(expect)));
        vec![open, ask, send, expect, Statement::Disconnect { link: 0, how: CloseMode::Fin }]
    };
    let kinds = [StepKind::Connect, StepKind::Request, StepKind::Send, StepKind::Expect];
    for (seed, (failing, begin)) in answers
        .iter()
        .flat_map(|then| retries.map(|retry| Failing { retry, then: *then }))
        .flat_map(|failing| [0, 1].map(|begin| (failing, begin)))
        .enumerate()
    {
        let seed = seed as u64;
        let drive = Drive::Users(Users { to: 20, coming: Coming::AtOnce });
        let mut code = verbs(failing);
        if begin == 1 {
            code.pop();
        }
        let program =
            program(Scheme::Ws, vec![session(code, begin)], &kinds, phase(drive, Some(S)));
        let play = Play::new(program, seed);
        let outcome = play.run(|world| world.refuse(0.1).clog(0.1), chat_server(1));
        outcome.is_sound(seed);
        let total = outcome.sum.total();
        let stops = failing.then == OnError::Stop;
        assert!(total.ok > 0 || stops, "seed {seed}: {failing:?}");
        assert!(total.count > total.ok, "seed {seed}: {failing:?}");
        assert_eq!(outcome.stopped.is_some(), stops, "seed {seed}");
    }
}
