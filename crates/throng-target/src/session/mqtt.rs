//! One connection of the broker: the client's packets and their replies.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Time;

use crate::address::Address;
use crate::http::Tail;
use crate::mail::Envelope;
use crate::mqtt::codec::{
    self, ALIAS_MAX, Ack, Broken, Connect, PROTOCOL_ERROR, Packet, Publish, Version,
};
use crate::mqtt::{Accepted, Broker, Client, Message};
use crate::output::Finish;
use crate::setup::Setup;
use crate::stats::MqttStats;
use crate::turn::{Fault, Turn};

/// The reason codes of refusals.
const UNAVAILABLE_V3: u8 = 3;
const IDENTIFIER_REJECTED_V3: u8 = 2;
const UNAVAILABLE: u8 = 0x88;
const BAD_METHOD: u8 = 0x8c;
const FAILURE: u8 = 0x80;
const ERROR: u8 = 0x83;
const FILTER_INVALID: u8 = 0x8f;
const NO_SUBSCRIBERS: u8 = 0x10;
const NO_SUBSCRIPTION: u8 = 0x11;
const ALIAS_INVALID: u8 = 0x94;
const KEEP_ALIVE_TIMEOUT: u8 = 0x8d;
const TAKEN_OVER: u8 = 0x8e;
const DISCONNECT_WITH_WILL: u8 = 0x04;

/// The connection of a client.
#[derive(Debug)]
pub(crate) struct Mqtt(Box<Open>);

#[derive(Debug)]
struct Open {
    version: Version,
    client: Option<Arc<Client>>,
    keep_alive_s: u16,
    heard: Time,
    /// The client's topics by alias, from 1.
    aliases: Vec<String>,
    /// The client has sent DISCONNECT.
    graceful: bool,
    /// No packet arrived for too long.
    overdue: bool,
}

type Obeyed = Result<(), Broken>;

impl Mqtt {
    pub(crate) fn new(now: Time) -> Mqtt {
        Mqtt(Box::new(Open {
            version: Version::V5,
            client: None,
            keep_alive_s: 0,
            heard: now,
            aliases: Vec::new(),
            graceful: false,
            overdue: false,
        }))
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.0.client.is_some()
    }

    /// True if no packet arrived for 1.5 times the keep-alive time (3.1.2.10).
    pub(crate) fn is_overdue(&mut self, now: Time) -> bool {
        let Open { keep_alive_s, heard, overdue, .. } = &mut *self.0;
        let patience = Duration::from_millis(u64::from(*keep_alive_s) * 1_500);
        *overdue = *keep_alive_s > 0 && now >= *heard + patience;
        *overdue
    }

    /// The connection ends.
    pub(crate) fn end(&mut self, setup: &Setup, address: Address) {
        if let (Some(client), Some(broker)) = (self.0.client.take(), &setup.mqtt) {
            let now = setup.clock.now();
            setup.send(broker.leave(&client, address, self.0.graceful, now));
        }
    }

    /// The DISCONNECT packet for an MQTT 5 client that is about to be disconnected.
    pub(crate) fn farewell(&self) -> Vec<u8> {
        let code = if self.0.overdue { KEEP_ALIVE_TIMEOUT } else { TAKEN_OVER };
        self.disconnect(code)
    }

    fn disconnect(&self, code: u8) -> Vec<u8> {
        let mut out = Vec::new();
        if self.0.version == Version::V5 && self.0.client.is_some() {
            codec::write(0xe0, &[&[code, 0]], &mut out);
        }
        out
    }

    /// Handles at most one packet.
    pub(crate) fn receive(&mut self, input: &[u8], turn: &mut Turn<'_>) -> usize {
        let Some(broker) = &turn.setup.mqtt else { return input.len() };
        let read = match codec::read(input, self.0.version) {
            Ok(None) => return 0,
            Ok(Some((packet, used))) => {
                turn.counts.messages += 1;
                self.0.heard = turn.arrival.read;
                self.obey(packet, broker, turn).map(|()| used)
            }
            Err(broken) => Err(broken),
        };
        read.unwrap_or_else(|Broken(code)| {
            turn.counts.refused += 1;
            broker.count(turn.worker, |counts| counts.broken += 1);
            let farewell = self.disconnect(code);
            self.end(turn.setup, turn.address);
            turn.say(&farewell, Some(Finish::Linger));
            input.len()
        })
    }

