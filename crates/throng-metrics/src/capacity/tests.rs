//! Tests the sentence, the exit code and the number of machines for each way a search can end.

use expect_test::expect;
use throng_base::{Exit, Language};

use super::sample::{THRESHOLD, capacity};
use super::*;

fn by_threshold() -> FailedBy {
    FailedBy::Threshold(THRESHOLD.into())
}

/// A search that ended without an interval.
fn without_promise(basis: Basis, ended_by: EndedBy) -> Capacity {
    let high = Some(912.0).filter(|_| basis == Basis::Bracket);
    let fails_by = high.map(|_| by_threshold());
    let (low, fails_at, overload) = (Some(854.0), high, Overload::default());
    let found = Capacity { carries: None, low, high, fails_at, fails_by, ..capacity() };
    Capacity { overload, ..found }.but(basis, ended_by)
}

impl Capacity {
    fn but(self, basis: Basis, ended_by: EndedBy) -> Capacity {
        Capacity { basis, ended_by, ..self }
    }
}

/// The lowest load failed.
fn nothing() -> Capacity {
    let mut found = without_promise(Basis::Nothing, EndedBy::BaseFails(FailedBy::Failing));
    (found.low, found.fails_at) = (None, Some(50.0));
    found.levels.clear();
    found
}

/// Sentences, one line per part.
fn parts(sentences: &[String]) -> String {
    let line = |text: &String| text.replace("; ", ";\n  ").replace('；', "；\n  ") + "\n";
    sentences.iter().map(line).collect()
}

