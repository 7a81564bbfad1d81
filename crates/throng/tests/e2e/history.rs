//! `throng history`: the runs of a folder, made by real runs and copies of them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Throng, throng};
use crate::servers::Target;

fn history(folder: &Path, words: &str) -> Throng {
    throng(&format!("history {words}")).arg(folder)
}

fn recorded(target: &Target, folder: &TempDir, name: &str, words: &str) -> PathBuf {
    let out = folder.path().join(name);
    throng(&format!("bench {} {words} --seed 1 --out", target.http(""))).arg(&out).run().exits(0);
    out
}

/// The same run once more, as if it had been made so many days later.
fn copied(folder: &TempDir, run: &Path, name: &str, day: u32) {
    let copy = folder.path().join(name);
    std::fs::create_dir(&copy).expect("a directory");
    for entry in std::fs::read_dir(run).expect("a directory").flatten() {
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("a file");
    }
    let path = copy.join("run.json");
    let text = std::fs::read(&path).expect("a file");
    let mut info: Value = serde_json::from_slice(&text).expect("JSON");
    info["started"] = format!("2099-01-{day:02}T00:00:00.000Z").into();
    info["id"] = name.into();
    info["targets"] = Value::Array(vec!["http://127.0.0.1".into()]);
    // Two targets that listen elsewhere have one name.
    info["name"] = "shop".into();
    std::fs::write(&path, info.to_string()).expect("a file");
}

#[test]
fn a_folder_of_runs_shows_its_trend_and_since_when_it_is_another() {
    let made = tempfile::tempdir().expect("a temporary folder");
    let (fast, slow) = (Target::start("http --latency 5ms"), Target::start("http --latency 25ms"));
    let words = "-c 1 -d 8s --label branch=main";
    let fast = recorded(&fast, &made, "fast", words);
    let slow = recorded(&slow, &made, "slow", words);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for day in 1..=8 {
        let run = if day <= 4 { &fast } else { &slow };
        copied(&folder, run, &format!("build-{day}"), day);
    }
    std::fs::create_dir(folder.path().join("empty")).expect("a directory");

    let run = history(folder.path(), "").run().exits(0);
    run.says(&["shop: 8 runs", "2099-01-05 00:00:00", "branch=main", "since run build-5: rate"]);
    run.says(&["passed over: empty:", "p99   "]);
    let json = history(folder.path(), "--json").run().exits(0).json();
    let trend = &json["scenarios"][0];
    assert_eq!(trend["runs"].as_array().map(Vec::len), Some(8));
    let since: Vec<&Value> = trend["shifts"].as_array().expect("shifts").iter().collect();
    assert!(since.iter().any(|shift| shift["figure"] == "p50" && shift["since"] == "build-5"));
    let verdict = |run: usize| &trend["runs"][run]["figures"][0]["verdict"];
    assert_eq!((verdict(4), verdict(5)), (&"worse".into(), &"unchanged".into()));

    let against =
        |words: &str| history(folder.path(), words).arg("--fail-if").arg("http p50 > +50%").run();
    against("--last 2").exits(0).says(&["shop: 2 runs", "passed: http p50"]);
    let run = against("--baseline build-1 --markdown").exits(1);
    run.says(&["### shop: 8 runs", "| 2099-01-08 00:00:00 |", "**failed**: http p50"]);
    history(folder.path(), "--label branch=other").run().exits(2).says(&["with these labels"]);
    let step = history(folder.path(), "--last 1").arg("--step").arg("GET /").run().exits(0);
    step.says(&["shop, GET /: 1 run"]);
}

#[test]
fn what_is_no_folder_of_runs_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    history(folder.path(), "").run().exits(2).says(&["there is no run below"]);
    let nowhere = folder.path().join("nowhere");
    history(&nowhere, "").run().exits(2).says(&["cannot read the folder"]);
    let target = Target::start("http");
    let one = recorded(&target, &folder, "one", "-n 20 -c 2");
    history(&one, "").run().exits(2).says(&["is the directory of one run"]);
    // The first run of a pipeline has nothing to be held against.
    let first = history(folder.path(), "").arg("--fail-if").arg("p99 > +10%").run();
    first.exits(0).says(&["1 run"]);
    let wrong = history(folder.path(), "").arg("--fail-if").arg("htpt p99 > +10%").run();
    wrong.exits(2).says(&["did you mean `http`"]);
    history(folder.path(), "--step GTE").run().exits(2).says(&["no run has a step"]);
    let file = one.join("run.json");
    std::fs::write(&file, "{").expect("a file");
    history(folder.path(), "").run().exits(2).says(&["passed over: one:", "is damaged"]);
}
