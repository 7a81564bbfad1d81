//! Targets that listen at a unix socket instead of a port: nginx, node's `ws`, and servers of the
//! standard library.

use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use tempfile::TempDir;

use crate::http::tls::Papers;
use crate::run::{Throng, throng};
use crate::scenarios::{one_session, times};
use crate::servers::{Nginx, Node};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// nginx at `it.sock` of a folder, also.
fn nginx(folder: &TempDir, more: &str) -> Nginx {
    Nginx::start("", &format!("listen unix:{}/it.sock {more};", folder.path().display()))
}

fn bench(folder: &TempDir, url: &str, line: &str) -> Throng {
    let socket = folder.path().join("it.sock");
    throng(&format!("bench {url} --json {line} --unix-socket")).arg(socket)
}

#[test]
fn requests_go_through_a_socket() {
    let folder = folder();
    let nginx = nginx(&folder, "");
    let run = bench(&folder, "http://shop.test/", "-n 200 -c 10").run().succeeds(200);
    run.has("/connections/opened", 10);
    // What TCP alone knows is not told.
    run.has("/tcp/count", 0);
    let line = "-n 60 -c 3 --no-keepalive -R 500 --expect-text front";
    bench(&folder, "http://shop.test/", line).run().succeeds(60).has("/connections/opened", 60);
    assert_eq!(nginx.log(260).len(), 260);
    let text = one_session(
        "{url: http://shop.test, unix_socket: it.sock}",
        &times(20, 2),
        "- {http: GET /, check: {text: front}}",
    );
    let linked = folder.path().join("it.sock");
    let run = throng("run it.yaml").file("it.yaml", &text);
    std::os::unix::fs::symlink(linked, run.folder().join("it.sock")).expect("a link");
    run.run().exits(0).says(&[
        "http://shop.test unix:it.sock",
        "requests     20 · ",
        "0 failed (0 %)",
    ]);
}

#[test]
fn tls_goes_through_a_socket() {
    let (papers, folder) = (Papers::own(), folder());
    let socket = folder.path().join("it.sock").display().to_string();
    let names = "location /names { return 200 \"sni $ssl_server_name, host $http_host.\"; }";
    let _nginx = papers.nginx("self", &format!("listen unix:{socket} ssl; {names}"));
    let trusted = papers.words("--cacert", "self.pem");
    let said = "sni throng.test, host throng.test.";
    let run = bench(&folder, "https://throng.test/names", &format!("-n 40 -c 4 {trusted}"));
    run.arg("--expect-text").arg(said).run().succeeds(40);
    let refused = bench(&folder, "https://other.test/", &format!("-n 4 -c 1 {trusted}")).run();
    refused.fails("certificate-refused", "scenario", Some(4));
    // Where no TLS is spoken, it is known by what comes first.
    let plain = tempfile::tempdir().expect("a temporary folder");
    let _plain = nginx(&plain, "");
    let run = bench(&plain, "https://throng.test/", "-n 4 -c 1").run();
    run.fails("wrong-scheme", "scenario", Some(4));
}

#[test]
fn a_web_socket_goes_through_a_socket() {
    let folder = folder();
    let path = folder.path().join("it.sock");
    let node = Node::start(
        "const { WebSocketServer } = require('ws');
         const http = require('http').createServer();
         const server = new WebSocketServer({ server: http });
         server.on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
         http.listen(process.argv[2], () => console.log('listening 0'));",
        &[&path],
    );
    let line = "-n 100 -c 10 --body hello --expect-text hello";
    bench(&folder, "ws://chat.test/", line).run().succeeds(100).has("/connections/opened", 10);
    // A server beside busy programs may need a tenth of a second for one.
    let line = "-c 10 --hold 3s --heartbeat 1s";
    let run = bench(&folder, "ws://chat.test/", line).run().exits(0);
    let heartbeats = &run.json()["heartbeats"];
    run.check(heartbeats["sent"].as_u64() >= Some(20), "they were sent");
    run.check(heartbeats["lost"] == 0, "each was answered");
    drop(node);
}

#[test]
fn bytes_go_through_an_abstract_socket() {
    let name = format!("throng-e2e-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("an address");
    let listener = UnixListener::bind_addr(&address).expect("a socket");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            std::thread::spawn(move || {
                let mut line = [0; 6];
                while stream.read_exact(&mut line).is_ok() && stream.write_all(&line).is_ok() {}
            });
        }
    });
    let line = "bench tcp://localhost:1 -n 50 -c 5 --length 6 --json --body hello\\n";
    throng(line).arg("--abstract-unix-socket").arg(&name).run().succeeds(50);
    let command = format!("curl --abstract-unix-socket {name} tcp://localhost:1 -d 'hello '");
    let run = throng("bench --curl it.txt -n 20 -c 2 --length 6 --json").file("it.txt", command);
    run.run().succeeds(20);
}

/// More users come at once than the queue of the socket has room for.
#[test]
fn a_full_queue_is_waited_for() {
    let folder = folder();
    let _nginx = nginx(&folder, "backlog=1");
    let run = bench(&folder, "http://shop.test/", "-n 400 -c 200 --no-keepalive").run();
    run.succeeds(400).has("/connections/opened", 400);
}

#[test]
fn a_socket_that_cannot_be_connected_is_named() {
    let folder = folder();
    let path = folder.path().join("it.sock");
    let failing = || bench(&folder, "http://shop.test/", "-n 4 -c 1").run().exits(4);
    let run = failing();
    run.fails("connect-refused", "target", Some(4));
    run.check(run.out.contains("this socket does not exist"), "what is missing");
    drop(UnixListener::bind(&path).expect("a socket"));
    let run = failing();
    run.fails("connect-refused", "target", Some(4));
    run.check(
        run.out.contains(": no program listens on this socket; check that the target is running"),
        "what is missing",
    );
    std::fs::remove_file(&path).expect("a socket");
    let _datagrams = UnixDatagram::bind(&path).expect("a socket");
    failing().fails("wrong-scheme", "scenario", Some(4));
}

#[test]
fn a_list_of_targets_judges_it_as_this_host() {
    let folder = folder();
    let nginx = nginx(&folder, "");
    let bench = |list: &str| {
        bench(&folder, "http://shop.test/", "-n 4 -c 1").env("THRONG_TARGETS", list).run()
    };
    bench("shop.test").exits(2).says(&["target-not-allowed", "it.sock", "127.0.0.1"]);
    assert!(nginx.log(0).is_empty());
    bench("10.0.0.0/8 127.0.0.0/8").succeeds(4);
    bench("localhost").succeeds(4);
}

/// A million users through one socket need no ports and no addresses.
#[test]
fn the_doctor_counts_no_ports() {
    let load = "load:\n- {users: 1M, for: 2s}";
    let scenario = |target: &str| one_session(target, load, "- connect\n- stay: forever");
    let rules = |target: &str| {
        let run = throng("doctor it.yaml --json").file("it.yaml", scenario(target)).run();
        let findings = run.json()["findings"].as_array().cloned().expect("findings");
        let rules: Vec<String> =
            findings.iter().filter_map(|one| one["rule"].as_str()).map(String::from).collect();
        rules.iter().any(|rule| rule == "source-ports" || rule == "source-addresses")
    };
    assert!(rules("tcp://127.0.0.1:9"));
    assert!(!rules("{url: tcp://localhost:9, unix_socket: /run/it.sock}"));
}
