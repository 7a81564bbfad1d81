//! Tests the state machine with deterministic services: phases, ends, limits.

use super::*;
use crate::capacity::hold::{Ended, Second, Tally};
use throng_metrics::capacity::{FailedBy, GeneratorLimit};

use crate::capacity::hold::{Percentiles, Share};

const WITHIN_S: f64 = 0.05;
const SHARE: &str = "http p99 < 50ms";
const PLAIN: &str = "deliveries lost = 0";

fn by(threshold: &str) -> FailedBy {
    FailedBy::Threshold(threshold.into())
}

fn slow() -> Share {
    Share { text: SHARE.into(), allowed: 0.01, within_s: Some(WITHIN_S) }
}

fn settings(base: f64) -> Settings {
    Settings {
        goals: Goals { shares: vec![slow()], plain: vec![PLAIN.into()] },
        unit: LoadUnit::PerS,
        base,
        max: None,
        budget_s: 1200.0,
        confirm_s: 60,
        overload: false,
        seed: 1,
    }
}

/// Seconds of a deterministic service: this share of attempts is bad, and all have responses.
fn seconds(hold: &Hold, share: f64) -> Vec<Second> {
    let begun = hold.load.round() as u64;
    let second = Second {
        begun,
        ended: begun,
        good: begun,
        counted: vec![Tally { attempts: begun as f64, bad: (begun as f64 * share).round() }],
        unanswered: (hold.load * 0.002) as u64,
        response_s: begun as f64 * 0.002,
        p50_s: Some(0.002),
    };
    vec![second; hold.seconds as usize]
}

fn held(hold: &Hold, share: f64) -> Held {
    let percentiles = Some(Percentiles { p50_s: 0.002, p90_s: 0.004, p99_s: 0.008 });
    let (settled_s, seconds) = (f64::from(hold.settle_s), seconds(hold, share));
    Held { settled_s, seconds, ended: Ended::Full, unmet: None, percentiles, online: None }
}

/// Runs the search to its end; drains take 3 s. `hold` returns the result of a hold.
fn run(search: &mut Search, mut hold: impl FnMut(&Hold) -> Held) -> Vec<f64> {
    let mut loads = Vec::new();
    loop {
        match search.order() {
            Order::Hold(order) => {
                loads.push(order.load);
                let held = hold(&order);
                search.handle(Outcome::Held(held));
            }
            Order::Wait(_) => {
                search.handle(Outcome::Waited(Waited {
                    delayed_s: 0.0,
                    seconds: 3.0,
                    reached: true,
                }));
            }
            Order::Finish => return loads,
        }
    }
}

/// The share of bad attempts of a service whose strain grows with the 40th power of the load above
/// 1,000.
fn steep(load: f64) -> f64 {
    (0.01 * (load / 1000.0).powi(40)).min(1.0)
}

#[test]
fn a_steep_border_is_found_and_confirmed() {
    let mut search = Search::new(settings(50.0));
    let loads = run(&mut search, |hold| held(hold, steep(hold.load)));
    let answer = search.answer();
    assert_eq!(&loads[..5], [50.0, 100.0, 200.0, 400.0, 800.0]);
    assert_eq!((answer.ended_by, answer.basis), (EndedBy::Found, Basis::Interval));
    let (low, high) = answer.low.zip(answer.high).expect("an interval");
    assert!(low < 1000.0 && high > 1000.0 && high / low < 1.05, "{low} to {high}");
    assert!(answer.carries.is_some_and(|carries| (960.0..=1000.0).contains(&carries)));
    assert_eq!((answer.confirmed_s, answer.fails_by), (60.0, Some(by(SHARE))));
    assert!(answer.fails_at.is_some_and(|fails| fails > 1000.0 && fails < 1060.0));
}

#[test]
fn a_base_level_that_fails_ends_the_search() {
    let mut search = Search::new(settings(100.0));
    assert_eq!(run(&mut search, |hold| held(hold, 0.5)), [100.0]);
    let answer = search.answer();
    assert_eq!(answer.ended_by, EndedBy::BaseFails(by(SHARE)));
    assert_eq!((answer.basis, answer.carries), (Basis::Nothing, None));
}

#[test]
fn one_bad_attempt_among_few_does_not_fail_the_base_level() {
    let mut search = Search::new(Settings { max: Some(12.0), ..settings(9.0) });
    run(&mut search, |hold| {
        let mut held = held(hold, 0.0);
        held.seconds[0].counted[0].bad = f64::from(hold.purpose == Purpose::Climb);
        held
    });
    assert_eq!(search.answer().carries, Some(12.0));
}

