//! Complete chat servers on loopback, tested with small clients on std sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::chat::packets::{gift, join, leave, light, like, ping, speak};
use crate::tests::{connect, end_of, get, options, until};
use crate::{DeliveryStats, FaultOptions, Options, Running, Stats, TargetKind, start};

const JOINED: u8 = 2;
const DONE: u8 = 5;
const SAID: u8 = 8;
const PONG: u8 = 10;

fn chat(options: Options) -> Running {
    start(TargetKind::Chat, options).unwrap()
}

fn faulty(faults: FaultOptions) -> Running {
    chat(Options { faults, ..options() })
}

fn deliveries(stats: &Stats) -> DeliveryStats {
    stats.deliveries.clone().unwrap()
}

/// A received packet: its kind, its seq and its body.
type Came = (u8, u32, Vec<u8>);

fn hear(stream: &mut TcpStream) -> Came {
    let mut head = [0; 11];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..2], [0xC4, 0xA7]);
    let length = u32::from_be_bytes(head[2..6].try_into().unwrap()) as usize;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (head[6], u32::from_be_bytes(head[7..].try_into().unwrap()), body)
}

fn ask(stream: &mut TcpStream, packet: &[u8]) -> Came {
    stream.write_all(packet).unwrap();
    hear(stream)
}

/// The code of `joined` or `done`.
fn code((_, _, body): &Came) -> u16 {
    u16::from_be_bytes([body[0], body[1]])
}

/// The id of the message that was `said`.
fn id_of((kind, seq, body): &Came) -> u64 {
    assert_eq!((*kind, *seq), (SAID, 0));
    u64::from_be_bytes(body[8..16].try_into().unwrap())
}

/// A connection whose user is in a room, and the number of users there.
fn enter(running: &Running, room: u64, user: u64) -> (TcpStream, u32) {
    let mut stream = connect(running.listen);
    let joined = ask(&mut stream, &join(1, room, user, &format!("t-{user}")));
    assert_eq!((joined.0, joined.1, code(&joined)), (JOINED, 1, 0));
    (stream, u32::from_be_bytes(joined.2[2..].try_into().unwrap()))
}

/// Sends `count` messages to room 1 and receives until the last `done` and `said`.
fn say_many(stream: &mut TcpStream, count: u64) -> Vec<u64> {
    let mut heard = Vec::new();
    for id in 1..=count {
        stream.write_all(&speak(id as u32, id, "hello")).unwrap();
        let came = loop {
            match hear(stream) {
                came if came.0 == DONE => break came,
                came => heard.push(id_of(&came)),
            }
        };
        assert_eq!((came.1, code(&came)), (id as u32, 0));
    }
    heard
}

/// Receives until this many messages have arrived.
fn hear_more(stream: &mut TcpStream, heard: &mut Vec<u64>, count: usize) {
    while heard.len() < count {
        heard.push(id_of(&hear(stream)));
    }
}

/// Receives the messages that are already written; the kernel may still be delivering them.
fn hear_rest(stream: &mut TcpStream, heard: &mut Vec<u64>) {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut byte = [0];
    while stream.peek(&mut byte).is_ok_and(|n| n == 1) {
        heard.push(id_of(&hear(stream)));
    }
}

#[test]
fn messages_reach_all_members_of_the_room() {
    let running = chat(Options { workers: Some(4), ..Options::default() });
    let mut members: Vec<TcpStream> = Vec::new();
    for user in 0..20 {
        let (stream, online) = enter(&running, 1, user);
        assert_eq!(u64::from(online), user + 1);
        members.push(stream);
    }
    let (mut elsewhere, online) = enter(&running, 2, 99);
    assert_eq!(online, 1);
    members[3].write_all(&speak(5, 1234, "hi ü")).unwrap();
    for (user, member) in members.iter_mut().enumerate() {
        let mut came = hear(member);
        if came.0 == DONE {
            assert_eq!((user, came.1, code(&came)), (3, 5, 0));
            came = hear(member);
        }
        assert_eq!(id_of(&came), 1234);
        let (from, rest) = came.2.split_at(8);
        assert_eq!(from, 3u64.to_be_bytes());
        assert_eq!(rest[8..16], 77u64.to_be_bytes());
        assert_eq!(&rest[16..], "\0\u{5}hi ü".as_bytes());
    }
    assert_eq!(ask(&mut elsewhere, &ping(8)), (PONG, 8, Vec::new()));
    let stats = running.stop();
    let chat = stats.chat.unwrap();
    assert_eq!((chat.rooms, chat.online, chat.joins, chat.says), (2, 21, 21, 1));
    let wanted = DeliveryStats { owed: 20, written: 20, ..DeliveryStats::default() };
    assert_eq!(stats.deliveries, Some(wanted));
    assert_eq!((stats.logged_in, stats.heartbeats), (21, 1));
}

