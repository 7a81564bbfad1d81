//! Statements on a real MariaDB: what a run counts is what the server has counted. What MariaDB
//! does not have, such as the login of MySQL 8, is tried on servers with a script.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use super::{
    GIVES_UP, ONE_USER, balances, certificate_and_key, failed, failure, home, ok, unprivileged,
};
use crate::http::tls::Papers;
use crate::run::{Child, Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::servers::free_port;

/// Small, and kept when the process is killed.
const SETTINGS: [&str; 3] =
    ["--no-defaults", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=2"];

/// A server with a folder of its own, in which its Unix socket is, too.
struct MariaDb {
    child: Child,
    home: TempDir,
    port: u16,
}

impl MariaDb {
    #[track_caller]
    fn start() -> MariaDb {
        MariaDb::start_with(&[])
    }

    /// With further settings, as `--max-connections=5`.
    #[track_caller]
    fn start_with(settings: &[&str]) -> MariaDb {
        let home = home();
        let mut command = unprivileged("mariadb-install-db");
        command.args(SETTINGS);
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        command.arg("--skip-name-resolve").args(folders(home.path()));
        Child::start(command).wait().exits(0);
        let port = free_port();
        let child = MariaDb::serve(home.path(), port, settings);
        let server = MariaDb { child, home, port };
        server.value("create user ann identified by 'word'");
        server.value("create database shop; grant all on shop.* to ann");
        server
    }

    fn serve(home: &Path, port: u16, settings: &[&str]) -> Child {
        let mut command = unprivileged("/usr/sbin/mariadbd");
        command.args(SETTINGS).args(folders(home)).arg(format!("--socket={}", socket(home)));
        command.args([&format!("--port={port}"), "--bind-address=127.0.0.1"]).args(settings);
        let child = Child::start(command);
        child.hears("MariaDB to accept connections", |_, err| {
            err.contains("ready for connections").then_some(())
        });
        child
    }

    /// What the client prints, without the names of columns.
    #[track_caller]
    fn value(&self, sql: &str) -> String {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "-uroot", "-N", "-B", "-S", &socket(self.home.path())]);
        command.args(["-e", sql]);
        Child::start(command).wait().exits(0).out.trim().to_string()
    }

    #[track_caller]
    fn number(&self, sql: &str) -> u64 {
        self.value(sql).parse().expect("a number")
    }

    /// How often the server has executed a command.
    fn counted(&self, command: &str) -> u64 {
        let from = "select variable_value from information_schema.global_status";
        self.number(&format!("{from} where variable_name = 'Com_{command}'"))
    }

    fn url(&self, query: &str) -> String {
        format!("mysql://ann:word@127.0.0.1:{}/shop{query}", self.port)
    }

    fn runs(&self, load: &str, steps: &str) -> Run {
        running(&one_session(&self.url(""), load, steps)).run()
    }
}

/// A server removes the temporary files of others from a folder that it shares.
fn folders(home: &Path) -> [String; 2] {
    let data = home.join("data");
    [format!("--datadir={}", data.display()), format!("--tmpdir={}", home.display())]
}

fn socket(home: &Path) -> String {
    home.join("mysql.sock").display().to_string()
}

