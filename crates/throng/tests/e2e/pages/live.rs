//! `--live`: the page of a run while it goes on, for several viewers, who lose nothing and may
//! steer it; and nobody else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_fuzz::node_modules;

use crate::run::{Child, Run, throng};
use crate::servers::{Target, program};
use crate::service::monitors::Exporter;

/// Of a page that is served.
struct Link {
    address: SocketAddr,
    token: String,
    url: String,
}

fn link(child: &Child) -> Link {
    let url = child.hears("a link", |_, errors| {
        let line = errors.lines().find_map(|line| line.strip_prefix("live page: "));
        line.map(str::to_string)
    });
    let rest = url.strip_prefix("http://").expect("a link");
    let (address, token) = rest.split_once("/?token=").expect("a token");
    let address = address.parse().expect("an address");
    Link { address, token: token.to_string(), url: url.clone() }
}

impl Link {
    /// What is answered, with its head.
    fn says(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("a page");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn posts(&self, headers: &str, body: &str) -> String {
        let host = self.address;
        let length = body.len();
        let head = format!("POST /control HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}");
        self.says(&format!("{head}{headers}\r\n\r\n{body}"))
    }
}

/// Begins a run of this scenario, and hears all that a viewer is told from its first moment on: the
/// names of events with their data. What is asked of the run at that moment is answered, too.
#[track_caller]
fn watched(line: &str, scenario: String) -> (Vec<(String, Value)>, String, Run) {
    let child = throng(line).file("s.yaml", scenario).start();
    let link = link(&child);
    let (token, host) = (link.token.as_str(), link.address);
    let status = r#"{"version":1,"command":"status","load":null}"#;
    let asked = link.posts(&format!("\r\nX-Throng-Token: {token}"), status);
    let request = format!("GET /events?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let heard = link.says(&request);
    let event = |text: &str| {
        let (name, data) = text.split_once("event: ")?.1.split_once("\ndata: ")?;
        Some((name.to_string(), serde_json::from_str(data.lines().next()?).ok()?))
    };
    (heard.split("\n\n").filter_map(event).collect(), asked, child.wait())
}

#[test]
fn a_viewer_sees_the_setup_the_load_and_other_sources() {
    for processes in ["", " --processes 2"] {
        let (target, exporter) = (Target::start("http"), Exporter::start());
        let text = format!(
            "target: {}
monitor:
- {{url: \"http://me:swordfish@{}/good\", name: works, every: 1s, metrics: [jobs]}}
setup: [{{think: 1500ms}}]
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 20ms}}]}}}}
load: [{{users: 4, for: 4s}}]
",
            target.http(""),
            exporter.address
        );
        let line = format!("run s.yaml --json --live --out record{processes}");
        let (heard, asked, run) = watched(&line, text);
        let run = run.exits(0);
        assert_eq!(heard[0], ("waiting".into(), serde_json::json!({"setup": true})), "{run}");
        assert!(asked.contains("the run has not started yet"), "{asked}");
        assert_eq!(heard[1].0, "all", "{run}");
        let named =
            |name: &'static str| heard.iter().filter(move |it| it.0 == name).map(|it| it.1.clone());
        assert!(named("second").count() >= 3, "{run}");
        let end = named("end").next().expect("an end");
        assert_eq!(end["summary"]["total"], run.json()["total"], "{run}");
        let seconds: Vec<Value> = named("second").collect();
        let last = |at: usize| seconds.iter().rev().find(|it| it["at"] == at).expect("a second");
        for at in 0..3 {
            assert_eq!(last(at)["figures"]["ok"], end["series"]["ok"][at], "{run}");
        }
        // What is read is told at once, and stands in the report in the same place.
        let readings: Vec<Value> = named("readings").collect();
        assert!(readings.len() >= 3, "{run}");
        for reading in readings.iter().flat_map(|it| it.as_array().expect("readings")) {
            let at = reading["at"].as_u64().expect("a place") as usize;
            assert_eq!(reading["name"], end["monitors"][0]["name"], "{run}");
            assert_eq!(reading["value"], end["monitors"][0]["values"][at], "{run}");
        }
    }
}

