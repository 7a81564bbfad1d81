//! `throng history`: the runs of a folder, made by real runs and copies of them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Throng, throng};
use crate::servers::Target;

pub(crate) fn history(folder: &Path, words: &str) -> Throng {
    throng(&format!("history {words}")).arg(folder)
}

pub(crate) fn recorded(target: &Target, folder: &TempDir, name: &str, words: &str) -> PathBuf {
    let out = folder.path().join(name);
    throng(&format!("bench {} {words} --seed 1 --out", target.http(""))).arg(&out).run().exits(0);
    out
}

/// The same run once more, as if it had been made so many days later.
pub(crate) fn copied(folder: &TempDir, run: &Path, name: &str, day: u32) {
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
fn a_folder_without_runs_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    history(folder.path(), "").run().exits(2).says(&["can be read"]);
    let nowhere = folder.path().join("nowhere");
    history(&nowhere, "").run().exits(2).says(&["cannot read the folder"]);
    let target = Target::start("http");
    let one = recorded(&target, &folder, "one", "-n 20 -c 2");
    history(&one, "").run().exits(2).says(&["is the directory of a single run"]);
    // The first run of a pipeline has nothing to be held against.
    let first = history(folder.path(), "").arg("--fail-if").arg("p99 > +10%").run();
    first.exits(0).says(&["1 run"]);
    let wrong = history(folder.path(), "").arg("--fail-if").arg("htpt p99 > +10%").run();
    wrong.exits(2).says(&["did you mean `http`"]);
    history(folder.path(), "--step GTE").run().exits(2).says(&["no run has a step"]);
    let file = one.join("run.json");
    std::fs::write(&file, "{").expect("a file");
    history(folder.path(), "").run().exits(2).says(&["skipped: one:", "is damaged"]);
}
