//! Wakings that are shared: the target counts every request, and the report says what went out
//! together.

use crate::run::throng;
use crate::servers::Target;

#[test]
fn requests_that_go_out_together_are_all_of_them() {
    for (precision, nanos, together) in
        [("0", 0, 1.0), ("1ms", 1_000_000, 2.0), ("5ms", 5_000_000, 5.0)]
    {
        let target = Target::start("http");
        let load = format!("-c 200 --rate 8000 -n 4000 --precision {precision}");
        let line = format!("bench {} {load} --json", target.http("/"));
        let run = throng(&line).run().succeeds(4000);
        run.has("/generator/precision_ns", nanos);
        run.within("/generator/together_mean", together, 4200.0);
        run.check(target.counts("/requests") == 4000, "the target counted others");
    }
}

#[test]
fn the_report_says_how_many_go_out_together() {
    let target = Target::start("http");
    let text = format!("bench {} -c 100 --rate 4000 -d 1s --precision 5ms", target.http("/"));
    throng(&format!("{text} --details"))
        .run()
        .exits(0)
        .says(&["starts per wake-up", "precision 5.00ms"]);
    let scenario = throng(&format!("{text} --print-scenario")).run().exits(0);
    scenario.says(&["precision: 5ms"]);
}

#[test]
fn a_precision_that_is_too_coarse_is_refused() {
    let target = Target::start("http");
    for (wrong, said) in [("6ms", "the maximum is 5ms"), ("fast", "duration")] {
        let line = format!("bench {} --rate 100 -d 1s --precision {wrong}", target.http("/"));
        throng(&line).run().exits(2).says(&[said]);
    }
    assert_eq!(target.counts("/requests"), 0);
}