#[test]
fn requests_get_replies_and_count_for_the_room() {
    let admin = Some("127.0.0.1:0".parse().unwrap());
    let running = chat(Options { admin, ..options() });
    let (mut stream, _) = enter(&running, 7, 1);
    stream.write_all(&like(2, 9)).unwrap();
    assert_eq!(ask(&mut stream, &gift(3)), (DONE, 3, vec![0, 0]));
    assert_eq!(ask(&mut stream, &light(4)), (DONE, 4, vec![0, 0]));
    say_many(&mut stream, 2);
    until(&running, |stats| deliveries(stats).written == 2);
    let room = get(running.admin.unwrap(), "/room/7").json();
    for (field, value) in [("online", 1), ("messages", 2), ("likes", 9), ("gifts", 1)] {
        assert_eq!(room[field], value, "{room}");
    }
    assert_eq!(
        (&room["deliveries"]["written"], &room["deliveries"]["lost"]),
        (&2.into(), &0.into())
    );
    assert_eq!(get(running.admin.unwrap(), "/online").json()["online"], 1);
    assert_eq!(get(running.admin.unwrap(), "/room/8").status(), 404);
    assert_eq!(get(running.admin.unwrap(), "/rooms").status(), 404);
    let stats = get(running.admin.unwrap(), "/throng/stats").json();
    assert_eq!((&stats["chat"]["likes"], &stats["chat"]["lights"]), (&9.into(), &1.into()));
}

#[test]
fn requests_outside_a_room_are_refused() {
    let running = chat(options());
    let mut stream = connect(running.listen);
    for packet in [gift(3), speak(3, 1, "x"), light(3), like(3, 1)] {
        assert_eq!(ask(&mut stream, &packet), (DONE, 3, 403u16.to_be_bytes().to_vec()));
    }
    assert_eq!(ask(&mut stream, &ping(4)).0, PONG);
    for token in ["t-8", "7", "", "t-", "t-x"] {
        assert_eq!(code(&ask(&mut stream, &join(5, 1, 7, token))), 401, "{token}");
    }
    let chat = running.stats().chat.unwrap();
    assert_eq!((chat.before_join, chat.joins_refused, chat.online), (4, 5, 0));
    let long = "x".repeat(65_511);
    assert_eq!(code(&ask(&mut stream, &join(5, 1, 7, "t-7"))), 0);
    assert_eq!(code(&ask(&mut stream, &speak(6, 1, &long))), 413);
}

#[test]
fn a_second_login_closes_the_first_gracefully() {
    let running = chat(Options { workers: Some(3), ..Options::default() });
    let (mut other, _) = enter(&running, 1, 50);
    let (mut latest, mut online) = enter(&running, 1, 7);
    for _ in 0..10 {
        let mut first = latest;
        (latest, online) = enter(&running, 1, 7);
        assert_eq!(online, 2, "a user is counted once");
        assert_eq!(end_of(&mut first).unwrap(), 0, "closed, not reset");
    }
    let mut heard = say_many(&mut other, 1);
    hear_more(&mut other, &mut heard, 1);
    assert_eq!((heard, online), (vec![1], 2));
    assert_eq!(id_of(&hear(&mut latest)), 1);
    let stats = until(&running, |stats| stats.connections.open == 2);
    assert_eq!((stats.double_logins, stats.connections.closed_by_us, stats.logged_in), (10, 10, 2));
    assert_eq!((stats.chat.unwrap().online, stats.deliveries.unwrap().owed), (2, 2));
}

