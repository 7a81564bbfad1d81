//! Users of a real Redis: what a run counts is what the server has done.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::faulty::Faulty;
use crate::http::tls::Papers;
use crate::run::{Child, Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::servers::{free_port, program};

/// A server with its own flags, whose data is in a folder.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    #[track_caller]
    pub(crate) fn start(folder: &Path, flags: &str) -> Server {
        Server::on(free_port(), folder, flags)
    }

    #[track_caller]
    fn on(port: u16, folder: &Path, flags: &str) -> Server {
        let mut command = Command::new(program("redis-server", "redis-server"));
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(flags.split_whitespace()).current_dir(folder);
        let child = Child::start(command);
        child.hears("redis to listen", |out, _| {
            out.contains("Ready to accept connections").then_some(())
        });
        Server { child, port }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// All that is answered to some lines.
    fn says(&self, lines: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes()).expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// How often it has done a command, failures too.
    fn calls(&self, command: &str) -> u64 {
        let books = self.says("INFO commandstats");
        let row = books.lines().find_map(|row| row.strip_prefix(&format!("cmdstat_{command}:")));
        let calls = row.and_then(|row| row.strip_prefix("calls=")?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }
}

/// Runs the steps of one session, each user on a connection of its own.
fn users(url: &str, load: &str, steps: &str) -> Run {
    running(&one_session(url, load, steps)).run()
}

/// How many attempts failed with this cause and status.
fn failed(run: &Run, cause: &str, word: &str) -> u64 {
    let errors = run.json()["errors"].as_array().cloned().unwrap_or_default();
    let is_it =
        |error: &&Value| error["cause"] == cause && error["example"].to_string().contains(word);
    errors.iter().filter(is_it).filter_map(|error| error["count"].as_u64()).sum()
}

#[test]
fn commands_match_the_counts_of_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "");
    let steps = r#"- connect
- redis: SET key:${user.id} "value ${iteration}" EX 100
  name: set
  check: {value: OK}
- redis: GET key:${user.id}
  name: get
  check: {value: "value ${iteration}", header: {type: text}}
  save: {got: value}
- redis: [[INCR, n], [GET, "key:${user.id}"], [GET, none]]
  name: pipeline
  check: {json: {"[1]": "${saved.got}", "[2]": null}, "json[0]": "> 0"}
- redis: |
    DEL list:${user.id}
    RPUSH list:${user.id} a "b c" ${saved.got}
    LRANGE list:${user.id} 0 -1
  name: lines
  check: {json: {"[1]": 3, "[2][1]": b c, "[2][2]": "${saved.got}"}}
- redis: GET nothing
  name: nil
  check: {value: null, header: {type: nil}}
- redis: STRLEN key:${user.id}
  name: number
  check: {value: {matches: '^\d+$'}}
  save: {length: value}
- redis: [SET, "odd:${user.id}", "a \"b\" ${saved.length + 1}\n"]
  name: odd
- disconnect"#;
    let run = users(&server.url(), &times(200, 10), steps).exits(0);
    for name in ["set", "get", "pipeline", "lines", "nil", "number", "odd"] {
        run.check(run.row("steps", name)["ok"] == 200, name);
        run.check(run.row("steps", name)["kind"] == "redis", "the kind of the row");
    }
    for (command, each) in [
        ("set", 2),
        ("get", 4),
        ("incr", 1),
        ("del", 1),
        ("rpush", 1),
        ("lrange", 1),
        ("strlen", 1),
    ] {
        assert_eq!(server.calls(command), each * 200, "{command}: {run}");
    }
    run.has("/messages/sent", 11 * 200);
    run.has("/messages/received", 11 * 200);
    run.has("/total/failed", 0);
    assert!(server.says("GET odd:1").contains("a \"b\" "), "{run}");
}

#[test]
fn errors_have_their_word_and_their_blame() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "");
    let steps = r#"- connect
- redis: SET text a
- {redis: LPUSH text b, name: wrong type}
- {redis: INCRBY text x, name: no number}
- {redis: EVALSHA 0000000000000000000000000000000000000000 0, name: expected, check: {error: NOSCRIPT}}
- {redis: GET text, name: not expected, check: {error: NOSCRIPT}}
- redis: |
    MULTI
    LPUSH text b
    SET text b
    EXEC
  name: inside
