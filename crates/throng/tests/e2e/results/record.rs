//! What is left of a run: interrupted, killed, recorded on a full disk, and reported again.

use std::path::Path;

use serde_json::Value;

use crate::run::{Child, Run, Throng, binary, throng};
use crate::servers::Target;

/// A run of thirty seconds that is known to be under way.
fn under_way(target: &Target, line: &str) -> Child {
    // The tests themselves may have been started by `nohup`.
    let line = format!("bench {} -c 5 -d 30s {line}", target.http("/"));
    let child = Throng::under("env --default-signal=HUP", &line).start();
    child.hears("two seconds to pass", |out, _| out.contains("\n    2s ").then_some(()));
    child
}

#[track_caller]
fn report(folder: &Path, line: &str) -> Run {
    throng(&format!("report {} {line}", folder.display())).run()
}

#[test]
fn an_interrupted_run_has_a_summary() {
    let target = Target::start("http --latency 5ms");
    let child = under_way(&target, "--out record");
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    run.check(run.took.as_secs() < 20, "it did not stop");
    run.says(&["interrupted", "response time", "GET /"]);
    let again = report(&run.folder().join("record"), "--json").exits(130);
    let json = again.json();
    again.check(json["run"]["interrupted"] == true, "interrupted");
    again.check(json["run"]["ended"].is_string(), "ended");
    again.check(json["outcome"]["exit_code"] == 130, "exit code");
    again.has("/record/lines_lost", 0);
    target.comes_to("/connections/open", 0);
    assert_eq!(again.figure("/total/count"), target.counts("/requests") as f64, "{again}");
}

#[test]
fn sigterm_is_like_ctrl_c() {
    let target = Target::start("http --latency 5ms");
    let child = under_way(&target, "");
    child.signal(libc::SIGTERM);
    child.wait().exits(130).says(&["response time"]);
}

#[test]
fn a_closed_terminal_is_like_ctrl_c() {
    let target = Target::start("http --latency 5ms");
    let child = under_way(&target, "--out record");
    // The kernel and a shell both tell of it.
    child.signal(libc::SIGHUP);
    child.hears("the first to be heard", |_, err| err.contains("interrupted").then_some(()));
    child.signal(libc::SIGHUP);
    let run = child.wait().exits(130);
    run.says(&["interrupted", "response time", "GET /"]);
    let again = report(&run.folder().join("record"), "--json").exits(130);
    again.check(again.json()["run"]["ended"].is_string(), "ended");
    // `nohup` wants it to go on.
    let line = format!("bench {} -c 5 -d 3s", target.http("/"));
    let child = Throng::under("nohup", &line).start();
    child.hears("a second to pass", |out, _| out.contains("\n    1s ").then_some(()));
    child.signal(libc::SIGHUP);
    let run = child.wait().exits(0);
    run.check(!run.err.contains("interrupted"), "it was not asked to stop");
}

#[test]
fn a_limit_on_the_size_of_files_is_like_a_full_disk() {
    let target = Target::start("http --latency 1ms..9ms");
    let line = format!("bench {} -c 10 -d 3s --details --out record", target.http("/"));
    // There is room for what is known before the start, and not for the seconds of the run.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -f 7 && exec \"$@\"", "sh"]).arg(binary()).args(line.split(' '));
    let run = Throng::new(command).run().exits(5);
    run.says(&["error[record-failed]", "ulimit -f", "could not be written", "latency"]);
}

#[test]
fn unwritten_output_is_not_a_success() {
    let target = Target::start("http");
    let shell = |script: &str, line: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, "sh"]).arg(binary()).args(line.split(' '));
        Throng::new(command).run()
    };
    let bench = format!("bench {} -n 4 -c 2 --no-record", target.http("/"));
    for line in [bench.as_str(), &format!("{bench} --json"), "schema", "--help", "explain"] {
        let run = shell("exec \"$@\" > /dev/full", line).exits(5);
        run.says(&["error[output-failed]", "No space left"]);
        run.check(run.err.matches("output-failed").count() == 1, "it is said once");
        // A reader that wants no more.
        let run = shell("{ \"$@\"; echo $? > code; } | head -c 1", line).exits(0);
        let code = std::fs::read_to_string(run.folder().join("code")).expect("a code");
        run.check(code == "0\n" && !run.err.contains("error["), &code);
    }
    // Where mistakes are told as well there is nothing left to say.
    shell("exec \"$@\" > /dev/full 2>&1", "schema").exits(5);
}