#[test]
fn a_user_that_left_is_offline() {
    let running = chat(Options { workers: Some(3), ..Options::default() });
    let mut members: Vec<_> = (0..9).map(|user| enter(&running, 1, user).0).collect();
    members[0].write_all(&leave()).unwrap();
    assert_eq!(end_of(&mut members[0]).unwrap(), 0);
    members[1].shutdown(Shutdown::Write).unwrap();
    let reset = members.remove(2);
    socket2::SockRef::from(&reset).set_linger(Some(Duration::ZERO)).unwrap();
    drop(reset);
    // Bytes that are not a packet.
    members[2].write_all(b"GET / HTTP/1.1\r\n").unwrap();
    assert_eq!(end_of(&mut members[2]).unwrap(), 0);
    let stats = until(&running, |stats| stats.logged_in == 5);
    let chat = stats.chat.unwrap();
    assert_eq!((chat.online, chat.leaves, chat.bad_magic), (5, 1, 1));
    // A user may enter another room on the same connection, with a different user ID.
    assert_eq!(code(&ask(&mut members[4], &join(2, 9, 1000, "t-1000"))), 0);
    assert_eq!(running.stats().chat.unwrap().online, 5);
    assert_eq!(running.stats().double_logins, 0);
}

#[test]
fn users_may_change_rooms_in_any_order() {
    let running = chat(Options { workers: Some(2), ..Options::default() });
    let mut random = throng_base::Random::for_owner(7, 7);
    let mut members: Vec<_> = (0..12u64).map(|user| (enter(&running, 0, user).0, 0)).collect();
    for _ in 0..200 {
        let user = random.below(12);
        let (stream, room) = &mut members[user as usize];
        *room = random.below(3);
        let token = format!("t-{user}");
        assert_eq!(code(&ask(stream, &join(1, *room, user, &token))), 0);
    }
    let room = members[0].1;
    let inside = members.iter().filter(|(_, its)| *its == room).count() as u64;
    let heard = say_many(&mut members[0].0, 5).len() as u64;
    for (stream, its) in &mut members[1..] {
        if *its == room {
            assert_eq!([0; 5].map(|_| id_of(&hear(stream))), [1, 2, 3, 4, 5]);
        } else {
            assert_eq!(ask(stream, &ping(1)).0, PONG, "what was said elsewhere is not heard");
        }
    }
    assert!(heard <= 5);
    let stats = until(&running, |stats| deliveries(stats).owed >= 5 * inside);
    assert_eq!((deliveries(&stats).owed, deliveries(&stats).written), (5 * inside, 5 * inside));
    assert_eq!((stats.double_logins, stats.chat.unwrap().online), (0, 12));
}

#[test]
fn bad_packets_close_the_connection_and_are_counted_by_reason() {
    let running = chat(options());
    let mut long = ping(1);
    long[3] = 1;
    long[5] = 1;
    let mut kind = ping(1);
    kind[6] = 8;
    let mut body = like(1, 1);
    body[11] = 0x80;
    for bytes in [b"GET / HTTP/1.1".to_vec(), long, kind, body] {
        let mut stream = connect(running.listen);
        stream.write_all(&bytes).unwrap();
        assert_eq!(end_of(&mut stream).unwrap(), 0);
    }
    let stats = running.stats();
    let chat = stats.chat.unwrap();
    let counts = [chat.bad_magic, chat.bad_length, chat.bad_kind, chat.bad_body];
    assert_eq!((counts, stats.refused), ([1; 4], 4));
}

#[test]
fn packets_may_be_split_anywhere() {
    let running = chat(options());
    let (mut stream, _) = enter(&running, 1, 1);
    let mut said = 0;
    throng_fuzz::splits(&[like(7, 1), speak(8, 5, "abc"), ping(9)].concat(), |parts| {
        parts.iter().for_each(|part| stream.write_all(part).unwrap());
        let mut came: Vec<Came> = (0..3).map(|_| hear(&mut stream)).collect();
        came.sort_by_key(|(kind, ..)| *kind);
        assert_eq!((came[0].0, came[0].1, code(&came[0])), (DONE, 8, 0));
        assert_eq!((id_of(&came[1]), &came[2]), (5, &(PONG, 9, Vec::new())));
        said += 1;
    });
    let stats = running.stop();
    assert_eq!((stats.messages, stats.chat.unwrap().likes), (3 * said + 1, said));
}

#[test]
fn fuzz_a_chat_server_survives_garbage() {
    let running = chat(options());
    let corpus = [join(1, 1, 7, "t-7"), speak(2, 9, "hello"), like(3, 5), gift(4), leave()];
    let whole = corpus.concat();
    let mut tried = 0;
    throng_fuzz::mutations(&[&whole, &corpus[0]], |input, _| {
        tried += 1;
        if tried > 300 {
            return;
        }
        let mut stream = connect(running.listen);
        // The server may close before it has read all of it.
        let _ = stream.write_all(input);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.logged_in, stats.chat.unwrap().online), (0, 0));
    enter(&running, 1, 1);
}

