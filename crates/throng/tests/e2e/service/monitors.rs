//! `monitor`: what exporters say while a run goes on. The exporter counts how often it was asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use throng_base::Clock;

use crate::run::{Child, Run, throng};
use crate::servers::{Node, Target, free_port, program};

/// Of whoever asks without it.
const SECRET: &str = "Authorization: Basic bWU6c3dvcmRmaXNo";

/// Answers `/good` with a counter that grows by 5 at each request and a gauge of 7, `/sick` every
/// second time only, and `/hang` never.
pub(crate) struct Exporter {
    pub(crate) address: SocketAddr,
    /// Of `/good` and `/sick`.
    asked: [Arc<AtomicU64>; 2],
}

impl Exporter {
    pub(crate) fn start() -> Exporter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
        let counts = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = counts.clone();
                std::thread::spawn(move || serve(&stream, &counts));
            }
        });
        Exporter { address, asked }
    }

    fn asked(&self, path: usize) -> u64 {
        self.asked[path].load(Ordering::SeqCst)
    }
}

fn serve(stream: &TcpStream, [good, sick]: &[Arc<AtomicU64>; 2]) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let is_allowed = headers.iter().any(|line| line.eq_ignore_ascii_case(SECRET));
        let next = |count: &AtomicU64| count.fetch_add(1, Ordering::SeqCst) + 1;
        let (status, body) = if first.starts_with("GET /hang ") {
            continue;
        } else if first.starts_with("GET /sick ") {
            if next(sick) % 2 == 0 {
                return;
            }
            ("200 OK", "healthy 1\n".to_string())
        } else if !is_allowed {
            ("401 Unauthorized", String::new())
        } else {
            let asked = next(good);
            let text = "# TYPE jobs gauge\njobs{kind=\"mail\"} 7\njobs{kind=\"print\"} NaN\n\
                        # TYPE done_total counter\ndone_total{worker=\"1\"} ";
            ("200 OK", format!("{text}{}\ndone_total{{worker=\"2\"}} {asked}\n", asked * 4))
        };
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut stream = stream;
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

/// A source of the report, by its name.
fn source<'a>(run: &Run, json: &'a Value, name: &str) -> &'a Value {
    let mut rows = json["monitors"].as_array().expect("sources").iter();
    rows.find(|row| row["name"] == name).unwrap_or_else(|| panic!("no source {name}: {run}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn exporters_are_in_the_report_and_a_failing_one_delays_nothing() {
    let (target, exporter) = (Target::start("http"), Exporter::start());
    let (address, dead) = (exporter.address, free_port());
    let text = format!(
        "target: {}
vars: {{password: swordfish}}
monitor:
- url: \"http://me:${{vars.password}}@{address}/good?x=1\"
  name: works
  every: 1s
  metrics:
  - jobs
  - {{metric: done_total, name: done, sum: true}}
  - '{{__name__=\"never\"}}'
- {{url: \"http://{address}/sick\", name: sick, every: 1s, metrics: [healthy]}}
- {{url: \"http://{address}/hang\", name: hangs, every: 2s, metrics: [healthy]}}
- {{url: \"http://{address}/good\", name: shut, every: 1s, metrics: [healthy]}}
- {{url: \"http://127.0.0.1:{dead}/\", metrics: [healthy]}}
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 20ms}}]}}}}
load: [{{users: 2, for: 4500ms}}]
",
        target.http("")
    );
    let clock = Clock::start();
    let run = throng("run s.yaml --json --out record").file("s.yaml", text).run().exits(0);
    run.check(clock.now().second() < 9, "an exporter that hangs holds nothing up");
    run.has("/total/ok", target.counts("/requests"));
    let json = run.json();
    let works = source(&run, &json, "works");
    assert_eq!((&works["read"], &works["failed"]), (&exporter.asked(0).into(), &0.into()), "{run}");
    run.check((5..=7).contains(&exporter.asked(0)), "once per second");
    let series = works["series"].as_array().expect("series");
    let names: Vec<&Value> = series.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["jobs{kind=\"mail\"}", "done"], "what is no number is nothing: {run}");
    assert_eq!((&series[0]["min"], &series[0]["max"]), (&7.0.into(), &7.0.into()), "{run}");
    let rate = number(&series[1]["mean"]);
    run.check((4.0..6.0).contains(&rate), &format!("five more a second: {rate}"));
    run.check(series[1]["counter"] == true, "it is a counter");

    let sick = source(&run, &json, "sick");
    let (read, failed) = (number(&sick["read"]), number(&sick["failed"]));
    assert_eq!((read + failed) as u64, exporter.asked(1), "{run}");
    run.check(read >= 2.0 && failed >= 2.0, "every second one fails");
    let trouble = |name: &str| source(&run, &json, name)["trouble"].to_string();
    assert_eq!(trouble("hangs"), "\"no response in time\"", "{run}");
    assert_eq!(trouble("shut"), "\"it responds with status 401\"", "{run}");
    let refused = trouble(&format!("127.0.0.1:{dead}"));
    run.check(refused.contains("Connection refused") && !refused.contains("io:"), &refused);
    run.says(&[
        "works has no metric that matches `{__name__=\"never\"}`",
        "sick cannot be read: ",
        "sick can be read again",
        "hangs cannot be read: no response in time; the run continues",
    ]);

    let record = run.folder().join("record");
    let again = throng("report --json").arg(&record).run().exits(0);
    assert_eq!(again.json()["monitors"], json["monitors"], "{again}");
    let shown = throng("report --details").arg(&record).run().exits(0);
    shown.says(&["jobs{kind=\"mail\"}", "hangs: "]);
    for file in ["run.json", "scenario.yaml", "events.ndjson", "report.html"] {
        let text = std::fs::read_to_string(record.join(file)).expect(file);
        run.check(!text.contains("swordfish") && !text.contains("bWU6c3"), file);
    }
}

#[test]
fn a_node_exporter_describes_its_host() {
    let (target, port) = (Target::start("http"), free_port());
    let mut command = Command::new(program("prometheus-node-exporter", "prometheus-node-exporter"));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let exporter = Child::start(command);
    let address: SocketAddr = format!("127.0.0.1:{port}").parse().expect("an address");
    exporter.until("it listens", || TcpStream::connect(address).is_ok());
    let text = format!(
        "target: {}
monitor:
- url: http://127.0.0.1:{port}/metrics
  every: 1s
  metrics:
  - node_memory_MemTotal_bytes
  - {{metric: node_cpu_seconds_total, name: processors, sum: true}}
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 20ms}}]}}}}
load: [{{users: 2, for: 3500ms}}]
",
        target.http("")
    );
    let run = throng("run s.yaml --json --no-record").file("s.yaml", text).run().exits(0);
    let json = run.json();
    let host = source(&run, &json, &format!("127.0.0.1:{port}"));
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("a kernel");
    let total = meminfo.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    assert_eq!(Some(number(&host["series"][0]["max"])), total.map(|kib| kib * 1024.0), "{run}");
    let processors = number(&host["series"][1]["mean"]);
    let there = number(&json["host"]["cores"]);
    run.check(
        (0.5 * there..1.5 * there).contains(&processors),
        &format!("{processors} seconds of {there} processors a second"),
    );
}