    fn obey(&mut self, packet: Packet<'_>, broker: &Broker, turn: &mut Turn<'_>) -> Obeyed {
        let client = match (&packet, &self.0.client) {
            (Packet::Connect(connect), None) => return self.connect(connect, broker, turn),
            (Packet::Connect(_), Some(_)) | (_, None) => return Err(PROTOCOL_ERROR),
            (_, Some(client)) => Arc::clone(client),
        };
        let link = Link { client: &client, version: self.0.version, broker };
        match packet {
            Packet::Publish(publish) => return self.publish(publish, &link, turn),
            Packet::Puback(Ack { id, .. }) | Packet::Pubcomp(Ack { id, .. }) => {
                link.acknowledged(id, turn);
            }
            Packet::Pubrec(ack) => link.received(ack, turn),
            Packet::Pubrel(Ack { id, .. }) => {
                client.state().incoming.remove(&id);
                link.reply(0x70, id, 0, turn);
            }
            Packet::Subscribe { id, identifier, filters } => {
                link.subscribe(id, identifier, &filters, turn);
            }
            Packet::Unsubscribe { id, filters } => link.unsubscribe(id, &filters, turn),
            Packet::Pingreq => {
                turn.counts.heartbeats += 1;
                turn.reply(|out| codec::write(0xd0, &[], out));
            }
            Packet::Disconnect(code, expiry_s) => {
                link.count(turn, |counts| counts.disconnects += 1);
                if let Some(expiry_s) = expiry_s {
                    client.state().expiry_s = expiry_s;
                }
                self.0.graceful = code != DISCONNECT_WITH_WILL;
                self.end(turn.setup, turn.address);
                turn.say(b"", Some(Finish::Linger));
            }
            Packet::Connect(_) => {}
        }
        Ok(())
    }

    fn connect(&mut self, connect: &Connect<'_>, broker: &Broker, turn: &mut Turn<'_>) -> Obeyed {
        let version = connect.version;
        self.0.version = version;
        let error = if version == Version::V3 { UNAVAILABLE_V3 } else { UNAVAILABLE };
        let nameless = connect.client_id.is_empty();
        let refusal = match turn.fault() {
            Fault::Reset => {
                turn.reset();
                return Ok(());
            }
            Fault::Error => error,
            Fault::None if connect.authenticates => BAD_METHOD,
            Fault::None if nameless && version == Version::V3 && !connect.clean_start => {
                IDENTIFIER_REJECTED_V3
            }
            Fault::None => return self.accept(connect, nameless, broker, turn),
        };
        broker.count(turn.worker, |counts| counts.refused += 1);
        let mut out = Vec::new();
        codec::write_connack(version, false, refusal, None, &mut out);
        turn.say(&out, Some(Finish::Linger));
        Ok(())
    }

    fn accept(
        &mut self,
        connect: &Connect<'_>,
        nameless: bool,
        broker: &Broker,
        turn: &mut Turn<'_>,
    ) -> Obeyed {
        let (version, now) = (connect.version, turn.arrival.read);
        let assigned = nameless.then(|| broker.assign());
        let id = assigned.as_deref().unwrap_or(connect.client_id);
        let Accepted { client, present, before, bundles } =
            broker.connect(connect, id, turn.address, now);
        turn.setup.send(bundles);
        turn.counts.logins += 1;
        if let Some(before) = before {
            turn.counts.double_logins += 1;
            turn.setup.mailboxes.send(before.worker, Envelope::End(before));
        }
        // Not delayed: no message may precede it.
        let mut out = Vec::new();
        codec::write_connack(version, present, 0, assigned.as_deref(), &mut out);
        let resent = client.state().write_again(now, &mut out);
        broker.count(turn.worker, |counts| {
            counts.connects += 1;
            counts.connects_v5 += u64::from(version == Version::V5);
            counts.resumed += u64::from(present);
            counts.taken_over += u64::from(before.is_some());
            counts.resent += resent;
        });
        turn.answer_at_once(None, |all, _| {
            all.extend_from_slice(&out);
            Tail::None
        });
        self.0.keep_alive_s = connect.keep_alive_s;
        let link = Link { client: &client, version, broker };
        link.send_waiting(turn);
        self.0.client = Some(client);
        Ok(())
    }

    fn publish(&mut self, publish: Publish<'_>, link: &Link<'_>, turn: &mut Turn<'_>) -> Obeyed {
        let topic = self.topic(&publish)?;
        let Publish { qos, id, .. } = publish;
        let fails = qos > 0 && link.version == Version::V5;
        let fault = match fails {
            true => turn.fault(),
            false if turn.draws_reset() => Fault::Reset,
            false => Fault::None,
        };
        let (mut code, mut is_new) = (0, true);
        match fault {
            Fault::Reset => {
                turn.reset();
                return Ok(());
            }
            Fault::Error => (code, is_new) = (ERROR, false),
            Fault::None if qos == 2 => is_new = link.client.state().incoming.insert(id),
            Fault::None => {}
        }
        if is_new {
            let message = Arc::new(Message::new(&publish, &topic, turn.arrival.read));
            let (subscribers, bundles) = link.broker.publish(&message, Some(link.client));
            code = if subscribers == 0 { NO_SUBSCRIBERS } else { 0 };
            turn.setup.send(bundles);
            link.count(turn, |counts| counts.published[usize::from(qos)] += 1);
        } else if code == 0 {
            link.count(turn, |counts| counts.repeated += 1);
        }
        match qos {
            0 => {}
            1 => link.reply(0x40, id, code, turn),
            _ => link.reply(0x50, id, code, turn),
        }
        Ok(())
    }

