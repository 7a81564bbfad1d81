//! `--export`: what Prometheus, InfluxDB, StatsD, a receiver of OTLP and files hold equals what the
//! run and the target have counted.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use throng_base::clock::wall_now;
use throng_fuzz::{node_modules, python_packages};

use crate::run::{Child, Run, throng};
use crate::servers::{Target, fetch, free_port, program};

const LINE: &str = "-d 5s --rate 300/s --json --no-record --label team=blue";

/// Good and failed attempts of a run, as the target has counted them, too.
fn counted(run: &Run, target: &Target) -> (u64, u64) {
    let (ok, failed) = (run.figure("/total/ok") as u64, run.figure("/total/failed") as u64);
    assert_eq!(ok + failed, target.counts("/requests"));
    assert!(failed > 0, "the target has faults");
    (ok, failed)
}

fn faulty() -> Target {
    Target::start("http --errors 10%")
}

/// The sum of the points of a counter that a collector has told, by a label; Rotel's words.
fn collected(told: &str, metric: &str, label: &str) -> f64 {
    let (mut name, mut is_wanted, mut sum) = ("", false, 0.0);
    for line in told.lines().map(str::trim) {
        if let Some(found) = line.strip_prefix("-> Name: ") {
            name = found;
        } else if line.starts_with("NumberDataPoints #") {
            is_wanted = false;
        } else if line == format!("-> {label}") {
            is_wanted = name == metric;
        } else if let Some(value) = line.strip_prefix("Value: ").filter(|_| is_wanted) {
            sum += value.parse::<f64>().expect("a number");
        }
    }
    sum
}

/// Rotel, a collector that is a program of its own. Counters alone: it passes over histograms in
/// JSON, whose counts are texts, as the specification of OTLP wants them.
#[test]
fn a_collector_of_opentelemetry_holds_what_was_counted() {
    let mut command = Command::new(python_packages("rotel").join("rotel/rotel-agent"));
    let [http, grpc] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    command.args(["start", "--exporter", "blackhole", "--debug-log", "metrics"]);
    command.args(["--debug-log-verbosity", "detailed", "--otlp-http-endpoint", &http]);
    command.args(["--otlp-grpc-endpoint", &grpc]);
    let collector = Child::start(command);
    collector.until("a port", || TcpStream::connect(&http).is_ok());
    let target = faulty();
    let run = throng(&format!("bench {} {LINE}", target.http("/")))
        .arg(format!("--export=otlp=http://{http}/v1/metrics"))
        .run()
        .exits(0);
    let (ok, failed) = counted(&run, &target);
    for (metric, label, count) in [
        ("throng_attempts_total", "result: Str(ok)", ok),
        ("throng_attempts_total", "result: Str(failed)", failed),
        ("throng_errors_total", "cause: Str(status-unexpected)", failed),
        ("throng_codes_total", "code: Str(200)", ok),
    ] {
        let sum = |out: &str| collected(out, metric, label);
        collector.hears(metric, |out, _| (sum(out) >= count as f64).then_some(()));
        assert_eq!(sum(&collector.output()), count as f64, "{metric} {label}");
    }
    for label in ["service.name: Str(throng)", "team: Str(blue)"] {
        assert!(collector.output().contains(label), "{label}");
    }
}

