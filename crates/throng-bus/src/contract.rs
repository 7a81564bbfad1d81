//! The contract of a bus, tested on the in-memory bus and on the real one.

use std::time::Duration;

use bytes::Bytes;
use throng_extract::Digest;
use tokio::time::{sleep, timeout};

use crate::memory::{Faults, Memory};
use crate::{Bus, BusError, Following, Link, PAYLOAD_BYTES_MAX, Subscription};

/// Time limit for anything, for slow machines.
const PATIENCE: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);

/// The whole contract, for two machines with all rights.
pub(crate) async fn keep(one: &impl Bus, other: &impl Bus) {
    for bus in [one.link(), other.link()] {
        let mut link = bus;
        timeout(PATIENCE, link.wait_for(|link| *link == Link::Up)).await.unwrap().unwrap();
    }
    messages(one, other).await;
    questions(one, other).await;
    log(one, other).await;
    registers(one, other).await;
    blobs(one, other).await;
}

async fn messages(one: &impl Bus, other: &impl Bus) {
    let mut all = other.subscribe("c.*.x").await.unwrap();
    let mut rest = other.subscribe("c.>").await.unwrap();
    let mut none = other.subscribe("c.a.y").await.unwrap();
    for number in 0..10_u8 {
        one.publish("c.a.x", Bytes::from(vec![number]));
    }
    for number in 0..10_u8 {
        for told in [&mut all, &mut rest] {
            let message = next(told).await;
            assert_eq!((message.0.as_str(), &*message.1), ("c.a.x", &[number][..]));
        }
    }
    assert!(timeout(SHORT, none.recv()).await.is_err(), "it was not meant");
    drop(all);
    other.publish("c.b.x", "own".into());
    assert_eq!(next(&mut rest).await.0, "c.b.x", "a machine hears itself, too");
}

async fn next(told: &mut Subscription) -> (String, Bytes) {
    let message = timeout(PATIENCE, told.recv()).await.expect("in time").expect("a message");
    assert_eq!((message.reply, message.revision), (None, None));
    (message.subject, message.payload)
}

async fn questions(one: &impl Bus, other: &impl Bus) {
    let mut asked = other.subscribe("time").await.unwrap();
    let answered = async {
        let question = asked.recv().await.unwrap();
        assert_eq!((question.subject.as_str(), &*question.payload), ("time", &b"when"[..]));
        other.publish(&question.reply.unwrap(), "now".into());
    };
    let (answer, ()) = tokio::join!(one.request("time", "when".into(), PATIENCE), answered);
    assert_eq!(answer, Ok("now".into()));
    assert_eq!(one.request("nobody", "".into(), SHORT).await, Err(BusError::Cut));
    // A listener that does not reply has the same effect.
    assert_eq!(one.request("time", "".into(), SHORT).await, Err(BusError::Cut));
}

async fn log(one: &impl Bus, other: &impl Bus) {
    let mut early = other.follow("m.*.a", 0).await.unwrap();
    for number in 0..40_u32 {
        let agent = if number % 4 == 3 { "m.r.b" } else { "m.r.a" };
        let id = format!("r.{number}");
        let payload = Bytes::from(number.to_string());
        appended(one, agent, &id, &payload).await;
        appended(one, agent, &id, &payload).await;
    }
    let own: Vec<u32> = (0..40).filter(|number| number % 4 != 3).collect();
    let (first, last) = lines(&mut early, &own).await;
    let mut late = one.follow("m.>", 0).await.unwrap();
    lines(&mut late, &(0..40).collect::<Vec<_>>()).await;
    let mut middle = one.follow("m.*.a", first + 1).await.unwrap();
    lines(&mut middle, &own[1..]).await;
    let mut end = one.follow("m.*.a", last + 1).await.unwrap();
    appended(other, "m.r.a", "r.40", &"40".into()).await;
    lines(&mut end, &[40]).await;
    // The maximum size, of incompressible bytes.
    let largest =
        (0..PAYLOAD_BYTES_MAX as u64).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 24) as u8);
    let largest: Bytes = largest.collect::<Vec<u8>>().into();
    let mut large = one.follow("m.large", 0).await.unwrap();
    appended(one, "m.large", "r.large", &largest).await;
    let line = timeout(PATIENCE, large.recv()).await.expect("in time").expect("a line");
    assert!(line.payload == largest, "{} bytes", line.payload.len());
    let long = Bytes::from(vec![0; PAYLOAD_BYTES_MAX + 1]);
    let refused = one.append("m.r.a", "r.41", long).await;
    assert!(matches!(refused, Err(BusError::Refused(_))), "{refused:?}");
}

