//! Splits the bytes of a protocol into packets, one stream per connection and direction: complete
//! packets are decoded, violations of the declaration are reported with their position, and reading
//! resumes at the next recognizable packet. Replies are matched with their requests.

use std::collections::HashMap;

use throng_base::Said;
use throng_protocol::framed::declaration::{
    Declaration, Endian, Extent, Framing, Literal, Transport, Type,
};
use throng_protocol::framed::{
    Broken, Decoded, MessageId, Packet, PacketReader, Protocol, Records,
};

use crate::streams::{Direction, Ends, Event, What};
use twins::{Twins, Value};
use web::Web;

mod twins;
mod web;

/// The maximum number of stored requests without a reply.
const OUTSTANDING_MAX: usize = 1_000_000;

/// The bytes of a file that are read at a time.
const FED_BYTES: usize = 64 << 10;

/// The position of a packet in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacketPlace {
    /// In a capture: the connection and the direction.
    pub stream: Option<(Ends, Direction)>,
    /// In a capture.
    pub time_ns: Option<u64>,
    /// From the first byte of the stream, datagram or input.
    pub position: u64,
}

/// How a packet relates to requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exchange {
    /// Neither a request nor a reply.
    Alone,
    Request,
    /// The reply to this message, after this time.
    Reply {
        to: MessageId,
        took_ns: Option<u64>,
        /// More packets of the reply follow.
        is_part: bool,
    },
    /// A reply to one of several requests: its content does not show to which.
    Unpaired,
    /// A reply without a request.
    Orphan,
}

#[derive(Debug)]
pub enum Found<'a> {
    Packet {
        bytes: &'a [u8],
        decoded: &'a Decoded,
        packet: Packet,
        exchange: Exchange,
    },
    /// The bytes start with the broken packet and may extend beyond it. `decoded` is the part that
    /// was read.
    Broken {
        bytes: &'a [u8],
        broken: &'a Broken,
        decoded: Option<&'a Decoded>,
    },
    /// Skipped up to the next packet, or the end.
    Skipped {
        bytes: u64,
    },
    /// Missing in the capture.
    Gap {
        bytes: u64,
    },
    /// The start of a packet without its end.
    Left {
        bytes: &'a [u8],
        is_cut_off: bool,
    },
    /// A text message of a WebSocket, or one that cannot be read.
    Web {
        reason: Said,
    },
}

/// The totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// By message id.
    pub packets: Vec<u64>,
    pub broken: u64,
    pub skipped_bytes: u64,
    pub gap_bytes: u64,
    /// Bytes of incomplete packets; some are incomplete only because the capture ended.
    pub left_bytes: u64,
    pub cut_off: u64,
    pub replies: u64,
    pub orphans: u64,
    pub unanswered: u64,
}

impl Tally {
    /// True if all bytes match the declaration.
    pub fn fits(&self) -> bool {
        // Bytes before the first packet of a stream that was captured from its middle are not an
        // error, unless the stream has no packets.
        let is_nothing_read = self.skipped_bytes > 0 && self.packets.iter().all(|n| *n == 0);
        self.broken == 0 && self.cut_off == 0 && !is_nothing_read
    }
}

/// Receives the results.
pub type Sink<'s> = &'s mut dyn FnMut(PacketPlace, Found<'_>);

pub struct Reading<'p> {
    protocol: &'p Protocol,
    anchor: Anchor,
    sides: HashMap<(usize, Option<Direction>), Side>,
    judge: Judge<'p>,
}

/// The state for judging a single packet.
struct Judge<'p> {
    protocol: &'p Protocol,
    decoded: Decoded,
    outstanding: HashMap<Asked, Vec<Outstanding>>,
    twins: Twins,
    waiting: usize,
    /// The packets inside a packet are read.
    is_within: bool,
    tally: Tally,
}

/// A request without a reply so far.
struct Outstanding {
    message: MessageId,
    time_ns: Option<u64>,
    /// Values of the fields that its reply may repeat.
    values: Box<[Value]>,
    /// An earlier request was answered, and it is not known which: it may be this one.
    is_unsure: bool,
}

/// The connection, the direction of the request, and the correlation value.
type Asked = (usize, Option<Direction>, Option<u64>);

/// How the next packet is found after an error in a stream.
#[derive(Clone, Debug, PartialEq)]
enum Anchor {
    /// Every packet begins with these bytes.
    Magic(Vec<u8>),
    /// A packet starts after these.
    Delimiter(Vec<u8>),
    /// Packets may start at the start of a segment.
    Segment,
}