#[test]
fn the_books_of_mariadb_are_those_of_a_run() {
    let server = MariaDb::start();
    server.value(
        "create table shop.orders (id bigint primary key auto_increment, buyer int, note \
         varchar(50), paid bool, price decimal(6,2), at datetime(3) default '2026-11-28 13:11:09.25')",
    );
    let names = ["select", "insert", "update", "stmt_prepare", "stmt_execute", "stmt_close"];
    let before = names.map(|name| server.counted(name));
    let steps = "\
- sql: insert into orders (buyer, note, paid, price) values (?, ?, ?, ?)
  name: insert
  with: [\"${user.id}\", \"it's ${user.id}\", true, 7.5]
  check: {rows: 1, affected: 1, insert_id: \"> 0\"}
  save: {made: insert_id}
- sql: select *, null as nothing, 0.1e0 as tenth from orders where id = last_insert_id() and buyer = ?
  name: select
  with: [\"${user.id}\"]
  check:
    rows: 1
    column.id: \"${saved.made}\"
    column: {buyer: \"${user.id}\", note: {contains: it's}, paid: 1, price: '7.50', tenth: 0.1}
    column.at: '2026-11-28 13:11:09.250'
    column.nothing: null
  save: {id: column.id}
- sql: begin; update orders set paid = false where id = ${saved.id}; commit
  name: several
  check: {rows: 1}
- {sql: 'select * from orders where note = ?', with: [null], prepare: false, name: none, check: {rows: 0, column.id: absent}}
- {sql: select id from orders limit 2, name: text, check: {rows: <= 2, column.id: present}}";
    let run = server.runs(&times(200, 8), steps).exits(0);
    for row in ["insert", "select", "several", "none", "text"] {
        run.check(ok(&run, row) == 200, row);
    }
    run.within("/connections/opened", 1.0, 8.0);
    let opened = run.json()["connections"]["opened"].as_u64().expect("a number");
    let after = names.map(|name| server.counted(name));
    // Each count is a `select` of its own.
    let reads = 6;
    let counted: Vec<u64> =
        after.iter().zip(before).map(|(after, before)| after - before).collect();
    let wanted = [600 + reads, 200, 200, 2 * opened + 200, 600];
    run.check(counted[..5] == wanted, &format!("{counted:?} is {wanted:?}"));
    run.check(counted[5] >= 200, "statements that are not kept are closed");
    assert_eq!(server.number("select count(*) from shop.orders where not paid"), 200, "{run}");
    server.child.until("the users to leave", || {
        server.number("select count(*) from information_schema.processlist where user = 'ann'") == 0
    });
}

#[test]
fn only_the_right_password_logs_in_to_mariadb() {
    let server = MariaDb::start();
    let steps = "- {sql: select database() as place, check: {column.place: shop}}";
    server.runs(&times(4, 2), steps).exits(0);
    let url = server.url("").replace(":word@", ":wrong@");
    let run = running(&one_session(&url, &times(4, 2), steps)).run();
    assert_eq!(failure(&run), ("sql-request".into(), "scenario".into(), "1045".into()));
    // Without a database, and as the same by its other name.
    let url = server.url("").replace("/shop", "").replace("mysql://", "mariadb://");
    let steps = "- {sql: select database() as place, check: {column.place: null}}";
    running(&one_session(&url, &times(4, 2), steps)).run().exits(0);
    let url = format!("mysql://ann:word@/shop?socket={}", socket(server.home.path()));
    let run = throng("bench --sql").arg("select 7").arg(url).arg("-n20").arg("--json").run();
    run.exits(0).has("/total/ok", 20);
}

#[test]
fn tls_is_asked_for_behind_the_greeting() {
    let papers = Papers::own();
    let [certificate, key] = certificate_and_key(&papers);
    let key = format!("--ssl-key={key}");
    let server = MariaDb::start_with(&[&format!("--ssl-cert={certificate}"), &key]);
    let sql = "select variable_value as v from information_schema.session_status where \
               variable_name = 'ssl_version'";
    let head = format!("tls: {{ca: {}}}\n{}", certificate, times(4, 2));
    for query in ["?ssl-mode=REQUIRED", "?ssl-mode=preferred"] {
        let steps = format!("- {{sql: \"{sql}\", check: {{column.v: {{contains: TLS}}}}}}");
        running(&one_session(&server.url(query), &head, &steps)).run().exits(0);
    }
    let steps = format!("- {{sql: \"{sql}\", check: {{column.v: ''}}}}");
    let text = one_session(&server.url(""), &times(4, 2), &steps);
    running(&text).run().exits(0);
    let plain = MariaDb::start();
    running(&one_session(&plain.url("?ssl-mode=PREFERRED"), &head, &steps)).run().exits(0);
    let text = one_session(&plain.url("?ssl-mode=REQUIRED"), &head, "- sql: select 1");
    let run = running(&text).run();
    run.fails("wrong-scheme", "scenario", None);
    run.says(&["the server does not support TLS"]);
}

#[test]
fn errors_of_mariadb_are_told_by_their_numbers() {
    let server = MariaDb::start_with(&["--max-connections=4", "--innodb-lock-wait-timeout=1"]);
    server.value("create table shop.once (id int primary key); insert into shop.once values (1)");
    let of = |steps: &str| failure(&server.runs(&times(4, 2), steps));
    let told = |cause: &str, blame: &str, number: &str| (cause.into(), blame.into(), number.into());
    assert_eq!(of("- sql: selec 1"), told("sql-request", "scenario", "1064"));
    assert_eq!(of("- sql: select * from nothing"), told("sql-request", "scenario", "1146"));
    let twice = "- {sql: insert into once values (?), with: [1]}";
    assert_eq!(of(twice), told("sql-conflict", "target or scenario", "1062"));
    let local = "- sql: load data local infile '/etc/hostname' into table once";
    assert_eq!(of(local), told("sql-request", "scenario", "4166"));
    let stopped = "- sql: set statement max_statement_time=0.05 for select sleep(5) from once";
    assert_eq!(of(stopped), told("sql-server", "target", "1969"));
    for state in ["unique_violation", "1062", "23000"] {
        let steps = format!("- {{sql: insert into once values (1), check: {{sqlstate: {state}}}}}");
        server.runs(&times(4, 2), &steps).exits(0);
    }
    // Each holds the row that the other wants.
    server.value("insert into shop.once values (2)");
    let steps = "\
- {sql: begin, name: begin}
- {sql: select id from once where id = ? for update, with: [\"${user.id % 2 + 1}\"], name: first}
- {rendezvous: all, users: 2, timeout: 5s}
- {sql: select id from once where id = ? for update, with: [\"${2 - user.id % 2}\"], name: second}
- {sql: commit, name: commit}";
    let run = server.runs(&format!("defaults: {{on_error: next}}\n{}", times(2, 2)), steps);
    assert_eq!(failure(&run), told("sql-conflict", "target or scenario", "1213"));
    let many = "- {sql: select 1}\n- {rendezvous: all, users: 12, timeout: 500ms}";
    let run = server.runs(&times(12, 12), many);
    let json = run.json();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    let is_full = |it: &Value| it["example"]["detail"].to_string().contains("ERROR 1040");
    run.check(errors.iter().any(|it| is_full(it) && it["blame"] == "target"), "1040");
}

#[test]
fn an_abandoned_transaction_is_rolled_back_on_mariadb() {
    let server = MariaDb::start();
    server.value("create table shop.pairs (id int not null, half varchar(9))");
    let steps = "\
- {sql: begin, name: begin}
- {sql: \"insert into pairs values (?, 'left')\", name: left, with: [\"${iteration}\"]}
- sql: insert into pairs values (if(? % 2 = 0, null, ?), 'right')
  name: right
  with: [\"${iteration}\", \"${iteration}\"]
- {sql: commit, name: commit}";
    let head = format!("defaults: {{on_error: next}}\n{}", times(40, 4));
    let run = server.runs(&head, steps);
    assert_eq!(failure(&run).2, "1048");
    run.check(ok(&run, "begin") == 40, "each iteration begins");
    assert_eq!(ok(&run, "commit"), ok(&run, "right"), "{run}");
    let pairs = server.number("select count(*) from shop.pairs");
    assert_eq!(pairs, 2 * ok(&run, "commit"), "{run}");
}

#[test]
fn the_books_balance_when_mariadb_is_killed_in_the_middle() {
    let server = MariaDb::start();
    server.value("create table shop.marks (id bigint primary key auto_increment, user int)");
    let steps = "- {sql: insert into marks (user) values (?), with: [\"${user.id}\"], name: mark}\n\
                 - think: 5ms";
    let load = "load: [{users: 8, for: 60s}]\nabort_when: [errors > 50 over 1s]";
    let child = running(&one_session(&server.url(""), load, steps)).start();
    child.until("marks", || server.number("select count(*) from shop.marks") > 100);
    server.child.signal(libc::SIGKILL);
    let run = child.wait();
    let MariaDb { child, home, port } = server;
    child.wait();
    let child = MariaDb::serve(home.path(), port, &[]);
    let server = MariaDb { child, home, port };
    balances(&run, server.number("select count(*) from shop.marks"));
}

#[test]
fn a_lock_of_mariadb_is_released_when_its_iteration_ends() {
    let server = MariaDb::start();
    server.value("create table shop.stock (id int primary key, n int)");
    server.value("insert into shop.stock values (1, 0)");
    let child = running(&one_session(&server.url(""), ONE_USER, GIVES_UP)).start();
    // Another connection has the row while the user thinks.
    child.until("the rollback", || server.counted("rollback") == 1);
    server.value("set innodb_lock_wait_timeout = 10; update shop.stock set n = n + 10");
    child.signal(libc::SIGINT);
    let run = child.wait();
    assert_eq!(server.value("select n from shop.stock"), "10", "{run}");
    run.check(ok(&run, "begin") == 1 && ok(&run, "take") == 1, "one iteration");
    assert_eq!(failure(&run), ("sql-request".into(), "scenario".into(), "1054".into()));
    run.has("/total/begun", 3);
}

#[test]
fn an_unanswered_rollback_delays_only_its_user() {
    let port = scripted(|stream| {
        greet(stream)?;
        hear(stream)?;
        say(stream, 2, OK)?;
        // In a transaction; it says nothing to `rollback`.
        while let Some(command) = hear(stream) {
            if command != b"\x03rollback" {
                say(stream, 1, &[0, 0, 0, 3, 0, 0, 0])?;
            }
        }
        Some(())
    });
    let steps = "- {sql: begin, name: begin, timeout: 300ms}\n- think: 20ms";
    let url = format!("mysql://ann@127.0.0.1:{port}");
    let run = running(&one_session(&url, &times(4, 1), steps)).run();
    // What is sent behind it is late; the connection that follows begins anew.
    run.has("/total/ok", 2);
    assert_eq!(failed(&run, &["timeout"]), 2, "{run}");
}

/// A server that does with each connection what the script says.
fn scripted(script: impl Fn(&mut TcpStream) -> Option<()> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let script = Arc::new(script);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let script = Arc::clone(&script);
            std::thread::spawn(move || script(&mut stream));
        }
    });
    port
}

const SALT: &[u8; 20] = b"12345678abcdefghijkl";

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

fn say(stream: &mut TcpStream, sequence: u8, body: &[u8]) -> Option<()> {
    let [a, b, c, _] = u32::try_from(body.len()).ok()?.to_le_bytes();
    stream.write_all(&[&[a, b, c, sequence], body].concat()).ok()
}

fn hear(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// Says that it can do all, TLS too.
fn greet(stream: &mut TcpStream) -> Option<()> {
    let head = [&b"\x0a8.0.36\0\x07\0\0\0"[..], &SALT[..8], &[0, 0xff, 0xff, 45, 2, 0, 0xff, 0x81]];
    let tail = [&[21][..], &[0; 10], &SALT[8..], b"\0caching_sha2_password\0"];
    say(stream, 0, &[head.concat(), tail.concat()].concat())
}

#[test]
fn a_password_that_the_server_has_not_cached_is_encrypted_with_its_key() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (private, public) = (home.path().join("private.pem"), home.path().join("public.pem"));
    let openssl = |arguments: &[&str], from: &Path, to: &Path| {
        let mut command = Command::new("openssl");
        command.args(arguments).arg("-in").arg(from).arg("-out").arg(to);
        let status = command.stderr(Stdio::null()).status().expect("openssl");
        assert!(status.success(), "{arguments:?}");
    };
    let status = Command::new("openssl")
        .args(["genrsa", "-out"])
        .arg(&private)
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("openssl").success());
    openssl(&["rsa", "-pubout"], &private, &public);
    let key = std::fs::read(&public).expect("a key");
    let port = scripted(move |stream| {
        let folder = tempfile::tempdir().ok()?;
        let (sealed, opened) = (folder.path().join("sealed"), folder.path().join("opened"));
        greet(stream)?;
        hear(stream)?;
        say(stream, 2, b"\x01\x04")?;
        assert_eq!(hear(stream)?, [2]);
        say(stream, 4, &[b"\x01", &key[..]].concat())?;
        std::fs::write(&sealed, hear(stream)?).ok()?;
        let mut command = Command::new("openssl");
        command.args(["pkeyutl", "-decrypt", "-pkeyopt", "rsa_padding_mode:oaep", "-inkey"]);
        command.arg(&private).arg("-in").arg(&sealed).arg("-out").arg(&opened);
        assert!(command.status().ok()?.success());
        let hidden = std::fs::read(&opened).ok()?;
        let password: Vec<u8> = hidden.iter().zip(SALT).map(|(byte, salt)| byte ^ salt).collect();
        match &password[..] {
            b"word\0" => say(stream, 6, OK)?,
            _ => say(stream, 6, b"\xff\x15\x04#28000Access denied")?,
        }
        while let Some(command) = hear(stream) {
            say(stream, 1, if command[0] == 3 { OK } else { return None })?;
        }
        Some(())
    });
    let run = |password: &str| {
        let url = format!("mysql://ann:{password}@127.0.0.1:{port}/shop");
        running(&one_session(&url, &times(4, 2), "- sql: do 1")).run()
    };
    run("word").exits(0);
    assert_eq!(failure(&run("wrong")).2, "1045");
}

/// What comes before the rows of a result: the number of columns, a column, and their end.
const ONE_COLUMN: &[u8] =
    b"\x01\0\0\x01\x01\x17\0\0\x02\x03def\0\0\0\x01a\0\x0c\x3f\0\x0b\0\0\0\x03\
    \0\0\0\0\0\x05\0\0\x03\xfe\0\0\x02\0";

#[test]
fn servers_that_lie_about_mysql_are_named() {
    let run = |port: u16, query: &str, timeout: &str| {
        let steps = format!("- {{sql: select 1, timeout: {timeout}}}");
        let url = format!("mysql://ann@127.0.0.1:{port}{query}");
        running(&one_session(&url, &times(4, 2), &steps)).run()
    };
    let first = |bytes: &'static [u8]| {
        scripted(move |stream| {
            stream.write_all(bytes).ok()?;
            hear(stream).map(drop)
        })
    };
    let of_ssh = run(first(b"SSH-2.0-OpenSSH_9.2\r\n"), "", "10s");
    of_ssh.fails("wrong-scheme", "scenario", Some(4));
    of_ssh.says(&["does not speak MySQL"]);
    let of_x = run(first(b"\x05\0\0\0\x0b\x08\x05\x1a\0"), "", "10s");
    of_x.fails("wrong-scheme", "scenario", Some(4));
    let full = run(first(b"\x0d\0\0\0\xff\x10\x04#08004full"), "", "10s");
    full.fails("sql-server", "target", Some(4));
    for query in ["", "?ssl-mode=REQUIRED"] {
        let silent = run(first(b""), query, "300ms");
        silent.fails("timeout", "target", Some(4));
        silent.says(&["MySQL servers send first"]);
    }
    // It asks for TLS, and goes on without.
    let plain = scripted(|stream| {
        greet(stream)?;
        hear(stream)?;
        say(stream, 2, OK)?;
        hear(stream).map(drop)
    });
    let run_of_plain = run(plain, "?ssl-mode=REQUIRED", "10s");
    run_of_plain.fails("tls-failed", "target", Some(4));
    run_of_plain.says(&["in plain text instead of TLS"]);
    // It lets everybody in, answers a statement with this, and then with rows that never end.
    let liar = |answer: &'static [u8], endless: bool, closes: bool| {
        scripted(move |stream| {
            greet(stream)?;
            hear(stream)?;
            say(stream, 2, OK)?;
            while hear(stream).is_some() {
                stream.write_all(answer).ok()?;
                for sequence in (0..=u8::MAX).cycle().skip(4).take_while(|_| endless) {
                    stream.write_all(&[2, 0, 0, sequence, 1, b'1']).ok()?;
                }
                if closes {
                    return None;
                }
            }
            Some(())
        })
    };
    for (answer, endless, closes, timeout, cause) in [
        (&b"\x04\0\0\x01\xfb/ab"[..], false, false, "10s", "malformed"),
        (b"\x09\0\0\x01\xfe\xff\xff\xff\xff\0\0\0\0", false, false, "10s", "malformed"),
        (b"\x07\0\0\x02\0\0\0\x02\0\0\0", false, false, "10s", "malformed"),
        (b"\x01\0\0\x01\x01\x01", false, true, "10s", "closed-early"),
        (b"\x01\0\0\x01", false, false, "300ms", "timeout"),
        (b"", false, false, "300ms", "timeout"),
        (ONE_COLUMN, true, false, "300ms", "timeout"),
    ] {
        let run = run(liar(answer, endless, closes), "", timeout);
        run.fails(cause, "target", Some(4));
    }
}
