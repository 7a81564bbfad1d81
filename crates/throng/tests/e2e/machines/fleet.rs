//! A fleet over a real nats-server: what its agents do together is what one machine does, and every
//! line comes whatever is killed. The target keeps the books.

use std::path::{Path, PathBuf};

use serde_json::Value;
use throng_fuzz::nats_server;

use crate::machines::processes::{begun, mixed};
use crate::run::{Child, Run, Throng, throng};
use crate::servers::{Target, free_port};

/// The bus and the agents of a fleet, which end with it.
pub(crate) struct Fleet {
    pub(crate) keys: PathBuf,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) agents: Vec<(String, Child)>,
    pub(crate) serve: Option<Child>,
}

impl Drop for Fleet {
    /// The server of the bus would outlive one that is killed.
    fn drop(&mut self) {
        if let Some(serve) = self.serve.take() {
            serve.signal(libc::SIGTERM);
            if !std::thread::panicking() {
                drop(serve.wait());
            }
        }
        if let Some(server) = self.server() {
            // SAFETY: a signal to the server of this fleet, by its own file.
            unsafe { libc::kill(server, libc::SIGKILL) };
        }
    }
}

impl Fleet {
    pub(crate) fn start(agents: &[&str]) -> Fleet {
        let mut fleet = Fleet::made();
        let tokens: Vec<PathBuf> = agents.iter().map(|name| fleet.token(name)).collect();
        fleet.serves();
        agents.iter().zip(&tokens).for_each(|(name, token)| fleet.joins(name, token));
        fleet
    }

    /// A bus without agents.
    pub(crate) fn serving() -> Fleet {
        let mut fleet = Fleet::made();
        fleet.serves();
        fleet
    }

    fn made() -> Fleet {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = folder.path().join("fleet");
        let fleet = Fleet { keys, folder, agents: Vec::new(), serve: None };
        fleet.command(&format!("fleet init --address 127.0.0.1:{}", free_port())).run().exits(0);
        fleet
    }

    /// The bus begins, or goes on with another keeper.
    pub(crate) fn serves(&mut self) {
        let serve = self.command("fleet serve").arg("--nats-server").arg(nats_server()).start();
        serve
            .hears("the bus", |_, err| err.contains("the fleet's bus is running at").then_some(()));
        self.serve = Some(serve);
    }

    /// The one that looks after the server is killed; the server goes on.
    pub(crate) fn keeper_dies(&mut self) {
        if let Some(serve) = self.serve.take() {
            serve.signal(libc::SIGKILL);
            drop(serve.wait());
        }
    }

    /// The process of the server, where it lives.
    pub(crate) fn server(&self) -> Option<i32> {
        let text = std::fs::read_to_string(self.keys.join("server.pid")).ok()?;
        let server = text.trim().parse().ok()?;
        let name = std::fs::read_to_string(format!("/proc/{server}/comm")).ok()?;
        (name.trim() == "nats-server").then_some(server)
    }

    pub(crate) fn joins(&mut self, name: &str, token: &Path) {
        let agent = self.agent(name, token, "").start();
        agent.hears("joined", |_, err| err.contains("joined").then_some(()));
        self.agents.push((name.to_string(), agent));
    }

    /// All agents are connected and wait for a run: each may be chosen for the next one.
    fn is_idle(&self) {
        let idle = || {
            let listed = self.command("fleet agents --json").run().exits(0).json();
            let listed = listed.as_array().cloned().unwrap_or_default();
            listed.len() == self.agents.len() && listed.iter().all(|it| it["stage"] == "idle")
        };
        self.serve.as_ref().expect("a bus").until("all agents to be idle", idle);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.agents.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Where an agent keeps what its engines tell.
    pub(crate) fn disk_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.agent")).join(name)
    }

    pub(crate) fn command(&self, line: &str) -> Throng {
        throng(line).arg("--fleet").arg(&self.keys)
    }

