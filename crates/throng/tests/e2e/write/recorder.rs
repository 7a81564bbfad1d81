//! `throng record`: curl is the browser, and what it did is tried as a scenario.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::faulty::Faulty;
use crate::http::tls::Papers;
use crate::run::{Child, PATIENCE, Run, throng};
use crate::servers::{Nginx, Target, free_port, program};

/// A recording that is under way.
struct Recorder {
    child: Child,
    /// Where it listens.
    proxy: String,
}

impl Recorder {
    #[track_caller]
    fn start(line: &str) -> Recorder {
        let command = throng(&format!("record --listen 127.0.0.1:0 --out shop.yaml {line}"));
        let data = command.folder().join("data").display().to_string();
        let child = command.env("XDG_DATA_HOME", &data).env("THRONG_TARGETS", "").start();
        let proxy = child.hears("its address", |_, err| {
            let (_, rest) = err.split_once("recording on http://")?;
            rest.split_once(' ').map(|(address, _)| address.to_string())
        });
        Recorder { child, proxy }
    }

    /// The certificate of its authority.
    fn authority(&self) -> PathBuf {
        self.child.folder().join("data/throng/record/ca.pem")
    }

    /// What curl says through it, with the status on a line of its own; cookies are kept.
    #[track_caller]
    fn curl(&self, url: &str, words: &[&str]) -> String {
        let output = self.command(url).args(words).output().expect("curl");
        assert!(output.status.success(), "{url}: {output:?}\n{}", self.child.output());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn command(&self, url: &str) -> Command {
        let mut command = Command::new(program("curl", "curl"));
        command.args(["-sS", "--write-out", "\n%{http_code}", "--cookie-jar", "jar"]);
        command.args(["--cookie", "jar", "--noproxy", "", "--proxy", &self.proxy, "--cacert"]);
        command.arg(self.authority()).arg(url).current_dir(self.child.folder());
        command
    }

    /// Ends it, as Ctrl-C does.
    #[track_caller]
    fn end(self, code: i32) -> Run {
        self.child.signal(libc::SIGINT);
        self.child.wait().exits(code)
    }
}

fn read(run: &Run, name: &str) -> String {
    std::fs::read_to_string(run.folder().join(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The requests of a HAR file.
fn entries(text: &str) -> Vec<Value> {
    let har: Value = serde_json::from_str(text).expect("JSON");
    har["log"]["entries"].as_array().expect("entries").clone()
}

/// The value behind `name` and a quotation mark.
fn value(text: &str, name: &str) -> String {
    let (_, rest) = text.split_once(&format!("{name}\"")).unwrap_or_else(|| panic!("{text}"));
    let rest = rest.split_once('"').map_or(rest, |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default().to_string()
}

/// The shop behind nginx, with TLS and HTTP/2: a form, a cookie and a token.
#[test]
fn a_login_is_recorded_and_runs_with_two_users() {
    let (target, papers) = (Target::start("http"), Papers::signed());
    let [chain, key] = ["server.pem", "server.key"].map(|it| papers.path(it).display().to_string());
    let nginx = Nginx::start(
        "ssl http2",
        &format!(
            "ssl_certificate {chain}; ssl_certificate_key {key}; gzip on; gzip_min_length 1;
             gzip_types application/json;
             location ~ ^/(login|products|cart|orders) {{ proxy_pass http://{}; }}",
            target.address
        ),
    );
    let url = |path: &str| format!("https://127.0.0.1:{}{path}", nginx.port);
    let ca = papers.path("ca.pem").display().to_string();
    let recorder = Recorder::start(&format!("--cacert {ca} --har shop.har"));
    let page = recorder.curl(&url("/login"), &["--compressed"]);
    let csrf = value(&page, "name=\"csrf");
    let login = ["--data-raw", &format!("csrf={csrf}&user=ann&password=open-sesame")];
    let answer = recorder.curl(&url("/login"), &login);
    let token = value(&answer, "token");
    let bearer = format!("Authorization: Bearer {token}");
    let json = "Content-Type: application/json";
    recorder.curl(&url("/products?page=2&key=s3cret"), &["-H", &bearer, "--compressed"]);
    let cart = recorder.curl(&url("/cart"), &["-H", &bearer, "-H", json, "-d", "{\"product\": 7}"]);
    assert!(cart.ends_with("\n201"), "{cart}");
    recorder.curl(&url("/orders"), &["-X", "POST", "-H", &bearer]);
    let run = recorder.end(0);
    run.says(&["wrote shop.yaml · requests: 5", "wrote shop-accounts.csv", "set PASSWORD"]);
    run.says(&["POST   200", "the recording is in shop.har"]);
    for secret in ["open-sesame", "s3cret", &token, &csrf] {
        run.check(!run.err.contains(secret) && !run.out.contains(secret), "a secret is printed");
    }
    let (text, rows) = (read(&run, "shop.yaml"), read(&run, "shop-accounts.csv"));
    let har = entries(&read(&run, "shop.har"));
    run.check(har[0]["request"]["httpVersion"] == "HTTP/2", "not over HTTP/2");
    run.check(har[0]["response"]["httpVersion"] == "HTTP/2", "not over HTTP/2");
    let products = har[2]["response"]["content"]["text"].as_str().unwrap_or_default();
    run.check(products.contains("thing 21"), "the body is not decoded");
    run.check(text.starts_with("# Recorded with `throng record`."), &text);
    run.check(!text.contains("open-sesame") && !text.contains(&token), &text);
    run.check(text.contains("${saved.csrf}") && text.contains("Bearer ${saved.token}"), &text);
    let again = |line: &str| {
        let with = throng(line).env("PASSWORD", "open-sesame").file("shop.yaml", text.clone());
        with.file("shop-accounts.csv", rows.clone()).run().exits(0)
    };
    again("check shop.yaml");
    let run = again("run shop.yaml -u 2 --for 3s --json --quiet --no-record");
    run.has("/total/failed", 0);
    run.check(run.figure("/total/ok") >= 10.0, "two users do all of it");
}

#[test]
fn sockets_and_streams_pass_at_once() {
    let target = Target::start("echo");
    let recorder = Recorder::start("--har shop.har");
    let words = format!("bench {} -n 2 -c 1 --deflate --body hi", target.url("ws", "/"));
    throng(&format!("{words} --proxy http://{} --json", recorder.proxy)).run().succeeds(2);
    let stream = Faulty::start(|mut peer| {
        peer.request();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        peer.says(format!("{head}data: first\n\n").as_bytes());
        peer.waits();
    });
    let mut command = recorder.command(&stream.url("http"));
    command.arg("--no-buffer");
    let viewer = Child::start(command);
    viewer.hears("the first event", |out, _| out.contains("data: first").then_some(()));
    let run = recorder.end(0);
    let har = entries(&read(&run, "shop.har"));
    let of = |scheme: &str| {
        let url = |entry: &&Value| entry["request"]["url"].as_str().unwrap().starts_with(scheme);
        har.iter().find(url).unwrap_or_else(|| panic!("{har:?}"))
    };
    let messages = of("ws://")["_webSocketMessages"].as_array().expect("messages").clone();
    let brief: Vec<String> =
        messages.iter().map(|it| format!("{} {}", it["type"], it["data"])).collect();
    assert_eq!(brief, ["\"send\" \"hi\"", "\"receive\" \"hi\""].repeat(2));
    assert_eq!(of("http://")["response"]["content"]["text"], "data: first\n\n");
}

#[test]
fn hosts_are_refused_passed_on_or_not_reached() {
    let (target, closed) = (Target::start("http"), free_port());
    let greeter = Faulty::start(|mut peer| {
        peer.says(b"220 hello\r\n");
        peer.waits();
    });
    let recorder = Recorder::start("--allow 127.0.0.1");
    assert!(recorder.curl("http://192.0.2.1/", &[]).ends_with("\n403"));
    let failed = recorder.curl(&format!("http://127.0.0.1:{closed}/"), &[]);
    assert!(failed.contains("cannot reach") && failed.ends_with("\n502"), "{failed}");
    assert!(recorder.curl(&target.http("/products"), &[]).ends_with("\n200"));
    // A service that speaks first has no HTTP.
    let mut tunnel = TcpStream::connect(&recorder.proxy).expect("a connection");
    tunnel.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    write!(tunnel, "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", greeter.address).expect("sent");
    let mut heard = String::new();
    while !heard.ends_with("220 hello\r\n") {
        let mut bytes = [0; 1024];
        let count = tunnel.read(&mut bytes).expect("an answer");
        assert!(count > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let run = recorder.end(0);
    run.says(&["192.0.2.1 is not allowed by --allow", "GET    502"]);
    run.says(&["127.0.0.1: forwarded, not recorded", "wrote shop.yaml · requests: 1"]);
    let text = read(&run, "shop.yaml");
    run.check(text.contains("a request without a response"), &text);
    run.check(!run.folder().join("shop.har").exists(), "the recording is still there");
}

#[test]
fn a_killed_recording_is_a_whole_file() {
    let target = Target::start("http");
    let recorder = Recorder::start("--har shop.har --host 127.0.0.1");
    recorder.curl(&target.http("/products/3"), &[]);
    let file = recorder.child.folder().join("shop.har");
    let text = || std::fs::read_to_string(&file).unwrap_or_default();
    recorder.child.until("the request", || text().contains("/products/3"));
    recorder.child.signal(libc::SIGKILL);
    let run = recorder.child.wait();
    let run = throng("import har shop.har").file("shop.har", read(&run, "shop.har")).run().exits(0);
    run.says(&["wrote shop.yaml · requests: 1"]);
}

#[test]
fn what_cannot_be_recorded_is_said_before() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("its address").port();
    let run = throng(&format!("record --listen 127.0.0.1:{port}")).run().exits(2);
    run.says(&["error[recording-failed]", &format!("127.0.0.1:{port}"), "in use", "--listen"]);
    drop(taken);
    let run = throng("record --out a.yaml").file("a.yaml", "mine").run().exits(2);
    run.says(&["error[file-unwritable]", "--force"]);
    throng("record --cacert none.pem")
        .run()
        .exits(2)
        .says(&["error[recording-failed]", "none.pem"]);
    throng("record --host a/b").run().exits(2).says(&["`a/b` in --host"]);
    Recorder::start("").end(2).says(&["error[recording-failed]: nothing was recorded"]);
}