#[test]
fn nothing_is_sent_if_the_verdict_cannot_be_written() {
    let target = Target::start("http");
    let line = format!("bench {} -n 4 -c 2 --out record --junit", target.http("/"));
    for path in ["nowhere/verdict.xml", ".", "/proc/verdict.xml"] {
        let run = throng(&line).arg(path).run().exits(2);
        run.says(&["error[file-unwritable]", path, "nothing was sent"]);
        run.check(!run.folder().join("record").exists(), "a record was begun");
    }
    assert_eq!(target.counts("/connections/accepted"), 0);
    let run = throng(&line).arg("verdict.xml").file("verdict.xml", "old").run().exits(0);
    let verdict = std::fs::read_to_string(run.folder().join("verdict.xml")).expect("a verdict");
    run.check(verdict.starts_with("<?xml"), &verdict);
    throng(&line).arg("/dev/stdout").run().exits(0).says(&["<testsuite"]);
}

#[test]
fn a_second_interrupt_ends_immediately() {
    let target = Target::start("http --latency 25s");
    let line = format!("bench {} -c 5 -d 30s --timeout 25s --out record", target.http("/"));
    let child = throng(&line).start();
    child.hears("two seconds to pass", |out, _| out.contains("\n    2s ").then_some(()));
    child.signal(libc::SIGINT);
    child.hears("the first to be heard", |_, err| err.contains("interrupted").then_some(()));
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    run.check(run.took.as_secs() < 15, "it does not end at once");
    let again = report(&run.folder().join("record"), "--json");
    again.check(again.json()["run"]["ended"].is_string(), "ended");
}

#[test]
fn a_killed_run_can_be_reported() {
    let target = Target::start("http --latency 5ms");
    let child = under_way(&target, "--out record");
    child.signal(libc::SIGKILL);
    let run = child.wait().exits(1000 + libc::SIGKILL);
    let folder = run.folder().join("record");
    let again = report(&folder, "").exits(130);
    again.says(&["INCOMPLETE", "response time", "GET /"]);
    let json = report(&folder, "--json").exits(130);
    json.check(json.json()["run"]["ended"].is_null(), "it has no end");
    // The line of the second second is in it.
    let line = run.out.lines().rfind(|line| line.starts_with("    2s ")).expect("a line");
    let ok: f64 = line.split_whitespace().nth(2).and_then(|ok| ok.parse().ok()).expect("a count");
    json.within("/total/ok", ok, target.counts("/requests") as f64);
}

#[test]
fn a_truncated_line_is_skipped() {
    let target = Target::start("http");
    let line = format!("bench {} -c 2 -d 2s --out record", target.http("/"));
    let run = throng(&line).run().exits(0);
    let path = run.folder().join("record/intervals.ndjson");
    let lines = std::fs::read(&path).expect("intervals");
    std::fs::write(&path, &lines[..lines.len() - 20]).expect("a torn file");
    report(&run.folder().join("record"), "").says(&["response time", "GET /"]);
}

#[test]
fn a_report_equals_the_output_of_the_run() {
    let target = Target::start("http --errors 5%");
    let line = format!("bench {} -n 400 -c 4", target.http("/"));
    // The record names its folder as it was given.
    let tail = |run: &Run| -> Vec<String> {
        let summary = run.out.lines().skip_while(|line| !line.starts_with("bench "));
        summary
            .filter(|line| !line.contains("directory") && !line.contains("record"))
            .map(String::from)
            .collect()
    };
    for (details, lines_min) in [("", 8), ("--details", 30)] {
        let run = throng(&format!("{line} --out=record {details}")).run();
        let again = report(&run.folder().join("record"), details);
        assert_eq!(tail(&run), tail(&again), "{run}\n{again}");
        assert!(tail(&run).len() >= lines_min, "{run}");
        assert_eq!(run.code(), again.code(), "{run}\n{again}");
    }
    let run = throng(&line).arg("--out=record").arg("--json").run();
    let again = report(&run.folder().join("record"), "--json");
    let (mut first, mut second) = (run.json(), again.json());
    first["run"]["directory"].take();
    second["run"]["directory"].take();
    assert_eq!(first, second);
}

#[test]
fn the_run_is_the_sum_of_its_lines() {
    let target = Target::start("http");
    let line = format!("bench {} -c 4 -d 2500ms --out record --json", target.http("/"));
    let run = throng(&line).run().exits(0);
    let path = run.folder().join("record/intervals.ndjson");
    let lines = std::fs::read_to_string(path).expect("intervals");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let steps = lines.iter().flat_map(|line| line["steps"].as_array().into_iter().flatten());
    let count: u64 = steps.filter_map(|step| step["count"].as_u64()).sum();
    run.has("/total/count", count);
    run.check((3..=6).contains(&lines.len()), "there is not a line a second");
}

