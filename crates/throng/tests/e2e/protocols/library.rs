//! The protocols that come with throng, against real servers whose books are compared.

use crate::protocols::push::Redis;
use crate::run::throng;
use crate::scenarios::one_session;

const COMMANDS: &str = r#"- connect
- request: {command: {items: [{data: SET}, {data: "k${user.id}"}, {data: "v${user.id}"}]}}
  expect: {status: {text: OK}}
  name: set
- request: {command: {items: [{data: GET}, {data: "k${user.id}"}]}}
  expect: value
  check: {field: {size: 2}}
  save: {got: {field: data}}
  name: get
- request: {command: {items: [{data: GET}, {data: nothing}]}}
  expect: {value: {size: -1}}
  name: missing
- request: {command: {items: [{data: INCR}, {data: all}]}}
  expect: integer
  check: {field: {value: "> 0"}}
  name: count
- request: {command: {items: [{data: MGET}, {data: "k${user.id}"}, {data: nothing}]}}
  expect: {list: {count: 2}}
  check: {field: {"items[0].data": "v${user.id}"}}
  name: list
- request: {command: {items: [{data: GETS}]}}
  expect: error
  name: refused
- log: "it is ${saved.got}"
- disconnect"#;

#[test]
fn redis_is_spoken_by_its_shipped_protocol() {
    let redis = Redis::start();
    let head = "protocol: throng:redis\nload: [{iterations: 20, users: 5}]";
    let target = format!("127.0.0.1:{}", redis.port);
    let run = throng("run it.yaml --json --out record --shards 2")
        .file("it.yaml", one_session(&target, head, COMMANDS))
        .run()
        .exits(0);
    for name in ["set", "get", "missing", "count", "list", "refused"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    run.has("/total/failed", 0);
    run.has("/messages/broken", 0);
    run.says(&["it is v1", "it is v5"]);
    assert_eq!(redis.number("DBSIZE"), Some(6), "five values and a count: {run}");
    assert_eq!(redis.number("INCR all"), Some(21), "{run}");
}

#[test]
fn shipped_protocols_are_listed_shown_and_used_by_name() {
    let list = throng("protocol --list").run().exits(0);
    list.says(&["throng:dns", "throng:nats", "throng:redis", "Redis, RESP2"]);
    let shown = throng("protocol --show redis").run().exits(0);
    shown.says(&["# Redis, RESP2", "license: MIT OR Apache-2.0"]);
    let decoded =
        throng("protocol throng:redis --decode").arg("242d310d0a2b4f4b0d0a").run().exits(0);
    decoded.says(&["value", "status", "OK"]);
    let unknown = throng("protocol throng:reddis").run().exits(2);
    unknown.says(&["did you mean `throng:redis`?"]);
}
