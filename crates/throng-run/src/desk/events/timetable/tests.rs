//! Tests when events are due: by time, after other events, and by conditions.

use std::path::PathBuf;

use throng_base::Source;
use throng_scenario::{CompileOptions, RunOptions, compile, read_disk};

use super::*;

fn table(events: &str, begun: &[u16], since: Time) -> Timetable {
    let text = format!(
        "target: http://a\nsessions: {{s: {{steps: [{{http: GET /}}]}}}}\nload: [{{name: ramp, \
         users: 10, for: 10s}}, {{name: steady, for: 20s}}, {{name: done, for: 5s}}]\nevents:\n\
         {events}"
    );
    let options = CompileOptions {
        set: Vec::new(),
        base: PathBuf::new(),
        read_file: &read_disk,
        env: &|_| None,
        run: RunOptions::default(),
    };
    let (program, _) = compile(&Source::new("test.yaml", &text), &options).expect("a scenario");
    Timetable::new(&program, &begun.iter().copied().collect(), since)
}

const EVENTS: &str = "- {name: a, at: steady + 5s, mark: a}\n- {name: b, after: a + 2s, mark: b}\n\
                      - {name: c, at: 3s, mark: c}\n- {name: d, at: done, mark: d}\n\
                      - {name: e, when: errors > 10%, mark: e}\n";

#[test]
fn events_are_due_in_the_order_of_their_times() {
    let mut table = table(EVENTS, &[], Time::ZERO);
    assert_eq!(table.next(), Some((Time::from_secs(3), 2)));
    table.begins(2);
    table.ended(2, Time::from_secs(3));
    assert_eq!(table.next(), Some((Time::from_secs(15), 0)));
    table.begins(0);
    assert_eq!(table.next(), Some((Time::from_secs(30), 3)), "b waits for the end of a");
    table.ended(0, Time::from_secs(20));
    assert_eq!(table.next(), Some((Time::from_secs(22), 1)));
    table.holds(4, Time::from_secs(21));
    assert_eq!(table.next(), Some((Time::from_secs(21), 4)));
    table.begins(4);
    table.holds(4, Time::from_secs(23));
    assert_eq!(table.next(), Some((Time::from_secs(22), 1)), "once in a run");
}

#[test]
fn a_changed_phase_start_moves_dependent_events() {
    let mut table = table(EVENTS, &[], Time::ZERO);
    table.begins(2);
    table.phase_begun(1, Time::from_secs(12));
    assert_eq!(table.next(), Some((Time::from_secs(17), 0)));
    table.phase_begun(1, Time::from_secs(14));
    assert_eq!(table.next(), Some((Time::from_secs(17), 0)), "the first machine counts");
    table.begins(0);
    assert_eq!(table.next(), Some((Time::from_secs(32), 3)));
    table.phase_ends(1, Time::from_secs(18));
    assert_eq!(table.next(), Some((Time::from_secs(18), 3)));
}

#[test]
fn events_that_never_start_have_a_reason() {
    let mut table = table(EVENTS, &[], Time::ZERO);
    table.begins(2);
    let reasons: Vec<(u16, String)> =
        table.give_up().into_iter().map(|(number, why)| (number, why.english())).collect();
    let wanted = [
        (0, "the run ended before the scheduled time after the start of phase `steady`"),
        (1, "the run ended before the scheduled time after `a`"),
        (3, "the run ended before the scheduled time after the start of phase `done`"),
        (4, "`errors > 10%` was never true"),
    ];
    assert_eq!(reasons, wanted.map(|(number, why)| (number, why.to_string())));
    assert_eq!(table.next(), None);
    assert_eq!(table.give_up(), []);
}

#[test]
fn a_controller_that_takes_over_starts_no_event_twice() {
    let table = table(EVENTS, &[2, 0], Time::from_secs(40));
    let (due, number) = table.next().expect("one");
    assert_eq!((due, number), (Time::from_secs(30), 3));
    assert!(table.is_missed(due), "its time came while nobody was there");
    assert!(!table.is_missed(Time::from_secs(41)));
}
