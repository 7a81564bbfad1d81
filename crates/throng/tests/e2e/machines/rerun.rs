//! `throng rerun`: a run once more from its directory alone, and what it refuses.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::http::tls::Papers;
use crate::run::{Run, throng};
use crate::servers::Target;

const SECRET: &str = "swordfish-in-env";

const SCENARIO: &str = "\
include: parts/common.yaml
target: ${vars.url}
vars: {url: 'http://127.0.0.1:1', token: {env: RERUN_TOKEN}, zone: {env: RERUN_ZONE}}
sessions:
  user:
    steps:
    - use: greet
    - http: 'POST /echo?zone=${vars.zone}'
      name: post
      body: {file: bodies/../bodies/hello.txt}
load: [{users: 3, iterations: 12}]
";

const COMMON: &str = "\
data: {people: {csv: ../people.csv, take: unique}}
parts:
  greet:
    - http: 'GET /${data.people.name}'
      name: greet
      headers: {Authorization: 'Bearer ${vars.token}'}
";

fn people() -> String {
    (1..=40).map(|number| format!("p{number}\n")).collect()
}

#[test]
fn thresholds_of_the_command_decide_and_are_those_of_the_rerun() {
    let target = Target::start("http");
    for (own, is_list) in [("", false), ("thresholds: [http errors = 0]\n", true)] {
        let text = format!(
            "target: {}\n{own}sessions: {{a: {{steps: [{{http: GET /}}]}}}}\nload: [{{users: 1, \
             iterations: 3}}]\n",
            target.http("")
        );
        let run = |threshold: &str| {
            throng("run s.yaml --quiet --json --out record --threshold")
                .arg(threshold)
                .file("s.yaml", &text)
                .run()
        };
        run("http count = 3").exits(0);
        let missed = run("http count > 3").exits(1);
        let list = missed.json()["thresholds"].as_array().cloned().unwrap_or_default();
        missed.check(list.len() == 1 + usize::from(is_list), "all of them are judged");
        let record = missed.folder().join("record");
        let text = std::fs::read_to_string(record.join("scenario.yaml")).expect("a scenario");
        missed.check(text.contains("http count > 3"), &text);
        throng("rerun --quiet --json").arg(&record).run().exits(1);
        run("http count >").exits(2).says(&["error[bad-threshold]", "--threshold:1:1"]);
        run("htp p99 < 1s").exits(2).says(&["--threshold:1:1", "`http`"]);
    }
}

/// A run of [`SCENARIO`] against a server, with the record in `record`.
fn recorded(url: &str, more: &str, scenario: &str) -> Run {
    throng(&format!("run it.yaml --quiet --json --out record --set url={url} {more}"))
        .env("RERUN_TOKEN", SECRET)
        .env("RERUN_ZONE", "north")
        .file("it.yaml", scenario)
        .file("parts/common.yaml", COMMON)
        .file("people.csv", format!("name\n{}", people()))
        .file("bodies/hello.txt", "hello")
        .run()
}

fn again(record: &Path, more: &str) -> Run {
    let line = format!("rerun {} --quiet --json --out again {more}", record.display());
    throng(&line).env("RERUN_TOKEN", SECRET).env("RERUN_ZONE", "north").run()
}

fn info(record: &Path) -> Value {
    let text = std::fs::read_to_string(record.join("run.json")).expect("run.json");
    serde_json::from_str(&text).expect("JSON")
}

/// Of each file of a record: what it is, where it was, and its digest.
fn files(info: &Value) -> Vec<[Value; 3]> {
    let files = info["files"].as_array().expect("files").iter();
    // What an include has stands in the recorded scenario.
    let files =
        files.filter(|file| !["include", "scenario"].map(Value::from).contains(&file["role"]));
    files.map(|file| ["role", "path", "sha256"].map(|name| file[name].clone())).collect()
}

fn every_file(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { every_file(&path) } else { vec![path] }).collect()
}

#[track_caller]
fn holds_no_secret(record: &Path) {
    for path in every_file(record) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
        assert!(!text.contains(SECRET) && !text.contains("PRIVATE KEY"), "{}", path.display());
    }
}