    /// A file with the token of an agent.
    pub(crate) fn token(&self, name: &str) -> PathBuf {
        let run = self.command(&format!("fleet token {name}")).run().exits(0);
        let file = self.folder.path().join(name);
        std::fs::write(&file, &run.out).expect("a file");
        file
    }

    pub(crate) fn agent(&self, name: &str, token: &Path, more: &str) -> Throng {
        let directory = self.folder.path().join(format!("{name}.agent"));
        let line = format!("agent --label name={name} {more}");
        throng(&line).arg("--join").arg(token).arg("--dir").arg(directory)
    }

    pub(crate) fn run(&self, target: &Target, more: &str) -> Throng {
        let keys = format!("--fleet={}", self.keys.display());
        mixed(&format!("run s.yaml --json --out record {more}"), target).arg(keys)
    }
}

/// The machines of a run by its record.
fn machines(run: &Run) -> Vec<String> {
    let text = std::fs::read_to_string(run.folder().join("record/run.json")).expect("a record");
    let info: Value = serde_json::from_str(&text).expect("JSON");
    let machines = info["machines"].as_array().cloned().unwrap_or_default();
    machines.iter().filter_map(|it| it["name"].as_str().map(String::from)).collect()
}

/// The rows of a label have these values, and are as many attempts together, by steps as well.
pub(crate) fn by_label(run: &Run, label: &str, values: &[&str], begun: u64) {
    let rows = run.json()["by_label"].as_array().cloned().unwrap_or_default();
    let rows: Vec<Value> = rows.into_iter().filter(|row| row["label"] == label).collect();
    let told: Vec<&str> = rows.iter().filter_map(|row| row["value"].as_str()).collect();
    assert_eq!(told, values, "{run}");
    let steps = |row: &Value| row["steps"].as_array().cloned().unwrap_or_default();
    let of = |row: &Value| row["begun"].as_u64().unwrap_or(0);
    let total: u64 = rows.iter().map(|row| of(&row["total"])).sum();
    let by_step: u64 = rows.iter().flat_map(steps).map(|row| of(&row)).sum();
    let wanted = if values.is_empty() { 0 } else { begun };
    assert_eq!((total, by_step), (wanted, wanted), "{run}");
}

#[test]
fn a_fleet_does_what_one_machine_does() {
    let fleet = Fleet::start(&["a", "b", "c"]);
    let mut first = None;
    for agents in [1, 2, 3] {
        fleet.is_idle();
        let target = Target::start("http");
        let run = fleet.run(&target, &format!("--agents {agents}")).run().exits(0);
        let all = begun(&run);
        let sum: u64 = all.iter().map(|(_, count)| count).sum();
        assert_eq!(target.counts("/requests"), sum, "{run}");
        assert_eq!(target.counts("/connections/accepted"), 17 + 65 + 11, "{run}");
        assert_eq!(run.json()["users"]["started"], 17 + 65 + 11, "{run}");
        // Those that are heard first take part.
        let names = machines(&run);
        assert_eq!(names.len(), agents, "{run}");
        assert!(names.is_sorted() && names.iter().all(|name| "abc".contains(&**name)), "{run}");
        assert_eq!(*first.get_or_insert(all.clone()), all, "{agents} agents\n{run}");
        let again = throng("report --json").arg(run.folder().join("record")).run();
        assert_eq!(begun(&again), all, "{again}");
        assert_eq!(run.json()["by_label"], again.json()["by_label"], "{again}");
        // Of one machine there is nothing to tell apart.
        let told: Vec<&str> = names.iter().filter(|_| agents > 1).map(|name| &**name).collect();
        by_label(&run, "name", &told, sum);
    }
    fleet.is_idle();
    let target = Target::start("http");
    let one = fleet.run(&target, "--agent-label name=b").run().exits(0);
    assert_eq!(machines(&one), ["b"], "{one}");
}

