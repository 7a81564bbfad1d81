//! Tests of `bench push` that need neither a target nor a generator.

use super::super::ledger::tests::{stats, summary};
use super::*;

fn example() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(EXAMPLE);
    fs::read_to_string(file).unwrap()
}

#[test]
fn the_scenario_is_made_of_the_example() {
    let plan = Plan::devices(1_000, 500, 100, Duration::from_secs(60));
    let text = plan.text(&example(), 7, 8).unwrap();
    for part in [
        "target: {addresses: [\"127.0.0.1:7\"]}\n",
        "  device:\n    weight: 1000\n    steps:\n      - connect:",
        "      - request: {bind: {device: \"d${user.id}\", key: pk}}\n        check: {code: 0}\n",
        "do: [{send: {received: {id: \"${message.id}\"}}}]}\n  sender:\n",
        "    target: http://127.0.0.1:8\n    protocol: none\n",
        "json: {to: all, id: 1, data: {text: hello}, rate: 100}",
        "      - think: 60000ms\n      - http: POST /push",
        "{name: fill 2, users: {to: 1040, rate: 250/s}}\n",
        "lost_after: 35000ms}\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("report") && !text.contains("churn"), "{text}");
    let error = plan.text("  device:\n", 7, 8).unwrap_err();
    assert!(error.ends_with("has no `check: {code: 0}`"), "{error}");
}

#[test]
fn the_outage_has_devices_that_fall_out() {
    let time = Duration::from_secs(40);
    let plan = Plan::outage(1_000, 100, Duration::from_secs(15), time);
    let text = plan.text(&example(), 7, 8).unwrap();
    assert!(text.contains("{name: churn, churn: {rate: 10/s, how: reset}, for: 40000ms}"));
    assert!(text.contains("check: {code: 0}\n        retry: {times: forever, wait: 1s..2s}\n"));
    assert!(text.contains("while: saved.redis\n") && text.contains("id: 3,"), "{text}");
    assert_eq!(plan.held().as_millis(), 25_400);
    assert!(plan.limit() > plan.held() + time);
}

#[test]
fn options_are_read() {
    let wish = parse(&[]).unwrap();
    assert_eq!((wish.users, wish.redis_users, wish.whole), (USERS, REDIS_USERS, true));
    let wish = parse(&["--users", "5_000", "--only", "redis", "--hold", "10s"]).unwrap();
    assert_eq!((wish.users, wish.hold, wish.whole), (5_000, Duration::from_secs(10), false));
    assert!(wish.wants("redis") && !wish.wants("devices"));
    for wrong in [&["--users"][..], &["--users", "0"], &["--only", "run"], &["--fast", "1"]] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn an_outcome_is_told_with_what_falls_short() {
    let look = |at: u64, logged_in: u64, done: u64| {
        let usage = Usage { cpu: Duration::from_millis(at * 500), resident_bytes: 9_900 };
        let at = Duration::from_secs(at);
        let look = Look { at, tool: usage, target: usage, logged_in, done, ..Look::default() };
        (look, Mirror { usage, present: Some(logged_in) })
    };
    let mut stats = stats(99, 0);
    stats["push"] = serde_json::json!({"acknowledged": 99, "binds": 99, "kicked": 0});
    let outcome = |acknowledged: u64, stats: &Value| {
        let mut stats = stats.clone();
        stats["push"]["acknowledged"] = acknowledged.into();
        Outcome {
            ended: Ended {
                status: Command::new("true").status().unwrap(),
                cpu: Duration::ZERO,
                output: String::new(),
                errors: String::new(),
            },
            ledger: Ledger::of(&summary(ROW, 99, 0), ROW).unwrap(),
            served: Served::of(&stats),
            stats,
            reasons: "late".to_string(),
            looks: vec![look(0, 0, 0), look(1, 99, 0), look(3, 99, 99), look(4, 2, 99)],
        }
    };
    let wish = parse(&["--users", "99"]).unwrap();
    let phases = [Phase::default(), Phase::default(), Phase::default()];
    let text = report(&wish, &outcome(99, &stats), &phases);
    for line in [
        "| devices bound at one time, most | 99 | 99 | met |",
        "| of them in Redis | 99 | 99 | met |",
        "| delivered / written / acknowledged |  | 99 / 99 / 99 |  |",
        "| every push accounted for | yes | yes | met |",
        "| pushes acknowledged a second |  | 49 |  |",
        "| CPU meanwhile, Redis |  | 0.50 cores |  |",
        "| memory per device, generator |  | 100 B |  |",
        "- throng ended with exit status: 0: late\n- the target counted 99 binds, ? of them",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let text = report(&wish, &outcome(98, &stats), &phases);
    assert!(text.contains("| every push accounted for | yes | acknowledged 98 | **not met** |"));
}
