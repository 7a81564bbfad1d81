//! Audits against a real Redis: what they find is what the server counted of its own errors.

use serde_json::Value;

use crate::machines::fleet::Fleet;
use crate::protocols::push::Redis;
use crate::run::{Run, Throng, throng};
use crate::servers::Target;

const MIOP: &str = include_str!("../../../../../examples/miop.protocol.yaml");

/// 200 devices that log in, stay and leave, and an audit at the time and at the end.
const DEVICES: &str = r#"name: audited devices
target: TARGET
protocol: miop.protocol.yaml
vars: {pk: {env: DEVICE_KEY}}
sessions:
  device:
    before:
      - connect
      - request: {bind: {device: "d${user.id}", key: "${vars.pk}"}}
        check: {code: 0}
    steps:
      - stay: forever
audits:
  - name: presence
    at: 2500ms
    at_end: true
    agree_within: 1s
    views:
      set: {redis: REDIS, set: presence, id: "d${user.id}"}
thresholds:
  - audit presence false_offline = 0
  - audit presence.set agree > 50%
  - audit presence strangers = 0
load: [{users: 200, at_once: true, for: 5s}]
"#;

fn audited(redis: &Redis, target: &Target, line: &str) -> Throng {
    let text = DEVICES.replace("TARGET", &target.address.to_string());
    let text = text.replace("REDIS", &redis.url());
    devices(&format!("run devices.yaml --json --out record {line}"), text)
}

/// Agents of a fleet take the key from the run's environment: it is a secret.
fn devices(line: &str, text: String) -> Throng {
    throng(line).env("DEVICE_KEY", "pk").file("devices.yaml", text).file("miop.protocol.yaml", MIOP)
}

fn view(run: &Run) -> Value {
    run.json()["audits"][0]["views"][0].clone()
}

/// Twenty forget-every binds of 400 are forgotten, and what is left in Redis is counted.
fn finds_what_the_books_say(line: &str) {
    let redis = Redis::start();
    let target =
        Target::start(&format!("push --redis {} --forget-every 20 --skip-clear 5%", redis.url()));
    let run = audited(&redis, &target, line).run().exits(1);
    let view = view(&run);
    let (forgotten, uncleared) =
        (target.counts("/push/forgotten"), target.counts("/push/uncleared"));
    run.check(forgotten == 10 && uncleared == 9, "the server errs as told");
    run.check(view["read"] == 2 && view["failed"] == 0, "two rounds");
    let worst = &view["worst"];
    run.check(worst["compared"] == 200, "all were compared");
    run.check(worst["at_ns"].as_u64() >= Some(2_500_000_000), "not before its time");
    run.check(worst["false_offline"] == forgotten, "false offline");
    run.check(worst["false_online"] == 0, "none false online");
    run.check(worst["wrong"][0]["last"] == "login", "the last event");
    let last = &view["last"];
    run.check(last["false_online"] == uncleared, "false online at the end");
    run.check(last["compared"] == 200 && last["undecided"] == 0, "all were compared at the end");
    run.check(last["wrong"][0]["last"] == "left", "the last event at the end");
    let left = redis.number("SCARD presence");
    run.check(left == Some(uncleared), "Redis has as many");
    let verdicts: Vec<Value> = run.json()["thresholds"].as_array().expect("thresholds").clone();
    let met: Vec<bool> = verdicts.iter().map(|it| it["verdict"] == "met").collect();
    run.check(met == [false, true, true], "thresholds");
}

#[test]
fn an_audit_agrees_with_the_target() {
    finds_what_the_books_say("--shards 2");
}

#[test]
fn an_audit_knows_the_users_of_all_processes() {
    finds_what_the_books_say("--processes 2");
}

/// Each agent compares its own users; the server's books have those of both.
#[test]
fn an_audit_knows_the_users_of_a_fleet() {
    let fleet = Fleet::start(&["a", "b"]);
    finds_what_the_books_say(&format!("--fleet={}", fleet.keys.display()));
}

#[test]
fn an_event_starts_an_audit_on_all_machines_of_a_fleet() {
    let fleet = Fleet::start(&["a", "b"]);
    let redis = Redis::start();
    let target = Target::start(&format!("push --redis {} --forget-every 20", redis.url()));
    let timed = "at: 2500ms\n    at_end: true";
    assert!(DEVICES.contains(timed));
    let text = DEVICES.replace(timed, "at_end: false");
    let text = text.replace("TARGET", &target.address.to_string()).replace("REDIS", &redis.url());
    let text = format!("{text}events: [{{at: 2500ms, audit: presence}}]\n");
    let line = format!("run devices.yaml --json --out record --fleet={}", fleet.keys.display());
    let run = devices(&line, text).run().exits(1);
    let view = view(&run);
    run.check(view["read"] == 1 && view["failed"] == 0, "one round");
    run.check(view["last"]["compared"] == 200, "all were compared");
    run.check(view["last"]["false_offline"] == target.counts("/push/forgotten"), "forgotten");
    run.says(&["0 false online, 10 false offline"]);
}

