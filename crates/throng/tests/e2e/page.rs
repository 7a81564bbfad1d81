//! `report.html` in a browser: its figures are those of the summary, text of a target is text, it
//! needs no network, and people who cannot see or point can use it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use throng_fuzz::node_modules;

use crate::run::{Child, Run, throng};
use crate::servers::{Node, Target, free_port, program};

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
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/page.js");
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
    assert_eq!(told["badge"], "failed · exit code 1");
    let (count, failed) = (run.figure("/total/count") as u64, run.figure("/total/failed") as u64);
    let cards = texts(&told["cards"]);
    assert!(cards[0].contains(&grouped(count)) && cards[1].contains(&grouped(failed)), "{cards:?}");
    let row = texts(&told["rows"][0]);
    assert_eq!(row[..3], ["GET /", grouped(count).as_str(), grouped(failed).as_str()]);
    let charts = texts(&told["charts"]);
    for wanted in
        ["Attempts per second", "Response times", "Users", "Failures by cause, per second"]
    {
        assert!(charts.contains(&wanted), "{charts:?}");
    }
    assert!(texts(&told["headings"]).contains(&"Thresholds"));
    let captions = texts(&told["captions"]);
    for wanted in ["Steps", "Phases", "Slowest attempts", "Errors by step and cause"] {
        assert!(captions.contains(&wanted), "{captions:?}");
    }
    assert!(texts(&told["chinese"]).contains(&"目标"), "{}", told["chinese"]);
    assert_eq!(told["sorted"], "descending");
}

#[test]
fn a_run_in_which_nothing_was_timed_has_a_page_too() {
    let line = format!("bench http://127.0.0.1:{}/ -n 3", free_port());
    let run = throng(&line).run().exits(4);
    let told = opened(&page_of(&run));
    assert!(texts(&told["cards"])[0].contains('3'), "{}", told["cards"]);
    assert!(texts(&told["headings"]).contains(&"Errors"));
}

#[test]
fn what_a_target_says_is_text() {
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
fn a_page_is_made_of_a_record_and_told_where_it_cannot_be() {
    let target = Target::start("http");
    let run = throng(&format!("bench {} -n 10", target.http("/"))).run().exits(0);
    let first = page_of(&run);
    let directory = first.parent().expect("a directory").to_path_buf();
    std::fs::remove_file(&first).expect("a page");
    let report = |file: &str| throng("report").arg(&directory).arg("--html").arg(file);
    let again = report("page.html").run().exits(0);
    let page = std::fs::read_to_string(again.folder().join("page.html")).expect("a page");
    assert!(page.contains("\"exit_code\":0") && page.contains("Content-Security-Policy"));
    throng("report").arg(&directory).arg("--html").run().exits(0);
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
