//! `throng mcp`: a client that speaks the protocol, in both of its eras; what it may load, how a
//! run ends that it cancels or leaves, and what is wrong with its messages.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::run::{Child, Throng, throng};
use crate::scenarios::one_session;
use crate::scribe::Scribe;

const MODERN: &str = "2026-07-28";

/// A client of the modern era.
struct Client {
    child: Child,
    id: u64,
}

impl Client {
    fn start(run: Throng) -> Client {
        let lists = run.folder().join("config").display().to_string();
        let run = run.env("XDG_CONFIG_HOME", &lists).env("THRONG_TARGETS", "");
        Client { child: run.listens().start(), id: 0 }
    }

    fn sends(&mut self, message: &Value) {
        self.child.types(&format!("{message}\n"));
    }

    /// Sends a request, and does not wait.
    fn requests(&mut self, method: &str, mut params: Value) -> u64 {
        self.id += 1;
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        params["_meta"]["progressToken"] = json!(self.id);
        let id = self.id;
        self.sends(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    #[track_caller]
    fn answer(&self, id: &Value) -> Value {
        self.child.hears("an answer", |out, _| messages(out).into_iter().find(|it| it["id"] == *id))
    }

    #[track_caller]
    fn asks(&mut self, method: &str, params: Value) -> Value {
        let id = self.requests(method, params);
        self.answer(&json!(id))
    }

    fn begins(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.requests("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The result of a tool, and its text.
    #[track_caller]
    fn calls(&mut self, tool: &str, arguments: &Value) -> (Value, String) {
        let id = self.begins(tool, arguments);
        let result = self.answer(&json!(id))["result"].clone();
        let text = result["content"][0]["text"].as_str().expect("a text").to_string();
        (result, text)
    }

    /// What the progress of a request says.
    fn progress(&self, id: u64) -> Vec<Value> {
        let all = messages(&self.child.output());
        let own = |it: &Value| it["params"]["progressToken"] == json!(id);
        all.into_iter().filter(own).map(|it| it["params"].clone()).collect()
    }

    /// The only run directory.
    #[track_caller]
    fn record(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.child.folder().join("throng-runs"));
        let paths: Vec<PathBuf> = entries.expect("runs").flatten().map(|it| it.path()).collect();
        assert_eq!(paths.len(), 1, "{paths:?}");
        paths[0].clone()
    }

    fn ends(mut self) -> crate::run::Run {
        self.child.types_no_more();
        self.child.wait()
    }
}

/// The complete lines, each of which must be a message.
fn messages(out: &str) -> Vec<Value> {
    let complete = out.rfind('\n').map_or("", |end| &out[..end]);
    let message = |line: &str| serde_json::from_str(line).expect("only messages on the output");
    complete.lines().map(message).collect()
}

fn scenario(scribe: &Scribe, load: &str) -> Value {
    let text =
        one_session(&scribe.target(), &format!("load: [{load}]"), "- http: GET /\n- think: 20ms");
    json!(text)
}

#[test]
fn a_client_of_either_era_finds_the_tools_and_the_pages() {
    let mut client = Client::start(throng("mcp"));
    let found = client.asks("server/discover", json!({}))["result"].clone();
    assert_eq!(found["supportedVersions"], json!([MODERN]));
    assert_eq!(found["resultType"], "complete");
    let tools = client.asks("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().expect("tools").iter().filter_map(|it| it["name"].as_str()).collect();
    for name in ["check", "try", "run", "why", "report", "compare"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let pages = client.asks("resources/list", json!({}))["result"]["resources"].clone();
    for page in pages.as_array().expect("pages") {
        let read = client.asks("resources/read", json!({"uri": page["uri"]}));
        let text = read["result"]["contents"][0]["text"].as_str().expect("a text");
        assert!(text.len() > 1_000, "{page}");
    }
    assert!(client.calls("language", &json!({})).1.contains("# The language on one page"));
    let begin = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    client.sends(&begin);
    let begun = client.answer(&json!("a"))["result"].clone();
    assert_eq!(
        (&begun["protocolVersion"], &begun["serverInfo"]["name"]),
        (&json!("2025-06-18"), &json!("throng"))
    );
    client.sends(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client.sends(&json!({"jsonrpc": "2.0", "id": "b", "method": "ping"}));
    assert_eq!(client.answer(&json!("b"))["result"], json!({}));
    client.ends().exits(0);
}

#[test]
fn wrong_messages_are_refused_and_the_server_goes_on() {
    let mut client = Client::start(throng("mcp"));
    client.child.types("{oops\n\n[]\n");
    let wrong = client.child.hears("two refusals", |out, _| {
        let all = messages(out);
        (all.len() >= 2).then_some(all)
    });
    assert_eq!(
        (&wrong[0]["error"]["code"], &wrong[1]["error"]["code"]),
        (&json!(-32700), &json!(-32600))
    );
    client.child.types(&format!("{{\"a\": \"{}\"}}\n", "x".repeat(17 << 20)));
    client.child.hears("a refusal", |out, _| {
        messages(out)
            .iter()
            .any(|it| it["error"]["message"].as_str().is_some_and(|it| it.contains("bytes")))
            .then_some(())
    });
    for (method, params, code, wanted) in [
        ("tools/execute", json!({}), -32601, "`tools/execute`"),
        ("tools/call", json!({"name": "shell"}), -32602, "tools: language, check"),
        ("tools/call", json!({"name": "check", "arguments": [1]}), -32602, "an object"),
        ("resources/read", json!({"uri": "file:///etc/passwd"}), -32602, "throng://docs/language"),
    ] {
        let error = client.asks(method, params)["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().is_some_and(|it| it.contains(wanted)), "{error}");
    }
    for (tool, arguments, wanted) in [
        ("check", json!({}), "error[bad-argument]"),
        ("check", json!({"file": "a.yaml", "user": 3}), "`user` is not an argument"),
        ("check", json!({"file": "nothing.yaml"}), "error[file-unreadable]"),
        (
            "check",
            json!({"scenario": "target: http://127.0.0.1:1\nsesions: {}"}),
            "did you mean `sessions`?",
        ),
        ("report", json!({}), "error[run-unreadable]"),
        ("explain", json!({"code": "--help"}), "error[unknown-code]"),
    ] {
        let (result, text) = client.calls(tool, &arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text.contains(wanted), "{text}");
    }
    client.ends().exits(0);
}

#[test]
fn without_targets_nothing_is_sent() {
    let scribe = Scribe::start();
    let text = scenario(&scribe, "{users: 2, for: 1s}");
    let mut client = Client::start(throng("mcp"));
    let (result, text_of_check) = client.calls("check", &json!({"scenario": text}));
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["exit_code"]),
        (&json!(false), &json!(0))
    );
    assert!(text_of_check.contains("the scenario is valid"), "{text_of_check}");
    for tool in ["try", "run"] {
        let (result, text) = client.calls(tool, &json!({"scenario": text}));
        assert_eq!(result["isError"], true);
        assert!(text.contains("error[target-not-allowed]") && text.contains("--allow"), "{text}");
    }
    client.ends().exits(0);
    let mut client = Client::start(throng("mcp --allow 127.0.0.2,shop.test"));
    for tool in ["try", "run"] {
        let (result, told) = client.calls(tool, &json!({"scenario": text}));
        assert_eq!(result["isError"], true);
        assert!(told.contains("throng mcp --allow"), "{told}");
    }
    client.ends().exits(0);
    assert_eq!(scribe.accepted(), 0, "not even a connection");
}

#[test]
fn a_run_beyond_the_budget_sends_nothing() {
    let scribe = Scribe::start();
    let line = "mcp --allow 127.0.0.1 --max-users 5 --max-rate 50 --max-time 10s";
    let mut client = Client::start(throng(line).env("THRONG_BUDGET", "time=9s"));
    for (load, wanted) in [
        ("{users: 6, for: 1s}", "6 users"),
        ("{arrivals: 5/s, for: 1s}", "add `max: 5`"),
        ("{iterations: 51/s, users: 5, for: 1s}", "51/s"),
        ("{users: 1, for: 10s}", "--for"),
        ("{users: 1, iterations: 10}", "add `for:"),
    ] {
        let (result, text) = client.calls("run", &json!({"scenario": scenario(&scribe, load)}));
        assert_eq!(result["isError"], true, "{text}");
        assert!(text.contains("error[budget-exceeded]") && text.contains(wanted), "{load}: {text}");
    }
    let given = json!({"scenario": scenario(&scribe, "{users: 1, for: 1s}"), "users": 50});
    assert!(client.calls("run", &given).1.contains("budget-exceeded"));
    client.ends().exits(0);
    assert_eq!(scribe.accepted(), 0, "not even a connection");
}

#[test]
fn a_run_is_recorded_told_and_explained() {
    let scribe = Scribe::start();
    let run = throng("mcp --allow 127.0.0.1");
    let mut client = Client::start(run);
    let text = scenario(&scribe, "{users: 4, for: 3s}");
    std::fs::write(client.child.folder().join("it.yaml"), text.as_str().expect("a text"))
        .expect("a file");
    let (tried, told) = client.calls("try", &json!({"file": "it.yaml"}));
    assert_eq!(tried["isError"], false, "{told}");
    assert!(told.contains("GET / HTTP/1.1") && told.contains("1 step, ok"), "{told}");
    let id = client.begins("run", &json!({"file": "it.yaml", "thresholds": ["errors < 1%"]}));
    client.child.hears("a run", |out, _| out.contains("run directory: ").then_some(()));
    let busy = client.calls("run", &json!({"file": "it.yaml"}));
    assert!(busy.1.contains("error[run-in-progress]"), "{}", busy.1);
    let result = client.answer(&json!(id))["result"].clone();
    let summary = &result["structuredContent"];
    // On a busy machine the generator may have been late.
    let code = &summary["outcome"]["exit_code"];
    assert_eq!((&result["isError"], [0, 5].iter().any(|it| code == it)), (&json!(false), true));
    assert!(summary["total"]["ok"].as_u64().is_some_and(|ok| ok > 10), "{summary}");
    let told = result["content"][0]["text"].as_str().expect("a text");
    assert!(told.contains("errors < 1%"), "{told}");
    let progress = client.progress(id);
    let texts: Vec<&str> = progress.iter().filter_map(|it| it["message"].as_str()).collect();
    assert!(texts.iter().any(|it| it.starts_with("run directory: throng-runs/")), "{texts:?}");
    assert!(texts.iter().any(|it| it.contains("users 4 · ok ")), "{texts:?}");
    assert!(progress.is_sorted_by(|a, b| a["progress"].as_f64() < b["progress"].as_f64()));
    let record = client.record().display().to_string();
    let (report, _) = client.calls("report", &json!({}));
    assert_eq!(report["structuredContent"]["run"]["id"], summary["run"]["id"]);
    let (why, told) = client.calls("why", &json!({"run": record}));
    assert!(why["structuredContent"]["findings"].is_array() && !told.is_empty(), "{why}");
    let (compared, told) = client.calls("compare", &json!({"baseline": record, "runs": [record]}));
    assert!(compared["structuredContent"].is_object() && !told.is_empty(), "{compared}");
    client.ends().exits(0);
}

/// Until users are at work.
fn long_run(scribe: &Scribe, client: &mut Client) -> u64 {
    let text = scenario(scribe, "{users: 3, for: 2m}");
    let id = client.begins("run", &json!({"scenario": text}));
    client.child.until("requests", || scribe.accepted() > 0);
    id
}

fn is_kept(record: &std::path::Path) {
    let run = throng("report --json").arg(record).run().exits(130);
    run.check(run.figure("/total/ok") > 0.0, "its results are kept");
    run.check(run.json()["run"]["interrupted"] == true, "it was interrupted");
    run.check(!run.json()["run"]["ended"].is_null(), "it has ended in order");
}

#[test]
fn a_canceled_run_ends_and_is_kept() {
    let scribe = Scribe::start();
    let mut client = Client::start(throng("mcp --allow 127.0.0.1"));
    let id = long_run(&scribe, &mut client);
    client.sends(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "enough"}}));
    let record = client.record();
    client.child.until("its end", || record.join("report.html").exists());
    is_kept(&record);
    // The next one may begin as soon as this one is over.
    client.child.until("an end", || !record.join("control.sock").exists());
    let run = client.ends().exits(0);
    run.check(messages(&run.out).iter().all(|it| it["id"] != json!(id)), "no answer is wanted");
}

#[test]
fn a_client_that_is_gone_ends_its_run() {
    let scribe = Scribe::start();
    let mut client = Client::start(throng("mcp --allow 127.0.0.1"));
    let id = long_run(&scribe, &mut client);
    let record = client.record();
    let run = client.ends().exits(0);
    is_kept(&record);
    let answer = messages(&run.out).into_iter().find(|it| it["id"] == json!(id));
    let summary = answer.expect("an answer, as the output was open")["result"].clone();
    run.check(summary["structuredContent"]["outcome"]["exit_code"] == 130, "it was interrupted");
}

#[test]
fn a_run_of_a_server_that_is_killed_ends_and_is_kept() {
    let scribe = Scribe::start();
    let mut client = Client::start(throng("mcp --allow 127.0.0.1"));
    long_run(&scribe, &mut client);
    let record = client.record();
    client.child.signal(libc::SIGKILL);
    let run = client.child.wait();
    let waits = || !record.join("report.html").exists();
    let clock = throng_base::Clock::start();
    while waits() && (clock.now() - throng_base::Time::ZERO).as_secs() < 60 {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    is_kept(&record);
    drop(run);
}

#[test]
fn wrong_command_lines_are_refused() {
    throng("mcp --dir nowhere").run().exits(2).says(&[
        "error[file-unreadable]",
        "nowhere",
        "--dir",
    ]);
    throng("mcp --allow 127.0.0.1:80")
        .run()
        .exits(2)
        .says(&["target-not-allowed", "`127.0.0.1:80`"]);
    throng("mcp")
        .env("THRONG_BUDGET", "money=5")
        .run()
        .exits(2)
        .says(&["budget-exceeded", "`money=5`"]);
    throng("mcp --max-users 0").run().exits(2).says(&["must be at least 1"]);
}
