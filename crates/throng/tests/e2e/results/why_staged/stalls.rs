//! Stalls at even intervals, and what drives them: two rates tell.

use super::{finds, running};
use crate::run::throng_first;
use crate::servers::{Node, Target};

/// 100 and then 150 requests a second.
fn two_rates(url: &str, seconds: u32) -> String {
    format!(
        "target: {url}\nload: [{{iterations: 100/s, users: 60, for: {seconds}s}}, \
         {{iterations: 150/s, users: 60, for: {seconds}s}}]\nsessions: {{s: {{steps: [http: GET /]}}}}\n"
    )
}

#[test]
fn stalls_by_a_timer_are_found() {
    let target = Target::begun("http --latency stall 250ms every 4s", throng_first);
    let run = running(&two_rates(&target.http(""), 22)).run();
    let found = finds(&run, "periodic-stall");
    // A stall that spans two seconds may be counted in either.
    let every = ["every 3.9", "every 4.0", "every 4.1"].iter().any(|it| found.contains(it));
    run.check(every && found.contains("cause: a timer"), &found);
}

/// It collects after each 600 requests. The first collection is not at the end of a second.
const COLLECTS: &str = r#"
let count = 75;
const server = require("http").createServer((_, response) => {
  const begin = Date.now();
  if (++count % 600 === 0) while (Date.now() - begin < 250);
  response.end("x");
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

#[test]
fn stalls_by_work_are_found() {
    let node = Node::start(COLLECTS, &[]);
    let run = running(&two_rates(&node.url("http"), 27)).run();
    let found = finds(&run, "periodic-stall");
    run.check(found.contains("cause: work"), "by work");
}
