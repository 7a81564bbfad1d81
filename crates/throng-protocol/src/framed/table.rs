//! The flat tables of a compiled declaration: every field is a node, every list of fields a range
//! of nodes. A structure that is used twice has two sets of nodes, so that a node is one place in a
//! message.

use std::ops::Range;
use std::sync::Arc;

use throng_expression::Value;

use super::coding::Coding;
use super::declaration::{Checksum, Comparison, Format, Layer, Prefix};
use super::kinds::Kinds;
use super::notation::Form;
use super::wanted::{Inner, Wanted};
use crate::fields::number::write_unsigned;
use crate::protobuf::{MessageType, Schema};

/// Marks a missing node.
pub(super) const NONE: u32 = u32::MAX;

/// Positions that a list remembers while it is written.
pub(super) const MARKS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) nodes: Vec<Node>,
    /// The first one is the packet.
    pub(super) lists: Vec<List>,
    /// The schema of protobuf messages in packets.
    pub(super) schema: Arc<Schema>,
    /// By [`super::MessageId`].
    pub(super) messages: Vec<MessageLayout>,
    /// By sender: what users send, and what the target sends.
    pub(super) kinds: [Kinds; 2],
    /// The only message of each sender, without a selecting field.
    pub(super) only: [Option<u16>; 2],
    pub(super) frame: Frame,
    pub(super) length: Option<Length>,
    pub(super) selectors: Vec<Selector>,
    /// For the packet; a message may have its own.
    pub(super) correlator: Option<u32>,
    pub(super) body: Option<u32>,
    /// Every packet is a document.
    pub(super) document: Option<Document>,
    /// Size of the packet's fields after the body.
    pub(super) trailer: usize,
    /// The rest of a packet of fixed size, after the fields of a message, is zeros.
    pub(super) is_padded: bool,
    pub(super) packet_bytes_max: usize,
}

/// The message kinds of a table.
#[derive(Debug, Default)]
pub(super) struct MessageLayout {
    pub(super) list: u32,
    /// The raw values of the selecting fields.
    pub(super) raws: Box<[u64]>,
    /// The text of the selecting field, if it is text.
    pub(super) text: Option<Constant>,
    pub(super) comes_from_target: bool,
    pub(super) more: GoesOn,
    /// The field that contains packets.
    pub(super) packets: Option<u32>,
    pub(super) correlator: Option<u32>,
    /// In a document: any packet without the kind of another message may be this one.
    pub(super) is_of_any_kind: bool,
    /// In a document: the fields without which a packet is another message.
    pub(super) needed: Box<[u32]>,
}

/// Packets that are documents: their fields are found by path.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) format: Format,
    pub(super) wanted: Wanted,
    pub(super) slots: usize,
    /// By sender.
    pub(super) candidates: [Candidates; 2],
}

/// The messages that a document may be, in the order in which they are tried.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// By the bytes of the kind, sorted.
    pub(super) kinds: Vec<(Box<[u8]>, Vec<u16>)>,
    /// Those of any kind.
    pub(super) others: Vec<u16>,
}

impl Document {
    pub(super) fn of(format: Format) -> Document {
        Document { format, ..Document::default() }
    }
}

impl Candidates {
    pub(super) fn of(&self, kind: &[u8]) -> &[u16] {
        match self.kinds.binary_search_by(|(other, _)| (**other).cmp(kind)) {
            Ok(at) => &self.kinds[at].1,
            Err(_) => &[],
        }
    }
}

/// A field of a document.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) path: Box<[Inner]>,
    pub(super) slot: u16,
}

/// When the reply has more packets after one of a message.
#[derive(Debug, Default)]
pub(super) enum GoesOn {
    #[default]
    Never,
    Always,
    If(Test),
}

/// A field that selects the message, alone or with others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selector {
    pub(super) node: u32,
    /// The position of its value in the combined number.
    pub(super) shift: u32,
}

#[derive(Debug, Default)]
pub(super) enum Frame {
    /// A datagram or a WebSocket message.
    #[default]
    Whole,
    Length,
    Delimited {
        bytes: Box<[u8]>,
        bytes_max: usize,
    },
    Fixed(usize),
    /// The packet ends with its last field.
    Fields {
        bytes_max: usize,
    },
    /// The document is the end; in XML, the tags of the element around all of them are packets.
    Document {
        root: Box<[u8]>,
        bytes_max: usize,
    },
}

