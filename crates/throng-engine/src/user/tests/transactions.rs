//! All endings of transactions: what is counted, and with which durations.

use super::*;
use throng_program::OnError;

const KINDS: &[StepKind] =
    &[StepKind::Http, StepKind::Http, StepKind::Transaction, StepKind::Transaction];

fn play(code: Block, phase: Phase, server: Server) -> Outcome {
    let outcome =
        run(program(Scheme::Http, vec![session(code, 0)], KINDS, phase), 1, |world| world, server);
    outcome.is_sound(1);
    outcome
}

fn plain(index: u16) -> Statement {
    step(index, Failing::default())
}

fn failing(then: OnError) -> Failing {
    Failing { retry: None, then }
}

fn sorry_server() -> Server {
    http_server(|_| vec![(MS, say(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))])
}

#[test]
fn a_transaction_is_timed_with_and_without_its_pauses() {
    let inner = transaction(3, vec![plain(1), pause(50 * MS)]);
    let outer = transaction(2, vec![plain(0), pause(100 * MS), inner]);
    let outcome = play(vec![outer], iterations(1, 20), ok_server());
    let (outer, inner) = (outcome.step(2), outcome.step(3));
    assert_eq!((outer.count, outer.ok, inner.count, inner.ok), (20, 20, 20, 20));
    for (step, requests, pauses) in [(&outer, 2, 150), (&inner, 1, 50)] {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let (work, whole) = (ms(step.latency.min()), ms(step.with_pauses.min()));
        let requests = f64::from(requests);
        assert!((requests..requests * 1.4).contains(&work), "{work}");
        assert!((whole - work - f64::from(pauses)).abs() < 0.3, "{whole} {work}");
    }
    let steps: u64 = (0..2).map(|index| outcome.step(index).count).sum();
    assert_eq!(steps, 40);
    assert!(outcome.step(0).with_pauses.is_empty());
}

#[test]
fn a_failed_step_fails_its_transactions() {
    let code = vec![transaction(2, vec![transaction(3, vec![plain(0)]), plain(1)])];
    let outcome = play(code, iterations(1, 5), sorry_server());
    for index in [2, 3] {
        assert_eq!(outcome.ended(index), (0, vec![(Cause::StatusUnexpected, 5)]));
        assert_eq!(outcome.step(index).latency.count(), 5, "it ran through");
    }
    let details: Vec<String> = outcome
        .examples
        .iter()
        .filter(|example| example.step.0 >= 2)
        .map(|example| example.detail.english())
        .collect();
    assert_eq!(details, ["in step `http`", "in step `http`"]);
}

#[test]
fn a_retried_step_is_not_a_failure_and_its_waits_are_pauses() {
    let asked = Cell::new(0);
    let server = http_server(move |_| {
        asked.set(asked.get() + 1);
        let good: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let bad: &[u8] = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";
        vec![(MS, say(if asked.get() % 3 == 0 { good } else { bad }))]
    });
    let retry = throng_program::Retry {
        on: throng_program::RetryOn::Any,
        times: Some(9),
        low: 100 * MS,
        high: 100 * MS,
    };
    let again = Failing { retry: Some(retry), then: OnError::Leave };
    let outcome = play(vec![transaction(2, vec![step(0, again)])], iterations(1, 10), server);
    assert_eq!(outcome.ended(0), (10, vec![]));
    let step = outcome.step(0);
    assert_eq!((step.begun, &*step.retried), (10, &[(Cause::StatusUnexpected, 20)][..]));
    assert_eq!((step.given_up, &*step.codes), (0, &[(500, 20), (200, 10)][..]));
    assert_eq!(outcome.ended(2), (10, vec![]));
    let transaction = outcome.step(2);
    assert!(transaction.latency.max() < 5_000_000, "{}", transaction.latency.max());
    assert!(transaction.with_pauses.min() > 100_000_000);
}

#[test]
fn leaving_early_ends_the_open_transactions() {
    for then in [OnError::Next, OnError::Leave, OnError::Stop] {
        let inner = transaction(3, vec![step(0, failing(then)), plain(1)]);
        let outcome = play(vec![transaction(2, vec![inner])], iterations(3, 12), sorry_server());
        let (ok, errors) = outcome.ended(2);
        assert_eq!((ok, &errors), (0, &outcome.step(0).errors), "{then:?}");
        assert_eq!(errors, outcome.step(3).errors, "{then:?}");
        assert_eq!(outcome.step(1).count, 0);
        assert!(outcome.step(2).latency.is_empty(), "it did not run through");
        let failures = if then == OnError::Next { 12 } else { 3 };
        assert_eq!(errors[0].1, failures, "{then:?}");
        assert_eq!(outcome.sum.population.interrupted, 0);
    }
}

