//! `throng schema` as editors use it: a YAML language server completes and checks with it.

use std::path::Path;
use std::process::Command;

use throng_fuzz::node_modules;

use crate::run::{Run, Throng, throng};
use crate::servers::program;

/// A scenario around some steps.
fn around(steps: &str) -> String {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "target: http://127.0.0.1:8080\nload: [{{users: 1, for: 5s}}]\n\
         sessions:\n  reader:\n    steps:\n{steps}"
    )
}

/// What the language server says of the files, which have the schema that the binary prints.
#[track_caller]
fn editor(files: &[(String, String)]) -> Run {
    let schema = throng("schema").run().exits(0).out;
    let mut command = Command::new(program("node", "nodejs"));
    command.env("NODE_PATH", node_modules("yaml-language-server"));
    command.args(["language_server.js", "throng.schema.json"]);
    let mut node = Throng::new(command)
        .file("language_server.js", include_str!("language_server.js"))
        .file("throng.schema.json", schema);
    for (name, text) in files {
        node = node.file(&format!("{name}.yaml"), text).arg(format!("{name}.yaml"));
    }
    node.run().exits(0)
}

/// The lines about a file.
fn lines<'r>(run: &'r Run, name: &str, word: &str) -> Vec<&'r str> {
    let begin = format!("{name} {word}");
    run.out.lines().filter_map(|line| line.strip_prefix(&begin)).map(str::trim_start).collect()
}

fn scenarios(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = folder.read_dir().expect("a folder").map(|file| file.expect("a file").path());
    let scenarios = files.filter(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".yaml") && !name.contains(".protocol.")
    });
    let mut scenarios: Vec<(String, String)> = scenarios
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a scenario"))
        })
        .collect();
    scenarios.sort();
    scenarios
}

#[test]
fn editors_find_no_fault_with_the_examples() {
    let mut files = scenarios("src/init");
    for (name, _) in &mut files {
        name.insert_str(0, "init-");
    }
    files.extend(scenarios("../../examples"));
    assert!(files.len() > 6, "{files:?}");
    let run = editor(&files);
    for (name, _) in &files {
        run.check(lines(&run, name, "mistakes") == ["0"], &format!("{name} has no mistakes"));
    }
}

/// What is wrong, the line where it is, and a word of what is said.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("verb", "- http: GET /\n- thinktime: 2s", "7", "`think`"),
    ("word", "- conect", "6", "`connect`"),
    ("key", "- http: GET /\n  chekc: {status: 200}", "7", "chekc"),
    ("verbs", "- http: GET /\n  think: 2s", "7", "think"),
    ("time", "- think: 2x", "6", "`2s`"),
    ("type", "- http: GET /\n  check: [200]", "7", "check"),
    ("inside", "- http: GET /\n  check:\n    sttus: 200", "8", "sttus"),
    ("deep", "- repeat: 3\n  steps:\n    - http: GET /\n      timeout: soon", "9", "`250ms`"),
    ("choice", "- http: GET /\n  on_error: ignore", "7", "leave"),
    ("missing", "- repeat: 3", "6", "steps"),
    ("later", "- connect: /ws\n  check: {status: 101}", "7", "not supported in this version"),
];

#[test]
fn editors_show_mistakes_at_their_lines() {
    let files: Vec<(String, String)> =
        WRONG.iter().map(|(name, steps, ..)| (name.to_string(), around(steps))).collect();
    let run = editor(&files);
    for (name, _, line, said) in WRONG {
        let found = lines(&run, name, &format!("{line} "));
        let is_said = found.iter().any(|message| message.contains(said));
        run.check(is_said, &format!("`{name}` is answered in line {line} with {said}"));
    }
}

/// A place in a file, words that are offered there, and one that is not.
const PLACES: &[(&str, &str, &[&str], &str)] = &[
    ("top", "name: x\n‸\n", &["target", "sessions", "load", "protocol"], "audit"),
    ("step", "STEPS- ‸", &["http", "connect", "think", "repeat", "next"], "timeout"),
    ("letters", "STEPS- th‸", &["think"], "timeout"),
    ("beside", "STEPS- http: GET /\n  ‸", &["check", "save", "timeout", "on_error"], "think"),
    ("check", "STEPS- http: GET /\n  check:\n    ‸", &["status", "json", "css"], "http"),
    ("take", "data:\n  a:\n    csv: a.csv\n    take: ‸\n", &["unique", "per user"], "stop"),
    ("failing", "STEPS- http: GET /\n  on_error: ‸", &["count", "leave"], "ignore"),
    ("beating", "STEPS- stay: 10m\n  heartbeat:\n    ‸", &["ping", "every", "lost_after"], "to"),
    ("phase", "load:\n  - ‸\n", &["users", "arrivals", "for", "churn"], "steps"),
];

#[test]
fn editors_offer_what_can_be_written() {
    let files: Vec<(String, String)> = PLACES
        .iter()
        .map(|(name, text, ..)| {
            let text = text.strip_prefix("STEPS").map_or(text.to_string(), around);
            (name.to_string(), text)
        })
        .collect();
    let run = editor(&files);
    for (name, _, offered, not) in PLACES {
        let found = lines(&run, name, "offers ");
        let has = |word: &str| found.iter().find(|line| line.starts_with(&format!("{word} \"")));
        for word in *offered {
            run.check(has(word).is_some(), &format!("`{word}` is offered at `{name}`"));
            let is_told = has(word).is_some_and(|line| !line.ends_with(" \"\""));
            run.check(is_told, &format!("`{word}` is explained at `{name}`"));
        }
        run.check(has(not).is_none(), &format!("`{not}` is not offered at `{name}`"));
    }
}

#[test]
fn editors_tell_what_a_word_means() {
    let files = [("key", "- http: GET /\n  time‸out: 5s"), ("word", "- lea‸ve")];
    let files = files.map(|(name, steps)| (name.to_string(), around(steps)));
    let run = editor(&files);
    for (name, told) in [("key", "The timeout from sending"), ("word", "the user leaves")] {
        let found = lines(&run, name, "tells ");
        run.check(found[0].contains(told), &format!("`{told}` is told at `{name}`"));
    }
}
