//! Names that are looked up again during a run: the hosts file of a file system of its own is the
//! name server.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Child, Run, Throng, binary};
use crate::scribe::{Scribe, ok};

/// Two servers on one port of two addresses, and a command that knows them by one name.
struct Moving {
    first: Scribe,
    second: Scribe,
    port: String,
}

impl Moving {
    /// None where this user may not mount a hosts file.
    fn start() -> Option<Moving> {
        // SAFETY: geteuid reads one number of this process and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return None;
        }
        let first = Scribe::on("127.0.0.2:0", |_, _| ok("first"));
        let port = first.target().rsplit(':').next().map(String::from).expect("a port");
        let second = Scribe::on(&format!("127.0.0.3:{port}"), |_, _| ok("second"));
        Some(Moving { first, second, port })
    }

    /// A run of users that open a connection for each request, one every 20 ms.
    fn run(&self, resolve: &str, address: &str) -> (Child, PathBuf) {
        let script = "mount --bind hosts /etc/hosts && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(binary());
        command.args(["run", "moving.yaml", "--json", "--out", "record"]);
        let text = format!(
            "target: {{url: \"http://moving.test:{}\", resolve: {resolve}}}\n\
             connection: {{keep_alive: false}}\n\
             sessions: {{a: {{steps: [{{http: GET /}}, {{think: 20ms}}]}}}}\n\
             load: [{{users: 2, for: 6s}}]\n",
            self.port
        );
        let throng = Throng::new(command).file("moving.yaml", text).file("hosts", hosts(address));
        let file = throng.folder().join("hosts");
        (throng.start(), file)
    }
}

fn hosts(address: &str) -> String {
    format!("127.0.0.1 localhost\n{address} moving.test\n")
}

/// In place: it is this file that is mounted.
fn move_to(file: &Path, address: &str) {
    std::fs::write(file, hosts(address)).expect("the hosts file");
}

/// The change is told once, in the report and while the run goes on, and both have their row.
fn has_moved(run: &Run, moving: &Moving) {
    let json = run.json();
    let changes = json["changes"].as_array().cloned().unwrap_or_default();
    let told: Vec<&str> = changes.iter().filter_map(|row| row["addresses"].as_str()).collect();
    run.check(told == ["moving.test: 127.0.0.2 -> 127.0.0.3"], &format!("{changes:?}"));
    let said = run.err.matches("127.0.0.2 -> 127.0.0.3").count();
    run.check(said == 1, &format!("told {said} times"));
    let rows = json["targets"].as_array().cloned().unwrap_or_default();
    let opened = |address: &str| {
        let own = format!("{address}:{}", moving.port);
        let row = rows.iter().find(|row| row["address"] == own.as_str());
        row.and_then(|row| row["connections_opened"].as_u64()).unwrap_or_default()
    };
    run.check(opened("127.0.0.2") > 5, "the first has a row");
    run.check(opened("127.0.0.3") == moving.second.accepted(), &format!("{rows:?}"));
}

#[test]
fn new_connections_use_the_current_address() {
    let Some(moving) = Moving::start() else { return };
    let (child, file) = moving.run("every 1s", "127.0.0.2");
    child.until("the first is asked", || moving.first.accepted() > 5);
    move_to(&file, "127.0.0.3");
    child.until("the second is asked", || moving.second.accepted() > 5);
    let at_change = moving.first.accepted();
    let run = child.wait().exits(0);
    run.has("/total/failed", 0);
    // What was opening at that moment may have gone to the first.
    run.check(moving.first.accepted() <= at_change + 2, "the first is left alone");
    has_moved(&run, &moving);
}

#[test]
fn a_name_is_looked_up_again_when_connections_to_it_fail() {
    let Some(mut moving) = Moving::start() else { return };
    let (child, file) = moving.run("on failure", "127.0.0.2");
    child.until("the first is asked", || moving.first.accepted() > 5);
    move_to(&file, "127.0.0.3");
    let before = moving.first.accepted();
    child.until("the first is still asked", || moving.first.accepted() > before + 20);
    assert_eq!(moving.second.accepted(), 0, "nothing has failed");
    moving.first.refuse();
    child.until("the second is asked", || moving.second.accepted() > 5);
    let run = child.wait();
    run.check(run.json()["errors"][0]["cause"] == "connect-refused", "some were refused");
    has_moved(&run, &moving);
}

#[test]
fn a_name_that_no_longer_resolves_keeps_its_addresses() {
    let Some(moving) = Moving::start() else { return };
    let (child, file) = moving.run("every 1s", "127.0.0.2");
    child.until("the first is asked", || moving.first.accepted() > 5);
    std::fs::write(&file, "127.0.0.1 localhost\n").expect("the hosts file");
    let run = child.wait().exits(0);
    run.has("/total/failed", 0);
    run.says(&["`moving.test` cannot be resolved again"]);
    run.check(run.err.matches("cannot be resolved again").count() == 1, "told once");
    run.check(run.json()["changes"].as_array().is_none_or(Vec::is_empty), "nothing has changed");
}