#[test]
fn a_transaction_that_is_left_on_purpose_succeeds() {
    let code = vec![transaction(2, vec![plain(0), Statement::Next])];
    let outcome = play(code, iterations(1, 4), ok_server());
    assert_eq!(outcome.ended(2), (4, vec![]));
    let code = vec![transaction(2, vec![plain(0), Statement::Leave])];
    let outcome = play(code, iterations(3, 40), ok_server());
    assert_eq!(outcome.ended(2), (3, vec![]));
}

#[test]
fn a_transaction_is_finished_although_the_run_ends() {
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    // The last pause is over within the graceful stop.
    let inner = || transaction(3, vec![pause(3 * S)]);
    let code = || vec![transaction(2, vec![plain(0), inner()])];
    let outcome = play(code(), phase(drive.clone(), Some(2 * S)), ok_server());
    assert_eq!((outcome.ended(2), outcome.ended(3)), ((10, vec![]), (10, vec![])));
    let outcome = play(code(), phase(drive, Some(2 * S)), sorry_server());
    assert_eq!(outcome.ended(2), (0, vec![(Cause::StatusUnexpected, 10)]));
    assert_eq!(outcome.ended(3), (10, vec![]));
    assert_eq!(outcome.sum.population.interrupted, 0);
}

#[test]
fn the_end_of_the_graceful_stop_cuts_off_transactions() {
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let inner = || transaction(3, vec![pause(20 * S)]);
    let code = || vec![transaction(2, vec![plain(0), inner()])];
    let outcome = play(code(), phase(drive.clone(), Some(2 * S)), ok_server());
    assert_eq!((outcome.step(2).count, outcome.step(3).count), (0, 0));
    // What had failed by then has failed.
    let outcome = play(code(), phase(drive, Some(2 * S)), sorry_server());
    assert_eq!(outcome.ended(2), (0, vec![(Cause::StatusUnexpected, 10)]));
    assert_eq!(outcome.step(3).count, 0);
}

#[test]
fn a_lost_connection_fails_the_open_transactions() {
    let code = vec![connect(), transaction(2, vec![ask("hello", Until::Any), pause(20 * MS)])];
    let kinds = [StepKind::Connect, StepKind::Request, StepKind::Transaction];
    for seed in 1..6 {
        let drive = Drive::Users(Users { to: 100, coming: Coming::AtOnce });
        let program =
            program(Scheme::Ws, vec![session(code.clone(), 1)], &kinds, phase(drive, Some(3 * S)));
        let outcome = run(program, seed, |world| world.clog(0.1), chat_server(1));
        outcome.is_sound(seed);
        let (request, transaction) = (outcome.step(1), outcome.step(2));
        assert!(transaction.ok > 1000, "{}", transaction.ok);
        // A pause at the end may hide a loss from this transaction; the next one gets it then.
        assert_eq!(request.failed(), transaction.failed(), "seed {seed}");
        assert!(transaction.count <= request.count, "seed {seed}");
    }
}

#[test]
fn the_counts_of_leaving_users_are_consistent_in_every_second() {
    // Users start, are in the middle of transactions in loops, and leave one by one.
    let inner = transaction(3, vec![step(1, failing(OnError::Next))]);
    let steps = vec![transaction(2, vec![plain(0), pause(30 * MS), inner])];
    let code = vec![Statement::Repeat { low: 1, high: 4, steps }];
    for seed in 1..5 {
        let mut program = program(
            Scheme::Http,
            vec![session(code.clone(), 0)],
            KINDS,
            phase(Drive::Users(Users { to: 200, coming: Coming::Rate(400.0) }), Some(S)),
        );
        let ramp = Drive::Users(Users { to: 0, coming: Coming::Rate(300.0) });
        program.loads[0].phases.push(phase(ramp, None));
        let server = http_server(|random| match random.below(20) {
            0 => vec![(MS, Deed::Reset)],
            1 => vec![(MS, say(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))],
            _ => vec![(MS, say(HELLO))],
        });
        let outcome = run(program, seed, |world| world.refuse(0.05).clog(0.1), server);
        outcome.is_sound(seed);
        let (outer, inner) = (outcome.step(2), outcome.step(3));
        assert!(outer.ok > 1000 && inner.ok > 1000 && outer.failed() > 0 && inner.failed() > 0);
        assert!(inner.failed() <= outer.failed(), "seed {seed}");
    }
}
