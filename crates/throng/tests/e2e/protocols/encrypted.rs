//! The declared protocol with encrypted bodies of docs/protocol.md, against a server that decrypts
//! and encrypts with another implementation and whose books are compared.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::run::{Child, Run, throng};
use crate::scenarios::{one_session, times};

const SERVER: &str = "tests/e2e/protocols/encrypted_server.py";

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Server {
        // Debian has cryptography for its own Python.
        let mut command = Command::new("/usr/bin/python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(SERVER)).arg(KEY);
        let child = Child::start(command);
        let address = format!("127.0.0.1:{}", child.line("port "));
        Server { child, address }
    }

    /// Users log in 100 times with this key.
    fn is_used(&self, key: &str) -> Run {
        let [protocol, steps] = example();
        let head = format!("protocol: it.protocol.yaml\nvars: {{key: '{key}'}}\n{}", times(100, 5));
        throng("run it.yaml --json --out record")
            .file("it.yaml", one_session(&self.address, &head, steps))
            .file("it.protocol.yaml", protocol)
            .run()
    }

    /// What it has counted.
    fn books(self) -> Value {
        self.child.signal(libc::SIGTERM);
        let run = self.child.wait().exits(0);
        let books = run.out.lines().find_map(|line| line.strip_prefix("books "));
        serde_json::from_str(books.expect("its books")).expect("JSON")
    }
}

/// The example of docs/protocol.md: the declaration, and the steps.
fn example() -> [&'static str; 2] {
    let page = include_str!("../../../../../docs/protocol.md");
    let (_, section) = page.split_once("### Encrypted bodies\n").expect("the section");
    let mut blocks = section.split("\n```").skip(1).step_by(2);
    ["yaml\n", "yaml steps\n"]
        .map(|kind| blocks.next().and_then(|block| block.strip_prefix(kind)).expect("a block"))
}

#[test]
fn encrypted_bodies_are_those_of_another_implementation() {
    let server = Server::start();
    let run = server.is_used(KEY).succeeds(100);
    run.has("/messages/sent", 100);
    run.has("/messages/received", 100);
    run.check(run.row("own", "welcomes")["count"] == 100, "each response is for its user");
    let books = server.books();
    assert_eq!((&books["logins"], &books["refused"]), (&100.into(), &0.into()), "{run}");
    assert_eq!(books["users"], 5, "{run}");
}

#[test]
fn a_wrong_key_is_seen_as_failures() {
    let server = Server::start();
    let run = server.is_used(&KEY.replace("1f", "2f")).exits(1);
    run.fails("expression-failed", "scenario", Some(100));
    run.says(&["the GCM tag does not match: use the key and the nonce"]);
    let books = server.books();
    assert_eq!((&books["logins"], &books["refused"]), (&0.into(), &100.into()), "{run}");
}
