//! The first command of the README.

use crate::run::throng;

#[test]
fn the_demo_shows_results() {
    // It has its own threshold.
    let run = throng("demo -d 1s").start().wait().exits(0);
    run.says(&["  time   users", "latency", "200"]);
}