/// The second controller has what the first one read: the rounds of the agents, what the service
/// counted before the load, and where its count was wrong since.
#[test]
fn audits_go_on_with_another_controller() {
    let fleet = Fleet::start(&["a", "b"]);
    let redis = Redis::start();
    let target = Target::start(&format!("push --redis {} --forget-every 20", redis.url()));
    let text = DEVICES.replace("TARGET", &target.address.to_string());
    let text = text.replace("REDIS", &redis.url()).replace("for: 5s", "for: 14s");
    // Of an earlier run the service counts twenty.
    let earlier = text.split("audits:").next().expect("the sessions").to_string();
    let earlier = format!("{earlier}load: [{{users: 20, at_once: true, for: 500ms}}]\n");
    devices("run devices.yaml --quiet --no-record", earlier).run().exits(0);
    let count = |name: &str, path: &str| {
        let books = format!("{{http: \"http://{}/throng/stats\", json: {path}}}", target.admin);
        format!(
            "  - {{name: {name}, count: {books}, equals: ok(\"bind\"), at: 3s, at_end: true}}\n"
        )
    };
    let counts = count("binds", "$.push.binds") + &count("requests", "$.requests");
    let text = text.replace("check: {code: 0}", "check: {code: 0}\n        name: bind");
    let text = text.replace("thresholds:", &format!("{counts}thresholds:"));
    let keys = format!("--fleet={}", fleet.keys.display());
    let child = devices(&format!("run devices.yaml --json --out record {keys}"), text).start();
    child.until("all are online", || target.counts("/push/binds") == 220);
    let standby = throng(&format!("resume --standby --json --out taken {keys}")).start();
    standby.hears("it waits", |_, err| err.contains("on standby for run").then_some(()));
    let record = child.folder().join("record");
    let events = record.join("events.ndjson");
    let count_of =
        |word: &str| std::fs::read_to_string(&events).map_or(0, |text| text.matches(word).count());
    child.until("all have been read", || {
        count_of("\"audited\"") == 1 && count_of("\"books-read\"") == 2
    });
    // Orders come to the agents in their sequence: with this one, what is kept is on the bus.
    throng(&format!("control {} users 199", record.display())).run().exits(0);
    child.until("one has left", || target.counts("/connections/open") == 199);
    child.signal(libc::SIGKILL);
    drop(child.wait());
    let run = standby.wait().exits(1);
    let audits = run.json()["audits"].clone();
    let view = &audits[0]["views"][0];
    run.check(view["read"] == 2 && view["failed"] == 0, "two rounds");
    // One of eleven was forgotten in the earlier run.
    run.check(view["worst"]["false_offline"] == target.counts("/push/forgotten") - 1, "forgotten");
    run.check(view["last"]["compared"] == 200, "all were compared at the end");
    let (binds, requests) = (&audits[1]["entries"], &audits[2]["entries"]);
    let of = |entries: &Value, name: &str| -> Vec<i64> {
        let all = entries.as_array().into_iter().flatten();
        all.filter_map(|entry| entry[name].as_i64()).collect()
    };
    run.check(of(binds, "before").iter().all(|before| *before == 20), "what was there before");
    run.check(of(binds, "said").last() == Some(&200), "the last reading");
    run.check(of(binds, "off").iter().all(|off| *off == 0), "the service counts right");
    // What the first controller read, what is read late, and at the end.
    run.check(of(requests, "off") == [-200, -200, -200], "each wrong reading is kept");
}

#[test]
fn an_unreadable_view_is_reported_and_the_run_continues() {
    let redis = Redis::start();
    let target = Target::start("push");
    let text = DEVICES.replace("TARGET", &target.address.to_string());
    let text = text.replace("REDIS", "redis://127.0.0.1:1").replace("5s", "3s");
    let run = devices("run devices.yaml --out record", text).run();
    run.says(&["audit presence: set cannot be read"]);
    drop(redis);
}

/// An event begins the rounds, and commands of the controller's host read the target's side.
const COMMANDS: &str = r#"name: audited by commands
target: TARGET
protocol: miop.protocol.yaml
sessions:
  device:
    before:
      - connect
      - request: {bind: {device: "d${user.id}", key: pk}}
        name: bind
        check: {code: 0}
    steps:
      - stay: forever
audits:
  - name: presence
    at_end: false
    agree_within: 1s
    views:
      cli: {run: "redis-cli -p PORT SMEMBERS presence", id: "d${user.id}"}
  - name: books
    at_end: false
    count: {run: "redis-cli -p PORT SCARD presence"}
    equals: ok("bind")
events:
  - {at: 2500ms, audit: presence}
  - {at: 2500ms, audit: books}
thresholds:
  - audit presence false_offline = 0
  - audit books off = 0
load: [{users: 200, at_once: true, for: 6s}]
"#;

#[test]
fn an_event_starts_an_audit_of_command_output() {
    let redis = Redis::start();
    let target = Target::start(&format!("push --redis {} --forget-every 20", redis.url()));
    let text = COMMANDS.replace("TARGET", &target.address.to_string());
    let text = text.replace("PORT", &redis.port.to_string());
    let audited = |line: &str| {
        throng(&format!("run devices.yaml --json --out record {line}"))
            .file("devices.yaml", text.clone())
            .file("miop.protocol.yaml", MIOP)
    };
    audited("").run().exits(2).says(&["commands-not-allowed", "SMEMBERS presence"]);
    let run = audited("--allow-commands").run().exits(1);
    let forgotten = target.counts("/push/forgotten");
    run.check(forgotten == 10, "the server forgets as told");
    let json = run.json();
    let worst = &json["audits"][0]["views"][0]["worst"];
    run.check(worst["compared"] == 200, "all were compared");
    run.check(worst["false_offline"] == forgotten, "false offline");
    let entry = &json["audits"][1]["entries"][0];
    run.check(entry["said"] == 190 && entry["least"] == 200, "the books");
    run.check(entry["off"] == -(forgotten as i64), "how many are missing");
    let events = &json["events"];
    let told = |at: usize| (events[at]["status"].clone(), events[at]["detail"].clone());
    let found = "0 false online, 10 false offline, 0 on the wrong node, 0 undecided";
    run.check(told(0) == ("done".into(), found.into()), "the event says what was found");
    run.check(told(1) == ("done".into(), "the service counts 190".into()), "and of books too");
}