- disconnect"#;
    let run = users(&server.url(), &times(20, 4), steps);
    assert_eq!(failed(&run, "redis-request", "WRONGTYPE"), 40, "{run}");
    assert_eq!(failed(&run, "redis-error", "ERR value is not an integer"), 20, "{run}");
    run.has("/total/failed", 80);
    run.check(run.row("steps", "expected")["ok"] == 20, "an error that is expected is none");
    run.check(run.row("steps", "not expected")["failed"] == 20, "it is missed where there is none");
    let rows = run.json()["errors"].as_array().cloned().unwrap_or_default();
    let blame = |cause: &str| {
        let row = rows.iter().find(|row| row["cause"] == cause);
        row.map(|row| row["blame"].clone()).unwrap_or_default()
    };
    assert_eq!(blame("redis-request"), "scenario", "{run}");
    assert_eq!(blame("redis-error"), "target or scenario", "{run}");
}

#[test]
fn users_log_in_choose_a_database_and_use_tls() {
    let (folder, papers) = (tempfile::tempdir().expect("a folder"), Papers::signed());
    let path = |name: &str| papers.path(name).display().to_string();
    let tls_port = free_port();
    let flags = format!(
        "--requirepass secret-7 --tls-port {tls_port} --tls-cert-file {} --tls-key-file {} \
         --tls-ca-cert-file {} --tls-auth-clients no",
        path("server.pem"),
        path("server.key"),
        path("ca.pem")
    );
    let server = Server::start(folder.path(), &flags);
    let steps = "- connect\n- {redis: INCR n, name: incr}\n- disconnect";
    for (url, head) in [
        (format!("redis://:secret-7@127.0.0.1:{}/3", server.port), String::new()),
        (format!("redis://default:secret-7@127.0.0.1:{}/3", server.port), String::new()),
        (
            format!("rediss://:secret-7@127.0.0.1:{tls_port}/3"),
            format!("tls: {{ca: {}}}\n", path("ca.pem")),
        ),
    ] {
        let run = users(&url, &format!("{head}{}", times(10, 5)), steps).exits(0);
        run.has("/total/failed", 0);
        run.check(!run.to_string().contains("secret-7"), "the password is not told");
        let record = run.folder().join("record/scenario.yaml");
        let record = std::fs::read_to_string(record).expect("a scenario");
        assert!(!record.contains("secret-7"), "{record}");
    }
    let counted = server.says("AUTH secret-7\r\nSELECT 3\r\nGET n");
    assert!(counted.contains("\r\n30\r\n"), "{counted}");
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port);
    for (login, word) in [(":wrong@", "WRONGPASS"), ("", "NOAUTH")] {
        let run = users(&url(login), &times(10, 5), steps);
        run.fails("redis-request", "scenario", Some(10));
        assert_eq!(failed(&run, "redis-request", word), 10, "{run}");
    }
}

#[test]
fn acknowledged_writes_survive_a_killed_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "--appendonly yes --appendfsync no");
    let text = one_session(
        &server.url(),
        &times(400, 10),
        "- {connect: , reconnect: never}\n\
         - repeat: 50\n  steps: [{redis: INCR n, name: incr}, {think: 5ms}]\n- disconnect",
    );
    let child = running(&text).start();
    let port = server.port;
    child.until("some commands are done", || server.calls("incr") > 200);
    server.child.signal(libc::SIGKILL);
    drop(server);
    let run = child.wait();
    let row = run.row("steps", "incr");
    let count = |name: &str| row[name].as_u64().unwrap_or(0);
    let server = Server::on(port, folder.path(), "--appendonly yes --appendfsync no");
    let done = server.says("INCRBY n 0");
    let done: u64 = done.trim_start_matches(':').lines().next().unwrap().parse().expect("a number");
    let (low, high) = (count("ok"), count("begun"));
    run.check(low <= done && done <= high, &format!("{done} is from {low} to {high}"));
    run.check(count("failed") + count("interrupted") >= high - low, "each attempt is known");
    run.check(low > 200, "some were good");
}

/// Members of rooms have a connection that listens and one that publishes.
const ROOMS: &str = r#"name: rooms
target: TARGET
sessions:
  member:
    before:
      - set: {room: "${user.id % 4}"}
      - {connect: , as: listen}
      - {connect: , as: talk}
      - {redis: "SUBSCRIBE room:${saved.room} all", name: subscribe, on: listen}
      - {rendezvous: all are there, users: 40}
    steps:
      - repeat: 5
        steps:
          - redis: [PUBLISH, "room:${saved.room}", '{"id": "${random.uuid()}"}']
            on: talk
            name: talk
            check: {value: 10}
          - think: 20ms
      - {rendezvous: all is said, users: 40}
      - stay: 4s
        on: [{message: {channel: "room:${saved.room}"}, from: listen, name: heard}]
deliveries:
  talk:
    sent: talk
    received: {json: {id: present}}
    match: json.id
    audience: {same: "${saved.room}"}
    lost_after: 3s
load: [{iterations: 40, users: 40}]
"#;