#[test]
fn receivers_and_files_hold_what_was_counted() {
    let mut command = Command::new("/usr/bin/python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/results/receivers.py"));
    command.env("PYTHONPATH", python_packages("opentelemetry"));
    let receiver = Child::start(command);
    let http = receiver.line("listening ");
    let home = tempfile::tempdir().expect("a temporary folder");
    let (statsd, udp) = start_statsd(home.path());
    let target = faulty();
    let run = throng(&format!("bench {} {LINE}", target.http("/")))
        .arg(format!("--export=otlp=http://127.0.0.1:{http}/v1/metrics"))
        .arg(format!("--export=statsd=127.0.0.1:{udp}"))
        .arg("--export=csv=figures.csv")
        .arg("--export=jsonl=figures.jsonl")
        .arg("--export=hdr=figures.hlog")
        .run()
        .exits(0);
    let (ok, failed) = counted(&run, &target);
    let address: SocketAddr = format!("127.0.0.1:{http}").parse().expect("an address");
    let told: Value = serde_json::from_str(&fetch(address, "/")).expect("JSON");
    run.check(told["errors"] == serde_json::json!([]), &told["errors"].to_string());
    let otlp = |name: &str| told["otlp"][name].as_f64().map(|count| count as u64);
    assert_eq!(otlp("throng_attempts_total ok"), Some(ok));
    assert_eq!(otlp("throng_attempts_total failed"), Some(failed));
    assert_eq!(otlp("throng_response_time_seconds"), Some(ok + failed));
    assert!(otlp("named") >= Some(5));
    for (name, count) in [
        ("throng.response_time.GET__.http.count", ok + failed),
        ("throng.attempts.GET__.http.ok", ok),
        ("throng.errors.GET__.http.status-unexpected", failed),
    ] {
        statsd.hears(name, |out, _| (flushed(out, name) == count).then_some(()));
    }
    assert_eq!(flushed(&statsd.output(), "statsd.bad_lines_seen"), 0);

    let text = |name: &str| std::fs::read_to_string(run.folder().join(name)).expect(name);
    let (mut csv_ok, mut csv_failed) = (0, 0);
    let csv = text("figures.csv");
    for line in csv.lines().filter(|line| line.contains(",throng_attempts_total,")) {
        let cells: Vec<&str> = line.split(',').collect();
        let count: u64 = cells[11].parse().expect("a number");
        match cells[5] {
            "ok" => csv_ok += count,
            "failed" => csv_failed += count,
            _ => {}
        }
    }
    assert_eq!((csv_ok, csv_failed), (ok, failed), "{csv}");
    let dashboard = include_str!("../../../../../docs/grafana/throng.json");
    let _: Value = serde_json::from_str(dashboard).expect("JSON");
    for name in dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let name = name.trim_end_matches("_bucket");
        let is_told = !name.starts_with("throng_") || csv.contains(&format!(",{name},"));
        assert!(is_told, "the dashboard asks for {name}");
    }
    let lines = text("figures.jsonl");
    let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let timed = rows.filter(|row| row["metric"] == "throng_response_time_seconds");
    let sum: u64 = timed.map(|row| row["count"].as_u64().expect("a count")).sum();
    assert_eq!(sum, ok + failed);

    let mut command = Command::new(program("node", "nodejs"));
    command.args(["-e", HDR]).arg(run.folder().join("figures.hlog"));
    command.env("NODE_PATH", node_modules("hdr-histogram-js"));
    let read = Child::start(command).wait().exits(0);
    let read: Value = serde_json::from_str(&read.out).expect("JSON");
    assert_eq!(read["count"], ok + failed);
    let (p50, wanted) =
        (read["p50"].as_f64().expect("a time"), run.figure("/total/latency/p50_ns"));
    assert!((p50 / wanted - 1.0).abs() < 0.02, "{p50} {wanted}");
}

/// The StatsD of npm, with a port for UDP, which prints the counters of each flush as JSON.
fn start_statsd(home: &Path) -> (Child, u16) {
    const PRINTING: &str = r#"
exports.init = (_, __, events) =>
  !!events.on("flush", (_, metrics) => console.log("flush " + JSON.stringify(metrics.counters)));
"#;
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let (udp, tcp) = (free_port(), free_port());
    let printing = write("printing.js", PRINTING);
    let config = write(
        "config.js",
        &format!(
            "{{address: '127.0.0.1', port: {udp}, mgmt_address: '127.0.0.1', mgmt_port: {tcp}, \
             flushInterval: 500, deleteCounters: true, backends: [{printing:?}]}}"
        ),
    );
    let mut command = Command::new(program("node", "nodejs"));
    command.arg(node_modules("statsd").join("statsd/stats.js")).arg(config);
    let statsd = Child::start(command);
    statsd.line("flush ");
    (statsd, udp)
}

