//! `report.html` in a browser: its figures are those of the summary, text of a target is text, it
//! needs no network, and people who cannot see or point can use it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use throng_fuzz::node_modules;

use crate::protocols::chat;
use crate::run::{Child, Run, throng};
use crate::servers::{Node, Target, free_port, program};
use crate::showcase;

/// Answers whatever it is asked with a failure that would be a script, if anybody read it as one.
const HOSTILE: &str = r#"
const server = require("http").createServer((request, response) => {
  response.writeHead(500, { "Content-Type": "text/html" });
  response.end("</script><script>window.pwned = 1</script><img src=x onerror=alert(1)>\u001b[31m");
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

#[track_caller]
fn opened(page: &Path) -> Value {
    let mut command = Command::new(program("node", "nodejs"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/pages/page.js");
    command.arg(script).arg(page).arg(program("chromium", "chromium"));
    command.env("NODE_PATH", node_modules("puppeteer-core"));
    let told = Child::start(command).wait().exits(0);
    let told: Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!(told["errors"], serde_json::json!([]), "the page complains");
    assert_eq!(told["violations"], serde_json::json!([]), "not all can use it");
    let requests: Vec<&str> = texts(&told["requests"]);
    assert!(requests.iter().all(|url| url.starts_with("file://")), "{requests:?}");
    assert_eq!(told["pwned"], false);
    for (width, content) in told["widths"].as_object().expect("widths") {
        assert_eq!(width.parse::<u64>().ok(), content.as_u64(), "nothing sticks out: {told}");
    }
    told
}

/// What a page has become in a browser, as HTML.
pub(crate) fn drawn(page: &Path) -> String {
    let mut command = Command::new(program("chromium", "chromium"));
    command.args(["--headless", "--no-sandbox", "--virtual-time-budget=5000", "--dump-dom"]);
    command.arg(format!("file://{}", page.display()));
    Child::start(command).wait().exits(0).out.clone()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("texts").iter().filter_map(Value::as_str).collect()
}

fn page_of(run: &Run) -> std::path::PathBuf {
    let runs = std::fs::read_dir(run.folder().join("throng-runs")).expect("runs");
    runs.flatten().next().expect("a run").path().join("report.html")
}

/// As the page writes a count.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let from = |at: usize| (digits.len() - at).is_multiple_of(3) && at > 0;
    digits.char_indices().fold(String::new(), |text, (at, digit)| match from(at) {
        true => format!("{text},{digit}"),
        false => format!("{text}{digit}"),
    })
}

#[test]
fn a_page_shows_the_figures_of_its_run() {
    let target = Target::start("http --errors 10%");
    let line = format!("bench {} -d 3s --rate 500/s --json", target.http("/"));
    let run = throng(&line).arg("--threshold").arg("errors < 1%").run().exits(1);
    let told = opened(&page_of(&run));
    let verdict = if run.code() == 1 { "failed" } else { "invalid" };
    assert_eq!(told["badge"], format!("{verdict} · exit code {}", run.code()));
    let (count, failed) = (run.figure("/total/count") as u64, run.figure("/total/failed") as u64);
    let cards = texts(&told["cards"]);
    assert!(cards[0].contains(&grouped(count)) && cards[1].contains(&grouped(failed)), "{cards:?}");
    let row = texts(&told["rows"][0]);
    assert_eq!(row[..3], ["GET /", grouped(count).as_str(), grouped(failed).as_str()]);
    let charts = texts(&told["charts"]);
    for wanted in
        ["Requests per second", "Response times", "Users", "Failures by cause, per second"]
    {
        assert!(charts.contains(&wanted), "{charts:?}");
    }
    assert!(texts(&told["headings"]).contains(&"Thresholds"));
    let captions = texts(&told["captions"]);
    for wanted in ["Steps", "Phases", "Slowest requests", "Errors by step and cause"] {
        assert!(captions.contains(&wanted), "{captions:?}");
    }
    assert!(texts(&told["chinese"]).contains(&"阈值"), "{}", told["chinese"]);
    assert_eq!(told["sorted"], "descending");
    // All, the middle half, what is later, all again.
    let heat = told["heat"].as_array().expect("times of the heat map");
    let [all, zoomed, later, again] = [0, 1, 2, 3].map(|at| &heat[at]);
    assert!(all == again && all != zoomed && zoomed != later, "{heat:?}");
    let keys = told["keys"].as_array().expect("times by keys");
    assert!(&keys[0] == zoomed && keys[1] != keys[0] && &keys[2] == later, "{keys:?}");
    assert!(&keys[3] == all && &keys[4] == all, "{keys:?}");
}

#[test]
fn charts_of_another_step_show_the_time_that_the_others_show() {
    let run = throng("report record --html page.html");
    showcase::record(&run.folder().join("record"));
    let run = run.run().exits(1);
    let told = opened(&run.folder().join("page.html"));
    assert_eq!(told["steps"], 4);
    let [before, after] = [0, 1].map(|at| &told["joined"][at]);
    assert!(before == after && before != &told["heat"][0], "{before} {after}");
}

/// Nothing that was asked failed; messages that nobody got did.
#[test]
fn a_page_of_a_failed_chat_shows_its_deliveries_and_no_empty_reasons() {
    let (run, _target) = chat::lossy_rooms();
    let told = opened(&run.folder().join("record/report.html"));
    let cards = texts(&told["cards"]);
    let has = |begin: &str, part: &str| {
        cards.iter().any(|card| card.starts_with(begin) && card.contains(part))
    };
    assert!(has("delivered97.5 %", "1,755 / 1,800 · 45 lost"), "{cards:?}");
    assert!(has("thresholds met0 / 1", "failed") || run.code() == 5, "{cards:?}");
    assert!(has("failed attempts0 %", "0"), "{cards:?}");
    let captions = texts(&told["captions"]);
    assert!(captions.contains(&"Deliveries"), "{captions:?}");
}

/// What was steered stands on the page, and its length and users are those of the summary.
#[test]
fn a_page_of_a_controlled_run_names_the_changes() {
    let target = Target::start("http");
    let text = format!(
        "target: {}
sessions: {{one: {{steps: [{{http: GET /}}, {{think: 20ms}}]}}}}
load: [{{users: 2, for: 1s, measured: false}}, {{name: steady, users: 5, for: 10m}}]
",
        target.http("")
    );
    let child = throng("run s.yaml --json --out record").file("s.yaml", text).start();
    let record = child.folder().join("record");
    let says = |words: &str| {
        throng(&format!("control {} {words}", record.display())).run().exits(0);
    };
    child.until("the second phase", || {
        record.join("control.sock").exists() && target.counts("/requests") > 150
    });
    says("more 100%");
    says("mark deploy");
    child.until("requests of more users", || target.counts("/requests") > 1_000);
    says("end-phase");
    let run = child.wait().exits(0);
    let told = opened(&run.folder().join("record/report.html"));
    assert!(texts(&told["captions"]).contains(&"Changes during the run"), "{told}");
    // Beside other tests throng may have been late, which is a reason.
    let is_valid = run.json()["outcome"]["valid"] == true;
    assert!(!is_valid || !texts(&told["headings"]).contains(&"What failed"), "{told}");
    let rows: Vec<Vec<&str>> = told["rows"].as_array().expect("rows").iter().map(texts).collect();
    let change = |what: &str| rows.iter().any(|row| row.len() == 3 && row[2] == what);
    assert!(change("times 2") && change("deploy"), "{rows:?}");
    let facts = told["facts"].as_str().expect("facts");
    let present = run.figure("/users/present_max");
    assert!(facts.contains(&format!(" · {present} users · ")), "{facts}");
    assert!(facts.contains(" measured · ") && facts.contains("(same host)"), "{facts}");
    let report = throng("report").arg(run.folder().join("record")).run().exits(0);
    report.says(&["changed      times 2 at ", "mark deploy at ", "(same host)"]);
}

#[test]
fn a_page_draws_the_funnel_of_connections() {
    let target = Target::start("echo");
    let line = format!("bench {} -c 12 -d 2s --json", target.url("ws", "/"));
    let run = throng(&line).run();
    let told = opened(&page_of(&run));
    let opened = run.figure("/connections/opened") as u64;
    let row = format!("{opened} / {opened}");
    let funnel = texts(&told["funnel"]);
    assert!(funnel.iter().any(|it| it.starts_with("upgrade") && it.ends_with(&row)), "{funnel:?}");
}

#[test]
fn a_page_draws_what_each_machine_takes_of_its_host() {
    let target = Target::start("http");
    let line = format!("bench {} -d 3s --rate 100/s --json", target.http("/"));
    let several = throng(&line).arg("--processes=2").run().exits(0);
    let page = page_of(&several);
    let told = opened(&page);
    let charts = texts(&told["charts"]);
    let names = ["Cores used by throng", "Host CPU load", "Received", "Users"];
    for name in names.map(|name| format!("{name}, per machine")) {
        assert!(charts.contains(&name.as_str()), "{charts:?}");
    }
    let text = std::fs::read_to_string(page).expect("a page");
    assert!(text.contains(r#""name":"process 2""#), "the machine has its name");
    let one = throng(&line).run().exits(0);
    let text = std::fs::read_to_string(page_of(&one)).expect("a page");
    assert!(text.contains(r#""machines":{"points":1,"rows":[]}"#), "one machine is the run");
}

#[test]
fn a_run_without_timings_has_a_page() {
    let line = format!("bench http://127.0.0.1:{}/ -n 3", free_port());
    let run = throng(&line).run().exits(4);
    let told = opened(&page_of(&run));
    assert!(texts(&told["cards"])[0].contains('3'), "{}", told["cards"]);
    assert!(texts(&told["headings"]).contains(&"Errors"));
}

#[test]
fn text_from_the_target_is_escaped() {
    let node = Node::start(HOSTILE, &[]);
    let name = "<img src=x onerror=alert(2)></script><script>window.pwned=2</script>";
    let scenario = format!(
        "name: '{name}'\ntarget: {}\nload: [{{users: 1, for: 1s}}]\nsessions:\n  x:\n    steps:\n      \
         - {{http: GET /, name: '{name}'}}\n",
        node.url("http")
    );
    let run = throng("run hostile.yaml").file("hostile.yaml", scenario).run().exits(1);
    let told = opened(&page_of(&run));
    assert_eq!(told["title"], format!("{name} · throng"));
    let evidence = texts(&told["evidence"]);
    assert!(evidence.iter().any(|text| text.contains("</script><script>window.pwned = 1")));
    assert!(texts(&told["rows"][0])[0] == name);
}

#[test]
fn a_page_is_made_from_a_record_or_the_error_is_reported() {
    let target = Target::start("http");
    let run = throng(&format!("bench {} -n 10", target.http("/"))).run().exits(0);
    let first = page_of(&run);
    let directory = first.parent().expect("a directory").to_path_buf();
    std::fs::remove_file(&first).expect("a page");
    let report = |file: &str| throng("report").arg(&directory).arg("--html").arg(file);
    let again = report("page.html").run().exits(0);
    again.says(&["\npage: page.html\n"]);
    again.check(!again.out.contains("in a browser"), "there is none beside the record");
    let page = std::fs::read_to_string(again.folder().join("page.html")).expect("a page");
    assert!(page.contains("\"exit_code\":0") && page.contains("Content-Security-Policy"));
    let own = throng("report").arg(&directory).arg("--html").run().exits(0);
    own.says(&["\npage: ", "/report.html\n"]);
    assert!(first.is_file(), "where no file is named it is in the directory of the run");
    let run = report("/no/such/folder/page.html").run().exits(2);
    run.check(run.err.contains("cannot write `/no/such/folder/page.html`"), "it is said");
    // Of a record that was cut the page says so.
    let intervals = directory.join("intervals.ndjson");
    std::fs::write(&intervals, "").expect("a torn record");
    let torn = report("torn.html").run();
    let page = torn.folder().join("torn.html");
    assert!(std::fs::read_to_string(page).expect("a page").contains("\"lines_missing\":1"));
}
