//! The keys of protocol files, each with its one-line meaning and the shape of its value: read by
//! the reader, shown in messages, and the source of the JSON Schema and of the reference.

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

macro_rules! protocol_maps {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
    PROTOCOL Protocol = "a protocol" {
        transport: Words(&["tcp", "tls", "udp", "ws", "wss"]) =>
            "What carries the packets; `tcp` if left out. One datagram of `udp` and one binary \
             message of `ws` and `wss` is one packet.",
        endian: ENDIANS => "The byte order of numbers; `big` if left out.",
        packet: FIELDS =>
            "The parts of every packet in wire order; `{id: body}` stands for the message's own \
             fields.",
        seq: FIELDS => "The same as `packet`.",
        messages: Map(&OneOf(&[Kind(&DECLARED_MESSAGE), Nothing])) =>
            "The kinds of messages, by name.",
        heartbeat: Kind(&BEAT) => "What both sides say to each other while they are silent.",
        delimiter: BYTES => "Every packet ends with these bytes: `\"\\r\\n\"`.",
        fixed: Size => "Every packet has so many bytes.",
        max: Size => "The most bytes of a packet that ends with a delimiter; `64KiB` if left out.",
        types: Map(&OneOf(&[FIELDS, Kind(&STRUCTURE)])) =>
            "Structures that fields name in `type`, each a list of fields.",
        enums: Map(&ENUM) => "Names of values that fields name in `enum`.",
        proto: NAMES =>
            "The `.proto` files, or sets of descriptors, in which `protobuf(Message)` is looked \
             for.",
        proto_path: NAMES =>
            "The folders in which `.proto` files and their imports are looked for, as `protoc \
             --proto_path` has them.",
        meta: Kind(&META) => "What Kaitai Struct has at the head of a file.",
        doc: Text => "What a person should know; not read.",
    }
    META Meta = "`meta`" {
        id: Text => "The name of the protocol; not read.",
        title: Text => "What the protocol is; not read.",
        endian: ENDIANS => "The same as `endian` of the protocol.",
        encoding: Words(&["UTF-8", "utf-8", "ASCII", "ascii"]) => "Texts are UTF-8.",
        license: Text => "Who may use the file; not read.",
    }
    STRUCTURE Structure = "a type" {
        seq: FIELDS => "Its fields.",
        fields: FIELDS => "The same as `seq`.",
        doc: Text => "What a person should know; not read.",
    }
    DECLARED_MESSAGE DeclaredMessage = "a message of a protocol" {
        kind: Text => "The value of the field that `selects` the message.",
        body: FIELDS => "Its fields in wire order; none if left out.",
        seq: FIELDS => "The same as `body`.",
        answers: NAMES => "The messages that it may be the reply to.",
        push: Bool => "`true`: it comes unasked.",
        acknowledged_by: OneOf(&[Text, Map(&OneOf(&[Map(&Anything), Nothing]))]) =>
            "The message that is sent whenever this one comes, and where its fields come from: \
             `{received: {id: id}}`.",
        doc: Text => "What a person should know; not read.",
    }
    BEAT Beat = "`heartbeat`" {
        send: Text => "The message that is sent again and again.",
        expect: Text => "The message that answers it; without it no answer is expected.",
        every: Duration => "The time between two.",
        lost_after: Duration =>
            "One that is not answered by then is lost; `every` if left out.",
    }
    FIELD FieldMap = "a field" {
        id: Text => "Its name: letters, digits and `_`.",
        r#type "type": Text =>
            "What it is: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, `bool`, `varint`, `zigzag`, \
             `b1` to `b64`, `str`, `strz`, `bytes`, `json`, `protobuf(Message)` or one of \
             `types`.",
        fields: List(&ONE_FIELD) => "Fields that belong together, instead of a type.",
        bits: Whole => "So many bits: `bits: 3` is `type: b3`.",
        endian: ENDIANS => "Its byte order, where it is another than that of the protocol.",
        length: Text =>
            "A number of this type stands before it and says how many bytes it has: `u8`, `u16`, \
             `u24`, `u32`, `u64` or `varint`.",
        size: Text => "So many bytes, or as many as an earlier field says: `16`, `count`.",
        terminator: BYTES => "It ends with these bytes: `\"\\0\"`, `0`, `\"\\r\\n\"`.",
        rest: Bool =>
            "`true`: what is left of the body or structure; so it is where nothing else is said.",
        size_eos "size-eos": Bool => "The same as `rest`.",
        max: Size => "The largest value of a length, in bytes.",
        r#const "const": Anything => "It always has this value; scenarios do not give it.",
        contents: BYTES => "Bytes that always stand there, instead of a type.",
        default: Anything => "What is sent where a scenario gives nothing.",
        r#enum "enum": OneOf(&[Text, ENUM]) =>
            "Names of its values: `{0: ok, 1: full}`, or one of `enums`.",
        r#if "if": Text =>
            "It is there only if an earlier field has this value: `flags & 1`, `kind == 2`.",
        repeat: Text =>
            "It is there several times: `3`, the type of a number before the items, an earlier \
             field, or `rest`.",
        repeat_expr "repeat-expr": Text =>
            "How often, behind `repeat: expr`: a number or an earlier field.",
        counts: Words(&["body", "after", "packet"]) =>
            "It is the length: of the body, of what comes after it, or of the whole packet.",
        selects: Words(&["message"]) => "Its value tells which message the packet is.",
        correlates: Words(&["request"]) =>
            "A reply carries its request's value; a message nobody asked for carries 0.",
        checksum: Words(&["crc32", "crc16", "crc16-xmodem", "adler32", "sum", "xor"]) =>
            "It is a checksum, which throng fills in and compares.",
        over: NAMES => "The fields that the checksum is over; all before it if left out.",
        encoding: Words(&["UTF-8", "utf-8", "ASCII", "ascii"]) => "Texts are UTF-8.",
        doc: Text => "What a person should know; not read.",
    }
    } };
}

protocol_maps!(tables PROTOCOL_KINDS:);
protocol_maps!(structs);