#[test]
fn sources_of_several_machines_stay_apart() {
    let (target, exporter) = (Target::start("http"), Exporter::start());
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "target: {}
seed: 3
monitor: [{{url: \"http://me:swordfish@{}/good\", name: works, every: 1s, metrics: [jobs]}}]
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 20ms}}]}}}}
load: [{{users: 4, for: 2500ms}}]
",
        target.http(""),
        exporter.address
    );
    let start = |part: u32| {
        let out = folder.path().join(part.to_string());
        let line = format!("run s.yaml --quiet --part {part}/2");
        throng(&line).arg("--out").arg(out).file("s.yaml", text.clone()).start()
    };
    let children: Vec<Child> = [1, 2].map(start).into_iter().collect();
    children.into_iter().for_each(|child| drop(child.wait().exits(0)));
    let both = ["1", "2"].map(|part| folder.path().join(part));
    let line = throng("merge --json").arg("--out").arg(folder.path().join("all"));
    let run = line.arg(&both[0]).arg(&both[1]).run().exits(0);
    let json = run.json();
    let rows = json["monitors"].as_array().expect("sources");
    assert_eq!(rows.len(), 2, "{run}");
    let read: f64 = rows.iter().map(|row| number(&row["read"])).sum();
    assert_eq!(read as u64, exporter.asked(0), "{run}");
    for (row, machine) in rows.iter().zip(json["machines"].as_array().expect("machines")) {
        assert_eq!(row["machine"], machine["name"], "{run}");
        assert_eq!(row["series"][0]["max"], 7.0, "{run}");
    }
}

/// Says that it is busy from its fourth reading to its seventh.
const NEIGHBOUR: &str = r#"
let readings = 0;
const server = require("http").createServer((_, response) => {
  readings += 1;
  response.end(JSON.stringify({ busy: readings > 3 && readings <= 7 ? 9 : 1 }));
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

fn beside(neighbour: &Node, target: &Target, rules: &str) -> String {
    format!(
        "target: {}
monitor: [{{json: {}, name: neighbour, every: 1s, values: {{busy: busy}}}}]
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 100ms}}]}}}}
load: [{{users: {{to: 1000, rate: 5/s}}, for: 12s}}]
{rules}
",
        target.http(""),
        neighbour.url("http")
    )
}

#[test]
fn no_users_are_added_while_a_neighbour_is_busy() {
    let (target, neighbour) = (Target::start("http"), Node::start(NEIGHBOUR, &[]));
    let text = beside(&neighbour, &target, "hold_when: [neighbour busy > 5 for 1s]");
    let run = throng("run s.yaml --json --out record").file("s.yaml", text).run().exits(0);
    let changes = run.json()["changes"].as_array().cloned().unwrap_or_default();
    let at = |word: &str| {
        let change = changes.iter().find(|change| change["change"] == word);
        change.and_then(|change| change["at_ns"].as_u64()).unwrap_or_else(|| panic!("{run}"))
    };
    let (pause, go_on) = (at("pause"), at("go-on"));
    run.check(go_on - pause > 1_500_000_000, "it was held for some readings");
    // Users come at 5/s at all other times.
    let came = run.figure("/users/started");
    let wanted = (12.0 - (go_on - pause) as f64 / 1e9) * 5.0;
    run.check((came - wanted).abs() < 5.0, &format!("{came} users instead of {wanted}"));
    run.says(&["`hold_when: neighbour busy > 5 for 1s` is true (value: 9)"]);
    run.says(&["`hold_when: neighbour busy > 5 for 1s` is no longer true"]);
}

#[test]
fn a_busy_neighbour_ends_a_run_or_begins_an_event() {
    let (target, neighbour) = (Target::start("http"), Node::start(NEIGHBOUR, &[]));
    let rules = "events: [{when: neighbour busy > 5, mark: busy}]
abort_when: [neighbour busy > 5 for 2s]";
    let text = beside(&neighbour, &target, rules);
    let run = throng("run s.yaml --json --out record").file("s.yaml", text).run().exits(4);
    run.says(&["the condition `abort_when: neighbour busy > 5 for 2s` was true (value: 9)"]);
    let events = run.json()["events"].to_string();
    run.check(events.contains("\"busy\""), "the event has begun before");
}
