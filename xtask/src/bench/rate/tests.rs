//! Tests of the tables and the goals of `bench rate`.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::bench::contest::Sample;

fn summary(late_p99_us: f64) -> Value {
    let lateness = json!({
        "p50_ns": 500_400.0, "p99_ns": late_p99_us * 1e3, "max_ns": 2_000_000.0,
    });
    json!({"generator": {
        "precision_ns": 1_000_000.0, "lateness": lateness,
        "together_mean": 20.25, "together_max": 41.0,
    }})
}

fn row(rate: u32, name: &str, cpu_us: u64, ok: u64, summary: Value) -> Row {
    let cpu = Duration::from_micros(cpu_us * ok);
    let times_us = [(name == DEFAULT).then_some(90.0), None];
    // The measurement of wrk2 starts when half of 100 connections are open, each 5 ms after the one
    // before; with two threads in half the time.
    let seconds = match (name, rate) {
        (WRK2, RATE_UNPINNED) => 1.1225,
        (WRK2, _) => 1.2475,
        _ => 1.0,
    };
    let sample = Sample { ok, cpu, seconds, times_us, summary, ..Sample::default() };
    Row { name: name.to_string(), samples: vec![sample; 2], trouble: None }
}

/// The results of throng and wrk2; throng's requests cost 1.2 times as much.
fn case(rate: u32, ours: u64, wrk2: Option<u64>) -> Case {
    late(rate, ours, wrk2, summary(1_040.0))
}

fn late(rate: u32, ours: u64, wrk2: Option<u64>, summary: Value) -> Case {
    let own = row(rate, DEFAULT, 12, ours, summary);
    let other = wrk2.map(|ok| row(rate, WRK2, 10, ok, Value::Null));
    Case { rate, rows: std::iter::once(own).chain(other).collect() }
}

#[test]
fn a_table_tells_what_each_tool_tells() {
    let mut case = case(1_000, 999, Some(950));
    let trouble = Some("missing | gone".to_string());
    case.rows.push(Row { name: "vegeta".to_string(), samples: Vec::new(), trouble });
    let text = case.table();
    for line in [
        "## 1 000 requests/s\n",
        "| throng bench | 12.00 µs (12.00–12.00) | 1.20 (1.20–1.20) | 99.90 % | \
         500 / 1040 / 2000 µs | 20.2 / 41.0 | 90 µs |  | 0 |\n",
        "| wrk2 | 10.00 µs (10.00–10.00) | 1.00 (1.00–1.00) | 95.00 % |  |  |  |  | 0 |\n",
        "| vegeta | not measured: missing / gone | | | | | | | |\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_throng_without_a_precision_is_not_judged_by_it() {
    let older = json!({"generator": {"lateness": {"p99_ns": 7_000}}});
    let case = late(1_000, 1_000, None, older);
    assert!(case.table().contains("| 100.00 % |  |  | 90 µs |  | 0 |"), "{}", case.table());
    assert_eq!(lateness_goals(&[case])[0].measured, None);
}

fn judged(goals: &[Goal]) -> Vec<(Option<f64>, f64)> {
    let round = |figure: f64| (figure * 100.0).round() / 100.0;
    goals.iter().map(|goal| (goal.measured.map(round), round(goal.max))).collect()
}

#[test]
fn costs_are_judged_against_wrk2_where_goals_are_set() {
    let goals = |rate, wrk2| judged(&case(rate, rate.into(), wrk2).goals());
    assert_eq!(goals(20_000, Some(20_000)), [(Some(1.2), 1.3)]);
    assert_eq!(goals(20_000, None), [(None, 1.3)]);
    assert_eq!(goals(20_000, Some(19_000)), [(None, 1.3)]);
    let behind = case(20_000, 19_000, Some(20_000));
    assert_eq!(judged(&behind.goals()), [(None, 1.3)]);
    assert_eq!(goals(5_000, Some(5_000)), []);
}

#[test]
fn a_rate_is_held_or_missed_as_wrk2_misses_it() {
    let goals = |ours, wrk2| judged(&case(100_000, ours, wrk2).goals());
    assert_eq!(goals(99_000, None), [(Some(1.0), 0.1)]);
    assert_eq!(goals(99_000, Some(98_000)), [(Some(1.0), 2.0)]);
    assert_eq!(goals(100_000, Some(101_000)), [(Some(0.0), 0.1)]);
}

#[test]
fn lateness_is_judged_at_the_worst_rate_of_a_pinned_tool() {
    let worse = late(5_000, 5_000, None, summary(1_070.0));
    let unpinned = late(100_000, 100_000, None, summary(9_000.0));
    let goals = lateness_goals(&[case(1_000, 1_000, None), worse, unpinned]);
    assert_eq!(judged(&goals), [(Some(70.0), 50.0)]);
    assert!(lateness_goals(&[case(100_000, 1, None)]).is_empty());
}
