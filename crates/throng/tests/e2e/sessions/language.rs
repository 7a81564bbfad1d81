//! What else a scenario says, as the target sees it: bodies, variables, files, times, messages.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::run::{Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::scribe::{Asked, Scribe, answer, ok};
use crate::servers::Target;

/// What came when one user did the steps once.
#[track_caller]
fn asked(head: &str, steps: &str) -> Vec<Asked> {
    let scribe = Scribe::start();
    let text = one_session(&scribe.target(), &format!("{head}\n{}", times(1, 1)), steps);
    let run = running(&text).file("body.txt", "from ${user.id} file\n").env("COLOUR", "blue").run();
    let run = run.exits(0);
    run.has("/total/failed", 0);
    scribe.book()
}

#[test]
fn bodies_have_many_forms() {
    let steps = "\
- http: POST /1
  json: {a: [1, \"${user.id}\", {b: \"${iteration}\"}], c: null, d: \"x${user.id}\", e: true}
- http: POST /2
  form: {a: \"1 & 2\", b: [x, y], c: ä}
- http: POST /3
  body: \"user ${user.id}: ${1 + 1}\"
  headers: {Content-Type: text/plain, X-Twice: [a, b]}
- http: PUT /4
  body: {file: body.txt}
- http: POST /5
  body: {hex: \"41 42 0a\"}
- http: POST /6
  multipart: [{name: title, value: \"t${user.id}\"}, {name: up, file: body.txt, type: text/plain}]
- http: DELETE /7
  auth: {user: ann, password: \"p:w\"}
  cookies: {a: b}";
    let book = asked("", steps);
    assert_eq!(book[0].body, r#"{"a":[1,1,{"b":1}],"c":null,"d":"x1","e":true}"#);
    assert_eq!(book[0].header("content-type"), Some("application/json"));
    assert_eq!(book[1].body, "a=1+%26+2&b=x&b=y&c=%C3%A4");
    assert_eq!(book[1].header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(book[2].body, "user 1: 2");
    assert_eq!(book[2].header("content-type"), Some("text/plain"));
    assert_eq!(book[3].body, "from ${user.id} file\n", "a file is sent as it is");
    assert_eq!(book[4].body, "AB\n");
    let kind = book[5].header("content-type").unwrap_or_default();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").expect("a boundary");
    let parts: Vec<&str> = book[5].body.split(boundary).collect();
    assert_eq!(parts.len(), 4, "{}", book[5].body);
    assert!(parts[1].contains("name=\"title\"") && parts[1].contains("\r\n\r\nt1\r\n"));
    assert!(parts[2].contains("filename=\"body.txt\"") && parts[2].contains("file\n\r\n"));
    assert_eq!(book[6].header("authorization"), Some("Basic YW5uOnA6dw=="));
    assert_eq!(book[6].header("cookie"), Some("a=b"));
}

#[test]
fn variables_come_from_the_file_the_environment_and_the_command_line() {
    let head =
        "vars: {a: 1, b: \"${vars.a + 1}\", c: {env: COLOUR}, d: {env: NO_SUCH, default: none}}";
    let steps = "- http: GET /${vars.a}/${vars.b}/${vars.c}/${vars.d}/${env.COLOUR}";
    assert_eq!(asked(head, steps)[0].what, "GET /1/2/blue/none/blue");
    let scribe = Scribe::start();
    let text = one_session(&scribe.target(), &format!("{head}\n{}", times(1, 1)), steps);
    let run = running(&text).env("COLOUR", "red").arg("--set=a=7").arg("--set=d=x=y");
    run.run().succeeds(1);
    assert_eq!(scribe.asked(), ["GET /7/8/red/x=y/red"]);
    let run = running(&text).run().exits(2);
    run.says(&["COLOUR", "--> scenario.yaml:3:"]);
    running(&text).env("COLOUR", "").arg("--set=e=1").run().exits(2).says(&["`e`"]);
    assert_eq!(scribe.asked().len(), 1);
}

#[test]
fn files_are_included_from_where_they_are() {
    let scribe = Scribe::start();
    let head = format!("include: parts/common.yaml\n{}", times(2, 1));
    let text = one_session(&scribe.target(), &head, "- use: login\n- http: GET /${vars.own}");
    let common = "vars: {own: theirs, who: ann}\n\
        defaults: {headers: {X-From: common}}\n\
        data: {it: {csv: it.csv}}\n\
        parts:\n  login:\n    - http: POST /login/${vars.who}/${data.it.id}\n      \
        body: {file: body.txt}\n";
    let command = running(&text);
    let folder = command.folder().join("parts");
    std::fs::create_dir(&folder).expect("a folder");
    for (name, content) in
        [("common.yaml", common), ("it.csv", "id\n7\n8\n"), ("body.txt", "included")]
    {
        std::fs::write(folder.join(name), content).expect("a file");
    }
    command.run().succeeds(4);
    let wanted = ["POST /login/ann/7", "GET /theirs", "POST /login/ann/8", "GET /theirs"];
    assert_eq!(scribe.asked(), wanted);
    let book = scribe.book();
    assert!(book[0].body == "included" && book[1].header("x-from") == Some("common"));
}

#[test]
fn the_nearest_timeout_applies() {
    let target = Target::start("http --latency 400ms");
    let run = |head: &str, step: &str, exit: i32| {
        let head = format!("{head}\n{}", times(2, 2));
        let text = one_session(&target.http(""), &head, &format!("- http: GET /{step}"));
        running(&text).run().exits(exit)
    };
    run("", "", 0).has("/total/ok", 2);
    // Nothing succeeds, which is no good end.
    run("defaults: {timeout: 100ms}", "", 1).fails("timeout", "target", Some(2));
    run("", "\n  timeout: 100ms", 1).fails("timeout", "target", Some(2));
    run("defaults: {timeout: 100ms}", "\n  timeout: 10s", 0).has("/total/ok", 2);
}

#[test]
fn a_row_is_kept_while_its_step_is_retried() {
    let scribe = Scribe::answering(|_, number| match number % 3 {
        0 => ok(""),
        _ => answer("503 Service Unavailable", "", ""),
    });
    let head = format!("data: {{it: {{list: [a, b, c], take: unique}}}}\n{}", times(3, 1));
    let steps = "- http: GET /${data.it}\n  retry: {times: 5, wait: 10ms..20ms}";
    let run = running(&one_session(&scribe.target(), &head, steps)).run().exits(0);
    let wanted = ["a", "a", "a", "b", "b", "b", "c", "c", "c"].map(|row| format!("GET /{row}"));
    assert_eq!(scribe.asked(), wanted, "{run}");
    run.has("/total/ok", 3);
    run.has("/total/failed", 0);
    run.has("/retries/retried", 6);
}

/// Users, and what each asked for.
fn drawn(line: &str, seed: u64) -> (Run, BTreeSet<String>) {
    let scribe = Scribe::start();
    // The load goes on for a while, so that on a late host the last of them is not cut off.
    let load = "load: [{arrivals: 100/s, for: 500ms}, {users: 0, for: 500ms}]";
    let head = format!("seed: {seed}\n{load}");
    let steps =
        "- http: GET /${user.id}/${random.int(1, 1000000)}/${random.hex(6)}/${random.uuid()}";
    let run = running(&one_session(&scribe.target(), &head, steps)).arg(line).run().succeeds(50);
    (run, scribe.asked().into_iter().collect())
}

#[test]
fn the_same_seed_gives_the_same_users_on_any_number_of_shards() {
    let (run, first) = drawn("--shards=1", 5);
    run.check(first.len() == 50, "each is another");
    let users: BTreeSet<u64> = first
        .iter()
        .filter_map(|asked| asked.trim_start_matches("GET /").split('/').next()?.parse().ok())
        .collect();
    assert_eq!(users, (1..=50).collect());
    assert_eq!(drawn("--shards=1", 5).1, first);
    assert_ne!(drawn("--shards=1", 6).1, first);
    let (run, two) = drawn("--shards=2", 5);
    assert_eq!(run.json()["run"]["shards"], 2);
    let ids = |asked: &BTreeSet<String>| {
        let id = |asked: &String| asked.split('/').nth(1).map(String::from);
        asked.iter().filter_map(id).collect::<BTreeSet<String>>().len()
    };
    assert_eq!(ids(&two), 50, "nobody has the id of another");
}

/// What two users ask for, and the seed and id that the record of the run has.
fn unique(head: &str, line: &str) -> (BTreeSet<String>, Value, String) {
    let scribe = Scribe::start();
    let steps = "- http: GET /${run.id}/${random.uuid()}";
    let text = one_session(&scribe.target(), &format!("{head}\n{}", times(2, 2)), steps);
    let run = running(&text);
    let run = line.split_whitespace().fold(run, |run, word| run.arg(word)).run().succeeds(2);
    let json = run.json();
    let id = json["run"]["id"].as_str().expect("an id").to_string();
    let record = std::fs::read(run.folder().join("record/run.json")).expect("run.json");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!((&record["id"], &record["seed"]), (&json["run"]["id"], &json["run"]["seed"]));
    let asked: BTreeSet<String> = scribe.asked().into_iter().collect();
    let uuids = asked.iter().map(|asked| {
        let (own, uuid) = asked.trim_start_matches("GET /").split_once('/').expect("two parts");
        assert_eq!(own, id, "all users of all shards see one id");
        uuid.to_string()
    });
    (uuids.collect(), record["seed"].clone(), id)
}

#[test]
fn each_run_is_another_one_unless_it_has_a_seed() {
    let (first, seed, id) = unique("", "--shards=2");
    let (second, other_seed, other_id) = unique("", "");
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
    assert!(seed != other_seed && id != other_id);
    let (again, same_seed, new_id) = unique("", &format!("--seed {seed}"));
    assert_eq!((&again, &same_seed), (&first, &seed), "--seed repeats a run");
    assert!(new_id != id && new_id != other_id, "but it is another run");
    let (of_file, of_line) = (unique("seed: 7", ""), unique("", "--seed 7"));
    assert_eq!(of_file.0, of_line.0);
    assert_eq!(unique("seed: 8", "--seed 7").0, of_line.0, "the command line wins");
}

#[test]
fn throng_try_prints_and_accepts_a_seed() {
    let scribe = Scribe::start();
    let text = one_session(&scribe.target(), &times(1, 1), "- http: GET /${random.uuid()}");
    let tried = |line: &str| {
        let run = throng(&format!("try it.yaml {line}")).file("it.yaml", &text).run().exits(0);
        run.says(&["to reproduce this run, add --seed "]);
        scribe.asked().pop().expect("a request")
    };
    let [first, other, same] = ["--seed 5", "", "--seed 5"].map(tried);
    assert!(first == same && first != other, "{first} {other} {same}");
    let check = throng("check it.yaml --seed 5").file("it.yaml", &text).run();
    check.exits(0);
}

#[test]
fn messages_are_checked_and_saved() {
    let target = Target::start("im");
    let steps = "\
- connect: /acc
- request: {json: {seq: \"${user.id}-1\", cmd: login, data: {userId: \"u${user.id}\"}}}
  name: login
  check:
    json.cmd: login
    json.response.code: 200
    text: response
    that: \"${message.json.seq.startsWith(string(user.id))}\"
  save: {seq: json.seq, all: body, size: size}
- request: {json: {seq: \"${saved.seq}-again\", cmd: heartbeat, data: {}}}
  name: heartbeat
  expect: {json: {cmd: heartbeat}}
  check: {json.seq: \"${user.id}-1-again\", size: \"> 10\"}
- set: {same: \"${size(saved.all) == saved.size}\"}
- if: ${!saved.same}
  then: [{stop: the size is wrong}]
- request: {text: no json}
  name: wrong
  timeout: 300ms
  check: {json.response.code: 200}
- disconnect";
    let text = one_session(&target.url("ws", ""), &times(6, 3), steps);
    let run = running(&text).run().exits(0);
    for name in ["connect", "login", "heartbeat"] {
        run.check(run.row("steps", name)["ok"] == 6, name);
    }
    run.check(run.row("steps", "wrong")["failed"] == 6, "a text that is no JSON");
    assert_eq!(target.counts("/logins"), 6);
}

#[test]
fn raw_bytes_are_checked_and_saved() {
    let target = Target::start("echo");
    let steps = "\
- connect
- request: {text: \"HELLO ${user.id} ${random.hex(4)}\\n\"}
  expect: {delimiter: \"\\n\"}
  check: {text: \"HELLO ${user.id} \", regex: 'HELLO \\d+ [0-9a-f]{4}'}
  save: {word: {regex: 'HELLO \\d+ ([0-9a-f]+)'}}
- send: {text: \"${saved.word}\"}
- expect: {length: 4}
  check: {text: {equals: \"${saved.word}\"}}
- request: {hex: 00 ff}
  expect: {length: 2}
  check: {size: 2}
- disconnect";
    let text = one_session(&target.url("tcp", ""), &times(6, 3), steps);
    let run = running(&text).run().exits(0);
    run.has("/total/failed", 0);
    run.has("/users/iterations_finished", 6);
    run.has("/connections/opened", 6);
}

#[test]
fn a_recorded_scenario_can_be_rerun() {
    let scribe = Scribe::start();
    let head = format!("vars: {{path: p}}\nseed: 3\n{}", times(3, 1));
    let steps = "- http: GET /${vars.path}/${random.int(1, 1000000)}";
    let first = running(&one_session(&scribe.target(), &head, steps)).arg("--set=path=q").run();
    let first = first.succeeds(3);
    let record = first.folder().join("record");
    let again = throng("run again.yaml --json --set path=q");
    let text = std::fs::read(record.join("scenario.yaml")).expect("the scenario");
    again.file("again.yaml", text).run().succeeds(3);
    let asked = scribe.asked();
    assert!(asked[0].starts_with("GET /q/") && asked[..3] == asked[3..], "{asked:?}");
    let run: Value = serde_json::from_slice(&std::fs::read(record.join("run.json")).expect("run"))
        .expect("JSON");
    assert_eq!(run["seed"], 3);
}
