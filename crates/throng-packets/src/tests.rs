//! Declarations from this file, drawn and used for decoding.

use throng_protocol::framed::Protocol;
use throng_protocol::framed::declaration::*;

use super::hex::Pasted;
use super::input::{Input, find};
use super::*;
use crate::page::{machine, page};

fn placed<T>(value: T) -> Placed<T> {
    Placed { value, place: PlaceId::default() }
}

pub(super) fn field(id: &str, ty: Type, role: Role) -> Field {
    Field { role, ..Field::new(placed(id.to_string()), ty, PlaceId::default()) }
}

pub(super) fn message(name: &str, kind: i64, answers: &[&str], body: Vec<Field>) -> Message {
    Message {
        name: placed(name.to_string()),
        kind: Some(placed(kind.into())),
        answers: answers.iter().map(|name| placed((*name).to_string())).collect(),
        push: false,
        more: None,
        holds_packets: false,
        body,
        acknowledged_by: None,
        place: PlaceId::default(),
    }
}

fn text(id: &str) -> Field {
    let extent = Extent::Prefixed { prefix: Prefix::Unsigned(16), bytes_max: None };
    field(id, Type::Text(extent), Role::Value)
}

fn number(id: &str, bits: u8) -> Field {
    field(id, Type::Unsigned(bits), Role::Value)
}

/// The chat of the examples, simplified.
pub(super) fn chat() -> Declaration {
    let length = Role::Length { counts: Counts::Body, plus: 0, bytes_max: Some(placed(65_536)) };
    let mut magic = number("magic", 16);
    magic.constant = Some(placed(Literal::Int(0xc4a7)));
    let packet = vec![
        magic,
        field("length", Type::Unsigned(32), length),
        field("kind", Type::Unsigned(8), Role::Selects),
        field("seq", Type::Unsigned(32), Role::Correlates),
        field("body", Type::Bytes(Extent::Rest), Role::Body),
    ];
    let mut said = message("said", 8, &[], vec![number("from", 64), text("text")]);
    said.push = true;
    let messages = vec![
        message("join", 1, &[], vec![number("room", 64), number("user", 64), text("token")]),
        message("joined", 2, &["join"], vec![number("code", 16), number("online", 32)]),
        said,
        message("ping", 9, &[], Vec::new()),
        message("pong", 10, &["ping"], Vec::new()),
    ];
    Declaration { packet, messages, ..Declaration::default() }
}

pub(super) fn compiled(declaration: Declaration) -> Protocol {
    Protocol::compile(declaration).expect("a good declaration")
}

const INK: Ink = Ink { colour: false, width: 80 };

#[test]
fn a_protocol_is_drawn_in_80_columns() {
    let drawn = page(&chat(), "chat.yaml", None, &INK);
    for line in [
        "tcp · big endian · `length` contains the packet length",
        "0 │     magic     │            length             │ kind  │",
        "0      2  magic   u16   always 0xc4a7",
        "2      4  length  u32   length of the body in bytes; at most 64 KiB",
        "7      4  seq     u32   in replies, the request's value; otherwise 0",
        "join · kind 1 · to the target · answered by joined",
        "27     2+  token   str   prefixed with the length as u16",
        "joined · kind 2 · from the target · reply to join",
        "said · kind 8 · from the target · a push (unsolicited)",
    ] {
        assert!(drawn.contains(line), "`{line}` is not in\n{drawn}");
    }
    use unicode_width::UnicodeWidthStr as _;
    assert!(drawn.lines().all(|line| line.width() <= 80), "{drawn}");
    let one = page(&chat(), "chat.yaml", chat().messages.first(), &INK);
    assert!(one.contains("token (2+) …") && !one.contains("joined ·"), "{one}");
}

#[test]
fn a_drawing_has_bits_and_large_fields() {
    let mut declaration = chat();
    let bits = |id: &str, bits: u8| field(id, Type::Bits(bits), Role::Value);
    let body = vec![
        bits("flags", 3),
        bits("rest", 13),
        field("key", Type::Bytes(Extent::Fixed(40)), Role::Value),
        number("last", 64),
    ];
    declaration.messages.push(message("odd", 30, &[], body));
    let drawn = page(&declaration, "x", declaration.messages.last(), &INK);
    for line in ["flags:3 rest:13", "key (40) …", "3b  flags", "53      8  last"] {
        assert!(drawn.contains(line), "`{line}` is not in\n{drawn}");
    }
}

#[test]
fn a_protocol_is_printed_as_json() {
    let json = machine(&chat(), None);
    assert_eq!(json["packet"][1]["at"], 2);
    assert_eq!(json["roles"][3]["role"], "correlates");
    assert_eq!(json["messages"][0]["answered_by"][0], "joined");
    assert_eq!(json["messages"][0]["body"][2]["bytes_vary"], true);
}

#[test]
fn any_file_up_to_the_size_limit_is_decoded() {
    let declaration = chat();
    let wrong = |input: &str| find(input, &declaration).err().map(|it| it.message.english());
    let folder = env!("CARGO_MANIFEST_DIR");
    assert_eq!(wrong(folder), Some(format!("cannot read {folder}: it is a directory")));
    let missing = format!("{folder}/nothing.bin");
    assert_eq!(wrong(&missing), Some(format!("cannot read {missing}: there is no such file")));
    // It is endless.
    let endless = "cannot read /dev/zero: it is larger than 256 MiB";
    assert_eq!(wrong("/dev/zero").as_deref(), Some(endless));
    assert_eq!(wrong("/dev/null").as_deref(), Some("the input contains no bytes"));
    let found = find("c4a7", &declaration);
    assert!(matches!(found, Ok(Input::Pasted(Pasted::Bytes(bytes))) if bytes.len() == 2));
}