/// The field that contains the size of the packet.
#[derive(Debug)]
pub(super) struct Length {
    pub(super) node: u32,
    /// Bytes before it, or before its group of bits.
    pub(super) offset: usize,
    pub(super) base: Base,
    /// Added to the counted size.
    pub(super) plus: i64,
    /// Maximum value of the field.
    pub(super) value_max: u64,
    /// Minimum size of a packet.
    pub(super) packet_bytes_min: usize,
    /// Constant bytes at fixed offsets up to the length: offset, mask, value.
    pub(super) magic: Box<[(u32, u8, u8)]>,
}

/// What is added to the value of the length field to get the packet size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Nothing.
    Packet,
    /// The bytes up to the end of the field, and this many more.
    Behind(usize),
}

#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) nodes: Range<u32>,
    /// Counts and sizes, written after what they count: the number's node, and the counted node.
    pub(super) computed: Vec<(u32, u32)>,
    pub(super) checksums: Vec<u32>,
    pub(super) marks: u8,
    pub(super) bytes_min: u64,
    /// Its size, if constant.
    pub(super) bytes: Option<u64>,
    /// It takes all that is left.
    pub(super) is_open: bool,
}

/// The fields of the items of a list: their name, and their value.
#[derive(Clone, Copy, Debug)]
pub(super) struct By {
    pub(super) name: u32,
    pub(super) value: u32,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: Box<str>,
    /// The node whose list contains it, or [`NONE`].
    pub(super) parent: u32,
    pub(super) shape: Shape,
    pub(super) is_little: bool,
    pub(super) repeat: Repeats,
    /// The bytes after the items of [`Repeats::Until`].
    pub(super) until: Box<[u8]>,
    /// For a structure.
    pub(super) bound: Option<Extents>,
    pub(super) is_optional: bool,
    pub(super) layer: Option<Layer>,
    /// Of [`Shape::Json`].
    pub(super) format: Format,
    pub(super) condition: Option<Box<Test>>,
    pub(super) job: Job,
    pub(super) constant: Option<Box<Constant>>,
    pub(super) default: Option<Value>,
    pub(super) labels: Box<[(Box<str>, i64)]>,
    /// Where its list remembers its position.
    pub(super) mark: Option<u8>,
    /// How many records precede it in every packet of its message; [`NONE`] if that varies.
    pub(super) record: u32,
    /// Another field's condition depends on it.
    pub(super) is_asked: bool,
    /// Its items are selected by name.
    pub(super) by: Option<By>,
    /// The name of its item that correlates.
    pub(super) carries: Option<Box<str>>,
    /// It is a part of a document.
    pub(super) member: Option<Box<Member>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Unsigned(u8),
    Signed(u8),
    Float32,
    Float64,
    Bool,
    Coded(Coding),
    Bits(Bits),
    Text(Extents),
    Bytes(Extents),
    Json(Extents),
    Proto(MessageType, Extents),
    List(u32),
    /// The list of the message.
    Body,
}

/// A field of bits in its group of whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) bits: u32,
    pub(super) first: u32,
    pub(super) group_bytes: u32,
    pub(super) is_last: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Extents {
    Fixed(u32),
    Prefixed { prefix: Prefix, bytes_max: u64 },
    Delimited(Box<[u8]>),
    Field(u32),
    Rest,
    RestBefore(Box<[u8]>),
}

impl Extents {
    /// It ends with what contains it.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Extents::Rest | Extents::RestBefore(_))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Repeats {
    #[default]
    Once,
    Times(u32),
    Prefixed(Prefix),
    Field(u32),
    Rest,
    Until,
}

/// Whether a field is present.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) node: u32,
    /// The node is one of the packet, and the tested field is outside it.
    pub(super) is_of_packet: bool,
    pub(super) comparison: Comparison,
    pub(super) value: i64,
}

