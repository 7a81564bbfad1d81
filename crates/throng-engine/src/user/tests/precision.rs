//! Shared wake-ups in simulated time: what is due waits for the end of the window, what arrives is
//! read then, and only the lateness shows that.

use throng_program::Slow;

use super::*;

const US: Duration = Duration::from_micros(1);
/// The one-way delay is 20 to 100 µs in these worlds, and the server takes this long.
const SERVED: Duration = Duration::from_millis(3);

fn play(code: Block, drive: Drive, precision: Duration) -> Outcome {
    let kinds = &[StepKind::Http, StepKind::Http];
    let mut program =
        program(Scheme::Http, vec![session(code, 0)], kinds, phase(drive, Some(2 * S)));
    program.precision = precision;
    let outcome = run(program, 7, |world| world, http_server(|_| vec![(SERVED, say(HELLO))]));
    outcome.is_sound(7);
    assert_eq!(outcome.sum.total().errors, []);
    outcome
}

/// Every response time is the one of the simulated network.
fn is_true(outcome: &Outcome, connects: bool) {
    let times = &outcome.step(0).latency;
    let opening = if connects { 100 * US } else { Duration::ZERO };
    let (low, high) = (SERVED + 40 * US, SERVED + 200 * US + opening);
    assert!(u128::from(times.min()) >= low.as_nanos(), "{}", times.min());
    assert!(u128::from(times.max()) <= high.as_nanos(), "{}", times.max());
}

fn at_rate(rate: f64, users: u64) -> Drive {
    Drive::Iterations(Iterations::new(users, Some(rate), None))
}

#[test]
fn response_times_do_not_depend_on_wake_up_windows() {
    for precision in [Duration::ZERO, 250 * US, MS, 5 * MS] {
        let outcome = play(vec![get(Vec::new())], at_rate(20_000.0, 300), precision);
        is_true(&outcome, true);
        let (sum, total) = (&outcome.sum, outcome.sum.total());
        assert!((39_900..=40_001).contains(&total.begun), "{}", total.begun);
        assert!(u128::from(sum.generator.lateness.max()) <= precision.as_nanos(), "{precision:?}");
        // All that are due in a window start together.
        assert_eq!(sum.generator.together.begun, total.begun);
        let mean = sum.generator.together.mean().unwrap();
        let most = (20_000.0 * precision.as_secs_f64()).max(1.0);
        assert!(mean <= most * 1.05 && mean >= most * 0.5, "{precision:?}: {mean} of {most}");
        assert!(
            sum.generator.together.max as f64 <= most + 2.0,
            "{precision:?}: {:?}",
            sum.generator.together
        );
    }
}

#[test]
fn thinking_users_share_wake_ups_too() {
    let think = Statement::Think(Pause::Uniform { low: 5 * MS, high: 15 * MS });
    let users = Drive::Users(Users { to: 500, coming: Coming::AtOnce });
    let plain = play(vec![get(Vec::new()), think.clone()], users.clone(), Duration::ZERO);
    // If nothing starts at a rate, windows are four times as long.
    let shared = play(vec![get(Vec::new()), think], users, 250 * US);
    is_true(&plain, true);
    is_true(&shared, true);
    // A pause ends up to a window later, half of one on average.
    let (few, many) = (shared.step(0).ok as f64, plain.step(0).ok as f64);
    assert!(few < many && few > many * 0.95, "{few} of {many}");
    assert!(
        shared.sum.generator.lateness.max() <= 1_000_000,
        "{}",
        shared.sum.generator.lateness.max()
    );
    assert!(
        shared.sum.generator.together.mean() > Some(10.0),
        "{:?}",
        shared.sum.generator.together
    );
}

#[test]
fn a_user_that_continues_without_pause_is_not_delayed() {
    let users = Drive::Users(Users { to: 50, coming: Coming::AtOnce });
    let twice = vec![get(Vec::new()), get(Vec::new())];
    for (code, drive) in [
        // A closed model, and a load whose starts wait for a free user.
        (vec![get(Vec::new())], users),
        (vec![get(Vec::new())], at_rate(20_000.0, 50)),
        (twice, at_rate(20_000.0, 50)),
    ] {
        let plain = play(code.clone(), drive.clone(), Duration::ZERO);
        let shared = play(code, drive, 5 * MS);
        let (with, without) = (shared.step(0).ok as f64, plain.step(0).ok as f64);
        assert!((with / without - 1.0).abs() < 0.01, "{with} of {without}");
    }
}

