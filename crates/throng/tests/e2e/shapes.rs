//! Shapes of loads, against a target that counts what it gets.

use crate::run::{Run, throng};
use crate::servers::Target;

/// One request each, and a pause.
fn run(target: &Target, think: &str, rest: &str, flags: &str) -> Run {
    let text = format!(
        "target: {}\nsessions: {{a: {{steps: [{{http: GET /, name: get}}, {{think: {think}}}]}}}}\n\
         {rest}\n",
        target.http("")
    );
    throng(&format!("run s.yaml --json {flags}")).file("s.yaml", text).run()
}

#[test]
fn whoever_no_user_is_free_for_is_dropped_and_counted() {
    let target = Target::start("http");
    let goals = "thresholds: [dropped <= 90%, dropped > 80%, unmet = 0]";
    for load in [
        "load: [{arrivals: 100/s, max: 10, for: 1s}]",
        "load: [{iterations: 100/s, max: 10, for: 1s}]",
        "load: [{arrivals: {from: 50/s, to: 150/s}, max: 10, for: 1s}]",
    ] {
        let before = target.counts("/requests");
        // Nobody is done before the phase is over.
        let run = run(&target, "2s", &format!("{load}\n{goals}"), "--shards 2");
        let run = run.succeeds(10);
        run.has("/users/starts_dropped", 90);
        run.has("/users/iterations_started", 10);
        run.has("/users/starts_unmet", 0);
        assert_eq!(target.counts("/requests") - before, 10, "{load}");
    }
}

#[test]
fn what_comes_by_chance_is_the_same_with_one_seed_on_any_number_of_shards() {
    let target = Target::start("http");
    let load = "load: [{arrivals: 300/s, spacing: poisson, for: 1s}]";
    let count = |seed: u64, shards: u64| {
        let before = target.counts("/requests");
        let head = format!("seed: {seed}\n{load}");
        let run = run(&target, "1ms", &head, &format!("--shards {shards}"));
        let count = run.figure("/total/ok") as u64;
        run.succeeds(count);
        assert_eq!(target.counts("/requests") - before, count);
        count
    };
    let counts = [1, 2, 3].map(|shards| count(5, shards));
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    // Eight standard deviations.
    assert!(counts[0].abs_diff(300) < 140, "{counts:?}");
    assert!([6, 7, 8].iter().any(|seed| count(*seed, 1) != counts[0]), "chance follows the seed");
}