/// The source of the value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Job {
    /// The scenario.
    Value,
    Length,
    /// The n-th selecting field.
    Kind(u8),
    Correlation,
    Body,
    /// Counted from a later field.
    Computed,
    Checksum {
        algorithm: Checksum,
        over: Box<[u32]>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Constant {
    /// For numbers.
    pub(super) raw: u64,
    /// For everything else, without prefix and delimiter.
    pub(super) content: Box<[u8]>,
    /// As encoded.
    pub(super) written: Box<[u8]>,
}

/// One part of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) node: u32,
    /// The record behind all that lies in this one.
    pub(super) next: u32,
    /// With prefixes and delimiters.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The number; how many items; where the content lies: start and end.
    pub(super) raw: u64,
}

const _: () = assert!(size_of::<Record>() == 24);

impl Record {
    /// The bytes of text, bytes, JSON and protobuf, without prefix, delimiter and padding.
    pub(super) fn content(&self) -> Range<usize> {
        (self.raw >> 32) as usize..(self.raw & u64::from(u32::MAX)) as usize
    }
}

impl Test {
    pub(super) fn holds(&self, found: i128) -> bool {
        let value = i128::from(self.value);
        match self.comparison {
            Comparison::Equal => found == value,
            Comparison::NotEqual => found != value,
            Comparison::Less => found < value,
            Comparison::LessOrEqual => found <= value,
            Comparison::Greater => found > value,
            Comparison::GreaterOrEqual => found >= value,
            Comparison::HasBits => found & value == value,
        }
    }

    /// Whether it can hold for some value of the tested field.
    pub(super) fn may_hold(&self, asked: &Node) -> bool {
        if let Some(constant) = &asked.constant {
            return self.holds(asked.whole(constant.raw));
        }
        let (low, high) = asked.range();
        let value = i128::from(self.value);
        match self.comparison {
            // Every type has more than one value.
            Comparison::NotEqual => true,
            Comparison::Equal => (low..=high).contains(&value),
            // Signed numbers can have all bits set (-1), unsigned ones those up to their maximum.
            Comparison::HasBits => low < 0 || (low..=high).contains(&value),
            Comparison::Less | Comparison::LessOrEqual => self.holds(low),
            Comparison::Greater | Comparison::GreaterOrEqual => self.holds(high),
        }
    }
}

impl Node {
    /// The number `raw` of a record or mark as a whole number.
    pub(super) fn whole(&self, raw: u64) -> i128 {
        match self.shape.is_signed() {
            true => i128::from(raw as i64),
            false => i128::from(raw),
        }
    }

    /// What is shorter than a fixed size has zeros behind it.
    pub(super) fn is_padded(&self) -> bool {
        matches!(self.shape, Shape::Text(_) | Shape::Json(_)) && !self.format.is_binary()
    }

    /// How its text or bytes stand in a document.
    pub(super) fn form(&self, format: Format) -> Form {
        match (&self.shape, &self.member) {
            (Shape::Bytes(_), _) => Form::Bytes,
            (_, Some(member)) if format.is_markup(&member.path) => Form::Markup,
            _ => Form::Text,
        }
    }

    pub(super) fn is_whole_number(&self) -> bool {
        matches!(self.shape, Shape::Unsigned(_) | Shape::Signed(_) | Shape::Bits(_))
            || self.shape.is_of_variable_size()
    }

    /// Text or bytes whose end does not depend on a length.
    pub(super) fn is_text_of_own_size(&self) -> bool {
        let extent = match &self.shape {
            Shape::Text(extent) | Shape::Bytes(extent) => extent,
            _ => return false,
        };
        matches!(extent, Extents::Fixed(_) | Extents::Delimited(_) | Extents::Rest)
    }

    /// The bits of an unsigned number.
    pub(super) fn bits(&self) -> u32 {
        match self.shape {
            Shape::Unsigned(width) => 8 * u32::from(width),
            Shape::Bits(Bits { bits, .. }) => bits,
            _ => u64::BITS,
        }
    }

    /// The least and the greatest whole number that it holds.
    pub(super) fn range(&self) -> (i128, i128) {
        match &self.shape {
            Shape::Unsigned(width) => (0, (1 << (8 * u32::from(*width))) - 1),
            Shape::Signed(width) => {
                let half = 1i128 << (8 * u32::from(*width) - 1);
                (-half, half - 1)
            }
            Shape::Bits(Bits { bits, .. }) => (0, (1 << *bits) - 1),
            Shape::Bool => (0, 1),
            shape if shape.is_signed() => (i128::from(i64::MIN), i128::from(i64::MAX)),
            _ => (0, i128::from(u64::MAX)),
        }
    }

