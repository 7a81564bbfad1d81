//! gRPC from the command line: servers that tell their services, and calls of what they tell. The
//! server is Python's grpcio, which keeps books of its own.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Child, Run, throng};
use crate::servers::{Target, free_port};

const SERVER: &str = include_str!("grpc_server.py");
const PROTO: &str = include_str!("../../../../../examples/echo.proto");

struct Server {
    child: Child,
    _home: TempDir,
    address: String,
}

impl Server {
    fn start(flags: &[&str]) -> Server {
        let home = tempfile::tempdir().expect("a temporary folder");
        let path = home.path().join("server.py");
        std::fs::write(&path, SERVER).expect("a script");
        let mut command = Command::new(python());
        command.arg(path).arg("0").args(flags);
        let child = Child::start(command);
        let address = child.line("listening on ");
        Server { child, _home: home, address }
    }

    fn url(&self, path: &str) -> String {
        format!("grpc://{}{path}", self.address)
    }

    /// Ends the server and gives its books.
    fn books(self) -> Value {
        self.child.signal(libc::SIGTERM);
        let books = self.child.line("{");
        serde_json::from_str(&format!("{{{books}")).expect("books in JSON")
    }
}

trait Calls {
    /// So many calls went well, and none did not.
    fn calls(self, count: u64) -> Run;
}

impl Calls for Run {
    #[track_caller]
    fn calls(self, count: u64) -> Run {
        let run = self.exits(0);
        run.has("/total/ok", count);
        run.has("/total/begun", count);
        run
    }
}

/// The Python that has grpcio: Debian's, whatever other one comes first.
fn python() -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let has_it = |python: &std::path::PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import grpc, google.protobuf"]);
        command.stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = all.filter(|python| python.is_file()).find(has_it);
    found.expect("grpcio is missing: `apt-get install python3-grpcio`, or `cargo xtask ci`")
}

/// Writes what a server tells, and calls it by that.
fn reflected(server: &Server) -> Run {
    let line = format!("protocol --reflect {} -o echo.desc", server.url(""));
    let run = throng(&line).run().exits(0);
    let set = std::fs::read(run.folder().join("echo.desc")).expect("descriptor set");
    let url = server.url("/echo.v1.Echo/Say");
    let line = format!("bench {url} --proto echo.desc -n 10 -c 1 --json --no-record");
    throng(&line).file("echo.desc", set).arg("--body={\"text\": \"hi\"}").run().calls(10)
}

#[test]
fn a_server_tells_its_services_and_they_are_called() {
    let server = Server::start(&[]);
    reflected(&server);
    assert_eq!(server.books()["calls"]["Say"], 10);
}

#[test]
fn an_older_server_is_asked_the_older_way() {
    reflected(&Server::start(&["--alpha"]));
}

#[test]
fn calls_of_a_command_line_match_the_counts_of_the_server() {
    let server = Server::start(&[]);
    let bench = |method: &str, body: &str, more: &str| {
        let url = server.url(&format!("/echo.v1.Echo/{method}"));
        let line = format!("bench {url} -c 2 --json --no-record {more}");
        throng(&line).arg(format!("--body={body}")).run()
    };
    let run = bench("Say", r#"{"text": "${hi}", "repeat": 3}"#, "-n 101 --streams 8");
    run.calls(101).has("/connections/opened", 2);
    bench("Count", r#"{"to": 3}"#, "-n 20").calls(20);
    bench("Collect", r#"[{"text": "a"}, {"text": "b"}]"#, "-n 20").calls(20);
    bench("Chat", r#"[{"text": "a"}, {"text": "b"}]"#, "-n 20").calls(20);
    let refused = bench("Say", r#"{"code": 5}"#, "-n 20").exits(1);
    refused.fails("grpc-status", "target or scenario", Some(20));
    bench("Say", r#"{"code": 5}"#, "-n 20 --expect-status NOT_FOUND").calls(20);
    let books = server.books();
    let calls = serde_json::json!({"Say": 141, "Count": 20, "Collect": 20, "Chat": 20});
    assert_eq!(books["calls"], calls, "{books}");
    assert_eq!(books["statuses"], serde_json::json!({"OK": 161, "NOT_FOUND": 40}), "{books}");
    assert_eq!(books["received"], 101 + 20 + 40 + 40 + 40, "{books}");
    assert_eq!(books["sent"], 101 + 60 + 20 + 40, "{books}");
}

#[test]
fn missing_methods_are_reported_before_anything_is_sent() {
    let server = Server::start(&[]);
    for (method, body, told) in [
        ("echo.v1.Echo/Sya", r#"{"text": "hi"}"#, "did you mean `echo.v1.Echo/Say`?"),
        ("echo.v1.Ehco/Say", r#"{"text": "hi"}"#, "did you mean `echo.v1.Echo`?"),
        ("echo.v1.Echo/Say", r#"{"txet": "hi"}"#, "did you mean `text`?"),
        ("echo.v1.Echo/Say", r#"{"text": "#, "is not JSON"),
    ] {
        let line = format!("bench {} -n 1 -c 1", server.url(&format!("/{method}")));
        let run = throng(&line).arg(format!("--body={body}")).run().exits(2);
        run.check(run.to_string().contains(told), told);
    }
    assert_eq!(server.books()["calls"], serde_json::json!({}));
}

#[test]
fn a_server_without_reflection_is_reported_with_the_fix() {
    let silent = Server::start(&["--no-reflection"]);
    let http = Target::start("http --tls");
    let nobody = format!("127.0.0.1:{}", free_port());
    for (url, told) in [
        (silent.url(""), "does not support server reflection"),
        (
            silent.url("").replace("grpc:", "grpcs:"),
            "check the port and the certificate; for a server without TLS, write `grpc://`",
        ),
        (format!("grpc://{nobody}"), "Connection refused"),
        (http.url("grpc", ""), "with TLS write `grpcs://`"),
        (http.url("grpcs", ""), "skip the check with --insecure"),
    ] {
        let run = throng(&format!("protocol --reflect {url}")).run().exits(4);
        run.check(run.to_string().contains(told), told);
    }
    let line = format!("bench {} -n 5 -c 1 --json", silent.url("/echo.v1.Echo/Say"));
    throng(&line).run().exits(4);
    throng(&format!("{line} --proto echo.proto")).file("echo.proto", PROTO).run().calls(5);
    let refused = throng("protocol --reflect http://127.0.0.1:1").run().exits(2);
    refused.check(refused.to_string().contains("bad-url"), "other schemes are refused");
}
