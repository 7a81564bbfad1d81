//! What failures are told by: who failed, what was sent and what came, in the record, JSON and
//! `--details`; and no secret in it.

use serde_json::Value;

use crate::run::throng;
use crate::scenarios::one_session;
use crate::servers::Target;

fn failure<'j>(json: &'j Value, cause: &str) -> &'j Value {
    let failures = json["failures"].as_array().expect("failures");
    failures.iter().find(|one| one["cause"] == cause).unwrap_or_else(|| panic!("{json}"))
}

#[test]
fn failures_are_shown_with_request_and_response() {
    let target = Target::start("http");
    let head = "data: {it: {list: [{name: anna, password: swordfish}]}}\n\
                load: [{users: 2, iterations: 6}]\nthresholds: [errors < 1%]";
    let steps = "\
- http: GET /status/404
  headers: {X-Mark: fixed, Authorization: Bearer literal}
- http: POST /echo?n=${random.int(1, 1000000)}
  json: {user: \"${data.it.name}\", password: \"${data.it.password}\"}
  check: {json.nothing: 1}
- http: POST /echo
  body: {hex: 00 01 02 ff}
  check: {status: 299}";
    let run = throng("run s.yaml --details --out record --shards 2")
        .file("s.yaml", one_session(&target.http(""), head, steps))
        .run()
        .exits(1);
    let report = throng("report --json").arg(run.folder().join("record")).run();
    let json = report.json();
    let status = failure(&json, "status-unexpected");
    let text = |piece: &Value| piece["text"].as_str().unwrap_or_default().to_string();
    let (sent, received) =
        (text(&status["evidence"]["sent"]), text(&status["evidence"]["received"]));
    run.check(sent.starts_with("GET /status/404 HTTP/1.1\r\n"), &sent);
    run.check(sent.contains("X-Mark: fixed") && sent.contains("Bearer ***"), &sent);
    run.check(received.starts_with("HTTP/1.1 404 "), &received);
    run.check(received.ends_with("\r\n\r\nNot Found"), &received);
    run.check(status["evidence"]["user"].as_u64() > Some(0), "no user");
    // What is drawn is what was sent: the target sends it back.
    let wrong = failure(&json, "json-unexpected");
    let (sent, received) = (text(&wrong["evidence"]["sent"]), text(&wrong["evidence"]["received"]));
    run.check(sent.starts_with("POST /echo?n="), &sent);
    run.check(received == r#"{"user":"anna","password":"***"}"#, &received);
    run.check(sent.ends_with(&received), &sent);
    let row = &wrong["evidence"]["row"];
    run.check(row["it.name"] == "\"anna\"" && row["it.password"] == "***", &row.to_string());
    run.says(&["→ GET /status/404", "← HTTP/1.1 404", "it.password: ***", "00 01 02 ff"]);
    // Each kind once, though there are two shards and six iterations.
    let failures = json["failures"].as_array().expect("failures").len();
    run.check(failures == 3, &format!("{failures} failures"));
    for file in ["events.ndjson", "scenario.yaml"] {
        let text = std::fs::read_to_string(run.folder().join("record").join(file)).expect("text");
        run.check(!text.contains("swordfish") && !text.contains("literal"), &text);
    }
    let plain = throng("report").arg(run.folder().join("record")).run();
    plain.check(!plain.out.contains("X-Mark"), "details without --details");
    throng("report --details").arg(run.folder().join("record")).run().says(&["X-Mark: fixed"]);
}