    /// Size of one item, if constant. Bit fields count with the first one of their group.
    pub(super) fn item_bytes(&self, lists: &[List]) -> Option<u64> {
        match &self.shape {
            _ if self.member.is_some() => None,
            Shape::Unsigned(width) | Shape::Signed(width) => Some(u64::from(*width)),
            Shape::Float32 => Some(4),
            Shape::Float64 => Some(8),
            Shape::Bool => Some(1),
            Shape::Bits(bits) if bits.first == 0 => Some(u64::from(bits.group_bytes)),
            Shape::Bits(_) => Some(0),
            Shape::List(list) => match &self.bound {
                None => lists[*list as usize].bytes,
                Some(Extents::Fixed(bytes)) => Some(u64::from(*bytes)),
                Some(_) => None,
            },
            Shape::Coded(_) | Shape::Body => None,
            Shape::Text(extent)
            | Shape::Bytes(extent)
            | Shape::Json(extent)
            | Shape::Proto(_, extent) => match extent {
                Extents::Fixed(bytes) => Some(u64::from(*bytes)),
                _ => None,
            },
        }
    }

    /// The fewest bytes of one item.
    pub(super) fn item_bytes_min(&self, lists: &[List]) -> u64 {
        if let Some(bytes) = self.item_bytes(lists) {
            return bytes;
        }
        match &self.shape {
            Shape::List(list) => {
                let prefix = match &self.bound {
                    Some(Extents::Prefixed { prefix, .. }) => prefix.bytes_min(),
                    _ => 0,
                };
                lists[*list as usize].bytes_min.saturating_add(prefix)
            }
            Shape::Body => 0,
            Shape::Coded(coding) => coding.bytes_min() as u64,
            shape => match shape.extent() {
                Some(Extents::Prefixed { prefix, .. }) => prefix.bytes_min(),
                Some(Extents::Delimited(end) | Extents::RestBefore(end)) => end.len() as u64,
                Some(_) => 0,
                None => 1,
            },
        }
    }

    /// Size of all items, if constant.
    pub(super) fn bytes(&self, lists: &[List]) -> Option<u64> {
        match (&self.condition, self.repeat) {
            _ if self.is_optional => None,
            (Some(_), _) => None,
            (None, Repeats::Once) => self.item_bytes(lists),
            (None, Repeats::Times(times)) => {
                Some(self.item_bytes(lists)?.saturating_mul(u64::from(times)))
            }
            _ => None,
        }
    }

    pub(super) fn bytes_min(&self, lists: &[List]) -> u64 {
        if self.condition.is_some() || self.is_optional || self.member.is_some() {
            return 0;
        }
        match self.repeat {
            Repeats::Once => self.item_bytes_min(lists),
            Repeats::Times(times) => self.item_bytes_min(lists).saturating_mul(u64::from(times)),
            Repeats::Prefixed(prefix) => prefix.bytes_min(),
            Repeats::Field(_) | Repeats::Rest => 0,
            Repeats::Until => self.until.len() as u64,
        }
    }

    /// It takes all that is left of its list.
    pub(super) fn is_open(&self, lists: &[List]) -> bool {
        // A selecting field ends where its kind does, and a document determines where its parts
        // end.
        if matches!(self.job, Job::Kind(_)) || self.member.is_some() {
            return false;
        }
        self.repeat == Repeats::Rest
            || match &self.shape {
                Shape::List(list) => self.bound.is_none() && lists[*list as usize].is_open,
                shape => shape.extent().is_some_and(Extents::is_open),
            }
    }

    /// Items are numbers of the same width: they need no records.
    pub(super) fn packed_width(&self) -> Option<u8> {
        match self.shape {
            _ if self.repeat == Repeats::Until => None,
            Shape::Unsigned(width) | Shape::Signed(width) => Some(width),
            Shape::Float32 => Some(4),
            Shape::Float64 => Some(8),
            _ => None,
        }
    }