/// A user that is not free in time starts late. Whatever it does first, the response time includes
/// that: otherwise a pause would hide it (coordinated omission).
#[test]
fn a_pause_does_not_hide_that_its_iteration_started_late() {
    let served = |code: Block| {
        let sessions = vec![session(code, 0)];
        let phase = phase(at_rate(100.0, 1), Some(2 * S));
        let kinds = &[StepKind::Http, StepKind::Stay];
        let mut program = program(Scheme::Http, sessions, kinds, phase);
        program.graceful_stop = S;
        let server = http_server(|_| vec![(20 * MS, say(HELLO))]);
        let outcome = run(program, 3, |world| world, server);
        outcome.is_sound(3);
        outcome.step(0).latency.value_at(0.5) / 1_000_000
    };
    let plain = served(vec![get(Vec::new())]);
    assert!(plain > 100, "{plain} ms");
    let staying_for = |time: Duration| {
        let mut staying = stay(1, None);
        if let Statement::Stay(stay) = &mut staying {
            Arc::make_mut(stay).time = Some(time);
        }
        staying
    };
    for first in [
        vec![pause(MS), get(Vec::new())],
        vec![pause(MS), pause(MS), get(Vec::new())],
        vec![staying_for(MS), get(Vec::new())],
        vec![pause(Duration::ZERO), get(Vec::new())],
        vec![staying_for(Duration::ZERO), get(Vec::new())],
        vec![Statement::Disconnect { link: 0, how: Parting::Fin }, get(Vec::new())],
        vec![Statement::Slow { link: 0, slow: Slow::default() }, get(Vec::new())],
        vec![Statement::Parallel(vec![vec![get(Vec::new())]])],
    ] {
        let text = format!("{first:?}");
        let late = served(first);
        assert!(late.abs_diff(plain) <= plain / 10, "{late} ms, {plain} ms without: {text}");
    }
}

#[test]
fn few_events_wake_the_shard_immediately() {
    let outcome = play(vec![get(Vec::new())], at_rate(100.0, 10), 5 * MS);
    is_true(&outcome, true);
    assert_eq!((outcome.sum.generator.lateness.max(), outcome.sum.generator.together.max), (0, 1));
}

#[test]
fn a_stopped_run_does_not_wait_for_the_window() {
    let sessions = vec![session(vec![get(Vec::new())], 0)];
    let drive = at_rate(50_000.0, 500);
    let mut program = program(Scheme::Http, sessions, &[StepKind::Http], phase(drive, Some(S)));
    program.precision = 5 * MS;
    let server = http_server(|_| vec![(SERVED, say(HELLO))]);
    let stop_at = Some(Time(300_000_000));
    let outcome = run_with(program, 3, |world| world, server, &Control::default(), stop_at);
    outcome.is_sound(3);
    assert!(outcome.end <= Time(320_000_000), "{}", outcome.end);
}

#[test]
fn the_kernel_timestamps_data_that_may_be_read_late() {
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let users = || Drive::Users(Users { to: 50, coming: Coming::AtOnce });
    let stamps = |code: Block, drive: Drive| {
        let kinds = &[StepKind::Http, StepKind::Stay];
        let program = program(Scheme::Http, vec![session(code, 0)], kinds, phase(drive, None));
        Prepared::new(Arc::new(program), &[vec![address]]).stamps()
    };
    let set = || Statement::Set { slot: 0, value: Arc::new(Text::literal("x")) };
    let think = Statement::Think(Pause::Uniform { low: MS, high: MS });
    assert!(!stamps(vec![set(), get(Vec::new()), get(Vec::new())], users()));
    assert!(stamps(vec![get(Vec::new())], at_rate(1.0, 1)));
    assert!(stamps(vec![get(Vec::new()), think], users()));
    assert!(stamps(vec![get(Vec::new()), stay(1, None)], users()));
}
