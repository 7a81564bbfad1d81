//! One client of the broker, connected or not: its queue and its unacknowledged messages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use throng_base::Time;

use super::codec::{self, Publish, Version};
use crate::address::Address;
use crate::sums::lock;

/// Maximum number of queued messages per client.
const QUEUE_MAX: usize = 10_000;
/// Maximum number of unacknowledged messages, even if the client allows more.
const WINDOW_MAX: u16 = 1_000;

/// A message, stored once for all receivers.
#[derive(Debug)]
pub(crate) struct Message {
    pub(super) topic: Box<str>,
    pub(super) payload: Box<[u8]>,
    /// The properties for subscribers of MQTT 5.
    pub(super) properties: Box<[u8]>,
    pub(super) qos: u8,
    pub(super) retain: bool,
    pub(super) expires_at: Option<Time>,
}

impl Message {
    pub(crate) fn new(publish: &Publish<'_>, topic: &str, now: Time) -> Message {
        let expiry = publish.expiry_s.map(|s| Duration::from_secs(u64::from(s)));
        Message {
            topic: topic.into(),
            payload: publish.payload.into(),
            properties: codec::passed_on(publish.properties).into(),
            qos: publish.qos,
            retain: publish.retain,
            expires_at: expiry.map(|expiry| now + expiry),
        }
    }

    pub(crate) fn size(&self) -> usize {
        size_of::<Message>() + self.topic.len() + self.payload.len() + self.properties.len()
    }
}

/// How a message is sent to a client.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) client: Arc<Client>,
    pub(super) how: How,
}

#[derive(Clone, Debug)]
pub(super) struct How {
    pub(super) qos: u8,
    pub(super) retain: bool,
    pub(super) identifiers: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(super) id: String,
    state: Mutex<ClientState>,
}

#[derive(Debug, Default)]
pub(crate) struct ClientState {
    /// The address of its connection.
    pub(super) address: Option<Address>,
    pub(super) version: Version,
    window: u16,
    packet_bytes_max: u32,
    pub(crate) expiry_s: u32,
    /// When its session expires while it is disconnected.
    pub(super) expires_at: Time,
    pub(super) will: Option<Will>,
    pub(super) filters: Vec<String>,
    /// QoS 2 messages from the client that are not released.
    pub(crate) incoming: BTreeSet<u16>,
    last_id: u16,
    outgoing: VecDeque<Flight>,
    queue: VecDeque<(Arc<Message>, How)>,
}

#[derive(Debug)]
pub(super) struct Will {
    pub(super) message: Arc<Message>,
    pub(super) delay_s: u32,
    /// For a disconnected client.
    pub(super) due: Time,
}

/// A message that was sent and is not acknowledged.
#[derive(Debug)]
struct Flight {
    id: u16,
    message: Arc<Message>,
    how: How,
    /// PUBREC was received.
    received: bool,
}

