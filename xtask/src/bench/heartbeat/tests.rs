//! Tests of `bench heartbeat` that need neither a target nor a generator.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::*;
use crate::bench::child::Ended;
use crate::bench::look::{Host, Usage};
use crate::bench::record::Phase;

#[test]
fn options_are_read() {
    let wish = parse(&[]).unwrap();
    assert_eq!((wish.users.as_slice(), wish.rounds, wish.whole), (&USERS[..], ROUNDS, true));
    assert_eq!((wish.rounds(50_000), wish.rounds(1_000_000)), (ROUNDS, 1));
    let [few, many] = USERS.map(|users| wish.change(users));
    assert_eq!((few.heartbeat, many.heartbeat), (Duration::from_millis(1_500), HEARTBEAT_OF_MANY));
    assert_eq!((few.hold, many.hold), (HOLD, HEARTBEAT_OF_MANY * 3));
    let wish = parse(&["--against", "/proc/self/exe"]).unwrap();
    assert!(wish.whole && wish.against.is_some() && wish.precision().is_empty());
    let wish = parse(&["--quick", "--precision", "1ms", "--rounds", "2"]).unwrap();
    assert_eq!((wish.users.as_slice(), wish.rounds, wish.whole), (&[50_000][..], 2, false));
    assert_eq!((wish.hold, wish.precision()), (HOLD_QUICK, vec!["--precision", "1ms"]));
    let wish = parse(&["--users", "7,20_000", "--hold", "1m"]).unwrap();
    assert_eq!((wish.users.as_slice(), wish.whole), (&[7, 20_000][..], false));
    for wrong in [
        &["--users"][..],
        &["--users", "0"],
        &["--rounds", "x"],
        &["--hold", "2h"],
        &["--against", "/no/such/throng"],
        &["--tools", "wrk"],
    ] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

const HEARTBEAT_OF_MANY: Duration = Duration::from_secs(30);
/// Each has a heartbeat every second and a half.
const FEW: u64 = 50_000;

fn look(at: u64, logged_in: u64, cpu_ms: u64, done: u64) -> Look {
    let usage = |ms| Usage { cpu: Duration::from_millis(ms), resident_bytes: 0 };
    let (tool, target) = (usage(cpu_ms), usage(cpu_ms / 2));
    Look { at: Duration::from_secs(at), tool, target, host: Host::default(), logged_in, done }
}

fn outcome(looks: Vec<Look>) -> Outcome {
    let output = r#"{"heartbeats":{"sent":95000,"answered":94999},
        "outcome":{"reasons":["it was late"]}}"#;
    let ended = Ended {
        status: ExitStatus::from_raw(0),
        cpu: Duration::ZERO,
        output: output.to_string(),
        errors: String::new(),
    };
    let target = serde_json::json!({"heartbeats": 95_000});
    let phases = [(); 4].map(|()| Phase::default());
    Outcome { before: Host::default(), looks, phases, ended, target }
}

#[test]
fn a_heartbeat_costs_what_was_spent_while_all_were_there() {
    let outcome = outcome(vec![
        look(0, 0, 0, 0),
        look(1, FEW / 2, 900, 100),
        look(2, FEW, 2_000, 10_000),
        look(3, FEW, 2_400, 20_000),
        look(4, FEW, 3_000, 50_000),
        look(5, FEW, 3_400, 90_000),
        look(6, FEW - 1, 9_000, 95_000),
    ]);
    let (sample, seen) = told(&outcome, FEW).unwrap();
    assert_eq!((sample.ok, sample.cpu_us(), sample.seconds), (40_000, 10.0, 1.0));
    assert_eq!((seen.target_us, seen.p50_ms), (5.0, None));
    assert_eq!((seen.sent, seen.answered, seen.counted), (95_000, 94_999, 95_000));
}

#[test]
fn users_who_are_not_held_are_not_measured() {
    for looks in [
        Vec::new(),
        vec![look(0, FEW - 1, 1, 1), look(9, FEW - 1, 2, 2)],
        vec![look(0, FEW, 1, 1), look(9, FEW, 2, 2)],
        vec![look(0, FEW, 1, 7), look(8, FEW, 2, 7), look(9, FEW, 3, 7)],
    ] {
        let trouble = told(&outcome(looks), FEW).unwrap_err();
        assert!(trouble.ends_with("throng ended with exit status: 0 it was late"), "{trouble}");
    }
}

fn case(users: u64, cost_us: u64, p99_ms: f64) -> Case {
    let row = |name: &str, cost_us| {
        let cpu = Duration::from_micros(cost_us * 1_000);
        let sample = Sample { ok: 1_000, failed: 0, cpu, seconds: 0.0301 };
        Row { name: name.to_string(), samples: vec![sample; 2], trouble: None }
    };
    let told = Told {
        target_us: 7.0,
        p50_ms: Some(0.5),
        p99_ms: Some(p99_ms),
        max_ms: Some(40.25),
        late_p99_ms: Some(1.0),
        sent: 1_000,
        answered: 999,
        counted: 998,
    };
    let rows = vec![row(NAME, cost_us), row(OTHER, 10)];
    Case { users, rows, told: vec![vec![told; 2], vec![Told::default(); 2]] }
}

#[test]
fn both_throngs_are_told_beside_each_other() {
    let text = case(FEW, 6, 3.0).table();
    for line in [
        "## 50 000 users, a heartbeat every 1500ms\n",
        "| throng | 33223 (33223–33223) | 6.00 µs (6.00–6.00) | 0.60 (0.60–0.60) | 7.00 µs \
         (7.00–7.00) | 0.50 / 3.00 / 40.25 ms | 1.00 ms | 2 000 / 1 998 | 1 996 |\n",
        "| the other throng | 33223 (33223–33223) | 10.00 µs (10.00–10.00) | 1.00 (1.00–1.00) |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn what_must_be_reached_depends_on_what_was_asked() {
    let judged = |case: Case, compared| {
        let gates = case.gates(compared);
        let round = |figure: f64| (figure * 100.0).round() / 100.0;
        gates.iter().map(|gate| (gate.measured.map(round), gate.max)).collect::<Vec<_>>()
    };
    let rate = (Some(0.33), MISSING_PERCENT_MAX);
    assert_eq!(judged(case(FEW, 6, 3.0), true), [rate, (Some(0.6), RATIO_MAX)]);
    assert_eq!(judged(case(FEW, 6, 3.0), false), [rate]);
    let both = [rate, (Some(0.7), RATIO_MAX), (Some(25.0), P99_MS_MAX)];
    assert_eq!(judged(case(1_000_000, 7, 25.0), true), both);
    let mut behind = case(FEW, 6, 3.0);
    behind.rows[1].samples.iter_mut().for_each(|sample| sample.seconds *= 2.0);
    assert_eq!(judged(behind, true), [rate, (None, RATIO_MAX)]);
    let mut silent = case(1_000_000, 7, 25.0);
    silent.told[0] = Vec::new();
    silent.rows[0].samples = Vec::new();
    assert_eq!(judged(silent, false), [(None, MISSING_PERCENT_MAX), (None, P99_MS_MAX)]);
}