/// A run of a quarter of a minute, once all agents make load.
fn under_way(fleet: &Fleet, target: &Target) -> Child {
    let keys = format!("--fleet={}", fleet.keys.display());
    let text = format!(
        "target: {}\nsessions: {{reader: {{steps: [{{http: GET /read}}]}}}}\nload: [{{arrivals: 50/s, for: 15s}}]\n",
        target.http("")
    );
    let child = throng("run s.yaml --json --out record").arg(keys).file("s.yaml", text).start();
    child.until("all make load", || target.counts("/requests") > 100);
    child
}

pub(crate) fn lost(run: &Run) -> bool {
    let reasons = run.json()["outcome"]["invalid_reasons"].clone();
    reasons.as_array().is_some_and(|all| all.iter().any(|it| it["reason"] == "machine-lost"))
}

#[test]
fn a_killed_agent_is_named_and_its_lines_arrive_after_its_restart() {
    let mut fleet = Fleet::start(&["a", "b"]);
    let target = Target::start("http");
    let child = under_way(&fleet, &target);
    let (name, agent) = fleet.agents.pop().expect("an agent");
    agent.signal(libc::SIGKILL);
    drop(agent.wait());
    let token = fleet.folder.path().join(&name);
    let again = fleet.agent(&name, &token, "").start();
    let run = child.wait().exits(5);
    assert!(lost(&run), "{run}");
    again.hears("what was left", |_, err| {
        err.contains("of this agent are in the log").then_some(())
    });
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
    // Half of the load was missing for most of the time.
    assert!(run.figure("/total/count") < 700.0, "{run}");
}

#[test]
fn a_killed_bus_loses_nothing() {
    let fleet = Fleet::start(&["a", "b"]);
    let target = Target::start("http");
    let child = under_way(&fleet, &target);
    let serve = fleet.serve.as_ref().expect("the bus");
    let server = fleet.server().expect("a server");
    // SAFETY: a signal to a process that the test has started.
    unsafe { libc::kill(server, libc::SIGKILL) };
    let run = child.wait().exits(0);
    assert_eq!(target.counts("/requests"), 750, "{run}");
    run.has("/total/count", 750);
    serve.hears("again", |_, err| err.contains("; restarting it").then_some(()));
}

#[test]
fn an_agent_that_leaves_ends_its_load_gracefully() {
    let mut fleet = Fleet::start(&["a", "b"]);
    let target = Target::start("http");
    let child = under_way(&fleet, &target);
    let (_, agent) = fleet.agents.pop().expect("an agent");
    agent.signal(libc::SIGTERM);
    agent.wait().exits(0).says(&[
        "` leaves: its users finish their step first; interrupt again to leave now",
        "of this agent are in the log",
    ]);
    let run = child.wait().exits(5);
    assert!(lost(&run), "{run}");
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
}

#[test]
fn a_fleet_run_is_controlled_and_stopped() {
    let fleet = Fleet::start(&["a", "b"]);
    let target = Target::start("http");
    let child = under_way(&fleet, &target);
    let record = child.folder().join("record");
    let control = |words: &str| {
        let line = format!("control {} {words}", record.display());
        throng(&line).run().exits(0)
    };
    control("rate 10/s");
    control("mark here");
    fleet.command("fleet stop").run().exits(0).says(&["ends: users finish"]);
    let run = child.wait().exits(130);
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
    run.check(run.err.contains("marked: here") || run.out.contains("interrupted"), "no mark");
}

#[test]
fn an_agent_declines_what_its_owner_does_not_allow() {
    let fleet = Fleet::start(&["a"]);
    let small = fleet.agent("b", &fleet.token("b"), "--rate-max 40").start();
    small.hears("joined", |_, err| err.contains("joined").then_some(()));
    let target = Target::start("http");
    let child = under_way(&fleet, &target);
    let record = child.folder().join("record");
    // Half of it is more than 40 a second.
    throng(&format!("control {} rate 100/s", record.display())).run().exits(0);
    small.hears("declines", |_, err| {
        err.contains("ignored a request for more load than the owner of this machine allows")
            .then_some(())
    });
    let run = child.wait().exits(0);
    let told = "agent `b`: the requested load exceeds its owner's limit";
    assert!(run.err.contains(told), "{run}");
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
    let events = std::fs::read_to_string(run.folder().join("record/events.ndjson"));
    assert!(
        events
            .expect("events")
            .contains("the requested load exceeds its owner's limit, so its load is unchanged"),
        "{run}"
    );
    // The one makes twice its part, the other its part.
    let makes =
        |machine: usize| run.figure(&format!("/machines/{machine}/generator/lateness/count"));
    assert!(makes(0) > 1.4 * makes(1), "{run}");
}

