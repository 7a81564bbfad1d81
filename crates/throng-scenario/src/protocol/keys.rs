//! The keys of protocol files, each with a one-line description and the shape of its value. The
//! reader, diagnostics, the JSON Schema and the reference use these tables.

use crate::keys::Shape::{
    self, Anything, Bool, Duration, Kind, List, Map, Nothing, OneOf, Size, Text, Whole, Words,
};
use throng_base::Said;

use super::keys;
use crate::ast::{Field, See, Value as _};
use crate::keys::{MapKind, now};
use crate::read::Context;
use crate::syntax::{Node, Place};

static ONE_FIELD: Shape = Kind(&FIELD);
const FIELDS: Shape = List(&ONE_FIELD);
/// One word or a list of them.
const NAMES: Shape = OneOf(&[Text, List(&Text)]);
/// Bytes as a text, as a number, or as a list of numbers and texts.
const BYTES: Shape = OneOf(&[Text, List(&Text)]);
const ENDIANS: Shape = Words(&["big", "little", "be", "le"]);
const ENUM: Shape = Map(&Text);
const NOTE: &str = "Information for readers; ignored.";

macro_rules! protocol_maps {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
    PROTOCOL Protocol = "a protocol" {
        transport: Words(&["tcp", "tls", "udp", "ws", "wss"]) =>
            "The transport of the packets. With `udp`, a packet is a datagram; with `ws` and \
             `wss`, it is a message. Default: `tcp`.",
        text: Bool =>
            "`true`: over WebSocket, packets are text messages, not binary ones. A `tcp` protocol \
             then also accepts `ws` and `wss` targets.",
        format: Words(&["json", "cbor", "msgpack", "xml"]) =>
            "Every packet is a document in JSON, CBOR or MessagePack, or an XML element, and each \
             field is the part at its `path`.",
        endian: ENDIANS => "The byte order of numbers. Default: `big`.",
        packet: FIELDS =>
            "The fields of every packet in wire order; `{id: body}` is the position of the \
             message fields.",
        seq: FIELDS => "The same as `packet`.",
        messages: Map(&OneOf(&[Kind(&DECLARED_MESSAGE), Nothing])) => "The messages, by name.",
        heartbeat: Kind(&BEAT) => "The protocol's heartbeat.",
        delimiter: BYTES => "Every packet ends with these bytes: `\"\\r\\n\"`.",
        fixed: Size => "The size of every packet.",
        frame: Words(&["fields", "xml"]) =>
            "`fields`: a packet ends with its last field, because each field has a known end. \
             `xml`: it ends with its element.",
        stream: Text =>
            "With `frame: xml`, the name of the element around all packets: `stream:stream`. Its \
             start tag and its end tag are packets of their own.",
        max: Size =>
            "The maximum size of a packet with `delimiter`, `frame`, `format: cbor` or \
             `format: msgpack`. Default: `64KiB`.",
        types: Map(&OneOf(&[FIELDS, Kind(&STRUCTURE)])) =>
            "Structures that fields can use as their `type`, each a list of fields.",
        enums: Map(&ENUM) => "Lists of named values that fields can use in `enum`.",
        proto: NAMES =>
            "The `.proto` files or descriptor sets with the messages of `protobuf(Message)`.",
        proto_path: NAMES =>
            "Folders to search for `.proto` files and their imports, like `--proto_path` of \
             `protoc`.",
        meta: Kind(&META) => "The Kaitai Struct file header.",
        doc: Text => NOTE,
    }
    META Meta = "`meta`" {
        id: Text => NOTE,
        title: Text => NOTE,
        endian: ENDIANS => "The same as the protocol's `endian`.",
        encoding: Words(&["UTF-8", "utf-8", "ASCII", "ascii"]) =>
            "The encoding of text, always UTF-8.",
        license: Text => NOTE,
        version: Text => NOTE,
        source: Text => NOTE,
    }
    STRUCTURE Structure = "a type" {
        seq: FIELDS => "The fields of the structure.",
        fields: FIELDS => "The same as `seq`.",
        doc: Text => NOTE,
    }
    DECLARED_MESSAGE DeclaredMessage = "a message of a protocol" {
        kind: NAMES =>
            "The value of the field with `selects`; a list if several fields have `selects`. With \
             `format`, a message without `kind` has any other value.",
        body: FIELDS => "The fields of the message in wire order. Default: none.",
        seq: FIELDS => "The same as `body`.",
        answers: NAMES =>
            "The messages to which this message can be the reply; of a later packet of a push, the \
             first one.",
        push: Bool => "`true` if the target sends the message without a request.",
        more: OneOf(&[Bool, Text]) =>
            "`true` if the reply or the push continues with another packet after this one, or a \
             condition on a field: `flags & 1`.",
        packets: Words(&["plain", "zlib", "gzip", "deflate", "brotli"]) =>
            "Instead of `body`: the message contains packets, compressed in this way.",
        acknowledged_by: OneOf(&[Text, Map(&OneOf(&[Map(&Anything), Nothing]))]) =>
            "The message to send whenever this message arrives, and the sources of its fields: \
             `{received: {id: id}}`.",
        doc: Text => NOTE,
    }
    BEAT Beat = "`heartbeat`" {
        send: Text => "The message to send periodically.",
        expect: Text => "The reply to the heartbeat. Without `expect`, no reply is expected.",
        every: Duration => "The time between two heartbeats.",
        lost_after: Duration =>
            "How long to wait for the reply before the heartbeat counts as lost. Default: `10s`, \
             or `every` if that is shorter.",
    }
    FIELD FieldMap = "a field" {
        id: Text => "The name: letters, digits and `_`.",
        r#type "type": Text =>
            "The type: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, `bool`, `varint`, `zigzag`, \
             `ber`, `lenenc`, `decimal`, `b1` to `b64`, `str`, `strz`, `bytes`, `json`, \
             `cbor`, `msgpack`, `protobuf(Message)` or one of `types`.",
        fields: List(&ONE_FIELD) => "A group of fields, instead of a type.",
        path: Text =>
            "With `format`, the place of the field: `data.id`, `[0]`, `items[2].price`; in XML: \
             `body`, `@id`, `error/@code`, or `node()` for the markup in an element. Default: the \
             key or the element with the name of the field.",
        bits: Whole => "The number of bits: `bits: 3` means `type: b3`.",
        endian: ENDIANS => "The byte order, if it differs from the protocol's.",
        length: Text =>
            "The type of the length prefix, which is the number of bytes after it: `u8`, `u16`, \
             `u24`, `u32`, `u64`, `varint`, `ber` or `lenenc`.",
        size: Text => "The number of bytes, or an earlier field with that number: `16`, `count`.",
        terminator: BYTES => "The bytes that end the field: `\"\\0\"`, `0`, `\"\\r\\n\"`.",
        rest: Bool =>
            "`true`: the field takes the rest of the body or structure. This is the default if \
             nothing else sets the size. With `terminator`, the rest must end with these bytes.",
        size_eos "size-eos": Bool => "The same as `rest`.",
        max: Size => "The maximum length in bytes.",
        r#const "const": Anything => "The constant value; scenarios do not set it.",
        contents: BYTES => "Constant bytes, instead of a type.",
        default: Anything => "The value to send if the scenario does not set it.",
        r#enum "enum": OneOf(&[Text, ENUM]) =>
            "Names of values: `{0: ok, 1: full}`, or one of `enums`.",
        r#if "if": Text =>
            "The field is present only if this condition on an earlier field is true: `flags & \
             1`, `kind == 2`.",
        optional: Bool =>
            "`true`: the field is absent if the body or structure has no bytes left.",
        layer: Words(&["zlib", "gzip", "deflate", "brotli"]) =>
            "The compression of the content.",
        repeat: Text =>
            "The number of repetitions: `3`, the type of a count prefix, an earlier field, `rest`, \
             or `until`.",
        by: Text =>
            "Of a list of names and values: the field with the name. Paths then select an item by \
             its name: `headers.receipt-id`.",
        until: BYTES => "The bytes after the last item, for `repeat: until`: `\"\\n\"`, `0`.",
        repeat_expr "repeat-expr": Text =>
            "The number of repetitions for `repeat: expr`: a number or an earlier field.",
        counts: Words(&["body", "after", "packet"]) =>
            "The field is the length of the body, of everything after this field, or of the whole \
             packet.",
        plus: Whole =>
            "A number that throng adds to the value of a `counts` field: `4` if a length of four \
             bytes includes itself. Default: `0`.",
        selects: Words(&["message"]) =>
            "The value of the field selects the message type of the packet, alone or together with \
             other fields.",
        correlates: OneOf(&[Words(&["request"]), Text]) =>
            "`request`: the field correlates messages: a reply contains the value of its request; \
             a push contains 0. It is a field of the packet, or of each message that has it. Of a \
             list with `by`: the name of the item that correlates, such as `receipt-id`.",
        checksum: Words(&[
            "crc32", "crc32c", "crc16", "crc16-modbus", "crc16-xmodem", "crc16-ccitt", "adler32",
            "sum", "xor",
        ]) =>
            "The field is a checksum, which throng computes and verifies.",
        over: NAMES => "The fields that the checksum covers. Default: all fields before it.",
        encoding: Words(&["UTF-8", "utf-8", "ASCII", "ascii"]) =>
            "The encoding of text, always UTF-8.",
        doc: Text => NOTE,
    }
    } };
}

protocol_maps!(tables PROTOCOL_KINDS:);
protocol_maps!(structs);
