//! Reassembles TCP streams from captured segments: in order, each byte once, per connection and
//! direction. UDP datagrams pass through. Bytes that are missing in the capture become a gap with
//! its length.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use crate::capture::{Carried, Frame};

/// The maximum number of bytes that a direction buffers after a gap before the gap is reported.
const HELD_BYTES_MAX: usize = 4 << 20;
const HELD_SEGMENTS_MAX: usize = 4096;
/// The number of frames of a connection after which acknowledged but missing bytes are considered
/// lost by the capture.
const PATIENCE_FRAMES: u32 = 200;
/// The maximum number of separate connections; more are counted.
pub const CONVERSATIONS_MAX: usize = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    Up,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Numbered from 1 in the order of their first frames.
    pub number: usize,
    pub client: SocketAddr,
    pub server: SocketAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// The next bytes of a stream.
    Bytes(&'a [u8]),
    Datagram(&'a [u8]),
    /// This many bytes of the stream are missing in the capture.
    Gap(u64),
    /// The stream has ended, gracefully or by a reset.
    End {
        reset: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    pub ends: Ends,
    pub direction: Direction,
    pub time_ns: u64,
    /// The start of the stream was not captured.
    pub is_midway: bool,
    pub what: What<'a>,
}

pub struct Streams {
    port: Option<u16>,
    conversations: HashMap<Key, Conversation>,
    begun: usize,
    /// Frames of connections beyond the maximum.
    pub too_many: u64,
    /// Segments that repeated earlier bytes.
    pub repeated: u64,
}

/// The two ends, the smaller first, and whether it is UDP.
type Key = (SocketAddr, SocketAddr, bool);

struct Conversation {
    ends: Ends,
    up: Half,
    down: Half,
}

#[derive(Default)]
struct Half {
    /// The sequence number of the next byte; `None` before the first segment.
    next: Option<u32>,
    /// Bytes of the stream before `next`.
    read: u64,
    is_midway: bool,
    /// Segments after a gap, by their position in the stream.
    held: BTreeMap<u64, Held>,
    held_bytes: usize,
    /// The end of the stream, once it is known.
    end: Option<u64>,
    ended: bool,
    /// Frames since the peer acknowledged the missing bytes.
    waited: u32,
}

struct Held {
    time_ns: u64,
    bytes: Vec<u8>,
    /// Bytes after it that were not captured.
    cut_bytes: u64,
}

type Sink<'s> = &'s mut dyn FnMut(Event<'_>);

impl Streams {
    /// With a port, only its connections.
    pub fn new(port: Option<u16>) -> Streams {
        let conversations = HashMap::new();
        Streams { port, conversations, begun: 0, too_many: 0, repeated: 0 }
    }

    pub fn frame(&mut self, frame: &Frame<'_>, sink: Sink<'_>) {
        let (source, target) = (frame.source, frame.target);
        if self.port.is_some_and(|port| source.port() != port && target.port() != port) {
            return;
        }
        let is_datagram = matches!(frame.carried, Carried::Datagram);
        let key = (source.min(target), source.max(target), is_datagram);
        if let Carried::Segment { syn: true, acknowledged: None, sequence, .. } = frame.carried
            && self.conversations.get(&key).is_some_and(|it| it.is_over_before(source, sequence))
            && let Some(mut old) = self.conversations.remove(&key)
        {
            // The same ports again: another connection.
            old.flush(sink);
        }
        let count = self.conversations.len();
        let conversation = match self.conversations.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(_) if count >= CONVERSATIONS_MAX => {
                self.too_many += 1;
                return;
            }
            Entry::Vacant(entry) => {
                self.begun += 1;
                let ends = ends(self.begun, frame, self.port);
                let (up, down) = (Half::default(), Half::default());
                entry.insert(Conversation { ends, up, down })
            }
        };
        self.repeated += conversation.frame(frame, sink);
    }

    /// The end of the capture: segments after gaps are delivered.
    pub fn end(&mut self, sink: Sink<'_>) {
        let mut left: Vec<Conversation> = self.conversations.drain().map(|(_, it)| it).collect();
        left.sort_by_key(|conversation| conversation.ends.number);
        left.iter_mut().for_each(|conversation| conversation.flush(sink));
    }
}

/// The client opens the connection; if that was not captured, it has the higher port.
fn ends(number: usize, frame: &Frame<'_>, port: Option<u16>) -> Ends {
    let (source, target) = (frame.source, frame.target);
    let from_client = match (frame.carried, port) {
        (Carried::Segment { syn: true, acknowledged, .. }, _) => acknowledged.is_none(),
        (_, Some(port)) if source.port() != target.port() => target.port() == port,
        _ => source.port() >= target.port(),
    };
    match from_client {
        true => Ends { number, client: source, server: target },
        false => Ends { number, client: target, server: source },
    }
}

impl Conversation {
    /// True if a SYN with this sequence number opens a new connection.
    fn is_over_before(&self, source: SocketAddr, sequence: u32) -> bool {
        let half = if source == self.ends.client { &self.up } else { &self.down };
        let first = half.next.map(|next| next.wrapping_sub(half.read as u32).wrapping_sub(1));
        first.is_some_and(|first| first != sequence)
    }

    /// The number of segments that repeated bytes: 0 or 1.
    fn frame(&mut self, frame: &Frame<'_>, sink: Sink<'_>) -> u64 {
        let direction = match frame.source == self.ends.client {
            true => Direction::Up,
            false => Direction::Down,
        };
        let (half, peer) = match direction {
            Direction::Up => (&mut self.up, &mut self.down),
            Direction::Down => (&mut self.down, &mut self.up),
        };
        let told = EventSide { ends: self.ends, direction };
        let Carried::Segment { sequence, acknowledged, syn, fin, rst } = frame.carried else {
            sink(told.event(frame.time_ns, false, What::Datagram(frame.payload)));
            return 0;
        };
        let repeated = half.segment(sequence, syn, frame, &told, sink);
        if fin {
            half.finish(sequence.wrapping_add(u32::from(syn)), frame);
        }
        let opposite = EventSide { ends: self.ends, direction: direction.opposite() };
        if let Some(acknowledged) = acknowledged {
            peer.lose_patience(acknowledged, &opposite, sink);
        }
        if rst {
            half.flush(&told, sink);
            half.close(frame.time_ns, true, &told, sink);
            peer.flush(&opposite, sink);
            peer.close(frame.time_ns, true, &opposite, sink);
        }
        half.end_if_done(frame.time_ns, &told, sink);
        u64::from(repeated)
    }

    fn flush(&mut self, sink: Sink<'_>) {
        for (half, direction) in [(&mut self.up, Direction::Up), (&mut self.down, Direction::Down)]
        {
            let told = EventSide { ends: self.ends, direction };
            let time_ns = half.held.values().map(|held| held.time_ns).max().unwrap_or(0);
            half.flush(&told, sink);
            half.end_if_done(time_ns, &told, sink);
        }
    }
}

impl Direction {
    pub fn opposite(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

/// The identity of the stream for events.
struct EventSide {
    ends: Ends,
    direction: Direction,
}

impl EventSide {
    fn event<'a>(&self, time_ns: u64, is_midway: bool, what: What<'a>) -> Event<'a> {
        Event { ends: self.ends, direction: self.direction, time_ns, is_midway, what }
    }
}

impl Half {
    /// True if it repeated bytes.
    fn segment(
        &mut self,
        sequence: u32,
        syn: bool,
        frame: &Frame<'_>,
        told: &EventSide,
        sink: Sink<'_>,
    ) -> bool {
        let sequence = sequence.wrapping_add(u32::from(syn));
        if self.next.is_none() {
            if frame.payload.is_empty() && !syn {
                return false;
            }
            self.next = Some(sequence);
            self.is_midway = !syn;
        }
        if frame.payload.is_empty() || self.ended {
            return false;
        }
        let (begin, bytes) = match self.position(sequence) {
            // It starts before the next expected byte.
            Err(before) if before >= frame.payload.len() as u64 => return true,
            Err(before) => (self.read, &frame.payload[before as usize..]),
            Ok(position) => (position, frame.payload),
        };
        let repeated = bytes.len() < frame.payload.len();
        let cut_bytes = frame.cut_bytes as u64;
        if begin == self.read {
            self.deliver(frame.time_ns, bytes, cut_bytes, told, sink);
            self.deliver_held(told, sink);
            return repeated;
        }
        let held = self.held.get(&begin).map_or(0, |held| held.bytes.len());
        if held >= bytes.len() {
            return true;
        }
        self.held_bytes += bytes.len() - held;
        let time_ns = frame.time_ns;
        self.held.insert(begin, Held { time_ns, bytes: bytes.to_vec(), cut_bytes });
        while self.held_bytes > HELD_BYTES_MAX || self.held.len() > HELD_SEGMENTS_MAX {
            self.skip_hole(told, sink);
        }
        repeated
    }

    /// The position of a sequence number in the stream; or the number of bytes before the next
    /// expected one.
    fn position(&self, sequence: u32) -> Result<u64, u64> {
        let ahead = sequence.wrapping_sub(self.next.unwrap_or(sequence)) as i32;
        match u64::try_from(ahead) {
            Ok(ahead) => Ok(self.read + ahead),
            Err(_) => Err(u64::from(ahead.unsigned_abs())),
        }
    }

    fn deliver(
        &mut self,
        time_ns: u64,
        bytes: &[u8],
        cut_bytes: u64,
        told: &EventSide,
        sink: Sink<'_>,
    ) {
        self.advance(bytes.len() as u64);
        sink(told.event(time_ns, self.is_midway, What::Bytes(bytes)));
        if cut_bytes > 0 {
            self.advance(cut_bytes);
            sink(told.event(time_ns, self.is_midway, What::Gap(cut_bytes)));
        }
    }

    fn advance(&mut self, bytes: u64) {
        self.read += bytes;
        self.next = self.next.map(|next| next.wrapping_add(bytes as u32));
        self.waited = 0;
    }

    /// Delivers buffered segments without a gap before them.
    fn deliver_held(&mut self, told: &EventSide, sink: Sink<'_>) {
        while let Some(entry) = self.held.first_entry()
            && *entry.key() <= self.read
        {
            let (begin, held) = entry.remove_entry();
            self.held_bytes -= held.bytes.len();
            let known = usize::try_from(self.read - begin).unwrap_or(usize::MAX);
            if let Some(bytes) = held.bytes.get(known..).filter(|bytes| !bytes.is_empty()) {
                self.deliver(held.time_ns, bytes, held.cut_bytes, told, sink);
            }
        }
    }

    /// Skips the first gap.
    fn skip_hole(&mut self, told: &EventSide, sink: Sink<'_>) {
        let Some((begin, held)) = self.held.first_key_value() else { return };
        let (missing, time_ns) = (begin.saturating_sub(self.read), held.time_ns);
        self.advance(missing);
        if missing > 0 {
            sink(told.event(time_ns, self.is_midway, What::Gap(missing)));
        }
        self.deliver_held(told, sink);
    }

    /// The peer has acknowledged the missing bytes for long enough.
    fn lose_patience(&mut self, acknowledged: u32, told: &EventSide, sink: Sink<'_>) {
        let Some(hole_end) = self.held.first_key_value().map(|(begin, _)| *begin) else { return };
        if self.position(acknowledged).is_ok_and(|position| position >= hole_end) {
            self.waited += 1;
            if self.waited > PATIENCE_FRAMES {
                self.skip_hole(told, sink);
            }
        }
    }

    fn finish(&mut self, sequence: u32, frame: &Frame<'_>) {
        let length = (frame.payload.len() + frame.cut_bytes) as u64;
        if self.next.is_some()
            && let Ok(end) = self.position(sequence.wrapping_add(length as u32))
        {
            self.end = Some(end);
        }
    }

    fn flush(&mut self, told: &EventSide, sink: Sink<'_>) {
        while !self.held.is_empty() {
            self.skip_hole(told, sink);
        }
    }

    fn end_if_done(&mut self, time_ns: u64, told: &EventSide, sink: Sink<'_>) {
        if self.end.is_some_and(|end| self.read >= end) {
            self.close(time_ns, false, told, sink);
        }
    }

    fn close(&mut self, time_ns: u64, reset: bool, told: &EventSide, sink: Sink<'_>) {
        if !self.ended && self.next.is_some() {
            self.ended = true;
            sink(told.event(time_ns, self.is_midway, What::End { reset }));
        }
    }
}

#[cfg(test)]
mod tests;
