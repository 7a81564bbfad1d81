//! Packets with arrival times in, packets with delivery times out.

use super::*;

const SERVER: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn at(time: u64) -> Time {
    Time::ZERO + ms(time)
}

fn network(delay: (u64, u64), loss: f64, rate: Option<u64>) -> UserNetwork {
    UserNetwork { delay: (ms(delay.0), ms(delay.1)), loss, rate }
}

fn queues(network: UserNetwork, seed: u64) -> (Queues, Block) {
    let block = Block::new(0, 1);
    (Queues::new(block, &[network], seed), block)
}

/// A packet of a user with this size, whose last four bytes are a number.
fn packet(way: Way, user: Ipv4Addr, bytes: usize, number: u32) -> Vec<u8> {
    let (source, destination) = match way {
        Way::Up => (user, SERVER),
        Way::Down => (SERVER, user),
    };
    let mut packet = vec![0; bytes];
    packet[0] = 0x45;
    packet[12..16].copy_from_slice(&source.octets());
    packet[16..20].copy_from_slice(&destination.octets());
    packet[bytes - 4..].copy_from_slice(&number.to_be_bytes());
    packet
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(*packet.last_chunk().unwrap())
}

/// All packets, each with the time at which it is due.
fn drain(queues: &mut Queues) -> Vec<(Time, Way, u32)> {
    let mut drained = Vec::new();
    while let Some(due) = queues.next_due() {
        let (way, packet) = queues.take(due).unwrap();
        drained.push((due, way, number(&packet)));
    }
    drained
}

#[test]
fn a_round_trip_takes_the_delay_and_nothing_is_delivered_before() {
    let (mut queues, block) = queues(network((100, 100), 0.0, None), 1);
    let user = block.address(0, 7);
    queues.put(Way::Up, &packet(Way::Up, user, 40, 1), at(10));
    assert!(queues.take(at(59)).is_none());
    assert_eq!(queues.next_due(), Some(at(60)));
    let (way, bytes) = queues.take(at(60)).unwrap();
    assert_eq!((way, &*bytes), (Way::Up, &*packet(Way::Up, user, 40, 1)), "unchanged");
    queues.put(Way::Down, &packet(Way::Down, user, 40, 2), at(60));
    assert_eq!(drain(&mut queues), [(at(110), Way::Down, 2)]);
    assert_eq!(queues.counts, Counts { carried: 2, ..Counts::default() });
    assert_eq!(queues.held_bytes, 0);
}

#[test]
fn delays_of_users_fill_the_range_and_follow_from_the_seed() {
    let delays = |seed| {
        let (mut queues, block) = queues(network((50, 200), 0.0, None), seed);
        (0..1000).for_each(|user| {
            queues.put(Way::Up, &packet(Way::Up, block.address(0, user), 40, user as u32), at(0));
        });
        drain(&mut queues)
    };
    let found = delays(7);
    assert_eq!(found, delays(7));
    assert_ne!(found, delays(8));
    // The range is 150 ms; up is half of it.
    let [first, last] = [&found[0], &found[999]].map(|it| it.0 - Time::ZERO);
    assert!(first >= ms(25) && first < ms(26) && last > ms(99) && last < ms(100), "{first:?}");
    let sum: Duration = found.iter().map(|it| it.0 - Time::ZERO).sum();
    assert!((sum / 1000).abs_diff(Duration::from_micros(62_500)) < ms(2), "{sum:?}");
}

#[test]
fn a_rate_spaces_packets_and_its_queue_is_half_a_second() {
    // A packet of 1,250 bytes takes 10 ms.
    let (mut queues, block) = queues(network((20, 20), 0.0, Some(1_000_000)), 1);
    let user = block.address(0, 0);
    for number in 0..100 {
        queues.put(Way::Down, &packet(Way::Down, user, 1250, number), at(0));
    }
    // The other direction, and another user, have links of their own.
    queues.put(Way::Up, &packet(Way::Up, user, 1250, 200), at(0));
    queues.put(Way::Down, &packet(Way::Down, block.address(0, 1), 1250, 300), at(0));
    let found = drain(&mut queues);
    assert_eq!(queues.counts, Counts { carried: 53, dropped: 49, ..Counts::default() });
    let own: Vec<_> = found.iter().filter(|it| it.2 < 100).collect();
    for (number, (due, ..)) in own.iter().enumerate() {
        assert_eq!(*due, at(10 + 10 * (number as u64 + 1)));
    }
    assert!(found.contains(&(at(20), Way::Up, 200)) && found.contains(&(at(20), Way::Down, 300)));
    // The link is idle again: unused capacity does not accumulate.
    queues.put(Way::Down, &packet(Way::Down, user, 1250, 1), at(10_000));
    queues.put(Way::Down, &packet(Way::Down, user, 1250, 2), at(10_000));
    let due: Vec<Time> = drain(&mut queues).iter().map(|it| it.0).collect();
    assert_eq!(due, [at(10_020), at(10_030)]);
}

