//! Statements on a real PostgreSQL: what a run counts is what the tables have.

mod mysql;

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::faulty::Faulty;
use crate::http::tls::Papers;
use crate::run::{Child, Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::servers::{Nginx, free_port};

/// Databases refuse root.
const NOBODY: u32 = 65_534;

/// Roles with the password `word`, each with another way to log in.
const ROLES: &str = "set password_encryption = 'scram-sha-256'; create role ann login password \
                     'word'; create role plain login password 'word'; set password_encryption = \
                     'md5'; create role old login password 'word'; grant all on schema public to \
                     ann, plain, old";

const ACCESS: &str = "local all all trust\nhost all plain 127.0.0.1/32 password\n\
                      host all old 127.0.0.1/32 md5\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// A server with a folder of its own, in which its Unix socket is, too.
pub(crate) struct Postgres {
    child: Child,
    home: TempDir,
    flags: Vec<String>,
    pub(crate) port: u16,
}

/// A program of PostgreSQL: Debian puts those of each version into a folder of their own.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found = versions.map(|version| version.path().join("bin").join(name));
    let found = found.find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is missing: `apt-get install postgresql`, or `cargo xtask ci`")
    })
}

/// A command of a user that is not root.
fn unprivileged(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Gives a file or a folder to that user: only root may, and only root has to.
fn give_away(path: &Path) {
    let _ = chown(path, Some(NOBODY), Some(NOBODY));
}

/// A folder of that user.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    give_away(home.path());
    home
}

/// Certificate and key, which that user may read.
fn certificate_and_key(papers: &Papers) -> [String; 2] {
    ["self.pem", "self.key"].map(|name| {
        let path = papers.path(name);
        give_away(path.parent().expect("a folder"));
        give_away(&path);
        path.display().to_string()
    })
}

impl Postgres {
    #[track_caller]
    pub(crate) fn start() -> Postgres {
        Postgres::start_with(&[])
    }

    /// With further settings, as `max_connections=5`.
    #[track_caller]
    fn start_with(settings: &[&str]) -> Postgres {
        let home = home();
        let data = home.path().join("data");
        let mut command = unprivileged(program("initdb"));
        command.args(["-U", "postgres", "-A", "trust", "--no-sync", "-D"]).arg(&data);
        Child::start(command).wait().exits(0);
        std::fs::write(data.join("pg_hba.conf"), ACCESS).expect("a file");
        let flags = settings.iter().map(|it| format!("-c{it}")).collect();
        let port = free_port();
        let child = Postgres::serve(home.path(), port, &flags);
        let server = Postgres { child, home, flags, port };
        server.value(ROLES);
        server
    }

    /// With TLS.
    #[track_caller]
    fn with_tls(papers: &Papers) -> Postgres {
        let [certificate, key] = certificate_and_key(papers);
        let certificate = format!("ssl_cert_file={certificate}");
        let key = format!("ssl_key_file={key}");
        Postgres::start_with(&["ssl=on", &certificate, &key])
    }

    fn serve(home: &Path, port: u16, flags: &Vec<String>) -> Child {
        let mut command = unprivileged(program("postgres"));
        command.arg("-D").arg(home.join("data")).arg("-k").arg(home);
        command.args(["-p", &port.to_string(), "-cfsync=off", "-clisten_addresses=127.0.0.1"]);
        let child = Child::start({
            command.args(flags);
            command
        });
        child.hears("PostgreSQL to accept connections", |_, err| {
            err.contains("ready to accept connections").then_some(())
        });
        child
    }

    /// The same after it has ended.
    fn again(self) -> Postgres {
        let Postgres { child, home, flags, port } = self;
        child.wait();
        let child = Postgres::serve(home.path(), port, &flags);
        Postgres { child, home, flags, port }
    }

    /// What psql prints.
    #[track_caller]
    pub(crate) fn value(&self, sql: &str) -> String {
        let mut command = Command::new(program("psql"));
        command.args(["-X", "-q", "-At", "-U", "postgres", "-d", "postgres", "-h"]);
        command.arg(self.home.path()).args(["-p", &self.port.to_string(), "-c", sql]);
        Child::start(command).wait().exits(0).out.trim().to_string()
    }

