//! A run in several processes: merged it is the run of one, whatever becomes of the processes.

use std::path::Path;

use crate::run::{Child, Run, Throng, throng};
use crate::scribe::Scribe;
use crate::servers::Target;

/// Users who have so much to do together, who arrive, who stay, and rows that nobody takes twice.
fn scenario(target: &Target) -> String {
    format!(
        "target: {}
seed: 15
data: {{rows: {{csv: rows.csv, take: unique}}}}
sessions:
  worker: {{steps: [{{http: \"GET /?row=${{data.rows.id}}\"}}]}}
  comer: {{steps: [{{http: GET /come}}, {{think: 50ms}}, {{http: GET /go}}]}}
  stayer: {{steps: [{{http: GET /stay}}, {{think: 1h}}]}}
loads:
  workers: {{sessions: worker, phases: [{{name: work, iterations: 307, users: 11}}]}}
  comers: {{sessions: comer, phases: [{{name: rush, arrivals: {{from: 5/s, to: 60/s}}, for: 2s}}, {{name: last, for: 1s}}]}}
  stayers:
    sessions: stayer
    phases: [{{name: up, users: {{to: 17, rate: 20/s}}}}, {{name: hold, for: 1s}}]
thresholds:
  - errors = 0
  - unmet = 0 in comers
  - iterations.started = 307 in workers
",
        target.http("")
    )
}

/// A run of it: 454 requests over 93 connections.
pub(crate) fn mixed(line: &str, target: &Target) -> Throng {
    let rows: String = (0..1000).map(|row| format!("{row}\n")).collect();
    throng(line).file("s.yaml", scenario(target)).file("rows.csv", format!("id\n{rows}"))
}

fn command(target: &Target, processes: usize) -> Throng {
    let line = format!("run s.yaml --json --shards 2 --processes {processes} --out record");
    mixed(&line, target)
}

/// How often each step was begun.
pub(crate) fn begun(run: &Run) -> Vec<(String, u64)> {
    let rows = run.json()["steps"].as_array().cloned().unwrap_or_default();
    let row =
        |row: &serde_json::Value| Some((row["name"].as_str()?.to_string(), row["begun"].as_u64()?));
    rows.iter().filter_map(row).collect()
}

#[test]
fn one_two_and_five_processes_have_the_same_results() {
    let mut first = None;
    for processes in [1, 2, 5] {
        let target = Target::start("http");
        let run = command(&target, processes).run().exits(0);
        let all = begun(&run);
        let sum: u64 = all.iter().map(|(_, count)| count).sum();
        assert_eq!(target.counts("/requests"), sum, "{run}");
        // Those who stay, who arrive, and who work: each has a connection of its own.
        assert_eq!(target.counts("/connections/accepted"), 17 + 65 + 11, "{run}");
        let json = run.json();
        assert_eq!(json["users"]["started"], 17 + 65 + 11, "{run}");
        assert_eq!(json["run"]["shards"], 2 * processes, "{run}");
        let machines = json["machines"].as_array().map_or(0, Vec::len);
        assert_eq!(machines, if processes > 1 { processes } else { 0 }, "{run}");
        // Those who arrive.
        assert_eq!((run.wanted(), run.figure("/users/starts_begun")), (65, 65.0), "{run}");
        assert_eq!(*first.get_or_insert(all.clone()), all, "{processes} processes\n{run}");
        let again = report(&run).exits(0);
        assert_eq!(begun(&again), all, "{again}");
        assert_eq!(again.json()["machines"], json["machines"], "{again}");
    }
}

fn report(run: &Run) -> Run {
    throng("report --json").arg(run.folder().join("record")).run()
}

/// A long run in three processes, and their pids, once all of them have users.
fn under_way(target: &Target) -> (Child, Vec<i32>) {
    let text = format!(
        "target: {}
sessions: {{reader: {{steps: [{{http: GET /read}}, {{think: 20ms}}]}}}}
load: [{{users: 12, for: 60s}}]
",
        target.http("")
    );
    let line = "run s.yaml --json --shards 1 --processes 3 --out record";
    let child = throng(line).file("s.yaml", text).start();
    child.until("users come", || target.counts("/requests") > 30);
    child.until("two seconds are recorded", || seconds(child.folder()) > 1);
    let pids = children(child.id());
    assert_eq!(pids.len(), 3);
    (child, pids)
}

/// How many lines of the third process are recorded.
fn seconds(folder: &Path) -> usize {
    let text = std::fs::read_to_string(folder.join("record/intervals.ndjson")).unwrap_or_default();
    text.lines().filter(|line| line.contains("\"machine\":2")).count()
}

pub(crate) fn children(of: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let text: String = tasks.filter_map(|task| read(task).ok()).collect();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn is_alive(pid: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

pub(crate) fn kill(pid: i32) {
    // SAFETY: a signal to a process that this test has started.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

#[test]
fn an_interrupt_ends_all_processes_gracefully() {
    let target = Target::start("http");
    let (child, pids) = under_way(&target);
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    let json = run.json();
    let [begun, ok, interrupted] =
        ["begun", "ok", "interrupted"].map(|field| json["total"][field].as_u64().unwrap_or(0));
    assert_eq!(begun, ok + interrupted, "{run}");
    assert_eq!(target.counts("/requests"), ok, "{run}");
    assert!(pids.into_iter().all(|pid| !is_alive(pid)), "{run}");
}

#[test]
fn a_killed_process_is_named_and_the_others_continue() {
    let target = Target::start("http");
    let (child, pids) = under_way(&target);
    kill(pids[1]);
    child.hears("that it is lost", |_, err| {
        err.contains("process 2 and all its users were lost").then_some(())
    });
    let before = target.counts("/requests");
    child.until("the others go on", || target.counts("/requests") > before + 50);
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    for json in [run.json(), report(&run).exits(130).json()] {
        let reasons = json["outcome"]["invalid_reasons"].to_string();
        run.check(reasons.contains("machine-lost") && reasons.contains("signal 9"), &reasons);
        run.check(json["machines"][1]["lost_at_ns"].as_u64() > Some(0), "it says when");
        run.check(json["machines"][0]["lost_at_ns"].is_null(), "the first is there");
        run.check(json["record"]["unbalanced"] == serde_json::json!([]), "no row is to blame");
    }
}

#[test]
fn the_others_end_when_the_desk_is_killed_and_every_full_second_is_there() {
    let target = Target::start("http");
    let (child, pids) = under_way(&target);
    let line = child.folder().join("record/intervals.ndjson");
    let lines = std::fs::read_to_string(&line).expect("a record").lines().count() as u64;
    child.signal(libc::SIGKILL);
    let run = child.wait().exits(1000 + libc::SIGKILL);
    while pids.iter().any(|pid| is_alive(*pid)) {
        std::thread::yield_now();
    }
    let after = target.counts("/requests");
    let json = report(&run).exits(130).json();
    run.check(json["run"]["ended"].is_null(), "it has no end");
    run.check(json["total"]["ok"].as_u64() <= Some(after), "no more than the target has seen");
    let text = std::fs::read_to_string(&line).expect("a record");
    assert!(text.lines().count() as u64 >= lines);
    let ok = json["total"]["ok"].as_u64().unwrap_or(0);
    run.check(ok > 0, "what was recorded is summed up");
}

/// A closed load uses rows as fast as it can: whoever is through first ends its part alone.
#[test]
fn all_rows_are_used_up_however_fast_each_process_is() {
    let scribe = Scribe::start();
    let items: Vec<String> = (0..91).map(|number| number.to_string()).collect();
    let text = format!(
        "target: {}
data: {{ids: {{list: [{}], take: unique, at_end: stop}}}}
sessions:
  reader:
    steps: [{{http: 'GET /row/${{data.ids}}'}}, {{think: \"${{user.id % 3 == 0 ? '5ms' : '40ms'}}\"}}]
load: [{{users: 6, for: 60s}}]
",
        scribe.target(),
        items.join(", "),
    );
    for processes in [1, 3] {
        let line = format!("run s.yaml --json --shards 1 --processes {processes}");
        let run = throng(&line).file("s.yaml", &text).run().exits(0);
        run.has("/total/ok", 91);
        run.says(&["the run ended when its data ran out"]);
    }
    let mut rows: Vec<String> = scribe.book().into_iter().map(|asked| asked.what).collect();
    rows.sort();
    let count = rows.len();
    rows.dedup();
    assert_eq!((count, rows.len()), (2 * 91, 91), "each row once in each run");
}

#[test]
fn unsupported_features_of_several_processes_are_refused_by_name() {
    let one = "target: http://127.0.0.1:1
sessions: {a: {steps: [{http: GET /}]}}
load: [{iterations: 4, users: 2}]
";
    let run = throng("run s.yaml --processes 2 --back-off 60%").file("s.yaml", one).run().exits(2);
    run.says(&["`--back-off` does not work across processes", "nothing was sent"]);
    let alone = throng("post").run().exits(2);
    alone.says(&["`throng post` is started by `throng run --processes`"]);
}