#[test]
fn impossible_fleet_runs_are_reported_before_anything_is_sent() {
    let fleet = Fleet::start(&["a"]);
    let target = Target::start("http");
    // A machine whose owner allows other targets, and one whose ceiling is lower.
    let strict = fleet.token("strict");
    let agent = fleet.agent("strict", &strict, "").env("THRONG_TARGETS", "192.0.2.1").start();
    agent.hears("joined", |_, err| err.contains("joined").then_some(()));
    let run = fleet.run(&target, "--agents 2").run().exits(3);
    run.says(&[
        "1 of 2 agents refuse to start",
        "strict",
        "not in the list of targets",
        "nothing was sent",
    ]);
    agent.signal(libc::SIGTERM);
    agent.wait().exits(0);
    let small = fleet.agent("strict", &strict, "--users-max 3").start();
    small.hears("joined", |_, err| err.contains("joined").then_some(()));
    let run = fleet.run(&target, "--agents 2").run().exits(3);
    run.says(&["its owner allows only 3", "nothing was sent"]);
    let run = fleet.run(&target, "--agent-label name=north").run().exits(3);
    run.says(&["no suitable agent is online", "a: it has the labels name=a"]);
    let text = std::fs::read_to_string(&strict).expect("a token");
    let torn = &text[..text.len() / 2];
    throng("agent")
        .arg("--join")
        .arg(torn)
        .run()
        .exits(2)
        .says(&["the token is incomplete: copy the whole line that `throng fleet token` printed"]);
    throng("agent --join nowhere").run().exits(2).says(&["`nowhere` is not a token"]);
    throng("fleet agents --fleet nowhere").run().exits(2).says(&["throng fleet init"]);
    assert_eq!(target.counts("/requests"), 0);
}

#[test]
fn agents_send_the_secrets_of_a_scenario_and_no_record_has_them() {
    const SENT: &str = r#"{"password":"swordfish","pin":"given-by-set","word":"letmein99"}"#;
    let fleet = Fleet::start(&["a"]);
    let target = Target::start("http");
    let text = format!(
        "\
target: {}
vars: {{password: swordfish, pin: {{value: none, secret: true}}}}
data: {{accounts: {{csv: accounts.csv}}}}
sessions:
  user:
    steps:
    - http: POST /echo
      headers: {{Authorization: Bearer literal-bearer}}
      json:
        password: \"${{vars.password}}\"
        pin: \"${{vars.pin}}\"
        word: \"${{data.accounts.password}}\"
      check: {{size: {}}}
load: [{{iterations: 3, users: 1}}]
",
        target.http(""),
        SENT.len()
    );
    let in_fleet = |line: &str| throng(line).arg(format!("--fleet={}", fleet.keys.display()));
    let run = in_fleet("run s.yaml --json --out record --set pin=given-by-set")
        .file("s.yaml", text)
        .file("accounts.csv", "name,password\nann,letmein99\n")
        .run()
        .exits(0);
    run.has("/total/ok", 3);
    let record = run.folder().join("record");
    let files = record.read_dir().expect("a record").flatten().filter(|it| it.path().is_file());
    let told = files.map(|it| std::fs::read(it.path()).expect("a file")).collect::<Vec<_>>();
    let told = String::from_utf8_lossy(&told.concat()).into_owned() + &run.out + &run.err;
    for secret in ["swordfish", "given-by-set", "literal-bearer", "letmein99"] {
        run.check(!told.contains(secret), secret);
    }
}

