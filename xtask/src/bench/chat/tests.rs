//! Tests of `bench chat` that need neither a target nor a generator.

use super::super::ledger::tests::{stats, summary};
use super::super::look::Usage;
use super::*;

fn example() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(EXAMPLE);
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn the_scenario_is_made_of_the_example() {
    let wish = parse(&["--users", "5_000", "--fill", "500"]).unwrap();
    let text = scenario_of(&example(), &wish, 20, 7).unwrap();
    for part in [
        "target: {addresses: [\"127.0.0.1:7\"]}\n",
        "- request: {join: {room: \"${user.id % 5}\", user: \"${user.id}\"",
        "- {rendezvous: all are in, users: 5000, timeout: 140000ms}",
        "- stay: 5000ms\n      - stay: 30000ms\n        every:\n          - {time: 250000ms, do: [{request: {say: {id:",
        "text: \"hello from ${user.id}\"}}, check: {code: 0}}]}\n      - stay: forever",
        "audience: {same: \"${user.id % 5}\"}, lost_after: 10000ms}\n",
        "users: {to: 5000, rate: 500/s}",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let error = scenario_of("nothing", &wish, 20, 7).unwrap_err();
    assert!(error.ends_with("has no `request: {join:`"), "{error}");
}

#[test]
fn options_are_read() {
    let wish = parse(&[]).unwrap();
    assert_eq!((wish.users, wish.rate, wish.room, wish.whole), (USERS, RATE, ROOM, true));
    assert_eq!(parse(&["--batch", "none"]).unwrap().batch, None);
    let wish = parse(&["--rate", "5k", "--batch", "50ms", "--talk", "1m"]);
    let wish = wish.or_else(|_| parse(&["--rate", "5_000", "--batch", "50ms", "--talk", "1m"]));
    let wish = wish.unwrap();
    assert_eq!((wish.rate, wish.batch.as_deref(), wish.whole), (5_000, Some("50ms"), false));
    assert_eq!(wish.talk, Duration::from_secs(60));
    for wrong in [&["--users"][..], &["--users", "0"], &["--talk", "2h"], &["--fast", "1"]] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

fn ended(summary: &Value) -> Ended {
    let status = Command::new("true").status().unwrap();
    Ended { status, cpu: Duration::ZERO, output: summary.to_string(), errors: String::new() }
}

fn look(at: u64, done: u64, cpu_ms: u64) -> Look {
    let usage = Usage { cpu: Duration::from_millis(cpu_ms), resident_bytes: 100 * (at + 1) };
    let at = Duration::from_secs(at);
    Look { at, tool: usage, target: usage, logged_in: 100, done, ..Look::default() }
}

#[test]
fn an_attempt_is_told() {
    let wish = parse(&["--users", "100", "--room", "50", "--talk", "1s", "--rate", "2"]).unwrap();
    let looks = || vec![look(0, 0, 0), look(1, 0, 100), look(2, 1, 500), look(3, 2, 1100)];
    let good = Attempt::new(2, &ended(&summary(ROW, 99, 1)), &stats(99, 1), looks()).unwrap();
    assert!(good.is_carried(&wish));
    let text = report(&wish, &[good]);
    for line in [
        "| 2 | 2 | 99 | 100 | 99 | 1 / 1 | yes | 1.5 / 2.0 / 9.0 ms | 0.50 | 0.50 | yes |",
        "| messages/s carried | 2 | 2 | met |",
        "| deliveries/s carried | 100 | 99 |  |",
        "| lost, by ledger and by target | the same | 1 and 1 | met |",
        "| memory per user, silent |  | 2 B |  |",
        "| memory per connection, target, most |  | 4 B |  |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_rate_that_is_not_carried_leads_to_a_lower_one() {
    let wish = parse(&["--users", "100", "--room", "50", "--talk", "1s", "--rate", "2"]).unwrap();
    let attempt = |rate: u64, lost: u64, looks: Vec<Look>| {
        let stats = stats(100 - lost, lost);
        Attempt::new(rate, &ended(&summary(ROW, 99, 1)), &stats, looks).unwrap()
    };
    let talk = |said: u64| vec![look(0, 0, 0), look(2, said, 9), look(3, said, 9)];
    let (wrong, slow) = (attempt(2, 2, Vec::new()), attempt(100, 1, talk(80)));
    assert!(!wrong.is_carried(&wish) && !slow.is_carried(&wish));
    assert_eq!((wrong.next_rate(), slow.next_rate()), (1, 40));
    assert_eq!(attempt(100, 1, talk(2)).next_rate(), 25);
    let text = report(&wish, &[wrong]);
    assert!(text.contains("delivered 99, but the target written once 98"), "{text}");
    assert!(text.contains("| messages/s carried | 2 | not seen | **not met** |"), "{text}");
    assert!(Attempt::new(1, &ended(&Value::Null), &stats(1, 1), Vec::new()).is_err());
}
