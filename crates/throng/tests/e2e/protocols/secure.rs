//! TLS that begins on an open connection (STARTTLS): against real servers of SMTP, IMAP and XMPP
//! whose books are compared, and against targets that agree to TLS and then do something else.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::faulty::{Faulty, Peer};
use crate::http::tls::Papers;
use crate::run::{Child, Run};
use crate::scenarios::{one_session, running, times};
use crate::servers::{free_port, program};

const SERVER: &str = "tests/e2e/protocols/smtp_server.py";

struct Smtp {
    child: Child,
    address: String,
}

impl Smtp {
    fn start(papers: &Papers) -> Smtp {
        // Debian has aiosmtpd for its own Python.
        let mut command = Command::new("/usr/bin/python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(SERVER));
        command.args([papers.path("self.pem"), papers.path("self.key")]);
        let child = Child::start(command);
        let address = format!("127.0.0.1:{}", child.line("port "));
        Smtp { child, address }
    }

    /// What it has counted.
    fn books(self) -> Value {
        self.child.signal(libc::SIGTERM);
        let run = self.child.wait().exits(0);
        let books = run.out.lines().find_map(|line| line.strip_prefix("books "));
        serde_json::from_str(books.expect("its books")).expect("JSON")
    }
}

const MAIL: &str = r#"- connect
- {expect: ready, check: {field: {text: {contains: SMTP}}}}
- request: {ehlo: {name: throng.test}}
  expect: ok
  check: {field: {"lines[0].text": present}}
  name: ehlo
- {request: starttls, expect: ready}
- secure
- request: {ehlo: {name: throng.test}}
  expect: ok
  name: ehlo again
- request: {auth_plain: {login: '${base64("\u0000ann\u0000secret")}'}}
  expect: authenticated
  name: login
- {request: {mail_from: {address: ann@throng.test}}, expect: ok}
- {request: {rcpt_to: {address: "bob-${user.id}@throng.test"}}, expect: ok}
- {request: data, expect: go_ahead}
- request: {mail: {from: ann@throng.test, rest: "Subject: ${iteration}\r\n\r\nHello"}}
  expect: {ok: {text: kept}}
  name: mail
- {request: quit, expect: closing}
- disconnect"#;

/// `FILE` is the certificate.
fn mail(papers: &Papers, target: &str, tls: &str) -> Run {
    let tls = tls.replace("FILE", &papers.path("self.pem").display().to_string());
    let head = format!("protocol: throng:smtp\ntls: {tls}\n{}", times(20, 4));
    running(&one_session(&format!("tcp://{target}"), &head, MAIL)).run()
}

#[test]
fn mail_is_sent_behind_starttls_and_the_servers_books_agree() {
    let papers = Papers::own();
    let server = Smtp::start(&papers);
    let run = mail(&papers, &server.address, "{ca: FILE}").exits(0);
    run.has("/total/failed", 0);
    for name in ["secure", "ehlo", "ehlo again", "login", "mail", "quit"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    let secure = run.row("steps", "secure");
    run.check(secure["kind"] == "secure" && secure["begun"] == 20, "the row of secure");
    run.has("/messages/broken", 0);
    let books = server.books();
    for (name, wanted) in [("tls", 20), ("logins", 20), ("mails", 20), ("refused", 0)] {
        assert_eq!(books[name], wanted, "{books}");
    }
}

#[test]
fn a_certificate_that_is_not_trusted_ends_the_connection() {
    let papers = Papers::own();
    let server = Smtp::start(&papers);
    let run = mail(&papers, &server.address, "{ca: FILE, server_name: other.test}").exits(0);
    run.fails("certificate-refused", "scenario", None);
    let secure = run.row("steps", "secure");
    run.check(secure["begun"] == secure["failed"] && secure["ok"] == 0, "none is secured");
    assert_eq!(server.books()["mails"], 0);
}

/// A target that says `agrees` to the first line, and then does what `then` does.
fn agrees(agrees: &'static [u8], then: impl Fn(Peer) + Send + Sync + 'static) -> Faulty {
    Faulty::start(move |mut peer| {
        peer.hears();
        peer.says(agrees);
        then(peer);
    })
}

fn starttls(target: &Faulty, protocol: &str, request: &str) -> Run {
    let load = times(3, 1);
    let steps = format!("- connect\n{request}\n- {{secure: , timeout: 20s}}\n- disconnect");
    let head = format!("{protocol}{load}");
    running(&one_session(&format!("tcp://{}", target.address), &head, &steps)).run()
}

const LINE: &str = "- {request: {text: \"STARTTLS\\r\\n\"}, expect: {delimiter: \"\\r\\n\"}}";
const DECLARED: (&str, &str) = ("protocol: throng:smtp\n", "- {request: starttls, expect: ready}");

#[test]
fn bytes_behind_the_reply_that_agrees_are_not_taken_for_an_answer() {
    for (protocol, request) in [("", LINE), DECLARED] {
        for behind in [&b"220 go\r\n250 in\r\n"[..], b"220 go\r\n25"] {
            let target = agrees(behind, |mut peer| {
                peer.hears();
            });
            let run = starttls(&target, protocol, request);
            run.fails("malformed", "target", None);
            run.says(&["in plain text after the reply that agrees to TLS"]);
            run.check(run.row("steps", "secure")["ok"] == 0, "it is not secured");
        }
    }
}

#[test]
fn a_target_that_agrees_to_tls_and_does_not_speak_it_is_named() {
    let plain = agrees(b"220 go\r\n", |mut peer| {
        peer.hears();
        peer.says(b"250 what?\r\n");
        peer.hears();
    });
    let run = starttls(&plain, DECLARED.0, DECLARED.1);
    run.fails("tls-failed", "target", None);
    run.says(&["the target sent `250 what?", "` in plain text instead of TLS"]);
    let gone = agrees(b"220 go\r\n", |mut peer| {
        peer.hears();
        peer.closes();
    });
    let run = starttls(&gone, "", LINE);
    run.fails("tls-failed", "target", None);
    // A fatal alert: handshake_failure (RFC 8446, 6.2).
    let alert = agrees(b"220 go\r\n", |mut peer| {
        peer.hears();
        peer.says(&[21, 3, 3, 0, 2, 2, 40]);
        peer.hears();
    });
    let run = starttls(&alert, "", LINE);
    run.fails("tls-failed", "target", None);
    let silent = agrees(b"220 go\r\n", |mut peer| while peer.hears() {});
    let steps = format!("- connect\n{LINE}\n- {{secure: , timeout: 200ms}}");
    let target = format!("tcp://{}", silent.address);
    let run = running(&one_session(&target, &times(1, 1), &steps)).run();
    run.fails("timeout", "target", Some(1));
    run.says(&["the TLS handshake did not complete within "]);
}

#[test]
fn a_connection_that_is_secure_is_not_secured_again() {
    let papers = Papers::own();
    let server = Smtp::start(&papers);
    let steps = "- connect\n- {expect: ready}\n- {request: {ehlo: {name: a}}, expect: ok}\n\
                 - {request: starttls, expect: ready}\n- secure\n- {secure: , name: again}";
    let head = format!("protocol: throng:smtp\ntls: {{verify: false}}\n{}", times(1, 1));
    let run = running(&one_session(&format!("tcp://{}", server.address), &head, steps)).run();
    run.fails("scenario-failed", "scenario", Some(1));
    run.check(run.row("steps", "secure")["ok"] == 1, "the first one");
    run.check(run.row("steps", "again")["failed"] == 1, "the second one");
}

const FOLDERS: &str = r#"- connect
- expect: untagged
- {request: starttls, expect: ok}
- secure
- request: {login: {user: "user-${user.id}", password: secret}}
  expect: ok
  name: login
- {request: {create: {folder: "box-${iteration}"}}, expect: ok}
- {request: {select: {folder: INBOX}}, expect: ok}
- {request: {status: {folder: INBOX}}, expect: ok}
- {request: idle, expect: idling}
- {request: done, expect: ok}
- {request: {search: {arguments: ALL}}, expect: ok}
- {request: {select: {folder: nowhere}}, expect: failed, name: nowhere}
- {request: logout, expect: ok}
- disconnect"#;

/// Who dovecot is instead of root.
const NOBODY: u32 = 65_534;

/// Dovecot, whose users all have the same password.
struct Dovecot {
    child: Child,
    port: u16,
    home: tempfile::TempDir,
}

impl Dovecot {
    fn start(papers: &Papers) -> Dovecot {
        let home = tempfile::tempdir().expect("a temporary folder");
        let place = home.path().display();
        for name in ["self.pem", "self.key"] {
            std::fs::copy(papers.path(name), home.path().join(name)).expect("a file");
            let _ = chown(home.path().join(name), Some(NOBODY), Some(NOBODY));
        }
        // Only root may, and only root has to.
        let is_root = chown(home.path(), Some(NOBODY), Some(NOBODY)).is_ok();
        let of = |flag: &str| {
            let output = Command::new("id").args(["-n", flag]).output().expect("id");
            String::from_utf8_lossy(&output.stdout).trim().to_string()
        };
        let (user, group) = match is_root {
            true => ("nobody".to_string(), "nogroup".to_string()),
            false => (of("-u"), of("-g")),
        };
        let port = free_port();
        let mut text = format!(
            "base_dir = {place}/run\nlog_path = /dev/stderr\nprotocols = imap\n\
             listen = 127.0.0.1\nmail_location = maildir:~/mail\nssl = required\n\
             ssl_cert = <{place}/self.pem\nssl_key = <{place}/self.key\n\
             first_valid_uid = 0\nfirst_valid_gid = 0\nmail_max_userip_connections = 0\n\
             default_internal_user = {user}\ndefault_internal_group = {group}\n\
             default_login_user = {user}\npassdb {{\n driver = static\n \
             args = password=secret\n}}\nuserdb {{\n driver = static\n \
             args = uid={user} gid={group} home={place}/home/%u\n}}\n"
        );
        text.push_str("service anvil {\n chroot =\n}\n");
        write!(
            text,
            "service imap-login {{\n chroot =\n inet_listener imap {{\n  port = {port}\n }}\n \
             inet_listener imaps {{\n  port = 0\n }}\n}}\n"
        )
        .expect("a text");
        std::fs::write(home.path().join("dovecot.conf"), text).expect("a file");
        let mut command = Command::new(program("dovecot", "dovecot-imapd"));
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.args(["-F", "-c"]).arg(home.path().join("dovecot.conf"));
        let child = Child::start(command);
        child.until("dovecot to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Dovecot { child, port, home }
    }
}

#[test]
fn folders_are_read_behind_starttls_and_dovecot_counts_the_same_logins() {
    let papers = Papers::own();
    let dovecot = Dovecot::start(&papers);
    let file = papers.path("self.pem").display().to_string();
    let head = format!("protocol: throng:imap\ntls: {{ca: {file}}}\n{}", times(20, 4));
    let text = one_session(&format!("tcp://127.0.0.1:{}", dovecot.port), &head, FOLDERS);
    let run = running(&text).run().exits(0);
    run.has("/total/failed", 0);
    for name in ["secure", "login", "create", "idle", "done", "nowhere", "logout"] {
        run.check(run.row("steps", name)["ok"] == 20, name);
    }
    run.has("/messages/broken", 0);
    let Dovecot { child, home, .. } = dovecot;
    let told = child.hears("all logouts", |_, err| {
        let count = |word: &str| err.lines().filter(|line| line.contains(word)).count();
        (count("Logged out") >= 20).then(|| (count("Login: user="), count(", TLS, ")))
    });
    assert_eq!(told, (20, 20), "{run}");
    let boxes = std::fs::read_dir(home.path().join("home")).expect("its users");
    let boxes = boxes.map(|user| {
        let folders = std::fs::read_dir(user.expect("a user").path().join("mail"));
        let names = folders.expect("folders").map(|one| one.expect("a folder").file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".box-")).count()
    });
    assert_eq!(boxes.sum::<usize>(), 20, "{run}");
    child.signal(libc::SIGTERM);
    child.wait();
}

/// XMPP as raw text (RFC 6120): STARTTLS, and a login by SCRAM-SHA-1.
const XMPP: &str = r#"- connect
- {request: {text: "${vars.stream}"}, expect: {pattern: "</stream:features>"}, name: stream}
- request: {text: "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"}
  expect: {pattern: "<proceed[^>]*>"}
  name: starttls
- secure
- request: {text: "${vars.stream}"}
  expect: {pattern: "</stream:features>"}
  check: {text: SCRAM-SHA-1}
  name: secure stream
- set: {first: "${scram.first('user-' + string(user.id), random.string(24))}"}
- request: {text: "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='SCRAM-SHA-1'>${base64(saved.first)}</auth>"}
  expect: {pattern: "</challenge>"}
  save: {challenge: {regex: ">([^<]*)</challenge>"}}
  name: auth
- set: {challenge: "${string(base64.decode(saved.challenge))}"}
- set: {last: "${base64(scram.sha1_last(saved.first, saved.challenge, 'secret'))}"}
- request: {text: "<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>${saved.last}</response>"}
  expect: {pattern: "</success>|</failure>"}
  check: {text: "${base64(scram.sha1_signature(saved.first, saved.challenge, 'secret'))}"}
  name: response
- disconnect"#;

const PROSODY: &str = r#"data_path = "HOME"
pidfile = "HOME/prosody.pid"
certificates = "HOME"
run_as_root = true
interfaces = { "127.0.0.1" }
c2s_ports = { PORT }
modules_enabled = { "saslauth", "tls" }
modules_disabled = { "s2s" }
c2s_require_encryption = true
authentication = "internal_hashed"
log = { info = "*stdout" }
ssl = { key = "PAPERS/self.key"; certificate = "PAPERS/self.pem" }
VirtualHost "throng.test"
"#;

#[test]
fn users_of_xmpp_log_in_by_scram_behind_starttls_as_prosody_logs() {
    let papers = Papers::own();
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = papers.path("self.pem").parent().expect("a folder").display().to_string();
    let port = free_port();
    let text = PROSODY.replace("PAPERS", &folder).replace("PORT", &port.to_string());
    let config = home.path().join("prosody.cfg.lua");
    std::fs::write(&config, text.replace("HOME", &home.path().display().to_string()))
        .expect("a file");
    for user in 1..=2 {
        let mut command = Command::new(program("prosodyctl", "prosody"));
        command.arg("--config").arg(&config).arg("register");
        command.args([&format!("user-{user}"), "throng.test", "secret"]);
        Child::start(command).wait().exits(0);
    }
    let mut command = Command::new(program("prosody", "prosody"));
    command.arg("--config").arg(&config).arg("-F");
    let child = Child::start(command);
    child.until("prosody to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let stream = "<stream:stream to='throng.test' version='1.0' xmlns='jabber:client' \
                  xmlns:stream='http://etherx.jabber.org/streams'>";
    let load = times(4, 2);
    let head = format!("tls: {{verify: false}}\nvars: {{stream: \"{stream}\"}}\n{load}");
    let text = one_session(&format!("tcp://127.0.0.1:{port}"), &head, XMPP);
    let run = running(&text).run();
    run.has("/total/failed", 0);
    for name in ["secure", "auth", "response"] {
        run.check(run.row("steps", name)["ok"] == 4, name);
    }
    child.hears("all logins", |out, _| {
        (out.lines().filter(|line| line.contains("Authenticated as")).count() == 4).then_some(())
    });
    child.signal(libc::SIGTERM);
    child.wait();
}
