//! Packets that are documents of CBOR and MessagePack.

use throng_fuzz::mutations;

use super::*;

const FORMATS: [Format; 2] = [Format::Cbor, Format::MessagePack];

fn at(path: &str, field: Field) -> Field {
    Field { path: Some(name(path)), ..field }
}

fn of_kind(kind: &str, message: Message) -> Message {
    Message { kind: Some(placed(MessageKind::Text(kind.as_bytes().to_vec()))), ..message }
}

fn string(id: &str) -> Field {
    field(id, Type::Text(Extent::Rest))
}

/// Maps with a type and a number, in one of which the keys are whole numbers.
fn declared(format: Format, transport: Transport) -> Declaration {
    let any = |id: &str| field(id, Type::Json(Extent::Rest));
    let optional = |field: Field| Field { is_optional: true, ..field };
    let told = vec![
        at("data[1]", field("sum", Type::Bytes(Extent::Rest))),
        at("data[2]", field("part", Type::Float32)),
        optional(any("more")),
    ];
    let measured = vec![at("-2.1", field("at", Type::Float64)), at("-2.0", any("what"))];
    Declaration {
        transport,
        format: Some(format),
        framing: Framing::Document { root: None, bytes_max: 1024, place: PlaceId::default() },
        packet: vec![
            role("type", Type::Text(Extent::Rest), Role::Selects),
            optional(role("id", Type::Unsigned(32), Role::Correlates)),
            body(),
        ],
        messages: vec![
            of_kind("ask", message("ask", 0, vec![string("text"), optional(any("list"))])),
            of_kind("told", answer("told", 0, &["ask"], told)),
            of_kind("measured", push("measured", 0, measured)),
        ],
        ..Declaration::default()
    }
}

fn told(sum: &[u8]) -> Vec<(&'static str, Value)> {
    let more = vec![("k".into(), vec![Value::Null, true.into()].into())];
    vec![("sum", sum.into()), ("part", Value::Float(0.5)), ("more", more.into())]
}

#[test]
fn documents_are_written_as_short_as_possible() {
    let [cbor, packed] = FORMATS.map(|format| compiled(declared(format, Transport::Tcp)));
    let ask = [("text", Value::from("h\u{e9}"))];
    let expected = b"\xa3\x64type\x63ask\x62id\x19\x01\x2c\x64text\x63h\xc3\xa9";
    assert_eq!(write(&cbor, "ask", &ask, 300), expected);
    let expected = b"\x83\xa4type\xa3ask\xa2id\xcd\x01\x2c\xa4text\xa3h\xc3\xa9";
    assert_eq!(write(&packed, "ask", &ask, 300), expected);
    // A list has null where no field is; a key of digits is a whole number.
    let expected = b"\xa4\x64type\x64told\x62id\x07\x64data\x83\xf6\x42ab\xfa\x3f\0\0\0\x64more\
        \xa1\x61k\x82\xf6\xf5";
    assert_eq!(write(&cbor, "told", &told(b"ab"), 7), expected);
    let measured = [("at", Value::Float(1.5)), ("what", Value::from(-7)), ("id", Value::Int(0))];
    let expected =
        b"\x83\xa4type\xa8measured\xa2id\x00\xfe\x82\x01\xcb\x3f\xf8\0\0\0\0\0\0\x00\xf9";
    assert_eq!(write(&packed, "measured", &measured, 1), expected);
    let list = [("text", Value::from("")), ("list", Value::from("[1, {\"a\": 2.5}]"))];
    let written = write(&cbor, "ask", &list, 1);
    assert!(
        written.ends_with(b"\x64list\x82\x01\xa1\x61a\xfb\x40\x04\0\0\0\0\0\0"),
        "{written:x?}"
    );
}