    /// The topic of a message, which may be given only by its alias.
    fn topic(&mut self, publish: &Publish<'_>) -> Result<String, Broken> {
        let Some(alias) = publish.alias else { return Ok(publish.topic.to_owned()) };
        if alias > ALIAS_MAX {
            return Err(Broken(ALIAS_INVALID));
        }
        let aliases = &mut self.0.aliases;
        aliases.resize(usize::from(ALIAS_MAX), String::new());
        let topic = &mut aliases[usize::from(alias) - 1];
        if !publish.topic.is_empty() {
            publish.topic.clone_into(topic);
        }
        if topic.is_empty() { Err(PROTOCOL_ERROR) } else { Ok(topic.clone()) }
    }
}

/// A client while one of its packets is handled.
struct Link<'a> {
    client: &'a Arc<Client>,
    version: Version,
    broker: &'a Broker,
}

impl Link<'_> {
    fn count(&self, turn: &Turn<'_>, count: impl FnOnce(&mut MqttStats)) {
        self.broker.count(turn.worker, count);
    }

    fn reply(&self, first: u8, id: u16, code: u8, turn: &mut Turn<'_>) {
        turn.reply(|out| codec::write_ack(self.version, first, id, code, out));
    }

    fn acknowledged(&self, id: u16, turn: &mut Turn<'_>) {
        let fits = self.client.state().acknowledged(id);
        self.count(turn, |counts| match fits {
            true => counts.acknowledged += 1,
            false => counts.misnumbered += 1,
        });
        self.send_waiting(turn);
    }

    fn received(&self, Ack { id, code }: Ack, turn: &mut Turn<'_>) {
        if code >= 0x80 {
            return self.acknowledged(id, turn);
        }
        let fits = self.client.state().received(id);
        let code = if fits { 0 } else { 0x92 };
        self.count(turn, |counts| counts.misnumbered += u64::from(!fits));
        let mut out = Vec::new();
        codec::write_ack(self.version, 0x62, id, code, &mut out);
        turn.say(&out, None);
    }

    /// Waiting messages are delivered like all others.
    fn send_waiting(&self, turn: &mut Turn<'_>) {
        if self.client.state().has_waiting() {
            turn.setup.mailboxes.send(turn.worker, Envelope::MqttRoom(Arc::clone(self.client)));
        }
    }

    fn subscribe(
        &self,
        id: u16,
        identifier: Option<u32>,
        filters: &[(&str, u8)],
        turn: &mut Turn<'_>,
    ) {
        let fault = turn.fault();
        if fault == Fault::Reset {
            return turn.reset();
        }
        let invalid = if self.version == Version::V3 { FAILURE } else { FILTER_INVALID };
        let mut codes = Vec::with_capacity(filters.len());
        for (filter, options) in filters {
            let forgets = turn.setup.faults.forgets();
            self.count(turn, |counts| {
                counts.subscribes += 1;
                counts.forgotten += u64::from(forgets);
            });
            let subscribed = match fault {
                Fault::None if forgets => Some(false),
                Fault::None => self.broker.subscribe(self.client, filter, *options, identifier),
                _ => None,
            };
            codes.push(match subscribed {
                _ if fault == Fault::Error => FAILURE,
                None => invalid,
                Some(_) => options & 3,
            });
            let sends = match options >> 4 & 3 {
                0 => subscribed.is_some(),
                1 => subscribed == Some(true),
                _ => false,
            };
            if sends && !forgets && !filter.starts_with("$share/") {
                let retained = self.broker.retained(self.client, filter, *options, identifier);
                turn.setup.send(retained);
            }
        }
        turn.reply(|out| codec::write_codes(self.version, 0x90, id, &codes, out));
    }

    fn unsubscribe(&self, id: u16, filters: &[&str], turn: &mut Turn<'_>) {
        self.count(turn, |counts| counts.unsubscribes += filters.len() as u64);
        let leave = |filter: &&str| match self.broker.unsubscribe(self.client, filter) {
            true => 0,
            false => NO_SUBSCRIPTION,
        };
        let codes: Vec<u8> = filters.iter().map(leave).collect();
        turn.reply(|out| codec::write_codes(self.version, 0xb0, id, &codes, out));
    }
}
