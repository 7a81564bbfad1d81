//! Declared protocols: bytes in, messages out, by compiled tables.
//!
//! - [`declaration`]: the declaration; [`Protocol::compile`] checks it and creates the tables.
//! - [`PacketReader`] splits a stream into packets.
//! - [`Protocol::decode`] reads a packet into a [`Decoded`], which only contains positions and is
//!   reused for the next one; [`Protocol::value`] returns a field.
//! - [`Protocol::prepare`] checks what a scenario gives for a message, [`Protocol::encode`] writes
//!   it.

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

use self::coding::Coding;
use self::encode::{Encoder, Op};
use self::table::{Frame, GoesOn, Record, Shape, Table};
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

/// The acknowledgement of a kind of message: leaf `n` of the template is the value of the n-th
/// field of the received message.
#[derive(Debug)]
pub struct Acknowledging {
    pub template: Template,
    pub leaves: Box<[FieldPath]>,
}

/// Properties of a message kind.
#[derive(Clone, Debug)]
pub struct MessageInfo {
    pub name: String,
    /// The kinds that it may answer.
    pub answers: Box<[MessageId]>,
    /// The kinds that may answer it.
    pub answered_by: Box<[MessageId]>,
    pub push: bool,
    /// A reply may continue after it.
    pub may_go_on: bool,
}

/// A field of one message kind, resolved from its path: `code`, `items[2].price`, `data.battery`
/// inside a JSON or protobuf field, or a field of the packet such as `seq`.
#[derive(Clone, Debug)]
pub struct FieldPath {
    pub message: MessageId,
    pub written: Box<str>,
    node: u32,
    /// The index of its record, if that is always the same.
    record: u32,
    steps: Box<[path::Step]>,
    /// The rest of the path inside JSON.
    inner: Box<[wanted::Inner]>,
    /// The rest of the path inside a protobuf message.
    proto: Option<Box<protobuf::FieldPath>>,
}

impl FieldPath {
    /// Whether it leads into a protobuf message, where a missing field may be null.
    pub fn is_of_protobuf(&self) -> bool {
        self.proto.is_some()
    }
}

/// A message of a scenario, ready to be written repeatedly.
#[derive(Clone, Debug)]
pub struct Template {
    pub message: MessageId,
    ops: Arc<[Op]>,
    bytes: Arc<[u8]>,
    whole: Option<Arc<Whole>>,
    gives_correlation: bool,
}

impl Template {
    /// Whether it gives the correlating field itself, as an answer to a request of the target does:
    /// then it has no number of ours.
    pub fn gives_correlation(&self) -> bool {
        self.gives_correlation
    }
}

/// A packet that is constant except for its correlation.
#[derive(Debug)]
struct Whole {
    bytes: Box<[u8]>,
    /// Offset and size of the correlation, and whether it is little-endian.
    correlation: Option<(usize, u8, bool)>,
    correlation_max: u64,
}

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub message: MessageId,
    /// The value of the correlating field; `None` if the declaration has none.
    pub correlation: Option<u64>,
    /// The reply that it belongs to has more packets.
    pub goes_on: bool,
}

/// Positions of the parts of a decoded packet. It is reused, so that nothing is allocated once it
/// has grown.
#[derive(Debug, Default)]
pub struct Decoded {
    records: Vec<Record>,
    /// The message, as far as it was recognized.
    message: Option<MessageId>,
    correlation: Option<u64>,
    /// Unpacked layers of the packet.
    unpacked: Vec<u8>,
    /// Positions of the wanted parts of a document.
    found: Vec<wanted::Span>,
}

/// A part of a packet, for display.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketPart {
    /// `items[2].price`; the prefix of a text has the path of the text.
    pub path: String,
    pub start: usize,
    pub end: usize,
    /// For a bit field: its first bit, counted from the highest bit of byte `start`, and the number
    /// of bits.
    pub bits: Option<(u32, u32)>,
    /// As in a declaration: `u32`, `str`.
    pub type_word: String,
    pub value: Value,
    /// The purpose of the part: `length`, `a label`, `padding`.
    pub note: Said,
}

