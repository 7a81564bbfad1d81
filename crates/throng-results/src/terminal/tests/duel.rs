//! Tests the text of a duel.

use super::*;
use crate::tests::sample::duel::{duel, dueled};
use crate::verdict::exit_code;
use throng_base::Exit;

#[test]
fn a_duel_shows_both_sides_and_its_verdict() {
    let summary = dueled(duel());
    let text = summary_text(&summary, &Style::plain());
    for part in [
        "FAILED",
        "A is faster by 3.1 % (2.0 to 4.2)",
        "A  http://a",
        "B  http://b",
        "−3.0 %",
        "−4.0 % … −2.0 %",
        "worse",
        "target CPU/attempt",
        "triggered: rate < -2%",
        "ended after 12 pairs of slices: the confidence interval was within ±1 %",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(exit_code(&summary), Exit::ThresholdsNotMet);
}

#[test]
fn a_duel_without_a_difference_passes() {
    let mut same = duel();
    same.conditions.clear();
    same.figures.truncate(2);
    same.figures.remove(0);
    same.within = 0.02;
    let summary = dueled(same);
    let text = summary_text(&summary, &Style::plain());
    assert!(text.contains("DONE") && text.contains("no difference"), "{text}");
    assert_eq!(exit_code(&summary), Exit::Success);
}