#[test]
fn every_published_message_reaches_every_subscriber_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "");
    let text = ROOMS.replace("TARGET", &server.url());
    let run = throng("run rooms.yaml --json --shards 2 --out record").file("rooms.yaml", text);
    let run = run.run().exits(0);
    let row = run.row("deliveries", "talk");
    for (figure, wanted) in [("sent", 200), ("expected", 2000), ("delivered", 2000), ("lost", 0)] {
        run.check(row[figure] == wanted, figure);
    }
    for none in ["twice", "out_of_order", "after_lost", "stray", "foreign", "unwatched"] {
        run.check(row[none] == 0, none);
    }
    run.has("/total/failed", 0);
    assert_eq!((server.calls("publish"), server.calls("subscribe")), (200, 40), "{run}");
}

#[test]
fn servers_that_lie_are_named() {
    let steps = "- connect\n- {redis: GET k, name: get, timeout: 20s}\n- disconnect";
    let deep = b"*1\r\n".repeat(10_000);
    let long = [&b"+"[..], &[b'x'; 100_000]].concat();
    for (answer, cause, blame, said) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "wrong-scheme", "scenario", "uses HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "wrong-scheme", "scenario", "uses TLS"),
        (b"$4294967296\r\nabc", "too-large", "target", "exceeds the limit"),
        (&deep, "too-large", "target", "nested deeper than 64 levels"),
        (&long, "too-large", "target", "longer than 65536 bytes"),
        (b"hello\r\n", "malformed", "target", "cannot start with `h`"),
        (b"$5\r\nab", "closed-early", "target", "closed"),
        (b"-MOVED 866 127.0.0.1:7001\r\n", "redis-request", "scenario", "MOVED 866"),
        (b"-LOADING dataset\r\n", "redis-error", "target", "LOADING"),
    ] {
        let server = Faulty::says(answer);
        let run = users(&server.url("redis"), &times(5, 1), steps);
        run.fails(cause, blame, Some(5));
        run.check(run.to_string().contains(said), said);
    }
}

#[test]
fn a_command_line_sends_commands_in_pipelines() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "");
    let line = format!("bench {} -c 10 -n 500 --pipeline 4 --json", server.url());
    let run = throng(&line).arg("--command").arg("SET key:${random.int(1, 50)} 'a b'").run();
    let run = run.exits(0);
    run.has("/total/failed", 0);
    run.has("/messages/sent", 2000);
    assert_eq!(server.calls("set"), 2000, "{run}");
    let keys = server.says("DBSIZE");
    assert!(keys.starts_with(":50\r\n"), "{keys}");
    let run = throng(&format!("bench {}/2 -n 100 --json", server.url())).run().exits(0);
    run.has("/total/failed", 0);
    assert_eq!(server.calls("ping"), 100, "{run}");
    for (line, said) in [
        ("bench http://127.0.0.1:1 --pipeline 2", "--pipeline does not apply to http://"),
        ("bench redis://127.0.0.1:1 --body a", "--body does not apply to redis://"),
        ("bench redis://127.0.0.1:1 --qos 1", "--qos does not apply to redis://"),
        ("bench redis://127.0.0.1:1/x", "this is not a database number"),
    ] {
        throng(line).run().exits(2).says(&[said]);
    }
}

#[test]
fn one_user_shows_what_it_says_and_hears() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "");
    let steps = "- {connect: , as: listen}\n- {connect: , as: talk}\n\
                 - {redis: SUBSCRIBE news, on: listen}\n\
                 - {redis: \"PUBLISH news 'it is ${user.id}'\", on: talk}\n\
                 - {expect: {channel: news}, on: listen, check: {text: it is}}\n\
                 - {redis: \"HGETALL none\", on: talk}";
    let text = one_session(&server.url(), &times(1, 1), steps);
    let run = throng("try scenario.yaml").file("scenario.yaml", text).run().exits(0);
    run.says(&["PUBLISH news it is 1", "SUBSCRIBE news", "all ok"]);
}

#[test]
fn the_example_is_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/redis.yaml");
    let mut text = std::fs::read_to_string(example).expect("the example");
    for (old, new) in [
        ("redis://127.0.0.1:6379", server.url().as_str()),
        ("think: 1s..3s", "think: 200ms"),
        ("to: 1000, rate: 100/s", "to: 20, rate: 40/s"),
        ("for: 5m", "for: 3s"),
        ("p99 < 50ms", "p99 < 20s"),
    ] {
        assert!(text.contains(old), "no `{old}`");
        text = text.replace(old, new);
    }
    let run = running(&text).run().exits(0);
    run.has("/total/failed", 0);
    run.check(run.row("deliveries", "news")["lost"] == 0, "no message is lost");
    let row = run.row("steps", "read cart");
    assert_eq!(row["begun"], server.calls("hgetall"), "{run}");
}
