//! Parts of a load that were run apart and are merged are the load; what does not belong together
//! is refused, and what is missing is said.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::machines::fleet::by_label;
use crate::run::{Child, Run, Throng, binary, throng};
use crate::servers::{Target, program};

fn scenario(target: &Target) -> String {
    format!(
        "target: {}
seed: 4
sessions:
  worker: {{steps: [{{http: GET /work}}]}}
  comer: {{steps: [{{http: GET /come}}]}}
loads:
  workers: {{sessions: worker, phases: [{{name: work, iterations: 101, users: 7}}]}}
  comers: {{sessions: comer, phases: [{{name: rush, arrivals: 40/s, for: 2s}}]}}
thresholds:
  - http rate > 30/s in comers
",
        target.http("")
    )
}

fn part(target: &Target, part: &str, out: &Path) -> Throng {
    let labels = format!("--label of={part} --label for=all");
    let line = format!("run s.yaml --quiet --shards 2 --part {part} {labels}");
    throng(&line).arg("--out").arg(out).file("s.yaml", scenario(target))
}

/// Runs these parts at the same time, each into a folder of its number.
fn parts(target: &Target, all: &[&str], folder: &Path) {
    let start =
        |(number, one): (usize, &&str)| part(target, one, &folder.join(number.to_string())).start();
    let children: Vec<Child> = all.iter().enumerate().map(start).collect();
    children.into_iter().for_each(|child| drop(child.wait()));
}

fn merge(folder: &Path, numbers: &[usize], out: &str) -> Run {
    let mut line = throng("merge --json").arg("--out").arg(folder.join(out));
    for number in numbers {
        line = line.arg(folder.join(number.to_string()));
    }
    line.run()
}

fn begun(run: &Run) -> [u64; 2] {
    ["GET /work", "GET /come"].map(|step| run.row("steps", step)["begun"].as_u64().unwrap_or(0))
}

#[test]
fn merged_parts_equal_the_whole() {
    let (target, folder) = (Target::start("http"), tempfile::tempdir().expect("a folder"));
    let folder = folder.path();
    parts(&target, &["1/4", "2-3/4", "4/4"], folder);
    let run = merge(folder, &[0, 1, 2], "all").exits(0);
    assert_eq!(begun(&run), [101, 80], "{run}");
    assert_eq!(target.counts("/requests"), 181, "{run}");
    let json = run.json();
    assert_eq!(json["machines"].as_array().map(Vec::len), Some(3), "{run}");
    assert_eq!(json["record"]["lines_missing"], 0, "{run}");
    by_label(&run, "of", &["1/4", "2-3/4", "4/4"], 181);
    by_label(&run, "for", &[], 181);
    assert_eq!(json["run"]["labels"], serde_json::json!({"for": "all"}), "{run}");
    // The threshold is that of the whole, which no part meets.
    assert_eq!(json["thresholds"][0]["verdict"], "met", "{run}");
    let again = throng("report --json").arg(folder.join("all")).run().exits(0);
    assert_eq!(begun(&again), [101, 80], "{again}");

    // In another order it is the same run.
    let other = merge(folder, &[2, 0, 1], "other").exits(0);
    assert_eq!((begun(&other), &other.json()["total"]), ([101, 80], &json["total"]), "{other}");

    // Two of them, and a half and the whole of a third.
    let gap = merge(folder, &[0, 1], "gap").exits(5);
    let reasons = gap.json()["outcome"]["invalid_reasons"].to_string();
    gap.check(
        reasons.contains("part 4/4") && reasons.contains("no run of this part was given"),
        &reasons,
    );
    let twice = merge(folder, &[0, 1, 1], "twice").exits(2);
    twice.says(&["ran parts 2 to 3 of 4", "give each run only once"]);
}

/// In a terminal of so many columns.
fn terminal(columns: usize, term: &str, line: &str) -> Run {
    let mut script = Command::new(program("script", "bsdutils"));
    let line = format!("stty cols {columns} rows 24; exec {} {line}", binary().display());
    script.args(["-qec", &line, "/dev/null"]).env("TERM", term).env("LC_ALL", "C");
    Throng::new(script).run()
}

/// What is printed, whole and in short, as `report` and `merge` say it, wherever it is printed.
#[test]
fn the_summary_of_a_merged_run_fits_wherever_it_is_printed() {
    let (target, folder) = (Target::start("http --errors 20%"), tempfile::tempdir().expect("one"));
    let folder = folder.path();
    parts(&target, &["1/3", "2/3", "3/3"], folder);
    let said = throng("merge --out").arg(folder.join("all"));
    let said = ["0", "1", "2"].iter().fold(said, |line, one| line.arg(folder.join(one))).run();
    let all = folder.join("all").display().to_string();
    let looks = [
        (80, said),
        (80, throng(&format!("report {all}")).run()),
        (80, terminal(80, "xterm-256color", &format!("report {all}"))),
        (60, terminal(60, "xterm-256color", &format!("report {all}"))),
        (80, terminal(80, "dumb", &format!("report {all}"))),
        (60, terminal(60, "dumb", &format!("report {all}"))),
    ];
    for (number, (columns, run)) in looks.iter().enumerate() {
        let colours = number == 2 || number == 3;
        run.check(run.out.contains('\u{1b}') == colours, "colours where they belong");
        let dumb = number > 3;
        run.check(!dumb || run.out.is_ascii(), "more than a dumb terminal shows");
        let plain = without_colours(&run.out);
        run.check(plain.lines().count() <= 24, "it is longer than a terminal");
        for line in plain.lines().filter(|line| !line.contains(&all)) {
            let width = line.chars().count();
            run.check(width <= *columns, &format!("{width} columns: {line}"));
        }
        for part in ["GET /work", "GET /come", "status-unexpected", "directory"] {
            run.check(plain.contains(part), part);
        }
        run.check(*columns < 80 || plain.contains("3 machines"), "of how many machines");
    }
}

