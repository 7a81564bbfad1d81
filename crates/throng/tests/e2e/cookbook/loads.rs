//! Recipes of loads: what the server counts is what the load says.

use super::{cooked, tally};
use crate::scribe::{Scribe, answer, ok};

const TARGET: &str = "http://127.0.0.1:8080";

pub(super) fn random_choices(name: &str) {
    let scribe = Scribe::start();
    let target = scribe.target();
    let changes = [
        (TARGET, target.as_str()),
        ("think: {exponential: 2s}", "think: 1ms"),
        ("think: 5s..10s", "think: 1ms"),
        ("{users: 100, for: 5m}", "{iterations: 2000, users: 100}"),
        ("p95 < 500ms", "p95 < 20s"),
    ];
    let run = cooked(name, &changes).arg("--seed").arg("7").run().exits(0);
    let asked = scribe.asked();
    let many = |begin: &str| asked.iter().filter(|what| what.starts_with(begin)).count() as f64;
    let (look, search, cart) = (many("GET /products"), many("GET /search?q="), many("POST /cart"));
    let told = format!("{look} {search} {cart}\n{run}");
    // 70 : 20 of the visitors, who are nine of ten users.
    assert!((2.5..=5.0).contains(&(look / search)), "{told}");
    assert!((0.02..=0.25).contains(&(cart / 2000.0)), "{told}");
    let words = tally(asked.iter().filter_map(|what| what.strip_prefix("GET /search?q=")));
    let known: Vec<&str> = words.keys().map(String::as_str).collect();
    assert_eq!(known, ["coffee", "milk%20%26%20honey", "tea"], "{run}");
}

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

/// Each device sends as often as the others.
pub(super) fn a_rate_per_user(name: &str) {
    let scribe = Scribe::start();
    let target = scribe.target();
    let changes = [
        (TARGET, target.as_str()),
        ("{users: 100, per_second: 0.5}", "{users: 10, per_second: 5}"),
        ("for: 5m", "for: 4s"),
        ("waited < 1%", "waited < 50%"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    let book = scribe.book();
    let counts = tally(book.iter().filter_map(|asked| asked.header("X-Device")));
    assert_eq!(counts.len(), 10, "{counts:?}\n{run}");
    assert!(counts.values().all(|count| (16..=24).contains(count)), "{counts:?}\n{run}");
}
