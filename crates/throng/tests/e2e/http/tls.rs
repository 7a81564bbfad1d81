//! `throng bench` over TLS: nginx, openssl and node hold the other end.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::faulty::Faulty;
use crate::run::{Run, throng};
use crate::servers::{Nginx, Node, Target, openssl, openssl_server};

/// Certificates that openssl has made.
pub(crate) struct Papers {
    folder: TempDir,
}

const NEW: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";

impl Papers {
    /// `self.pem` as most people make one: one command, signed by itself.
    pub(crate) fn own() -> Papers {
        let papers = Papers { folder: tempfile::tempdir().expect("a temporary folder") };
        let names = "-subj /CN=throng.test -addext \
                     subjectAltName=DNS:throng.test,DNS:localhost,IP:127.0.0.1";
        papers.openssl(&format!("req -x509 {NEW} -keyout self.key -out self.pem {names}"));
        papers
    }

    /// Also `ca.pem`, and of it `server.pem` and `client.pem`.
    pub(crate) fn signed() -> Papers {
        let papers = Papers::own();
        papers.openssl(&format!("req -x509 {NEW} -keyout ca.key -out ca.pem -subj /CN=authority"));
        let names = "subjectAltName=DNS:throng.test,IP:127.0.0.1";
        std::fs::write(papers.path("names"), names).expect("a file");
        for name in ["server", "client"] {
            papers
                .openssl(&format!("req {NEW} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
            papers.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                 -extfile names -out {name}.pem"
            ));
        }
        papers
    }

