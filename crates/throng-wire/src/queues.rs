//! Simulates the network of each user, without I/O: packets and their times go in, packets and
//! their delivery times come out. Each user has a link in each direction. A link loses packets at
//! random, sends the others one after another at its rate, and delivers them after its delay, in
//! order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use std::time::Duration;

use throng_base::{Random, Time};
use throng_program::UserNetwork;

use crate::block::Block;

/// Length of the queue in front of a link with a rate, in time: that of a typical router. Packets
/// that arrive while it is full are dropped.
const QUEUE_TIME: Duration = Duration::from_millis(500);
/// Minimum length of that queue, in packets of full size, for slow links.
const QUEUE_PACKETS: usize = 16;
const PACKET_BYTES: usize = 1500;
/// Maximum memory for the packets of all links.
const HELD_BYTES_MAX: usize = 256 << 20;
/// Memory that a waiting packet needs in addition to its bytes.
const HELD_BYTES_EACH: usize = 64;
/// A packet delivered later than this after its time counts as late.
const LATE: Duration = Duration::from_millis(10);

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From a user.
    Up,
    /// To a user.
    Down,
}

/// Counts of packets, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Delivered.
    pub carried: u64,
    /// Lost at random, as the network says.
    pub lost: u64,
    /// Dropped because the queue in front of a link with a rate was full.
    pub dropped: u64,
    /// Dropped because the wire could not keep up.
    pub overflowed: u64,
    /// Delivered more than 10 ms after their time.
    pub late: u64,
}

impl Counts {
    /// The difference from `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            carried: self.carried - before.carried,
            lost: self.lost - before.lost,
            dropped: self.dropped - before.dropped,
            overflowed: self.overflowed - before.overflowed,
            late: self.late - before.late,
        }
    }
}

pub(crate) struct Queues {
    block: Block,
    /// Two links for each address of the block: up, down.
    links: Vec<Link>,
    held: BinaryHeap<Reverse<Held>>,
    held_bytes: usize,
    /// The sequence number of the next packet.
    number: u64,
    pub(crate) counts: Counts,
}

/// One direction of a user's network.
struct Link {
    delay: Duration,
    loss: f64,
    /// Bits per second.
    rate: Option<u64>,
    /// The link is busy with earlier packets until then.
    busy: Time,
    random: Random,
}

/// A packet in flight.
struct Held {
    due: Time,
    /// Keeps packets with the same time in order.
    number: u64,
    way: Way,
    packet: Box<[u8]>,
}

impl Queues {
    /// With the same seed, each link has the same delays and loses the same packets.
    pub(crate) fn new(block: Block, networks: &[UserNetwork], seed: u64) -> Queues {
        let of_place = |(place, network): (usize, usize)| {
            let network = networks.get(network).copied().unwrap_or_default();
            let (least, most) = network.delay;
            let mut random = Random::for_owner(seed, place as u64);
            let round_trip = least + (most - least).mul_f64(random.unit());
            let up = round_trip / 2;
            [up, round_trip - up].map(|delay| Link {
                delay,
                loss: network.loss,
                rate: network.rate,
                busy: Time::ZERO,
                random: Random::new(random.next_u64()),
            })
        };
        let links = block.networks().enumerate().flat_map(of_place).collect();
        let held = BinaryHeap::new();
        Queues { block, links, held, held_bytes: 0, number: 0, counts: Counts::default() }
    }

    /// Takes a packet. Ignores packets that are not IPv4 or belong to no user: the kernel sends
    /// such packets when a device comes up.
    pub(crate) fn put(&mut self, way: Way, packet: &[u8], now: Time) {
        let Some(place) = user_of(way, packet).and_then(|user| self.block.place(user)) else {
            return;
        };
        let link = &mut self.links[place * 2 + way as usize];
        if link.random.chance(link.loss) {
            self.counts.lost += 1;
            return;
        }
        let Some(sent) = link.send(packet.len(), now) else {
            self.counts.dropped += 1;
            return;
        };
        let bytes = packet.len() + HELD_BYTES_EACH;
        if self.held_bytes + bytes > HELD_BYTES_MAX {
            self.counts.overflowed += 1;
            return;
        }
        self.held_bytes += bytes;
        self.number += 1;
        let due = sent + link.delay;
        self.held.push(Reverse(Held { due, number: self.number, way, packet: packet.into() }));
    }

    /// The next packet that is due.
    pub(crate) fn take(&mut self, now: Time) -> Option<(Way, Box<[u8]>)> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(held) = self.held.pop()?;
        self.held_bytes -= held.packet.len() + HELD_BYTES_EACH;
        self.counts.carried += 1;
        self.counts.late += u64::from(now - held.due > LATE);
        Some((held.way, held.packet))
    }

    /// The time at which the next packet is due, if there is one.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.held.peek().map(|Reverse(held)| held.due)
    }
}

impl Link {
    /// The time at which a packet of this size has been sent; None if the queue is full.
    fn send(&mut self, bytes: usize, now: Time) -> Option<Time> {
        let Some(rate) = self.rate else { return Some(now) };
        let begins = self.busy.max(now);
        let queue = QUEUE_TIME.max(transmission(QUEUE_PACKETS * PACKET_BYTES, rate));
        if begins - now > queue {
            return None;
        }
        self.busy = begins + transmission(bytes, rate);
        Some(self.busy)
    }
}

/// How long a link with this rate needs to send these bytes.
fn transmission(bytes: usize, bits_per_s: u64) -> Duration {
    Duration::from_nanos(bytes as u64 * 8 * 1_000_000_000 / bits_per_s.max(1))
}

/// The user's address in an IPv4 packet (RFC 791, 3.1).
fn user_of(way: Way, packet: &[u8]) -> Option<Ipv4Addr> {
    const HEADER_BYTES_MIN: usize = 20;
    let header = packet.get(..HEADER_BYTES_MIN).filter(|header| header[0] >> 4 == 4)?;
    let at = match way {
        Way::Up => 12,
        Way::Down => 16,
    };
    header[at..].first_chunk().map(|bytes: &[u8; 4]| Ipv4Addr::from(*bytes))
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}

#[cfg(test)]
mod tests;
