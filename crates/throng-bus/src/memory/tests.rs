//! The in-memory bus keeps its guarantees under faults.

use super::*;

fn faulty() -> Faults {
    let delay_max = Duration::from_millis(40);
    Faults { lost: 50_000, doubled: 50_000, unanswered: 100_000, delay_max }
}

#[tokio::test(start_paused = true)]
async fn acknowledged_entries_are_in_the_log_once_and_in_order() {
    for seed in 0..20 {
        let bus = Memory::new(seed, faulty());
        let (agent, controller) = (bus.join("a"), bus.join("desk"));
        let mut lines = controller.follow("m.*.a", 0).await.expect("a log");
        for number in 0..50_u64 {
            if number == 20 {
                let bus = bus.clone();
                bus.cut("a", true);
                tokio::spawn(async move {
                    sleep(Duration::from_secs(9)).await;
                    bus.cut("a", false);
                });
            }
            let id = format!("r.a.{number}");
            let payload = Bytes::from(number.to_string());
            while agent.append("m.r.a", &id, payload.clone()).await.is_err() {}
        }
        for number in 0..50_u64 {
            let line = lines.recv().await.expect("a line");
            assert_eq!(
                (line.sequence, &*line.payload),
                (number + 1, number.to_string().as_bytes())
            );
        }
        assert_eq!(bus.log("m.>").len(), 50, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_concurrent_writes_wins() {
    let bus = Memory::new(1, Faults { delay_max: Duration::from_millis(5), ..Faults::default() });
    let (one, other) = (bus.join("one"), bus.join("other"));
    let mut told = other.subscribe("written.lease").await.unwrap();
    let (first, second) =
        tokio::join!(one.write("lease", 0, "1".into()), other.write("lease", 0, "2".into()));
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    let entry = one.read("lease").await.unwrap().unwrap();
    let message = told.recv().await.unwrap();
    assert_eq!((message.revision, message.payload), (Some(entry.revision), entry.value));
    assert_eq!(one.write("lease", 9, "3".into()).await, Err(BusError::Conflict));
    assert_eq!(one.keys("le*").await.unwrap(), Vec::<String>::new());
    assert_eq!(one.keys(">").await.unwrap(), vec!["lease"]);
}

#[tokio::test(start_paused = true)]
async fn requests_get_replies_and_a_disconnect_is_noticed() {
    let bus = Memory::new(1, Faults::default());
    let (one, other) = (bus.join("one"), bus.join("other"));
    let mut asked = other.subscribe("time").await.unwrap();
    let answering = other.clone();
    tokio::spawn(async move {
        while let Some(message) = asked.recv().await {
            answering.publish(&message.reply.unwrap(), "now".into());
        }
    });
    let second = Duration::from_secs(1);
    assert_eq!(one.request("time", "".into(), second).await, Ok("now".into()));
    assert_eq!(one.request("other", "".into(), second).await, Err(BusError::Cut));
    let mut link = one.link();
    bus.cut("one", true);
    link.wait_for(|link| *link == Link::Cut).await.unwrap();
    assert_eq!(one.read("x").await, Err(BusError::Cut));
    bus.cut("one", false);
    link.wait_for(|link| *link == Link::Up).await.unwrap();
    assert_eq!(one.read("x").await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_full_log_is_reported_and_blobs_are_named_by_digest() {
    let bus = Memory::new(1, Faults::default());
    let one = bus.join("one");
    bus.set_log_max(1);
    assert_eq!(one.append("m.r.a", "1", "x".into()).await, Ok(()));
    assert_eq!(one.append("m.r.a", "1", "x".into()).await, Ok(()), "it is there");
    assert_eq!(one.append("m.r.a", "2", "x".into()).await, Err(BusError::Full));
    let name = one.store("abc".into()).await.unwrap();
    assert_eq!(name, Digest::Sha256.of(b"abc"));
    assert_eq!(one.fetch(&name).await, Ok(Some("abc".into())));
    assert_eq!(one.fetch("0").await, Ok(None));
}
