//! Tests of the tables and the thresholds of `bench rate`.

use std::time::Duration;

use super::*;
use crate::bench::contest::Sample;

fn starts(late_p99: f64) -> Starts {
    Starts {
        precision: Some(1_000.0),
        late_p50: Some(500.4),
        late_p99: Some(late_p99),
        late_max: Some(2_000.0),
        together_mean: Some(20.25),
        together_max: Some(41.0),
    }
}

fn row(tool: Tool, cpu_us: u64, ok: u64, starts: Starts) -> Row {
    let cpu = Duration::from_micros(cpu_us * ok);
    let times_us = [tool.is_throng().then_some(90.0), None];
    let sample = Sample { ok, cpu, seconds: 1.0, times_us, starts, ..Sample::default() };
    Row { name: tool.name(), samples: vec![sample; 2], trouble: None }
}

/// The results of throng and wrk2; throng's requests cost 1.2 times as much.
fn case(rate: u32, ours: u64, wrk2: Option<u64>) -> Case {
    late(rate, ours, wrk2, starts(1_040.0))
}

fn late(rate: u32, ours: u64, wrk2: Option<u64>, starts: Starts) -> Case {
    let own = row(DEFAULT, 12, ours, starts);
    let other = wrk2.map(|ok| row(Tool::Wrk2, 10, ok, Starts::default()));
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
    let older = Starts { late_p99: Some(7.0), ..Starts::default() };
    let case = late(1_000, 1_000, None, older);
    assert!(case.table().contains("| 100.00 % |  |  | 90 µs |  | 0 |"), "{}", case.table());
    assert_eq!(lateness_gates(&[case])[0].measured, None);
}

fn judged(gates: &[Gate]) -> Vec<(Option<f64>, f64)> {
    let round = |figure: f64| (figure * 100.0).round() / 100.0;
    gates.iter().map(|gate| (gate.measured.map(round), round(gate.max))).collect()
}

#[test]
fn costs_are_judged_against_wrk2_where_the_thresholds_are_set() {
    let gates = |rate, wrk2| judged(&cost_gates(&[case(rate, rate.into(), wrk2)]));
    assert_eq!(gates(20_000, Some(20_000)), [(Some(1.2), 1.3)]);
    assert_eq!(gates(20_000, None), [(None, 1.3)]);
    assert_eq!(gates(20_000, Some(19_000)), [(None, 1.3)]);
    let behind = case(20_000, 19_000, Some(20_000));
    assert_eq!(judged(&cost_gates(&[behind])), [(None, 1.3)]);
    assert_eq!(gates(5_000, Some(5_000)), []);
}

#[test]
fn a_rate_is_held_or_missed_as_wrk2_misses_it() {
    let gates = |ours, wrk2| judged(&cost_gates(&[case(100_000, ours, wrk2)]));
    assert_eq!(gates(99_000, None), [(Some(1.0), 0.1)]);
    assert_eq!(gates(99_000, Some(98_000)), [(Some(1.0), 2.0)]);
    assert_eq!(gates(100_000, Some(101_000)), [(Some(0.0), 0.1)]);
}

#[test]
fn lateness_is_judged_at_the_worst_rate_of_a_pinned_tool() {
    let worse = late(5_000, 5_000, None, starts(1_070.0));
    let unpinned = late(100_000, 100_000, None, starts(9_000.0));
    let gates = lateness_gates(&[case(1_000, 1_000, None), worse, unpinned]);
    assert_eq!(judged(&gates), [(Some(70.0), 50.0)]);
    assert!(lateness_gates(&[case(100_000, 1, None)]).is_empty());
}
