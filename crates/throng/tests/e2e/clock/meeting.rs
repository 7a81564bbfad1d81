//! How close together users continue after a rendezvous.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::scenarios::{one_session, running, times};
use crate::scribe::Scribe;

/// The maximum spread of arrivals of requests that are sent at the same time.
const TOGETHER: Duration = Duration::from_millis(25);

#[test]
fn users_of_two_shards_continue_together() {
    let scribe = Scribe::start();
    let steps = "\
- http: GET /warm
- think: 10ms..300ms
- rendezvous: gate
  users: 10
- http: GET /together";
    let text = one_session(&scribe.target(), &times(40, 10), steps);
    let run = running(&text).arg("--shards=2").start().wait().succeeds(80);
    assert_eq!(run.json()["run"]["shards"], 2);
    let book = scribe.book();
    let together: Vec<_> = book.iter().filter(|asked| asked.what == "GET /together").collect();
    let mut rounds: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for (index, asked) in together.iter().enumerate() {
        rounds.entry(index / 10).or_default().push(asked);
    }
    let spreads: Vec<Duration> = rounds
        .values()
        .map(|round| {
            let mut users: Vec<u64> = round.iter().map(|asked| asked.connection).collect();
            users.sort_unstable();
            users.dedup();
            assert_eq!(users.len(), 10, "everybody once in a round: {run}");
            let last = round.iter().map(|asked| asked.at).max().expect("somebody");
            let first = round.iter().map(|asked| asked.at).min().expect("somebody");
            last - first
        })
        .collect();
    assert_eq!(spreads.len(), 4, "{run}");
    // Other work of this machine may disturb one round.
    let good = spreads.iter().filter(|spread| **spread < TOGETHER).count();
    assert!(good >= 3, "{spreads:?}\n{run}");
    let row = run.row("steps", "gate");
    run.check(row["kind"] == "rendezvous" && row["ok"] == 40, "its row");
    run.check(row["latency"]["max_ns"].as_u64() > Some(50_000_000), "somebody has waited");
}
