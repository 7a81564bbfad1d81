//! The push service with a real Redis beside it: devices bind, are pushed to and acknowledge.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use tempfile::TempDir;

use crate::run::{Child, Throng, throng};
use crate::servers::{Target, free_port, program};

const MIOP: &str = include_str!("../../../../examples/miop.protocol.yaml");

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
            json: {to: all, id: "${user.id * 1000 + iteration + random.int(1, 1000000000) * 10000}", data: {hello: 1}}
            check: {status: 202, json.addressed: 100}
      - {rendezvous: all are told, users: 101}
  device:
    heartbeat: {every: 500ms, lost_after: 500ms}
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
    assert_eq!(target.counts("/push/acknowledged"), 300, "{run}");
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
    run.has("/total/failed", 0);
    let sent = run.figure("/heartbeats/sent");
    run.check(sent >= 500.0 && sent == target.counts("/push/heartbeats") as f64, "heartbeats");
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
    weight: 1
    before:
      - connect
      - {request: {bind: {device: "d${user.id}", key: pk}}, name: stays, retry: {times: forever, wait: 100ms..300ms}, check: {code: 0}}
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
fn redis_dies_in_the_middle_and_nothing_is_lost() {
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
    let fails = |row: &serde_json::Value| row["step"] == "bind" && row["cause"] == "check-failed";
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
    let text = BINDING.replace("weight: 1\n    steps:", "users: 0\n    steps:");
    let text = text.replace("users: 40, for: 8s", "users: 50, for: 6s");
    let text = text.split("  guest:").next().map(String::from).expect("a session")
        + "load: [{users: 50, for: 6s}]\n";
    let child = running(&target, &text, "").start();
    child.until("all to be bound", || redis.number("SCARD presence") == Some(50));
    let port = redis.killed();
    child.until("the target to miss it", || !target.redis_is_connected());
    let redis = Redis::on(port);
    child.until("all to be there", || redis.number("SCARD presence") == Some(50));
    let run = child.wait().exits(0);
    // Nobody bound again for this.
    assert_eq!(target.counts("/push/binds"), 50, "{run}");
    run.has("/total/failed", 0);
    target.comes_to("/connections/open", 0);
    redis.child.until("all to be gone", || redis.number("SCARD presence") == Some(0));
}