#[test]
fn a_viewer_of_a_setup_that_fails_is_told_so() {
    let target = Target::start("http --errors 100%");
    let text = format!(
        "target: {}\nsetup: [{{think: 1s}}, {{http: GET /}}]\n\
         sessions: {{s: {{steps: [{{http: GET /}}]}}}}\nload: [{{users: 1, for: 1s}}]\n",
        target.http("")
    );
    let (heard, _, run) = watched("run s.yaml --json --live --no-record", text);
    let run = run.exits(4);
    let (name, end) = heard.last().expect("an end");
    assert_eq!(
        (name.as_str(), &end["summary"]["outcome"]["exit_code"]),
        ("end", &4.into()),
        "{run}"
    );
    let reason = end["summary"]["outcome"]["reasons"][0].as_str().expect("a reason");
    assert!(end["renderings"][reason].is_string(), "{end}");
}

#[test]
fn two_viewers_see_the_run_and_one_steers_it() {
    let target = Target::start("http --errors 10%");
    let line = format!("bench {} -d 10m --rate 200/s --json --live --out record", target.http("/"));
    let child = throng(&line).start();
    let mut command = Command::new(program("node", "nodejs"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/pages/live.js");
    command.arg(script).arg(link(&child).url).arg(program("chromium", "chromium"));
    command.args(std::env::var_os("THRONG_PICTURES"));
    command.env("NODE_PATH", node_modules("puppeteer-core"));
    let told = Child::start(command).wait().exits(0);
    let told: Value = serde_json::from_str(&told.out).expect("JSON");
    let run = child.wait().exits(130);
    let none = serde_json::json!([]);
    assert_eq!((&told["errors"], &told["violations"]), (&none, &none), "{told}");
    let badge = |value: &Value| value.as_str().expect("a badge").to_string();
    assert!(badge(&told["badge"]).starts_with("running · 0:"), "{told}");
    assert!(badge(&told["back"]).starts_with("running"), "{told}");
    assert!(told["charts"].as_array().expect("charts").len() >= 5, "{told}");
    assert_eq!(told["sorted"], "descending", "a table stays as it was sorted");
    assert_eq!(told["stays"], true, "what a viewer points at is replaced");

    assert!(told["missed"].as_u64() >= Some(2), "one viewer was away: {told}");
    assert_eq!(told["columns"][0], told["columns"][1], "both saw the same seconds");
    assert!(told["columns"][0]["ok"].as_array().expect("seconds").len() >= 8);
    let ok = told["columns"][0]["ok"].as_array().expect("seconds");
    assert!(ok.iter().all(|count| count.as_u64() > Some(0)), "none is missing: {ok:?}");
    let marks = serde_json::json!(["<b>here</b>"]);
    assert_eq!((&told["marks"][0], &told["marks"][1]), (&marks, &marks));
    assert!(told["more"].as_str().expect("text").contains("times 1.1"), "{told}");
    let changes = run.json()["changes"].clone();
    let what = |at: usize| changes[at].to_string();
    assert!(what(0).contains("times 1.1") && what(1).contains("<b>here</b>"), "{changes}");

    assert_eq!(told["wanted"], serde_json::json!(["50", "220"]), "{told}");
    let texts = ["rate", "users", "zero"].map(|name| told[name].as_str().expect("text"));
    assert!(texts[0].contains("rate 300"), "{told}");
    assert!(texts[1].contains("starts its iterations at a rate: change its rate"), "{told}");
    assert!(texts[2].contains("the rate must be more than 0"), "{told}");
    assert_eq!(told["stayed"], serde_json::json!(["50", "300"]), "refused: {told}");
    let saved = told["saved"].as_array().expect("files");
    for (file, ending) in saved.iter().zip(["csv", "json", "html"]) {
        let name = format!("attachment; filename=\"record.{ending}\"");
        assert_eq!((&file["status"], &file["name"]), (&200.into(), &name.into()), "{ending}");
    }
    let lines = saved[0]["lines"].as_array().expect("lines");
    let head = lines[0].as_str().expect("a line");
    assert!(head.starts_with("second,unix_s,phase,") && lines.len() > 10, "{lines:?}");
    assert_eq!(saved[1]["ended"], Value::Null);
    let count = saved[1]["count"].as_f64().expect("a count");
    assert!(count > 800.0 && count < run.figure("/total/count"), "{count}");
    let page = &told["page"];
    assert_eq!((&page["file"], &page["controls"]), (&"record.html".into(), &0.into()), "{page}");
    assert!(badge(&page["badge"]).starts_with("incomplete"), "{page}");
    let notice = page["notice"].as_str().expect("text");
    assert!(notice.contains("The run was in progress"), "{page}");

    let zoomed = told["zoomed"].as_array().expect("times");
    assert_ne!(zoomed[0][0], "0:00", "{told}");
    assert!(zoomed.iter().all(|times| times == &zoomed[0]), "the part that is shown: {zoomed:?}");

    // The page has become the report: its figures are those of `--json`.
    for end in told["ends"].as_array().expect("two viewers") {
        assert_eq!(end["total"], run.json()["total"]);
        // Chromium may have taken the processors that the load needed.
        let verdict = if run.json()["outcome"]["valid"] == true { "failed" } else { "invalid" };
        assert_eq!(end["badge"], format!("{verdict} · exit code 130"));
        assert_eq!(end["controls"], 0);
        let good: u64 = end["ok"].as_array().expect("ok").iter().filter_map(Value::as_u64).sum();
        assert_eq!(good as f64, run.figure("/total/ok"));
    }
    assert!(told["chinese"].as_array().expect("texts").iter().any(|it| it == "明细"), "{told}");
}

#[test]
fn each_load_is_controlled_and_a_run_without_a_record_is_saved_as_shown() {
    let target = Target::start("http");
    let text = format!(
        "target: {}\nsessions:\n  s: {{steps: [{{http: GET /}}, {{think: 50ms}}]}}\n  \
         t: {{steps: [{{http: GET /}}]}}\nloads:\n  buyers: {{sessions: [s], phases: [{{users: 3, for: 10m}}]}}\n  \
         bots: {{sessions: [t], phases: [{{arrivals: 20/s, for: 10m}}]}}\n",
        target.http("")
    );
    let child = throng("run s.yaml --live --no-record").file("s.yaml", text).start();
    let link = link(&child);
    let token = format!("\r\nX-Throng-Token: {}", link.token);
    let says = |command: &str, load: &str| {
        let line = format!(r#"{{"version":1,"command":{command},"load":{load}}}"#);
        link.posts(&token, &line)
    };
    child.until("the status", || says("\"status\"", "null").contains("\"buyers\""));
    let change = |what: &str, load: &str| says(&format!("{{\"change\":{what}}}"), load);
    let done = change(r#"{"users":5}"#, r#""buyers""#);
    assert!(done.contains("\"done\"") && done.contains("users 5"), "{done}");
    let done = change(r#"{"rate":40.5}"#, r#""bots""#);
    assert!(done.contains("\"done\"") && done.contains("rate 40.5"), "{done}");
    for (what, load, why) in [
        (r#"{"rate":5}"#, r#""buyers""#, "has no rate that can be changed"),
        (r#"{"users":5}"#, r#""bots""#, "has no fixed number of users"),
        (r#"{"users":900000000}"#, r#""buyers""#, "this run can have at most"),
        (r#"{"users":5}"#, "null", "the run has several loads"),
        (r#"{"users":0}"#, r#""buyers""#, "the number of users must be at least 1"),
        (r#"{"rate":-5}"#, r#""bots""#, "the rate must be more than 0"),
        (r#"{"times":0}"#, r#""bots""#, "the rate must be more than 0"),
    ] {
        let refused = change(what, load);
        assert!(refused.contains("\"refused\"") && refused.contains(why), "{what}: {refused}");
    }
    for wrong in [r#"{"users":1.5}"#, r#"{"users":-1}"#, r#"{"rate":1e999}"#, r#"{"users":"5"}"#] {
        assert!(change(wrong, r#""bots""#).starts_with("HTTP/1.1 400"), "{wrong}");
    }
    let status = says("\"status\"", "null");
    assert!(status.contains("\"users\":5") && status.contains("\"per_second\":40.5"), "{status}");

    let host = link.address;
    let save =
        |query: &str| link.says(&format!("GET /save?{query} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let own = format!("token={}", link.token);
    child.until("attempts", || target.counts("/requests") > 20);
    let json = save(&format!("form=json&{own}"));
    assert!(json.contains("filename=\"s.json\"") && json.contains("\"buyers\""), "{json}");
    let page = save(&format!("form=html&{own}"));
    assert!(page.contains("filename=\"s.html\"") && page.contains("\"live\":false"), "no page");
    assert!(!page.contains("connect-src 'self'"), "it asks the network for nothing");
    for (query, status) in [
        (format!("form=csv&{own}"), 404),
        (format!("form=exe&{own}"), 404),
        (own.clone(), 404),
        ("form=json".into(), 403),
        ("form=json&token=0".into(), 403),
    ] {
        let answer = save(&query);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{query}: {answer}");
    }
    assert!(says("\"stop\"", "null").contains("\"done\""));
    child.wait().exits(130);
}

#[test]
fn clients_without_token_or_from_another_origin_get_nothing() {
    let target = Target::start("http");
    let line = format!("bench {} -d 30s --rate 50/s --live", target.http("/"));
    let child = throng(&line).start();
    child.until("requests", || target.counts("/requests") > 0);
    let link = link(&child);
    let (host, token) = (link.address.to_string(), link.token.as_str());
    let wrong = format!("{}0", &token[..token.len() - 1]);
    let wrong = if wrong == token { format!("{}1", &token[..token.len() - 1]) } else { wrong };
    let get = |path: &str, host: &str, more: &str| {
        link.says(&format!("GET {path} HTTP/1.1\r\nHost: {host}{more}\r\n\r\n"))
    };
    let good = get(&format!("/?token={token}"), &host, "");
    assert!(good.starts_with("HTTP/1.1 200") && good.contains("connect-src 'self'"), "{good}");
    let refused = [
        get("/", &host, ""),
        get("/events", &host, ""),
        get("/no-such", &host, ""),
        get(&format!("/?token={wrong}"), &host, ""),
        get(&format!("/events?token={wrong}"), &host, ""),
        // The name of another is made to lead here.
        get(&format!("/?token={token}"), "evil.example", ""),
        get(&format!("/events?token={token}"), &host, "\r\nOrigin: http://evil.example"),
        link.posts("", r#"{"version":1,"command":"stop","load":null}"#),
        link.posts(&format!("\r\nX-Throng-Token: {wrong}"), "{}"),
        link.posts(
            &format!("\r\nX-Throng-Token: {token}\r\nOrigin: http://evil.example"),
            r#"{"version":1,"command":"stop","load":null}"#,
        ),
    ];
    for answer in &refused {
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        let body = answer.split("\r\n\r\n").nth(1);
        assert_eq!(body, Some("open the link that throng printed\n"), "all are told the same");
        assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
    }
    let named = format!("\r\nX-Throng-Token: {token}\r\nOrigin: http://{host}");
    assert!(link.posts(&named, "nonsense").starts_with("HTTP/1.1 400"));
    // Who answers may hear a little later than the target that the run has begun.
    let status = || link.posts(&named, r#"{"version":1,"command":"status","load":null}"#);
    child.until("the status", || status().contains("\"per_second\":50.0"));
    let refusal = r#"{"version":1,"command":{"change":{"users":7}},"load":null}"#;
    assert!(link.posts(&named, refusal).contains("\"refused\""));
    let stopped = link.posts(&named, r#"{"version":1,"command":"stop","load":null}"#);
    assert!(stopped.contains("\"done\""), "{stopped}");
    child.wait().exits(130);
}

#[test]
fn a_viewer_that_never_reads_costs_nothing_and_the_run_ends_in_time() {
    let target = Target::start("http");
    let line = format!("bench {} -d 4s --rate 200/s --json --live", target.http("/"));
    let child = throng(&line).start();
    let link = link(&child);
    let request =
        format!("GET /events?token={} HTTP/1.1\r\nHost: {}\r\n\r\n", link.token, link.address);
    let deaf: Vec<TcpStream> = (0..200)
        .filter_map(|_| {
            let mut stream = TcpStream::connect(link.address).ok()?;
            stream.write_all(request.as_bytes()).ok().map(|()| stream)
        })
        .collect();
    let silent: Vec<TcpStream> =
        (0..300).filter_map(|_| TcpStream::connect(link.address).ok()).collect();
    let run = child.wait().exits(0);
    assert_eq!(run.figure("/total/count"), 800.0, "{run}");
    drop((deaf, silent));
}

#[test]
fn an_unavailable_address_is_reported_before_anything_is_sent() {
    let target = Target::start("http");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    for address in [format!("127.0.0.1:{port}"), port.to_string(), "192.0.2.1:0".into()] {
        let run = throng(&format!("bench {} -n 5 --live={address}", target.http("/"))).run();
        run.exits(2).says(&["live-failed", &address, "nothing was sent"]);
    }
    assert_eq!(target.counts("/requests"), 0);
    let line = format!("bench {} -n 5 --live=0.0.0.0:0 --no-record", target.http("/"));
    throng(&line).run().exits(0).says(&["live page: http://", "is not a loopback address"]);
    let line = format!("bench {} -n 5 --live=localhost:0", target.http("/"));
    let run = throng(&line).run().exits(0);
    run.check(!run.err.contains("warning"), "a loopback address is no matter");
}