#[derive(Default)]
struct Side {
    reader: PacketReader,
    /// The bytes from the start of the current packet, from `begin` on.
    pending: Vec<u8>,
    begin: usize,
    /// Its position in the stream.
    position: u64,
    /// The next packet is searched for.
    seeking: bool,
    /// The pending bytes start with a broken packet.
    is_behind_broken: bool,
    /// Bytes that were skipped during the search.
    unread: u64,
    web: Option<Box<Web>>,
}

impl<'p> Reading<'p> {
    pub fn new(protocol: &'p Protocol) -> Reading<'p> {
        let tally = Tally { packets: vec![0; protocol.messages().count()], ..Tally::default() };
        let judge = Judge {
            protocol,
            decoded: Decoded::default(),
            outstanding: HashMap::new(),
            twins: Twins::of(protocol),
            waiting: 0,
            is_within: false,
            tally,
        };
        let anchor = Anchor::of(protocol.declaration());
        Reading { protocol, anchor, sides: HashMap::new(), judge }
    }

    /// Bytes without a connection.
    pub fn bytes(&mut self, bytes: &[u8], sink: Sink<'_>) {
        // A datagram is one packet; a stream contains many.
        let at_once = match self.protocol.declaration().transport {
            Transport::Tcp | Transport::Tls => FED_BYTES,
            Transport::Udp | Transport::WebSocket | Transport::WebSocketTls => usize::MAX,
        };
        bytes.chunks(at_once).for_each(|bytes| self.chunk(bytes, sink));
    }

    fn chunk(&mut self, bytes: &[u8], sink: Sink<'_>) {
        let side = self.sides.entry((0, None)).or_default();
        side.feed(&self.anchor, &mut self.judge, PacketPlace::default(), bytes, sink);
    }

    pub fn event(&mut self, event: Event<'_>, sink: Sink<'_>) {
        let stream = Some((event.ends, event.direction));
        let place = PacketPlace { stream, time_ns: Some(event.time_ns), position: 0 };
        let key = (event.ends.number, Some(event.direction));
        if let What::Datagram(bytes) = event.what {
            return self.judge.message(place, bytes, sink);
        }
        let is_web = matches!(
            self.protocol.declaration().transport,
            Transport::WebSocket | Transport::WebSocketTls
        );
        let side = self
            .sides
            .entry(key)
            .or_insert_with(|| Side { seeking: event.is_midway && !is_web, ..Side::default() });
        match event.what {
            What::Bytes(bytes) if is_web => {
                side.web_bytes(&mut self.judge, place, event.direction, bytes, sink);
            }
            What::Bytes(bytes) => {
                side.feed(&self.anchor, &mut self.judge, place, bytes, sink);
            }
            What::Datagram(_) => {}
            What::Gap(bytes) => side.gap(&mut self.judge, place, bytes, sink),
            What::End { reset } => {
                side.finish(&mut self.judge, place, !reset, sink);
                self.sides.remove(&key);
            }
        }
    }

    /// The end of the input. The streams of a capture may be incomplete.
    pub fn end(mut self, is_capture: bool, sink: Sink<'_>) -> Tally {
        let mut sides: Vec<_> = self.sides.drain().collect();
        sides
            .sort_by_key(|((number, direction), _)| (*number, *direction == Some(Direction::Down)));
        for (_, mut side) in sides {
            let place = side.place();
            side.finish(&mut self.judge, place, !is_capture, sink);
        }
        self.judge.tally.unanswered = self.judge.waiting as u64;
        self.judge.tally
    }
}

impl Judge<'_> {
    /// A datagram, or a message of a WebSocket: one packet, or several.
    fn message(&mut self, place: PacketPlace, bytes: &[u8], sink: Sink<'_>) {
        records(self.protocol, place).split(bytes, &mut |packet| {
            let offset = packet.as_ptr().addr() - bytes.as_ptr().addr();
            let position = place.position + offset as u64;
            self.packet(PacketPlace { position, ..place }, packet, sink);
            true
        });
    }

