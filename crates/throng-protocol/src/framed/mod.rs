//! Protocols that a person declares: bytes in, messages out, by compiled tables.
//!
//! - [`declaration`]: what is declared; [`Protocol::compile`] checks it and makes the tables.
//! - [`PacketReader`] cuts a stream into packets.
//! - [`Protocol::decode`] reads a packet into a [`Decoded`], which keeps only positions and is used
//!   again for the next one; [`Protocol::value`] takes a field out.
//! - [`Protocol::prepare`] checks what a scenario gives for a message, [`Protocol::encode`]
//!   writes it.

pub mod declaration;

mod acknowledge;
mod checksum;
mod coding;
mod compile;
mod constant;
mod contradictions;
mod decode;
mod describe;
mod document;
mod encode;
mod kinds;
mod layer;
mod members;
mod notation;
mod path;
mod prepare;
mod reader;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod wanted;

use std::sync::Arc;

use throng_expression::Value;

use throng_base::Said;

use self::decode::Record;
use self::encode::{Encoder, Op};
use self::table::{Frame, GoesOn, Table};
use crate::fields::number::put_unsigned;
use crate::protobuf;

pub use crate::fields::{EncodeError, Given, GivenMistake, PathMistake, Range};
pub use declaration::{Declaration, Mistake};

/// A message kind of a [`Protocol`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u16);

/// A compiled declaration.
#[derive(Debug)]
pub struct Protocol {
    declaration: Declaration,
    table: Table,
    infos: Box<[MessageInfo]>,
    acknowledgements: Box<[Option<Acknowledging>]>,
}

/// What is sent at once for every message of a kind that comes: leaf `n` of the template is the
/// value of the n-th field of what came.
#[derive(Debug)]
pub struct Acknowledging {
    pub template: Template,
    pub leaves: Box<[FieldPath]>,
}

/// What is known of a message kind.
#[derive(Clone, Debug)]
pub struct MessageInfo {
    pub name: String,
    /// The kinds that it may answer.
    pub answers: Box<[MessageId]>,
    /// The kinds that may answer it.
    pub answered_by: Box<[MessageId]>,
    pub push: bool,
    /// A reply may go on behind it.
    pub may_go_on: bool,
}

/// A field of one message kind, found by its path: `code`, `items[2].price`, `data.battery` inside
/// a JSON or protobuf field, or a field of the packet such as `seq`.
#[derive(Clone, Debug)]
pub struct FieldPath {
    pub message: MessageId,
    pub written: Box<str>,
    node: u32,
    /// The index of its record, where that is always the same.
    record: u32,
    steps: Box<[path::Step]>,
    /// What follows inside JSON.
    inner: Box<[wanted::Inner]>,
    /// What follows inside a message of protobuf.
    proto: Option<Box<protobuf::FieldPath>>,
}

impl FieldPath {
    /// Whether it leads into a message of protobuf, where what is missing may be null.
    pub fn is_of_protobuf(&self) -> bool {
        self.proto.is_some()
    }
}

/// A message as a scenario sends it, ready to be written again and again.
#[derive(Clone, Debug)]
pub struct Template {
    pub message: MessageId,
    ops: Arc<[Op]>,
    bytes: Arc<[u8]>,
    whole: Option<Arc<Whole>>,
    gives_correlation: bool,
}

impl Template {
    /// Whether it gives the field that correlates itself, as an answer to a request of the target
    /// does: then no number of ours is in it.
    pub fn gives_correlation(&self) -> bool {
        self.gives_correlation
    }
}

/// A packet that is always the same but for its correlation.
#[derive(Debug)]
struct Whole {
    bytes: Box<[u8]>,
    /// Where it stands, its bytes, and whether the lowest comes first.
    correlation: Option<(usize, u8, bool)>,
    correlation_max: u64,
}

