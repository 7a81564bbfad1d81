//! The slowest attempts of a run: the same that the server says, by their trace ids.

use serde_json::Value;

use crate::run::throng;
use crate::servers::Node;

/// Answers at once, but for five requests of 200; says for how long it held each of these up.
const SERVER: &str = r#"
let count = 0;
const server = require("http").createServer((request, response) => {
  count += 1;
  const wait = count % 40 === 20 ? 150 * (1 + ((count * 3) / 20) % 7) : 0;
  if (wait > 0) console.log(`held ${wait} ${request.headers.traceparent}`);
  const due = performance.now() + wait;
  const end = () => {
    // A timer of Node may be early.
    const left = due - performance.now();
    left > 0 ? setTimeout(end, Math.ceil(left)) : response.end("ok");
  };
  end();
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

/// The target held the response up, and every part of the response time belongs to a stage.
fn stages_add_up(row: &Value, wait_ms: u64) {
    let chain = row["chain"].as_object().expect("a chain");
    let of = |name: &str| chain[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"));
    let stages = chain.keys().filter(|name| name.ends_with("_ns") && *name != "read_ns");
    let sum: u64 = stages.map(|name| of(name)).sum();
    assert_eq!(Some(sum), row["latency_ns"].as_u64(), "{row}");
    assert!(of("first_byte_ns") / 1_000_000 + 1 >= wait_ms, "{row} {wait_ms}");
}

#[test]
fn the_slowest_requests_are_those_that_the_server_delayed() {
    let node = Node::start(SERVER, &[]);
    let scenario = format!(
        "target: {}\ntrace: {{share: 100%}}\nload: [{{users: 2, iterations: 200}}]\nsessions: {{x: {{steps: \
         [http: GET /]}}}}\n",
        node.url("http")
    );
    let run = throng("run traced.yaml --json").file("traced.yaml", scenario).run().exits(0);
    let mut held: Vec<(u64, String)> = node.child.hears("five held up", |out, _| {
        let lines = out.lines().filter_map(|line| line.strip_prefix("held "));
        let pairs = lines.map(|line| line.split_once(' ').expect("a time and a header"));
        let id = |header: &str| header.split('-').nth(1).expect("an id").to_string();
        let all: Vec<_> =
            pairs.map(|(wait, header)| (wait.parse().expect("a time"), id(header))).collect();
        (all.len() == 5).then_some(all)
    });
    held.sort_unstable_by(|one, two| two.cmp(one));
    let rows = run.json()["slowest"].as_array().cloned().expect("rows");
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["trace"].as_str()).collect();
    let wanted: Vec<&str> = held.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(ids, wanted, "{rows:?} {held:?}");
    for (row, (wait_ms, _)) in rows.iter().zip(&held) {
        let latency_ms = row["latency_ns"].as_u64().expect("a time") / 1_000_000;
        assert!(latency_ms + 1 >= *wait_ms, "{row} {wait_ms}");
        assert_eq!((&row["step"], &row["code"]), (&Value::from("GET /"), &Value::from(200)));
        stages_add_up(row, *wait_ms);
    }
    // What the record has, the report has.
    let directory = run.json()["run"]["directory"].as_str().map(|name| run.folder().join(name));
    let again = throng("report --json").arg(directory.expect("a directory")).run().exits(0);
    assert_eq!(again.json()["slowest"], run.json()["slowest"]);
    let directory = run.json()["run"]["directory"].as_str().map(|name| run.folder().join(name));
    let drawn = throng("why --slowest").arg(directory.expect("a directory")).run().exits(0);
    drawn.says(&["first byte", "█", ids[0], "retransmitted segments on this connection so far: 0"]);
}
