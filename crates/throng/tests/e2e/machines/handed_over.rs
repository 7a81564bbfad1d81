//! What others hand over: a scenario that names files which are none, and a record with names that
//! are more than names. Nothing waits, nothing grows, and no terminal is moved.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::{Run, Throng, binary, throng};
use crate::servers::Target;

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

/// Files of a folder that nobody should read whole.
fn traps(folder: &Path) -> [PathBuf; 3] {
    let (one, sparse) = (folder.join("pipe"), folder.join("sparse"));
    pipe(&one);
    File::create(&sparse).expect("a file").set_len(1 << 42).expect("a sparse file");
    [one, sparse, "/dev/zero".into()]
}

#[test]
fn scenarios_with_pipes_devices_or_endless_files_are_refused() {
    let head = "target: https://127.0.0.1:1\nload: [{users: 1, for: 1s}]\n";
    let steps = |steps: &str| format!("{head}sessions: {{a: {{steps: {steps}}}}}\n");
    let post = |body: &str| steps(&format!("[{{http: POST /, {body}}}]"));
    let scenarios = [
        post("body: {file: TRAP}"),
        post("multipart: [{name: a, file: TRAP}]"),
        format!("{}tls: {{ca: TRAP}}\n", post("body: a")),
        format!("{}tls: {{certificate: TRAP, key: TRAP}}\n", post("body: a")),
        format!("{}data: {{a: {{csv: TRAP}}}}\n", post("body: \"${data.a.x}\"")),
        format!("{}include: [TRAP]\n", post("body: a")),
        format!("{}protocol: TRAP\n", steps("[{connect: /}]").replace("https", "tcp")),
    ];
    for scenario in scenarios {
        let command = throng("check a.yaml");
        for trap in traps(command.folder()) {
            let text = scenario.replace("TRAP", &trap.display().to_string());
            std::fs::write(command.folder().join("a.yaml"), text).expect("a file");
            let mut line = Command::new("prlimit");
            line.args(["--as=2000000000"]).arg(binary()).args(["check", "a.yaml"]);
            line.current_dir(command.folder());
            let run = crate::run::Child::start(line).wait();
            run.check(run.code() == 2, &format!("{scenario}\n{}", trap.display()));
            let name = trap.file_name().expect("a name").to_string_lossy().into_owned();
            run.says(&[&name]);
        }
    }
}

#[test]
fn a_scenario_may_be_a_file_or_a_shell_descriptor() {
    let command = throng("check a.yaml");
    for trap in traps(command.folder()) {
        for verb in ["check", "plan", "try", "run", "protocol"] {
            let mut line = Command::new(binary());
            line.arg(verb).arg(&trap).current_dir(command.folder());
            let run = crate::run::Child::start(line).wait();
            run.check(run.code() == 2, &format!("{verb} {}", trap.display()));
        }
    }
    let text = "target: http://127.0.0.1:1\nload: [{users: 1, for: 1s}]\n\
                sessions: {a: {steps: [{http: GET /}]}}";
    let line = format!("{} check <(printf '%s' \"$1\")", binary().display());
    let mut bash = Command::new("bash");
    bash.args(["-c", &line, "bash", text]);
    Throng::new(bash).run().exits(0);
}

/// The directory of a run.
fn record(run: &Run) -> PathBuf {
    let mut records = run.folder().join("throng-runs").read_dir().expect("records");
    records.next().expect("a record").expect("an entry").path()
}

#[test]
fn pipes_in_a_folder_of_runs_hide_no_run() {
    let target = Target::start("http");
    let run = throng(&format!("bench {} -n 20 -c 2", target.http("/"))).run().exits(0);
    let (good, runs) = (record(&run), run.folder().join("throng-runs"));
    for name in ["run.json", "scenario.yaml", "intervals.ndjson", "events.ndjson"] {
        let bad = runs.join(format!("20200101-000000-{name}"));
        std::fs::create_dir_all(&bad).expect("a folder");
        for file in good.read_dir().expect("files").flatten().filter(|it| it.path().is_file()) {
            std::fs::copy(file.path(), bad.join(file.file_name())).expect("a copy");
        }
        std::fs::remove_file(bad.join(name)).expect("a file");
        pipe(&bad.join(name));
        throng(&format!("report {}", bad.display())).run();
        throng(&format!("compare {} {}", good.display(), bad.display())).run();
    }
    let history = throng(&format!("history {}", runs.display())).run().exits(0);
    history.says(&["skipped"]);
    throng(&format!("report {}", good.display())).run().exits(0);
}