    #[track_caller]
    fn number(&self, sql: &str) -> u64 {
        self.value(sql).parse().expect("a number")
    }

    fn url(&self, role: &str, query: &str) -> String {
        format!("postgres://{role}:word@127.0.0.1:{}/postgres{query}", self.port)
    }

    fn runs(&self, load: &str, steps: &str) -> Run {
        running(&one_session(&self.url("ann", ""), load, steps)).run()
    }
}

/// How many failures a run had of these causes.
fn failed(run: &Run, causes: &[&str]) -> u64 {
    let json = run.json();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    let found = errors.iter().filter(|it| causes.iter().any(|cause| it["cause"] == **cause));
    found.filter_map(|it| it["count"].as_u64()).sum()
}

/// A run whose server was ended in the middle: the target is blamed, and there are as many marks as
/// statements were executed, or more by those whose result did not come.
#[track_caller]
fn balances(run: &Run, marks: u64) {
    let json = run.json();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    run.check(errors.iter().all(|it| it["blame"] == "target"), "the target is blamed");
    run.check(failed(run, &["connect-refused"]) > 0, "nobody listened");
    let (ok, lost) = (ok(run, "mark"), failed(run, &["sql-server", "closed-early", "reset"]));
    run.check((ok..=ok + lost).contains(&marks), &format!("{marks} marks, {ok} ok, {lost} lost"));
}

fn ok(run: &Run, row: &str) -> u64 {
    run.row("steps", row)["ok"].as_u64().expect("a number")
}

/// The only kind of failure of a run: its cause, who is blamed, its status.
#[track_caller]
fn failure(run: &Run) -> (String, String, String) {
    let json = run.json();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    run.check(errors.len() == 1, "there is one kind of failure");
    let text = |key: &str| errors[0][key].as_str().unwrap_or_default().to_string();
    let detail = errors[0]["example"]["detail"].as_str().unwrap_or_default();
    let state = detail.split([' ', ':']).nth(1).unwrap_or_default();
    (text("cause"), text("blame"), state.to_string())
}

