//! What an agent must not do, and clients that are refused.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use nkeys::KeyPair;

use super::*;

fn is_refused<T: std::fmt::Debug>(done: Result<T, BusError>, what: &str) {
    match done {
        Err(BusError::Refused(said)) => {
            let said = said.english();
            assert!(
                said.contains("the bus does not allow this machine to use `"),
                "{what}: {said}"
            );
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// Repeats until there is a reply.
async fn answer<T>(mut ask: impl AsyncFnMut() -> Result<T, BusError>) -> Result<T, BusError> {
    let tried = async {
        loop {
            match ask().await {
                Err(BusError::Cut) => {}
                done => return done,
            }
        }
    };
    timeout(PATIENCE, tried).await.expect("in time")
}

#[tokio::test]
async fn an_agent_has_only_its_own_rights() {
    let mut fleet = Fleet::start();
    let controller = fleet.controller().await;
    let agent = fleet.agent("a").await;
    let (mut heard, mut asked) = (
        controller.subscribe("heartbeat.*").await.unwrap(),
        controller.subscribe("time").await.unwrap(),
    );
    let answering = controller.clone();
    tokio::spawn(async move {
        while let Some(question) = asked.recv().await {
            answering.publish(&question.reply.unwrap(), "now".into());
        }
    });
    // Allowed.
    let mut beacons = agent.subscribe("beacon").await.unwrap();
    let mut orders = agent.subscribe("written.run.*.desired").await.unwrap();
    assert_eq!(again(async || agent.read("run.r.plan").await).await, None);
    until(async || {
        agent.publish("heartbeat.a", "here".into());
        timeout(Duration::from_millis(200), heard.recv()).await.is_ok()
    })
    .await;
    until(async || {
        controller.publish("beacon", "lit".into());
        timeout(Duration::from_millis(200), beacons.recv()).await.is_ok()
    })
    .await;
    assert_eq!(again(async || agent.request("time", "".into(), PATIENCE).await).await, "now");
    until(async || agent.append("lines.r.a", "1", "line".into()).await.is_ok()).await;
    let own = answer(async || agent.write("agent.a", 0, "me".into()).await).await;
    assert!(matches!(own, Ok(_) | Err(BusError::Conflict)), "{own:?}");
    assert_eq!(again(async || agent.keys("agent.*").await).await, ["agent.a"]);
    let blob = Bytes::from(vec![7; 300_000]);
    let name = again(async || controller.store(blob.clone()).await).await;
    assert!(again(async || agent.fetch(&name).await).await == Some(blob.clone()));
    let _ = answer(async || controller.write("run.r.desired", 0, "go".into()).await).await;
    let order = timeout(PATIENCE, orders.recv()).await.unwrap().unwrap();
    assert_eq!((order.subject.as_str(), order.payload), ("written.run.r.desired", "go".into()));
    // Forbidden.
    for key in ["run.r.desired", "lease", "agent.b"] {
        is_refused(answer(async || agent.write(key, 0, "x".into()).await).await, key);
    }
    for subject in ["lines.r.b", "a"] {
        is_refused(answer(async || agent.append(subject, "2", "x".into()).await).await, subject);
    }
    for pattern in ["heartbeat.*", ">", "written.>", "log.>"] {
        is_refused(agent.subscribe(pattern).await, pattern);
    }
    is_refused(answer(async || agent.follow("lines.>", 0).await).await, "follow");
    is_refused(answer(async || agent.store("mine".into()).await).await, "store");
    is_refused(answer(async || agent.furnish(Room::default()).await).await, "furnish");
    let other = agent.request("heartbeat.b", "".into(), Duration::from_secs(9)).await;
    is_refused(other, "request");
    // It stays connected meanwhile; only a refused message without an operation ends it.
    assert_eq!(again(async || agent.read("run.r.plan").await).await, None);
    agent.publish("beacon", "false".into());
    assert!(refused(&agent).await.contains("use `thr.beacon`"));
    let mut log = controller.follow(">", 0).await.unwrap();
    assert_eq!(timeout(PATIENCE, log.recv()).await.unwrap().unwrap().payload, "line");
    assert!(timeout(Duration::from_millis(500), log.recv()).await.is_err(), "nothing else is kept");
}

#[tokio::test]
async fn strangers_are_refused_with_a_reason() {
    let mut fleet = Fleet::start();
    let others = tempfile::tempdir().unwrap();
    let mut others = keys(&others, fleet.keys.address(), wall_now());
    let strange = others.admit("a", wall_now(), DAY).unwrap().identity;
    let old = fleet.keys.admit("old", wall_now() - 2 * DAY, DAY).unwrap().identity;
    let good = fleet.keys.admit("a", wall_now(), DAY).unwrap().identity;
    fleet.server().reload().unwrap();
    let good_tls = good.tls.clone().unwrap();
    let with =
        |seed: Option<String>, tls: Certificates| Identity { seed, tls: Some(tls), ..good.clone() };
    let unsigned = {
        let tls = strange.tls.clone().unwrap();
        Certificates { authority: good_tls.authority.clone(), ..tls }
    };
    let other_key = KeyPair::new_user().seed().ok();
    let cases = [
        (strange.clone(), "did not present a certificate of this fleet"),
        (
            with(good.seed.clone(), unsigned),
            "does not trust the issuer of this machine's certificate",
        ),
        (old, "the certificate of `old` has expired"),
        (with(other_key, good_tls.clone()), "rejects the key of `a`"),
        (with(None, good_tls.clone()), "rejects the key of `a`"),
    ];
    for (identity, wanted) in cases {
        let bus = Nats::connect(identity).unwrap();
        let said = refused(&bus).await;
        assert!(said.contains(wanted), "{said}");
        let read = bus.read("x").await;
        assert!(matches!(read, Err(BusError::Refused(_))), "{read:?}");
    }
    let bus = Nats::connect(good).unwrap();
    let mut link = bus.link();
    timeout(PATIENCE, link.wait_for(|link| *link == Link::Up)).await.unwrap().unwrap();
    // A removed agent is disconnected immediately.
    fleet.keys.dismiss("a").unwrap();
    fleet.server().reload().unwrap();
    assert!(refused(&bus).await.contains("rejects the key of `a`"));
}

#[tokio::test]
async fn an_expired_certificate_and_one_for_another_address_are_reported() {
    let years = 11 * 365 * DAY;
    let old = Fleet::with(wall_now() - years, |_| {});
    let bus = Nats::connect(old.keys.controller().unwrap()).unwrap();
    assert!(refused(&bus).await.contains("has expired, or the clock of this machine is wrong"));
    let fleet = Fleet::start();
    let mut elsewhere = fleet.keys.controller().unwrap();
    elsewhere.address.set_ip([127, 0, 0, 2].into());
    // The same port on another address of this machine reaches the same server.
    let (there, here) = (TcpListener::bind(elsewhere.address).unwrap(), fleet.keys.address());
    std::thread::spawn(move || {
        for stream in there.incoming().map_while(Result::ok) {
            let onward = TcpStream::connect(here).unwrap();
            let (mut from, mut to) = (stream.try_clone().unwrap(), onward.try_clone().unwrap());
            std::thread::spawn(move || io::copy(&mut from, &mut to));
            let (mut from, mut to) = (onward, stream);
            std::thread::spawn(move || io::copy(&mut from, &mut to));
        }
    });
    let bus = Nats::connect(elsewhere).unwrap();
    assert!(refused(&bus).await.contains("was not issued for the address 127.0.0.2"));
}

#[tokio::test]
async fn nothing_is_sent_without_tls_and_a_server_without_tls_is_refused() {
    let fleet = Fleet::start();
    let mut plain = TcpStream::connect(fleet.keys.address()).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n").unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.windows(4).any(|part| part == b"INFO" || part == b"PONG"), "{said:?}");
    // And a server that starts without TLS.
    let address = serve(b"INFO {\"server_id\":\"x\",\"version\":\"2.15.1\"}\r\n".to_vec());
    let identity = Identity { address, ..fleet.keys.controller().unwrap() };
    let bus = Nats::connect(identity).unwrap();
    assert!(
        refused(&bus)
            .await
            .contains("does not start its connections with TLS, so it is not a throng bus")
    );
}

#[tokio::test]
async fn an_outdated_server_is_refused_by_its_greeting() {
    let info = "INFO {\"server_id\":\"x\",\"server_name\":\"x\",\"host\":\"x\",\"port\":1,\
                \"version\":\"2.9.10\",\"go\":\"go\",\"headers\":true,\"max_payload\":1048576,\
                \"proto\":1,\"client_id\":1}\r\n";
    let address = serve(info.as_bytes().to_vec());
    let identity = Identity { name: "a".to_string(), address, tls: None, seed: None };
    let said = refused(&Nats::connect(identity).unwrap()).await;
    assert_eq!(said, "the bus runs nats-server 2.9.10, but throng requires 2.15.0 or later");
}

/// Greets all clients, and replies to their pings.
fn serve(greeting: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let greeting = greeting.clone();
            std::thread::spawn(move || {
                let _ = stream.write_all(&greeting);
                let mut heard = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut heard) {
                    if heard[..length].windows(4).any(|part| part == b"PING") {
                        let _ = stream.write_all(b"PONG\r\n");
                    }
                }
            });
        }
    });
    address
}