    fn packet(&mut self, place: PacketPlace, bytes: &[u8], sink: Sink<'_>) {
        let direction = place.stream.map(|(_, direction)| direction);
        let mut read = match direction {
            Some(Direction::Up) => self.protocol.decode_sent(bytes, &mut self.decoded),
            _ => self.protocol.decode(bytes, &mut self.decoded),
        };
        // The sender is unknown: a kind may be another message in the other direction.
        if direction.is_none() && read.is_err() {
            let broken = std::mem::take(&mut self.decoded);
            match self.protocol.decode_sent(bytes, &mut self.decoded) {
                Ok(packet) => read = Ok(packet),
                Err(_) => self.decoded = broken,
            }
        }
        match read {
            Ok(packet) => {
                let values = self.twins.values(self.protocol, bytes, &self.decoded, packet);
                let exchange = self.exchange(place, packet, values);
                if let Some(count) = self.tally.packets.get_mut(usize::from(packet.message.0)) {
                    *count += 1;
                }
                sink(place, Found::Packet { bytes, decoded: &self.decoded, packet, exchange });
                self.inner(place, bytes, sink);
            }
            Err(broken) => {
                self.tally.broken += 1;
                let decoded = Some(&self.decoded);
                sink(place, Found::Broken { bytes, broken: &broken, decoded });
            }
        }
    }

    /// The packets inside a packet; their positions are relative to the unpacked bytes.
    fn inner(&mut self, place: PacketPlace, bytes: &[u8], sink: Sink<'_>) {
        if self.is_within {
            return;
        }
        let Some(packets) = self.protocol.packets(bytes, &self.decoded).map(<[u8]>::to_vec) else {
            return;
        };
        self.is_within = true;
        self.message(PacketPlace { position: 0, ..place }, &packets, sink);
        self.is_within = false;
    }

    fn exchange(&mut self, place: PacketPlace, packet: Packet, values: Box<[Value]>) -> Exchange {
        let info = self.protocol.info(packet.message);
        let number = place.stream.map_or(0, |(ends, _)| ends.number);
        let direction = place.stream.map(|(_, direction)| direction);
        let is_reply = info.answers.iter().any(|asked| !self.protocol.info(*asked).push);
        if !info.answers.is_empty() && (is_reply || !info.push) {
            let asker = direction.map(Direction::opposite);
            let key = (number, asker, packet.correlation);
            if packet.goes_on {
                let found = self.going_on(&key, &info.answers, place.time_ns);
                if found.is_some() || info.push {
                    return found.unwrap_or(Exchange::Alone);
                }
            } else if let Some(found) = self.asked(&key, &info.answers, &values, place.time_ns) {
                self.tally.replies += 1;
                return found;
            }
            // A message that answers its own kind is a request if none is outstanding.
            if !info.answers.contains(&packet.message) {
                self.tally.orphans += 1;
                return Exchange::Orphan;
            }
        }
        if info.answered_by.is_empty() {
            return Exchange::Alone;
        }
        if self.waiting < OUTSTANDING_MAX {
            self.waiting += 1;
            let key = (number, direction, packet.correlation);
            let request = Outstanding {
                message: packet.message,
                time_ns: place.time_ns,
                values,
                is_unsure: false,
            };
            self.outstanding.entry(key).or_default().push(request);
        }
        Exchange::Request
    }

    /// The request of a partial reply: the first one, because targets of protocols without
    /// correlation reply in order.
    fn going_on(
        &self,
        key: &Asked,
        answers: &[MessageId],
        now_ns: Option<u64>,
    ) -> Option<Exchange> {
        let mut waiting = self.outstanding.get(key)?.iter();
        let asked = waiting.find(|one| answers.contains(&one.message))?;
        let took_ns = now_ns.zip(asked.time_ns).map(|(now, then)| now.saturating_sub(then));
        Some(Exchange::Reply { to: asked.message, took_ns, is_part: true })
    }

    /// Takes the request that the reply answers. Without a correlation field, it is the one whose
    /// values are repeated, or the only one; among several equal ones, one is taken and marked as
    /// unsure.
    fn asked(
        &mut self,
        key: &Asked,
        answers: &[MessageId],
        values: &[Value],
        now_ns: Option<u64>,
    ) -> Option<Exchange> {
        let waiting = self.outstanding.get_mut(key)?;
        let fits = |one: &&Outstanding| answers.contains(&one.message);
        let first = waiting.iter().position(|one| fits(&one))?;
        let repeated = |one: &Outstanding| twins::repeated(&one.values, values);
        let most = waiting.iter().filter(fits).map(repeated).max().unwrap_or(0);
        let is_sure = key.2.is_some()
            || most > 0
            || values.is_empty()
                && !waiting[first].is_unsure
                && waiting.iter().filter(fits).count() == 1;
        let is_one_kind =
            waiting.iter().filter(fits).all(|one| one.message == waiting[first].message);
        let best = |one: &Outstanding| fits(&one) && repeated(one) == most;
        let at = waiting.iter().position(best).unwrap_or(first);
        let found = waiting.remove(at);
        for one in waiting.iter_mut().filter(|one| answers.contains(&one.message)) {
            one.is_unsure |= !is_sure;
        }
        if waiting.is_empty() {
            self.outstanding.remove(key);
        }
        self.waiting -= 1;
        let took_ns = now_ns.zip(found.time_ns).filter(|_| is_sure);
        let took_ns = took_ns.map(|(now, then)| now.saturating_sub(then));
        Some(match is_sure || is_one_kind {
            true => Exchange::Reply { to: found.message, took_ns, is_part: false },
            false => Exchange::Unpaired,
        })
    }