    /// Appends a number that is neither in bits nor in a document.
    #[inline]
    pub(super) fn write_number(&self, raw: u64, out: &mut Vec<u8>) {
        match &self.shape {
            // A 64-bit sign is truncated to the width, with all bits above.
            Shape::Unsigned(width) | Shape::Signed(width) => {
                write_unsigned(raw, *width, self.is_little, out);
            }
            Shape::Coded(coding) => coding.write(raw, out),
            Shape::Float32 => write_unsigned(raw, 4, self.is_little, out),
            Shape::Float64 => write_unsigned(raw, 8, self.is_little, out),
            _ => out.push(raw as u8),
        }
    }

    /// Whether its value is set automatically.
    pub(super) fn is_automatic(&self) -> bool {
        self.constant.is_some() || self.job != Job::Value
    }
}

impl Shape {
    /// A whole number that may be negative.
    pub(super) fn is_signed(&self) -> bool {
        match self {
            Shape::Coded(coding) => coding.is_signed(),
            shape => matches!(shape, Shape::Signed(_)),
        }
    }

    /// A number that takes more bytes when it is larger.
    pub(super) fn is_of_variable_size(&self) -> bool {
        matches!(self, Shape::Coded(_))
    }

    pub(super) fn extent(&self) -> Option<&Extents> {
        match self {
            Shape::Text(extent)
            | Shape::Bytes(extent)
            | Shape::Json(extent)
            | Shape::Proto(_, extent) => Some(extent),
            _ => None,
        }
    }
}

impl Table {
    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(super) fn list(&self, list: u32) -> &List {
        &self.lists[list as usize]
    }

    /// How a field is written that is a part of a document, or JSON.
    pub(super) fn format(&self, node: &Node) -> Format {
        let document = self.document.as_ref().filter(|_| node.member.is_some());
        document.map_or(node.format, |document| document.format)
    }

    /// The nodes of a list.
    pub(super) fn members(&self, list: u32) -> impl Iterator<Item = (u32, &Node)> {
        self.list(list).nodes.clone().map(|id| (id, self.node(id)))
    }

    /// The correlating field of a message.
    pub(super) fn correlator_of(&self, message: u16) -> Option<u32> {
        let own = self.messages.get(usize::from(message)).and_then(|message| message.correlator);
        own.or(self.correlator)
    }

    /// The element around all packets.
    pub(super) fn root(&self) -> &[u8] {
        match &self.frame {
            Frame::Document { root, .. } => root,
            _ => &[],
        }
    }

    /// Nothing else determines the message of a packet of this kind.
    pub(super) fn is_kind_open(&self, message: u16) -> bool {
        self.messages.get(usize::from(message)).is_some_and(|message| message.is_of_any_kind)
    }

    pub(super) fn find(&self, list: u32, name: &str) -> Option<u32> {
        self.members(list).find(|(_, node)| &*node.name == name).map(|(id, _)| id)
    }

    /// `items.price`: the names starting at the message.
    pub(super) fn path(&self, node: u32) -> String {
        if node == NONE {
            return String::new();
        }
        let one = self.node(node);
        match one.parent {
            NONE => one.name.to_string(),
            parent => format!("{}.{}", self.path(parent), one.name),
        }
    }

    /// The name of the type, as in a declaration.
    pub(super) fn word(&self, node: u32) -> String {
        let one = self.node(node);
        let little = if one.is_little { "le" } else { "" };
        match &one.shape {
            Shape::Unsigned(1) => "u8".to_owned(),
            Shape::Signed(1) => "i8".to_owned(),
            Shape::Unsigned(width) => format!("u{}{little}", 8 * u32::from(*width)),
            Shape::Signed(width) => format!("i{}{little}", 8 * u32::from(*width)),
            Shape::Float32 => format!("f32{little}"),
            Shape::Float64 => format!("f64{little}"),
            Shape::Bool => "bool".to_owned(),
            Shape::Coded(coding) => coding.word().to_owned(),
            Shape::Bits(bits) => format!("b{}", bits.bits),
            Shape::Text(_) => "str".to_owned(),
            Shape::Bytes(_) => "bytes".to_owned(),
            Shape::Json(_) => one.format.word().to_owned(),
            Shape::Proto(message, _) => format!("protobuf({})", self.schema.message_name(*message)),
            Shape::List(_) => "fields".to_owned(),
            Shape::Body => "body".to_owned(),
        }
    }
}
