//! Compiled protocol files, and diagnostics for broken ones. Mistakes and their messages are in
//! `tests-md/protocol.md`.

use std::path::Path;
use std::sync::Arc;

use throng_base::{Diagnostic, Said, Source};
use throng_protocol::framed::Range;
use throng_protocol::framed::declaration::{
    Checksum, Coding, Comparison, Condition, Copied, Counts, Endian, Extent, Field, Framing,
    Literal, Prefix, Repeat, Role, Transport, Type,
};

use super::*;
use crate::{CompileOptions, RunOptions};

mod docs;

const CHAT: &str = include_str!("../../../../examples/chat.protocol.yaml");
const PUSH: &str = include_str!("../../../../examples/miop.protocol.yaml");

const SHOP: &str = "\
// A shop.
syntax = \"proto3\";
package shop;
import public \"money.proto\";
import 'google/protobuf/timestamp.proto';
option java_package = \"com.example\";
message Order {
  option deprecated = true;
  reserved 8, 10 to 12;
  enum State { option allow_alias = true; OPEN = 0; PAID = 0x1; GONE = -1 [deprecated = true]; }
  message Item { string name = 1; repeated uint32 sizes = 2; Order.State state = 3; }
  uint64 id = 1 [(money.own) = { a: [1] }, jstype = JS_STRING];
  repeated Item items = 2;
  map<string, money.Price> prices = 3;
  oneof way { bool post = 4; bytes mail = 5; }
  repeated sint32 plain = 6 [packed = false];
  google.protobuf.Timestamp at = 7;
  optional .shop.Order parent = 9; /* again */
}
service Shop { rpc Buy (Order) returns (Order) { option idempotency_level = NO_SIDE_EFFECTS; } }
";

