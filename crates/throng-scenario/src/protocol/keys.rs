//! The keys of protocol files, each with its one-line meaning and the shape of its value: read by
//! the reader, shown in messages, and the source of the JSON Schema and of the reference.

use crate::keys::Shape::{
    self, Anything, Bool, Duration, Kind, List, Map, Nothing, OneOf, Size, Text, Whole, Words,
};
use crate::keys::{KeyDoc, MapKind};

const fn key(name: &'static str, shape: Shape, doc: &'static str) -> KeyDoc {
    KeyDoc { name, doc, shape, later: None }
}

macro_rules! map_kinds {
    ($($name:ident = $what:literal [$($key:expr,)*];)*) => {
        $(pub static $name: MapKind = MapKind { what: say!($what), keys: &[$($key,)*] };)*

        /// All kinds of maps of a protocol file.
        pub static PROTOCOL_KINDS: &[(&str, &MapKind)] = &[$((stringify!($name), &$name),)*];
    };
}

static ONE_FIELD: Shape = Kind(&FIELD);
const FIELDS: Shape = List(&ONE_FIELD);
/// One word or a list of them.
const NAMES: Shape = OneOf(&[Text, List(&Text)]);
/// Bytes as a text, as a number, or as a list of numbers and texts.
const BYTES: Shape = OneOf(&[Text, List(&Text)]);
const ENDIANS: Shape = Words(&["big", "little", "be", "le"]);
const ENUM: Shape = Map(&Text);

map_kinds! {
    PROTOCOL = "a protocol" [
        key(
            "transport",
            Words(&["tcp", "tls", "udp", "ws", "wss"]),
            "What carries the packets; `tcp` if left out. One datagram of `udp` and one binary \
             message of `ws` and `wss` is one packet."
        ),
        key("endian", ENDIANS, "The byte order of numbers; `big` if left out."),
        key("packet", FIELDS, "The parts of every packet in wire order; `{id: body}` stands for \
             the message's own fields."),
        key("seq", FIELDS, "The same as `packet`."),
        key("messages", Map(&OneOf(&[Kind(&DECLARED_MESSAGE), Nothing])), "The kinds of messages, by name."),
        key("heartbeat", Kind(&BEAT), "What both sides say to each other while they are silent."),
        key("delimiter", BYTES, "Every packet ends with these bytes: `\"\\r\\n\"`."),
        key("fixed", Size, "Every packet has so many bytes."),
        key(
            "max",
            Size,
            "The most bytes of a packet that ends with a delimiter; `64KiB` if left out."
        ),
        key("types", Map(&OneOf(&[FIELDS, Kind(&STRUCTURE)])), "Structures that fields name in \
             `type`, each a list of fields."),
        key("enums", Map(&ENUM), "Names of values that fields name in `enum`."),
        key(
            "proto",
            NAMES,
            "The `.proto` files, or sets of descriptors, in which `protobuf(Message)` is looked \
             for."
        ),
        key(
            "proto_path",
            NAMES,
            "The folders in which `.proto` files and their imports are looked for, as `protoc \
             --proto_path` has them."
        ),
        key("meta", Kind(&META), "What Kaitai Struct has at the head of a file."),
        key("doc", Text, "What a person should know; not read."),
    ];
    META = "`meta`" [
        key("id", Text, "The name of the protocol; not read."),
        key("title", Text, "What the protocol is; not read."),
        key("endian", ENDIANS, "The same as `endian` of the protocol."),
        key("encoding", Words(&["UTF-8", "utf-8", "ASCII", "ascii"]), "Texts are UTF-8."),
        key("license", Text, "Who may use the file; not read."),
    ];
    STRUCTURE = "a type" [
        key("seq", FIELDS, "Its fields."),
        key("fields", FIELDS, "The same as `seq`."),
        key("doc", Text, "What a person should know; not read."),
    ];
    DECLARED_MESSAGE = "a message of a protocol" [
        key("kind", Text, "The value of the field that `selects` the message."),
        key("body", FIELDS, "Its fields in wire order; none if left out."),
        key("seq", FIELDS, "The same as `body`."),
        key("answers", NAMES, "The messages that it may be the reply to."),
        key("push", Bool, "`true`: it comes unasked."),
        key(
            "acknowledged_by",
            OneOf(&[Text, Map(&OneOf(&[Map(&Anything), Nothing]))]),
            "The message that is sent whenever this one comes, and where its fields come from: \
             `{received: {id: id}}`."
        ),
        key("doc", Text, "What a person should know; not read."),
    ];
    BEAT = "`heartbeat`" [
        key("send", Text, "The message that is sent again and again."),
        key("expect", Text, "The message that answers it; without it no answer is expected."),
        key("every", Duration, "The time between two."),
        key("lost_after", Duration, "One that is not answered by then is lost; `every` if left \
             out."),
    ];
    FIELD = "a field" [
        key("id", Text, "Its name: letters, digits and `_`."),
        key(
            "type",
            Text,
            "What it is: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, `bool`, `varint`, `zigzag`, \
             `b1` to `b64`, `str`, `strz`, `bytes`, `json`, `protobuf(Message)` or one of `types`."
        ),
        key("fields", List(&ONE_FIELD), "Fields that belong together, instead of a type."),
        key("bits", Whole, "So many bits: `bits: 3` is `type: b3`."),
        key("endian", ENDIANS, "Its byte order, where it is another than that of the protocol."),
        key("length", Text, "A number of this type stands before it and says how many bytes it \
             has: `u8`, `u16`, `u24`, `u32`, `u64` or `varint`."),
        key("size", Text, "So many bytes, or as many as an earlier field says: `16`, `count`."),
        key("terminator", BYTES, "It ends with these bytes: `\"\\0\"`, `0`, `\"\\r\\n\"`."),
        key("rest", Bool, "`true`: what is left of the body or structure; so it is where nothing \
             else is said."),
        key("size-eos", Bool, "The same as `rest`."),
        key("max", Size, "The largest value of a length, in bytes."),
        key("const", Anything, "It always has this value; scenarios do not give it."),
        key("contents", BYTES, "Bytes that always stand there, instead of a type."),
        key("default", Anything, "What is sent where a scenario gives nothing."),
        key("enum", OneOf(&[Text, ENUM]), "Names of its values: `{0: ok, 1: full}`, or one of \
             `enums`."),
        key("if", Text, "It is there only if an earlier field has this value: `flags & 1`, \
             `kind == 2`."),
        key("repeat", Text, "It is there several times: `3`, the type of a number before the \
             items, an earlier field, or `rest`."),
        key("repeat-expr", Text, "How often, behind `repeat: expr`: a number or an earlier field."),
        key("counts", Words(&["body", "after", "packet"]), "It is the length: of the body, of what \
             comes after it, or of the whole packet."),
        key("selects", Words(&["message"]), "Its value tells which message the packet is."),
        key("correlates", Words(&["request"]), "A reply carries its request's value; a message \
             nobody asked for carries 0."),
        key(
            "checksum",
            Words(&["crc32", "crc16", "crc16-xmodem", "adler32", "sum", "xor"]),
            "It is a checksum, which throng fills in and compares."
        ),
        key("over", NAMES, "The fields that the checksum is over; all before it if left out."),
        key("encoding", Words(&["UTF-8", "utf-8", "ASCII", "ascii"]), "Texts are UTF-8."),
        key("doc", Text, "What a person should know; not read."),
    ];
}