#[test]
fn records_have_a_place() {
    let target = Target::start("http");
    let line = format!("bench {} -n 4 -c 2", target.http("/"));
    let run = throng(&line).run().exits(0);
    let records = run.folder().join("throng-runs").read_dir().expect("records");
    let paths: Vec<_> = records.map(|it| it.expect("a record").path()).collect();
    run.check(paths.len() == 1, "there is not one record");
    for name in ["run.json", "scenario.yaml", "intervals.ndjson", "events.ndjson"] {
        run.check(paths[0].join(name).is_file(), name);
    }
    // As it was run, so that it can be run again.
    let scenario = paths[0].join("scenario.yaml").display().to_string();
    throng(&format!("run {scenario} --json")).run().succeeds(4);
    let run = throng(&line).arg("--no-record").run().exits(0);
    run.check(run.folder().read_dir().expect("a folder").count() == 0, "something was recorded");
}

#[test]
fn a_directory_that_exists_is_refused() {
    let target = Target::start("http");
    let line = format!("bench {} -n 4 -c 2 --out", target.http("/"));
    let run = throng(&line).arg("taken").file("taken", "precious").run().exits(2);
    run.says(&["taken", "help"]);
    let folder = run.folder();
    std::fs::create_dir(folder.join("full")).expect("a folder");
    std::fs::write(folder.join("full/notes.txt"), "precious").expect("a file");
    throng(&line).arg(folder.join("full")).run().exits(2).says(&["error[", "full", "help"]);
    assert_eq!(std::fs::read(folder.join("full/notes.txt")).expect("notes"), b"precious");
    throng(&line).arg("/proc/nowhere").run().exits(2).says(&["/proc/nowhere", "help"]);
    assert_eq!(target.counts("/connections/accepted"), 0);
}

/// Under a disk of 24 KiB when root, which can have one; else with files of 2 KiB at most.
fn on_a_full_disk(line: &str) -> Throng {
    // SAFETY: geteuid reads one number of this process and cannot fail.
    let script = match unsafe { libc::geteuid() } {
        0 => {
            "mkdir disk && mount -t tmpfs -o size=24k none disk && \
             dd if=/dev/zero of=disk/filler bs=1k count=4 2>/dev/null && exec \"$@\""
        }
        _ => "mkdir disk && trap '' XFSZ && ulimit -f 7 && exec \"$@\"",
    };
    let shell = if script.contains("mount") { "unshare -m sh -c" } else { "sh -c" };
    let mut words = shell.split(' ');
    let mut command = std::process::Command::new(words.next().expect("a shell"));
    command.args(words).args([script, "sh"]).arg(binary()).args(line.split(' '));
    Throng::new(command)
}

#[test]
fn a_full_disk_is_said_at_once_and_the_run_goes_on() {
    let target = Target::start("http --latency 1ms..9ms");
    let url = target.http("/");
    let child =
        on_a_full_disk(&format!("bench {url} -c 10 -d 8s --details --out disk/record")).start();
    let trouble = |_: &str, err: &str| err.contains("the run continues").then_some(());
    child.hears("the trouble to be told", trouble);
    assert!(child.is_alive(), "it has ended");
    let run = child.wait().exits(5);
    run.says(&["error[", "could not be written", "latency"]);
    run.check(run.err.matches("the run continues").count() < 4, "it is said again and again");
    run.check(run.took.as_secs() >= 7, "the run did not go on");
}

#[test]
fn a_record_from_which_seconds_were_removed_is_not_whole() {
    let target = Target::start("http");
    let line = format!("bench {} -c 2 -d 3s --out record", target.http("/"));
    let run = throng(&line).arg("--threshold").arg("errors = 0").run().exits(0);
    let folder = run.folder().join("record");
    report(&folder, "").exits(0);
    let path = folder.join("intervals.ndjson");
    let text = std::fs::read_to_string(&path).expect("intervals");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let [first, second, rest @ ..] = lines.as_slice() else { panic!("{text}") };
    std::fs::write(&path, [&[*first], rest].concat().concat()).expect("a line is removed");
    report(&folder, "").exits(5).says(&["(record-incomplete)"]);
    let gone = report(&folder, "--details").exits(5);
    gone.says(&["error[record-incomplete]", "1 result lines are missing", "the run counted"]);
    report(&folder, "--json").has("/record/lines_missing", 1);
    let twice = [&[*first, *second, *second], rest].concat().concat();
    std::fs::write(&path, twice).expect("a line is doubled");
    let twice = report(&folder, "--details").exits(5);
    twice.says(&["error[record-incomplete]", "result lines appear twice; each is counted once"]);
}

