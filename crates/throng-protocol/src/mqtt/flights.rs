//! Messages in flight: the part of a session that outlives its connection, and what belongs to the
//! connection only.

use std::collections::VecDeque;

use super::kind::Qos;

/// Capacity that is kept, so that nothing is allocated per message.
const KEPT: usize = 32;

/// State that an idle subscriber does not need.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// Messages that we publish, in the order in which they would be resent.
    pub(super) outgoing: VecDeque<Flight>,
    /// QoS 2 messages that arrived and are not released yet, in order.
    pub(super) incoming: Vec<u16>,
    /// SUBSCRIBE and UNSUBSCRIBE that wait for their reply; they end with the connection.
    pub(super) asked: Vec<Asked>,
    /// Topics by the aliases of the server, from 1, and by ours.
    pub(super) aliases_in: Vec<String>,
    pub(super) aliases_out: Vec<Box<str>>,
}

/// A message that we publish.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: u16,
    pub(super) stage: Stage,
    /// For resending; empty if that cannot happen.
    pub(super) packet: Box<[u8]>,
}

/// What a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Room within the receive maximum.
    Room(Qos),
    Puback,
    Pubrec,
    Pubcomp,
}

impl Stage {
    /// The stage of a sent message.
    pub(super) fn sent(qos: Qos) -> Stage {
        if qos == Qos::ExactlyOnce { Stage::Pubrec } else { Stage::Puback }
    }
}

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: u16,
    /// The requested QoS of each filter; zeros for an UNSUBSCRIBE.
    pub(super) asked: Box<[u8]>,
    pub(super) subscribes: bool,
}

impl Flights {
    pub(super) fn find(&mut self, id: u16) -> Option<usize> {
        // Most replies are for the oldest.
        self.outgoing.iter().position(|flight| flight.id == id)
    }

    pub(super) fn uses(&self, id: u16) -> bool {
        self.outgoing.iter().any(|flight| flight.id == id)
            || self.asked.iter().any(|asked| asked.id == id)
    }

    pub(super) fn take_asked(&mut self, id: u16, subscribes: bool) -> Option<Asked> {
        let is = |asked: &Asked| asked.id == id && asked.subscribes == subscribes;
        let at = self.asked.iter().position(is)?;
        Some(self.asked.swap_remove(at))
    }

    /// Releases a QoS 2 message; true if it was in flight.
    pub(super) fn release(&mut self, id: u16) -> bool {
        let Ok(at) = self.incoming.binary_search(&id) else { return false };
        self.incoming.remove(at);
        self.shrink();
        true
    }

    /// Releases the memory of many messages once none is left.
    pub(super) fn shrink(&mut self) {
        if self.outgoing.is_empty() && self.outgoing.capacity() > KEPT {
            self.outgoing = VecDeque::new();
        }
        if self.incoming.is_empty() && self.incoming.capacity() > KEPT {
            self.incoming = Vec::new();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outgoing.is_empty()
            && self.incoming.is_empty()
            && self.asked.is_empty()
            && self.aliases_in.is_empty()
            && self.aliases_out.is_empty()
    }

    /// The connection has ended.
    pub(super) fn forget_connection(&mut self) {
        self.asked.clear();
        self.aliases_in.clear();
        self.aliases_out.clear();
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let packets: usize = self.outgoing.iter().map(|flight| flight.packet.len()).sum();
        let asked: usize = self.asked.iter().map(|asked| asked.asked.len()).sum();
        let aliases: usize = self.aliases_in.iter().map(|topic| topic.capacity()).sum();
        let ours: usize = self.aliases_out.iter().map(|topic| topic.len()).sum();
        size_of::<Flights>()
            + self.outgoing.capacity() * size_of::<Flight>()
            + self.incoming.capacity() * size_of::<u16>()
            + self.asked.capacity() * size_of::<Asked>()
            + self.aliases_in.capacity() * size_of::<String>()
            + self.aliases_out.capacity() * size_of::<Box<str>>()
            + packets
            + asked
            + aliases
            + ours
    }
}
