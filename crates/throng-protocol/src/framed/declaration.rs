//! A protocol declaration before it is checked and compiled. The reader of a file creates it;
//! [`super::Protocol::compile`] finds contradictions and reports their positions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use throng_base::Said;
use throng_expression::Value;

use crate::fields::number::write_unsigned;
use crate::protobuf::{MessageType, Schema};

pub use super::coding::Coding;

/// A position in the source text; only its creator can interpret it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlaceId(pub u32);

/// A name or number with its position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placed<T> {
    pub value: T,
    pub place: PlaceId,
}

#[derive(Clone, Debug, Default)]
pub struct Declaration {
    pub transport: Transport,
    /// Over a WebSocket, packets are text messages instead of binary ones.
    pub is_text: bool,
    /// Packets are documents, whose parts fields name by [`Field::path`].
    pub format: Option<Format>,
    pub endian: Endian,
    pub framing: Framing,
    /// The parts of every packet in wire order. One of them is the [`Role::Body`], unless no
    /// message has one.
    pub packet: Vec<Field>,
    pub messages: Vec<Message>,
    pub heartbeat: Option<Heartbeat>,
    /// Structures that fields refer to, by [`Type::Struct`]; they may refer to each other, but not
    /// to themselves.
    pub types: Vec<Struct>,
    /// The schema of the messages of [`Type::Proto`].
    pub schema: Arc<Schema>,
    pub place: PlaceId,
}

/// How many replies to replies are followed to determine the sender of a message.
const ASKED_MAX: usize = 8;

impl Declaration {
    /// Whether a message comes from the target: pushes, and replies to what users send.
    pub fn comes_from_target(&self, message: &Message) -> bool {
        self.comes(message, ASKED_MAX)
    }

    fn comes(&self, message: &Message, depth: usize) -> bool {
        if message.push {
            return true;
        }
        let asked = message.answers.first();
        let asked =
            asked.and_then(|name| self.messages.iter().find(|one| one.name.value == name.value));
        // A reply to a message of the target comes from a user.
        asked.is_some_and(|asked| depth > 0 && !self.comes(asked, depth - 1))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    #[default]
    Tcp,
    Tls,
    /// One datagram is one packet.
    Udp,
    /// One message is one packet.
    WebSocket,
    /// The same over TLS.
    WebSocketTls,
}

impl Transport {
    /// Whether packets are separated in a byte stream.
    pub fn is_stream(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Tls)
    }
}

/// The document format of every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// RFC 8259.
    #[default]
    Json,
    /// RFC 8949.
    Cbor,
    MessagePack,
    /// An element, with all that is in it.
    Xml,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    #[default]
    Big,
    Little,
}

/// How packets are separated in a byte stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Framing {
    /// By a field of the packet with [`Role::Length`].
    #[default]
    Length,
    /// Every packet ends with these bytes, which are not part of it.
    Delimiter { bytes: Placed<Vec<u8>>, bytes_max: u32 },
    /// Every packet has this many bytes.
    Fixed(Placed<u32>),
    /// Every packet ends with its last field; each field determines its own end.
    Fields { bytes_max: u32, place: PlaceId },
    /// Every packet is a document, which determines its own end. In XML, the tags of the element
    /// `root`, which is around all of them, are packets of their own.
    Document { root: Option<Placed<String>>, bytes_max: u32, place: PlaceId },
}

/// One part of a packet, of a message's body or of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub id: Placed<String>,
    pub ty: Type,
    /// `None`: that of the declaration.
    pub endian: Option<Endian>,
    /// It always has this value (Kaitai: `contents` for bytes).
    pub constant: Option<Placed<Literal>>,
    /// It is present only if this holds (Kaitai: `if`).
    pub condition: Option<Condition>,
    /// It occurs more than once (Kaitai: `repeat`).
    pub repeat: Option<Repeat>,
    pub role: Role,
    /// Names of values (Kaitai: `enum`).
    pub labels: Vec<(Placed<String>, i64)>,
    /// The value to send if a scenario gives none; without it, the field is required.
    pub default: Option<Placed<Literal>>,
    /// The end of a structure, if not with its last field.
    pub bound: Option<Extent>,
    /// It is missing if nothing is left of the body or structure.
    pub is_optional: bool,
    /// How its content is compressed.
    pub layer: Option<Layer>,
    /// Where it is in a document: `data.id`, `[0]`; by default the key of its own name.
    pub path: Option<Placed<String>>,
    /// For a list: the field of its items by whose value a path selects one.
    pub by: Option<Placed<String>>,
    /// Of such a list: the name of the item that correlates.
    pub carries: Option<Placed<String>>,
    pub place: PlaceId,
}

