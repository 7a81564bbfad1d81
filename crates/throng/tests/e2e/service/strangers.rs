//! Servers that the project did not write, and that keep books of their own.
//! `benches/strangers/run.py` has more of them, with faults.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::run::throng;
use crate::servers::{Haproxy, Node};

const ROOM: &str = include_str!("../../../../../benches/strangers/room.js");
const SCENARIO: &str = include_str!("../../../../../benches/strangers/room.yaml");

const USERS: u64 = 12;
const MESSAGES: u64 = 240;

/// How often a book has each word. Each message has a line with its ID.
fn words(books: &[&Path]) -> BTreeMap<String, u64> {
    let mut words = BTreeMap::new();
    for book in books {
        for line in std::fs::read_to_string(book).unwrap_or_default().lines() {
            let word = line.split(' ').next().unwrap_or_default();
            *words.entry(word.to_string()).or_default() += 1;
        }
    }
    words
}

/// Connections that the frontend has accepted.
fn accepted(haproxy: &Haproxy) -> u64 {
    let mut stream = UnixStream::connect(haproxy.socket()).expect("the socket of HAProxy");
    stream.write_all(b"show stat\n").expect("a command");
    let mut table = String::new();
    stream.read_to_string(&mut table).expect("a table");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let column = head.iter().position(|name| *name == "conn_tot").expect("the column");
    let front = lines.find(|row| row[0] == "front").expect("the frontend");
    front[column].parse().expect("a number")
}

/// Users wait for each other instead of for a time: each message has the same receivers for both.
fn scenario() -> String {
    let meeting = |text: &str, name: &str, before: &str| {
        assert!(text.contains(before), "{before}");
        text.replace(before, &format!("      - rendezvous: {name}\n{before}"))
    };
    let text = meeting(SCENARIO, "all are there", "      - think: 1s ");
    let text = meeting(&text, "all is said", "      - stay: 1s ");
    format!("{text}load: [{{iterations: {MESSAGES}, users: {USERS}}}]\n")
}

/// A user begins with long polling at one of two servers. The cookie that HAProxy sets must lead
/// its upgrade to the same one: the other does not know the session, and refuses it.
#[test]
fn socket_io_behind_haproxy_counts_what_throng_counts() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let books = ["a", "b"].map(|name| home.path().join(name));
    let start = |name: &str, book: &Path| Node::start(ROOM, &[name.as_ref(), "0".as_ref(), book]);
    let nodes = [start("a", &books[0]), start("b", &books[1])];
    let server = |name: &str, node: &Node| {
        format!("  server {name} 127.0.0.1:{} cookie {name}\n", node.port)
    };
    let sections = format!(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n  \
         timeout tunnel 1m\nbackend rooms\n  balance roundrobin\n  \
         cookie SERVERID insert indirect nocache\n{}{}",
        server("a", &nodes[0]),
        server("b", &nodes[1])
    );
    let haproxy = Haproxy::start(&sections, "rooms");
    let run = throng("run room.yaml --json")
        .arg(format!("--set=port={}", haproxy.port))
        .file("room.yaml", scenario())
        .run()
        .exits(0);
    let both = || words(&[&books[0], &books[1]]);
    let closed = || both().get("closed") == Some(&USERS);
    nodes[0].child.until("all users to be gone", closed);
    let book = both();
    let theirs = |word: &str| book.get(word).copied().unwrap_or_default();
    run.check(!book.contains_key("refused"), "a server refuses the session of the other");
    for one in &books {
        run.check(words(&[one]).contains_key("opened"), "both servers have users");
    }
    let steps = [
        ("open", "opened"),
        ("namespace", "namespace"),
        ("upgrade", "upgraded"),
        ("join", "joined"),
        ("say", "say"),
    ];
    for (step, word) in steps {
        let row = run.row("steps", step);
        let ours = ["begun", "ok"].map(|figure| row[figure].as_u64());
        let wanted = [Some(theirs(word)); 2];
        run.check(ours == wanted, &format!("{step} is {ours:?} instead of {wanted:?}"));
    }
    assert_eq!((theirs("opened"), theirs("say")), (USERS, MESSAGES), "{run}");
    let row = run.row("deliveries", "talk");
    for (figure, wanted) in [
        ("sent", MESSAGES),
        ("expected", theirs("said")),
        ("delivered", theirs("said")),
        ("lost", 0),
        ("excused", 0),
        ("stray", 0),
        ("foreign", 0),
        ("twice", 0),
    ] {
        let ours = row[figure].as_u64();
        run.check(ours == Some(wanted), &format!("{figure} is {ours:?} instead of {wanted}"));
    }
    let connects = run.row("stages", "connect")["ok"].as_u64();
    run.check(connects == Some(accepted(&haproxy)), &format!("{connects:?} connections"));
    assert_eq!(connects, Some(2 * USERS), "one for polling and one for the WebSocket: {run}");
}
