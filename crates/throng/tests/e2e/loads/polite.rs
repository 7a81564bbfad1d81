//! Machines that have more important work: what an agent's owner allows it to take holds for the
//! process that makes the load, and it leaves the host to others while they are busy.

use std::process::{Child as Process, Command};

use serde_json::Value;

use crate::machines::fleet::Fleet;
use crate::run::{Child, Run, Throng, throng};
use crate::servers::Target;

/// Another program that is busy, until it is dropped.
struct Busy(Process);

impl Busy {
    fn begin() -> Busy {
        let mut command = Command::new("sh");
        Busy(command.args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Steps of machines that backed off: which, and to how much.
fn steps(run: &Run) -> Vec<(String, u64)> {
    let steps = run.json()["back_offs"]["first"].as_array().cloned().unwrap_or_default();
    let step = |step: &Value| {
        (step["machine"].as_str().unwrap_or_default().into(), step["percent"].as_u64().unwrap_or(0))
    };
    steps.iter().map(step).collect()
}

/// Starts per second and machine, in the seconds from `from` on.
fn begun(run: &Run, from: u64) -> [u64; 2] {
    let text = std::fs::read_to_string(run.folder().join("record/intervals.ndjson"));
    let mut begun = [0; 2];
    for line in text.expect("a record").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        if line["second"].as_u64() >= Some(from) {
            let steps = line["steps"].as_array().cloned().unwrap_or_default();
            let count: u64 = steps.iter().filter_map(|step| step["count"].as_u64()).sum();
            begun[line["machine"].as_u64().unwrap_or(0) as usize] += count;
        }
    }
    begun
}

fn scenario(target: &Target, load: &str) -> String {
    let session = "{reader: {steps: [{http: GET /read}]}}";
    format!("target: {}\nsessions: {session}\nload: [{load}]\n", target.http(""))
}

/// A run of so many agents.
fn over(fleet: &Fleet, agents: u64) -> Throng {
    throng(&format!("run s.yaml --json --out record --agents {agents}"))
        .arg(format!("--fleet={}", fleet.keys.display()))
}

#[test]
fn load_is_reduced_on_a_busy_host_and_the_report_says_so() {
    let target = Target::start("http");
    let _busy = Busy::begin();
    let line = "run s.yaml --back-off 1% --json --out record";
    let text = scenario(&target, "{arrivals: 100/s, for: 8s}");
    let run = throng(line).file("s.yaml", text).run().exits(5);
    let steps = steps(&run);
    assert_eq!(steps.first().map(|step| step.1), Some(50), "{run}");
    assert!(target.counts("/requests") < 760, "{run}");
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
    // On a host that is as busy as that, it may have been late besides.
    let reasons = run.json()["outcome"]["invalid_reasons"].as_array().cloned().unwrap_or_default();
    assert!(reasons.iter().any(|reason| reason["reason"] == "backed-off"), "{run}");
    let record = run.folder().join("record");
    throng("report --details")
        .arg(&record)
        .run()
        .exits(5)
        .says(&["percentage of its share", "50 %"]);
    throng("report --lang zh").arg(&record).run().exits(5).says(&["让出资源", "--back-off 为 1 %"]);
}

#[test]
fn a_threshold_accepts_a_part_of_the_load() {
    let target = Target::start("http");
    let _busy = Busy::begin();
    let line = "run s.yaml --back-off 1% --json --out record";
    let text = scenario(&target, "{arrivals: 100/s, for: 8s}");
    let text = format!("{text}thresholds: [generated > 30%, generated > 99%]\n");
    let run = throng(line).file("s.yaml", text).run();
    let json = run.json();
    let generated = json["back_offs"]["generated_share"].as_f64().expect("a share");
    let verdicts = ["/thresholds/0/verdict", "/thresholds/1/verdict"].map(|it| json.pointer(it));
    assert_eq!(verdicts.map(|it| it.and_then(Value::as_str)), [Some("met"), Some("not-met")]);
    assert_eq!(run.figure("/thresholds/0/figure"), generated, "{run}");
    // Of 800 starts so many were made.
    let made = target.counts("/requests") as f64 / 800.0;
    assert!((made - generated).abs() < 0.1, "{made} {generated} {run}");
    let reasons = json["outcome"]["invalid_reasons"].as_array().cloned().unwrap_or_default();
    assert!(reasons.iter().all(|reason| reason["reason"] != "backed-off"), "{run}");
    run.says(&["% of the load was generated"]);
}

#[test]
fn a_part_generates_its_share_of_the_load() {
    for (text, message) in [
        ("thresholds: [generated > 5]", "`generated` is a share of the load"),
        ("thresholds: [generated > 70% over 5s]", "`generated` covers the whole run"),
        ("abort_when: [generated < 50%]", "`generated` cannot end a run"),
    ] {
        let session = "target: http://127.0.0.1:1\nsessions: {x: {steps: [http: GET /]}}\n";
        let text = format!("{session}load: [{{users: 1, for: 1s}}]\n{text}\n");
        throng("check s.yaml").file("s.yaml", text).run().exits(2).says(&[message]);
    }
}

#[test]
fn one_agent_backs_off_and_the_others_generate_their_parts() {
    let mut fleet = Fleet::start(&["a"]);
    let token = fleet.token("polite");
    let polite = fleet.agent("polite", &token, "--back-off 1%").start();
    polite.hears("joined", |_, err| err.contains("joined").then_some(()));
    fleet.agents.push(("polite".into(), polite));
    let target = Target::start("http");
    let _busy = Busy::begin();
    let text = scenario(&target, "{arrivals: 100/s, for: 12s}");
    let run = over(&fleet, 2).file("s.yaml", text).run().exits(5);
    let steps = steps(&run);
    assert!(!steps.is_empty() && steps.iter().all(|(name, _)| name == "polite"), "{run}");
    let [own, backed_off] = begun(&run, 6);
    assert!(own.abs_diff(300) <= 1 && backed_off < 180, "{own} {backed_off} {run}");
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
    let generated = run.figure("/back_offs/generated_share");
    let made = run.figure("/total/count") / 1200.0;
    assert!((made - generated).abs() < 0.1, "{made} {generated} {run}");
}

/// The process that makes the load of an agent.
fn engine(agent: &Child) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", agent.id()));
    let children = children.expect("its children");
    children.split_whitespace().next().and_then(|id| id.parse().ok()).expect("a child")
}

#[test]
fn budgets_of_an_agent_hold_for_what_makes_its_load() {
    let mut fleet = Fleet::start(&[]);
    let token = fleet.token("a");
    let budgets = "--max-memory 1MiB --nice 7";
    let agent = fleet.agent("a", &token, budgets).start();
    agent.hears("joined", |_, err| err.contains("joined").then_some(()));
    let target = Target::start("http");
    let text = scenario(&target, "{users: {to: 100, rate: 20/s}, for: 6s}");
    let run = over(&fleet, 1).file("s.yaml", text).start();
    target.comes_to("/connections/accepted", 1);
    let tasks = format!("/proc/{}/task", engine(&agent));
    let nices: Vec<String> = std::fs::read_dir(&tasks)
        .expect("its threads")
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok())
        .filter_map(|stat| Some(stat.rsplit_once(')')?.1.split(' ').nth(17)?.to_string()))
        .collect();
    assert!(nices.len() >= 2 && nices.iter().all(|nice| nice == "7"), "{nices:?}");
    let run = run.wait().exits(5);
    assert!(target.counts("/connections/accepted") < 60, "{run}");
    assert_eq!(run.json()["growth"]["held"]["limit"], "memory", "{run}");
    fleet.agents.push(("a".into(), agent));
}

#[test]
fn an_agent_respects_its_processor_limit() {
    let mut fleet = Fleet::start(&[]);
    let token = fleet.token("a");
    let agent = fleet.agent("a", &token, "--max-cpu 1%").start();
    agent.hears("joined", |_, err| err.contains("joined").then_some(()));
    fleet.agents.push(("a".into(), agent));
    let target = Target::start("http");
    let text = scenario(&target, "{users: {to: 200, rate: 20/s}, for: 6s}");
    let run = over(&fleet, 1).file("s.yaml", text).run().exits(5);
    assert_eq!(run.json()["growth"]["held"]["limit"], "cpu", "{run}");
    assert!(target.counts("/connections/accepted") < 110, "{run}");
}