#[test]
fn documents_are_read_in_any_order_and_of_any_width() {
    let [cbor, packed] = FORMATS.map(|format| compiled(declared(format, Transport::Tcp)));
    for (protocol, packet, sum) in [
        (
            &cbor,
            &b"\xbf\x64data\x9f\x01\x5f\x41a\x41b\xff\xf9\x38\0\xff\x62id\x1b\0\0\0\0\0\0\0\x07\
            \x7f\x62ty\x62pe\xff\x7f\x61t\x63old\xff\xff"[..],
            "ab",
        ),
        (
            &cbor,
            b"\xd9\xd9\xf7\xa3\x62id\xc1\x07\x64type\x64told\x64data\x83\x01\xd8\x18\x42ab\x01",
            "ab",
        ),
        (
            &packed,
            b"\xde\0\x03\xa4data\xdc\0\x03\xc7\x01\x05x\xc4\x02ab\x01\xa2id\xd3\0\0\0\0\0\0\0\
            \x07\xd9\x04type\xda\0\x04told",
            "ab",
        ),
    ] {
        let read = protocol.decode(packet, &mut Decoded::default()).unwrap();
        assert_eq!((&*protocol.info(read.message).name, read.correlation), ("told", Some(7)));
        assert_eq!(get(protocol, packet, "sum"), Some(Value::from(sum.as_bytes())));
        assert_eq!(get(protocol, packet, "id"), Some(Value::Int(7)));
        assert_eq!(get(protocol, packet, "more"), None);
        let parts = {
            let mut decoded = Decoded::default();
            protocol.decode(packet, &mut decoded).unwrap();
            protocol.describe(packet, &decoded)
        };
        assert_eq!(parts.len(), 4, "{parts:?}");
    }
    let written = write(&packed, "told", &told(b"\0\xff"), 7);
    assert_eq!(get(&packed, &written, "sum"), Some(Value::from(&b"\0\xff"[..])));
    assert_eq!(get(&packed, &written, "part"), Some(Value::Float(0.5)));
    assert_eq!(get(&packed, &written, "more.k[1]"), Some(Value::Bool(true)));
    assert_eq!(get(&packed, &written, "more.k[2]"), None);
    // Keys of digits are whole numbers; texts of the same digits are accepted too.
    for packet in [
        &b"\xa2\x64type\x68measured\x21\xa2\x00\x63abc\x01\x05"[..],
        b"\xa2\x64type\x68measured\x62-2\xa2\x610\x63abc\x611\x05",
    ] {
        assert_eq!(get(&cbor, packet, "at"), Some(Value::Float(5.0)));
        assert_eq!(get(&cbor, packet, "what"), Some(Value::from("abc")));
    }
}

#[test]
fn what_is_wrong_with_a_binary_document_is_told() {
    let [cbor, packed] = FORMATS.map(|format| compiled(declared(format, Transport::Udp)));
    for (protocol, packet, expected) in [
        (&cbor, &b"\xa1\x64type\x63new"[..], "byte 6, `type`: no message has the kind \"new\""),
        (&cbor, b"\xa1\x64type\x63ask", "byte 0, `text`: the field is missing"),
        (
            &cbor,
            b"\xa2\x64type\x63ask\x64text\x07",
            "byte 15, `text`: its type is `str`, but it is 7",
        ),
        (
            &cbor,
            b"\xa3\x64type\x63ask\x64text\x60\x62id\x39\x01\x00",
            "byte 19, `id`: its type is `u32`, but it is -257",
        ),
        (&cbor, b"\xa1\x64type", "byte 6 of the packet: the CBOR data is incomplete"),
        (
            &packed,
            b"\x82\xa4type\xa3ask\xa4text\xd6\xff\0\0\0\0",
            "byte 15, `text`: its type is `str`, but it is extension type -1",
        ),
        (
            &packed,
            b"\x83\xa4type\xa3ask\xa4text\xa0\xa4list\xd4\x05\0",
            "byte 21, `list`: its type is `json`, but it is extension type 5",
        ),
        (&packed, b"\x81\xc1", "byte 1 of the packet: this is not valid MessagePack: 0xc1"),
    ] {
        assert_eq!(wrong(protocol, packet), expected);
    }
    let long = [("text", Value::from("x".repeat(1100)))];
    assert!(try_write(&cbor, "ask", &long, 1).unwrap_err().contains("the maximum is 1024"));
}

/// A stream of documents is cut where they end, wherever its pieces begin, and so is a message of
/// the transport with several of them.
#[test]
fn documents_end_by_themselves() {
    for format in FORMATS {
        let protocol = compiled(declared(format, Transport::Tcp));
        let texts = ["", "x", &"y".repeat(700)];
        let asks = texts.map(|text| write(&protocol, "ask", &[("text", text.into())], 70_000));
        let stream = asks.concat();
        let read = |parts: &[&[u8]]| {
            let (mut reader, mut all) = (PacketReader::new(), Vec::new());
            for part in parts {
                let (mut rest, mut room) = (*part, Vec::new());
                while let Some(packet) =
                    reader.next(Records::Declared(&protocol), &mut rest, &mut room).unwrap()
                {
                    all.push(packet.to_vec());
                }
                assert!(rest.is_empty());
            }
            all
        };
        for cut in 0..=stream.len() {
            assert_eq!(read(&[&stream[..cut], &stream[cut..]]), asks, "{cut}");
        }
        assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), asks);
        let mut all = Vec::new();
        Records::Declared(&protocol).split(&stream, &mut |packet| {
            all.push(packet.to_vec());
            true
        });
        assert_eq!(all, asks);
        let broken = |bytes: &[u8]| {
            let (mut rest, mut room) = (bytes, Vec::new());
            let read = PacketReader::new().next(Records::Declared(&protocol), &mut rest, &mut room);
            let broken = read.unwrap_err();
            assert!(broken.is_lost);
            broken.said().english()
        };
        let (text, reserved): (&[u8], &[u8]) = match format {
            Format::Cbor => (b"\x7a\0\x10\0\0", b"\x1c"),
            _ => (b"\xdb\0\x10\0\0", b"\xc1"),
        };
        let most =
            "byte 0 of the packet: the packet has at least 1048581 bytes; the maximum is 1024";
        assert_eq!(broken(text), most);
        assert!(broken(reserved).contains("this is not valid"));
    }
}