#[test]
fn the_end_of_a_run_is_written_on_a_full_disk() {
    // SAFETY: geteuid reads one number of this process and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        // Only root may have a disk of its own.
        return;
    }
    let target = Target::start("http --latency 1ms..9ms");
    let script = "mkdir disk && mount -t tmpfs -o size=64k none disk && \
                  { \"$@\"; echo ended with $?; \"$1\" report --details disk/record; }";
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(binary());
    command.args(["bench", &target.http("/"), "-c", "10", "-d", "5s", "--out", "disk/record"]);
    let child = Throng::new(command).start();
    child.hears("a second to pass", |out, _| out.contains("\n    1s ").then_some(()));
    // The disk as the child sees it.
    let root = format!("/proc/{}/root", child.id());
    let disk = format!("{root}{}", child.folder().join("disk").display());
    let filled = std::fs::write(format!("{disk}/filler"), vec![1; 64 * 1024]);
    assert!(filled.is_err(), "it is full now");
    let run = child.wait().exits(5);
    run.says(&["ended with 5", "error[record-incomplete]", "the run counted"]);
    run.check(!run.out.contains("the run is incomplete"), "its end is recorded");
}

#[test]
fn the_latest_run_is_reported_when_none_is_named() {
    let target = Target::start("http");
    let nothing = throng("report").run().exits(2);
    nothing.says(&["error[run-unreadable]", "./throng-runs", "help"]);
    let line = |path: &str, name: &str| {
        let bench = format!("{} bench {} -n 4 -c 1 --quiet", binary().display(), target.http(path));
        format!("{bench} > {name}.txt")
    };
    let mut command = std::process::Command::new("sh");
    let report = format!("{} report --json", binary().display());
    // Both in the same second, as a rule: the later one is the latest all the same.
    command.args(["-ec", &format!("{}; {}; {report}", line("/one", "a"), line("/two", "b"))]);
    let run = Throng::new(command).run().exits(0);
    run.check(run.json()["steps"][0]["name"] == "GET /two", "the latest");
}

const CHAT: &str = include_str!("../../../../../examples/chat.protocol.yaml");

#[test]
fn the_recorded_scenario_is_what_ran() {
    let target = Target::start("chat");
    let text = "# Of our chat.\n\
        target: ${vars.chat}\ninclude: parts/common.yaml\nprotocol: wire/chat.protocol.yaml\n\
        data: {people: {csv: people.csv}}\nvars: {chat: '127.0.0.1:1', users: 1}\n\
        sessions: {reader: {steps: [connect, {use: join}]}}\n\
        load: [{iterations: '${vars.users}', users: '${vars.users}'}]\n";
    let common = "parts:\n  join:\n    - request: {join: {room: '${vars.room}', \
                  user: '${data.people.name}', token: 't-${data.people.name}'}}\n      \
                  check: {code: 0}\nvars: {room: 1}\n";
    let line = format!("run chat.yaml --json --out record --set chat={}", target.address);
    let command = throng(&line).arg("--set").arg("users=7").file("chat.yaml", text);
    for folder in ["parts", "wire"] {
        std::fs::create_dir(command.folder().join(folder)).expect("a folder");
    }
    let people: String = (1..=20).map(|n| format!("{n}\n")).collect();
    let command = command
        .file("parts/common.yaml", common)
        .file("wire/chat.protocol.yaml", CHAT)
        .file("people.csv", format!("name\n{people}"));
    let run = command.run().exits(0);
    assert_eq!(target.counts("/chat/joins"), 7, "{run}");
    let folder = run.folder();
    let info = std::fs::read_to_string(folder.join("record/run.json")).expect("run.json");
    let info: Value = serde_json::from_str(&info).expect("JSON");
    let files = info["files"].as_array().expect("files");
    let copies: Vec<_> = files.iter().filter_map(|file| file["copy"].as_str()).collect();
    let want = ["scenario.yaml", "files/people.csv", "files/wire/chat.protocol.yaml"];
    assert_eq!(copies, want, "{files:?}");
    let is_known = |file: &Value| file["sha256"].as_str().is_some_and(|hex| hex.len() == 64);
    assert!(files.len() == 4 && files.iter().all(is_known), "{files:?}");
    // Nothing of it is needed.
    for gone in ["chat.yaml", "people.csv", "parts/common.yaml", "wire/chat.protocol.yaml"] {
        std::fs::remove_file(folder.join(gone)).expect("a file");
    }
    let again = format!("run {} --json", folder.join("record/scenario.yaml").display());
    let again = throng(&again).run().exits(0);
    assert_eq!(target.counts("/chat/joins"), 14, "{again}");
    let again = throng("rerun --json").arg(folder.join("record")).run().exits(0);
    assert_eq!(target.counts("/chat/joins"), 21, "{again}");
    let scenario = std::fs::read_to_string(folder.join("record/scenario.yaml")).expect("a text");
    run.check(scenario.contains("users: 7") && !scenario.contains("include:"), &scenario);
}