/// Ten members of a room on several workers, one of which sends 100 messages; returns what each
/// received after all delayed deliveries.
fn talk(running: &Running) -> Vec<Vec<u64>> {
    let mut members: Vec<_> = (0..10).map(|user| enter(running, 1, user).0).collect();
    let mut heard = vec![Vec::new(); 10];
    heard[0] = say_many(&mut members[0], 100);
    until(running, |stats| {
        let done = deliveries(stats);
        done.owed == 1000 && done.written + done.lost == done.owed + done.twice
    });
    for (member, heard) in members.iter_mut().zip(&mut heard) {
        hear_rest(member, heard);
    }
    heard
}

fn count(heard: &[Vec<u64>]) -> u64 {
    heard.iter().map(|heard| heard.len() as u64).sum()
}

#[test]
fn every_nth_delivery_is_lost_exactly() {
    let running = faulty(FaultOptions { lose_every: Some(7), ..FaultOptions::default() });
    let heard = talk(&running);
    assert_eq!(count(&heard), 1000 - 1000 / 7);
    let wanted = DeliveryStats { owed: 1000, lost: 142, written: 858, ..Default::default() };
    assert_eq!(deliveries(&running.stop()), wanted);
}

#[test]
fn every_nth_delivery_is_sent_twice() {
    let running = faulty(FaultOptions { twice_every: Some(50), ..FaultOptions::default() });
    let heard = talk(&running);
    assert_eq!(count(&heard), 1020);
    let again = |heard: &Vec<u64>| heard.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(heard.iter().map(again).sum::<usize>(), 20);
    let wanted = DeliveryStats { owed: 1000, twice: 20, written: 1020, ..Default::default() };
    assert_eq!(deliveries(&running.stop()), wanted);
}

#[test]
fn every_nth_delivery_is_swapped_with_the_next() {
    let running = faulty(FaultOptions { swap_every: Some(33), ..FaultOptions::default() });
    let mut heard = talk(&running);
    // A delivery that is still held back at the end is not lost: it is sent after a timeout.
    assert_eq!(count(&heard), 1000);
    let swaps = |heard: &Vec<u64>| heard.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    let swapped = deliveries(&running.stats()).swapped;
    assert_eq!(heard.iter().map(swaps).sum::<u64>(), swapped);
    assert!((20..=30).contains(&swapped), "{swapped}");
    heard.iter_mut().for_each(|heard| heard.sort_unstable());
    assert!(heard.iter().all(|heard| heard.iter().copied().eq(1..=100)));
}

#[test]
fn every_nth_delivery_is_late_by_the_given_time() {
    let late_by = Duration::from_millis(150);
    let faults = FaultOptions { late_every: Some(500), late_by, ..FaultOptions::default() };
    let running = faulty(faults);
    let clock = throng_base::Clock::start();
    let heard = talk(&running);
    assert_eq!(count(&heard), 1000);
    assert!(clock.now() - throng_base::Time::ZERO >= late_by);
    let wanted = DeliveryStats { owed: 1000, late: 2, written: 1000, ..Default::default() };
    assert_eq!(deliveries(&running.stop()), wanted);
}

#[test]
fn every_nth_delivery_is_garbled() {
    let faults = FaultOptions { garbage_every: Some(3), ..FaultOptions::default() };
    let running = faulty(faults);
    let (mut stream, _) = enter(&running, 1, 1);
    let mut kinds = Vec::new();
    for id in 1..=6 {
        stream.write_all(&speak(1, id, "x")).unwrap();
        let came = [hear(&mut stream).0, hear(&mut stream).0];
        kinds.extend(came.into_iter().filter(|kind| *kind != DONE));
    }
    assert_eq!(kinds, [SAID, SAID, SAID | 0x80, SAID, SAID, SAID | 0x80]);
    assert_eq!(deliveries(&running.stats()).garbage, 2);
}