    fn skipped(&mut self, place: PacketPlace, bytes: u64, sink: Sink<'_>) {
        if bytes > 0 {
            self.tally.skipped_bytes += bytes;
            sink(place, Found::Skipped { bytes });
        }
    }
}

impl Side {
    /// The position of the next packet, in a stream that has ended.
    fn place(&self) -> PacketPlace {
        PacketPlace { position: self.position, ..PacketPlace::default() }
    }

    /// The next bytes of the stream.
    fn feed(
        &mut self,
        anchor: &Anchor,
        judge: &mut Judge<'_>,
        place: PacketPlace,
        bytes: &[u8],
        sink: Sink<'_>,
    ) {
        self.pending.extend_from_slice(bytes);
        // The part that the reader has not seen.
        let mut fresh = self.pending.len() - bytes.len();
        while !self.rest().is_empty() {
            if self.seeking && !self.seek(anchor, judge, place, sink) {
                break;
            }
            fresh = fresh.max(self.begin);
            let (mut left, mut room) = (&self.pending[fresh..], Vec::new());
            let cutting = records(judge.protocol, place);
            let here = PacketPlace { position: self.position, ..place };
            match self.reader.next(cutting, &mut left, &mut room) {
                Ok(Some(packet)) => {
                    judge.packet(here, packet, sink);
                    fresh = self.pending.len() - left.len();
                    self.pass(fresh - self.begin);
                }
                Ok(None) => break,
                Err(broken) => {
                    judge.tally.broken += 1;
                    sink(
                        here,
                        Found::Broken { bytes: self.rest(), broken: &broken, decoded: None },
                    );
                    self.reader = PacketReader::new();
                    (self.seeking, self.is_behind_broken) = (true, true);
                    fresh = self.begin;
                }
            }
        }
        self.pending.drain(..self.begin);
        self.begin = 0;
    }

    fn rest(&self) -> &[u8] {
        &self.pending[self.begin..]
    }

    fn pass(&mut self, bytes: usize) {
        self.begin += bytes;
        self.position += bytes as u64;
    }

    /// Skips bytes that are not a packet; returns whether one starts there.
    fn seek(
        &mut self,
        anchor: &Anchor,
        judge: &mut Judge<'_>,
        place: PacketPlace,
        sink: Sink<'_>,
    ) -> bool {
        // Not at the same position again.
        let from = usize::from(std::mem::take(&mut self.is_behind_broken));
        let found = match (anchor, from) {
            (Anchor::Segment, 1) => None,
            _ => anchor.find(&self.rest()[from..], judge).map(|at| at + from),
        };
        let skipped = found.unwrap_or_else(|| anchor.useless(self.rest()).max(from));
        let here = PacketPlace { position: self.position, ..place };
        self.unread += skipped as u64;
        self.pass(skipped);
        if found.is_some() {
            self.seeking = false;
            let begin = here.position + skipped as u64 - self.unread;
            let unread = std::mem::take(&mut self.unread);
            judge.skipped(PacketPlace { position: begin, ..place }, unread, sink);
        }
        found.is_some()
    }

    fn web_bytes(
        &mut self,
        judge: &mut Judge<'_>,
        place: PacketPlace,
        direction: Direction,
        bytes: &[u8],
        sink: Sink<'_>,
    ) {
        let is_text = judge.protocol.declaration().is_text;
        let web = self.web.get_or_insert_with(|| Box::new(Web::new(direction, is_text)));
        web.read(bytes, &mut |position, message| {
            let place = PacketPlace { position, ..place };
            match message {
                Ok(message) => judge.message(place, message, sink),
                Err(reason) => {
                    judge.tally.broken += 1;
                    sink(place, Found::Web { reason });
                }
            }
        });
        self.position += bytes.len() as u64;
    }

