//! Tests of `bench million` that need neither a target nor a generator.

use super::*;
use crate::bench::child::Ended;
use crate::bench::look;
use crate::bench::record::Phase;

#[test]
fn options_are_read() {
    let wish = parse(&[]).unwrap();
    assert_eq!((wish.users, wish.hold, wish.whole), (USERS, HOLD, true));
    assert!(wish.wants("run") && wish.wants("peers"));
    assert_eq!(wish.section(), "million");
    let wish = parse(&["--users", "2m"]).or_else(|_| parse(&["--users", "2_000_000"])).unwrap();
    assert_eq!((wish.users, wish.hold, wish.whole), (2_000_000, HOLD_OTHER, true));
    assert_eq!((wish.wants("peers"), wish.section().as_str()), (false, "million-2000000"));
    let wish = parse(&["--tls", "--hold", "1m"]).unwrap();
    assert_eq!((wish.users, wish.whole), (USERS_TLS, false));
    assert_eq!(wish.section(), "million-100000-tls");
    assert!(parse(&["--tls"]).unwrap().whole && !parse(&["--users", "7"]).unwrap().whole);
    let wish = parse(&["--only", "peers", "--tools", "k6,tsung"]).unwrap();
    assert!(!wish.wants("run") && wish.tools == ["k6", "tsung"]);
    for wrong in
        [&["--users"][..], &["--users", "0"], &["--hold", "9h"], &["--tools", "wrk"], &["-x", "1"]]
    {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn figures_are_written_so_that_they_can_be_read() {
    assert_eq!(["7", "1 234", "2 000 000"], [7, 1_234, 2_000_000].map(spaced));
    assert_eq!((in_bytes(999.6), gib(3 << 29)), ("1 000 B".to_string(), "1.50 GiB".to_string()));
    assert_eq!(seconds_until(&[0, 5, 3, 2, 9], 10), Some(3));
    assert_eq!(seconds_until(&[5, 3], 10), None);
}

fn look(at: u64, logged_in: u64, cpu_ms: u64, resident_bytes: u64, available_bytes: u64) -> Look {
    let usage = look::Usage { cpu: Duration::from_millis(cpu_ms), resident_bytes };
    let sockets = logged_in * 2;
    let host = Host { total_bytes: 1 << 30, available_bytes, sockets, ..Host::default() };
    Look { at: Duration::from_secs(at), tool: usage, target: usage, host, logged_in, done: 0 }
}

#[test]
fn an_outcome_is_told_with_what_falls_short() {
    let wish = parse(&["--users", "100", "--hold", "10s"]).unwrap();
    let free = 1 << 29;
    let looks = vec![
        look(0, 0, 10, 1_000, free),
        look(1, 60, 20, 50_000, free - 200_000),
        look(2, 100, 30, 110_000, free - 400_000),
        look(8, 100, 60, 110_000, free - 400_000),
        look(13, 0, 60, 110_000, free),
    ];
    let status = Command::new("true").status().unwrap();
    let ended = Ended {
        status,
        cpu: Duration::ZERO,
        output: r#"{"outcome":{"reasons":["a goal was not met"]}}"#.to_string(),
        errors: String::new(),
    };
    let phases = [(); 4].map(|()| Phase::default());
    let before = Host { available_bytes: free, total_bytes: 1 << 30, ..Host::default() };
    let target = serde_json::json!({"logins": 100, "connections": {"reset": 0}});
    let outcome = Outcome { before, looks, phases, ended, target };
    let text = report(&wish, &outcome, "fit");
    for line in [
        "| users online in hold, fewest | 100 | not seen |  |",
        "| logged in at one time, as the target counts, most |  | 100 |  |",
        "| users lost in hold | 0 | 100 | **not met** |",
        "| CPU per established connection, generator |  | 200.0 µs |  |",
        "| CPU in hold, target |  | 0.01 cores |  |",
        "| memory per user, generator | ≤ 1 200 B | 1 100 B | met |",
        "| memory per connection, target | ≤ 1 000 B | 1 100 B | **not met** |",
        "| memory per socket, kernel |  | 900 B |  |",
        "- throng ended with exit status: 0: a goal was not met\n",
        "- the target counted 100 logins (? of users already there)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