#[test]
fn the_tables_match_the_counts_of_the_run() {
    let server = Postgres::start();
    server.value("create table orders (id serial primary key, buyer int, note text, paid bool)");
    server.value("grant all on orders, orders_id_seq to ann");
    let steps = "\
- sql: insert into orders (buyer, note, paid) values ($1, $2, $3) returning id, note, paid
  name: insert
  with: [\"${user.id}\", \"it's ${user.id}\", true]
  check: {rows: 1, affected: 1, column.paid: true, column: {note: {contains: it's}}}
  save: {id: column.id, rows: rows}
- sql: select buyer, note, null as nothing from orders where id = $1
  name: select
  with: [\"${saved.id}\"]
  check: {rows: \"${saved.rows}\", affected: 0, column.buyer: \"${user.id}\", column.nothing: null}
- sql: begin; update orders set paid = false where id = ${saved.id}; commit
  name: several
  check: {rows: 1}
- sql: select buyer from orders where id = any($1) order by id
  name: list
  with: [[1, 2, 3]]
  prepare: false
  check: {rows: <= 3}
- {sql: select 1 where false, name: none, check: {rows: 0, column.x: absent}}
- sql: select count(*) as n from pg_prepared_statements
  name: prepared
  check: {column.n: 4}";
    let run = server.runs(&times(200, 8), steps).exits(0);
    for row in ["insert", "select", "several", "none", "prepared"] {
        run.check(ok(&run, row) == 200, row);
        run.check(run.row("steps", row)["kind"] == "sql", "the kind of the row");
    }
    assert_eq!(server.number("select count(*) from orders where not paid"), 200, "{run}");
    run.within("/connections/opened", 1.0, 8.0);
    run.has("/total/failed", 0);
    // Each user has said goodbye.
    server.child.until("the users to leave", || {
        server.number("select count(*) from pg_stat_activity where usename = 'ann'") == 0
    });
}

#[test]
fn only_the_right_password_logs_in() {
    let server = Postgres::start();
    let steps = "- {sql: select current_user, name: who, check: {column.current_user: ROLE}}";
    for role in ["ann", "plain", "old"] {
        let text = one_session(&server.url(role, ""), &times(4, 2), &steps.replace("ROLE", role));
        running(&text).run().exits(0);
        let url = server.url(role, "").replace(":word@", ":wrong@");
        let run = running(&one_session(&url, &times(4, 2), steps)).run();
        assert_eq!(failure(&run), ("sql-request".into(), "scenario".into(), "28P01".into()));
    }
    let folder = server.home.path().display().to_string();
    let url = format!("postgres:///postgres?host={folder}").replace("://", "://ann@");
    let url = url.replace("@/", &format!("@:{}/", server.port));
    let run = throng("bench --sql").arg("select 7").arg(url).arg("-n20").arg("--json").run();
    run.exits(0).has("/total/ok", 20);
}

#[test]
fn tls_is_asked_for_before_the_login() {
    let papers = Papers::own();
    let server = Postgres::with_tls(&papers);
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    let certificate = papers.path("self.pem");
    let head = format!("tls: {{ca: {}}}\n{}", certificate.display(), times(4, 2));
    for (query, wanted) in [("?sslmode=require", "true"), ("?sslmode=prefer", "true")] {
        let steps = format!("- {{sql: {sql}, check: {{column.ssl: {wanted}}}}}");
        running(&one_session(&server.url("ann", query), &head, &steps)).run().exits(0);
    }
    let steps = format!("- {{sql: {sql}, check: {{column.ssl: false}}}}");
    let text = one_session(&server.url("ann", ""), &times(4, 2), &steps);
    running(&text).run().exits(0);
    let plain = Postgres::start();
    let text = one_session(&plain.url("ann", "?sslmode=prefer"), &head, &steps);
    running(&text).run().exits(0);
    let text = one_session(&plain.url("ann", "?sslmode=require"), &head, "- sql: select 1");
    let run = running(&text).run();
    run.fails("wrong-scheme", "scenario", None);
    run.says(&["the server does not support TLS"]);
}

#[test]
fn errors_are_counted_by_sqlstate() {
    let server = Postgres::start_with(&["max_connections=8", "superuser_reserved_connections=3"]);
    server.value("create table once (id int primary key); insert into once values (1)");
    server.value("grant all on once to ann");
    let of = |steps: &str| failure(&server.runs(&times(4, 2), steps));
    let told = |cause: &str, blame: &str, state: &str| (cause.into(), blame.into(), state.into());
    assert_eq!(of("- sql: selec 1"), told("sql-request", "scenario", "42601"));
    let twice = "- {sql: insert into once values ($1), with: [1]}";
    assert_eq!(of(twice), told("sql-conflict", "target or scenario", "23505"));
    assert_eq!(of("- sql: copy once from stdin"), told("sql-server", "target", "57014"));
    let cut = "- {sql: select pg_terminate_backend(pg_backend_pid())}";
    assert_eq!(of(cut), told("sql-server", "target", "57P01"));
    let wanted = "- {sql: insert into once values (1), check: {sqlstate: unique_violation}}";
    server.runs(&times(4, 2), wanted).exits(0);
    let many = "- {sql: select 1}\n- {rendezvous: all, users: 12, timeout: 500ms}";
    let run = server.runs(&times(12, 12), many);
    let json = run.json();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    let is_full = |it: &Value| it["example"]["detail"].to_string().contains("FATAL 53300");
    run.check(errors.iter().any(|it| is_full(it) && it["blame"] == "target"), "53300");
}

#[test]
fn an_abandoned_transaction_is_rolled_back() {
    let server = Postgres::start();
    server.value("create table pairs (id int, half text); grant all on pairs to ann");
    let steps = "\
- {sql: begin, name: begin}
- sql: insert into pairs values ($1, 'left')
  name: left
  with: [\"${iteration}\"]
- sql: insert into pairs values (case when $1 % 2 = 0 then 1 / ($1 % 2) else $1 end, 'right')
  name: right
  with: [\"${iteration}\"]
- {sql: commit, name: commit}";
    let head = format!("defaults: {{on_error: next}}\n{}", times(40, 4));
    let run = server.runs(&head, steps);
    assert_eq!(failure(&run), ("sql-request".into(), "scenario".into(), "22012".into()));
    run.check(ok(&run, "begin") == 40, "each iteration begins");
    assert_eq!(ok(&run, "commit"), ok(&run, "right"), "{run}");
    assert_eq!(server.number("select count(*) from pairs"), 2 * ok(&run, "commit"), "{run}");
}

#[test]
fn the_books_balance_when_the_server_is_stopped_in_the_middle() {
    let server = Postgres::start();
    server.value("create table marks (id serial, at timestamp default now())");
    server.value("grant all on marks, marks_id_seq to ann");
    let steps = "- {sql: insert into marks default values, name: mark}\n- think: 5ms";
    let load = "load: [{users: 8, for: 60s}]\nabort_when: [errors > 50 over 1s]";
    let text = one_session(&server.url("ann", ""), load, steps);
    let child = running(&text).start();
    child.until("marks", || server.number("select count(*) from marks") > 100);
    // What is open is rolled back, and each user is told so.
    server.child.signal(libc::SIGINT);
    let run = child.wait();
    let server = server.again();
    balances(&run, server.number("select count(*) from marks"));
}

/// A user that thinks for a minute behind a failed iteration, which holds the lock of a row.
const GIVES_UP: &str = "\
- think: \"${iteration == 1 ? '0s' : '60s'}\"
- {sql: begin, name: begin}
- {sql: update stock set n = n + 1 where id = 1, name: take, check: {affected: 1}}
- {sql: select nonsense, name: fail}";

const ONE_USER: &str = "defaults: {on_error: next}\nload: [{users: 1, for: 60s}]";

#[test]
fn a_lock_is_released_when_its_iteration_ends() {
    let server = Postgres::start();
    server.value("create table stock (id int primary key, n int); insert into stock values (1, 0)");
    server.value("grant all on stock to ann");
    let child = running(&one_session(&server.url("ann", ""), ONE_USER, GIVES_UP)).start();
    // Another connection has the row while the user thinks.
    child.until("the rollback", || {
        let user = "from pg_stat_activity where usename = 'ann' and state = 'idle'";
        server.number(&format!("select count(*) {user} and query = 'rollback'")) == 1
    });
    server.value("set lock_timeout = '10s'; update stock set n = n + 10 where id = 1");
    child.signal(libc::SIGINT);
    let run = child.wait();
    assert_eq!(server.value("select n from stock"), "10", "{run}");
    run.check(ok(&run, "begin") == 1 && ok(&run, "take") == 1, "one iteration");
    assert_eq!(failure(&run), ("sql-request".into(), "scenario".into(), "42703".into()));
    run.has("/total/begun", 3);
}

/// A server that lets everybody in, and answers each statement with what it is given, again and
/// again if that is not all.
fn liar(answer: &'static [u8], endless: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                let mut hears = |stream: &mut std::net::TcpStream| stream.read(&mut buffer);
                let _ = hears(&mut stream);
                let _ = stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I");
                while matches!(hears(&mut stream), Ok(1..)) {
                    while stream.write_all(answer).is_ok() && endless {}
                }
            });
        }
    });
    port
}

#[test]
fn servers_that_lie_are_named() {
    let run = |url: &str, timeout: &str| {
        let steps = format!("- {{sql: select 1, timeout: {timeout}}}");
        running(&one_session(url, &times(4, 2), &steps)).run()
    };
    let at = |port: u16| format!("postgres://ann@127.0.0.1:{port}");
    let nginx = Nginx::start("", "");
    let of_http = run(&at(nginx.port), "10s");
    of_http.fails("wrong-scheme", "scenario", Some(4));
    of_http.says(&["uses HTTP"]);
    for (first, said) in [
        (&b"\x15\x03\x03\0\x02\x02\x46"[..], "uses TLS"),
        (b"\x4a\0\0\0\x0a8.0.36\0", "speaks MySQL"),
    ] {
        let server = Faulty::says(first);
        let of_another = run(&at(server.address.port()), "10s");
        of_another.fails("wrong-scheme", "scenario", Some(4));
        of_another.says(&[said]);
    }
    // It agrees to TLS, and goes on without.
    let plain = Faulty::start(|mut peer| {
        for answer in [&b"S"[..], b"R\0\0\0\x08\0\0\0\0"] {
            peer.hears();
            peer.says(answer);
        }
        peer.hears();
    });
    let of_plain = run(&format!("{}?sslmode=require", at(plain.address.port())), "10s");
    of_plain.fails("tls-failed", "target", Some(4));
    of_plain.says(&["in plain text instead of TLS"]);
    for (answer, endless, timeout, cause) in [
        (&b"D\xff\xff\xff\xff"[..], false, "10s", "too-large"),
        (b"?\0\0\0\x04", false, "10s", "malformed"),
        (b"D\0\0\0\x06\0\0", true, "300ms", "timeout"),
        (b"", false, "300ms", "timeout"),
    ] {
        run(&at(liar(answer, endless)), timeout).fails(cause, "target", Some(4));
    }
}

#[test]
fn the_example_is_run() {
    let server = Postgres::start();
    server.value("create table items (id int primary key, stock int)");
    server.value("insert into items select n, 1000000 from generate_series(1, 1000) n");
    server.value("create table orders (id bigserial, item int, buyer bigint)");
    server.value("grant all on items, orders, orders_id_seq to ann");
    let mut text = include_str!("../../../../../examples/sql.yaml").to_string();
    for (old, new) in [
        ("127.0.0.1:5432/shop", &*format!("127.0.0.1:{}/postgres", server.port)),
        ("{to: 100, rate: 20/s}", "{to: 10, rate: 20/s}"),
        ("for: 5m", "for: 2s"),
        ("think: 1s..3s", "think: 50ms"),
        ("order p99 < 100ms", "order p99 < 20s"),
        ("read order p99 < 50ms", "read order p99 < 20s"),
    ] {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    let run = running(&text).run().exits(0);
    let orders = server.number("select count(*) from orders");
    run.check(orders > 20 && ok(&run, "commit") == orders, &format!("{orders} orders"));
    let sold = server.number("select sum(1000000 - stock) from items");
    assert_eq!(sold, orders, "{run}");
    let tried = throng("try shop.yaml").file("shop.yaml", &text).run();
    tried.check(tried.out.contains("$1 = "), "the parameters of a statement");
}

/// The protocol as raw bytes: SSLRequest, TLS, a login by SCRAM, and a statement.
const RAW: &str = r#"- connect
- request: {hex: 00 00 00 08 04 d2 16 2f}
  expect: {length: 1}
  check: {text: {equals: S}}
  name: ssl
- secure
- request: {text: '${bytes.big(36, 4) + bytes.big(196608, 4)
    + bytes("user\u0000ann\u0000database\u0000postgres\u0000\u0000")}'}
  expect: {length: 43}
  check: {text: SCRAM-SHA-256}
  name: hello
- set: {first: "${scram.first('', random.string(24))}"}
- request: {text: '${bytes("p") + bytes.big(saved.first.size() + 22, 4) + bytes("SCRAM-SHA-256\u0000")
    + bytes.big(saved.first.size(), 4) + bytes(saved.first)}'}
  expect: {length: 93}
  save: {challenge: {regex: '(r=.*)'}}
  name: first
- set: {last: "${scram.sha256_last(saved.first, saved.challenge, 'word')}"}
- request: {text: '${bytes("p") + bytes.big(saved.last.size() + 4, 4) + bytes(saved.last)}'}
  expect: {length: 64}
  check: {text: "${scram.sha256_signature(saved.first, saved.challenge, 'word')}"}
  name: last
- set: {sql: insert into seen select ssl from pg_stat_ssl where pid = pg_backend_pid()}
- request: {text: '${bytes("Q") + bytes.big(saved.sql.size() + 5, 4) + bytes(saved.sql + "\u0000")}'}
  expect: {pattern: "INSERT 0 1"}
  name: insert
- disconnect"#;

#[test]
fn raw_bytes_ask_for_tls_and_log_in_by_scram() {
    let papers = Papers::own();
    let server = Postgres::with_tls(&papers);
    server.value("create table seen (ssl boolean); grant all on seen to ann");
    let head = format!("tls: {{verify: false}}\n{}", times(12, 3));
    let text = one_session(&format!("tcp://127.0.0.1:{}", server.port), &head, RAW);
    let run = running(&text).run().exits(0);
    run.has("/total/failed", 0);
    for name in ["ssl", "secure", "hello", "first", "last", "insert"] {
        run.check(run.row("steps", name)["ok"] == 12, name);
    }
    assert_eq!(server.value("select count(*) from seen where ssl"), "12", "{run}");
}
