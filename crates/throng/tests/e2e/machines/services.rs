//! Agents as services: systemd and Kubernetes understand the files that are handed out, and throng
//! understands the words in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use throng_fuzz::{node_modules, python_packages};

use crate::machines::fleet::Fleet;
use crate::run::{Child, Run, Throng};
use crate::servers::program;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(packaging(name)).expect("a file")
}

/// The unit, with the binary of this test.
fn unit(folder: &Path) -> PathBuf {
    let path = folder.join("throng-agent.service");
    let text = read("throng-agent.service");
    assert!(text.contains("=/usr/bin/throng agent "), "{text}");
    let text = text.replace("/usr/bin/throng", env!("CARGO_BIN_EXE_throng"));
    std::fs::write(&path, text).expect("a file");
    path
}

fn systemd(words: &[&str], unit: &Path) -> Run {
    let mut command = Command::new(program("systemd-analyze", "systemd"));
    command.args(words).arg(unit);
    Child::start(command).wait()
}

#[test]
fn systemd_accepts_the_unit_and_rates_it_secure() {
    let folder = tempfile::tempdir().expect("a folder");
    let unit = unit(folder.path());
    let run = systemd(&["verify", "--man=no"], &unit).exits(0);
    run.check(run.err.is_empty(), "it has something to say");
    // Of ten; 9.6 is a unit that says nothing.
    systemd(&["security", "--offline=true", "--threshold=25"], &unit).exits(0);
    // What it is checked with sees faults.
    let text = std::fs::read_to_string(&unit).expect("the unit");
    std::fs::write(&unit, text.replace("KillMode=mixed", "KillMode=perhaps")).expect("a file");
    systemd(&["verify", "--man=no"], &unit).says(&["kill mode"]);
}

/// What kernels are asked for by an engine has to be among what the unit allows.
#[test]
fn the_unit_allows_what_the_engine_needs() {
    let allowed = |group: &str| {
        let mut command = Command::new(program("systemd-analyze", "systemd"));
        command.args(["syscall-filter", group]);
        Child::start(command).wait().exits(0).out
    };
    let text = read("throng-agent.service");
    assert!(text.contains("SystemCallFilter=@system-service @process\n"), "{text}");
    let process = allowed("@process");
    assert!(process.contains("unshare") && process.contains("execve"), "{process}");
}

fn kubernetes(version: &str, files: &[PathBuf]) -> Run {
    let schemas = python_packages("kubernetes_validate").join("kubernetes_validate");
    let folder = schemas.join(format!("kubernetes-json-schema/v{version}-local-strict"));
    let mut command = Command::new(program("node", "nodejs"));
    command.env("NODE_PATH", node_modules("ajv"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/machines/kubernetes.js");
    command.arg(script).arg(folder).args(files);
    Child::start(command).wait().exits(0)
}

#[test]
fn kubernetes_accepts_the_manifests() {
    let files = ["agents-job.yaml", "agents-statefulset.yaml"];
    let files = files.map(|name| packaging("kubernetes").join(name));
    for version in ["1.29.0", "1.33.0", "1.37.0"] {
        let run = kubernetes(version, &files);
        assert_eq!(run.out.trim(), "3 objects", "{version}: {run}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.yaml");
    let text = read("kubernetes/agents-job.yaml").replace("parallelism: 3", "paralelism: 3");
    std::fs::write(&wrong, text).expect("a file");
    kubernetes("1.37.0", &[wrong]).says(&["paralelism"]);
}

/// The words between brackets behind `args: `, or of `ExecStart`, as they are on a machine.
fn words(text: &str, token: &Path, directory: &Path) -> Vec<String> {
    let line = |begin: &str| text.lines().find_map(|line| line.trim().strip_prefix(begin));
    let words: Vec<&str> = match (line("args: ["), line("ExecStart=/usr/bin/throng ")) {
        (Some(list), _) => list.trim_end_matches(']').split(", ").collect(),
        (None, Some(line)) => line.split(' ').collect(),
        (None, None) => panic!("no command in {text}"),
    };
    let real = |word: &&str| match *word {
        "/etc/throng/token" | "${CREDENTIALS_DIRECTORY}/token" => token.display().to_string(),
        "/var/lib/throng" | "${STATE_DIRECTORY}" => directory.display().to_string(),
        "$THRONG_AGENT_FLAGS" => "--back-off=60%".to_string(),
        word => word.to_string(),
    };
    words.iter().map(real).collect()
}

#[test]
fn agents_join_with_the_words_of_the_files() {
    let fleet = Fleet::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    for (number, name) in
        ["throng-agent.service", "kubernetes/agents-job.yaml", "kubernetes/agents-statefulset.yaml"]
            .into_iter()
            .enumerate()
    {
        let token = fleet.token(&format!("throng-{number}"));
        let words = words(&read(name), &token, &folder.path().join("spool"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
        command.args(&words);
        let agent = Throng::new(command).start();
        agent.hears("joined", |_, err| err.contains("joined").then_some(()));
        agent.signal(libc::SIGTERM);
        agent.wait().exits(0).says(&["leaves"]);
    }
}
