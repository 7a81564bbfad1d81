//! `throng monitor --join`: runs of the fleet read the host over its bus, and what they read is
//! what every other way gives.

use serde_json::Value;
use tempfile::TempDir;

use crate::machines::fleet::Fleet;
use crate::run::{Child, Run, throng};
use crate::servers::Target;
use crate::service::host_monitor::Monitor;

/// The only process of its name: those of other tests would have more series than a source may.
struct Daemon {
    process: std::process::Child,
    _folder: TempDir,
}

const PROCESS: &str = "--process shop-daemon";

impl Daemon {
    fn start() -> Daemon {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("shop-daemon");
        std::fs::copy("/bin/sleep", &path).expect("sleep is copied");
        let process = std::process::Command::new(path).arg("300").spawn();
        Daemon { process: process.expect("the daemon starts"), _folder: folder }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

fn joins(fleet: &Fleet, name: &str) -> Child {
    let token = fleet.token(name);
    let line = format!("monitor {PROCESS} --idle 15s");
    let monitor = throng(&line).arg("--join").arg(token).start();
    monitor.hears("joined", |_, errors| errors.contains("joined; waiting").then_some(()));
    monitor
}

/// The names of the series of a source, and the last value of one of them.
fn read(run: &Run, source: &Value) -> (Vec<String>, f64) {
    run.check(source["read"].as_u64() > Some(0), "it was read");
    let series = source["series"].as_array().cloned().unwrap_or_default();
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_string();
    let total = series.iter().find(|row| name(row) == "node_memory_MemTotal_bytes");
    let total = total.and_then(|row| row["last"].as_f64());
    // Listening sockets come and go with other tests.
    let names = series.iter().map(name).filter(|name| !name.contains("port="));
    (names.collect(), total.unwrap_or_default())
}

#[test]
fn a_joined_host_has_the_same_readings_over_the_bus() {
    let target = Target::start("http");
    let fleet = Fleet::start(&["a"]);
    let _daemon = Daemon::start();
    let joined = joins(&fleet, "shop");
    let direct = Monitor::start(&format!("--listen 127.0.0.1:0 {PROCESS}"));
    let text = format!(
        "target: {}
monitor:
- {{joined: shop}}
- {{joined: nobody}}
- {{url: \"{}\", every: 1s}}
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 50ms}}]}}}}
load: [{{users: 4, for: 3500ms}}]
",
        target.http(""),
        direct.url()
    );
    let command = |line: &str| throng(line).file("s.yaml", &text);
    command("check s.yaml").run().exits(0).says(&["shop", "every 1s", "fleet://shop"]);
    let keys = format!("--fleet={}", fleet.keys.display());
    let run = command("run s.yaml --json").arg(keys).run().exits(0);
    let json = run.json();
    let [shop, nobody, direct] = [0, 1, 2].map(|at| json["monitors"][at].clone());
    assert_eq!((&shop["name"], &shop["url"]), (&"shop".into(), &"fleet://shop".into()), "{run}");
    let (joined_names, joined_total) = read(&run, &shop);
    assert!(joined_names.iter().any(|name| name.contains("shop-daemon")), "{run}");
    assert_eq!((joined_names, joined_total), read(&run, &direct), "{run}");
    assert!(joined_total > 0.0, "{run}");
    assert_eq!(nobody["read"], 0, "{run}");
    run.says(&["nobody cannot be read: no monitor with this name responds"]);
    joined.wait().exits(0).says(&["there are no readers"]);
    let alone = command("run s.yaml --json").run().exits(0);
    alone.says(&["shop cannot be read: it has joined a fleet, but this run does not use one"]);
}

#[test]
fn an_invalid_token_is_refused() {
    let run = throng("monitor --join throng-join-nonsense").run().exits(2);
    run.says(&["fleet-keys"]);
    let text = "target: http://127.0.0.1:1\nmonitor: [{joined: a.b, processes: nginx}]\n\
                sessions: {s: {steps: [{http: GET /}]}}\nload: [{users: 1, for: 1s}]\n";
    let run = throng("check s.yaml").file("s.yaml", text).run().exits(2);
    run.says(&["`a.b` is not the name of a token", "`processes` has no effect here"]);
}
