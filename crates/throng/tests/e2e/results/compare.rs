//! `throng compare`: two real runs side by side, and what cannot be compared.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::run::{Throng, throng};
use crate::servers::Target;

/// Long enough that noise can be told.
const SLOW: &str = "-c 1 -d 9s";

fn recorded(target: &Target, folder: &TempDir, name: &str, words: &str) -> PathBuf {
    let out = folder.path().join(name);
    throng(&format!("bench {} {words} --seed 1 --out", target.http(""))).arg(&out).run().exits(0);
    out
}

fn compare(one: &Path, two: &Path, words: &str) -> Throng {
    throng(&format!("compare {words}")).arg(one).arg(two)
}

fn fail_if(command: Throng, condition: &str) -> Throng {
    command.arg("--fail-if").arg(condition)
}

#[test]
fn a_slower_target_is_named_and_an_equal_one_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (fast, slow) = (Target::start("http --latency 5ms"), Target::start("http --latency 25ms"));
    let runs = [(&fast, "before"), (&fast, "same"), (&slow, "after")];
    // Side by side: each mostly waits for its target.
    let [before, same, after] = std::thread::scope(|scope| {
        let folder = &folder;
        runs.map(|(target, name)| scope.spawn(move || recorded(target, folder, name, SLOW)))
            .map(|run| run.join().expect("a run"))
    });

    let run = fail_if(compare(&before, &after, ""), "http p50 > +50%").run().exits(1);
    run.says(&["before", "after", "worse", "triggered: http p50 > +50%", "note: target:"]);
    let run = compare(&before, &after, "--json").run().exits(0);
    let held = run.json()["comparisons"][0].clone();
    let figures = held["rows"][0]["figures"].as_array().expect("figures").clone();
    for word in ["rate", "mean", "p50"] {
        let figure = figures.iter().find(|figure| figure["figure"] == word).expect(word);
        run.check(figure["verdict"] == "worse", word);
    }
    let run = fail_if(compare(&before, &after, "--markdown"), "rate < -20%").run().exits(1);
    run.says(&["### after compared with before", "| all attempts | p50 |", "**worse**"]);

    let conditions = fail_if(compare(&before, &same, ""), "p50 > +100%");
    fail_if(conditions, "failed > +1%").run().exits(0).says(&["not triggered: p50 > +100%"]);
}

#[test]
fn runs_are_written_side_by_side_as_a_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = Target::start("http");
    let [one, two] = ["one", "two"].map(|name| recorded(&target, &folder, name, "-n 20 -c 2"));
    let page = folder.path().join("compare.html");
    let run = compare(&one, &two, "--html").arg(&page).run();
    // The flag takes the first of the runs for its file.
    run.exits(2);
    let run = throng("compare").arg(&one).arg(&two).arg("--html").arg(&page).run().exits(0);
    run.says(&["page: ", "compare.html"]);
    let text = std::fs::read_to_string(&page).expect("a page");
    for part in ["\"compared\":{", "\"name\":\"one\"", "default-src 'none';"] {
        run.check(text.contains(part), part);
    }
    let told = crate::pages::page::drawn(&page);
    for part in [">Comparison of runs<", ">two<", ">Response times p50<"] {
        run.check(told.contains(part), &told);
    }
    let missing = folder.path().join("missing/compare.html");
    let run = throng("compare").arg(&one).arg(&two).arg("--html").arg(&missing).run().exits(2);
    run.says(&["file-unwritable", "--html"]);
}

#[test]
fn incomparable_runs_are_reported_with_the_fix() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = Target::start("http");
    let one = recorded(&target, &folder, "one", "-n 20 -c 2");
    let two = recorded(&target, &folder, "two", "-n 20 -c 2");
    throng("compare").arg(&one).run().exits(2).says(&["Usage"]);
    let nowhere = folder.path().join("nowhere");
    compare(&one, &nowhere, "").run().exits(2).says(&["is not a run directory"]);
    fail_if(compare(&one, &two, ""), "p99 > 5ms").run().exits(2).says(&["the `%` is missing"]);
    let wrong = fail_if(compare(&one, &two, ""), "htpt p99 > +5%").run().exits(2);
    wrong.says(&["the baseline has no step named `", "did you mean `http`"]);
    compare(&one, &two, "").run().exits(0).says(&["too short"]);

    let lines = two.join("intervals.ndjson");
    let text = std::fs::read(&lines).expect("a file");
    let torn = [&text[..], &text[..40]].concat();
    std::fs::write(&lines, torn).expect("a file");
    compare(&one, &two, "").run().exits(0).says(&["has incomplete data"]);
    let info = two.join("run.json");
    let text = std::fs::read_to_string(&info).expect("a file");
    let renamed = text.replace("\"GET /\"", "\"GET /other\"");
    std::fs::write(&info, renamed).expect("a file");
    compare(&one, &two, "").run().exits(2).says(&["not-comparable", "no step in common"]);
    std::fs::write(&lines, "").expect("a file");
    compare(&one, &two, "").run().exits(2).says(&["nothing was measured in two"]);
    std::fs::write(&info, text.replacen("\"format\": ", "\"format\": 99", 1)).expect("a file");
    compare(&one, &two, "").run().exits(2).says(&["format 99"]);
}
