//! Digest authentication: the servers are written in Python, whose digests are its own, but for
//! HTTP/2, where it is the reference target's.

use std::process::Command;

use tempfile::TempDir;

use crate::run::{Child, Throng, throng};
use crate::scenarios::{one_session, running, times};
use crate::servers::{Target, program};

/// Knows ann with the password `word` and bob with `other: word`. It prints what it makes of each
/// request: `asked`, `stale`, `wrong`, or `ok USER COUNT`. A count may be used once. Arguments:
/// the algorithm, `qop` or nothing, whether users are hidden, and after how many requests a nonce
/// is stale.
const SERVER: &str = r#"
import hashlib, re, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

algorithm, qop, hidden, life = sys.argv[1], sys.argv[2], sys.argv[3] == "hidden", int(sys.argv[4])
base = algorithm.removesuffix("-sess")
function = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}[base]
users = {"ann": "word", "bob": "other: word"}
nonces, used, lock = {}, set(), threading.Lock()

def tell(*parts):
    with lock:
        print(*parts, flush=True)

def digest(*parts):
    return hashlib.new(function, ":".join(parts).encode()).hexdigest()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, headers=()):
        body = b"" if self.command == "HEAD" else b"hello"
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def ask(self, stale):
        nonce = "n%d/+=" % len(nonces)
        nonces[nonce] = 0
        said = 'Digest realm="a \\"place\\"", nonce="%s", opaque="o,p", algorithm=%s' % (nonce, algorithm)
        said += ', qop="auth,auth-int"' if qop == "qop" else ""
        said += ", userhash=true" if hidden else ""
        said += ", stale=true" if stale else ""
        tell("stale" if stale else "asked")
        self.answer(401, [("WWW-Authenticate", 'Basic realm="other"'), ("WWW-Authenticate", said)])

    def serve(self):
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if self.path == "/moved":
            return self.answer(302, [("Location", "/kept?x=1,2")])
        said = self.headers.get("Authorization", "")
        if not said.startswith("Digest "):
            return self.ask(False)
        found = re.findall(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^,\s]+))', said)
        value = {name: re.sub(r"\\(.)", r"\1", quoted) or plain for name, quoted, plain in found}
        user = value["username"]
        if hidden:
            names = [one for one in users if digest(one, value["realm"]) == user]
            user = names[0] if names else ""
        secret = digest(user, 'a "place"', users.get(user, "?"))
        if algorithm.endswith("-sess"):
            secret = digest(secret, value["nonce"], value["cnonce"])
        asked = digest(self.command, self.path)
        middle = [value["nc"], value["cnonce"], "auth"] if qop == "qop" else []
        right = digest(secret, value["nonce"], *middle, asked)
        count = (value["nonce"], value.get("nc"))
        good = right == value["response"] and value["uri"] == self.path and value["opaque"] == "o,p"
        if not good or (qop == "qop" and count in used) or value["nonce"] not in nonces:
            tell("wrong", said)
            return self.ask(False)
        used.add(count)
        nonces[value["nonce"]] += 1
        if nonces[value["nonce"]] > life:
            return self.ask(True)
        tell("ok", user, value.get("nc", "-"), body.decode())
        self.answer(200)

    do_GET = do_POST = do_HEAD = serve

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print("listening", server.server_address[1], flush=True)
server.serve_forever()
"#;

struct Server {
    child: Child,
    _home: TempDir,
    port: u16,
}