#[test]
fn a_run_is_reproduced_from_its_directory_alone() {
    let papers = Papers::signed();
    let ca = papers.path("ca.pem").display().to_string();
    let nginx = papers.nginx(
        "server",
        &format!("ssl_client_certificate {ca}; ssl_verify_client on; error_page 404 405 =200 /;"),
    );
    let [certificate, key] = ["client.pem", "client.key"].map(|name| papers.path(name));
    let tls = format!(
        "tls: {{ca: {ca}, certificate: {}, key: {}}}\n",
        certificate.display(),
        key.display()
    );
    let url = nginx.url("").replace("http:", "https:");
    let more = "--users 2 --shards 2 --label team=blue";
    let first = recorded(&url, more, &format!("{SCENARIO}{tls}"));
    let first = first.succeeds(24);
    let record = first.folder().join("record");
    let books = |from: usize| {
        let log = nginx.log(from + 24);
        let mut rows: Vec<String> = log[from..].iter().map(|words| words[2].clone()).collect();
        rows.sort_unstable();
        rows
    };
    let rows = books(0);
    for gone in ["it.yaml", "parts/common.yaml", "people.csv", "bodies/hello.txt"] {
        std::fs::remove_file(first.folder().join(gone)).expect("a file");
    }
    std::fs::remove_file(&certificate).expect("a certificate");
    let second = again(&record, "").succeeds(24);
    assert_eq!(books(24), rows, "other rows: {second}");
    let (old, new) = (info(&record), info(&second.folder().join("again")));
    for same in ["seed", "shards", "labels", "targets", "changes", "bundle", "name"] {
        assert_eq!(old[same], new[same], "{same}");
    }
    assert_eq!(new["rerun_of"], old["id"]);
    assert_eq!(second.json()["run"]["rerun_of"], old["id"]);
    assert_ne!(new["id"], old["id"]);
    assert_eq!(files(&old), files(&new));
    // In the order of their paths, of which some are temporary.
    let mut roles: Vec<String> = files(&old).iter().map(|[role, ..]| role.to_string()).collect();
    roles.sort_unstable();
    let wanted = ["body", "certificate", "certificate", "data", "key"];
    assert_eq!(roles, wanted.map(|role| format!("{role:?}")));
    holds_no_secret(&record);
    // A rerun can be repeated too.
    again(&second.folder().join("again"), "").succeeds(24);
    // The key is there by reference only.
    std::fs::write(&key, "another").expect("a key");
    let refused = again(&record, "").exits(2);
    refused.says(&["error[rerun-impossible]", "client.key` has changed", "--allow-changed"]);
    std::fs::remove_file(&key).expect("a key");
    again(&record, "")
        .exits(2)
        .says(&["error[rerun-impossible]", "client.key`, which that run used"]);
}

#[test]
fn a_part_stays_that_part_and_processes_make_the_whole() {
    let target = Target::start("http");
    let part = recorded(&target.http(""), "--part 2/3", SCENARIO).exits(0);
    let record = part.folder().join("record");
    let same = again(&record, "").exits(0);
    let machines = |record: &Path| info(record)["machines"].clone();
    let old = machines(&record);
    assert_eq!(old[0]["of"], 3, "{old}");
    let now = machines(&same.folder().join("again"));
    for field in ["first", "width", "of"] {
        assert_eq!(old[0][field], now[0][field], "{field}: {now}");
    }
    assert_eq!(part.json()["total"]["count"], same.json()["total"]["count"]);

    let whole = recorded(&target.http(""), "", SCENARIO).succeeds(24);
    let run = again(&whole.folder().join("record"), "--processes 2").succeeds(24);
    assert_eq!(run.json()["machines"].as_array().map(Vec::len), Some(2), "{run}");
}

