//! Every example file and every bench command of the README is run for real.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Child, throng};
use crate::servers::Target;
use crate::tls::Papers;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An example at a size that a test can afford.
struct Small {
    name: &'static str,
    target: &'static str,
    /// Its address is in the file.
    port: &'static str,
    changes: &'static [(&'static str, &'static str)],
    /// What the run then does, at least.
    ok: f64,
}

const EXAMPLES: &[Small] = &[
    Small {
        name: "quick-http.yaml",
        target: "http",
        port: "127.0.0.1:8080",
        changes: &[("users: 100, for: 30s", "users: 10, for: 1s"), ("50ms", "5s")],
        ok: 100.0,
    },
    Small {
        name: "proxy-long-requests.yaml",
        target: "http",
        port: "127.0.0.1:8282",
        changes: &[("sleep: 60000", "sleep: 50"), ("900/s", "50/s"), ("for: 10m", "for: 2s")],
        ok: 90.0,
    },
];

#[test]
fn every_example_is_run() {
    let folder = root().join("examples");
    let files = folder.read_dir().expect("examples").map(|it| it.expect("a file").file_name());
    let mut names: Vec<String> = files.map(|it| it.to_string_lossy().into_owned()).collect();
    names.sort();
    for name in names.iter().filter(|name| name.ends_with(".yaml")) {
        let small = EXAMPLES.iter().find(|it| it.name == name);
        let small = small.unwrap_or_else(|| panic!("examples/{name} has no test: add it here"));
        let target = Target::start(small.target);
        let mut text = std::fs::read_to_string(folder.join(name)).expect("an example");
        let address = target.address.to_string();
        for (old, new) in small.changes.iter().chain([&(small.port, address.as_str())]) {
            assert!(text.contains(old), "examples/{name} has no `{old}`");
            text = text.replace(old, new);
        }
        let mut run = throng("run small.yaml --json").file("small.yaml", text);
        for beside in names.iter().filter(|name| !name.ends_with(".yaml")) {
            run = run.file(beside, std::fs::read(folder.join(beside)).expect("a file"));
        }
        let run = run.run().exits(0);
        run.within("/total/ok", small.ok, f64::MAX);
        run.has("/total/failed", 0);
    }
}

/// The commands of a text's blocks of shell that begin so, without remarks.
fn commands(text: &str, begin: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|part| part.split("```").next());
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with(begin));
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim().to_string()).collect()
}

/// The words of a line as a shell reads them.
fn words(line: &str) -> Vec<String> {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("printf '%s\\n' {line}")]);
    Child::start(command).wait().exits(0).out.lines().map(String::from).collect()
}

/// The same at a size that a test can afford.
fn small(mut words: Vec<String>) -> Vec<String> {
    let mut ends = false;
    for at in 0..words.len() - 1 {
        let count = words[at + 1].parse::<u64>();
        match (words[at].as_str(), count) {
            ("-c", Ok(users)) => words[at + 1] = users.min(50).to_string(),
            ("-n", Ok(requests)) => words[at + 1] = requests.min(500).to_string(),
            ("-d", _) => words[at + 1] = "1s".to_string(),
            _ => continue,
        }
        ends |= words[at] != "-c";
    }
    if !ends {
        words.extend(["-n".to_string(), "200".to_string()]);
    }
    words
}

#[test]
fn the_commands_of_the_readme_are_run() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let (http, echo) = (Target::start("http"), Target::start("echo"));
    let papers = Papers::own();
    let nginx = papers.nginx("self", "");
    let tls = format!("127.0.0.1:{}", nginx.port);
    let places = [
        ("127.0.0.1:8080", http.address.to_string()),
        ("127.0.0.1:8089", echo.address.to_string()),
        ("127.0.0.1:6379", echo.address.to_string()),
        ("127.0.0.1:8443", tls),
    ];
    let lines = commands(&text, "throng bench ");
    assert!(lines.len() > 5, "{lines:?}");
    for line in lines {
        let moved = |line: String, (old, new): &(&str, String)| line.replace(old, new);
        let moved = places.iter().fold(line.clone(), moved);
        let known = moved != line || line.contains("--curl request.txt");
        assert!(known, "nothing listens for `{line}`: add it here");
        let run = throng("").file("request.txt", format!("curl '{}'", http.http("/anything")));
        let run = small(words(&moved)).iter().skip(1).fold(run, |run, word| run.arg(word));
        let run = run.arg("--json").run().exits(0);
        run.within("/total/ok", 5.0, f64::MAX);
        run.has("/total/failed", 0);
    }
}

#[test]
fn the_demo_shows_something() {
    let run = throng("demo -d 1s").run().exits(0);
    run.says(&["  time  users", "latency", "200"]);
}
