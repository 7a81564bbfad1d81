//! Recipes of loads: what the server counts is what the load says.

use super::cooked;
use crate::scribe::{Scribe, answer, ok};

const TARGET: &str = "http://127.0.0.1:8080";

/// 40 before, 200 within, 40 after: the server has seen each of them.
pub(super) fn spike(name: &str) {
    let scribe = Scribe::start();
    let target = scribe.target();
    let changes = [
        (TARGET, target.as_str()),
        ("50/s, for: 2m", "20/s, for: 2s"),
        ("500/s, max: 5000, for: 30s", "100/s, max: 1000, for: 2s"),
        ("p95 < 200ms", "p95 < 20s"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    let counts = ["before", "spike", "after"]
        .map(|phase| run.row("phases", phase)["count"].as_u64().unwrap_or_default());
    assert_eq!(scribe.count("GET /") as u64, counts.iter().sum::<u64>(), "{run}");
    let [before, high, after] = counts;
    let is_high = high > 2 * before && high > 2 * after;
    assert!(is_high && before > 20 && after > 20, "{counts:?}\n{run}");
}

/// A service that fails from its 100th response on ends the run.
pub(super) fn soak(name: &str) {
    for fails in [false, true] {
        let scribe = Scribe::answering(move |_, number| match fails && number > 100 {
            true => answer("500 Internal Server Error", "", ""),
            false => ok("{}"),
        });
        let target = scribe.target();
        let length = if fails { "for: 1h" } else { "for: 3s" };
        let changes = [
            (TARGET, target.as_str()),
            ("{to: 200, rate: 2/s}", "{to: 10, rate: 100/s}"),
            ("think: 1s..3s", "think: 50ms"),
            ("for: 8h", length),
            ("p99 < 300ms over 10m", "p99 < 20s over 1s"),
            ("0.1% over 10m", "0.1% over 1s"),
            ("20% over 1m for 5m", "20% over 1s for 1s"),
        ];
        let run = cooked(name, &changes).run().exits(if fails { 4 } else { 0 });
        run.check(run.json()["run"]["labels"]["purpose"] == "soak", "the label");
    }
}
