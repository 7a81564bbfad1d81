//! Every example file and every bench command of the README is run for real.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::http::tls::Papers;
use crate::protocols::declared::Datagrams;
use crate::run::{Child, Run, Throng, throng, throng_first};
use crate::scribe::{Scribe, answer, ok};
use crate::servers::Target;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An example at a size that a test can afford.
struct Small {
    name: &'static str,
    /// What it loads, each with the address that is in the file.
    targets: &'static [(&'static str, &'static str)],
    changes: &'static [(&'static str, &'static str)],
    /// What the run then does, at least.
    ok: f64,
}

const EXAMPLES: &[Small] = &[
    Small {
        name: "failover.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[
            ("users: 50, for: 10s", "users: 5, for: 1s"),
            ("for: 1m", "for: 3s"),
            ("steady + 20s", "steady + 500ms"),
            ("steady + 40s", "steady + 2s"),
            ("p99 < 500ms", "p99 < 10s"),
        ],
        ok: 50.0,
    },
    Small {
        name: "once-per-run.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[("{users: 50, for: 30s}", "{users: 5, for: 1s}"), ("p99 < 100ms", "p99 < 10s")],
        ok: 10.0,
    },
    Small {
        name: "open-platform-api.yaml",
        targets: &[("http --tls", "127.0.0.1:8443")],
        changes: &[
            ("think: 3s", "think: 500ms"),
            ("users: 20, for: 10s", "users: 5, for: 1s"),
            ("users: 200, for: 5m", "users: 20, for: 2s"),
            ("authorise rate > 60/s", "authorise rate > 5/s"),
            ("time: < 500ms", "time: < 20s"),
            ("http p95 < 500ms", "http p95 < 10s"),
        ],
        ok: 60.0,
    },
    Small {
        name: "mobile-users.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[("users: 100, for: 1m", "users: 8, for: 3s"), ("p95 < 1s", "p95 < 10s")],
        ok: 4.0,
    },
    Small {
        name: "quick-http.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[("users: 100, for: 30s", "users: 10, for: 1s"), ("50ms", "5s")],
        ok: 100.0,
    },
    Small {
        name: "shapes-of-a-day.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[("dropped < 5%", "dropped < 50%")],
        // 20, 120 or so, 145 or so, and 48 of the log.
        ok: 200.0,
    },
    Small {
        name: "side-by-side.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[("rate > 5/s", "rate > 1/s")],
        ok: 100.0,
    },
    Small {
        name: "im-websocket.yaml",
        targets: &[("im", "127.0.0.1:8089")],
        changes: &[
            ("users: 1_000_000", "users: 200"),
            ("rate: 20_000/s", "rate: 400/s"),
            ("every: 30s, lost_after: 10s", "every: 1s, lost_after: 1s"),
            ("for: 10m", "for: 3s"),
            ("connect p99 < 3s", "connect p99 < 20s"),
            ("heartbeats.lost < 0.01%", "heartbeats.lost < 20%"),
        ],
        // Logins, and heartbeats of two seconds.
        ok: 200.0 * 3.0,
    },
    Small {
        name: "chat-room.yaml",
        targets: &[("chat", "127.0.0.1:9000")],
        changes: &[
            ("users: 50_000", "users: 60"),
            ("rate: 500/s", "rate: 100/s"),
            ("exponential: 20s", "exponential: 200ms"),
            ("for: 10m", "for: 4s"),
            ("join p99 < 1s", "join p99 < 20s"),
            ("room talk p99 < 500ms", "room talk p99 < 20s"),
        ],
        ok: 200.0,
    },
    Small {
        name: "proxy-long-requests.yaml",
        targets: &[("http", "127.0.0.1:8282")],
        changes: &[("sleep: 60000", "sleep: 50"), ("900/s", "50/s"), ("for: 10m", "for: 2s")],
        ok: 90.0,
    },
    Small {
        name: "login-then-chat.yaml",
        targets: &[("http --tls", "127.0.0.1:8443"), ("im", "127.0.0.1:8089")],
        changes: &[
            ("to: 1000, rate: 100/s", "to: 20, rate: 40/s"),
            ("for: 5m", "for: 2s"),
            ("time: 20s", "time: 500ms"),
            ("every: 30s", "every: 500ms"),
            ("users.online >= 1000", "users.online >= 20"),
        ],
        // Each proves who it is twice, connects, logs in, asks for three things and fills its cart.
        ok: 20.0 * 8.0,
    },
    Small {
        name: "grpc.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[
            ("timeout: 2s", "timeout: 20s"),
            ("think: 1s..3s", "think: 200ms"),
            ("time: 5s", "time: 500ms"),
            ("to: 1000, rate: 100/s", "to: 20, rate: 40/s"),
            ("for: 5m", "for: 2s"),
            ("grpc p99 < 500ms", "grpc p99 < 20s"),
            ("users.online >= 100", "users.online >= 1"),
        ],
        // Each calls three times a second or more, or talks and stays.
        ok: 60.0,
    },
    Small {
        name: "mqtt-devices.yaml",
        targets: &[("mqtt", "127.0.0.1:1883")],
        changes: &[
            // Of seven sites with two or three users each, some have no device.
            ("sites: 7", "sites: 2"),
            ("think: 5s..15s", "think: 300ms"),
            ("to: 1000, rate: 100/s", "to: 20, rate: 40/s"),
            ("for: 5m", "for: 2s"),
            ("state p99 < 500ms", "state p99 < 20s"),
        ],
        // Each device connects, subscribes and publishes twice.
        ok: 20.0 * 4.0,
    },
    Small {
        name: "events.yaml",
        targets: &[("http", "127.0.0.1:8080")],
        changes: &[
            ("every=1s", "every=100ms"),
            ("during: 1m", "during: 1s"),
            ("think: 5s..15s", "think: 300ms"),
            ("to: 1000, rate: 100/s", "to: 20, rate: 40/s"),
            ("for: 5m", "for: 2s"),
            ("timeout: 2s", "timeout: 20s"),
            ("connect p99 < 1s", "connect p99 < 20s"),
            ("first price p95 < 500ms", "first price p95 < 20s"),
            ("users.online >= 1000", "users.online >= 1"),
        ],
        // Each opens a stream, gets its first price and calls the API.
        ok: 20.0 * 3.0,
    },
];

