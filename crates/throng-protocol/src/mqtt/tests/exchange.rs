//! A session and a broker that forgets nothing, over connections that break anywhere.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throng_base::{Random, Time};

use super::super::*;
use super::session::{PLAIN, ack, number};
use super::{packets, read};

const VERSION: Version = Version::V5;

/// A broker with one client, which sends every message back.
#[derive(Default)]
struct Broker {
    /// Messages of QoS 2 that are not released.
    incoming: BTreeSet<u16>,
    /// What was published, by its payload, and how often it was taken over.
    taken: BTreeMap<Vec<u8>, (Qos, u32)>,
    /// What is sent to the client and not acknowledged, in order; none for a PUBREL.
    outgoing: VecDeque<Waiting>,
    last_id: u16,
}

type Waiting = (u16, Option<(Vec<u8>, Qos)>);

impl Broker {
    fn hear(&mut self, packet: &[u8], out: &mut Vec<u8>) {
        let mut say = |packet: Packet<'_>| packet.write(VERSION, out);
        match read(VERSION, packet).expect("clients send valid packets") {
            Packet::Connect(connect) => {
                assert!(!connect.clean_start);
                let limit = number(PropertyId::ReceiveMaximum, 3);
                let properties = Properties::new(&limit, PacketType::Connack).expect("it belongs");
                say(Packet::Connack(Connack { session_present: true, code: 0, properties }));
                let waiting: Vec<_> = self.outgoing.iter().cloned().collect();
                waiting.iter().for_each(|it| self.send(it, true, out));
            }
            Packet::Publish(message) => {
                let fresh = match message.qos {
                    Qos::ExactlyOnce => self.incoming.insert(message.id),
                    _ => true,
                };
                match message.qos {
                    Qos::AtMostOnce => {}
                    Qos::AtLeastOnce => say(Packet::Puback(ack(message.id))),
                    Qos::ExactlyOnce => say(Packet::Pubrec(ack(message.id))),
                }
                assert!(self.incoming.len() <= 3, "more than the receive maximum");
                if fresh {
                    let payload = message.payload.to_vec();
                    let entry = self.taken.entry(payload.clone()).or_insert((message.qos, 0));
                    entry.1 += 1;
                    self.last_id += 1;
                    let back = (self.last_id, Some((payload, message.qos)));
                    self.send(&back, false, out);
                    self.outgoing.push_back(back);
                }
            }
            Packet::Pubrel(release) => {
                self.incoming.remove(&release.id);
                say(Packet::Pubcomp(ack(release.id)));
            }
            Packet::Puback(done) | Packet::Pubcomp(done) => {
                self.outgoing.retain(|(id, _)| *id != done.id);
            }
            Packet::Pubrec(received) => {
                let found = self.outgoing.iter_mut().find(|(id, _)| *id == received.id);
                found.into_iter().for_each(|(_, message)| *message = None);
                say(Packet::Pubrel(ack(received.id)));
            }
            other => panic!("{other:?}"),
        }
    }

    fn send(&self, (id, message): &Waiting, dup: bool, out: &mut Vec<u8>) {
        let packet = match message {
            None => Packet::Pubrel(ack(*id)),
            Some((payload, qos)) => {
                let (id, qos) = (*id, *qos);
                Packet::Publish(Publish { topic: "t", payload, qos, id, dup, ..Publish::default() })
            }
        };
        packet.write(VERSION, out);
    }
}

/// Both ends, and what is on its way between them.
struct World {
    session: Session,
    broker: Broker,
    up: Vec<u8>,
    down: Vec<u8>,
    heard: BTreeMap<Vec<u8>, (Qos, u32)>,
    acknowledged: u32,
}

impl World {
    fn connect(&mut self) {
        let expiry = number(PropertyId::SessionExpiryInterval, 600);
        let properties = Properties::new(&expiry, PacketType::Connect).expect("it belongs");
        let connect = Connect { clean_start: false, keep_alive_s: 0, properties, ..PLAIN };
        self.session.connect(&connect, Time::ZERO, &mut self.up);
    }

    /// The connection breaks: whole packets on their way arrive or do not.
    fn break_off(&mut self, random: &mut Random) {
        for packet in packets(&std::mem::take(&mut self.up)) {
            if random.chance(0.5) {
                break;
            }
            self.broker.hear(packet, &mut Vec::new());
        }
        self.down.clear();
        assert_eq!(self.session.lost(), 0);
        self.connect();
    }

    fn move_up(&mut self) {
        for packet in packets(&std::mem::take(&mut self.up)) {
            self.broker.hear(packet, &mut self.down);
        }
    }

    /// Some of what is on its way to the client arrives, cut anywhere.
    fn move_down(&mut self, random: &mut Random) {
        let bytes = random.below(self.down.len() as u64 + 1) as usize;
        let arrived: Vec<u8> = self.down.drain(..bytes).collect();
        let (mut input, mut whole, mut topic) = (&arrived[..], Vec::new(), String::new());
        loop {
            let lent = Lent {
                whole: &mut whole,
                topic: &mut topic,
                out: &mut self.up,
                now: Time::ZERO,
                packet_bytes_max: 1_000,
            };
            match self.session.next(&mut input, lent).expect("the broker is honest") {
                None => return,
                Some(Event::Message(message)) => {
                    let entry = self.heard.entry(message.payload.to_vec());
                    entry.or_insert((message.qos, 0)).1 += 1;
                }
                Some(Event::Published { .. }) => self.acknowledged += 1,
                Some(Event::Connected { lost, .. }) => assert_eq!(lost, 0),
                Some(_) => {}
            }
        }
    }
}

#[test]
fn fuzz_messages_arrive_once_or_at_least_once_over_broken_connections() {
    for case in throng_fuzz::cases(30) {
        let mut random = case.random();
        let mut world = World {
            session: Session::new(VERSION, Wishes::default()),
            broker: Broker::default(),
            up: Vec::new(),
            down: Vec::new(),
            heard: BTreeMap::new(),
            acknowledged: 0,
        };
        world.connect();
        let mut published = 0_u32;
        let mut turns = 0;
        while published < 20
            || world.session.unacknowledged() > 0
            || !world.broker.outgoing.is_empty()
        {
            match random.below(10) {
                0..=2 if published < 20 && world.session.is_open() => {
                    let qos = if random.chance(0.5) { Qos::ExactlyOnce } else { Qos::AtLeastOnce };
                    let payload = published.to_be_bytes();
                    let message =
                        Publish { topic: "t", payload: &payload, qos, ..Publish::default() };
                    let sent = world.session.publish(&message, Time::ZERO, &mut world.up);
                    assert!(sent.is_ok(), "{sent:?}");
                    published += 1;
                }
                3 if turns < 300 => world.break_off(&mut random),
                4..=6 => world.move_up(),
                _ => world.move_down(&mut random),
            }
            turns += 1;
            assert!(turns < 10_000, "it does not come to an end");
        }
        case.try_on(&[], || {
            assert_eq!(world.acknowledged, 20);
            for all in [&world.broker.taken, &world.heard] {
                assert_eq!(all.len(), 20);
                for (qos, times) in all.values() {
                    assert!(
                        *times == 1 || *qos == Qos::AtLeastOnce && *times > 1,
                        "{qos:?} {times}"
                    );
                }
            }
        });
    }
}