async fn appended(bus: &impl Bus, subject: &str, id: &str, payload: &Bytes) {
    let until = async {
        while bus.append(subject, id, payload.clone()).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, until).await.expect("the log takes it");
}

/// Expects these lines in order without gaps; returns the first and the last sequence.
async fn lines(following: &mut Following, wanted: &[u32]) -> (u64, u64) {
    let mut sequences = Vec::new();
    for (at, number) in wanted.iter().enumerate() {
        let line = timeout(PATIENCE, following.recv()).await.expect("in time").expect("a line");
        assert_eq!(&*line.payload, number.to_string().as_bytes());
        assert!(sequences.last().is_none_or(|last| *last < line.sequence));
        assert!(line.behind <= wanted.len() as u64 - 1 - at as u64, "{line:?}");
        sequences.push(line.sequence);
    }
    (sequences[0], sequences[sequences.len() - 1])
}

async fn registers(one: &impl Bus, other: &impl Bus) {
    let mut told = other.subscribe("written.run.*.desired").await.unwrap();
    assert_eq!(again(async || one.read("run.r.desired").await).await, None);
    let first = written(one, "run.r.desired", 0, "a").await.unwrap();
    assert_eq!(written(other, "run.r.desired", 0, "b").await, None);
    let elsewhere = written(other, "agent.b", 0, "x").await.unwrap();
    let second = written(other, "run.r.desired", first, "c").await.unwrap();
    assert!(first >= 1 && elsewhere > first && second > elsewhere);
    assert_eq!(written(one, "run.r.desired", first, "d").await, None);
    let entry = again(async || one.read("run.r.desired").await).await.unwrap();
    assert_eq!((entry.revision, entry.value), (second, Bytes::from("c")));
    for (revision, value) in [(first, "a"), (second, "c")] {
        let message = timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
        assert_eq!(message.subject, "written.run.r.desired");
        assert_eq!((message.revision, &*message.payload), (Some(revision), value.as_bytes()));
    }
    // Of two concurrent writes, one wins.
    let (left, right) =
        tokio::join!(written(one, "lease", 0, "1"), written(other, "lease", 0, "2"));
    assert!(left.is_some() != right.is_some(), "{left:?} {right:?}");
    let keys = async |pattern| again(async || one.keys(pattern).await).await;
    assert_eq!(keys(">").await, ["agent.b", "lease", "run.r.desired"]);
    assert_eq!(keys("run.*.desired").await, ["run.r.desired"]);
    assert_eq!(keys("plan.>").await, Vec::<String>::new());
}

/// Repeats until there is a reply: a busy machine may take long.
async fn again<T>(mut ask: impl AsyncFnMut() -> Result<T, BusError>) -> T {
    let tried = async {
        loop {
            match ask().await {
                Err(BusError::Cut) => {}
                done => return done.unwrap(),
            }
        }
    };
    timeout(PATIENCE, tried).await.expect("in time")
}

/// The new revision, or None after a conflict. Reads the value if there was no reply.
async fn written(bus: &impl Bus, key: &str, expected: u64, value: &str) -> Option<u64> {
    loop {
        match bus.write(key, expected, Bytes::from(value.to_string())).await {
            Ok(revision) => return Some(revision),
            Err(BusError::Conflict) => return None,
            other => assert_eq!(other, Err(BusError::Cut)),
        }
        let entry = again(async || bus.read(key).await).await;
        if let Some(entry) = entry.filter(|entry| entry.revision > expected) {
            return (entry.value == value).then_some(entry.revision);
        }
    }
}

async fn blobs(one: &impl Bus, other: &impl Bus) {
    let pattern = |length: usize| (0..length).map(|at| ((at * at) >> 7) as u8).collect::<Vec<_>>();
    for length in [0, 1, 128 << 10, (128 << 10) + 1, 3_000_000] {
        let blob = Bytes::from(pattern(length));
        let name = again(async || one.store(blob.clone()).await).await;
        assert_eq!(name, Digest::Sha256.of(&blob));
        let twice = again(async || one.store(blob.clone()).await).await;
        assert_eq!(twice, name, "twice is once");
        let fetched = again(async || other.fetch(&name).await).await;
        assert!(fetched == Some(blob), "{length} bytes");
    }
    let absent = Digest::Sha256.of(b"not there");
    assert_eq!(again(async || other.fetch(&absent).await).await, None);
    assert_eq!(other.fetch("0").await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn the_bus_in_memory_meets_the_contract() {
    for seed in 0..5 {
        let delay_max = Duration::from_millis(0);
        let bus = Memory::new(seed, Faults { delay_max, ..Faults::default() });
        keep(&bus.join("one"), &bus.join("other")).await;
    }
}