/// A packet that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub message: MessageId,
    /// The value of the field that correlates; None when there is none in the declaration.
    pub correlation: Option<u64>,
    /// The reply that it is a part of has more packets.
    pub goes_on: bool,
}

/// Where the parts of a decoded packet lie. It is used again, so that nothing is allocated once it
/// has grown.
#[derive(Debug, Default)]
pub struct Decoded {
    records: Vec<Record>,
    /// Which message it was, as far as that became known.
    message: Option<MessageId>,
    correlation: Option<u64>,
    /// What was compressed in the packet.
    unpacked: Vec<u8>,
    /// Where the wanted parts of a document are.
    found: Vec<wanted::Span>,
}

/// One part of a packet, as people are shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// `items[2].price`; the prefix of a text has the path of the text.
    pub path: String,
    pub start: usize,
    pub end: usize,
    /// For a field of bits: the first one, counted from the highest of byte `start`, and how many.
    pub bits: Option<(u32, u32)>,
    /// As a declaration has it: `u32`, `str`.
    pub type_word: String,
    pub value: Value,
    /// What the part is for: `length`, `a label`, `padding`.
    pub note: Said,
}

/// One row of the drawing of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutRow {
    pub path: String,
    pub type_word: String,
    /// `4`, `2 + n`, `3 bits`.
    pub bytes: String,
    /// From the first byte of the packet on, while all before it has a fixed size.
    pub offset: Option<usize>,
    pub note: Said,
}

/// Bytes that break the declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from the first byte of the packet.
    pub position: usize,
    /// The path of the field there, empty when it is the packet.
    pub field: String,
    /// One sentence: what is there and what the declaration has.
    pub reason: Said,
    /// The stream cannot be read any further: nobody knows where the next packet begins.
    pub is_lost: bool,
    /// What the packet begins with, as far as it has come: at most [`EXCERPT_BYTES_MAX`] bytes.
    pub excerpt: Box<[u8]>,
}