#[test]
fn the_answer_is_one_sentence() {
    let found = capacity();
    expect![[r#"
        carries 860/s (95 %: 864 to 905): http p99 < 50ms, errors < 0.1%;
          confirmed over 60 s;
          fails at 912/s (http p99);
          back to normal 4 s after an overload of 1,190/s
    "#]]
    .assert_eq(&parts(&[found.sentence().english()]));
    expect![[r#"
        可承载 860/s（95 %：864 至 905）：http p99 < 50ms，errors < 0.1%；
          确认时长 60 秒；
          912/s 时未达标，原因：http p99；
          1,190/s 之后恢复正常，用时 4 秒
    "#]]
    .assert_eq(&parts(&[found.sentence().render(Language::Chinese)]));
}

#[test]
fn no_promise_is_made_without_one() {
    let generator = || EndedBy::Generator(GeneratorLimit::Cpu);
    let first = capacity().levels[0].clone();
    let bound = Level { verdict: LevelVerdict::GeneratorBound(GeneratorLimit::Cpu), ..first };
    let found = [
        without_promise(Basis::Bracket, EndedBy::Budget),
        without_promise(Basis::Bracket, EndedBy::Asked),
        without_promise(Basis::AtLeast, generator()),
        without_promise(Basis::AtLeast, EndedBy::Max),
        Capacity { carries: None, ..capacity().but(Basis::Interval, EndedBy::NotConfirmed) },
        without_promise(Basis::Bracket, EndedBy::NotRecovered),
        nothing(),
        Capacity { ended_by: EndedBy::Budget, ..nothing() },
        Capacity { ended_by: generator(), levels: vec![bound], fails_at: None, ..nothing() },
    ];
    let text: Vec<String> = found
        .iter()
        .map(|found| Capacity { thresholds: Vec::new(), ..found.clone() }.sentence().english())
        .collect();
    assert!(text.iter().all(|text| !text.contains("carries") && !text.contains("confirmed over")));
    expect![[r#"
        not confirmed: thresholds met at 854/s;
          fails at 912/s (http p99);
          the search ended because its budget of 20m was used up: raise `--budget` for a more precise result
        not confirmed: thresholds met at 854/s;
          fails at 912/s (http p99);
          the run ended before the search was complete
        not confirmed: at least 854/s, the highest load tried;
          the generator reached its limit there: CPU
        not confirmed: at least 854/s, the highest load tried;
          this is the highest allowed load
        not confirmed: the capacity is between 864/s and 905/s (95 %);
          fails at 912/s (http p99);
          back to normal 4 s after an overload of 1,190/s;
          no load near the lower end of the interval met the thresholds for the required time
        not confirmed: thresholds met at 854/s;
          fails at 912/s (http p99);
          did not recover after 912/s, even at a fraction of the load
        fails at the lowest load, 50/s (failures in more than half of the attempts)
        not confirmed: thresholds not met at any load, from 50/s upward;
          fails at 50/s;
          the search ended because its budget of 20m was used up: raise `--budget` for a more precise result
        no result: no load could be judged, from 50/s upward;
          the generator reached its limit and ended the search: CPU
    "#]]
    .assert_eq(&parts(&text));
}

#[test]
fn a_promise_states_how_it_ended() {
    let at = 1_190.0;
    let overload = Overload { at: Some(at), ..Overload::default() };
    let collapsed = |recovers_at, stays| Overload {
        collapse: Some(Collapse { at, served: 310.0, recovers_at, stays }),
        ..overload
    };
    let over = Capacity { overload, thresholds: Vec::new(), ..capacity() };
    let found = [
        over.clone().but(Basis::AtLeast, EndedBy::Max),
        over.clone().but(Basis::AtLeast, EndedBy::Generator(GeneratorLimit::Ports)),
        over.clone().but(Basis::Bracket, EndedBy::Found),
        Capacity { overload: collapsed(None, true), ..over.clone() }
            .but(Basis::Interval, EndedBy::NotRecovered),
        Capacity { overload: collapsed(Some(500.0), false), ..over.clone() }
            .but(Basis::Interval, EndedBy::CollapsedAgain),
        Capacity { trend: Some(-0.0104), ..over.clone() },
        Capacity { unit: LoadUnit::Users, ..over },
    ];
    let text: Vec<String> = found.iter().map(|found| found.sentence().english()).collect();
    expect![[r#"
        carries at least 860/s;
          confirmed over 60 s;
          fails at 912/s (http p99);
          recovery from an overload of 1,190/s was not observed;
          this is the highest allowed load
        carries at least 860/s;
          confirmed over 60 s;
          fails at 912/s (http p99);
          recovery from an overload of 1,190/s was not observed;
          the generator reached its limit there: source ports
        carries 860/s (met at 864/s, not met at 905/s);
          confirmed over 60 s;
          fails at 912/s (http p99);
          recovery from an overload of 1,190/s was not observed
        carries 860/s (95 %: 864 to 905);
          confirmed over 60 s;
          fails at 912/s (http p99);
          collapses at 1,190/s: throughput falls to 310/s;
          did not recover after 1,190/s, even at a fraction of the load
        carries 860/s (95 %: 864 to 905);
          confirmed over 60 s;
          fails at 912/s (http p99);
          collapses at 1,190/s: throughput falls to 310/s and recovers only at 500/s;
          the search ended when the service collapsed again
        carries 860/s (95 %: 864 to 905);
          confirmed over 60 s;
          fails at 912/s (http p99);
          recovery from an overload of 1,190/s was not observed;
          the capacity fell by 1.0 % per minute during the search
        carries 860 users (95 %: 864 to 905);
          confirmed over 60 s;
          fails at 912 users (http p99);
          recovery from an overload of 1,190 users was not observed
    "#]]
    .assert_eq(&parts(&text));
}

#[test]
fn a_required_load_is_compared_with_the_interval() {
    let of = |found: &Capacity, wanted: f64| {
        Capacity { at_least: Some(wanted), ..found.clone() }.judge().0
    };
    let found = capacity();
    let (met, not_met, unclear) = (Exit::Success, Exit::ThresholdsNotMet, Exit::ResultInvalid);
    assert_eq!(
        [800.0, 864.0, 880.0, 905.0].map(|load| of(&found, load)),
        [met, met, unclear, unclear]
    );
    assert_eq!(of(&found, 906.0), not_met);
    let bracket = without_promise(Basis::Bracket, EndedBy::Budget);
    assert_eq!([800.0, 2_000.0].map(|load| of(&bracket, load)), [unclear; 2]);
    let bound = without_promise(Basis::AtLeast, EndedBy::Generator(GeneratorLimit::Cpu));
    assert_eq!([800.0, 900.0].map(|load| of(&bound, load)), [met, unclear]);
    assert_eq!([49.0, 50.0].map(|load| of(&nothing(), load)), [unclear, not_met]);
    let unsure = Capacity { carries: None, ..found.but(Basis::Interval, EndedBy::NotConfirmed) };
    assert_eq!([800.0, 906.0].map(|load| of(&unsure, load)), [unclear, not_met]);
}

#[test]
fn a_search_with_a_result_succeeds() {
    let (met, not_met, unclear) = (Exit::Success, Exit::ThresholdsNotMet, Exit::ResultInvalid);
    let without = |ended_by| without_promise(Basis::Bracket, ended_by).judge().0;
    assert_eq!(capacity().judge(), (met, Vec::new()));
    assert_eq!(capacity().but(Basis::Interval, EndedBy::Budget).judge().0, met);
    assert_eq!(capacity().but(Basis::Interval, EndedBy::NotRecovered).judge().0, met);
    assert_eq!(without_promise(Basis::AtLeast, EndedBy::Max).judge().0, met);
    assert_eq!(nothing().judge().0, not_met);
    assert_eq!(without(EndedBy::NotRecovered), not_met);
    let others = [EndedBy::Budget, EndedBy::Asked, EndedBy::NotConfirmed];
    assert_eq!(others.map(without), [unclear; 3]);
    let bound = without_promise(Basis::AtLeast, EndedBy::Generator(GeneratorLimit::Cpu));
    assert_eq!(bound.judge().0, unclear);
}

#[test]
fn the_number_of_machines_has_the_range_of_the_interval() {
    let of = |found: Capacity| {
        let found = Capacity { peak: Some(20_000.0), ..found };
        found.machines_text().unwrap_or_default().english()
    };
    // 20,000 / (0.7 × 860) = 33.2; with 905, it is 31.6.
    expect!["machines for a peak of 20,000/s: 34 (32 to 34), each at 70 % of its capacity"]
        .assert_eq(&of(capacity()));
    expect!["machines for a peak of 20,000/s: at most 34, each at 70 % of its capacity"]
        .assert_eq(&of(capacity().but(Basis::AtLeast, EndedBy::Max)));
    expect!["machines for a peak of 20,000/s: unknown, because no capacity was confirmed"]
        .assert_eq(&of(without_promise(Basis::Bracket, EndedBy::Budget)));
    assert_eq!(capacity().machines_text(), None);
}