#[test]
fn the_maximum_load_is_confirmed_and_not_exceeded() {
    let mut search = Search::new(Settings { max: Some(700.0), overload: true, ..settings(50.0) });
    let loads = run(&mut search, |hold| held(hold, steep(hold.load)));
    let answer = search.answer();
    assert!(loads.iter().all(|load| *load <= 700.0), "{loads:?}");
    assert_eq!((answer.ended_by, answer.basis), (EndedBy::Max, Basis::AtLeast));
    assert_eq!((answer.carries, answer.low, answer.high), (Some(700.0), Some(700.0), None));
}

#[test]
fn a_generator_limit_keeps_the_levels_that_passed() {
    let mut search = Search::new(settings(50.0));
    run(&mut search, |hold| {
        let bound = hold.load > 500.0;
        let ended = if bound { Ended::GeneratorBound(GeneratorLimit::Cpu) } else { Ended::Full };
        Held { ended, ..held(hold, 0.0) }
    });
    let answer = search.answer();
    assert_eq!(
        (answer.ended_by, answer.basis),
        (EndedBy::Generator(GeneratorLimit::Cpu), Basis::AtLeast)
    );
    assert_eq!((answer.low, answer.high, answer.carries), (Some(400.0), None, None));
}

#[test]
fn an_exhausted_budget_leaves_a_bracket_without_a_promise() {
    let mut search = Search::new(Settings { budget_s: 120.0, ..settings(50.0) });
    run(&mut search, |hold| held(hold, steep(hold.load)));
    let answer = search.answer();
    assert!(answer.low < Some(1000.0) && answer.high > Some(1000.0), "{answer:?}");
    assert_eq!((answer.ended_by, answer.basis), (EndedBy::Budget, Basis::Bracket));
    assert_eq!(answer.carries, None);
}

#[test]
fn thresholds_that_do_not_count_attempts_are_bracketed_closely() {
    let mut search = Search::new(settings(50.0));
    run(&mut search, |hold| {
        let unmet = (hold.load > 777.0).then_some(0);
        Held { unmet, ..held(hold, 0.0) }
    });
    let answer = search.answer();
    assert_eq!((answer.basis, answer.fails_by), (Basis::Bracket, Some(by(PLAIN))));
    let (low, high) = answer.low.zip(answer.high).expect("a bracket");
    assert!(low <= 777.0 && high > 777.0 && high / low <= 1.021, "{low} to {high}");
    assert_eq!(answer.carries, answer.low);
}

#[test]
fn a_user_can_skip_levels_and_end_the_search() {
    let mut search = Search::new(settings(50.0));
    let Order::Hold(first) = search.order() else { panic!("no hold") };
    search.handle(Outcome::Held(held(&first, 0.0)));
    let Order::Hold(second) = search.order() else { panic!("no hold") };
    let mut skipped = held(&second, 0.0);
    skipped.seconds.truncate(2);
    search.handle(Outcome::Held(Held { ended: Ended::Skipped, ..skipped }));
    let status = search.status();
    assert_eq!((status.passed, status.failed), (Some(50.0), Some(100.0)));
    search.end();
    assert_eq!(search.order(), Order::Finish);
    let answer = search.answer();
    assert_eq!((answer.ended_by, answer.carries), (EndedBy::Asked, None));
    assert_eq!((answer.low, answer.high), (Some(50.0), Some(100.0)));
}

#[test]
fn a_service_that_does_not_recover_gets_no_further_load() {
    let mut search = Search::new(settings(50.0));
    let mut waits = Vec::new();
    loop {
        match search.order() {
            Order::Hold(hold) => search.handle(Outcome::Held(held(&hold, steep(hold.load)))),
            Order::Wait(wait) => {
                waits.push(wait.load);
                search.handle(Outcome::Waited(Waited {
                    delayed_s: 0.0,
                    seconds: 60.0,
                    reached: false,
                }));
            }
            Order::Finish => break,
        }
    }
    assert_eq!(waits.len(), 4);
    assert!(waits.windows(2).all(|pair| pair[1] < pair[0]), "{waits:?}");
    let answer = search.answer();
    assert_eq!((answer.ended_by, answer.carries), (EndedBy::NotRecovered, None));
    assert!(answer.overload.collapse.is_some_and(|it| it.stays && it.recovers_at.is_none()));
}