impl Client {
    pub(super) fn new(id: &str) -> Client {
        let state = ClientState { expires_at: Time::NEVER, ..ClientState::default() };
        Client { id: id.to_owned(), state: Mutex::new(state) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ClientState> {
        lock(&self.state)
    }

    /// The address of its connection, and the result of [`ClientState::next`].
    pub(crate) fn next_packet(&self, now: Time) -> (Option<Address>, Option<Vec<u8>>, u64) {
        let mut state = self.state();
        let Some(address) = state.address else { return (None, None, 0) };
        let (packet, left_out) = state.next(now);
        (Some(address), packet, left_out)
    }
}

impl Target {
    /// Queues the message if the client is connected to this worker. Returns whether there was
    /// space.
    pub(crate) fn take_here(&self, worker: u16, message: &Arc<Message>) -> Result<bool, ()> {
        let mut state = self.client.state();
        match state.address {
            Some(address) if address.worker == worker => Ok(state.take(message, self.how.clone())),
            _ => Err(()),
        }
    }
}

impl ClientState {
    /// The client opens another connection.
    pub(super) fn begin(&mut self, connect: &codec::Connect<'_>, address: Address, now: Time) {
        self.address = Some(address);
        self.version = connect.version;
        self.window = connect.receive_max.min(WINDOW_MAX);
        self.packet_bytes_max = connect.packet_bytes_max;
        self.expiry_s = connect.session_expiry_s;
        self.expires_at = Time::NEVER;
        self.will = connect.will.as_ref().map(|will| Will {
            message: Arc::new(Message::new(&will.message, will.message.topic, now)),
            delay_s: will.delay_s,
            due: Time::NEVER,
        });
    }

    /// Its connection has ended.
    pub(super) fn leave(&mut self, now: Time) {
        let after = |seconds: u32| match seconds {
            u32::MAX => Time::NEVER,
            seconds => now + Duration::from_secs(u64::from(seconds)),
        };
        self.address = None;
        self.expires_at = after(self.expiry_s);
        if let Some(will) = &mut self.will {
            will.due = after(will.delay_s.min(self.expiry_s));
        }
    }

    /// Queues a message. Returns false if there is no space or no session.
    pub(super) fn take(&mut self, message: &Arc<Message>, how: How) -> bool {
        let keeps = self.address.is_some() || how.qos > 0 && self.expiry_s > 0;
        if !keeps || self.queue.len() >= QUEUE_MAX {
            return false;
        }
        self.queue.push_back((Arc::clone(message), how));
        true
    }

    /// The next packet that may be sent now, and the number of messages dropped before it.
    pub(super) fn next(&mut self, now: Time) -> (Option<Vec<u8>>, u64) {
        let mut left_out = 0;
        while let Some((_, how)) = self.queue.front() {
            if how.qos > 0 && self.outgoing.len() >= usize::from(self.window) {
                break;
            }
            let Some((message, how)) = self.queue.pop_front() else { break };
            let id = if how.qos > 0 { self.fresh_id() } else { 0 };
            let mut packet = Vec::new();
            let expired = message.expires_at.is_some_and(|at| at <= now);
            write(self.version, id, &message, &how, false, now, &mut packet);
            if expired || packet.len() > self.packet_bytes_max as usize {
                left_out += 1;
                continue;
            }
            if how.qos > 0 {
                self.outgoing.push_back(Flight { id, message, how, received: false });
            }
            return (Some(packet), left_out);
        }
        (None, left_out)
    }

    fn fresh_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id % u16::MAX + 1;
            if !self.outgoing.iter().any(|flight| flight.id == self.last_id) {
                return self.last_id;
            }
        }
    }

    /// PUBACK, PUBCOMP, or a PUBREC with an error. Returns whether a message was waiting for it.
    pub(crate) fn acknowledged(&mut self, id: u16) -> bool {
        let found = self.outgoing.iter().position(|flight| flight.id == id);
        found.and_then(|at| self.outgoing.remove(at)).is_some()
    }

    /// PUBREC. Returns whether a message was waiting for it.
    pub(crate) fn received(&mut self, id: u16) -> bool {
        let found = self.outgoing.iter_mut().find(|flight| flight.id == id);
        found.map(|flight| flight.received = true).is_some()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Writes the unacknowledged messages of the last connection, and returns their number.
    pub(crate) fn write_again(&self, now: Time, out: &mut Vec<u8>) -> u64 {
        for Flight { id, message, how, received } in &self.outgoing {
            match received {
                true => codec::write_ack(self.version, 0x62, *id, 0, out),
                false => write(self.version, *id, message, how, true, now, out),
            }
        }
        self.outgoing.len() as u64
    }
}

fn write(
    version: Version,
    id: u16,
    message: &Message,
    how: &How,
    dup: bool,
    now: Time,
    out: &mut Vec<u8>,
) {
    let left_s = |at: Time| at.since(now).as_secs_f64().ceil() as u32;
    let publish = Publish {
        topic: &message.topic,
        payload: &message.payload,
        qos: how.qos,
        retain: how.retain,
        dup,
        id,
        alias: None,
        expiry_s: message.expires_at.map(left_s),
        properties: &message.properties,
    };
    codec::write_publish(version, &publish, &how.identifiers, out);
}