#[test]
fn slow_links_hold_some_packets_however_long_they_take() {
    let (mut queues, block) = queues(network((0, 0), 0.0, Some(12_000)), 1);
    let user = block.address(0, 0);
    for number in 0..40 {
        queues.put(Way::Up, &packet(Way::Up, user, 1500, number), at(0));
    }
    let found = drain(&mut queues);
    // A packet takes a second.
    assert_eq!((found.len(), found[16].0), (17, at(17_000)));
}

#[test]
fn loss_follows_from_the_seed_and_has_its_share() {
    let lost = |seed| {
        let (mut queues, block) = queues(network((0, 0), 0.02, None), seed);
        let mut kept = Vec::new();
        for number in 0..100_000 {
            let user = block.address(0, u64::from(number % 10));
            queues.put(Way::Up, &packet(Way::Up, user, 40, number), at(u64::from(number)));
            kept.extend(drain(&mut queues));
        }
        assert_eq!(queues.counts.lost + queues.counts.carried, 100_000);
        assert_eq!(queues.counts.carried, kept.len() as u64);
        (queues.counts.lost, kept)
    };
    let (count, kept) = lost(3);
    // Six times the standard deviation.
    assert!(count.abs_diff(2000) < 266, "{count}");
    assert_eq!(lost(3).1, kept);
    assert_ne!(lost(4).1, kept);
}

#[test]
fn packets_of_a_user_keep_their_order() {
    for rate in [None, Some(3_000_000)] {
        let (mut queues, block) = queues(network((5, 90), 0.01, rate), 11);
        let mut random = Random::new(5);
        let mut now = Time::ZERO;
        let mut last = [0; 20];
        let mut seen = 0;
        for number in 1..20_000u32 {
            now = now + Duration::from_micros(random.below(400));
            let user = block.address(0, random.below(20));
            let bytes = 40 + random.below(1400) as usize;
            queues.put(Way::Up, &packet(Way::Up, user, bytes, number), now);
            while let Some((_, bytes)) = queues.take(now) {
                let user = user_of(Way::Up, &bytes).and_then(|it| block.place(it)).unwrap();
                assert!(self::number(&bytes) > last[user], "in order");
                last[user] = self::number(&bytes);
                seen += 1;
            }
        }
        assert!(seen > 15_000, "{seen}");
    }
}

#[test]
fn packets_above_the_memory_limit_are_counted() {
    let (mut queues, block) = queues(network((1000, 1000), 0.0, None), 1);
    let large = packet(Way::Up, block.address(0, 0), 65_000, 0);
    let fit = HELD_BYTES_MAX / (large.len() + HELD_BYTES_EACH);
    for _ in 0..fit + 3 {
        queues.put(Way::Up, &large, at(0));
    }
    assert_eq!(queues.counts.overflowed, 3);
    assert_eq!(drain(&mut queues).len(), fit);
    assert_eq!(queues.held_bytes, 0);
}

#[test]
fn late_deliveries_are_counted() {
    let (mut queues, block) = queues(network((0, 0), 0.0, None), 1);
    for (put, taken) in [(0, 10), (30, 41)] {
        queues.put(Way::Up, &packet(Way::Up, block.address(0, 0), 40, 0), at(put));
        queues.take(at(taken)).unwrap();
    }
    let counts = Counts { carried: 2, late: 1, ..Counts::default() };
    assert_eq!(queues.counts, counts);
    assert_eq!(queues.counts.since(&Counts { carried: 1, ..counts }).carried, 1);
}

#[test]
fn any_packet_is_carried_or_ignored() {
    let block = Block::new(0, 1);
    let valid = packet(Way::Up, block.address(0, 1), 60, 1);
    let (mut queues, _) = queues(network((1, 1), 0.0, None), 1);
    throng_fuzz::mutations(&[&valid, &valid[..19], b"", b"\x60\0\0\0"], |bytes, _| {
        for way in [Way::Up, Way::Down] {
            queues.put(way, bytes, at(0));
            let is_ours = user_of(way, bytes).is_some_and(|user| block.place(user).is_some());
            let taken = queues.take(at(10)).map(|(way, bytes)| (way, bytes.into_vec()));
            assert_eq!(taken, is_ours.then(|| (way, bytes.to_vec())));
        }
    });
}
