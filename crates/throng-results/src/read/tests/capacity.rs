//! Tests the recorded result of a search, and the verdict of its run.

use throng_base::Secrets;
use throng_metrics::Percentile;
use throng_metrics::capacity::{Capacity, EndedBy};

use crate::Event;
use crate::tests::sample::capacity::capacity;

#[test]
fn a_capacity_event_is_read_back() {
    let event = Event::Capacity { at_ns: 1, capacity: Box::new(capacity()) };
    let text = serde_json::to_string(&event).unwrap();
    assert!(
        text.starts_with(r#"{"event":"capacity","at_ns":1,"capacity":{"unit":"per_s""#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
}

#[test]
fn a_report_from_the_run_directory_contains_the_capacity() {
    let directory = tempfile::tempdir().unwrap();
    let mut before = crate::tests::sample::capacity::searched(capacity());
    let mut info = before.info.clone();
    info.time.ended = None;
    let mut recorder = crate::Recorder::create(directory.path(), &info, "").unwrap();
    for event in crate::tests::sample::events() {
        recorder.event(&event).unwrap();
    }
    let found = Event::Capacity { at_ns: 3, capacity: Box::new(capacity()) };
    recorder.event(&found).unwrap();
    for interval in crate::tests::sample::intervals() {
        recorder.interval(&interval).unwrap();
    }
    recorder.finish(&before.info).unwrap();
    let summary = crate::Run::open(directory.path()).unwrap().summary().unwrap();
    before.directory = Some(directory.path().into());
    assert_eq!(summary.capacity.as_deref(), Some(&capacity()));
    assert_eq!(crate::summary_json(&summary), crate::summary_json(&before));
}

#[test]
fn problems_within_levels_do_not_make_the_run_invalid() {
    use crate::verdict::{exit_code, stamp, validity};
    let mut summary = crate::tests::sample::capacity::searched(capacity());
    summary.generator.lateness.percentiles_ns[Percentile::P99 as usize] = 300_000_000;
    summary.users.population.unmet = summary.users.population.due();
    assert_eq!(validity(&summary), crate::Validity::Valid);
    let told = |summary: &crate::Summary| {
        let stamp = stamp(summary);
        let why = stamp.why.unwrap_or_default().english();
        format!("{} {} {why}", exit_code(summary).code(), stamp.word.english())
    };
    assert_eq!(told(&summary), "0 DONE carries 860/s");
    for (wanted, text) in [
        (800.0, "0 PASSED carries 860/s"),
        (880.0, "5 UNDECIDED unclear whether it carries 880/s"),
        (1_000.0, "1 FAILED carries less than 1,000/s"),
    ] {
        let found = Capacity { at_least: Some(wanted), ..capacity() };
        summary.capacity = Some(Box::new(found));
        assert_eq!(told(&summary), text);
    }
    summary.info.interrupted = true;
    assert!(told(&summary).starts_with("130 "));
    summary.info.interrupted = false;
    summary.capacity = None;
    assert_ne!(validity(&summary), crate::Validity::Valid);
}

#[test]
fn the_last_capacity_counts_and_is_masked_and_shifted() {
    let first = Capacity { ended_by: EndedBy::Asked, carries: None, ..capacity() };
    let mut events = crate::tests::sample::events();
    for (at_ns, capacity) in [(1, first), (2, capacity())] {
        events.insert(5, Event::Capacity { at_ns, capacity: Box::new(capacity) });
    }
    events.swap(5, 6);
    let (info, intervals) = (crate::tests::sample::info(), crate::tests::sample::intervals());
    let summary = crate::tests::sample::summary_of(info, &intervals, &events);
    assert_eq!(summary.capacity.as_deref(), Some(&capacity()));
    let mut secrets = Secrets::default();
    secrets.add("http p99");
    let Event::Capacity { mut capacity, .. } = events[6].masked(&secrets) else { panic!() };
    assert!(!serde_json::to_string(&capacity).unwrap().contains("http p99"));
    let before = capacity.levels[1].at_s;
    capacity.shift(2.5);
    assert_eq!(capacity.levels[1].at_s, before + 2.5);
}