#[test]
fn refused_users_give_the_number_that_stayed_online() {
    let goals = Goals { shares: vec![Share { within_s: None, ..slow() }], plain: Vec::new() };
    let users = Settings { goals, unit: LoadUnit::Users, overload: true, ..settings(1000.0) };
    let mut search = Search::new(users);
    let loads = run(&mut search, |hold| {
        let share = (1.0 - 20_000.0 / hold.load).max(0.0);
        let online = Some(hold.load.min(20_000.0) as u64);
        Held { online, ..held(hold, share) }
    });
    let most = loads.iter().copied().fold(0.0, f64::max);
    assert_eq!(loads.iter().filter(|load| **load == most).count(), 1, "{loads:?}");
    assert_eq!(loads.last(), Some(&20_000.0));
    let answer = search.answer();
    assert_eq!((answer.ended_by, answer.carries), (EndedBy::Found, Some(20_000.0)));
    assert!(answer.low >= Some(19_600.0) && answer.high <= Some(20_400.0));
    assert_eq!(answer.overload.recovered_s, Some(3.0));
}

/// Users that connect and stay: only the first level has throughput.
#[test]
fn users_without_requests_cause_no_collapse() {
    let mut search = Search::new(Settings { unit: LoadUnit::Users, ..settings(1000.0) });
    let mut is_first = true;
    run(&mut search, |hold| {
        let served = if std::mem::take(&mut is_first) { hold.load } else { 0.0 };
        let online = Some(hold.load.min(5_000.0) as u64);
        let one = Hold { load: served, ..*hold };
        Held { online, ..held(&one, 0.0) }
    });
    let answer = search.answer();
    assert_eq!((answer.carries, answer.fails_by), (Some(5_000.0), Some(FailedBy::Offline)));
    assert_eq!((answer.overload.collapse, answer.knee.collapse), (None, None));
}

/// A server that drops connections without an error that a threshold counts.
#[test]
fn users_that_are_not_online_fail_a_level() {
    let mut search = Search::new(Settings { unit: LoadUnit::Users, ..settings(1000.0) });
    run(&mut search, |hold| {
        let online = Some(hold.load.min(5_000.0) as u64);
        Held { online, ..held(hold, 0.0) }
    });
    let answer = search.answer();
    assert_eq!((answer.carries, answer.fails_by), (Some(5_000.0), Some(FailedBy::Offline)));
}

#[test]
fn slow_users_end_with_a_bracket_of_ten_percent() {
    let mut search = Search::new(Settings { unit: LoadUnit::Users, ..settings(1000.0) });
    let loads = run(&mut search, |hold| {
        let share = 0.01 * (hold.load / 7000.0).powi(8);
        Held { online: Some(hold.load as u64), ..held(hold, share.min(1.0)) }
    });
    assert!(loads.windows(2).all(|pair| pair[0] <= pair[1]), "only ever added: {loads:?}");
    let answer = search.answer();
    assert_eq!(answer.basis, Basis::Bracket);
    let (low, high) = answer.low.zip(answer.high).expect("a bracket");
    assert!(low <= 7000.0 && high > 7000.0 && high / low <= 1.101, "{low} to {high}");
    assert_eq!((answer.carries, answer.confirmed_s), (Some(low), 90.0));
}

/// `p99.9` at 10/s: a minute has 600 attempts, but a proof needs 4,603 without a bad one.
#[test]
fn a_rare_threshold_is_confirmed_for_longer() {
    let goals = Goals { shares: vec![Share { allowed: 0.001, ..slow() }], plain: Vec::new() };
    let mut search = Search::new(Settings { goals, max: Some(10.0), ..settings(9.0) });
    run(&mut search, |hold| held(hold, 0.0));
    let answer = search.answer();
    assert_eq!((answer.carries, answer.confirmed_s), (Some(10.0), 461.0));
}

#[test]
fn the_minimum_budget_is_known_in_advance() {
    let all = settings(50.0);
    assert_eq!((all.budget_min_s(), all.goals.attempts_min()), (170.0, 459.0));
    assert_eq!(Settings { unit: LoadUnit::Users, ..all }.budget_min_s(), 480.0);
}

#[test]
fn loads_are_round_numbers_and_promises_are_rounded_down() {
    let check = |load: f64, level: f64, promise: f64| {
        assert_eq!((round(load), rounded_down(load)), (level, promise), "{load}");
    };
    check(868.47, 868.0, 860.0);
    check(1096.0, 1096.0, 1080.0);
    check(243.19, 243.0, 240.0);
    check(50.0, 50.0, 50.0);
    check(9_999.9, 9_995.0, 9_900.0);
    check(0.512, 0.512, 0.51);
}