/// What a counter has come to over all flushes.
fn flushed(output: &str, name: &str) -> u64 {
    let flushes = output[..=output.rfind('\n').unwrap_or(0)].lines();
    let counters = flushes.filter_map(|line| line.strip_prefix("flush "));
    let counters = counters.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    counters.filter_map(|counters| counters[name].as_u64()).sum()
}

/// The count and the median of a log, by another implementation.
const HDR: &str = r#"
const hdr = require("hdr-histogram-js");
const sum = hdr.build({ lowestDiscernibleValue: 1, numberOfSignificantValueDigits: 3 });
for (const line of require("fs").readFileSync(process.argv[1], "utf8").split("\n")) {
  if (line.startsWith("Tag=")) sum.add(hdr.decodeFromCompressedBase64(line.split(",").at(-1)));
}
console.log(JSON.stringify({ count: sum.totalCount, p50: sum.getValueAtPercentile(50) }));
"#;

#[test]
fn prometheus_and_influxdb_hold_what_was_counted() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (scraped, prometheus, influx) = (free_port(), free_port(), free_port());
    let _servers =
        [start_prometheus(home.path(), prometheus, scraped, ""), start_influx(home.path(), influx)];
    let target = faulty();
    let run = throng(&format!("bench {} {LINE}", target.http("/")))
        .arg(format!("--export=prometheus=127.0.0.1:{scraped}"))
        .arg(format!("--export=prometheus-rw=http://127.0.0.1:{prometheus}/api/v1/write"))
        .arg(format!("--export=influx=http://127.0.0.1:{influx}/write?db=runs"))
        .run()
        .exits(0);
    let (ok, failed) = counted(&run, &target);
    let query = "select sum(value) from throng_attempts_total group by result,team";
    let told = ask(&format!("http://127.0.0.1:{influx}/query?db=runs"), &[("q", query)]);
    let of = |result: &str| {
        let series = told["results"][0]["series"].as_array().expect("series");
        let one = series.iter().find(|one| one["tags"]["result"] == result).expect(result);
        assert_eq!(one["tags"]["team"], "blue");
        one["values"][0][1].as_u64()
    };
    assert_eq!((of("ok"), of("failed")), (Some(ok), Some(failed)), "{told}");
    // By the time of what was written: the end of its second, which may lie ahead.
    let ahead = (wall_now().as_secs() + 2).to_string();
    let last = |series: &str| {
        let query = format!("last_over_time({series}[1m])");
        let url = format!("http://127.0.0.1:{prometheus}/api/v1/query");
        let told = ask(&url, &[("query", &query), ("time", &ahead)]);
        let value = told["data"]["result"][0]["value"][1].as_str().map(str::to_string);
        value.and_then(|value| value.parse::<u64>().ok())
    };
    assert_eq!(last(r#"throng_attempts_total{job="",result="ok"}"#), Some(ok));
    assert_eq!(last(r#"throng_attempts_total{job="",result="failed"}"#), Some(failed));
    let all = r#"throng_response_time_seconds_bucket{job="",le="+Inf"}"#;
    assert_eq!(last(all), Some(ok + failed));
    let seen = last(r#"throng_attempts_total{job="throng",result="ok"}"#);
    assert!(seen.is_some_and(|seen| seen > 0 && seen <= ok), "{seen:?} of {ok}");
}

/// One number of Prometheus, where it has it: by the time of what was written, which may lie ahead.
fn number(prometheus: u16, query: &str) -> Option<f64> {
    let ahead = (wall_now().as_secs() + 2).to_string();
    let url = format!("http://127.0.0.1:{prometheus}/api/v1/query");
    let told = ask(&url, &[("query", query), ("time", &ahead)]);
    told["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

/// Written and scraped. What is scraped has classic histograms beside the native ones, of which
/// this Prometheus takes the native.
#[test]
fn prometheus_takes_native_histograms() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (scraped, prometheus) = (free_port(), free_port());
    let _server = start_prometheus(home.path(), prometheus, scraped, "native-histograms");
    let target = faulty();
    let run = throng(&format!("bench {} {LINE}", target.http("/")))
        .arg(format!("--export=prometheus=127.0.0.1:{scraped}"))
        .arg(format!("--export=prometheus-rw-native=http://127.0.0.1:{prometheus}/api/v1/write"))
        .run()
        .exits(0);
    let (ok, failed) = counted(&run, &target);
    let written = r#"throng_response_time_seconds{job=""}"#;
    let count = number(prometheus, &format!("histogram_count({written})"));
    assert_eq!(count, Some((ok + failed) as f64));
    let sum = number(prometheus, &format!("histogram_sum({written})")).expect("a sum");
    let wanted = run.figure("/total/latency/mean_ns") * (ok + failed) as f64 / 1e9;
    assert!((sum / wanted - 1.0).abs() < 1e-6, "{sum} instead of {wanted}");
    // A bucket is 4.4 % wide, and one of throng's own 1.6 %.
    for (quantile, name) in [("0.5", "p50_ns"), ("0.9", "p90_ns"), ("0.99", "p99_ns")] {
        let told = number(prometheus, &format!("histogram_quantile({quantile}, {written})"));
        let wanted = run.figure(&format!("/total/latency/{name}")) / 1e9;
        let told = told.unwrap_or_default();
        assert!((told / wanted - 1.0).abs() < 0.06, "{name}: {told} instead of {wanted}");
    }
    // None of the classic series is written, and all else is.
    assert_eq!(number(prometheus, "count(throng_response_time_seconds_bucket)"), None);
    let attempts = r#"last_over_time(throng_attempts_total{job="",result="ok"}[1m])"#;
    assert_eq!(number(prometheus, attempts), Some(ok as f64));
    let seen = r#"histogram_count(throng_response_time_seconds{job="throng"})"#;
    let seen = number(prometheus, &format!("max_over_time({seen}[1m:500ms])"));
    let all = (ok + failed) as f64;
    assert!(seen.is_some_and(|seen| seen > 0.0 && seen <= all), "{seen:?} of {all}");
}

/// What was not told to take them refuses them, and that is said.
#[test]
fn a_prometheus_that_takes_no_native_histograms_says_so() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let prometheus = free_port();
    let _server = start_prometheus(home.path(), prometheus, prometheus, "");
    let target = Target::start("http");
    let url = format!("http://127.0.0.1:{prometheus}/api/v1/write");
    let line = format!("bench {} -d 2s --rate 50/s --no-record", target.http("/"));
    let line = format!("{line} --export prometheus-rw-native={url}");
    let run = throng(&line).run().exits(0);
    run.says(&["` failed for ", "native histograms"]);
}

/// What a server says to a query.
fn ask(url: &str, values: &[(&str, &str)]) -> Value {
    let mut command = Command::new(program("curl", "curl"));
    command.args(["-sf", "-G", url]);
    for (name, value) in values {
        command.arg("--data-urlencode").arg(format!("{name}={value}"));
    }
    let told = Child::start(command).wait().exits(0);
    serde_json::from_str(&told.out).unwrap_or_else(|error| panic!("{error}: {}", told.out))
}

fn start_prometheus(home: &Path, port: u16, scraped: u16, features: &str) -> Child {
    let conf = home.join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 500ms, scrape_timeout: 400ms}}\n\
         scrape_configs:\n- job_name: throng\n  static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]\n"
    );
    std::fs::write(&conf, text).expect("a configuration");
    let mut command = Command::new(program("prometheus", "prometheus"));
    command.arg(format!("--config.file={}", conf.display()));
    command.arg(format!("--storage.tsdb.path={}", home.join("tsdb").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.arg("--web.enable-remote-write-receiver");
    command.arg(format!("--enable-feature={features}"));
    let child = Child::start(command);
    child.hears("Prometheus", |_, err| err.contains("ready to receive").then_some(()));
    // It learns of its targets after seconds, and scrapes one that is not there yet, too.
    child.until("Prometheus to scrape", || {
        let url = format!("http://127.0.0.1:{port}/api/v1/query");
        ask(&url, &[("query", "up")])["data"]["result"][0]["value"].is_array()
    });
    child
}

fn start_influx(home: &Path, port: u16) -> Child {
    let folder = |name: &str| home.join(name).display().to_string();
    let conf = home.join("influx.conf");
    let text = format!(
        "reporting-disabled = true\nbind-address = \"127.0.0.1:{}\"\n[meta]\ndir = \"{}\"\n\
         [data]\ndir = \"{}\"\nwal-dir = \"{}\"\n[http]\nbind-address = \"127.0.0.1:{port}\"\n",
        free_port(),
        folder("meta"),
        folder("data"),
        folder("wal"),
    );
    std::fs::write(&conf, text).expect("a configuration");
    let mut command = Command::new(program("influxd", "influxdb"));
    command.arg("-config").arg(conf);
    let child = Child::start(command);
    child.until("InfluxDB to make a database", || {
        let mut made = Command::new(program("curl", "curl"));
        made.args(["-sf", "-XPOST", "--data-urlencode", "q=CREATE DATABASE runs"]);
        made.arg(format!("http://127.0.0.1:{port}/query"));
        made.output().is_ok_and(|made| made.status.success())
    });
    child
}

#[test]
fn what_cannot_be_opened_is_said_before_anything_is_sent() {
    let target = Target::start("http");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    for (export, told) in [
        (format!("prometheus={address}"), "Address already in use"),
        ("csv=/no/such/folder/x.csv".to_string(), "No such file or directory"),
        ("xml=x".to_string(), "`xml` is not a valid kind of export"),
        ("otlp=127.0.0.1:4318".to_string(), "` requires the URL of its receiver: `"),
    ] {
        let line = format!("bench {} -c 1 -d 1s --no-record --export", target.http("/"));
        let run = throng(&line).arg(&export).run().exits(2);
        run.check(run.err.contains(told), told);
    }
    assert_eq!(target.counts("/requests"), 0);
}

#[test]
fn a_scenario_names_receivers_of_its_own() {
    let target = Target::start("http");
    let scenario = |outputs: &str| {
        format!(
            "target: {}\nvars: {{place: own.csv}}\noutputs: {outputs}\nsessions: {{s: {{steps: \
             [{{http: GET /}}]}}}}\nload: [{{iterations: 40, users: 2}}]\n",
            target.http("")
        )
    };
    let line = "run s.yaml --json --no-record --export jsonl=besides.jsonl";
    let good = scenario("[{csv: \"${vars.place}\"}, {hdr: own.hlog}]");
    let run = throng(line).file("s.yaml", good).run().exits(0);
    run.has("/total/ok", target.counts("/requests"));
    let csv = std::fs::read_to_string(run.folder().join("own.csv")).expect("figures");
    let ok =
        csv.lines().filter(|line| line.contains("throng_attempts_total,") && line.contains(",ok,"));
    let sum: f64 = ok.filter_map(|line| line.split(',').nth(11)?.parse::<f64>().ok()).sum();
    run.check(sum == 40.0, &format!("{sum} of 40 in {csv}"));
    for file in ["own.hlog", "besides.jsonl"] {
        let bytes = std::fs::metadata(run.folder().join(file)).expect(file).len();
        run.check(bytes > 100, file);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let bad = format!("[{{prometheus: \"{}\"}}]", taken.local_addr().expect("its address"));
    let run = throng(line).file("s.yaml", scenario(&bad)).run().exits(2);
    run.check(run.err.contains("Address already in use"), "it is taken");
    assert_eq!(target.counts("/requests"), 40, "nothing is sent");
}

#[test]
fn a_dead_receiver_is_counted_and_changes_no_result() {
    let target = Target::start("http");
    let dead = format!("influx=http://me:secret@127.0.0.1:{}/write?db=x", free_port());
    let line = format!("bench {} -d 2s --rate 50/s", target.http("/"));
    let run = throng(&line).arg("--export").arg(&dead).run().exits(0);
    run.check(run.err.contains("` failed for "), "what it missed is said");
    run.check(!run.err.contains("secret"), "a password is not");
    let notice = std::fs::read_dir(run.folder().join("throng-runs")).expect("runs");
    let record = notice.flatten().next().expect("a run").path();
    let events = std::fs::read_to_string(record.join("events.ndjson")).expect("events");
    assert!(events.contains("` failed for ") && !events.contains("secret"), "{events}");
}
