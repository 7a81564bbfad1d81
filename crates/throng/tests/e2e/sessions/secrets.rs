//! What must not be told: secrets, foreign control characters, lines of files of others.

use std::os::unix::fs::PermissionsExt as _;

use crate::run::{Run, throng};
use crate::servers::Target;

const SECRETS: [&str; 6] =
    ["swordfish", "given-by-set", "literal-bearer", "cookie-value", "k3y-in-query", "u5er-pass"];

/// A login whose every part is a secret; the target answers some of it back.
fn scenario(target: &Target) -> String {
    format!(
        "\
name: secrets
vars:
  password: swordfish
  pin: {{value: 0, secret: true}}
target: {}
sessions:
  user:
    steps:
    - http: POST /echo?api_key=k3y-in-query
      headers: {{Authorization: Bearer literal-bearer, Cookie: sid=cookie-value}}
      json: {{password: \"${{vars.password}}\", pin: \"${{vars.pin}}\"}}
      save: {{token: {{json: $.password}}}}
    - http: GET /swordfish-${{vars.pin}}
      auth: {{user: a, password: u5er-pass}}
      check: {{status: 299}}
    - log: \"the password is ${{vars.password}}, the token ${{saved.token}}\"
load: [{{users: 1, iterations: 2}}]
",
        target.http("")
    )
}

#[track_caller]
fn has_none(run: &Run, what: &str, text: &str) {
    for secret in SECRETS {
        run.check(!text.contains(secret), &format!("{what} holds `{secret}`: {text}"));
    }
}

#[test]
fn a_record_and_its_reports_contain_no_secrets() {
    let target = Target::start("http");
    let run = throng("run s.yaml --set pin=given-by-set --out record")
        .file("s.yaml", scenario(&target))
        .run();
    has_none(&run, "the output", &format!("{}{}", run.out, run.err));
    run.says(&["the password is ***, the token ***"]);
    let folder = run.folder().join("record");
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
    };
    run.check(mode(&folder) == 0o700, "others can look into it");
    for entry in std::fs::read_dir(&folder).expect("a record") {
        let path = entry.expect("an entry").path();
        run.check(mode(&path) == 0o600, &format!("others can read {}", path.display()));
        let text = std::fs::read_to_string(&path).expect("a text");
        has_none(&run, &path.display().to_string(), &text);
    }
    let json = throng("report --json").arg(&folder).run();
    has_none(&json, "JSON", &json.out);
    // The record says what to give, and cannot be run as it is.
    let again = throng("check").arg(folder.join("scenario.yaml")).run().exits(2);
    again.check(again.err.contains("masked-secret"), "it takes the mask for the secret");
    let text = std::fs::read_to_string(folder.join("scenario.yaml")).expect("a scenario");
    let says = |part: &str| run.check(text.contains(part), &text);
    ["# Secrets are masked", "--set password=…"].into_iter().for_each(says);
}

/// User and password are the same word, which is also part of a path, of a row and of an answer.
fn common(target: &Target, word: &str) -> String {
    format!(
        "\
vars: {{user: {word}, password: {word}}}
target: {}
data: {{people: {{csv: people.csv}}}}
sessions:
  user:
    steps:
    - http: POST /echo?from={word}
      name: POST /{word}/health
      headers: {{X-Pass: \"${{vars.password}}\"}}
      json: {{user: \"${{vars.user}}\", password: \"${{vars.password}}\", state: {word}}}
      check: {{json.state: {word}, json.user: {word}}}
    - http: POST /echo
      form: {{user: \"${{vars.user}}\", pw: \"${{vars.password}}\", own: \"${{data.people.pwd}}\"}}
      check: {{body: {{contains: {word}-is-missing}}}}
    - log: \"the password is ${{vars.password}}, the user {word}\"
load: [{{users: 1, iterations: 2}}]
",
        target.http("")
    )
}

#[test]
fn a_password_that_is_a_word_like_others_hides_nothing_else_and_the_record_reruns() {
    let target = Target::start("http");
    for word in ["admin", "test", "open"] {
        let run = throng("run s.yaml --out record --details")
            .file("s.yaml", common(&target, word))
            .file("people.csv", format!("name,pwd\nanna,{word}\nberta,{word}\n"))
            .run();
        let said = format!("{}{}", run.out, run.err);
        run.says(&[
            &format!("POST /{word}/health"),
            &format!("{word}-is-missing"),
            &format!("user={word}&pw=***&own=***"),
            &format!("the password is ***, the user {word}"),
        ]);
        run.check(!said.contains("/***"), "it masks what is no secret");
        let record = run.folder().join("record");
        let text = std::fs::read_to_string(record.join("scenario.yaml")).expect("a scenario");
        let kept = ["json.state", "json.user", "user"].map(|key| format!("{key}: {word}\n"));
        kept.iter().for_each(|part| run.check(text.contains(part), &text));
        run.check(text.contains("password: \"***\"\n"), &text);
        let line = format!("rerun {} --json --set password={word} --out again", record.display());
        let again = throng(&line).run();
        let passed = |run: &Run, row: &str| {
            let json = throng("report --json").arg(run.folder().join(row)).run().json();
            json["steps"].as_array().expect("steps").iter().map(|it| it["ok"].clone()).collect()
        };
        let (first, second): (Vec<_>, Vec<_>) = (passed(&run, "record"), passed(&again, "again"));
        run.check(!first.is_empty() && first == second, &format!("{first:?} {second:?}"));
        let tried = throng("try s.yaml")
            .file("s.yaml", common(&target, word))
            .file("people.csv", format!("name,pwd\nanna,{word}\n"))
            .run();
        tried.says(&[
            &format!("POST /{word}/health"),
            &format!("\"password\":\"***\",\"state\":\"{word}\""),
            &format!("user={word}&pw=***"),
        ]);
    }
}

#[test]
fn throng_try_shows_secrets_only_if_requested() {
    let target = Target::start("http");
    let text = scenario(&target);
    let line = "try s.yaml --set pin=given-by-set";
    let run = throng(line).file("s.yaml", &text).run();
    has_none(&run, "try", &format!("{}{}", run.out, run.err));
    run.says(&["Authorization: Bearer ***", "\"password\":\"***\"", "saved token = ***"]);
    let open = throng(&format!("{line} --show-secrets")).file("s.yaml", &text).run();
    open.says(&["Bearer literal-bearer", "saved token = \"swordfish\"", "sid=cookie-value"]);
    let check = throng("check s.yaml").file("s.yaml", &text).run();
    has_none(&check, "check", &format!("{}{}", check.out, check.err));
    let stops = "    - stop: \"not with ${vars.password}, ${saved.token}\"\nload:";
    let text = text.replace("load:", stops);
    let run = throng(line).file("s.yaml", &text).run();
    run.says(&["the scenario stopped the run: not with ***, ***"]);
    let open = throng(&format!("{line} --show-secrets")).file("s.yaml", &text).run();
    open.says(&["not with swordfish, swordfish"]);
}

#[test]
fn a_command_line_is_recorded_without_secrets() {
    let target = Target::start("http");
    let run = throng(&format!("bench {} -n 1 -c 1 --out record", target.http("/echo")))
        .arg("-H")
        .arg("Authorization: Bearer literal-bearer")
        .arg("--body")
        .arg("{\"password\":\"swordfish\"}")
        .run()
        .exits(0);
    for file in ["run.json", "scenario.yaml", "events.ndjson"] {
        let text = std::fs::read_to_string(run.folder().join("record").join(file)).expect("text");
        has_none(&run, file, &text);
    }
}

#[test]
fn foreign_control_characters_reach_no_terminal() {
    let target = Target::start("http");
    let text = format!(
        "name: \"a\\e[2Jb\\u202Ec\"\ntarget: {}\nsessions: {{s: {{steps: [{{http: POST /echo, \
         name: \"x\\u2066y\", body: \"\\u009B2J\\u202E\\e[31mbody\", \
         check: {{body: {{contains: zzz}}}}}}, \
         {{log: \"\\e]0;title\\a\"}}]}}}}\nload: [{{users: 1, iterations: 1}}]\n",
        target.http("")
    );
    let harmful = |c: char| c != '\n' && throng_base::clean::is_harmful(c);
    for line in
        ["check s.yaml", "try s.yaml", "run s.yaml --out r", "run s.yaml --json --no-record"]
    {
        let run = throng(line).file("s.yaml", &text).run();
        let said = format!("{}{}", run.out, run.err);
        run.check(!said.contains(harmful), &format!("{:?}", said.find(harmful)));
        run.check(!said.contains("panicked") && said.len() > 100, "it says nothing");
    }
    let broken = format!("{text}nons\u{202e}ense: \u{9b}2J\n");
    let run = throng("check s.yaml").file("s.yaml", broken).run().exits(2);
    run.check(!run.err.contains(harmful), "a mistake shows it");
}

#[test]
fn an_invalid_included_file_is_not_shown() {
    let run = throng("check s.yaml")
        .file("s.yaml", "include: shadow\ntarget: http://127.0.0.1:1\n")
        .file("shadow", "root:$6$salt:19000:0:99999:7:::\nmail:*:19000\n")
        .run()
        .exits(2);
    run.check(run.err.contains("--> shadow:") && !run.err.contains("$6$"), "its line is shown");
}