/// How records are told apart in a stream of bytes, or in one message that a server has put several
/// of them into.
#[derive(Clone, Copy, Debug)]
pub enum Records<'a> {
    /// That come from the target.
    Declared(&'a Protocol),
    /// That users send.
    Sent(&'a Protocol),
    /// Each ends with the delimiter, and has at most so many bytes before it.
    Delimited { delimiter: &'a [u8], bytes_max: usize },
}

/// Collects bytes, in any cuts, until a packet is complete. Owns heap memory only while one is not.
#[derive(Debug, Default)]
pub struct PacketReader {
    held: Vec<u8>,
}

const _: () = assert!(size_of::<PacketReader>() <= 24);

/// Bytes of a broken packet that are shown.
pub const EXCERPT_BYTES_MAX: usize = 32;

impl Protocol {
    /// Looks for all that contradicts itself, and makes the tables.
    pub fn compile(declaration: Declaration) -> Result<Protocol, Vec<Mistake>> {
        compile::compile(declaration)
    }

    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    pub fn message(&self, name: &str) -> Option<MessageId> {
        self.messages().find(|(_, info)| info.name == name).map(|(id, _)| id)
    }

    pub fn info(&self, message: MessageId) -> &MessageInfo {
        &self.infos[usize::from(message.0)]
    }

    pub fn messages(&self) -> impl Iterator<Item = (MessageId, &MessageInfo)> {
        self.infos.iter().enumerate().map(|(index, info)| (MessageId(index as u16), info))
    }

    /// Whether a message from the target answers nothing: a push, or a request of the target's own,
    /// whose number is the target's.
    pub fn comes_unasked(&self, message: MessageId) -> bool {
        let info = self.info(message);
        // A part of a reply may be both: then it is a reply where one is waited for.
        let is_reply = info.answers.iter().any(|asked| !self.info(*asked).push);
        info.push && !is_reply || info.answers.is_empty() && !info.answered_by.is_empty()
    }

    /// The messages that may be packets of a push behind its first one, which is this message.
    pub fn parts_of_push(&self, first: MessageId) -> impl Iterator<Item = MessageId> {
        let info = self.info(first);
        let all = if info.push { &*info.answered_by } else { &[] };
        all.iter().copied().filter(|part| self.info(*part).push)
    }

    /// Adds a packet to those of a push that go together, so that [`Protocol::apart`] finds them.
    pub fn join(&self, packets: &mut Vec<u8>, packet: &[u8]) {
        if !packets.is_empty()
            && let Frame::Delimited { bytes, .. } = &self.table.frame
        {
            packets.extend_from_slice(bytes);
        }
        packets.extend_from_slice(packet);
    }

    /// The first packet of a message that came, and those of the same push behind it.
    pub fn apart<'b>(&self, packets: &'b [u8]) -> (&'b [u8], Vec<&'b [u8]>) {
        if !self.infos.iter().any(|info| info.push && info.may_go_on) {
            return (packets, Vec::new());
        }
        let mut all = Vec::new();
        Records::Declared(self).split(packets, &mut |packet| {
            all.push(packet);
            true
        });
        let behind = all.split_off(all.len().min(1));
        (all.first().copied().unwrap_or(packets), behind)
    }

    /// Whether a reply always has more packets behind this message, whatever its fields are.
    pub fn goes_on(&self, message: MessageId) -> bool {
        matches!(self.table.messages[usize::from(message.0)].more, GoesOn::Always)
    }

    /// Whether replies carry the value of their request, at least those of some messages.
    pub fn correlates(&self) -> bool {
        self.table.correlator.is_some()
            || self.table.messages.iter().any(|message| message.correlator.is_some())
    }

    /// The name of the field that correlates packets of a message.
    pub fn correlator(&self, message: MessageId) -> Option<&str> {
        self.table.correlator_of(message.0).map(|node| &*self.table.node(node).name)
    }

    /// The greatest value that the correlating field of a message holds; 0 without one.
    pub fn correlation_max(&self, message: MessageId) -> u64 {
        let node = self.table.correlator_of(message.0).map(|node| self.table.node(node));
        node.map_or(0, |node| node.range().1 as u64)
    }

    /// The bytes behind every packet that end it; none where packets end otherwise.
    pub fn delimiter_bytes(&self) -> usize {
        match &self.table.frame {
            Frame::Delimited { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// What is sent whenever a message of this kind comes.
    pub fn acknowledgement(&self, message: MessageId) -> Option<&Acknowledging> {
        self.acknowledgements[usize::from(message.0)].as_ref()
    }

    pub fn field(&self, message: MessageId, path: &str) -> Result<FieldPath, PathMistake> {
        path::resolve(&self.table, message, path)
    }

    /// What values a field can have, as far as its declaration says.
    pub fn range(&self, path: &FieldPath) -> Range {
        path::range(&self.table, path)
    }

    /// Checks the names and shapes of what is given; a leaf is checked when it has its value. A
    /// field that is labelled takes the label as text. A field whose condition does not hold is
    /// not sent, also when it is given. The field that correlates may be given, or is
    /// `correlation` when the message is encoded.
    pub fn prepare(&self, message: MessageId, given: &Given) -> Result<Template, GivenMistake> {
        prepare::prepare(&self.table, message, &self.info(message).name, given)
    }

    /// Appends a packet, with its delimiter if packets have one. `leaf` gives the value of a leaf,
    /// or appends it as text to the buffer and gives None. After an error nothing is appended.
    #[allow(clippy::type_complexity)]
    pub fn encode<E>(
        &self,
        template: &Template,
        correlation: u64,
        leaf: &mut dyn FnMut(u16, &mut Vec<u8>) -> Result<Option<Value>, E>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError<E>> {
        let begin = out.len();
        if let Some(whole) = &template.whole
            && (correlation <= whole.correlation_max || whole.correlation.is_none())
        {
            out.extend_from_slice(&whole.bytes);
            if let Some((at, width, is_little)) = whole.correlation {
                let at = begin + at;
                put_unsigned(correlation, is_little, &mut out[at..at + usize::from(width)]);
            }
            return Ok(());
        }
        let message = template.message.0;
        let mut encoder =
            Encoder::new(&self.table, &template.bytes, message, correlation, leaf, out);
        let result = encoder.packet(&template.ops);
        if result.is_err() {
            out.truncate(begin);
        }
        result
    }

    /// Reads a whole packet that comes from the target, all of it; without its delimiter if packets
    /// have one.
    pub fn decode(&self, packet: &[u8], decoded: &mut Decoded) -> Result<Packet, Broken> {
        self.read((true, None), packet, decoded)
    }

    /// The same for one that a user sends.
    pub fn decode_sent(&self, packet: &[u8], decoded: &mut Decoded) -> Result<Packet, Broken> {
        self.read((false, None), packet, decoded)
    }

    /// The same for a packet that is this message.
    pub fn decode_as(
        &self,
        message: MessageId,
        packet: &[u8],
        decoded: &mut Decoded,
    ) -> Result<Packet, Broken> {
        let comes_from_target = self.table.messages[usize::from(message.0)].comes_from_target;
        self.read((comes_from_target, Some(message)), packet, decoded)
    }

    fn read(
        &self,
        (from_target, assumed): (bool, Option<MessageId>),
        packet: &[u8],
        decoded: &mut Decoded,
    ) -> Result<Packet, Broken> {
        let table = &self.table;
        match &table.document {
            Some(document) => {
                document::decode(table, document, (from_target, assumed), packet, decoded)
            }
            None => decode::decode(table, from_target, assumed, packet, decoded),
        }
    }

    /// The value of a field of a packet that was decoded; None when it is not there.
    pub fn value(&self, packet: &[u8], decoded: &Decoded, path: &FieldPath) -> Option<Value> {
        value::value(&self.table, packet, decoded, path)
    }

    /// The packets within a packet that was decoded, one behind the other; None of a message that
    /// is no carrier of others.
    pub fn packets<'b>(&self, packet: &'b [u8], decoded: &'b Decoded) -> Option<&'b [u8]> {
        let message = self.table.messages.get(usize::from(decoded.message?.0))?;
        let node = message.packets?;
        let content = decoded.records.iter().find(|record| record.node == node)?.content();
        match self.table.node(node).layer {
            Some(_) => decoded.unpacked.get(content),
            None => packet.get(content),
        }
    }

    /// All parts of a packet in the order in which they lie there; of one that turned out to be
    /// broken those that were read.
    pub fn describe(&self, packet: &[u8], decoded: &Decoded) -> Vec<Part> {
        describe::describe(&self.table, packet, decoded)
    }

    /// How a message is laid out.
    pub fn layout(&self, message: MessageId) -> Vec<LayoutRow> {
        describe::layout(&self.table, message)
    }

    fn table(&self) -> &Table {
        &self.table
    }
}

impl Decoded {
    /// Which message the packet is; also known of most packets that are broken behind it.
    pub fn message(&self) -> Option<MessageId> {
        self.message
    }

    /// The value of the field that correlates; also of a packet that is broken behind it.
    pub fn correlation(&self) -> Option<u64> {
        self.correlation
    }
}

impl Broken {
    /// Keeps what the packet begins with, to be shown.
    fn showing<'b>(mut self, packet: impl IntoIterator<Item = &'b u8>) -> Broken {
        self.excerpt = packet.into_iter().take(EXCERPT_BYTES_MAX).copied().collect();
        self
    }
}

impl Broken {
    pub fn said(&self) -> Said {
        match self.field.is_empty() {
            true => say!("byte {} of the packet: {}", self.position, self.reason),
            false => say!("byte {}, `{}`: {}", self.position, self.field, self.reason),
        }
    }
}