/// A value as written in a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Int(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// 8, 16, 24, 32, 40, 48, 56 or 64 bits.
    Unsigned(u8),
    Signed(u8),
    Float32,
    Float64,
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned LEB128, as in protobuf; at most ten bytes.
    Varint,
    /// The same for signed numbers, zigzag.
    ZigZag,
    /// A number of another variable size.
    Coded(Coding),
    /// 1 to 64 bits; neighbouring bit fields fill bytes from the highest bit on (Kaitai: `b3`).
    Bits(u8),
    /// UTF-8.
    Text(Extent),
    Bytes(Extent),
    /// RFC 8259.
    Json(Extent),
    /// A document in another format.
    Binary(Format, Extent),
    /// One of [`Declaration::schema`].
    Proto {
        message: MessageType,
        extent: Extent,
    },
    /// One of [`Declaration::types`].
    Struct(usize),
    /// Fields that belong together, declared in place.
    Fields(Vec<Field>),
}

/// How something of variable size ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Extent {
    /// This many bytes. Text is padded with zeros, which are removed when read.
    Fixed(u32),
    /// A number before it says how many bytes follow.
    Prefixed { prefix: Prefix, bytes_max: Option<u64> },
    /// It ends with these bytes (Kaitai: `terminator`).
    Delimited(Vec<u8>),
    /// The value of an earlier field of the same list, by its id.
    Field(Placed<String>),
    /// What is left of the body or structure (Kaitai: `size-eos`).
    Rest,
    /// What is left before these bytes, which end the body or structure.
    RestBefore(Vec<u8>),
}

/// A number before the content that contains its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// 8, 16, 24, 32 or 64 bits.
    Unsigned(u8),
    Varint,
    Ber,
    Lenenc,
}

impl Prefix {
    /// Its name in a declaration.
    pub fn word(self) -> String {
        match self {
            Prefix::Unsigned(bits) => format!("u{bits}"),
            _ => self.coding().word().to_owned(),
        }
    }

    /// The encoding of one of variable size.
    pub(super) fn coding(self) -> Coding {
        match self {
            Prefix::Unsigned(_) | Prefix::Varint => Coding::Varint,
            Prefix::Ber => Coding::Ber,
            Prefix::Lenenc => Coding::Lenenc,
        }
    }

    /// Its size, if constant.
    pub(super) fn bytes(self) -> Option<u8> {
        match self {
            Prefix::Unsigned(bits) => Some(bits / 8),
            Prefix::Varint | Prefix::Ber | Prefix::Lenenc => None,
        }
    }

    pub(super) fn bytes_min(self) -> u64 {
        self.bytes().map_or(1, u64::from)
    }

    /// The greatest number that it holds.
    pub(super) fn max(self) -> u64 {
        match self {
            Prefix::Unsigned(bits) => u64::MAX >> (64 - u32::from(bits.clamp(1, 64))),
            Prefix::Varint | Prefix::Ber | Prefix::Lenenc => u64::MAX,
        }
    }

    pub(super) fn write(self, raw: u64, is_little: bool, out: &mut Vec<u8>) {
        match self.bytes() {
            Some(width) => write_unsigned(raw, width, is_little, out),
            None => self.coding().write(raw, out),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Repeat {
    /// This many times.
    Times(u32),
    /// A number before the items contains the count.
    Prefixed(Prefix),
    /// The value of an earlier field of the same list.
    Field(Placed<String>),
    /// To the end of the body or structure (Kaitai: `repeat: eos`).
    Rest,
    /// Until these bytes are at the position of the next item.
    Until(Vec<u8>),
}

impl Field {
    /// A field with nothing but a type.
    pub fn new(id: Placed<String>, ty: Type, place: PlaceId) -> Field {
        Field {
            id,
            ty,
            endian: None,
            constant: None,
            condition: None,
            repeat: None,
            role: Role::Value,
            labels: Vec::new(),
            default: None,
            bound: None,
            is_optional: false,
            layer: None,
            path: None,
            by: None,
            carries: None,
            place,
        }
    }
}

/// A compression of text, bytes, JSON or protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// RFC 1950.
    Zlib,
    /// RFC 1952.
    Gzip,
    /// RFC 1951.
    Deflate,
    /// RFC 7932.
    Brotli,
}

/// A field is present if an earlier one of the same list, or of the packet, compares this way.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub field: Placed<String>,
    pub comparison: Comparison,
    pub value: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// The bits of the value are all set.
    HasBits,
}

impl Comparison {
    /// All operators, ordered so that none is a prefix of a later one.
    pub const SIGNS: [(&str, Comparison); 7] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
        ("&", Comparison::HasBits),
    ];

    pub fn sign(self) -> &'static str {
        Comparison::SIGNS.into_iter().find(|(_, one)| *one == self).map_or("", |(sign, _)| sign)
    }
}

/// What a field is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Role {
    /// It carries a value.
    #[default]
    Value,
    /// How long the packet is.
    Length {
        counts: Counts,
        /// Added to the counted size: 4 if a length of four bytes includes itself.
        plus: i64,
        bytes_max: Option<Placed<u64>>,
    },
    /// Which message the packet is: [`Message::kind`]. Several fields may select together.
    Selects,
    /// A reply carries its request's value; unsolicited messages carry 0.
    Correlates,
    /// The position of the message's own fields.
    Body,
    /// Over these fields of the same list, or over everything before it if none is named.
    Checksum { algorithm: Checksum, over: Vec<Placed<String>> },
}