/// Every text of a record becomes this one, but for those that say what the record is.
fn changed(value: &mut Value, key: &str, text: &str) {
    const KEPT: [&str; 12] = [
        "format",
        "id",
        "started",
        "ended",
        "throng_version",
        "kind",
        "cause",
        "role",
        "metric",
        "unit",
        "copy",
        "no_copy",
    ];
    match value {
        Value::String(old) if !KEPT.contains(&key) => *old = text.to_string(),
        Value::Array(items) => items.iter_mut().for_each(|item| changed(item, key, text)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, item)| changed(item, key, text));
        }
        _ => {}
    }
}

/// A record in which everything that has a name is called so.
fn renamed(good: &Path, bad: &Path, text: &str) {
    std::fs::create_dir_all(bad).expect("a folder");
    for file in good.read_dir().expect("files").flatten().filter(|it| it.path().is_file()) {
        std::fs::copy(file.path(), bad.join(file.file_name())).expect("a copy");
    }
    let json = std::fs::read(good.join("run.json")).expect("a record");
    let mut json: Value = serde_json::from_slice(&json).expect("JSON");
    for key in ["name", "labels", "steps", "phases", "sessions", "targets", "loads", "thresholds"] {
        changed(&mut json[key], key, text);
    }
    json["started"] = text.into();
    json["labels"] = serde_json::json!({ text: text });
    let json = serde_json::to_vec(&json).expect("JSON");
    std::fs::write(bad.join("run.json"), json).expect("a record");
}

#[test]
fn names_of_a_record_are_only_names_however_long() {
    let target = Target::start("http");
    let line = format!("bench {} -n 20 -c 2 --expect-status 404", target.http("/"));
    let line = format!("{line} --threshold errors<1% --threshold p95<1s");
    let run = throng(&line).run();
    let good = record(&run);
    let evil = "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\r\nb";
    let names = [evil.to_string(), "x".repeat(200_000), "☺\u{fe0f}界".repeat(50_000)];
    for (number, name) in names.iter().enumerate() {
        let bad = run.folder().join(format!("throng-runs/bad-{number}"));
        renamed(&good, &bad, name);
        for words in ["report", "report --details", "compare"] {
            let more = if words == "compare" { good.display().to_string() } else { String::new() };
            let shown = throng(&format!("{words} {} {more}", bad.display())).run();
            shown.check(shown.code() < 70, "it has a bug");
            let is_raw = |text: &str| text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']);
            shown.check(!is_raw(&shown.out) && !is_raw(&shown.err), "a name is raw");
        }
    }
}

#[test]
fn names_of_a_scenario_are_only_names() {
    let target = Target::start("http");
    let evil = r"a\x1b[2J\x1b]0;owned\x07\u202e\rb";
    let scenario = format!(
        "name: \"{evil}\"\ntarget: {}\nvars: {{\"x\": \"{evil}\"}}\n\n\
         sessions:\n  \"s{evil}\":\n    steps:\n      - transaction: \"{evil}\"\n        steps:\n\
        \x20         - {{http: \"GET /\", name: \"{evil}\", check: {{text: \"{evil}\"}}}}\n\
        \x20         - log: \"{evil}\"\n\
         load: [{{name: \"{evil}\", users: {{to: 1}}, for: 1s}}]\n",
        target.http("")
    );
    for words in ["check", "plan", "plan --explain", "try", "run --details"] {
        let run = throng(&format!("{words} a.yaml")).file("a.yaml", &scenario).run();
        run.check(run.code() < 70, "it has a bug");
        let is_raw = |text: &str| text.contains(['\u{1b}', '\u{7}', '\u{202e}']);
        run.check(!is_raw(&run.out) && !is_raw(&run.err), "a name is raw");
        run.check(run.out.contains("\\u{1b}") || run.err.contains("\\u{1b}"), "no name is shown");
    }
}