/// Without the codes of colours (SGR of ECMA-48).
fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_string();
    pieces.fold(first, |all, piece| all + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

#[test]
fn unrelated_parts_are_refused() {
    let (target, folder) = (Target::start("http"), tempfile::tempdir().expect("a folder"));
    let folder = folder.path();
    parts(&target, &["1/2", "2/2"], folder);
    part(&target, "2/2", &folder.join("2")).run();
    merge(folder, &[0, 2], "late").exits(2).says(&["cannot be merged", "after the first"]);
    part(&target, "2/2", &folder.join("3")).arg("--seed=5").run();
    merge(folder, &[0, 3], "seed").exits(2).says(&["its seed is 5, but the seed of"]);
    let other = scenario(&target).replace("101", "102");
    let line = throng("run s.yaml --quiet --part 2/2").arg("--out").arg(folder.join("4"));
    line.file("s.yaml", other).run();
    merge(folder, &[0, 4], "scenario").exits(2).says(&["its scenario differs from that of"]);
    merge(folder, &[0, 9], "nowhere").exits(2).says(&["is not a run directory"]);
    assert!(!folder.join("nowhere").exists() && !folder.join("seed").exists());
    // A record that exists is not written over.
    merge(folder, &[0, 1], "all").exits(0);
    merge(folder, &[0, 1], "all").exits(2);
    let part = throng("run s.yaml --part 3/2").file("s.yaml", "").run().exits(2);
    part.says(&["write `2/5`"]);
}

#[test]
fn a_torn_record_is_merged_and_says_what_is_missing() {
    let (target, folder) = (Target::start("http"), tempfile::tempdir().expect("a folder"));
    let folder = folder.path();
    parts(&target, &["1/2", "2/2"], folder);
    let path = folder.join("1/intervals.ndjson");
    let lines = std::fs::read_to_string(&path).expect("intervals");
    let kept: Vec<&str> = lines.lines().skip(1).collect();
    std::fs::write(&path, kept.join("\n") + "\n").expect("a file");
    let run = merge(folder, &[0, 1], "all").exits(5);
    run.check(run.json()["record"]["lines_lost"].as_u64() >= Some(1), "a line is missing");
}

/// One of two clocks is three seconds ahead: seconds of one part are not those of the other.
#[test]
fn no_findings_are_drawn_from_runs_whose_clocks_disagree() {
    let (target, folder) = (Target::start("http"), tempfile::tempdir().expect("a folder"));
    let folder = folder.path();
    let text = scenario(&target).replace("for: 2s", "for: 5s");
    for number in 0..2 {
        let line = throng(&format!("run s.yaml --quiet --part {}/2", number + 1));
        line.arg("--out").arg(folder.join(number.to_string())).file("s.yaml", &text).run();
        let path = folder.join(format!("{number}/run.json"));
        let facts = std::fs::read_to_string(&path).expect("facts");
        let mut facts: Value = serde_json::from_str(&facts).expect("JSON");
        facts["zero_unix_ns"] = (1_800_000_000_000_000_000_u64 + number * 3_000_000_000).into();
        std::fs::write(&path, facts.to_string()).expect("a file");
    }
    // The rate of the threshold is lower, too.
    merge(folder, &[0, 1], "all").exits(1);
    let why = throng("why").arg(folder.join("all")).run().exits(0);
    why.says(&["no findings", "the merged runs started 3.00s apart, or their clocks disagree"]);
}

/// No scenario brings a user to stand still, so the record of one part says that it did: the whole
/// ends with the exit code of a bug.
#[test]
fn a_part_that_a_bug_ended_ends_the_whole_with_70() {
    let (target, folder) = (Target::start("http"), tempfile::tempdir().expect("a folder"));
    let folder = folder.path();
    parts(&target, &["1/2", "2/2"], folder);
    merge(folder, &[0, 1], "good").exits(0);
    let events = folder.join("1").join("events.ndjson");
    let text = std::fs::read_to_string(&events).expect("its events");
    let reason = "stuck";
    let bug = format!(r#""event":"stopped","at_ns":1000000000,"reason":"{reason}","by":"bug"}}"#);
    let text = format!("{text}{{\"seq\":{},{bug}\n", text.lines().count() + 1);
    std::fs::write(&events, text).expect("it can be written");
    let whole = merge(folder, &[0, 1], "bad").exits(70);
    whole.says(&[reason]);
    throng("report").arg(folder.join("bad")).run().says(&["throng has a bug", "exit 70", reason]);
}