/// The names of the examples.
fn names() -> Vec<String> {
    let files = root().join("examples").read_dir().expect("examples");
    let files = files.map(|it| it.expect("a file").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = files.collect();
    names.sort();
    names
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(root().join("examples").join(name)).expect("an example")
}

/// An example with what has to be other in a test.
#[track_caller]
fn changed(name: &str, changes: &[(&str, &str)]) -> String {
    let change = |text: String, (old, new): &(&str, &str)| {
        assert!(text.contains(old), "examples/{name} has no `{old}`");
        text.replace(old, new)
    };
    changes.iter().fold(text_of(name), change)
}

/// Those that another module runs, with the services that they need.
const ELSEWHERE: [&str; 3] = ["push-service.yaml", "redis.yaml", "sql.yaml"];

/// `throng run` of a text, with the files that stand beside the examples.
fn running(line: &str, text: String) -> Throng {
    // A wire that waits for what else this machine does makes its run invalid.
    let begin = if text.contains("network:") { throng_first } else { throng };
    let run = begin(line).file("small.yaml", text);
    let beside = names().into_iter().filter(|name| !EXAMPLES.iter().any(|it| it.name == name));
    beside.fold(run, |run, name| {
        let content = std::fs::read(root().join("examples").join(&name)).expect("a file");
        run.file(&name, content)
    })
}

#[test]
fn every_example_has_a_test() {
    let names = names();
    for name in names.iter().filter(|name| name.ends_with(".yaml")) {
        let runs = RUN.iter().chain(&ELSEWHERE).any(|run| run == name);
        // A protocol is a part of the scenarios that name it.
        let line = format!("protocol: {name}");
        let scenarios = names.iter().filter(|it| it.ends_with(".yaml") && *it != name);
        let part = scenarios.into_iter().any(|it| text_of(it).contains(&line));
        assert!(runs || part, "examples/{name} has no test: add it here");
    }
}

#[test]
fn every_example_is_valid_as_shipped() {
    for name in EXAMPLES.iter().map(|small| small.name).chain(ELSEWHERE) {
        let run = running("check small.yaml", text_of(name)).run().exits(0);
        run.check(!run.err.contains("warning["), name);
    }
}

/// A test of its own for each example, so that they run side by side.
macro_rules! examples_are_run {
    ($($test:ident: $name:literal),* $(,)?) => {
        const RUN: &[&str] = &[$($name),*];
        $(#[test]
        fn $test() {
            is_run($name);
        })*
    };
}

examples_are_run! {
    failover_is_run: "failover.yaml",
    once_per_run_is_run: "once-per-run.yaml",
    open_platform_api_is_run: "open-platform-api.yaml",
    mqtt_devices_is_run: "mqtt-devices.yaml",
    mobile_users_is_run: "mobile-users.yaml",
    quick_http_is_run: "quick-http.yaml",
    shapes_of_a_day_is_run: "shapes-of-a-day.yaml",
    side_by_side_is_run: "side-by-side.yaml",
    im_websocket_is_run: "im-websocket.yaml",
    chat_room_is_run: "chat-room.yaml",
    proxy_long_requests_is_run: "proxy-long-requests.yaml",
    login_then_chat_is_run: "login-then-chat.yaml",
    grpc_is_run: "grpc.yaml",
    events_is_run: "events.yaml",
}

#[track_caller]
fn is_run(name: &str) {
    let small = EXAMPLES.iter().find(|it| it.name == name).expect("a small form of the example");
    let targets: Vec<Target> = small.targets.iter().map(|(kind, _)| Target::start(kind)).collect();
    let addresses: Vec<String> = targets.iter().map(|it| it.address.to_string()).collect();
    let places = small.targets.iter().zip(&addresses);
    let mut changes = small.changes.to_vec();
    changes.extend(places.map(|((_, port), address)| (*port, address.as_str())));
    let text = changed(small.name, &changes);
    running("check small.yaml", text.clone()).run().exits(0);
    let run = running("run small.yaml --json --allow-commands --out record", text).run().exits(0);
    run.within("/total/ok", small.ok, f64::MAX);
    run.has("/total/failed", 0);
    if small.name == "open-platform-api.yaml" {
        uses_each_account_once(&run, &targets[0]);
    }
}

/// The scenarios of `cargo xtask bench`, each with its target and the variables of a small run.
const BENCHES: [(&str, &str, &str); 9] = [
    ("page", "http", "target=http://@ time=1s"),
    ("ping", "chat", "target=tcp://@ time=1s"),
    ("ping-by-hand", "chat", "target=tcp://@ time=1s"),
    ("say", "chat", "target=tcp://@ time=1s"),
    ("transaction", "http", "target=http://@ time=1s"),
    ("transaction-raw", "http", "target=http://@ time=1s"),
    (
        "million",
        "im",
        "target=ws://@ fill=20/s fill_2=20/s fill_3=20/s fill_4=20/s settle=100ms hold=2s \
         heartbeat=1s lost_after=1s p99=20s drain=100/s",
    ),
    (
        "chat",
        "chat",
        "target=@ rooms=2 fill=50/s silence=100ms talk=2s each=1s said=1/s settle=2s lost_after=1s \
         p99=20s",
    ),
    (
        "push",
        "push",
        "target=@ admin=# fill=50/s fill_2=50/s alone=100ms rate=100 hold=4s lost_after=2s \
         drain=100/s",
    ),
];

#[test]
fn every_scenario_of_a_bench_is_run() {
    for (name, kind, vars) in BENCHES {
        let target = Target::start(kind);
        let (address, admin) = (target.address.to_string(), target.admin.to_string());
        let run = throng("run").arg(root().join(format!("benches/{name}.yaml")));
        let vars = vars.replace('@', &address).replace('#', &admin);
        let sets = vars.split(' ').chain(["users=20"]).flat_map(|var| ["--set", var]);
        let run = sets.fold(run, |run, word| run.arg(word));
        let run = run.arg("--json").arg("--no-record").run().exits(0);
        run.within("/total/ok", 20.0, f64::MAX);
        // Without the bench nobody has got a grant and a token for it.
        run.check(run.figure("/total/failed") == 0.0 || name == "transaction-raw", "failures");
        run.check(!run.err.contains("warning["), name);
    }
}

/// Each authorisation takes a row that none had before, in the warm-up too.
fn uses_each_account_once(run: &Run, target: &Target) {
    let text = std::fs::read_to_string(run.folder().join("record/intervals.ndjson"));
    let text = text.expect("the figures of all seconds");
    let intervals = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let counts = intervals.map(|interval: Value| {
        let steps = interval["steps"].as_array().cloned().unwrap_or_default();
        // Its row is the second one: the transaction has the first.
        let own = steps.iter().find(|step| step["step"] == 1);
        own.and_then(|step| step["count"].as_u64()).unwrap_or_default()
    });
    assert_eq!(target.counts("/accounts"), counts.sum::<u64>(), "{run}");
    assert_eq!(target.counts("/accounts_again"), 0, "{run}");
    let transaction = run.row("transactions", "authorise");
    run.check(transaction["failed"] == 0, "a transaction failed");
    let ok = transaction["ok"].as_u64().unwrap_or_default();
    run.check((20..=target.counts("/accounts")).contains(&ok), "a transaction for each account");
    // The pause is in one of its times.
    let time = |of: &str| transaction[of]["p50_ns"].as_u64().unwrap_or_default();
    run.check(time("latency_with_pauses") >= time("latency") + 400_000_000, "the pause");
}

#[test]
fn a_share_of_the_requests_can_be_found_in_tracing() {
    let scribe = Scribe::answering(|asked, _| match asked.what.as_str() {
        "POST /oauth/authorize" => ok(r#"{"code":0,"data":{"grant":"g"}}"#),
        "POST /oauth/token" => ok(r#"{"code":0,"data":{"token":"t"}}"#),
        _ => answer("204 No Content", "", ""),
    });
    let target = scribe.target();
    let changes = [
        ("https://127.0.0.1:8443", target.as_str()),
        ("share: 1%", "share: 20%"),
        ("think: 3s", "think: 1ms"),
        ("{name: warm-up, users: 20, for: 10s, measured: false}", "{iterations: 400, users: 4}"),
        ("  - {name: baseline, users: 200, for: 5m}\n", ""),
        ("authorise rate > 60/s", "authorise rate > 5/s"),
        ("time: < 500ms", "time: < 20s"),
        ("http p95 < 500ms", "http p95 < 10s"),
    ];
    let text = changed("open-platform-api.yaml", &changes);
    let run = running("run small.yaml --json", text).run().succeeds(1200);
    let book = scribe.book();
    let parents: Vec<&str> = book.iter().filter_map(|it| it.header("traceparent")).collect();
    // 240 are expected, with a deviation of 14.
    assert!((170..=310).contains(&parents.len()), "{} of 1200", parents.len());
    let mut traces: Vec<&str> = parents.iter().filter_map(|it| it.get(3..35)).collect();
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), parents.len(), "each trace is another");
    for parent in parents {
        let parts: Vec<&str> = parent.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert!(lengths == [2, 32, 16, 2] && parts[0] == "00" && parts[3] == "01", "{parent}");
    }
    run.check(book.iter().all(|it| it.header("tracestate").is_none()), "nobody asked for it");
}

/// What is part of the language and not in this version.
const LATER: &str = "target: http://127.0.0.1:9
sessions: {a: {steps: [{http: GET /}]}}
load: [{name: hold, users: 1, for: 1s}]
audit: {presence: {truth: bound, views: {memory: {http: GET /, online: json.online}}}}
thresholds: [presence false_online = 0 in hold]
";

#[test]
fn missing_features_are_named() {
    let mistakes = 2;
    for command in ["check", "run", "try"] {
        let line = format!("{command} small.yaml");
        let run = throng(&line).file("small.yaml", LATER).run().exits(2);
        let messages: Vec<&str> = run.err.split("error[").skip(1).collect();
        run.check(messages.len() == mistakes, &format!("{mistakes} messages"));
        for message in &messages {
            let good = message.starts_with("not-yet]: ")
                && message.contains("--> small.yaml:")
                && message.contains("= help: ");
            run.check(good, message);
        }
        run.check(!run.err.contains("warning["), "something else is wrong");
        run.check(run.out.is_empty(), "nothing was done");
        run.says(&[&format!("{mistakes} errors; nothing was sent")]);
    }
}

/// The commands of a text's blocks of shell that begin so, without remarks.
fn commands(text: &str, begin: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|part| part.split("```").next());
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with(begin));
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim().to_string()).collect()
}

