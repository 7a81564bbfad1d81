//! What CI servers and notebooks are given: the files of `docs/ci`, Markdown, JUnit and CSV.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::{binary, throng};
use crate::servers::Target;

fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What `ci.py` says of a file.
fn told(what: &str, file: &Path) -> Value {
    let script = beside("tests/e2e/docs/ci.py");
    let output = Command::new("python3").arg(script).arg(what).arg(file).output();
    let output = output.expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const SCENARIO: &str = "\
name: smoke
target: ${vars.target}
vars: {target: 'http://127.0.0.1:1'}
sessions: {reader: {steps: [{http: GET /}]}}
load: [{name: smoke, arrivals: 50/s, for: 3s}]
thresholds: [errors < 1%]
";

#[test]
fn the_commands_of_the_ci_files_run() {
    let target = Target::start("http");
    for name in ["github.yml", "gitlab.yml"] {
        let commands = told("commands", &beside("../../docs/ci").join(name));
        let commands: Vec<&str> =
            commands.as_array().expect("commands").iter().filter_map(Value::as_str).collect();
        assert!(commands.len() >= 3, "{commands:?}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("load")).expect("a directory");
        std::fs::write(folder.path().join("load/smoke.yaml"), SCENARIO).expect("a file");
        let throng = binary();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", throng.parent().expect("a directory").display());
        for command in commands {
            let run = Command::new("sh")
                .args(["-ec", command])
                .current_dir(folder.path())
                .env("PATH", &path)
                .env("LC_ALL", "C")
                .env("TARGET", target.http(""))
                .env("GITHUB_SHA", "0123abc")
                .env("CI_COMMIT_SHA", "0123abc")
                .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
                .output()
                .expect("sh");
            let errors = String::from_utf8_lossy(&run.stderr).into_owned();
            assert!(run.status.success(), "{name}: {command}: {errors}");
        }
        for file in ["throng.xml", "throng.md", "throng.csv"] {
            let bytes = std::fs::metadata(folder.path().join(file)).expect(file).len();
            assert!(bytes > 0, "{name}: {file}");
        }
        let text = std::fs::read_to_string(folder.path().join("throng.md")).expect("a file");
        for part in
            ["### smoke: thresholds met", "| all requests |", "rate   ", "met: errors &lt; 1%"]
        {
            assert!(text.contains(part), "{text}");
        }
        let text = std::fs::read_to_string(folder.path().join("throng.xml")).expect("a file");
        assert!(text.contains("<system-out>measured: 0 %</system-out>"), "{text}");
    }
}

/// What `cargo` is there: it writes down its arguments, and puts a `throng` where it was asked to.
const CARGO: &str = r#"#!/bin/sh
echo "$@" >> cargo-was-told
test "$1" = "+stable" && shift
test "$1 $2 $3" = "install --locked --root" && mkdir -p "$4/bin" && cp own/throng "$4/bin"
exit 0
"#;

/// A repository that has nothing of throng but a scenario installs it from where its source is.
#[test]
fn the_ci_files_install_throng_into_any_repository() {
    use std::os::unix::fs::PermissionsExt;
    for name in ["github.yml", "gitlab.yml"] {
        let told = told("install", &beside("../../docs/ci").join(name));
        let lines = told["commands"].as_array().expect("commands");
        assert_eq!(lines.len(), 1, "{name}: {told}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = folder.path().join("own");
        std::fs::create_dir(&own).expect("a directory");
        for (program, text) in
            [("cargo", CARGO), ("rustup", "#!/bin/sh\n"), ("throng", "#!/bin/sh\necho is here\n")]
        {
            let path = own.join(program);
            std::fs::write(&path, text).expect("a script");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a script");
        }
        let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default());
        let variables = told["variables"].as_object().expect("variables");
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, it)| (name.as_str(), it.as_str().expect("text")))
            .collect();
        // Twice: the second time it is there.
        for _ in 0..2 {
            let script = format!("{}\nthrong", lines[0].as_str().expect("a command"));
            let mut shell = Command::new("sh");
            shell.args(["-euc", &script]).current_dir(folder.path()).env("PATH", &path);
            let run = shell.envs(variables.iter().copied()).output().expect("sh");
            let printed = String::from_utf8_lossy(&run.stdout).into_owned();
            assert!(run.status.success() && printed == "is here\n", "{name}: {run:?}");
        }
        let cargo = std::fs::read_to_string(folder.path().join("cargo-was-told")).expect("a file");
        let source = variables.iter().find(|(name, _)| *name == "THRONG_SOURCE").expect("a source");
        let is_good = |line: &str| line.ends_with(&format!(" --git {} throng", source.1));
        assert!(cargo.lines().all(is_good) && !cargo.contains("crates/"), "{name}: {cargo}");
        let rounds = if name == "gitlab.yml" { 1 } else { 2 };
        assert_eq!(cargo.lines().count(), rounds, "{name}: {cargo}");
    }
}

#[test]
fn rows_of_seconds_are_those_of_the_summary_whatever_steps_are_called() {
    let target = Target::start("http --errors 20%");
    let names = ["=1+cmd|x", "quote \" comma, and\nline", "\u{1b}[31m<b>|`@all"];
    let steps: Vec<String> =
        names.iter().map(|name| format!("{{http: GET /, name: {}}}", Value::from(*name))).collect();
    let scenario = format!(
        "name: hostile\ntarget: {}\nsessions: {{user: {{steps: [{}]}}}}\n\
         load: [{{users: 3, for: 1s, measured: false}}, {{users: 3, for: 3s}}]\n",
        target.http(""),
        steps.join(", ")
    );
    let line = "run it.yaml --quiet --out record --markdown it.md --junit it.xml --json";
    let run = throng(line).file("it.yaml", scenario).run().exits(0);
    let record = run.folder().join("record");
    let csv = run.folder().join("it.csv");
    let report = throng("report --json").arg(&record).arg("--csv").arg(&csv).run();
    let (json, sums) = (report.json(), told("sums", &csv));
    let same = |name: &str, row: &Value| {
        let own = &sums[name];
        for field in ["count", "ok", "failed"] {
            report.check(own[field] == row[field], &format!("{name} {field}: {own} {row}"));
        }
        report.check(own["max_ns"] == row["latency"]["max_ns"], &format!("{name}: {own} {row}"));
    };
    same("", &json["total"]);
    let rows = json["steps"].as_array().expect("steps");
    assert_eq!(rows.len(), 3);
    let known = ["'=1+cmd|x", "quote \" comma, and line", "\\u{1b}[31m<b>|`@all"];
    known.iter().zip(rows).for_each(|(name, row)| same(name, row));
    let output = throng("report").arg(&record).arg("--csv").run();
    output.says(&["second,unix_s,phase", "\"'=1+cmd|x\"", "quote \"\" comma"]);
    for file in ["it.md", "it.xml"] {
        let text = std::fs::read_to_string(run.folder().join(file)).expect("a file");
        assert!(!text.contains(['\u{1b}']) && !text.contains("<b>"), "{text}");
        assert!(!text.contains("and\nline"), "{text}");
    }
    let text = std::fs::read_to_string(run.folder().join("it.md")).expect("a file");
    assert!(!text.contains("@all"), "{text}");
}

#[test]
fn an_unwritable_file_is_reported_before_the_load() {
    let target = Target::start("http");
    let line = format!("bench {} -n 5 -c 1 --markdown nowhere/it.md", target.http(""));
    let run = throng(&line).run().exits(2);
    run.says(&["file-unwritable", "set --markdown to a writable path", "nothing was sent"]);
}
