//! Connections through an HTTP proxy: one of the tests, which keeps its own books, and tinyproxy.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::faulty::{Faulty, Peer};
use crate::http::tls::Papers;
use crate::run::{Child, Throng, throng};
use crate::scribe::Scribe;
use crate::servers::{Nginx, Node, Target, free_port, program};

/// `ann:word` as Basic authentication has it.
const ANN: &str = "basic yw5uondvcmq=";

/// A proxy for tunnels. It knows the host `throng.test` and looks up no other.
struct Tunneller {
    server: Faulty,
    /// The heads of all that was asked, in lower case.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Tunneller {
    /// `answers` says what a head is answered; an empty answer opens the tunnel.
    fn start(answers: impl Fn(&str) -> String + Send + Sync + 'static) -> Tunneller {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let server = Faulty::start(move |mut peer| {
            let Some(head) = peer.request().map(|head| head.to_ascii_lowercase()) else { return };
            kept.lock().expect("no panic").push(head.clone());
            match answers(&head) {
                answer if !answer.is_empty() => drop(peer.says(answer.as_bytes())),
                _ => tunnel(peer, &head),
            }
        });
        Tunneller { server, heads }
    }

    fn open() -> Tunneller {
        Tunneller::start(|_| String::new())
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

/// Carries bytes both ways until one of them ends.
fn tunnel(mut peer: Peer, head: &str) {
    let to = head.strip_prefix("connect ").and_then(|rest| rest.split(' ').next());
    let to = to.unwrap_or_default().replace("throng.test", "127.0.0.1");
    let Ok(target) = TcpStream::connect(&to) else {
        peer.says(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        return;
    };
    // A length means nothing here (RFC 9110, 9.3.6).
    peer.says(b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n");
    let client = peer.into_stream();
    let (from, into) = (client.try_clone().expect("a socket"), target.try_clone());
    let back = thread::spawn(move || carry(target, client));
    carry(from, into.expect("a socket"));
    let _ = back.join();
}

fn carry(mut from: TcpStream, mut into: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer)
        && into.write_all(&buffer[..count]).is_ok()
    {}
    let _ = into.shutdown(std::net::Shutdown::Write);
}

fn bench(proxy: SocketAddr, url: &str, line: &str) -> Throng {
    throng(&format!("bench {url} --json --proxy http://{proxy} {line}"))
}

#[test]
fn requests_through_a_tunnel_match_the_counts_of_the_proxy() {
    let (proxy, target) = (Tunneller::open(), Target::start("http"));
    let url = format!("http://throng.test:{}/", target.address.port());
    let run = bench(proxy.server.address, &url, "-n 200 -c 10").run().succeeds(200);
    run.has("/connections/opened", 10);
    assert_eq!(proxy.server.accepted(), 10);
    target.comes_to("/requests", 200);
    target.comes_to("/connections/accepted", 10);
    let stage = run.row("stages", "proxy");
    run.check(stage["ok"] == 10 && stage["failed"] == 0, "the stage of the proxy");
    let head = proxy.heads().pop().expect("a head");
    let port = target.address.port();
    assert!(head.starts_with(&format!("connect throng.test:{port} http/1.1\r\n")), "{head}");
    assert!(head.contains(&format!("\r\nhost: throng.test:{port}\r\n")), "{head}");
    assert!(head.contains("\r\nuser-agent: throng/"), "{head}");
    assert!(!head.contains("proxy-authorization"), "{head}");
    let line = "-n 60 -c 3 --no-keepalive";
    let run = bench(proxy.server.address, &url, line).run().succeeds(60);
    run.has("/connections/opened", 60);
    assert_eq!(proxy.server.accepted(), 70);
    // The environment is not asked.
    let run = throng(&format!("bench {} -n 4 -c 1 --json", target.http("/")));
    let here = format!("http://{}", proxy.server.address);
    run.env("http_proxy", &here).env("ALL_PROXY", &here).run().succeeds(4);
    assert_eq!(proxy.server.accepted(), 70);
}

#[test]
fn tls_through_a_tunnel_is_with_the_target() {
    let papers = Papers::own();
    let nginx = papers.nginx(
        "self",
        "location /names { return 200 \"sni $ssl_server_name, host $http_host.\"; }",
    );
    let proxy = Tunneller::open();
    let trusted = papers.words("--cacert", "self.pem");
    let url = format!("https://throng.test:{}/names", nginx.port);
    let said = format!("sni throng.test, host throng.test:{}.", nginx.port);
    let run = bench(proxy.server.address, &url, &format!("-n 40 -c 4 {trusted}"));
    run.arg("--expect-text").arg(said).run().succeeds(40).has("/connections/opened", 4);
    // Where the tunnel leads is another question than what the target is called.
    let other = format!("--connect-to throng.test:443:127.0.0.1:{}", nginx.port);
    let run = bench(proxy.server.address, "https://throng.test/names", &trusted);
    let run = run.arg("--expect-text").arg("sni throng.test, host throng.test.");
    let words: Vec<&str> = other.split(' ').collect();
    run.arg(words[0]).arg(words[1]).arg("-n20").arg("-c2").run().succeeds(20);
    let last = proxy.heads().pop().expect("a head");
    assert!(last.starts_with(&format!("connect 127.0.0.1:{} ", nginx.port)), "{last}");
}

#[test]
fn messages_go_through_a_tunnel() {
    let proxy = Tunneller::open();
    let node = Node::start(
        "const { WebSocketServer } = require('ws');
         const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
         server.on('listening', () => console.log('listening ' + server.address().port));
         server.on('connection', (it) => it.on('message', (data) => it.send(data)));",
        &[],
    );
    let line = "-n 100 -c 10 --body hello --expect-text hello";
    let run = bench(proxy.server.address, &node.url("ws"), line).run().succeeds(100);
    run.has("/connections/opened", 10);
    let echo = Target::start("echo");
    let url = echo.url("tcp", "");
    bench(proxy.server.address, &url, "-n 50 -c 5 --body hello --length 5").run().succeeds(50);
    assert_eq!(proxy.server.accepted(), 15);
}

/// Its greeting comes in one piece with the answer of the proxy.
#[test]
fn a_target_may_send_first_through_a_tunnel() {
    let proxy = Faulty::start(|mut peer| {
        if peer.request().is_some() {
            peer.says(b"HTTP/1.1 200 OK\r\n\r\nwelcome\n");
            while peer.hears() && peer.says(b"pong\n") {}
        }
    });
    let steps = r#"- connect
- {expect: {delimiter: "\n"}, check: {text: welcome}}
- {request: {text: ping}, expect: {delimiter: "\n"}}
- disconnect"#;
    let head = format!(
        "connection: {{proxy: \"{}\"}}\nload: [{{iterations: 8, users: 2}}]",
        proxy.address
    );
    let text = crate::scenarios::one_session("tcp://throng.test:9", &head, steps);
    crate::scenarios::running(&text).run().exits(0).has("/connections/opened", 8);
    // Where we speak first, nobody else may.
    let run = bench(proxy.address, "https://throng.test/", "-n 2 -c 1").run().exits(1);
    run.fails("malformed", "target", Some(2));
}

#[test]
fn a_proxy_authenticates_its_users() {
    let denied = "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\n\r\n";
    let proxy = Tunneller::start(move |head| match head.contains(&format!(": {ANN}\r\n")) {
        true => String::new(),
        false => denied.to_string(),
    });
    let target = Scribe::start();
    let (to, at) = (format!("{}/", target.target()), proxy.server.address);
    let failing = |run: Throng, words: &str| {
        let run = run.run().exits(4);
        run.fails("proxy-refused", "scenario", Some(4));
        run.check(run.out.contains(words), "what to do");
    };
    failing(bench(at, &to, "-n 4 -c 1"), "requires authentication (407)");
    failing(bench(at, &to, "-n 4 -c 1 --proxy-user ann:other"), "rejected the user name");
    assert_eq!(target.accepted(), 0);
    bench(at, &to, "-n 4 -c 1 -U ann:word").run().succeeds(4);
    let line = |url: &str| throng(&format!("bench {to} -n 4 -c 1 --json --out it -x {url}"));
    let run = line(&format!("http://ann:word@{at}")).run().succeeds(4);
    // The password is nowhere in the record.
    for file in run.folder().join("it").read_dir().expect("a record").flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        run.check(!text.contains("ann:word") && !text.contains("password: word"), &text);
    }
    let command = format!("curl -p -x http://ann@{at} -U ann:word {to}");
    throng("bench --curl it.txt -n 4 -c 1 --json").file("it.txt", command).run().succeeds(4);
}

#[test]
fn failures_in_the_tunnel_are_attributed_to_the_proxy() {
    let target = Scribe::start();
    let url = format!("{}/", target.target());
    let failing = |proxy: SocketAddr, url: &str, cause: &str, blame: &str, words: &str| {
        let run = bench(proxy, url, "-n 4 -c 1 --connect-timeout 300ms").run().exits(4);
        run.fails(cause, blame, Some(4));
        run.check(run.out.contains(&format!("proxy {proxy}")), "which proxy");
        run.check(run.out.contains(words), words);
    };
    let nobody: SocketAddr = format!("127.0.0.1:{}", free_port()).parse().expect("an address");
    failing(nobody, &url, "proxy-failed", "network", "Connection refused");
    let forbidding = Tunneller::start(|_| "HTTP/1.1 403 No\r\n\r\n".to_string());
    let it = forbidding.server.address;
    failing(it, &url, "proxy-refused", "scenario", "refused a tunnel");
    let open = Tunneller::open();
    let behind = format!("http://127.0.0.1:{}/", nobody.port());
    failing(open.server.address, &behind, "proxy-failed", "network", "it returned 502");
    let closing = Faulty::start(|mut peer| assert!(peer.hears()));
    failing(closing.address, &url, "proxy-failed", "network", "closed");
    let babbling = Faulty::says("SSH-2.0-OpenSSH\r\n");
    failing(babbling.address, &url, "proxy-failed", "network", "SSH-2.0");
    let endless = Faulty::start(|mut peer| {
        peer.hears();
        while peer.says(&[b'x'; 1000]) {}
    });
    failing(endless.address, &url, "proxy-failed", "network", "proxy");
    let silent = Faulty::start(|mut peer| while peer.hears() {});
    failing(silent.address, &url, "proxy-failed", "network", "no response from the proxy");
    assert_eq!(target.accepted(), 0);
}

#[test]
fn a_list_of_targets_judges_the_proxy_and_the_target() {
    let (proxy, target) = (Tunneller::open(), Scribe::start());
    let port = target.target().rsplit(':').next().expect("a port").to_string();
    let url = format!("http://throng.test:{port}/");
    let bench = |list: &str| {
        bench(proxy.server.address, &url, "-n 4 -c 1").env("THRONG_TARGETS", list).run()
    };
    bench("127.0.0.0/8").exits(2).says(&["target-not-allowed", "`throng.test`"]);
    bench("throng.test").exits(2).says(&["target-not-allowed", "`127.0.0.1`"]);
    assert_eq!((proxy.server.accepted(), target.accepted()), (0, 0));
    bench("127.0.0.1 throng.test").succeeds(4);
}

/// Of Debian's package `tinyproxy-bin`.
struct Tinyproxy {
    _child: Child,
    _home: TempDir,
    address: SocketAddr,
}

impl Tinyproxy {
    fn start(more: &str) -> Tinyproxy {
        let program = program("tinyproxy", "tinyproxy-bin");
        let (home, port) = (tempfile::tempdir().expect("a temporary folder"), free_port());
        let file = home.path().join("it.conf");
        let log = home.path().join("it.log");
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nMaxClients 100\nTimeout 60\nLogFile \"{}\"\n{more}\n",
            log.display()
        );
        std::fs::write(&file, text).expect("a configuration");
        let mut command = Command::new(program);
        command.arg("-d").arg("-c").arg(&file);
        let child = Child::start(command);
        let address: SocketAddr = format!("127.0.0.1:{port}").parse().expect("an address");
        child.until("tinyproxy to listen", || TcpStream::connect(address).is_ok());
        Tinyproxy { _child: child, _home: home, address }
    }
}

