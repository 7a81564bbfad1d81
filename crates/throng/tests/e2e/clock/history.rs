//! Since when the runs of a folder are slower: noise of a busy machine would hide it.

use serde_json::Value;

use crate::results::history::{copied, history, recorded};
use crate::servers::Target;

#[test]
fn a_folder_of_runs_shows_its_trend_and_since_when_it_is_another() {
    let made = tempfile::tempdir().expect("a temporary folder");
    let (fast, slow) = (Target::start("http --latency 5ms"), Target::start("http --latency 25ms"));
    let words = "-c 1 -d 8s --label branch=main";
    let runs = [(&fast, "fast"), (&slow, "slow")];
    let [fast, slow] = std::thread::scope(|scope| {
        let made = &made;
        runs.map(|(target, name)| scope.spawn(move || recorded(target, made, name, words)))
            .map(|run| run.join().expect("a run"))
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    for day in 1..=8 {
        let run = if day <= 4 { &fast } else { &slow };
        copied(&folder, run, &format!("build-{day}"), day);
    }
    std::fs::create_dir(folder.path().join("empty")).expect("a directory");

    let run = history(folder.path(), "").run().exits(0);
    run.says(&["shop: 8 runs", "2099-01-05 00:00:00", "branch=main", "since run build-5: rate"]);
    run.says(&["skipped: empty:", "p99   "]);
    let json = history(folder.path(), "--json").run().exits(0).json();
    let trend = &json["scenarios"][0];
    assert_eq!(trend["runs"].as_array().map(Vec::len), Some(8));
    let since: Vec<&Value> = trend["shifts"].as_array().expect("shifts").iter().collect();
    assert!(since.iter().any(|shift| shift["figure"] == "p50" && shift["since"] == "build-5"));
    let verdict = |run: usize| &trend["runs"][run]["figures"][0]["verdict"];
    assert_eq!((verdict(4), verdict(5)), (&"worse".into(), &"unchanged".into()));

    let against =
        |words: &str| history(folder.path(), words).arg("--fail-if").arg("http p50 > +50%").run();
    against("--last 2").exits(0).says(&["shop: 2 runs", "not triggered: http p50"]);
    let run = against("--baseline build-1 --markdown").exits(1);
    run.says(&["### shop: 8 runs", "| 2099-01-08 00:00:00 |", "**triggered**: http p50"]);
    history(folder.path(), "--label branch=other").run().exits(2).says(&["has these labels"]);
    let step = history(folder.path(), "--last 1").arg("--step").arg("GET /").run().exits(0);
    step.says(&["shop, GET /: 1 run"]);
}