    fn openssl(&self, line: &str) {
        openssl(self.folder.path(), line);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn words(&self, flag: &str, name: &str) -> String {
        format!("{flag} {}", self.path(name).display())
    }

    pub(crate) fn nginx(&self, name: &str, more: &str) -> Nginx {
        let folder = self.folder.path().display();
        Nginx::start(
            "ssl",
            &format!(
                "ssl_certificate {folder}/{name}.pem; ssl_certificate_key {folder}/{name}.key; {more}"
            ),
        )
    }
}

fn bench(url: &str, line: &str) -> Run {
    throng(&format!("bench {url} -n 40 -c 4 {line} --json")).run()
}

/// So few, that users who wait ever longer before they try again have tried them all before the
/// run gives up a target that nobody reaches.
fn refused(url: &str, line: &str) {
    let run = throng(&format!("bench {url} -n 12 -c 4 {line} --json")).run().exits(4);
    run.fails("certificate-refused", "scenario", Some(12));
}

fn url(nginx: &Nginx) -> String {
    format!("https://127.0.0.1:{}/", nginx.port)
}

#[test]
fn a_self_signed_certificate_is_refused() {
    let papers = Papers::own();
    let nginx = papers.nginx("self", "");
    let run = bench(&url(&nginx), "--insecure").succeeds(40);
    let stages = run.json()["stages"].to_string();
    run.check(stages.contains("\"tls\""), "there is no stage of TLS");
    refused(&url(&nginx), "");
}

#[test]
fn a_self_signed_certificate_can_be_trusted() {
    let papers = Papers::own();
    let nginx = papers.nginx("self", "");
    bench(&url(&nginx), &papers.words("--cacert", "self.pem")).succeeds(40);
}

#[test]
fn a_certificate_of_an_authority() {
    let papers = Papers::signed();
    let nginx = papers.nginx("server", "");
    let trusted = papers.words("--cacert", "ca.pem");
    bench(&url(&nginx), &trusted).succeeds(40);
    refused(&url(&nginx), "");
    let line = format!("{trusted} --no-keepalive --resume");
    bench(&url(&nginx), &line).succeeds(40).has("/connections/opened", 40);
    let localhost = format!("https://localhost:{}/", nginx.port);
    refused(&localhost, &format!("{trusted} -4"));
    bench(&localhost, &format!("{trusted} -4 --server-name throng.test")).succeeds(40);
}

#[test]
fn a_client_shows_its_certificate() {
    let papers = Papers::signed();
    let ca = papers.path("ca.pem").display().to_string();
    let nginx =
        papers.nginx("server", &format!("ssl_client_certificate {ca}; ssl_verify_client on;"));
    let trusted = papers.words("--cacert", "ca.pem");
    let own = [papers.words("--cert", "client.pem"), papers.words("--key", "client.key")].join(" ");
    bench(&url(&nginx), &format!("{trusted} {own}")).succeeds(40);
    // nginx answers whoever has none.
    let run = bench(&url(&nginx), &trusted);
    run.fails("status-unexpected", "target or scenario", Some(40));
    run.has("/total/codes/400", 40);
    let run = bench(&url(&nginx), &papers.words("--cert", "client.pem")).exits(2);
    run.says(&["--key"]);
    let wrong = [papers.words("--cert", "client.pem"), papers.words("--key", "ca.key")].join(" ");
    bench(&url(&nginx), &format!("{trusted} {wrong}")).exits(2).says(&["nothing was sent"]);
    bench(&url(&nginx), "--cacert missing.pem").exits(2).says(&["missing.pem"]);
}

#[test]
fn insecure_accepts_any_certificate() {
    let papers = Papers::own();
    let names = "-subj /CN=old.test -nodes -days 2";
    papers.openssl(&format!("req -x509 -newkey rsa:1024 {names} -keyout short.key -out short.pem"));
    // An extension that nobody knows, and that has to be understood.
    let unknown = "-addext 1.2.3.4.5=critical,ASN1:UTF8String:x";
    papers.openssl(&format!("req -x509 {NEW} -subj /CN=a {unknown} -keyout odd.key -out odd.pem"));
    // Version 1: no extensions at all.
    papers.openssl(&format!("req {NEW} -subj /CN=first -keyout first.key -out first.csr"));
    papers.openssl("x509 -req -in first.csr -signkey first.key -days 2 -out first.pem");
    for name in ["short", "odd", "first"] {
        for version in ["TLSv1.2", "TLSv1.3"] {
            let weak = "ssl_ciphers DEFAULT:@SECLEVEL=0;";
            let nginx = papers.nginx(name, &format!("ssl_protocols {version}; {weak}"));
            bench(&url(&nginx), "--insecure").succeeds(40);
        }
    }
}

#[test]
fn a_client_certificate_may_be_old_and_in_one_file_with_its_key() {
    let papers = Papers::signed();
    papers.openssl(
        "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out v1.pem",
    );
    let both = ["client.key", "v1.pem"].map(|name| std::fs::read(papers.path(name)).expect("PEM"));
    std::fs::write(papers.path("both.pem"), both.concat()).expect("a file");
    let ca = papers.path("ca.pem").display().to_string();
    let verify = format!("ssl_client_certificate {ca}; ssl_verify_client on;");
    let nginx = papers.nginx("server", &verify);
    let trusted = papers.words("--cacert", "ca.pem");
    let own = papers.words("--cert", "both.pem");
    bench(&url(&nginx), &format!("{trusted} {own}")).succeeds(40);
    // With the password of a key that has none, as curl takes it.
    bench(&url(&nginx), &format!("{trusted} {own}:S3cretWord")).succeeds(40);
    papers.openssl("pkey -in client.key -aes256 -passout pass:S3cretWord -out locked.key");
    let locked = [papers.words("--cert", "client.pem"), papers.words("--key", "locked.key")];
    let run = bench(&url(&nginx), &format!("{trusted} {}", locked.join(" "))).exits(2);
    run.says(&["locked.key is encrypted", "openssl pkey"]);
    let text = format!(
        "curl {} -E {}:S3cretWord --pass S3cretWord -u me:S3cretWord --nonsense",
        url(&nginx),
        papers.path("client.pem").display()
    );
    let run = throng("bench --curl a.sh -n 1").file("a.sh", text).run().exits(2);
    run.says(&["--pass", "without a password"]);
    run.check(!run.err.contains("S3cretWord"), "a password is shown");
}

#[test]
fn the_requested_server_name_is_sent() {
    let papers = Papers::own();
    let nginx = papers.nginx("self", "location = /name { return 200 \"name=$ssl_server_name.\"; }");
    let at = format!("https://127.0.0.1:{}/name --insecure", nginx.port);
    bench(&at, "--server-name throng.test --expect-text name=throng.test.").succeeds(40);
    let at = format!("https://localhost:{}/name -4 --insecure", nginx.port);
    bench(&at, "--expect-text name=localhost.").succeeds(40);
}

#[test]
fn openssl_is_loaded() {
    let papers = Papers::own();
    let line = "s_server -accept 127.0.0.1:0 -cert self.pem -key self.key -www";
    for version in ["-tls1_2", "-tls1_3"] {
        let (_server, address) = openssl_server(papers.folder.path(), &format!("{line} {version}"));
        let run = throng(&format!("bench https://{address}/ -n 20 -c 1 --insecure --json")).run();
        run.succeeds(20);
    }
}

#[test]
fn a_server_without_tls_fails_the_handshake() {
    let nginx = Nginx::start("", "");
    let run = bench(&url(&nginx), "--insecure").exits(4);
    run.fails("wrong-scheme", "scenario", None);
    run.says(&["this port speaks plain HTTP"]);
    let ssh = Faulty::says("SSH-2.0-OpenSSH_9.2\r\n");
    let run = bench(&ssh.url("https"), "--insecure").exits(4);
    run.fails("wrong-scheme", "scenario", None);
    run.says(&["sent `SSH-2.0"]);
    let closes = Faulty::says("");
    bench(&closes.url("https"), "--insecure").fails("tls-failed", "target", None);
}

#[test]
fn plain_http_to_a_tls_port_is_reported() {
    let target = Target::start("http --tls");
    let run = bench(&target.http("/"), "").exits(4);
    run.fails("wrong-scheme", "scenario", None);
    run.says(&["this port speaks TLS"]);
}

/// With TLS 1.3 a server can ask for it only when the handshake is over for the client.
#[test]
fn a_missing_client_certificate_is_reported() {
    let papers = Papers::signed();
    let line = "s_server -accept 127.0.0.1:0 -cert server.pem -key server.key -CAfile ca.pem -www";
    let line = format!("{line} -Verify 1 -verify_return_error -tls1_3");
    let (_server, address) = openssl_server(papers.folder.path(), &line);
    let run = throng(&format!("bench https://{address}/ -n 4 -c 1 --insecure --json")).run();
    run.exits(4).fails("client-certificate", "scenario", Some(4));
}

#[test]
fn raw_bytes_go_over_tls() {
    let papers = Papers::own();
    let nginx = papers.nginx("self", "");
    let line = format!("bench tls://127.0.0.1:{} -n 20 -c 2 --insecure --json", nginx.port);
    let request = "--body=HEAD / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n";
    throng(&line).arg(request).arg("--delimiter=\\r\\n\\r\\n").run().succeeds(20);
}

const SECURE: &str = "
const fs = require('fs'), https = require('https'), { WebSocketServer } = require('ws');
const [key, cert] = process.argv.slice(2).map((path) => fs.readFileSync(path));
const server = https.createServer({ key, cert });
new WebSocketServer({ server }).on('connection', (socket) => {
  socket.on('message', (data, binary) => socket.send(data, { binary }));
  socket.on('close', (code) => console.log('close ' + code));
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

#[test]
fn web_sockets_go_over_tls() {
    let papers = Papers::own();
    let (key, certificate) = (papers.path("self.key"), papers.path("self.pem"));
    let files: [&Path; 2] = [&key, &certificate];
    let node = Node::start(SECURE, &files);
    bench(&node.url("wss"), "--insecure --body hi --expect-text hi").succeeds(40);
    node.tells("close 1000", 4);
    // How often users tried until the run was given up is chance.
    let refused = bench(&node.url("wss"), "--body hi").exits(4);
    refused.fails("certificate-refused", "scenario", None);
}

/// Says 200 to the right body, and 400 to any other.
const COMPARES: &str = "
const fs = require('fs'), http = require('http'), https = require('https');
const files = process.argv.slice(2).map((path) => fs.readFileSync(path));
const right = Buffer.from(Array.from({ length: 1e6 }, (_, i) => (i % 251) ^ (i / 1e3 & 255)));
const hear = (request, answer) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    answer.statusCode = Buffer.concat(parts).equals(right) ? 200 : 400;
    answer.end();
  });
};
const [key, cert] = files;
const server = key ? https.createServer({ key, cert }, hear) : http.createServer(hear);
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