const MONEY: &str = "\
syntax = \"proto2\";
package money;
import \"google/protobuf/descriptor.proto\";
message Own { repeated int32 a = 1; }
extend google.protobuf.FieldOptions { optional Own own = 50000; }
message Price { required fixed64 cents = 1; optional string currency = 2 [default = \"EUR\"]; }
message Order { repeated int32 plain = 1; }
";

/// The `.proto` files of the tests.
pub(crate) fn proto_file(path: &Path, _: usize) -> std::io::Result<Vec<u8>> {
    let text = match path.file_name().and_then(|name| name.to_str()) {
        Some("shop.proto") => SHOP,
        Some("money.proto") => MONEY,
        Some("echo.proto") => include_str!("../../../../examples/echo.proto"),
        Some("market.proto") => include_str!("../../tests-md/files/market.proto"),
        Some("group.proto") => "message A {\n  optional group B = 1 { optional int32 c = 1; }\n}\n",
        Some("extend.proto") => {
            "message Extended { extensions 100 to 199; }\n\
             extend Extended { optional int32 b = 100; }\n"
        }
        Some("edition.proto") => "edition = \"2023\";\n",
        Some("syntax.proto") => "syntax = \"proto3\";\nmessage A {\n  string name 1;\n}\n",
        Some("short.proto") => "message A {\n  string name = 1;\n",
        Some("comment.proto") => "/* message A {}\n",
        Some("quote.proto") => "import \"a.proto;\n",
        Some("number.proto") => "message A { optional string a = 1; optional string b = 1; }\n",
        Some("zero.proto") => "message A { optional string a = 0; }\n",
        Some("label.proto") => "message A { string a = 1; }\n",
        Some("type.proto") => "syntax = \"proto3\";\nmessage A { Bee b = 1; A.Sea c = 2; }\n",
        Some("key.proto") => "message A { map<double, string> c = 2; }\n",
        Some("path.proto") => "import \"../a.proto\";\n",
        Some("twice.proto") => "message A {}\nmessage A {}\n",
        Some("option.proto") => "option (shop.mine) = 1;\n",
        Some("enum.proto") => "syntax = \"proto3\";\nenum A { ONE = 1; }\n",
        Some("import.proto") => "import \"nowhere.proto\";\nmessage A {}\n",
        Some("latin.proto") => return Ok(b"// caf\xe9\n".to_vec()),
        Some("deep.proto") => return Ok("message A {".repeat(40).into_bytes()),
        _ => return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file")),
    };
    Ok(text.as_bytes().to_vec())
}

fn read_text(name: &str, text: &str) -> Result<(Arc<Protocol>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let options = CompileOptions {
        set: Vec::new(),
        base: "tests-md".into(),
        read_file: &proto_file,
        env: &|_| None,
        run: RunOptions::default(),
    };
    read_protocol(&Source::new(name, text), &options)
}

/// The chat of the examples.
pub(crate) fn chat() -> Arc<Protocol> {
    read_text("chat.protocol.yaml", CHAT).expect("a good declaration").0
}

/// All diagnostics of a protocol file.
pub(crate) fn told(text: &str) -> Vec<Diagnostic> {
    match read_text("test.protocol.yaml", text) {
        Ok((_, warnings)) => warnings,
        Err(errors) => errors,
    }
}

/// The declaration of a file without mistakes.
fn declaration(text: &str) -> Declaration {
    match read_text("test.protocol.yaml", text) {
        Ok((protocol, warnings)) if warnings.is_empty() => protocol.declaration().clone(),
        Ok((_, wrong)) | Err(wrong) => {
            let told: String = wrong.iter().map(|one| one.render(false)).collect();
            panic!("{told}\n{text}")
        }
    }
}

/// The fields of the body of a message.
fn body(fields: &str) -> Vec<Field> {
    let text = format!(
        "packet:\n  - {{id: size, type: u32, counts: body}}\n  - {{id: kind, type: u8, selects: \
         message}}\n  - {{id: body}}\nmessages:\n  one:\n    kind: 1\n    body: {fields}\ntypes:\n  \
         item: [{{id: price, type: u32}}]\n  pair: {{seq: [{{id: left, type: item}}]}}\nenums: \
         {{code: {{0: ok, 0x10: full}}}}\nproto: shop.proto\n"
    );
    declaration(&text).messages.remove(0).body
}

/// The only field of a body.
fn one(field: &str) -> Field {
    body(&format!("[{{id: a, {field}}}]")).remove(0)
}

/// Two fields: the first is a byte, the second is returned.
fn second(field: &str) -> Field {
    body(&format!("[{{id: n, type: u8}}, {{id: a, {field}}}]")).remove(1)
}

#[test]
fn the_chat_example_is_read_completely() {
    let chat = declaration(CHAT);
    assert_eq!(
        (chat.transport, chat.endian, &chat.framing),
        (Transport::Tcp, Endian::Big, &Framing::Length)
    );
    let ids: Vec<&str> = chat.packet.iter().map(|field| field.id.value.as_str()).collect();
    assert_eq!(ids, ["magic", "length", "kind", "seq", "body"]);
    let [magic, length, kind, seq, body] = &chat.packet[..] else { panic!("five parts") };
    assert_eq!(magic.ty, Type::Unsigned(16));
    assert_eq!(magic.constant.as_ref().map(|one| &one.value), Some(&Literal::Int(0xc4a7)));
    let Role::Length { counts: Counts::Body, plus: 0, bytes_max: Some(max) } = &length.role else {
        panic!("{length:?}")
    };
    assert_eq!((&length.ty, max.value), (&Type::Unsigned(32), 64 * 1024));
    assert_eq!(
        (&kind.role, &seq.role, &body.role),
        (&Role::Selects, &Role::Correlates, &Role::Body)
    );
    assert_eq!((&kind.ty, &seq.ty), (&Type::Unsigned(8), &Type::Unsigned(32)));

    let told: Vec<String> = chat.messages.iter().map(message_told).collect();
    let want = [
        "join 1: room user token",
        "joined 2 answers join: code online",
        "like 3: count",
        "gift 4: gift price",
        "done 5 answers gift say light: code",
        "light 6: colour",
        "say 7: id sent_ns text",
        "said 8 push: from id sent_ns text",
        "ping 9:",
        "pong 10 answers ping:",
        "leave 11:",
    ];
    assert_eq!(told, want);
    let token = &chat.messages[0].body[2];
    let prefix = Prefix::Unsigned(16);
    assert_eq!(token.ty, Type::Text(Extent::Prefixed { prefix, bytes_max: None }));
    assert_eq!(chat.messages[2].body[0].ty, Type::Varint);
    let beat = chat.heartbeat.unwrap();
    assert_eq!((beat.send.value.as_str(), beat.expect.unwrap().value.as_str()), ("ping", "pong"));
    assert_eq!((beat.every.as_secs(), beat.lost_after.unwrap().as_secs()), (30, 10));
}

#[test]
fn included_protocols_are_valid_and_have_titles() {
    for shipped in library::ALL {
        let (protocol, warnings) =
            read_text(&shipped.source().name, shipped.text).unwrap_or_else(|wrong| {
                panic!("{}", wrong.iter().map(|one| one.render(false)).collect::<String>())
            });
        assert!(warnings.is_empty() && protocol.messages().count() > 1, "{}", shipped.name);
        assert!(shipped.title().ends_with('.'), "{}", shipped.title());
        for key in ["id", "title", "version", "license", "source"] {
            assert!(
                shipped.text.contains(&format!("\n  {key}: ")),
                "{} has no {key}",
                shipped.name
            );
        }
        assert!(shipped.text.contains(&format!("\n  id: {}\n", shipped.name)));
    }
}

fn message_told(message: &Message) -> String {
    let kind = message.kind.as_ref().map_or("-".to_string(), |kind| kind.value.to_string());
    let mut out = format!("{} {kind}", message.name.value);
    if message.push {
        out += " push";
    }
    if !message.answers.is_empty() {
        out += " answers";
    }
    message.answers.iter().for_each(|name| out += &format!(" {}", name.value));
    out.push(':');
    message.body.iter().for_each(|field| out += &format!(" {}", field.id.value));
    out
}

#[test]
fn the_push_example_is_read_completely() {
    let push = declaration(PUSH);
    let length = &push.packet[0];
    let Role::Length { counts: Counts::After, plus: 0, bytes_max: Some(max) } = &length.role else {
        panic!("{length:?}")
    };
    assert_eq!((&length.ty, max.value), (&Type::Unsigned(16), 16 * 1024));
    let told: Vec<String> = push.messages.iter().map(message_told).collect();
    let want = [
        "bind 1: device key",
        "bound 2 answers bind: code",
        "heartbeat 3:",
        "alive 4 answers heartbeat:",
        "push 5 push: id sent_ns data",
        "received 6 answers push: id",
        "report 7: data",
        "noted 8 answers report:",
    ];
    assert_eq!(told, want);
    assert_eq!(push.messages[4].body[2].ty, Type::Json(Extent::Rest));
    assert_eq!(push.heartbeat.unwrap().lost_after.unwrap().as_secs(), 15);
}

#[test]
fn types_match_the_declaration() {
    let text = Type::Text;
    let prefixed = |prefix, bytes_max| Extent::Prefixed { prefix, bytes_max };
    for (field, want) in [
        ("type: u8", Type::Unsigned(8)),
        ("type: u40", Type::Unsigned(40)),
        ("type: i24", Type::Signed(24)),
        ("type: s2", Type::Signed(16)),
        ("type: f32", Type::Float32),
        ("type: f8", Type::Float64),
        ("type: bool", Type::Bool),
        ("type: varint", Type::Varint),
        ("type: ber", Type::Coded(Coding::Ber)),
        ("type: lenenc", Type::Coded(Coding::Lenenc)),
        ("type: decimal, terminator: \" \"", Type::Coded(Coding::Decimal((*b" ").into()))),
        ("type: str, length: ber", text(prefixed(Prefix::Ber, None))),
        ("type: zigzag", Type::ZigZag),
        ("type: str, length: u8", text(prefixed(Prefix::Unsigned(8), None))),
        ("type: str, length: varint, max: 1KiB", text(prefixed(Prefix::Varint, Some(1024)))),
        ("type: str, length: u24", text(prefixed(Prefix::Unsigned(24), None))),
        ("type: str, size: 16", text(Extent::Fixed(16))),
        ("type: str, size: 0x10, encoding: UTF-8", text(Extent::Fixed(16))),
        ("type: str, terminator: \"\\0\"", text(Extent::Delimited(vec![0]))),
        ("type: str, terminator: 0", text(Extent::Delimited(vec![0]))),
        ("type: strz", text(Extent::Delimited(vec![0]))),
        ("type: str, terminator: [13, 0x0a]", text(Extent::Delimited(vec![13, 10]))),
        ("type: str, terminator: \"\\r\\n\"", text(Extent::Delimited(vec![13, 10]))),
        ("type: str", text(Extent::Rest)),
        ("type: str, rest: true", text(Extent::Rest)),
        ("type: str, rest: true, terminator: end", text(Extent::RestBefore(b"end".to_vec()))),
        ("type: str, rest: false, terminator: end", text(Extent::Delimited(b"end".to_vec()))),
        ("type: bytes, size-eos: true", Type::Bytes(Extent::Rest)),
        ("size: 4", Type::Bytes(Extent::Fixed(4))),
        ("rest: true", Type::Bytes(Extent::Rest)),
        ("type: json, length: u32", Type::Json(prefixed(Prefix::Unsigned(32), None))),
        ("type: item", Type::Struct(0)),
        ("type: pair", Type::Struct(1)),
        ("contents: [CA, 0xFE, 7]", Type::Bytes(Extent::Fixed(4))),
    ] {
        assert_eq!(one(field).ty, want, "{field}");
    }
    let bits = body("[{id: a, type: b3}, {id: b, bits: 5}]");
    assert_eq!((&bits[0].ty, &bits[1].ty), (&Type::Bits(3), &Type::Bits(5)));
    let sized = second("type: bytes, size: n").ty;
    assert!(matches!(sized, Type::Bytes(Extent::Field(name)) if name.value == "n"));
    let Type::Fields(inner) = one("fields: [{id: x, type: u8}, {id: y, type: item}]").ty else {
        panic!("fields")
    };
    assert_eq!((inner.len(), &inner[1].ty), (2, &Type::Struct(0)));
}

#[test]
fn fields_have_values_conditions_and_repetitions() {
    assert_eq!(one("type: u32le").ty, Type::Unsigned(32));
    assert_eq!(one("type: u32le").endian, Some(Endian::Little));
    assert_eq!(one("type: u16, endian: little").endian, Some(Endian::Little));
    assert_eq!(one("type: u16, endian: be").endian, Some(Endian::Big));
    assert_eq!(one("type: u16").endian, None);
    for (field, want) in [
        ("type: u16, const: 0xC4A7", Literal::Int(0xc4a7)),
        ("type: i8, const: -1", Literal::Int(-1)),
        ("type: f32, const: 1.5", Literal::Float(1.5)),
        ("type: bool, const: true", Literal::Bool(true)),
        ("type: str, size: 2, const: ok", Literal::Text("ok".into())),
        ("type: bytes, size: 2, const: \"\\x01a\"", Literal::Bytes(vec![1, b'a'])),
        ("contents: [CA, 0xFE]", Literal::Bytes(vec![b'C', b'A', 0xfe])),
        ("contents: GIF", Literal::Bytes(b"GIF".to_vec())),
        ("type: u8, enum: {0: ok, 1: full}, const: full", Literal::Int(1)),
    ] {
        assert_eq!(one(field).constant.unwrap().value, want, "{field}");
    }
    assert_eq!(one("type: u8, default: 7").default.unwrap().value, Literal::Int(7));
    assert_eq!(one("type: u8, enum: code, default: full").default.unwrap().value, Literal::Int(16));
    let labels = one("type: u8, enum: {0: ok, 0x10: full}").labels;
    assert_eq!(
        labels.iter().map(|(name, n)| (&*name.value, *n)).collect::<Vec<_>>(),
        [("ok", 0), ("full", 16)]
    );

    let condition = |text: &str| second(&format!("type: u8, if: {text}")).condition.unwrap();
    let Condition { field, comparison, value } = condition("n & 4");
    assert_eq!((&*field.value, comparison, value), ("n", Comparison::HasBits, 4));
    assert_eq!(condition("n >= 2").comparison, Comparison::GreaterOrEqual);
    let named = body("[{id: n, type: u8, enum: code}, {id: a, type: u8, if: n == full}]");
    assert_eq!(named[1].condition.as_ref().unwrap().value, 16);

    let repeat = |text: &str| second(&format!("type: u8, {text}")).repeat.unwrap();
    assert_eq!(repeat("repeat: 3"), Repeat::Times(3));
    assert_eq!(repeat("repeat: u16"), Repeat::Prefixed(Prefix::Unsigned(16)));
    assert_eq!(repeat("repeat: varint"), Repeat::Prefixed(Prefix::Varint));
    assert_eq!(repeat("repeat: rest"), Repeat::Rest);
    assert_eq!(repeat("repeat: eos"), Repeat::Rest);
    assert_eq!(repeat("repeat: until, until: \"\\n\""), Repeat::Until(b"\n".to_vec()));
    assert_eq!(repeat("repeat: expr, repeat-expr: 3"), Repeat::Times(3));
    assert!(matches!(repeat("repeat: n"), Repeat::Field(name) if name.value == "n"));
    let by_words = repeat("repeat: expr, repeat-expr: n");
    assert!(matches!(by_words, Repeat::Field(name) if name.value == "n"));
}

#[test]
fn ends_and_kinds_match_the_file() {
    assert_eq!(
        one("type: bytes, default: \"\"").default.unwrap().value,
        Literal::Bytes(Vec::new())
    );
    assert!(one("type: u8, optional: true").is_optional);
    let varint = Extent::Prefixed { prefix: Prefix::Varint, bytes_max: Some(64) };
    assert_eq!(one("type: item, length: varint, max: 64").bound, Some(varint));
    assert_eq!(one("fields: [{id: x, type: u8}], size: 7").bound, Some(Extent::Fixed(7)));
    assert_eq!(one("type: item").bound, None);
    let texts = declaration(
        "frame: fields\nmax: 1KiB\npacket: [{id: word, type: str, selects: message}]\nmessages: \
         {stop: {kind: \"STOP\\r\\n\"}, ok: {kind: 250, answers: stop}}\n",
    );
    assert!(matches!(texts.framing, Framing::Fields { bytes_max: 1024, .. }));
    let kinds: Vec<_> = texts.messages.iter().map(|one| one.kind.clone().unwrap().value).collect();
    assert_eq!(
        kinds,
        [
            declaration::MessageKind::Text(b"STOP\r\n".to_vec()),
            declaration::MessageKind::Text(b"250".to_vec())
        ]
    );
    let several = declaration(
        "packet:\n  - {id: size, type: u16, counts: after, plus: -1}\n  - {id: class, type: u8, \
         selects: message}\n  - {id: method, type: u8, selects: message, if: class == 1}\n  - {id: \
         end, type: u8, const: 0xCE}\nmessages: {open: {kind: [1, 10]}, beat: {kind: 8}}\n",
    );
    let kinds: Vec<_> =
        several.messages.iter().map(|one| one.kind.clone().unwrap().value).collect();
    assert_eq!(
        kinds,
        [
            declaration::MessageKind::Numbers(vec![1, 10]),
            declaration::MessageKind::Numbers(vec![8])
        ]
    );
    assert!(matches!(several.packet[0].role, Role::Length { plus: -1, .. }));
}

#[test]
fn replies_may_have_several_packets() {
    let text = "\
delimiter: \"\\r\\n\"
packet: [{id: body}]
messages:
  command: {body: [{id: text, type: str}]}
  reply:
    answers: command
    more: mark == more
    body: [{id: code, type: str, size: 3}, {id: mark, type: u8, enum: {32: last, 45: more}}, {id: text, type: str}]
";
    let more = |text: &str| declaration(text).messages[1].more.clone();
    let Some(More::If(test)) = more(text) else { panic!() };
    let Condition { field, comparison, value } = test;
    assert_eq!((&*field.value, comparison, value), ("mark", Comparison::Equal, 45));
    assert_eq!(more(&text.replace("mark == more", "false")), None);
    let never = told(&text.replace("mark == more", "true"));
    assert_eq!(never[0].code, "protocol-bad-reply");
    // A part can also be a push; otherwise only packets of a push are both.
    let rows = "delimiter: \"\\n\"\npacket: [{id: k, type: u8, selects: message}]\nmessages: {ask: \
                {kind: 1}, done: {kind: 2, answers: ask}, row: {kind: 3, answers: ask, push: true}}";
    assert_eq!(told(rows)[0].code, "protocol-bad-reply");
    assert!(told(&rows.replace("push: true", "push: true, more: true")).is_empty());
    let push = rows.replace("answers: ask, push: true", "push: true, more: true");
    assert_eq!(told(&push)[0].code, "protocol-bad-reply", "it never ends");
    let ended = push.replace("}}", "}, end: {kind: 4, push: true, answers: row}}");
    assert!(told(&ended).is_empty());
    let alone = ended.replace("delimiter: \"\\n\"", "transport: udp");
    assert_eq!(told(&alone)[0].code, "protocol-bad-reply", "no packet of it ends");
}

#[test]
fn packets_of_a_push_are_selected_together_and_separately() {
    let text = "\
delimiter: \"\\r\\n\"
packet: [{id: kind, type: str, size: 1, selects: message}, {id: body}]
messages:
  first: {kind: a, push: true, more: true, body: [{id: x, type: str}]}
  last: {kind: b, push: true, answers: first, body: [{id: y, type: str}]}
";
    let protocol = Protocol::compile(declaration(text)).unwrap();
    let mut packets = Vec::new();
    protocol.join(&mut packets, b"aone");
    assert_eq!(protocol.apart(&packets), (&b"aone"[..], vec![]));
    protocol.join(&mut packets, b"btwo");
    assert_eq!(packets, b"aone\r\nbtwo");
    assert_eq!(protocol.apart(&packets), (&b"aone"[..], vec![&b"btwo"[..]]));
}

#[test]
fn packets_have_checksums_delimiters_and_fixed_sizes() {
    let delimited = declaration(
        "transport: tls\ntext: true\nmeta: {id: x, endian: le}\ndelimiter: \"\\r\\n\"\nmax: 1KiB\n\
         packet: [{id: body}]\nmessages: {line: {body: [{id: text, type: str}]}}\n",
    );
    assert_eq!((delimited.transport, delimited.endian), (Transport::Tls, Endian::Little));
    assert!(delimited.is_text);
    let Framing::Delimiter { bytes, bytes_max } = delimited.framing else { panic!("delimiter") };
    assert_eq!((&bytes.value[..], bytes_max), (&b"\r\n"[..], 1024));

    let fixed = declaration(
        "fixed: 7\npacket: [{id: kind, type: u8, selects: message}, {id: body}, {id: sum, type: \
         u32, checksum: crc32, over: [kind, body]}]\nmessages: {a: {kind: 1, body: [{id: x, type: \
         u16}], acknowledged_by: {b: {y: x}}}, b: {kind: 2, body: [{id: y, type: u16}]}}\n",
    );
    assert!(matches!(&fixed.framing, Framing::Fixed(size) if size.value == 7));
    let Role::Checksum { algorithm: Checksum::Crc32, over } = &fixed.packet[2].role else {
        panic!("{:?}", fixed.packet[2].role)
    };
    assert_eq!(over.iter().map(|name| &*name.value).collect::<Vec<_>>(), ["kind", "body"]);
    let told = fixed.messages[0].acknowledged_by.as_ref().unwrap();
    assert_eq!(told.message.value, "b");
    assert_eq!(told.fields[0].0.value, "y");
    assert_eq!(told.fields[0].1.value, Copied::Field("x".into()));
}

#[test]
fn acknowledgements_copy_fields_and_literals() {
    let mut places = Vec::new();
    let source =
        Source::new("t", "{b: {a: id, b: 7, c: \"7\", d: '${message.x.y}', e: true, f: 1.5}}");
    let (mut found, mut names) = (Found::default(), SessionNames::default());
    let file = (&source, Path::new(""));
    let mut cx = Context::new((&mut found, &mut names), file, (&proto_file, &|_| None));
    let node = syntax::parse(&source, 0).unwrap().unwrap();
    places.clear();
    let mut reader = ProtocolReader {
        cx: &mut cx,
        places,
        types: Vec::new(),
        enums: Vec::new(),
        protos: None,
        format: None,
        has_text_kinds: false,
    };
    let told = reader.acknowledgement(&node).unwrap();
    let values: Vec<Copied> = told.fields.into_iter().map(|(_, value)| value.value).collect();
    let want = [
        Copied::Field("id".into()),
        Copied::Literal(Literal::Int(7)),
        Copied::Literal(Literal::Text("7".into())),
        Copied::Field("x.y".into()),
        Copied::Literal(Literal::Bool(true)),
        Copied::Literal(Literal::Float(1.5)),
    ];
    assert_eq!(values, want);
}

#[test]
fn proto_files_become_a_schema() {
    let text = "packet: [{id: size, type: u32, counts: after}, {id: body}]\nmessages: {order: \
                {body: [{id: data, type: protobuf(shop.Order)}]}}\nproto: [shop.proto]\n";
    let message_of = |read: &Declaration| {
        let ty = read.messages[0].body[0].ty.clone();
        let Type::Proto { message, extent: Extent::Rest } = ty else { panic!("{ty:?}") };
        read.schema.message_name(message).to_owned()
    };
    let read = declaration(text);
    assert_eq!(message_of(&read), "shop.Order");
    let order = read.schema.message("shop.Order").unwrap();
    let names: Vec<&str> = read.schema.field_names(order).collect();
    assert_eq!(names, ["id", "items", "prices", "post", "mail", "plain", "at", "parent"]);
    // Its ranges include values from all the files.
    let range = |path: &str| read.schema.range(&read.schema.field(order, path).unwrap());
    assert!(matches!(range("items[0].state"), Range::Named(names) if names.len() == 3));
    assert_eq!(range("prices[\"a\"].currency"), Range::Text);
    // A message can be named without its package if the name is unique.
    let price = declaration(&text.replace("shop.Order", "Price"));
    assert_eq!(message_of(&price), "money.Price");
}

#[test]
fn a_scenario_can_contain_a_protocol_or_name_its_file() {
    let text = "protocol: a/chat.protocol.yaml\nwrong: a/wrong.protocol.yaml\nnone: b.yaml\nlarge: large.yaml\n\
                inline: {packet: [{id: size, type: u32, counts: after}, {id: body}], messages: {a: }}\n";
    let source = Source::new("dir/test.yaml", text);
    let read_file = |path: &Path, bytes_max: usize| match path.to_str() {
        Some("dir/large.yaml") => Ok(vec![0; bytes_max + 1]),
        Some("dir/a/chat.protocol.yaml") => Ok(CHAT.as_bytes().to_vec()),
        Some("dir/a/wrong.protocol.yaml") => Ok(b"packet: []\nmesages: {}\n".to_vec()),
        _ => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file")),
    };
    let (mut found, mut names) = (Found::default(), SessionNames::default());
    let file = (&source, Path::new("dir"));
    let mut cx = Context::new((&mut found, &mut names), file, (&read_file, &|_| None));
    let Kind::Map(entries) = syntax::parse(&source, 0).unwrap().unwrap().kind else {
        panic!("map")
    };
    let loaded: Vec<bool> =
        entries.iter().map(|(_, node)| load_protocol(&mut cx, node).is_some()).collect();
    assert_eq!(loaded, [true, false, false, false, true]);
    let (told, failed) = found.finish();
    assert!(failed);
    let places: Vec<String> = told
        .iter()
        .map(|one| {
            let span = one.span.as_ref().unwrap();
            let (line, column) = span.source.line_column(span.start);
            format!("{} {}:{line}:{column}", one.code, span.source.name)
        })
        .collect();
    assert_eq!(
        places,
        [
            "file-unreadable dir/test.yaml:3:7",
            "file-too-large dir/test.yaml:4:8",
            "unknown-key dir/a/wrong.protocol.yaml:2:1",
        ]
    );
}

#[test]
fn reading_stops_at_the_limits_of_a_protocol() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert_eq!(crate::read_disk(&own, 100).unwrap().len(), 101);
    assert!(crate::read_disk(Path::new("/dev/zero"), 100).is_err());
    assert_eq!(text_of(vec![b'a'; SOURCE_BYTES_MAX + 1]), Err(NoText::TooLarge));
    assert_eq!(text_of(vec![0xff]), Err(NoText::NotUtf8));
    assert_eq!(text_of(b"packet".to_vec()).as_deref(), Ok("packet"));
}

#[test]
fn contradictions_have_their_places() {
    let text = "packet:\n  - {id: length, type: u8, counts: body, max: 4KiB}\n  - {id: kind, type: u8, \
                selects: message}\n  - {id: body}\nmessages:\n  ping: {kind: 1}\n  \
                pong: {kind: 1}\n  pang: {kind: 2, answers: pin}\n";
    let places: Vec<String> = told(text)
        .iter()
        .map(|one| {
            let span = one.span.as_ref().unwrap();
            let (line, column) = span.source.line_column(span.start);
            let note = one.notes.first().map_or_else(String::new, Said::english);
            format!("{} {line}:{column} {note}", one.code)
        })
        .collect();
    let want = ["protocol-kind-twice 7:16 line 6: first occurrence", "protocol-bad-reply 8:28 "];
    assert_eq!(places, want);
    // Sizes are checked only if everything else is valid.
    let sized = text.replace("pong: {kind: 1}", "pong: {kind: 3}").replace("pin}", "ping}");
    let one = &told(&sized)[0];
    let at = one.span.as_ref().unwrap().start;
    assert_eq!((one.code, &sized[at..at + 4]), ("protocol-bad-length", "4KiB"));
}

/// Each diagnostic has a place, one line and a fix.
fn check_told(told: &[Diagnostic]) {
    for one in told {
        let span = one.span.as_ref().expect("every diagnostic has a place");
        assert!(span.start <= span.end && span.end <= span.source.text.len());
        assert!(!one.message.english().contains('\n') && one.help.is_some(), "{one:?}");
        one.render(false);
    }
}

#[test]
fn fuzz_protocol_files() {
    let markdown = include_str!("../../tests-md/protocol.md");
    let blocks = markdown.split("```yaml protocol\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or("").as_bytes());
    let mut corpus = vec![CHAT.as_bytes(), PUSH.as_bytes()];
    corpus.extend(blocks);
    throng_fuzz::mutations(&corpus, |input, _| {
        match read_text("fuzz.protocol.yaml", &String::from_utf8_lossy(input)) {
            Ok((_, warnings)) => check_told(&warnings),
            Err(errors) => {
                assert!(!errors.is_empty());
                check_told(&errors);
            }
        }
    });
}

#[test]
fn fuzz_proto_files() {
    let text = "packet: [{id: size, type: u32, counts: after}, {id: body}]\nmessages: {order: \
                {body: [{id: data, type: protobuf(shop.Order)}]}}\nproto: [fuzz.proto]\n";
    throng_fuzz::mutations(&[SHOP.as_bytes(), MONEY.as_bytes()], |input, _| {
        let read_file = |path: &Path, bytes_max: usize| match path.ends_with("fuzz.proto") {
            true => Ok(input.to_vec()),
            false => proto_file(path, bytes_max),
        };
        let options = CompileOptions {
            set: Vec::new(),
            base: "".into(),
            read_file: &read_file,
            env: &|_| None,
            run: RunOptions::default(),
        };
        match read_protocol(&Source::new("fuzz.protocol.yaml", text), &options) {
            Ok((_, warnings)) => check_told(&warnings),
            Err(errors) => check_told(&errors),
        }
    });
}