#[test]
fn a_private_key_is_refused_at_the_start() {
    let papers = crate::http::tls::Papers::signed();
    let text = "target: https://127.0.0.1:1\ntls: {certificate: client.pem, key: client.key}\n\
                sessions: {user: {steps: [http: GET /]}}\nload: [{iterations: 1, users: 1}]\n";
    let paper = |name: &str| std::fs::read(papers.path(name)).expect("a file");
    let run = throng("run s.yaml --fleet=nowhere")
        .file("s.yaml", text)
        .file("client.pem", paper("client.pem"))
        .file("client.key", paper("client.key"))
        .run()
        .exits(2);
    run.says(&["error[fleet-unbridged]", "client.key", "nothing was sent"]);
}

/// A token is a password of its machine: whoever lists processes does not see it.
#[test]
fn the_token_of_an_agent_is_not_in_the_list_of_processes() {
    let fleet = Fleet::serving();
    let file = fleet.token("own");
    let text = std::fs::read_to_string(&file).expect("a token");
    let agent = fleet.agent("own", Path::new(text.trim()), "").start();
    agent.hears("joined", |_, err| err.contains("joined").then_some(()));
    let line = std::fs::read(format!("/proc/{}/cmdline", agent.id())).expect("a process");
    let line = String::from_utf8_lossy(&line).into_owned();
    assert!(line.contains("--join") && !line.contains(&text.trim()[..20]), "{line}");
    drop(agent);
    let mut agent = fleet.agent("own", Path::new("-"), "").listens().start();
    agent.types(&text);
    agent.types_no_more();
    agent.hears("joined", |_, err| err.contains("joined").then_some(()));
}

/// The five commands of docs/fleet.md, on a machine that has `nats-server` on its path; the address
/// and the scenario are those of the test.
#[test]
fn the_documented_commands_make_a_run_on_three_machines() {
    let page = include_str!("../../../../../docs/fleet.md");
    let block = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let commands = block.expect("commands").lines().map(|line| {
        let line = line.split(" #").next().unwrap_or_default().trim();
        line.strip_prefix("throng ").expect("a command of throng").to_string()
    });
    let [init, serve, token, agent, run] = &commands.collect::<Vec<_>>()[..] else {
        panic!("five commands make a fleet");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let server = nats_server();
    let beside = server.parent().expect("its folder").display();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    let target = Target::start("http");
    let text = format!(
        "target: {}\nsessions: {{reader: {{steps: [{{http: GET /}}]}}}}\nload: [{{arrivals: 60/s, for: 2s}}]\n",
        target.http("")
    );
    std::fs::write(folder.path().join("shop.yaml"), text).expect("a scenario");
    let there = |line: &str| {
        Throng::under(&format!("env -C {}", folder.path().display()), line).env("PATH", &path)
    };
    let address = format!("127.0.0.1:{}", free_port());
    there(&init.replace("192.0.2.10:4222", &address)).run().exits(0);
    let serve = there(serve).start();
    serve.hears("the bus", |_, err| err.contains("the fleet's bus is running at").then_some(()));
    let mut agents = Vec::new();
    for name in ["east", "west", "north"] {
        let (token, file) = token.split_once(" > ").expect("a file with the token");
        let token = there(&token.replace("east", name)).run().exits(0).out;
        std::fs::write(folder.path().join(file.replace("east", name)), token).expect("a file");
        let line = agent.replace("east", name);
        let agent = there(&line).start();
        agent.hears("joined", |_, err| err.contains("joined").then_some(()));
        agents.push((agent, line));
    }
    let run = there(run).run();
    run.says(&["3 agents generate the load: east, north, west"]);
    assert_eq!(target.counts("/requests"), 120, "{run}");
    // A second process with the same token on the same machine.
    let twice = there(&agents[0].1).run().exits(3);
    twice.says(&["agent `east` is already running here"]);
    serve.signal(libc::SIGTERM);
    serve.wait().exits(0);
}