impl Server {
    fn start(arguments: &str) -> Server {
        let home = tempfile::tempdir().expect("a temporary folder");
        let path = home.path().join("server.py");
        std::fs::write(&path, SERVER).expect("a script");
        let mut command = Command::new(program("python3", "python3"));
        command.arg(path).args(arguments.split(' '));
        let child = Child::start(command);
        let port = child.line("listening ").parse().expect("a port");
        Server { child, _home: home, port }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Waits until so many of its lines begin so; no more may.
    #[track_caller]
    fn says(&self, begin: &str, count: usize) {
        let said = |out: &str| out.lines().filter(|line| line.starts_with(begin)).count();
        let enough = |out: &str, _: &str| (said(out) >= count).then_some(());
        self.child.hears(&format!("{count} times `{begin}`"), enough);
        assert_eq!(said(&self.child.output()), count, "{begin}");
    }
}

fn bench(url: &str, line: &str) -> Throng {
    throng(&format!("bench {url} --json --digest {line}"))
}

#[test]
fn each_user_is_challenged_once_and_then_sends_credentials() {
    for arguments in [
        "MD5 qop plain 1000",
        "MD5-sess qop plain 1000",
        "SHA-256 qop plain 1000",
        "SHA-256-sess qop hidden 1000",
        "SHA-512-256 qop hidden 1000",
        "MD5 none plain 1000",
    ] {
        let server = Server::start(arguments);
        let url = server.url("/kept?a=b,c");
        let run = bench(&url, "-n 40 -c 4 -u ann:word --expect-text hello").run().succeeds(40);
        server.says("ok ann", 40);
        server.says("asked", 4);
        server.says("wrong", 0);
        // An attempt is one however often it was sent, and the connection is kept.
        run.has("/steps/0/begun", 40);
        run.has("/connections/opened", 4);
    }
}

#[test]
fn bytes_of_both_requests_are_counted() {
    let server = Server::start("MD5 qop plain 1000");
    let run = bench(&server.url("/"), "-n 1 -c 1 -u ann:word").run().succeeds(1);
    run.within("/steps/0/sent_bytes", 350.0, 500.0);
    run.within("/steps/0/received_bytes", 350.0, 450.0);
}

#[test]
fn a_body_is_resent_and_the_method_is_part_of_the_digest() {
    let server = Server::start("SHA-256 qop plain 1000");
    let line = "-n 10 -c 2 -u ann:word --body letter";
    bench(&server.url("/"), line).run().succeeds(10);
    server.says("ok ann", 10);
    let told = server.child.output();
    assert_eq!(told.lines().filter(|line| line.ends_with(" letter")).count(), 10, "{told}");
    bench(&server.url("/"), "-n 4 -c 1 -u ann:word -m HEAD").run().succeeds(4);
    server.says("ok ann", 14);
    server.says("wrong", 0);
}

#[test]
fn a_stale_nonce_is_replaced_within_the_step() {
    let server = Server::start("MD5 qop plain 3");
    bench(&server.url("/"), "-n 12 -c 1 -u ann:word").run().succeeds(12);
    server.says("ok ann", 12);
    server.says("stale", 3);
    server.says("asked", 1);
}

#[test]
fn a_second_401_is_the_response() {
    let server = Server::start("MD5 qop plain 1000");
    let run = bench(&server.url("/"), "-n 6 -c 1 -u ann:false").run().exits(1);
    run.fails("status-unexpected", "target or scenario", Some(6));
    run.has("/steps/0/begun", 6);
    // Asked at first, then each is wrong and asked again: none is sent a third time.
    server.says("wrong", 11);
    let run = throng(&format!("bench {} --json -n 2 -c 1 -u ann:word", server.url("/"))).run();
    run.exits(1).fails("status-unexpected", "target or scenario", Some(2));
}

#[test]
fn scenarios_and_curl_commands_are_equivalent() {
    let server = Server::start("MD5 qop plain 1000");
    let steps = "- {http: GET /moved, redirects: follow, auth: {user: \"${data.users.name}\", \
                 password: \"${data.users.word}\", scheme: digest}, check: {status: 200}}";
    let head = "data: {users: {list: [{name: ann, word: word}, {name: bob, word: 'other: word'}], \
                take: circular}}\n"
        .to_string()
        + &times(8, 2);
    running(&one_session(&server.url(""), &head, steps)).run().exits(0);
    server.says("ok ann", 4);
    server.says("ok bob", 4);
    server.says("wrong", 0);
    let command = format!("curl --digest -u ann:word {}", server.url("/"));
    throng("bench --curl it.txt -n 4 -c 1 --json").file("it.txt", command).run().succeeds(4);
    server.says("ok ann", 8);
    server.says("wrong", 0);
}

#[test]
fn both_versions_of_http_answer_challenges() {
    for (flags, over_http2) in [("", false), ("--http2", true)] {
        for algorithm in ["MD5", "SHA-256"] {
            let target = Target::start("http");
            let of = |path: &str| if over_http2 { target.counts(path) } else { 0 };
            let ask = "user=ann&password=word&algorithm=";
            let url = target.http(&format!("/digest?{ask}{algorithm}"));
            let line = format!("{flags} -n 40 -c 4 -u ann:word --expect-text true");
            let run = bench(&url, &line).run().succeeds(40);
            run.has("/connections/opened", 4);
            run.has("/steps/0/begun", 40);
            // Each user is asked once.
            let requests = target.counts("/requests");
            assert_eq!((requests, of("/http2/requests")), (44, if over_http2 { 44 } else { 0 }));
            // A nonce that is stale is changed within the step.
            let stale = bench(&format!("{url}&uses=3"), &format!("{flags} -n 12 -c 1 -u ann:word"));
            stale.run().succeeds(12);
            assert_eq!(target.counts("/requests") - requests, 12 + 1 + 3);
        }
        let target = Target::start("http");
        let wrong = bench(&target.http("/digest"), &format!("{flags} -n 6 -c 1 -u user:false"));
        wrong.run().exits(1).fails("status-unexpected", "target or scenario", Some(6));
        assert_eq!(target.counts("/requests"), 12);
        let body = bench(
            &target.http("/digest"),
            &format!("{flags} -n 5 -c 1 -u user:pass -m PUT --body letter"),
        );
        body.run().succeeds(5);
        assert_eq!(target.counts("/requests"), 18);
    }
}

#[test]
fn streams_of_one_connection_answer_challenges() {
    let target = Target::start("http --latency 2ms");
    let line = "--http2 --streams 8 -n 200 -c 2 -u user:pass";
    let run = bench(&target.http("/digest"), line).run().succeeds(200);
    run.has("/connections/opened", 2);
    // At most every stream is asked once.
    let requests = target.counts("/http2/requests");
    run.check((201..=216).contains(&requests), &format!("{requests} requests"));
}

#[test]
fn meaningless_settings_are_refused() {
    let line = |line: &str| throng(&format!("bench {line}")).run().exits(2);
    line("http://127.0.0.1:1/ --digest").says(&["flag-without-effect", "--auth user:password"]);
    line("ws://127.0.0.1:1/ --digest -u ann:word").says(&["flag-without-effect", "http and https"]);
}
