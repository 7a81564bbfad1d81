//! What the host of the target, or that of throng, lacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{finds, running};
use crate::run::{Child, Throng, throng};
use crate::servers::{Node, Target, free_port};
use crate::service::host_monitor::Monitor;

/// A control group with little memory, which is gone with this.
struct Group {
    path: PathBuf,
}

impl Group {
    fn of(megabytes: u64) -> Group {
        let root = Path::new("/sys/fs/cgroup");
        let is_first = root.join("memory/memory.limit_in_bytes").exists();
        let (parent, limit) = match is_first {
            true => (root.join("memory"), "memory.limit_in_bytes"),
            false => (root.to_path_buf(), "memory.max"),
        };
        let path = parent.join(format!("throng-test-{}", std::process::id()));
        let made = fs::create_dir(&path)
            .and_then(|()| fs::write(path.join(limit), (megabytes << 20).to_string()));
        let why = made.as_ref().err().map(ToString::to_string).unwrap_or_default();
        assert!(made.is_ok(), "this host allows no control groups, as this needs: {why}");
        // Without swap there is none of these.
        let _ = fs::write(path.join("memory.swap.max"), "0");
        Group { path }
    }

    /// Runs the rest of its arguments within.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > $0; exec \"$@\""]).arg(self.path.join("cgroup.procs"));
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// Each request leaves something behind, until the kernel ends the process.
#[test]
fn a_process_that_the_kernel_kills_for_its_memory_is_told_by_the_monitor() {
    const LEAK: &str = r#"
const kept = [];
const server = require("http").createServer((_, response) => {
  kept.push(Buffer.alloc(1 << 20, 1));
  setTimeout(() => response.end("x"), 20);
});
const port = process.argv[2];
server.listen(Number(port), "127.0.0.1", () => console.log("listening " + port));
"#;
    let group = Group::of(160);
    let port = free_port().to_string();
    let node = Node::by(group.command(), LEAK, &[port.as_ref()]);
    let monitor = Monitor::start_first("--listen 127.0.0.1:0");
    let text = format!(
        "target: http://127.0.0.1:{port}\nmonitor: [{{url: \"{}\", every: 1s}}]\nload: [{{users: \
         10, for: 9s}}]\nsessions: {{s: {{steps: [{{http: GET /, timeout: 1s}}, {{think: \
         200ms}}]}}}}\n",
        monitor.url()
    );
    let found = finds(&running(&text).run(), "memory-short");
    assert!(found.contains("the kernel killed a process"), "{found}");
    drop(node);
}

/// A service that is slow from its fourth second to its ninth, and an exporter that says why, as
/// that of its host would.
const WAITS: &str = r#"
const [series, begun] = [process.argv[2], Date.now()];
const waited = () => Math.min(5, Math.max(0, (Date.now() - begun) / 1000 - 4));
const isSlow = () => waited() > 0 && waited() < 5;
const server = require("http").createServer((request, response) => {
  if (request.url === "/metrics") response.end(`# TYPE ${series} counter\n${series} ${waited() * 0.8}\n`);
  else setTimeout(() => response.end("x"), isSlow() ? 60 : 10);
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

#[test]
fn a_host_that_waits_for_its_disks_or_its_memory_is_named() {
    let stagings = [
        ("disk-bound", "node_pressure_io_stalled_seconds_total"),
        ("memory-short", "node_pressure_memory_stalled_seconds_total"),
    ];
    let begin = |(code, series): (&'static str, &str)| {
        let node = Node::start(WAITS, &[series.as_ref()]);
        let url = node.url("http");
        let text = format!(
            "target: {url}\nmonitor: [{{url: \"{url}metrics\", every: 1s}}]\nload: [{{users: 8, \
             for: 14s}}]\nsessions: {{s: {{steps: [http: GET /, {{think: 20ms}}]}}}}\n"
        );
        (code, running(&text).start(), node)
    };
    for (code, run, _node) in stagings.map(begin) {
        let found = finds(&run.wait(), code);
        assert!(found.contains("otherwise"), "slower meanwhile: {found}");
    }
}

#[test]
fn a_full_table_of_connections_is_read_from_the_monitor() {
    const TABLE: &str = r#"
const table = "node_nf_conntrack_entries 65530\nnode_nf_conntrack_entries_limit 65536\n";
const server = require("http").createServer((_, response) => response.end(table));
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;
    let node = Node::start(TABLE, &[]);
    let url = node.url("http");
    let text = format!(
        "target: {url}\nmonitor: [{{url: \"{url}metrics\", every: 1s}}]\nload: [{{users: 2, for: \
         3s}}]\nsessions: {{s: {{steps: [http: GET /, {{think: 100ms}}]}}}}\n"
    );
    let found = finds(&throng("run s.yaml --json").file("s.yaml", text).run(), "conntrack-full");
    assert!(found.contains("65,530 of 65,536"), "{found}");
}

/// Something stops throng for a tenth of a second, twice a second.
#[test]
fn a_generator_that_is_stopped_again_and_again_is_the_cause() {
    let target = Target::start("http");
    let line = format!("bench {} --rate 300 -d 8s --json", target.http(""));
    let child: Child = throng(&line).start();
    let stops = "while kill -STOP $0 2> /dev/null; do sleep 0.1; kill -CONT $0; sleep 0.4; done";
    let mut stopper = Command::new("sh");
    stopper.args(["-c", stops]).arg(child.id().to_string());
    let stopper = Throng::new(stopper).start();
    let run = child.wait();
    finds(&run, "generator-bound");
    stopper.wait();
}