#[test]
fn tinyproxy_carries_requests() {
    let (proxy, nginx) = (Tinyproxy::start(""), Nginx::start("", ""));
    let line = "-n 100 -c 5 --expect-text front";
    let run = bench(proxy.address, &nginx.url("/"), line).run().succeeds(100);
    run.has("/connections/opened", 5);
    let connections: std::collections::BTreeSet<String> =
        nginx.log(100).into_iter().map(|words| words[0].clone()).collect();
    assert_eq!(connections.len(), 5);
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    let run = bench(proxy.address, &nobody, "-n 4 -c 1").run().exits(4);
    run.fails("proxy-failed", "network", Some(4));
}

#[test]
fn tinyproxy_requires_authentication_and_forbids_ports() {
    let nginx = Nginx::start("", "");
    let proxy = Tinyproxy::start("BasicAuth ann word");
    let bench = |proxy: &Tinyproxy, line: &str| {
        bench(proxy.address, &nginx.url("/"), &format!("-n 4 -c 1 {line}")).run()
    };
    bench(&proxy, "").exits(4).fails("proxy-refused", "scenario", Some(4));
    bench(&proxy, "-U ann:other").exits(4).fails("proxy-refused", "scenario", Some(4));
    bench(&proxy, "-U ann:word").succeeds(4);
    let strict = Tinyproxy::start("ConnectPort 443");
    bench(&strict, "").exits(4).fails("proxy-refused", "scenario", Some(4));
}
