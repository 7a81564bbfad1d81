//! The push service with a real Redis beside it: devices bind, are pushed to and acknowledge.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use tempfile::TempDir;

use crate::run::{Child, Throng, throng};
use crate::servers::{Target, free_port, program};

const EXAMPLE: &str = include_str!("../../../../../examples/push-service.yaml");
const CHAT: &str = include_str!("../../../../../examples/chat.protocol.yaml");
const MIOP: &str = include_str!("../../../../../examples/miop.protocol.yaml");

/// A redis-server on a port of its own that keeps nothing on disk.
pub(crate) struct Redis {
    child: Child,
    _home: TempDir,
    pub(crate) port: u16,
}

impl Redis {
    #[track_caller]
    pub(crate) fn start() -> Redis {
        Redis::on(free_port())
    }

    #[track_caller]
    pub(crate) fn on(port: u16) -> Redis {
        let home = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(program("redis-server", "redis-server"));
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--daemonize", "no"]).current_dir(home.path());
        let child = Child::start(command);
        child.hears("redis to listen", |out, _| {
            out.contains("Ready to accept connections").then_some(())
        });
        Redis { child, _home: home, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// One command, and the number it is answered with.
    pub(crate) fn number(&self, command: &str) -> Option<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.lines().next()?.strip_prefix(':')?.parse().ok()
    }

    /// Ended without a word, as by a power cut.
    fn killed(self) -> u16 {
        self.child.signal(libc::SIGKILL);
        self.port
    }
}

/// Devices that stay and acknowledge, and one who pushes to all of them over HTTP.
const DEVICES: &str = r#"name: devices
target: TARGET
protocol: miop.protocol.yaml
sessions:
  admin:
    users: 1
    target: http://ADMIN
    protocol: none
    steps:
      - {rendezvous: all are there, users: 101}
      - repeat: 3
        steps:
          - http: POST /push
            name: push all
            json: {to: all, id: "${random.int(1, 1000000000)}", data: {hello: 1}}
            check: {status: 202, json.addressed: 100}
      - {rendezvous: all are told, users: 101}
  device:
    heartbeat: {every: 1s, lost_after: 1s}
    before:
      - connect
      - request: {bind: {device: "d${user.id}", key: pk}}
        check: {code: 0}
      - {rendezvous: all are there, users: 101}
    on:
      - {message: push, name: pushed, do: [{send: {received: {id: "${message.id}"}}}]}
    steps:
      - {rendezvous: all are told, users: 101}
      - stay: 4s
deliveries:
  pushes:
    sent: push all
    received: push
    match: {sent: json.id, received: id}
    stamp: sent_ns
    lost_after: 3s
load: [{iterations: 101, users: 101}]
"#;

fn running(target: &Target, text: &str, line: &str) -> Throng {
    let text = text
        .replace("TARGET", &target.address.to_string())
        .replace("ADMIN", &target.admin.to_string());
    throng(&format!("run devices.yaml --json --out record {line}"))
        .file("devices.yaml", text)
        .file("miop.protocol.yaml", MIOP)
}

#[test]
fn every_push_is_accounted_for() {
    let redis = Redis::start();
    let target = Target::start(&format!("push --workers 2 --redis {}", redis.url()));
    let run = running(&target, DEVICES, "--shards 3").run().exits(0);
    assert_eq!(target.counts("/push/bound"), 100, "{run}");
    assert_eq!(target.counts("/push/addressed"), 300, "{run}");
    // Each by the number of the push.
    assert_eq!(target.counts("/push/acknowledged"), 300, "{run}");
    assert_eq!(target.counts("/push/misnumbered"), 0, "{run}");
    let row = run.row("deliveries", "pushes");
    for (figure, wanted) in
        [("sent", 3), ("expected", 300), ("delivered", 300), ("lost", 0), ("excused", 0)]
    {
        run.check(row[figure] == wanted, figure);
    }
    for none in ["twice", "out_of_order", "after_lost", "stray", "foreign", "unwatched"] {
        run.check(row[none] == 0, none);
    }
    run.check(row["latency"]["count"] == 300, "each has its latency");
    run.check(run.row("pushed", "pushed")["count"] == 300, "all of them are pushes");
    run.check(run.row("steps", "received")["ok"] == 300, "each is acknowledged");
    // A machine that is busy may lose some of these.
    run.has("/total/failed", run.figure("/heartbeats/lost") as u64);
    let sent = run.figure("/heartbeats/sent");
    run.check(sent >= 300.0 && sent == target.counts("/push/heartbeats") as f64, "heartbeats");
    target.comes_to("/connections/open", 0);
}

#[test]
fn every_push_that_is_lost_is_named() {
    let target = Target::start("push --workers 2 --lose-every 20");
    let run = running(&target, DEVICES, "--shards 2").run().exits(0);
    assert_eq!(target.counts("/deliveries/lost"), 15, "{run}");
    let row = run.row("deliveries", "pushes");
    run.check(row["expected"] == 300 && row["lost"] == 15, "as many as the target says");
    assert_eq!(target.counts("/push/acknowledged"), 285, "{run}");
}

/// Devices that come and go, so that there is always somebody who binds.
const BINDING: &str = r#"name: binding
target: TARGET
protocol: miop.protocol.yaml
sessions:
  device:
    users: 20
    before:
      - connect
      - request: {bind: {device: "d${user.id}", key: pk}}
        name: stays
        retry: {times: forever, wait: 100ms..300ms}
        check: {code: 0}
    steps: [{stay: forever}]
  guest:
    weight: 1
    steps:
      - connect
      - {request: {bind: {device: "d${user.id}", key: pk}}, check: {code: 0}, timeout: 5s}
      - think: 100ms
      - disconnect
      - think: 100ms
load: [{users: 40, for: 8s}]
"#;

#[test]
fn redis_fails_during_the_run_and_nothing_is_lost() {
    let redis = Redis::start();
    let words = format!("--redis {} --redis-wait --redis-timeout 300ms", redis.url());
    let target = Target::start(&format!("push --workers 2 {words}"));
    let child = running(&target, BINDING, "--shards 2").start();
    child.until("devices to be bound", || {
        target.counts("/push/bound") > 60 && redis.number("SCARD presence") > Some(19)
    });
    let port = redis.killed();
    child.until("binds to fail", || target.counts("/push/unconfirmed") > 10);
    let bound = target.counts("/push/bound");
    let redis = Redis::on(port);
    child.until("binds to be confirmed again", || target.counts("/push/bound") > bound + 40);
    // Those who stay were bound before, and nobody told Redis of them again.
    child.until("presence to be complete", || redis.number("SCARD presence") >= Some(20));
    assert_eq!(target.counts("/push/redis/reconnects"), 1);
    let run = child.wait().exits(0);
    let row = run.row("steps", "bind");
    run.check(row["failed"].as_u64() >= Some(10), "failed binds");
    let json = run.json();
    let rows = json["errors"].as_array().cloned().unwrap_or_default();
    let fails =
        |row: &serde_json::Value| row["step"] == "bind" && row["cause"] == "field-unexpected";
    run.check(rows.iter().any(fails), "code 2 is no success");
    // No bind is in no figure: each is good, failed, or cut off by the end.
    let answered = run.row("steps", "stays")["count"].as_u64().unwrap_or_default()
        + row["count"].as_u64().unwrap_or_default();
    let told = target.counts("/push/binds");
    run.check((answered..=answered + 40).contains(&told), &format!("{answered} of {told}"));
    let (good, bad) = (run.row("steps", "stays")["ok"].as_u64(), row["ok"].as_u64());
    let good = good.unwrap_or_default() + bad.unwrap_or_default();
    run.check((good..=good + 40).contains(&target.counts("/push/bound")), "the good ones");
    // The death shows in the curves: seconds with failures, and seconds without.
    let text = std::fs::read_to_string(run.folder().join("record/intervals.ndjson"));
    run.check(text.expect("intervals").lines().count() >= 8, "a line for each second");
}

#[test]
fn presence_is_complete_in_a_new_redis() {
    let redis = Redis::start();
    let target = Target::start(&format!("push --redis {}", redis.url()));
    let text = BINDING.split("  guest:").next().map(|it| it.replace("users: 20", "users: 50"));
    let text = text.expect("a session") + "load: [{users: 50, for: 6s}]\n";
    let child = running(&target, &text, "").start();
    child.until("all to be bound", || redis.number("SCARD presence") == Some(50));
    let port = redis.killed();
    child.until("the target to miss it", || target.stats()["push"]["redis"]["connected"] == false);
    let redis = Redis::on(port);
    child.until("all to be there", || redis.number("SCARD presence") == Some(50));
    let run = child.wait().exits(0);
    // Nobody bound again for this.
    assert_eq!(target.counts("/push/binds"), 50, "{run}");
    run.has("/total/failed", 0);
    target.comes_to("/connections/open", 0);
    redis.child.until("all to be gone", || redis.number("SCARD presence") == Some(0));
}

#[test]
fn the_example_runs() {
    let redis = Redis::start();
    let target = Target::start(&format!("push --redis {} --push-every 1s", redis.url()));
    let mut text = EXAMPLE.to_string();
    let (url, again) =
        (redis.url(), format!("redis-cli -p {} client kill type normal", redis.port));
    for (old, new) in [
        ("127.0.0.1:9100", "TARGET"),
        ("127.0.0.1:9101", "ADMIN"),
        ("redis://127.0.0.1:6390\",", &format!("{url}\",")),
        ("systemctl restart redis", &again),
        ("stability + 30m", "stability + 500ms"),
        ("restart Redis + 60s", "restart Redis + 300ms"),
        ("every: 10m", "at: 2s"),
        ("agree_within: 100s", "agree_within: 200ms"),
        ("within 60s", "within 1s"),
        ("time: 5m", "time: 1s"),
        ("step: 60_000, every: 30s, to: 1_020_000", "step: 50, every: 500ms, to: 100"),
        ("for: 2h", "for: 2s"),
        ("users: 120_000, at_once: true, for: 2m", "users: 120, at_once: true, for: 2s"),
        ("churn: {share: 20%, every: 10s", "churn: {share: 20%, every: 1s"),
        ("for: 10m", "for: 3s"),
        ("name: drain, users: 0", "name: drain, users: 0, for: 1s"),
    ] {
        assert!(text.contains(old), "examples/push-service.yaml has no `{old}`");
        text = text.replace(old, new);
    }
    let run = running(&target, &text, "--shards 2 --allow-commands").run().exits(0);
    run.has("/total/failed", 0);
    // Both views know all devices of the ceiling, after Redis has lost its clients.
    for view in ["/audits/0/views/0", "/audits/0/views/1"] {
        run.check(run.figure(&format!("{view}/read")) >= 1.0, "it was read");
        run.has(&format!("{view}/worst/compared"), 100);
        run.has(&format!("{view}/worst/agree"), 100);
    }
    let events = &run.json()["events"];
    run.check(events[0]["status"] == "done", "Redis was cut off");
    run.check(events[1]["status"] == "done", "the audit was done");
    // All devices of the ceiling and of the burst, and those who came back.
    let binds = 220.0 + run.figure("/connections/reconnects");
    assert_eq!(target.counts("/push/bound") as f64, binds, "{run}");
    run.has("/phases/4/users_online", 120);
    run.check(target.counts("/push/reports") > 0, "they report");
    let (reset, vanished) = ("/connections/reset_by_us", "/connections/vanished");
    run.check(run.figure(reset) > 0.0 && run.figure(vanished) > 0.0, "in turn");
    // Who vanished and never came back is still there for the target, and nobody else.
    let vanished = run.figure(vanished) as u64;
    redis.child.until("the others to be gone", || target.counts("/connections/open") <= vanished);
    redis.child.until("the mirror to be right", || {
        redis.number("SCARD presence") == Some(target.counts("/push/online"))
    });
}

/// Members of a chat room and devices, each with its own protocol.
const BOTH: &str = r#"name: both
target: CHAT
protocol: chat.protocol.yaml
sessions:
  member:
    users: 20
    before:
      - connect
      - request: {join: {room: 1, user: "${user.id}", token: "t-${user.id}"}}
        check: {code: 0}
      - {rendezvous: all are there, users: 40}
    steps:
      - request: {say: {id: "${random.u64()}", sent_ns: "${now.ns()}", text: hi}}
      - stay: 3s
  device:
    users: 20
    target: TARGET
    protocol: miop.protocol.yaml
    before:
      - connect
      - request: {bind: {device: "d${user.id}", key: pk}}
        check: {code: 0}
      - {rendezvous: all are there, users: 40}
    steps: [{stay: 3s}]
deliveries:
  talk: {sent: say, received: said, match: id, stamp: sent_ns, lost_after: 2s}
load: [{iterations: 40, users: 40}]
"#;

#[test]
fn two_protocols_are_spoken_in_one_run() {
    let (chat, target) = (Target::start("chat"), Target::start("push"));
    let text = BOTH.replace("CHAT", &chat.address.to_string());
    let run = running(&target, &text, "--shards 2");
    let run = run.file("chat.protocol.yaml", CHAT).run().exits(0);
    run.has("/total/failed", 0);
    assert_eq!((chat.counts("/chat/joins"), target.counts("/push/bound")), (20, 20), "{run}");
    // Everyone who speaks the protocol of the message is its audience.
    let row = run.row("deliveries", "talk");
    run.check(row["expected"] == 400 && row["delivered"] == 400, "members, and nobody else");
}