/// What a length counts, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Counts {
    /// The whole packet.
    Packet,
    /// Everything after the length field.
    After,
    /// The body.
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// IEEE 802.3, 32 bits.
    Crc32,
    /// Castagnoli, as in iSCSI, SCTP and ext4, 32 bits.
    Crc32C,
    /// CRC-16/ARC, 16 bits.
    Crc16,
    /// CRC-16/MODBUS, 16 bits.
    Crc16Modbus,
    /// CRC-16/XMODEM (CCITT, start 0), 16 bits.
    Crc16Xmodem,
    /// CRC-16/IBM-3740 (CCITT, start 0xFFFF), 16 bits.
    Crc16Ccitt,
    /// RFC 1950, 32 bits.
    Adler32,
    /// The sum of all bytes, truncated to the width of the field.
    Sum,
    /// All bytes combined by exclusive or, 8 bits.
    Xor,
}

impl Checksum {
    /// All of them, by their names in declarations.
    pub const WORDS: [(&str, Checksum); 9] = [
        ("crc32", Checksum::Crc32),
        ("crc32c", Checksum::Crc32C),
        ("crc16", Checksum::Crc16),
        ("crc16-modbus", Checksum::Crc16Modbus),
        ("crc16-xmodem", Checksum::Crc16Xmodem),
        ("crc16-ccitt", Checksum::Crc16Ccitt),
        ("adler32", Checksum::Adler32),
        ("sum", Checksum::Sum),
        ("xor", Checksum::Xor),
    ];

    pub fn word(self) -> &'static str {
        Checksum::WORDS[self as usize].0
    }
}

/// One kind of message.
#[derive(Clone, Debug)]
pub struct Message {
    pub name: Placed<String>,
    /// The value of the selecting field; `None` if there is no such field and this is the only
    /// message of its direction.
    pub kind: Option<Placed<MessageKind>>,
    /// The messages that it may be the reply to.
    pub answers: Vec<Placed<String>>,
    /// It is unsolicited.
    pub push: bool,
    /// Whether the reply continues after it.
    pub more: Option<More>,
    /// Its only field consists of packets.
    pub holds_packets: bool,
    pub body: Vec<Field>,
    /// The message that is sent automatically whenever it is received.
    pub acknowledged_by: Option<Acknowledgement>,
    pub place: PlaceId,
}

/// A packet of a reply that is not its last one.
#[derive(Clone, Debug, PartialEq)]
pub enum More {
    Always,
    If(Condition),
}

/// The values of the selecting fields in packets of one message.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageKind {
    /// One number per field in wire order; fields at the end that are absent have none.
    Numbers(Vec<i64>),
    /// Without the terminator.
    Text(Vec<u8>),
}

impl From<i64> for MessageKind {
    fn from(number: i64) -> MessageKind {
        MessageKind::Numbers(vec![number])
    }
}

impl fmt::Display for MessageKind {
    /// As in a declaration: `3`, `[10, 11]`, `PUB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageKind::Numbers(numbers) => match numbers.as_slice() {
                [number] => write!(f, "{number}"),
                numbers => write!(f, "{numbers:?}"),
            },
            MessageKind::Text(text) => write!(f, "{}", text.escape_ascii()),
        }
    }
}

/// A message that is sent for every received one of its kind.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    pub message: Placed<String>,
    /// Its fields, each copied from a field of the received message, or a literal.
    pub fields: Vec<(Placed<String>, Placed<Copied>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Copied {
    /// A path into the received message.
    Field(String),
    Literal(Literal),
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    pub send: Placed<String>,
    /// `None`: no reply is expected.
    pub expect: Option<Placed<String>>,
    pub every: Duration,
    pub lost_after: Option<Duration>,
    pub place: PlaceId,
}

#[derive(Clone, Debug)]
pub struct Struct {
    pub name: Placed<String>,
    pub fields: Vec<Field>,
}

/// An error in a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The code of the diagnostic: `protocol-…`.
    pub code: &'static str,
    pub message: Said,
    pub label: Said,
    pub help: Said,
    pub place: PlaceId,
    /// Another relevant position, with its label.
    pub other: Option<(PlaceId, Said)>,
}

/// Most bytes of a text, of bytes or of a packet unless the declaration sets less.
pub(super) const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes that a declaration may allow.
pub(super) const BYTES_ALLOWED_MAX: u64 = 1024 * 1024 * 1024;

/// A value that is written in a declaration.
pub(super) fn value_of(literal: &Literal) -> Value {
    match literal {
        Literal::Int(int) => match (i64::try_from(*int), u64::try_from(*int)) {
            (Ok(int), _) => Value::Int(int),
            (_, Ok(uint)) => Value::UInt(uint),
            // No field can hold it: as text it is rejected with all its digits.
            _ => Value::from(int.to_string()),
        },
        Literal::Float(float) => Value::Float(*float),
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Text(text) => Value::from(text.as_str()),
        Literal::Bytes(bytes) => Value::from(bytes.as_slice()),
    }
}
