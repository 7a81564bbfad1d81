//! The real bus: a `nats-server` that is killed, frozen and filled. `server` starts it.

mod server;

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{sleep, timeout};

use super::*;
use crate::contract;
use server::{Server, until};

/// Time limit for anything, for slow machines.
const PATIENCE: Duration = Duration::from_secs(60);

async fn furnished(server: &Server, name: &str) -> Nats {
    let bus = Nats::connect(server.identity(name)).unwrap();
    furnish(&bus, Room::default()).await;
    bus
}

async fn furnish(bus: &Nats, room: Room) {
    until(async || match bus.furnish(room).await {
        Err(BusError::Cut) => false,
        done => done.map(|()| true).unwrap(),
    })
    .await;
}

#[tokio::test]
async fn nats_meets_the_contract() {
    let server = Server::start("");
    let (one, other) = (furnished(&server, "one").await, furnished(&server, "other").await);
    contract::keep(&one, &other).await;
}

#[tokio::test]
async fn it_connects_when_the_server_starts_later() {
    let mut server = Server::start("");
    server.kill();
    let bus = Nats::connect(server.identity("early")).unwrap();
    assert_eq!(*bus.link().borrow(), Link::Begun);
    assert_eq!(bus.read("x").await, Err(BusError::Cut));
    let mut told = bus.subscribe("news").await.unwrap();
    server.begin();
    furnish(&bus, Room::default()).await;
    let other = Nats::connect(server.identity("other")).unwrap();
    until(async || {
        other.publish("news", "new".into());
        timeout(Duration::from_millis(200), told.recv()).await.is_ok()
    })
    .await;
    until(async || bus.read("x").await == Ok(None)).await;
}

/// The handle works on threads without a tokio runtime and with another one.
#[test]
fn a_handle_works_on_any_thread() {
    let server = Server::start("");
    let bus = Nats::connect(server.identity("one")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { bus.furnish(Room::default()).await.unwrap() });
    let revision = futures_util::FutureExt::now_or_never(bus.write("x", 0, "1".into()));
    assert!(revision.is_none(), "it is done on another thread");
    let read = runtime.block_on(async { until_read(&bus).await });
    assert_eq!(read, Bytes::from("1"));
}

async fn until_read(bus: &Nats) -> Bytes {
    loop {
        if let Ok(Some(entry)) = bus.read("x").await {
            return entry.value;
        }
    }
}

#[tokio::test]
async fn acknowledged_entries_survive_a_killed_server_without_a_gap() {
    const LINES: u32 = 300;
    let mut server = Server::start("");
    let agent = furnished(&server, "agent").await;
    let controller = Nats::connect(server.identity("desk")).unwrap();
    let mut following = controller.follow("m.r.*", 0).await.unwrap();
    let sending = tokio::spawn(async move {
        for number in 0..LINES {
            let payload = Bytes::from(number.to_string());
            // Some are repeated although they were acknowledged.
            for _ in 0..1 + u32::from(number % 7 == 0) {
                while agent
                    .append("m.r.a", &format!("r.a.{number}"), payload.clone())
                    .await
                    .is_err()
                {}
            }
            sleep(Duration::from_millis(5)).await;
        }
    });
    let mut seen = Vec::new();
    for at in 0..LINES {
        let line = timeout(PATIENCE, following.recv()).await.expect("in time").unwrap();
        seen.push(String::from_utf8(line.payload.to_vec()).unwrap());
        if at == 40 || at == 160 {
            server.kill();
            sleep(Duration::from_millis(300)).await;
            server.begin();
        }
    }
    sending.await.unwrap();
    let wanted: Vec<String> = (0..LINES).map(|number| number.to_string()).collect();
    assert_eq!(seen, wanted);
    // The log itself contains each once.
    let mut again = controller.follow("m.>", 0).await.unwrap();
    for number in wanted {
        let line = timeout(PATIENCE, again.recv()).await.expect("in time").unwrap();
        assert_eq!(line.payload, Bytes::from(number));
    }
}

#[tokio::test]
async fn a_frozen_server_is_a_disconnect_and_then_everything_continues() {
    let server = Server::start("");
    let bus = furnished(&server, "one").await;
    let mut following = bus.follow("m.>", 0).await.unwrap();
    until(async || bus.append("m.a", "1", "1".into()).await.is_ok()).await;
    let mut link = bus.link();
    server.signal("STOP");
    until(async || server.is_frozen()).await;
    assert_eq!(bus.append("m.a", "2", "2".into()).await, Err(BusError::Cut));
    assert_eq!(bus.read("x").await, Err(BusError::Cut));
    let cut = link.wait_for(|link| *link == Link::Cut);
    timeout(PATIENCE, cut).await.expect("it is noticed").unwrap();
    server.signal("CONT");
    timeout(PATIENCE, link.wait_for(|link| *link == Link::Up)).await.unwrap().unwrap();
    until(async || bus.append("m.a", "2", "2".into()).await.is_ok()).await;
    until(async || bus.append("m.a", "3", "3".into()).await.is_ok()).await;
    for wanted in ["1", "2", "3"] {
        let line = timeout(PATIENCE, following.recv()).await.expect("in time").unwrap();
        assert_eq!(line.payload, Bytes::from(wanted));
    }
}

#[tokio::test]
async fn a_full_log_is_reported_and_continues_when_there_is_space() {
    let server = Server::start("");
    let bus = Nats::connect(server.identity("one")).unwrap();
    let small = Room { log_bytes_max: 64 << 10, blob_bytes_max: 64 << 10, ..Room::default() };
    furnish(&bus, small).await;
    let line = Bytes::from(vec![b'x'; 10_000]);
    let mut kept = 0;
    let refused = loop {
        match bus.append("m.a", &format!("{kept}"), line.clone()).await {
            Ok(()) => kept += 1,
            Err(BusError::Cut) => {}
            Err(other) => break other,
        }
    };
    assert_eq!((refused, kept), (BusError::Full, 6));
    until(async || match bus.store(vec![7; 200_000].into()).await {
        Err(BusError::Cut) => false,
        stored => stored == Err(BusError::Full),
    })
    .await;
    furnish(&bus, Room::default()).await;
    until(async || bus.append("m.a", "6", line.clone()).await.is_ok()).await;
}