    fn gap(&mut self, judge: &mut Judge<'_>, place: PacketPlace, bytes: u64, sink: Sink<'_>) {
        let unread = std::mem::take(&mut self.unread);
        judge.skipped(PacketPlace { position: self.position - unread, ..place }, unread, sink);
        let place = PacketPlace { position: self.position, ..place };
        if !self.pending.is_empty() {
            judge.tally.left_bytes += self.pending.len() as u64;
            sink(place, Found::Left { bytes: &self.pending, is_cut_off: false });
        }
        judge.tally.gap_bytes += bytes;
        let position = self.position + self.pending.len() as u64;
        sink(PacketPlace { position, ..place }, Found::Gap { bytes });
        let web = self.web.take().map(|web| Box::new(web.after_gap()));
        *self = Side { position: position + bytes, seeking: true, web, ..Side::default() };
    }

    /// `is_whole` means that the stream has no more bytes than these.
    fn finish(
        &mut self,
        judge: &mut Judge<'_>,
        place: PacketPlace,
        is_whole: bool,
        sink: Sink<'_>,
    ) {
        let left = std::mem::take(&mut self.pending);
        if self.seeking {
            let unread = std::mem::take(&mut self.unread);
            let position = self.position - unread;
            judge.skipped(PacketPlace { position, ..place }, unread + left.len() as u64, sink);
            return;
        }
        if left.is_empty() {
            return;
        }
        let place = PacketPlace { position: self.position, ..place };
        judge.tally.left_bytes += left.len() as u64;
        judge.tally.cut_off += u64::from(is_whole);
        sink(place, Found::Left { bytes: &left, is_cut_off: is_whole });
    }
}

fn records(protocol: &Protocol, place: PacketPlace) -> Records<'_> {
    match place.stream {
        Some((_, Direction::Up)) => Records::Sent(protocol),
        _ => Records::Declared(protocol),
    }
}

impl Anchor {
    fn of(declaration: &Declaration) -> Anchor {
        if let Framing::Delimiter { bytes, .. } = &declaration.framing {
            return Anchor::Delimiter(bytes.value.clone());
        }
        match magic(declaration) {
            Some(magic) if magic.len() > 1 => Anchor::Magic(magic),
            _ => Anchor::Segment,
        }
    }

    /// The position of the next packet in the bytes.
    fn find(&self, bytes: &[u8], judge: &mut Judge<'_>) -> Option<usize> {
        let find = |wanted: &[u8]| bytes.windows(wanted.len()).position(|part| part == wanted);
        match self {
            Anchor::Magic(magic) => find(magic),
            Anchor::Delimiter(delimiter) => find(delimiter).map(|at| at + delimiter.len()),
            // Only a completely valid packet is accepted.
            Anchor::Segment => {
                let (mut rest, mut room) = (bytes, Vec::new());
                let records = Records::Declared(judge.protocol);
                let packet = PacketReader::new().next(records, &mut rest, &mut room).ok()??;
                let (protocol, decoded) = (judge.protocol, &mut judge.decoded);
                let is_good = protocol.decode(packet, decoded).is_ok()
                    || protocol.decode_sent(packet, decoded).is_ok();
                is_good.then_some(0)
            }
        }
    }

    /// The number of bytes that cannot start a packet, if none was found.
    fn useless(&self, bytes: &[u8]) -> usize {
        match self {
            Anchor::Magic(wanted) | Anchor::Delimiter(wanted) => {
                bytes.len() - bytes.len().min(wanted.len().saturating_sub(1))
            }
            Anchor::Segment => bytes.len(),
        }
    }
}

/// The bytes that every packet starts with.
fn magic(declaration: &Declaration) -> Option<Vec<u8>> {
    let field = declaration.packet.first()?;
    let is_plain = field.repeat.is_none() && field.condition.is_none();
    let constant = &field.constant.as_ref().filter(|_| is_plain)?.value;
    let endian = field.endian.unwrap_or(declaration.endian);
    match (constant, &field.ty) {
        (Literal::Int(value), Type::Unsigned(bits) | Type::Signed(bits)) => {
            let width = usize::from(bits / 8);
            let all = value.to_be_bytes();
            let mut bytes = all[all.len() - width..].to_vec();
            if endian == Endian::Little {
                bytes.reverse();
            }
            Some(bytes)
        }
        (Literal::Text(text), Type::Text(Extent::Fixed(bytes))) => {
            Some(text.as_bytes().to_vec()).filter(|it| it.len() == *bytes as usize)
        }
        (Literal::Bytes(all), Type::Bytes(Extent::Fixed(_))) => Some(all.clone()),
        (Literal::Text(text), Type::Bytes(Extent::Fixed(_))) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