#[test]
fn every_nth_join_is_forgotten() {
    let running = faulty(FaultOptions { forget_every: Some(4), ..FaultOptions::default() });
    let mut members: Vec<_> = (1..=8).map(|user| enter(&running, 1, user).0).collect();
    let chat = running.stats().chat.unwrap();
    assert_eq!((chat.joins, chat.joins_forgotten, chat.online), (8, 2, 6));
    // A forgotten member is not told, and receives no messages.
    assert_eq!(ask(&mut members[3], &speak(2, 1, "x")), (DONE, 2, vec![0, 0]));
    assert_eq!(id_of(&hear(&mut members[0])), 1);
    until(&running, |stats| deliveries(stats).written == 6);
    drop(members);
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.logged_in, stats.chat.unwrap().online), (0, 0));
}

#[test]
fn batched_messages_are_written_together() {
    let batch = Duration::from_millis(100);
    let running = chat(Options { batch: Some(batch), workers: Some(1), ..Options::default() });
    let (mut stream, _) = enter(&running, 1, 1);
    let (mut other, _) = enter(&running, 1, 2);
    let packets: Vec<u8> = (1..=5).flat_map(|id| speak(id as u32, id, "x")).collect();
    stream.write_all(&packets).unwrap();
    (1..=5).for_each(|seq| assert_eq!((DONE, seq), (hear(&mut stream).0, seq)));
    assert_eq!(deliveries(&running.stats()).written, 0, "not at once");
    let mut buffer = [0; 1000];
    let packet = 11 + 27;
    assert_eq!(other.read(&mut buffer).unwrap(), 5 * packet);
}

#[test]
fn only_members_that_do_not_read_lose_deliveries() {
    let running = chat(options());
    let (mut stream, _) = enter(&running, 1, 1);
    let (deaf, _) = enter(&running, 1, 2);
    socket2::SockRef::from(&deaf).set_recv_buffer_size(4096).unwrap();
    let text = "x".repeat(60_000);
    let mut said = 0;
    while deliveries(&running.stats()).dropped == 0 {
        said += 1;
        stream.write_all(&speak(said, u64::from(said), &text)).unwrap();
        (0..2).for_each(|_| drop(hear(&mut stream)));
        assert!(said < 2000);
    }
    // The other worker may still be about to deliver the same message.
    let done = until(&running, |stats| deliveries(stats).owed == u64::from(said) * 2);
    let done = deliveries(&done);
    assert_eq!(done.written + done.dropped, done.owed);
    // A peer that does not read can be disconnected, too.
    enter(&running, 1, 2);
    until(&running, |stats| stats.connections.open == 2);
}

#[test]
fn connections_are_accepted_slowly_if_configured() {
    let slow_accept = Some(Duration::from_millis(40));
    let running = chat(Options { slow_accept, workers: Some(1), ..Options::default() });
    let clock = throng_base::Clock::start();
    let _members: Vec<_> = (0..5).map(|user| enter(&running, 1, user)).collect();
    assert!(clock.now() - throng_base::Time::ZERO >= Duration::from_millis(160));
}

#[test]
fn errors_resets_and_latency_apply_to_requests() {
    let running = chat(Options { errors: 1.0, ..options() });
    let mut stream = connect(running.listen);
    assert_eq!(code(&ask(&mut stream, &join(1, 1, 1, "t-1"))), 500);
    let running = chat(Options { resets: 1.0, ..options() });
    let mut stream = connect(running.listen);
    stream.write_all(&join(1, 1, 1, "t-1")).unwrap();
    assert_eq!(end_of(&mut stream).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let running = chat(Options { latency: "30ms".parse().unwrap(), ..options() });
    let (mut stream, _) = enter(&running, 1, 1);
    // Messages of the room do not wait for the reply to their sender.
    stream.write_all(&speak(2, 1, "x")).unwrap();
    assert_eq!((hear(&mut stream).0, hear(&mut stream).0), (SAID, DONE));
}

#[test]
fn rooms_span_workers_with_separate_descriptor_tables() {
    let connections = 10_000_000;
    let running = chat(Options { connections, workers: Some(3), ..Options::default() });
    let mut members: Vec<_> = (0..12).map(|user| enter(&running, 1, user).0).collect();
    let mut heard = say_many(&mut members[0], 3);
    hear_more(&mut members[0], &mut heard, 3);
    assert_eq!(heard, [1, 2, 3]);
    for member in &mut members[1..] {
        assert_eq!([0; 3].map(|_| id_of(&hear(member))), [1, 2, 3]);
    }
    let (_latest, _) = enter(&running, 1, 5);
    assert_eq!(end_of(&mut members[5]).unwrap(), 0);
}