/// A row of a packet's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutRow {
    pub path: String,
    pub type_word: String,
    /// `4`, `2 + n`, `3 bits`.
    pub bytes: String,
    /// From the first byte of the packet, while everything before it has a fixed size.
    pub offset: Option<usize>,
    pub note: Said,
}

/// Bytes that violate the declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from the first byte of the packet.
    pub position: usize,
    /// The path of the field there, empty for the packet.
    pub field: String,
    /// One sentence: what was found and what the declaration expects.
    pub reason: Said,
    /// The stream cannot be read any further: the start of the next packet is unknown.
    pub is_lost: bool,
    /// The received start of the packet: at most [`EXCERPT_BYTES_MAX`] bytes.
    pub excerpt: Box<[u8]>,
}

/// How records are separated in a stream of bytes, or in one message that contains several.
#[derive(Clone, Copy, Debug)]
pub enum Records<'a> {
    /// Packets from the target.
    Declared(&'a Protocol),
    /// Packets that users send.
    Sent(&'a Protocol),
    /// Each ends with the delimiter, and has at most this many bytes before it.
    Delimited { delimiter: &'a [u8], bytes_max: usize },
}

/// Collects bytes, however they are split, until a packet is complete. Owns heap memory only for an
/// incomplete packet.
#[derive(Debug, Default)]
pub struct PacketReader {
    held: Option<Box<reader::Held>>,
}

const _: () = assert!(size_of::<PacketReader>() <= 8);

/// Bytes of a malformed packet that are shown.
pub const EXCERPT_BYTES_MAX: usize = 32;

impl Protocol {
    /// Finds all contradictions, and creates the tables.
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

    /// Whether a message from the target is unsolicited: a push, or a request of the target itself,
    /// with its own number.
    pub fn comes_unasked(&self, message: MessageId) -> bool {
        let info = self.info(message);
        // A part of a reply may be both: then it is a reply if one is waited for.
        let is_reply = info.answers.iter().any(|asked| !self.info(*asked).push);
        info.push && !is_reply || info.answers.is_empty() && !info.answered_by.is_empty()
    }

    /// The messages that may follow this one as packets of the same push.
    pub fn parts_of_push(&self, first: MessageId) -> impl Iterator<Item = MessageId> {
        let info = self.info(first);
        let all = if info.push { &*info.answered_by } else { &[] };
        all.iter().copied().filter(|part| self.info(*part).push)
    }

    /// Appends a packet to those of a push, in a form that [`Protocol::apart`] can split.
    pub fn join(&self, packets: &mut Vec<u8>, packet: &[u8]) {
        if !packets.is_empty()
            && let Frame::Delimited { bytes, .. } = &self.table.frame
        {
            packets.extend_from_slice(bytes);
        }
        packets.extend_from_slice(packet);
    }

    /// The first packet of a message, and the others of the same push.
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

    /// Whether a reply always continues after this message, whatever its fields contain.
    pub fn goes_on(&self, message: MessageId) -> bool {
        matches!(self.table.messages[usize::from(message.0)].more, GoesOn::Always)
    }

    /// Whether replies carry the value of their request, at least for some messages.
    pub fn correlates(&self) -> bool {
        self.table.correlator.is_some()
            || self.table.messages.iter().any(|message| message.correlator.is_some())
    }

    /// The name of the correlating field of a message.
    pub fn correlator(&self, message: MessageId) -> Option<&str> {
        let node = self.table.correlator_of(message.0).map(|node| self.table.node(node));
        node.filter(|node| node.carries.is_none()).map(|node| &*node.name)
    }

    /// The list of a message with an item that correlates, and the name of that item.
    pub fn correlated_item(&self, message: MessageId) -> Option<(&str, &str)> {
        let node = self.table.node(self.table.correlator_of(message.0)?);
        Some((&node.name, node.carries.as_deref()?))
    }

    /// Makes the template of a message that no reply is wanted to: it carries no number of ours, if
    /// such messages may be without one.
    pub fn unasked(&self, template: Template) -> Template {
        let node = self.table.correlator_of(template.message.0).map(|node| self.table.node(node));
        let may_lack = node.is_some_and(|node| {
            node.carries.is_some() || node.shape == Shape::Coded(Coding::Digits)
        });
        Template { gives_correlation: template.gives_correlation || may_lack, ..template }
    }

    /// The greatest value that the correlating field of a message holds; 0 without one.
    pub fn correlation_max(&self, message: MessageId) -> u64 {
        let node = self.table.correlator_of(message.0).map(|node| self.table.node(node));
        node.map_or(0, |node| node.range().1 as u64)
    }

    /// The size of the delimiter after every packet; 0 without one.
    pub fn delimiter_bytes(&self) -> usize {
        match &self.table.frame {
            Frame::Delimited { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// The acknowledgement for a message of this kind.
    pub fn acknowledgement(&self, message: MessageId) -> Option<&Acknowledging> {
        self.acknowledgements[usize::from(message.0)].as_ref()
    }

    pub fn field(&self, message: MessageId, path: &str) -> Result<FieldPath, PathMistake> {
        path::resolve(&self.table, message, path)
    }

    /// The values that a field can have, as far as its declaration determines them.
    pub fn range(&self, path: &FieldPath) -> Range {
        path::range(&self.table, path)
    }

    /// Checks the names and shapes of what is given; a leaf is checked when it has its value. A
    /// labelled field accepts the label as text. A field whose condition is false is not sent, even
    /// if given. The correlating field may be given; otherwise it is set to `correlation` when the
    /// message is encoded.
    pub fn prepare(&self, message: MessageId, given: &Given) -> Result<Template, GivenMistake> {
        prepare::prepare(&self.table, message, &self.info(message).name, given)
    }

    /// Appends a packet, with its delimiter if packets have one. `leaf` returns the value of a
    /// leaf, or appends it as text to the buffer and returns `None`. After an error nothing is
    /// appended.
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
        let correlation = if template.gives_correlation { 0 } else { correlation };
        let mut encoder =
            Encoder::new(&self.table, &template.bytes, message, correlation, leaf, out);
        let result = encoder.packet(&template.ops);
        if result.is_err() {
            out.truncate(begin);
        }
        result
    }

    /// Reads a complete packet from the target, without its delimiter.
    pub fn decode(&self, packet: &[u8], decoded: &mut Decoded) -> Result<Packet, Broken> {
        self.read((true, None), packet, decoded)
    }

    /// Reads a packet that a user sends.
    pub fn decode_sent(&self, packet: &[u8], decoded: &mut Decoded) -> Result<Packet, Broken> {
        self.read((false, None), packet, decoded)
    }

    /// Reads a packet that is this message.
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

    /// The value of a field of a decoded packet; `None` if it is absent.
    pub fn value(&self, packet: &[u8], decoded: &Decoded, path: &FieldPath) -> Option<Value> {
        value::value(&self.table, packet, decoded, path)
    }

    /// The packets inside a decoded packet; `None` for a message that contains none.
    pub fn packets<'b>(&self, packet: &'b [u8], decoded: &'b Decoded) -> Option<&'b [u8]> {
        let message = self.table.messages.get(usize::from(decoded.message?.0))?;
        let node = message.packets?;
        let content = decoded.records.iter().find(|record| record.node == node)?.content();
        match self.table.node(node).layer {
            Some(_) => decoded.unpacked.get(content),
            None => packet.get(content),
        }
    }

    /// All parts of a packet in wire order; for a malformed one, those that were read.
    pub fn describe(&self, packet: &[u8], decoded: &Decoded) -> Vec<PacketPart> {
        describe::describe(&self.table, packet, decoded)
    }

    /// The layout of a message.
    pub fn layout(&self, message: MessageId) -> Vec<LayoutRow> {
        describe::layout(&self.table, message)
    }

    fn table(&self) -> &Table {
        &self.table
    }
}

impl Decoded {
    /// The message of the packet; also known for most packets that are malformed after it.
    pub fn message(&self) -> Option<MessageId> {
        self.message
    }

    /// The value of the correlating field; also for a packet that is malformed after it.
    pub fn correlation(&self) -> Option<u64> {
        self.correlation
    }
}

impl Broken {
    /// Adds the start of the packet for display.
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