#[test]
fn long_bodies_are_unchanged_with_and_without_tls() {
    let papers = Papers::own();
    let (key, certificate) = (papers.path("self.key"), papers.path("self.pem"));
    let files: [&Path; 2] = [&key, &certificate];
    let body: Vec<u8> = (0..1_000_000).map(|i| ((i % 251) ^ ((i / 1000) & 255)) as u8).collect();
    for (scheme, files) in [("http", &[][..]), ("https", &files)] {
        let node = Node::start(COMPARES, files);
        let scenario = format!(
            "target: {}\ntls: {{verify: false}}\nload: [{{iterations: 20, users: 4}}]\nsessions:\n  \
             up:\n    steps:\n    - {{http: POST /same, body: {{file: body}}}}\n    - http: PUT \
             /own\n      headers: {{X-Number: '${{iteration}}'}}\n      body: {{file: body}}\n",
            node.url(scheme)
        );
        let run = throng("run it.yaml --json").file("it.yaml", scenario).file("body", &body).run();
        run.succeeds(40);
    }
}

#[test]
fn failed_negotiation_names_the_offers_of_both_ends() {
    let alert = |code: u8| vec![21, 3, 1, 0, 2, 2, code];
    // A ServerHello of TLS 1.1 (RFC 4346, 7.4.1.3).
    let mut hello = vec![22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 47, 0]);
    for (answer, version, want) in [
        (alert(70), "1.1", "throng offers TLS 1.2 and 1.3, but the target supports neither"),
        (hello, "1.1", "throng offers TLS 1.2 and 1.3, but the target chose TLS 1.1"),
        (
            alert(40),
            "1.1",
            "throng offers TLS 1.2 and 1.3 with AES-GCM and ChaCha20, but the target supports \
             none of these",
        ),
        (alert(120), "2", "throng offers h2 (ALPN), but the target supports none"),
        (alert(120), "auto", "throng offers h2, http/1.1 (ALPN)"),
    ] {
        let faulty = Faulty::says(answer);
        let line = format!("bench {} -n 1 -c 1 --insecure --details", faulty.url("https"));
        let run = throng(&format!("{line} --http-version {version}")).run();
        run.says(&["tls-failed", want]);
    }
}