/// The words of a line as a shell reads them.
fn words(line: &str) -> Vec<String> {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("printf '%s\\n' {line}")]);
    Child::start(command).wait().exits(0).out.lines().map(String::from).collect()
}

/// The same at a size that a test can afford.
fn small(mut words: Vec<String>) -> Vec<String> {
    let mut ends = false;
    for at in 0..words.len() - 1 {
        let count = words[at + 1].parse::<u64>();
        match (words[at].as_str(), count) {
            ("-c", Ok(users)) => words[at + 1] = users.min(50).to_string(),
            ("-n", Ok(requests)) => words[at + 1] = requests.min(500).to_string(),
            ("-d" | "--hold", _) => words[at + 1] = "1s".to_string(),
            _ => continue,
        }
        ends |= words[at] != "-c";
    }
    if !ends {
        words.extend(["-n".to_string(), "200".to_string()]);
    }
    words
}

#[test]
fn the_commands_of_the_readme_are_run() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let (http, echo) = (Target::start("http"), Target::start("echo"));
    let papers = Papers::own();
    let nginx = papers.nginx("self", "");
    let tls = format!("127.0.0.1:{}", nginx.port);
    let datagrams = Datagrams::start(|datagram, _| vec![datagram.to_vec()]);
    let places = [
        ("127.0.0.1:8080", http.address.to_string()),
        ("127.0.0.1:8089", echo.address.to_string()),
        ("127.0.0.1:6379", echo.address.to_string()),
        ("127.0.0.1:8443", tls),
        ("127.0.0.1:9000", datagrams.address.to_string()),
    ];
    let lines = commands(&text, "throng bench ");
    assert!(lines.len() > 5, "{lines:?}");
    for line in lines {
        let moved = |line: String, (old, new): &(&str, String)| line.replace(old, new);
        let moved = places.iter().fold(line.clone(), moved);
        let known = moved != line || line.contains("--curl request.txt");
        assert!(known, "nothing listens for `{line}`: add it here");
        let run = throng("").file("request.txt", format!("curl '{}'", http.http("/anything")));
        let run = small(words(&moved)).iter().skip(1).fold(run, |run, word| run.arg(word));
        let run = run.arg("--json").run().exits(0);
        // Users who only come, stay and leave ask nothing that is answered within a second.
        let done = if line.contains("--hold") { "/lifecycle/complete" } else { "/total/ok" };
        run.within(done, 5.0, f64::MAX);
        run.has("/total/failed", 0);
    }
}