#[test]
fn fuzz_binary_documents() {
    for format in FORMATS {
        let protocol = compiled(declared(format, Transport::Tcp));
        let asked = write(&protocol, "ask", &[("text", "abc".into()), ("list", "[1]".into())], 9);
        let told = write(&protocol, "told", &told(b"abc"), 9);
        let mut decoded = Decoded::default();
        mutations(&[&asked, &told], |input, _| {
            let read = protocol.decode(input, &mut decoded);
            let parts = protocol.describe(input, &decoded);
            assert!(read.is_err() || parts.iter().all(|part| part.end <= input.len()));
            let Ok(read) = protocol.decode_sent(input, &mut decoded) else { return };
            // What is read is written again, and then read as the same.
            let mut given = Vec::new();
            for part in protocol.describe(input, &decoded) {
                let is_own = matches!(&*part.path, "type" | "id");
                if !is_own && part.value != Value::Null {
                    given.push((part.path, Given::Literal(part.value)));
                }
            }
            let template = protocol.prepare(read.message, &Given::Fields(given)).unwrap();
            let mut out = Vec::new();
            let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(None);
            let number = read.correlation.unwrap_or(0);
            protocol.encode(&template, number, &mut leaf, &mut out).unwrap();
            let again = protocol.decode_sent(&out, &mut decoded).unwrap();
            assert_eq!(again.message, read.message);
        });
    }
}

/// A field of another packet may be such a document, with a size before it.
#[test]
fn fields_may_be_documents() {
    let size = Extent::Prefixed { prefix: Prefix::Unsigned(8), bytes_max: None };
    let packet = |format| {
        let data = field("data", Type::Binary(format, size.clone()));
        compiled(Declaration {
            packet: vec![length(16, Counts::After, 1000), body()],
            ..one(vec![data, uint("end", 8)])
        })
    };
    let [cbor, packed] = FORMATS.map(packet);
    let name = cbor.info(MessageId(0)).name.clone();
    let data = Value::parse_json(br#"{"k": [1, {"a": "x"}], "n": null}"#).unwrap();
    let given = [("data", data.clone()), ("end", Value::Int(9))];
    let written = write(&cbor, &name, &given, 0);
    assert_eq!(written, b"\0\x0f\x0d\xa2\x61k\x82\x01\xa1\x61a\x61x\x61n\xf6\x09");
    assert_eq!(write(&packed, &name, &given, 0)[..6], *b"\0\x0f\x0d\x82\xa1k");
    for protocol in [&cbor, &packed] {
        let written = write(protocol, &name, &given, 0);
        assert_eq!(get(protocol, &written, "data"), Some(data.clone()));
        assert_eq!(get(protocol, &written, "data.k[1].a"), Some(Value::from("x")));
        assert_eq!(get(protocol, &written, "data.k[2]"), None);
        let inner = Given::Fields(vec![("k".into(), Given::Items(vec![Given::Leaf(0)]))]);
        let fields = vec![("data".into(), inner), ("end".into(), Given::Literal(Value::Int(1)))];
        let template = protocol.prepare(MessageId(0), &Given::Fields(fields)).unwrap();
        let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(Some(Value::Float(0.5)));
        let mut out = Vec::new();
        protocol.encode(&template, 0, &mut leaf, &mut out).unwrap();
        assert_eq!(get(protocol, &out, "data.k[0]"), Some(Value::Float(0.5)));
    }
    let told = "byte 4, `data`: the CBOR data is incomplete";
    assert_eq!(wrong(&cbor, b"\0\x04\x02\x81\x62\x01"), told);
    let told = "byte 4, `data`: this is not valid MessagePack: 0xc1";
    assert_eq!(wrong(&packed, b"\0\x04\x02\x91\xc1\x01"), told);
}