#[test]
fn an_edited_directory_is_refused() {
    let target = Target::start("http");
    let run = recorded(&target.http(""), "", SCENARIO).succeeds(24);
    let record = run.folder().join("record");
    for name in ["files/people.csv", "scenario.yaml", "files/bodies/hello.txt"] {
        let path = record.join(name);
        let before = std::fs::read(&path).expect("a copy");
        std::fs::write(&path, [&before[..], b"\n"].concat()).expect("an edit");
        let refused = again(&record, "--allow-changed").exits(2);
        refused.says(&["error[rerun-impossible]", &format!("`{name}`"), "was edited"]);
        std::fs::remove_file(&path).expect("a copy");
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("a link");
        again(&record, "").exits(2).says(&["error[rerun-impossible]", &format!("`{name}`")]);
        std::fs::remove_file(&path).expect("a link");
        std::fs::write(&path, before).expect("as it was");
    }
    let path = record.join("run.json");
    let text = std::fs::read_to_string(&path).expect("run.json");
    for (from, to, told) in [
        ("\"files/people.csv\"", "\"../people.csv\"", "outside"),
        ("\"format\": ", "\"format\": 99", "format-unknown"),
        ("\"bundle\"", "\"before\"", "was recorded without copies of its files"),
    ] {
        std::fs::write(&path, text.replace(from, to)).expect("an edit");
        again(&record, "").exits(2).says(&[told]);
    }
    let foreign = run.folder().join("parts");
    again(&foreign, "").exits(2).says(&["error[run-unreadable]"]);
    assert_eq!(target.counts("/requests"), 24, "something was sent");
}

#[test]
fn inputs_outside_the_record_must_be_unchanged() {
    let target = Target::start("http");
    let run = recorded(&target.http(""), "--copy-max 20B", SCENARIO).succeeds(24);
    let (record, people) = (run.folder().join("record"), run.folder().join("people.csv"));
    let data = info(&record)["files"].as_array().expect("files").iter().find_map(|file| {
        (file["role"] == "data").then(|| [file["no_copy"].clone(), file["copy"].clone()])
    });
    assert_eq!(data, Some([json!("large"), Value::Null]));
    again(&record, "").succeeds(24);
    let rerun = format!("rerun {} --quiet --out again", record.display());
    let unset = throng(&rerun).env("RERUN_ZONE", "north").run().exits(2);
    unset.says(&["error[rerun-impossible]", "`RERUN_TOKEN` was set", "nothing was sent"]);
    let other = throng(&rerun).env("RERUN_ZONE", "south").env("RERUN_TOKEN", SECRET).run().exits(2);
    other.says(&["error[rerun-impossible]", "`RERUN_ZONE` had a different value"]);
    let text = std::fs::read_to_string(&people).expect("data").replace("p7\n", "p07\n");
    std::fs::write(&people, text).expect("other data");
    again(&record, "").exits(2).says(&["people.csv` has changed", "--allow-changed"]);
    again(&record, "--set zone=south").exits(2).says(&["`zone` is not masked"]);
    let changed = again(&record, "--allow-changed").succeeds(24);
    let told = info(&changed.folder().join("again"))["changes"].to_string();
    changed.check(told.contains("has changed since that run"), &told);
    assert_eq!(target.counts("/requests"), 3 * 24, "something was sent");
}

#[test]
fn secrets_are_never_copied_and_given_again() {
    let target = Target::start("http");
    let scenario = format!(
        "target: {}\nvars: {{password: {SECRET}}}\ndata: {{people: {{csv: people.csv}}}}\n\
         sessions: {{s: {{steps: [{{http: POST /echo, json: {{password: '${{vars.password}}', \
         pin: '${{data.people.pwd}}'}}}}]}}}}\nload: [{{users: 1, iterations: 2}}]\n",
        target.http("")
    );
    let run = throng("run it.yaml --quiet --json --out record")
        .file("it.yaml", scenario)
        .file("people.csv", "name,pwd\na,swordfish-in-csv\n")
        .run()
        .succeeds(2);
    let record = run.folder().join("record");
    let people = &info(&record)["files"][1];
    assert_eq!((&people["no_copy"], &people["copy"]), (&json!("secret"), &Value::Null));
    holds_no_secret(&record);
    for path in every_file(&record) {
        let text = std::fs::read_to_string(&path).expect("a text");
        assert!(!text.contains("swordfish-in-csv"), "{}", path.display());
    }
    again(&record, "").exits(2).says(&["error[masked-secret]", "`password`", "--set"]);
    again(&record, &format!("--set password={SECRET}")).succeeds(2);
    // A secret that is no variable can be given by nothing.
    let line = format!("bench {} -n 1 -c 1 --quiet --out record", target.http("/?api_key=k3y"));
    let bench = throng(&line).run().exits(0);
    let refused = again(&bench.folder().join("record"), "").exits(2);
    refused.says(&["error[rerun-impossible]", "masked secret"]);
    let plain = throng(&line.replace("?api_key=k3y", "")).run().exits(0);
    again(&plain.folder().join("record"), "").succeeds(1);
}
