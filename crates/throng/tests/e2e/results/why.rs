//! `throng why`: what went wrong in a run and why, on targets of which that is known.

use serde_json::Value;

use crate::run::{Run, throng};
use crate::servers::{Node, Target};

/// Code and level of each finding.
fn found(run: &Run) -> Vec<(String, String)> {
    let findings = run.json()["findings"].as_array().cloned().unwrap_or_default();
    let word = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_string();
    findings.iter().map(|row| (word(row, "code"), word(row, "level"))).collect()
}

fn why(run: &Run) -> Run {
    throng("why --json").arg(run.folder().join("record")).run().exits(0)
}

#[test]
fn a_rate_limit_is_found_in_the_run_and_in_its_record() {
    let target = Target::start("http --rate-limit 100/s");
    let line = format!("bench {} --rate 200/s -d 4s --json --out record", target.http("/"));
    let run = throng(&line).run().exits(0);
    let expected = [("rate-limited".to_string(), "certain".to_string())];
    assert_eq!(found(&run), expected, "{run}");
    let again = why(&run);
    assert_eq!(again.json()["findings"], run.json()["findings"], "{again}");
    let refused = run.figure("/total/failed");
    let told = format!("the target refused {refused} requests with 429");
    assert_eq!(again.json()["findings"][0]["text"], told.as_str(), "{again}");
    let text = throng("why").arg(run.folder().join("record")).run().exits(0);
    text.says(&["rate-limited · certain", &told, "not judged", "too short"]);
    throng("explain rate-limited").run().exits(0).says(&["Finding:"]);
}

#[test]
fn nothing_is_found_in_a_clean_run() {
    let target = Target::start("http");
    let line = format!("bench {} --rate 200/s -d 2s --json --out record", target.http("/"));
    let run = throng(&line).run().exits(0);
    assert_eq!(found(&run), [], "{run}");
    let text = throng("why").arg(run.folder().join("record")).run().exits(0);
    text.says(&["nothing found"]);
}

/// Each response names its age in a cache; requests differ.
#[test]
fn a_cache_in_front_of_the_service_is_found() {
    const CACHE: &str = r"
const server = require('http').createServer((request, response) => {
  response.setHeader('Age', '42');
  response.end('the same for all');
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";
    let node = Node::start(CACHE, &[]);
    let text = format!(
        "target: {}\nsessions: {{s: {{steps: [{{http: \"GET /${{random.int(1, 1000000)}}\", \
         name: page}}]}}}}\nload: [{{iterations: 3_000, users: 10}}]\n",
        node.url("http")
    );
    let run = throng("run s.yaml --json --out record").file("s.yaml", text).run().exits(0);
    let expected = ("too-good".to_string(), "certain".to_string());
    assert!(found(&run).contains(&expected), "{run}");
    let samples = run.row("samples", "page");
    // One of 64 of each shard, the first of them included.
    let sampled = samples["sampled"].as_u64();
    run.check(sampled >= Some(3_000 / 64) && sampled < Some(3_000 / 64 + 64), "one of 64");
    run.check(samples["cached"] == samples["sampled"], "all of a cache");
}

#[test]
fn a_killed_run_is_judged_up_to_its_end() {
    let target = Target::start("http --rate-limit 100/s");
    let line = format!("bench {} --rate 200/s -d 60s --out record", target.http("/"));
    let child = throng(&line).start();
    child.until("four seconds of requests", || target.counts("/requests") > 800);
    child.signal(libc::SIGKILL);
    let run = child.wait();
    let judged = why(&run);
    let expected = ("rate-limited".to_string(), "certain".to_string());
    assert!(found(&judged).contains(&expected), "{judged}");
    judged.check(judged.json()["until_s"].as_f64() >= Some(2.0), "up to the end");
}

#[test]
fn other_files_are_not_records() {
    let run = throng("why nowhere").run().exits(2);
    run.says(&["nowhere"]);
    throng("why record").file("record/notes.txt", "nothing").run().exits(2);
}
