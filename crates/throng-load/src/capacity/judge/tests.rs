//! Tests when holds are given up, and when waits end.

use super::*;
use crate::capacity::hold::{Share, Why};

const THRESHOLD: &str = "http p99 < 50ms";

fn goals() -> Goals {
    let text = THRESHOLD.into();
    Goals { shares: vec![Share { text, allowed: 0.01, within_s: Some(0.05) }], plain: Vec::new() }
}

/// A second at 1,000/s.
fn second(failed: u64, bad: u64, unanswered: u64) -> Second {
    let (good, p50_s) = (1000 - failed, Some(0.002));
    let counted = vec![Tally { attempts: 1000.0, bad: bad as f64 }];
    Second { begun: 1000, ended: 1000, good, counted, unanswered, response_s: 2.0, p50_s }
}

/// The number of seconds, including the settle time, and the reason.
fn gives_up(purpose: Purpose, second: &Second) -> Option<(usize, FailedBy)> {
    let why = Why::Between;
    let hold = Hold { load: 1000.0, settle_s: 2, seconds: 20, purpose, why };
    let mut judge = Judge::new(&goals(), hold, 0.002);
    (1..=22).find_map(|passed| Some((passed, judge.second(second)?)))
}

#[test]
fn a_hold_is_given_up_when_its_verdict_is_certain() {
    let check = |second: &Second, is: Option<(usize, FailedBy)>| {
        assert_eq!(gives_up(Purpose::Bracket, second), is, "{second:?}");
    };
    check(&second(0, 10, 5), None);
    // At twice the allowed share, the whole hold is useful to locate the border.
    check(&second(0, 20, 5), None);
    // 200 bad attempts are allowed in 20 s.
    check(&second(0, 300, 5), Some((5, FailedBy::Threshold(THRESHOLD.into()))));
    check(&second(600, 0, 5), Some((3, FailedBy::Failing)));
    check(&second(0, 0, 2100), Some((1, FailedBy::Backlog)));
    let silent = Second {
        ended: 0,
        good: 0,
        counted: vec![Tally::default()],
        p50_s: None,
        ..second(0, 0, 900)
    };
    check(&silent, Some((5, FailedBy::Silence)));
}

#[test]
fn an_overload_and_a_refinement_last_longer() {
    assert_eq!(gives_up(Purpose::Beyond, &second(600, 900, 5)), None);
    let late = gives_up(Purpose::Refine, &second(0, 300, 5));
    assert_eq!(late, Some((11, FailedBy::Threshold(THRESHOLD.into()))));
}

#[test]
fn a_wait_ends_when_the_service_has_recovered() {
    let watch = |until: Until| Watch::new(&goals(), Wait { load: 500.0, seconds_max: 60, until });
    let mut drained = watch(Until::Drained { p50_s: Some(0.002) });
    assert!(!drained.second(&second(0, 0, 500), None), "a backlog");
    assert!(!drained.second(&Second { p50_s: Some(0.003), ..second(0, 0, 2) }, None), "slow");
    assert!(drained.second(&second(0, 0, 2), None));
    let mut fast = watch(Until::Drained { p50_s: Some(40e-6) });
    let second_of = |p50_s| Second { p50_s: Some(p50_s), ..second(0, 0, 2) };
    assert!(!fast.second(&second_of(300e-6), None), "slow");
    assert!(fast.second(&second_of(110e-6), None), "as noise is");
    let mut met = watch(Until::Met);
    let seconds = [10, 11, 9, 9, 9].map(|bad| met.second(&second(0, bad, 2), None));
    assert_eq!(seconds, [false, false, false, false, true]);
    let mut back = watch(Until::Back { cut: 0.1 });
    let seconds = [0.9, 0.99, 1.0].map(|online| back.second(&second(0, 0, 2), Some(online)));
    assert_eq!(seconds, [false, false, true]);
}

/// A step with a tenth of the attempts: in 20 s, 20 of its 2,000 may be bad.
#[test]
fn a_threshold_on_one_step_counts_only_that_step() {
    let one_step =
        |bad| Second { counted: vec![Tally { attempts: 100.0, bad }], ..second(0, 0, 5) };
    assert_eq!(gives_up(Purpose::Bracket, &one_step(2.0)), None);
    let by = FailedBy::Threshold(THRESHOLD.into());
    assert_eq!(gives_up(Purpose::Bracket, &one_step(30.0)), Some((5, by)));
    let strain = goals().strain(&one_step(2.0).counted);
    assert_eq!(strain, Some((0, 2.0)));
}
