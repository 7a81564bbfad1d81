//! Whole packets of several protocols: written, read, cut, broken, described.

use throng_fuzz::splits;

use super::*;
use crate::protobuf::wire::write_bytes;
use crate::protobuf::{DEPTH_MAX, Schema};

fn map(json: &str) -> Value {
    Value::parse_json(json.as_bytes()).unwrap()
}

fn prefixed(bits: u8) -> Extent {
    Extent::Prefixed { prefix: Prefix::Unsigned(bits), bytes_max: None }
}

fn condition(id: &str, comparison: Comparison, value: i64) -> Option<Condition> {
    Some(Condition { field: name(id), comparison, value })
}

/// A message with a field of every type.
pub(super) fn every_type() -> Protocol {
    let little = |field: Field| Field { endian: Some(Endian::Little), ..field };
    let varint = Extent::Prefixed { prefix: Prefix::Varint, bytes_max: Some(40) };
    let colours = vec![(name("red"), 1), (name("blue"), 2)];
    let point = Type::Struct(0);
    let mut declaration = one(vec![
        uint("u24", 24),
        little(uint("u40", 40)),
        field("i8", Type::Signed(8)),
        little(field("i48", Type::Signed(48))),
        field("f32", Type::Float32),
        little(field("f64", Type::Float64)),
        field("yes", Type::Bool),
        field("var", Type::Varint),
        field("zig", Type::ZigZag),
        field("b3", Type::Bits(3)),
        Field { constant: Some(placed(Literal::Int(5))), ..field("b7", Type::Bits(7)) },
        Field { labels: colours, ..field("colour", Type::Bits(6)) },
        field("padded", Type::Text(Extent::Fixed(6))),
        field("line", Type::Text(Extent::Delimited(b"\r\n".to_vec()))),
        field("blob", Type::Bytes(varint)),
        field("data", Type::Json(prefixed(16))),
        uint("n", 8),
        field("counted", Type::Text(Extent::Field(name("n")))),
        uint("m", 16),
        Field { repeat: Some(Repeat::Field(name("m"))), ..field("points", point.clone()) },
        Field { repeat: Some(Repeat::Times(2)), ..little(uint("pair", 16)) },
        Field { repeat: Some(Repeat::Prefixed(Prefix::Varint)), ..text("words") },
        Field {
            condition: condition("colour", Comparison::Equal, 2),
            default: Some(placed(Literal::Int(9))),
            ..uint("deep", 32)
        },
        Field { condition: condition("b3", Comparison::HasBits, 4), ..field("at", point) },
        role(
            "sum",
            Type::Unsigned(8),
            Role::Checksum { algorithm: Checksum::Sum, over: vec![name("u24"), name("line")] },
        ),
        field("rest", Type::Bytes(Extent::Rest)),
    ]);
    let flag = Field { condition: condition("x", Comparison::Less, 0), ..uint("flag", 8) };
    declaration.types = vec![Struct {
        name: name("point"),
        fields: vec![field("x", Type::Signed(16)), field("y", Type::Signed(16)), flag],
    }];
    compiled(declaration)
}

fn every_value() -> Vec<(&'static str, Value)> {
    vec![
        ("u24", Value::Int(0x01_02_03)),
        ("u40", Value::from("0x0102030405")),
        ("i8", Value::Int(-2)),
        ("i48", Value::Int(-3)),
        ("f32", Value::Float(1.5)),
        ("f64", Value::Int(-2)),
        ("yes", Value::Bool(true)),
        ("var", Value::Int(300)),
        ("zig", Value::Int(-1)),
        ("b3", Value::Int(6)),
        ("colour", Value::from("blue")),
        ("padded", Value::Int(1234)),
        ("line", Value::from("héy")),
        ("blob", Value::from(vec![0u8, 255])),
        ("data", map(r#"{"a": [1, {"b": "x"}], "c": "d"}"#)),
        ("counted", Value::from("abc")),
        ("points", map(r#"[{"x": 1, "y": -1}, {"x": -5, "y": 2, "flag": 7}]"#)),
        ("pair", map("[258, 3]")),
        ("words", map(r#"["a", "", "bc"]"#)),
        ("at", map(r#"{"x": 4, "y": 5}"#)),
        ("rest", Value::from("end")),
    ]
}

pub(super) fn every_type_packet() -> Vec<u8> {
    write(&every_type(), "it", &every_value(), 0)
}

#[test]
fn every_type_is_written_and_read() {
    let protocol = every_type();
    let packet = every_type_packet();
    let mut expected = vec![1, 2, 3, 5, 4, 3, 2, 1, 0xfe, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff];
    expected.extend_from_slice(&1.5f32.to_be_bytes());
    expected.extend_from_slice(&(-2f64).to_le_bytes());
    expected.extend_from_slice(&[1, 0xac, 2, 1, 0b1100_0001, 0b0100_0010]);
    expected.extend_from_slice(b"1234\0\0h\xc3\xa9y\r\n\x02\0\xff");
    expected.extend_from_slice(b"\0\x1b{\"a\":[1,{\"b\":\"x\"}],\"c\":\"d\"}");
    expected.extend_from_slice(b"\x03abc\0\x02\0\x01\xff\xff\xff\xfb\0\x02\x07");
    expected.extend_from_slice(b"\x02\x01\x03\0\x03\0\x01a\0\0\0\x02bc\0\0\0\x09\0\x04\0\x05");
    let sum = [1, 2, 3, b'h', 0xc3, 0xa9, b'y', b'\r', b'\n'];
    expected.push(sum.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
    expected.extend_from_slice(b"end");
    assert_eq!(packet.escape_ascii().to_string(), expected.escape_ascii().to_string());
    for (path, value) in every_value() {
        let found = get(&protocol, &packet, path).unwrap();
        let same = match path {
            "colour" => found == Value::Int(2),
            "u40" => found == Value::Int(0x01_0203_0405),
            "padded" => found == Value::from("1234"),
            "rest" => found == Value::from(&b"end"[..]),
            _ => found.equals(&value),
        };
        assert!(same, "{path}: {found:?}");
    }
    let parts = [
        ("points[1].flag", Some(Value::Int(7))),
        ("points[0].flag", None),
        ("points[0].y", Some(Value::Int(-1))),
        ("points[2].x", None),
        ("pair[1]", Some(Value::Int(3))),
        ("pair[2]", None),
        ("words[2]", Some(Value::from("bc"))),
        ("words[9]", None),
        ("data.a[1].b", Some(Value::from("x"))),
        ("data.a[7]", None),
        ("data.nothing", None),
        ("n", Some(Value::Int(3))),
        ("m", Some(Value::Int(2))),
        ("b7", Some(Value::Int(5))),
        ("deep", Some(Value::Int(9))),
        ("at.y", Some(Value::Int(5))),
    ];
    for (path, value) in parts {
        assert_eq!(get(&protocol, &packet, path), value, "{path}");
    }
}

#[test]
fn a_conditional_field_is_present_only_if_its_condition_holds() {
    let protocol = every_type();
    let mut values = every_value();
    for (name, value) in &mut values {
        match *name {
            "b3" => *value = Value::Int(3),
            "colour" => *value = Value::from("red"),
            _ => {}
        }
    }
    let packet = write(&protocol, "it", &values, 0);
    assert_eq!(get(&protocol, &packet, "deep"), None);
    assert_eq!(get(&protocol, &packet, "at.x"), None);
    assert_eq!(get(&protocol, &packet, "rest"), Some(Value::from(&b"end"[..])));
    values.retain(|(name, _)| *name != "at");
    assert!(try_write(&protocol, "it", &values, 0).is_ok());
    for (name, value) in &mut values {
        if *name == "b3" {
            *value = Value::Int(4);
        }
    }
    let error = try_write(&protocol, "it", &values, 0);
    assert_eq!(error, Err("at.x: it is missing, but the value of `b3` requires it".to_owned()));
}

#[test]
fn a_message_of_the_chat_is_written_and_read() {
    let chat = chat();
    let said = [
        ("from", Value::Int(7)),
        ("id", Value::from(u64::MAX)),
        ("sent_ns", Value::from("12")),
        ("text", Value::from("héllo")),
    ];
    let packet = write(&chat, "said", &said, 0);
    let mut expected = vec![0xc4, 0xa7, 0, 0, 0, 32, 8, 0, 0, 0, 0];
    expected.extend_from_slice(&7u64.to_be_bytes());
    expected.extend_from_slice(&u64::MAX.to_be_bytes());
    expected.extend_from_slice(&12u64.to_be_bytes());
    expected.extend_from_slice(b"\0\x06h\xc3\xa9llo");
    assert_eq!(packet, expected);
    assert_eq!(get(&chat, &packet, "text"), Some(Value::from("héllo")));
    assert_eq!(get(&chat, &packet, "id"), Some(Value::from(u64::MAX)));
    assert_eq!(get(&chat, &packet, "seq"), Some(Value::Int(0)));
    let ping = write(&chat, "ping", &[], 0x0102_0304);
    assert_eq!(ping, [0xc4, 0xa7, 0, 0, 0, 0, 9, 1, 2, 3, 4]);
    let mut decoded = Decoded::default();
    let read = chat.decode(&ping, &mut decoded).unwrap();
    assert_eq!(chat.info(read.message).name, "ping");
    assert_eq!(read.correlation, Some(0x0102_0304));
    assert_eq!(chat.table.packet_bytes_max, 11 + 65_536);
    assert_eq!(chat.correlation_max(chat.message("join").unwrap()), u64::from(u32::MAX));
    let said = chat.message("said").unwrap();
    let code = chat.field(chat.message("done").unwrap(), "code").unwrap();
    chat.decode(&packet, &mut decoded).unwrap();
    assert_eq!(decoded.message(), Some(said));
    assert_eq!(chat.value(&packet, &decoded, &code), None, "another message has no such field");
}

#[test]
fn violations_are_reported_with_their_position() {
    let chat = chat();
    let packet = write(&chat, "done", &[("code", Value::Int(3))], 1);
    let changed = |at: usize, byte: u8| {
        let mut packet = packet.clone();
        packet[at] = byte;
        wrong(&chat, &packet)
    };
    assert_eq!(changed(1, 0), "byte 0, `magic`: found c4 00, but the protocol requires c4 a7 here");
    assert_eq!(
        changed(5, 3),
        "byte 2, `length`: the length is 3, so the packet should have 14 bytes in total, but it \
         has 13"
    );
    assert_eq!(changed(3, 9), "byte 2, `length`: the length is 589826; the maximum is 65536");
    assert_eq!(changed(6, 99), "byte 6, `kind`: no message has the kind 99");
    assert_eq!(changed(6, 2), "byte 13, `online`: 4 bytes are needed here, but only 0 are left");
    assert_eq!(changed(6, 9), "byte 11, `body`: 2 bytes are left after the last field");
    assert_eq!(wrong(&chat, &[]), "byte 0 of the packet: the packet is empty");

    let every = every_type();
    let packet = every_type_packet();
    let changed = |find: &[u8], to: &[u8]| {
        let at = packet.windows(find.len()).position(|window| window == find).unwrap();
        let mut packet = packet.clone();
        packet.splice(at..at + find.len(), to.iter().copied());
        wrong(&every, &packet)
    };
    assert_eq!(
        changed(&[1, 0xac, 2], &[2, 0xac, 2]),
        "byte 27, `yes`: expected the byte 1 (true) or 0 (false), not 0x02"
    );
    assert_eq!(
        changed(&[0xac, 2, 1], &[0xff; 12]),
        "byte 28, `var`: the number uses more bytes than a 64-bit value needs"
    );
    assert_eq!(
        changed(&[0b1100_0001], &[0b1100_0000]),
        "byte 31, `b7`: the bits are 0b1, but the protocol requires 0b101 here"
    );
    assert_eq!(changed(b"h\xc3", b"h\xff"), "byte 40, `line`: the text is not UTF-8: byte 0xff");
    assert_eq!(changed(b"\r\n", b"\r\r"), "byte 39, `line`: its delimiter 0d 0a is missing");
    assert_eq!(
        changed(b"\x02\0\xff", b"\x40\0\xff"),
        "byte 46, `blob`: it has 64 bytes; the maximum is 40"
    );
    assert_eq!(changed(b"[1,", b"[1;"), "byte 57, `data`: the text is not valid JSON from here: ;");
}

#[test]
fn an_impossible_count_allocates_no_memory() {
    let zero = Type::Fields(vec![]);
    let times = Repeat::Prefixed(Prefix::Unsigned(32));
    for (ty, reason) in [
        (Type::Unsigned(8), "4294967295 items need at least 4294967295 bytes"),
        (Type::Text(prefixed(16)), "4294967295 items need at least 8589934590 bytes"),
        (zero, "there are 4294967295 items; the maximum is 16777216"),
    ] {
        let many = Field { repeat: Some(times.clone()), ..field("many", ty) };
        let protocol = compiled(one(vec![many]));
        let told = wrong(&protocol, &[0xff; 4]);
        assert!(told.contains(reason), "{told}");
    }
    let many = Field { repeat: Some(times), ..field("many", Type::Fields(vec![])) };
    let protocol = compiled(one(vec![many]));
    let told = wrong(&protocol, &[0, 0xff, 0xff, 0xff]);
    assert!(told.ends_with("the packet has more than 262144 fields and items"), "{told}");
    let huge = field("huge", Type::Bytes(prefixed(64)));
    let told = wrong(&compiled(one(vec![huge])), &[0xff; 9]);
    assert!(told.contains("the maximum is 16777216"), "{told}");
}

fn next<'a: 'r, 'r>(
    reader: &mut PacketReader,
    protocol: &Protocol,
    bytes: &mut &'a [u8],
    room: &'r mut Vec<u8>,
) -> Result<Option<&'r [u8]>, Broken> {
    reader.next(Records::Declared(protocol), bytes, room)
}

/// What is wrong with the first packet.
fn broken(protocol: &Protocol, mut bytes: &[u8]) -> Broken {
    next(&mut PacketReader::new(), protocol, &mut bytes, &mut Vec::new()).unwrap_err()
}

fn read_all(protocol: &Protocol, parts: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut reader = PacketReader::new();
    let mut packets = Vec::new();
    for part in parts {
        let (mut rest, mut room) = (*part, Vec::new());
        while let Some(packet) = next(&mut reader, protocol, &mut rest, &mut room).unwrap() {
            packets.push(packet.to_vec());
        }
        assert!(rest.is_empty());
    }
    assert!(reader.held().is_empty());
    assert_eq!(reader.heap_bytes(), 0, "nothing is kept");
    packets
}

#[test]
fn packets_are_found_wherever_the_stream_is_split() {
    let stream = |transport, framing, packet: Vec<Field>| {
        let rest = field("rest", Type::Bytes(Extent::Rest));
        compiled(Declaration { transport, framing, packet, ..one(vec![rest]) })
    };
    let by = |ty, counts| {
        vec![
            uint("a", 8),
            role("n", ty, Role::Length { counts, plus: 0, bytes_max: None }),
            body(),
            uint("z", 8),
        ]
    };
    let tcp = Transport::Tcp;
    let cases = [
        stream(tcp, Framing::Length, by(Type::Unsigned(16), Counts::Packet)),
        stream(tcp, Framing::Length, by(Type::Unsigned(24), Counts::After)),
        stream(tcp, Framing::Length, by(Type::Unsigned(32), Counts::Body)),
        stream(tcp, Framing::Length, by(Type::Varint, Counts::Packet)),
        stream(tcp, Framing::Length, by(Type::Varint, Counts::Body)),
        stream(
            Transport::Tls,
            Framing::Delimiter { bytes: placed(b"\r\n\r".to_vec()), bytes_max: 4_000 },
            vec![uint("a", 8), body(), uint("z", 8)],
        ),
    ];
    for protocol in &cases {
        let length = 300;
        let mut stream = Vec::new();
        let mut bodies = Vec::new();
        for size in [0, 5, length, 1] {
            let rest = Value::from(vec![b'\r'; size]);
            let given = [("rest", rest.clone()), ("a", Value::Int(1)), ("z", Value::Int(2))];
            stream.extend(write(protocol, "it", &given, 0));
            bodies.push(rest);
        }
        splits(&stream, |parts| {
            let packets = read_all(protocol, parts);
            let rests: Vec<Value> =
                packets.iter().map(|packet| get(protocol, packet, "rest").unwrap()).collect();
            assert_eq!(rests, bodies);
        });
    }
    // Bytes that vary and can be distinguished from padding.
    let fixed = stream(tcp, Framing::Fixed(placed(12)), vec![uint("a", 8), body(), uint("z", 8)]);
    let given =
        |rest: &str| [("rest", Value::from(rest)), ("a", Value::Int(1)), ("z", Value::Int(2))];
    let packets = [
        write(&fixed, "it", &given("0123456789"), 0),
        write(&fixed, "it", &given("abcdefghij"), 0),
    ];
    splits(&packets.concat(), |parts| assert_eq!(read_all(&fixed, parts), packets));
    let error = try_write(&fixed, "it", &given("short"), 0).unwrap_err();
    assert_eq!(error, ": the packet has 7 bytes, but `fixed` is 12");
}

#[test]
fn a_reader_stops_after_each_packet_and_detects_lost_framing() {
    let chat = chat();
    let ping = write(&chat, "ping", &[], 1);
    let stream = [ping.clone(), ping.clone(), ping.clone()].concat();
    let mut reader = PacketReader::new();
    let (mut begin, mut rest, mut room) = (&stream[..5], &stream[5..], Vec::new());
    assert_eq!(next(&mut reader, &chat, &mut begin, &mut room), Ok(None));
    assert_eq!(reader.held(), &stream[..5]);
    assert_eq!(next(&mut reader, &chat, &mut rest, &mut room), Ok(Some(&*ping)));
    assert_eq!((rest, reader.held()), (&stream[ping.len()..], &[][..]));

    let lost = |bytes: &[u8]| {
        let broken = broken(&chat, bytes);
        assert!(broken.is_lost);
        broken.said().english()
    };
    assert_eq!(lost(&[0xc5]), "byte 0, `magic`: found c5, but the protocol requires c4 a7 here");
    assert_eq!(
        lost(&[0xc4, 0xa8, 0]),
        "byte 0, `magic`: found c4 a8, but the protocol requires c4 a7 here"
    );
    assert_eq!(
        lost(&[0xc4, 0xa7, 1, 0, 0, 0]),
        "byte 2, `length`: the length is 16777216; the maximum is 65536"
    );
    let whole = compiled(Declaration {
        packet: vec![length(16, Counts::Packet, 100), body()],
        transport: Transport::Tcp,
        ..one(vec![uint("a", 32)])
    });
    assert_eq!(
        broken(&whole, &[0, 1, 0]).said().english(),
        "byte 0, `length`: the length is 1, but a packet has at least 2 bytes in total"
    );
    let lines = compiled(Declaration {
        framing: Framing::Delimiter { bytes: placed(b"\n".to_vec()), bytes_max: 3 },
        transport: Transport::Tcp,
        ..one(vec![field("line", Type::Text(Extent::Rest))])
    });
    let mut reader = PacketReader::new();
    assert_eq!(next(&mut reader, &lines, &mut &b"abc"[..], &mut room), Ok(None));
    assert!(next(&mut reader, &lines, &mut &b"d"[..], &mut room).unwrap_err().is_lost);
    let refused =
        |line: &str| try_write(&lines, "it", &[("line", Value::from(line))], 0).unwrap_err();
    assert_eq!(refused("a\nb"), ": it contains the packet delimiter");
    assert_eq!(refused("abcd"), ": the packet has 4 bytes; the maximum is 3");
}

#[test]
fn packets_of_a_fixed_size_are_padded_with_zeros() {
    let protocol = compiled(Declaration {
        framing: Framing::Fixed(placed(8)),
        transport: Transport::Tcp,
        packet: vec![
            body(),
            role(
                "sum",
                Type::Unsigned(8),
                Role::Checksum { algorithm: Checksum::Xor, over: Vec::new() },
            ),
        ],
        ..one(vec![text("text")])
    });
    let packet = write(&protocol, "it", &[("text", Value::from("ab"))], 0);
    assert_eq!(packet, b"\0\x02ab\0\0\0\x01");
    assert_eq!(get(&protocol, &packet, "text"), Some(Value::from("ab")));
    assert_eq!(
        wrong(&protocol, b"\0\x02ab\0\x05\0\x01"),
        "byte 5, `body`: the rest of the packet is not all zeros"
    );
    assert_eq!(
        wrong(&protocol, b"\0\x02ab\0\0\0\x02"),
        "byte 7, `sum`: the checksum is 0x2, but the correct checksum is 0x1"
    );
    assert_eq!(
        wrong(&protocol, b""),
        "byte 0 of the packet: the packet has 0 bytes, but `fixed` is 8"
    );
}

#[test]
fn values_that_do_not_fit_are_rejected_and_nothing_is_written() {
    let protocol = compiled(one(vec![
        Field { default: Some(placed(Literal::Int(1))), ..uint("small", 8) },
        Field { default: Some(placed(Literal::Bool(true))), ..field("yes", Type::Bool) },
        Field {
            default: Some(placed(Literal::Text("x".into()))),
            ..field("short", Type::Text(prefixed(8)))
        },
        Field {
            default: Some(placed(Literal::Text("x".into()))),
            ..field("line", Type::Text(Extent::Delimited(b"\n".to_vec())))
        },
        Field {
            default: Some(placed(Literal::Bytes(vec![1, 2]))),
            ..field("two", Type::Bytes(Extent::Fixed(2)))
        },
        Field { default: Some(placed(Literal::Float(0.5))), ..field("f", Type::Float32) },
    ]));
    assert_eq!(write(&protocol, "it", &[], 0), b"\x01\x01\x01xx\n\x01\x02\x3f\0\0\0");
    let refused =
        |name: &str, value: Value| try_write(&protocol, "it", &[(name, value)], 0).unwrap_err();
    assert_eq!(
        refused("small", Value::Int(256)),
        "small: its type is `u8`: 256 is out of range (0 to 255)"
    );
    assert_eq!(
        refused("small", Value::from("abc")),
        "small: its type is `u8`: expected a whole number, not the text `abc`"
    );
    assert_eq!(
        refused("small", Value::Float(1.5)),
        "small: its type is `u8`: expected a whole number, not 1.5"
    );
    assert_eq!(
        refused("yes", Value::Int(2)),
        "yes: its type is `bool`: expected true or false, not a whole number"
    );
    assert_eq!(
        refused("short", Value::from("x".repeat(256))),
        "short: it has 256 bytes; the maximum is 255"
    );
    assert_eq!(refused("short", map("[1]")), "short: expected text, not a list");
    assert_eq!(refused("line", Value::from("a\nb")), "line: it contains its own delimiter");
    assert_eq!(refused("two", Value::from("abc")), "two: it has 3 bytes, but 2 are required");
    assert_eq!(refused("two", Value::Int(1)), "two: expected bytes, not a whole number");
    assert_eq!(
        refused("f", Value::from("fast")),
        "f: its type is `f32`: expected a number, not the text `fast`"
    );
    for (large, shown) in [(Value::from("1e400"), "1e400"), (Value::Float(1e39), "1e39")] {
        let range = "is out of range (-3.4028e38 to 3.4028e38)";
        assert_eq!(refused("f", large), format!("f: its type is `f32`: {shown} {range}"));
    }
    for infinite in [Value::from("-inf"), Value::Float(f64::NEG_INFINITY)] {
        let packet = write(&protocol, "it", &[("f", infinite)], 0);
        assert_eq!(get(&protocol, &packet, "f"), Some(Value::Float(f64::NEG_INFINITY)));
    }
    // The correlation of a narrow field.
    let narrow = compiled(Declaration {
        packet: vec![role("seq", Type::Unsigned(8), Role::Correlates), body()],
        ..one(vec![])
    });
    assert_eq!(try_write(&narrow, "it", &[], 255), Ok(vec![255]));
    assert!(
        try_write(&narrow, "it", &[], 256).unwrap_err().starts_with("seq: 256 is out of range")
    );
}

#[test]
fn given_values_are_checked_in_advance() {
    let chat = chat();
    let prepare = |message: &str, given: Given| {
        let id = chat.message(message).unwrap();
        let wrong = chat.prepare(id, &given).unwrap_err();
        format!("{}: {}; {}", wrong.path.join("."), wrong.message.english(), wrong.help.english())
    };
    let int = Value::Int(1);
    assert_eq!(
        prepare("gift", fields(&[("gift", int.clone()), ("prize", int.clone())])),
        "prize: `gift` has no field `prize`; did you mean `price`?"
    );
    assert_eq!(
        prepare("gift", fields(&[("gift", int.clone())])),
        "price: the field `price` is missing; give it a value, or a `default` in the declaration"
    );
    assert_eq!(
        prepare("ping", fields(&[("kind", int.clone())])),
        "kind: `kind` is set automatically; omit it: its value follows from the declaration"
    );
    assert_eq!(
        prepare("ping", fields(&[("seq", Value::Int(1 << 32))])),
        "seq: its type is `u32`: 4294967296 is out of range (0 to 4294967295); give it a value \
         of its declared type"
    );
    assert_eq!(
        prepare("light", Given::Fields(vec![("colour".into(), Given::Items(vec![]))])),
        "colour: `colour` is not a list, but a list was given; write a single value"
    );
    assert_eq!(
        prepare("light", Given::Fields(vec![("colour".into(), Given::Fields(vec![]))])),
        "colour: `colour` has no fields, but fields were given; write a single value"
    );
    assert_eq!(
        prepare("light", fields(&[("colour", Value::Int(300))])),
        "colour: its type is `u8`: 300 is out of range (0 to 255); give it a value of its \
         declared type"
    );
    let every = every_type();
    let id = every.message("it").unwrap();
    let counted = every.prepare(id, &fields(&[("n", int)])).unwrap_err();
    assert_eq!(counted.message, "`n` is set automatically");
}

#[test]
fn invalid_paths_are_reported() {
    let every = every_type();
    let id = every.message("it").unwrap();
    let told = |path: &str| {
        let wrong = every.field(id, path).unwrap_err();
        format!("{}; {}", wrong.message.english(), wrong.help.english())
    };
    assert_eq!(told("colur"), "there is no field `colur`; did you mean `colour`?");
    assert_eq!(
        told("points.x"),
        "`points` is a list, and `x` is a field of its items; select an item: `points[0].x`"
    );
    assert_eq!(told("points[0].z"), "there is no field `z`; did you mean `x`?");
    assert!(told("u24[0]").starts_with("`u24` is not a list"));
    assert!(told("u24.x").starts_with("`u24` has the type u24, so it has no fields"));
    assert!(told("[0]").starts_with("a path must start with a field name"));
    assert!(told("pair[x]").starts_with("`x` is not an index"));
    assert!(told("pair[0]x").starts_with("a dot is missing"));
    for path in ["", ".u24", "at.", "at..x"] {
        assert!(told(path).starts_with("a name is missing"), "{path}");
    }
}

const REPORTS: &str = "syntax = 'proto2';
message Report {
  enum Mode { OFF = 0; ON = 1; }
  required uint64 id = 1;
  optional string name = 2;
  optional sint32 delta = 3;
  repeated int32 nums = 4 [packed = true];
  repeated fixed32 loose = 5;
  optional Inner inner = 6;
  repeated Inner inners = 7;
  map<string, Inner> tags = 8;
  optional Mode mode = 9;
  optional double share = 10;
  optional bytes blob = 11;
  optional bool is_on = 12;
  repeated string words = 200;
}
message Inner { optional int64 x = 1; optional Inner next = 2; }
";

/// A protocol whose packets are a message of these.
fn proto(message: &str, of: impl FnOnce(Field) -> Vec<Field>) -> Protocol {
    let file = protox_parse::parse("reports.proto", REPORTS).unwrap();
    let schema = Arc::new(Schema::link(vec![file]).unwrap());
    let message = schema.message(message).unwrap();
    let ty = Type::Proto { message, extent: prefixed(8) };
    compiled(Declaration { schema, ..one(of(field("report", ty))) })
}

/// A message in protobuf with all kinds of fields.
pub(super) fn protobuf() -> Protocol {
    proto("Report", |report| {
        let Type::Proto { message, .. } = report.ty else { panic!("protobuf") };
        vec![Field { ty: Type::Proto { message, extent: Extent::Rest }, ..report }]
    })
}

const REPORT: &str = r#"{"id": 150, "name": "né", "delta": -2, "nums": [1, -1, 300],
    "loose": [7, 8], "inner": {"x": -5, "next": {"x": 6}}, "inners": [{"x": 1}, {}],
    "tags": {"a": {"x": 9}, "b": {}},
    "mode": "ON", "share": 0.5, "blob": "cmF3", "isOn": true, "words": ["u", "v"]}"#;

pub(super) fn protobuf_packet() -> Vec<u8> {
    write(&protobuf(), "it", &[("report", map(REPORT))], 0)
}

#[test]
fn protobuf_is_written_and_read() {
    let protocol = protobuf();
    let packet = protobuf_packet();
    assert!(packet.starts_with(b"\x08\x96\x01\x12\x03n\xc3\xa9\x18\x03\x22\x0d\x01"));
    for (path, expected) in [
        ("report.id", Some(Value::Int(150))),
        ("report.name", Some(Value::from("né"))),
        ("report.delta", Some(Value::Int(-2))),
        ("report.nums", Some(map("[1, -1, 300]"))),
        ("report.nums[1]", Some(Value::Int(-1))),
        ("report.loose[1]", Some(Value::Int(8))),
        ("report.inner.next.x", Some(Value::Int(6))),
        ("report.inner.next.next.x", None),
        ("report.inners[0].x", Some(Value::Int(1))),
        ("report.inners[1].x", Some(Value::Null)),
        ("report.inners[2].x", None),
        ("report.tags.a.x", Some(Value::Int(9))),
        ("report.tags[\"a\"].x", Some(Value::Int(9))),
        ("report.mode", Some(Value::from("ON"))),
        ("report.share", Some(Value::Float(0.5))),
        ("report.blob", Some(Value::from(&b"raw"[..]))),
        ("report.is_on", Some(Value::Bool(true))),
        ("report.isOn", Some(Value::Bool(true))),
        ("report.words[1]", Some(Value::from("v"))),
    ] {
        assert_eq!(get(&protocol, &packet, path), expected, "{path}");
    }
    let id = protocol.message("it").unwrap();
    let told = protocol.field(id, "report.inner.y").unwrap_err();
    assert_eq!(
        (told.message.english().as_str(), told.help.english().as_str()),
        ("`Inner` has no field `y`", "did you mean `x`?")
    );
    assert!(protocol.field(id, "report.id.x").is_err());
    assert_eq!(
        wrong(&protocol, b"\x12\x01a"),
        "byte 3, `report`: the required field `id` of `Report` is missing"
    );
    assert_eq!(wrong(&protocol, b"\x08\x01\x12\x01\xff"), "byte 4, `report`: `name` is not UTF-8");
    assert_eq!(
        wrong(&protocol, b"\x08\x01\x12\x05a"),
        "byte 2, `report`: field 2 has 5 bytes, but only 1 are left"
    );
    assert_eq!(
        wrong(&protocol, b"\x0d\x01\0\0\0"),
        "byte 0, `report`: `id` is not encoded as its type requires"
    );
    let mut deep = Vec::new();
    for _ in 0..DEPTH_MAX {
        let inner = std::mem::take(&mut deep);
        write_bytes(2, &inner, &mut deep);
    }
    let mut packet = vec![8, 1];
    write_bytes(6, &deep, &mut packet);
    assert!(
        wrong(&protocol, &packet).contains("protobuf messages are nested more than 64 levels deep")
    );
    // Unknown fields are passed over.
    assert_eq!(get(&protocol, b"\x08\x01\xf8\x3f\x01", "report.id"), Some(Value::Int(1)));
}

#[test]
fn the_range_of_a_protobuf_field_is_known() {
    let protocol = protobuf();
    let id = protocol.message("it").unwrap();
    let range = |path: &str| {
        let path = protocol.field(id, path).unwrap();
        assert_eq!(path.is_of_protobuf(), path.written.contains('.'));
        protocol.range(&path)
    };
    let names = vec![("OFF".to_owned(), 0), ("ON".to_owned(), 1)];
    assert_eq!(range("report.mode"), Range::Named(names));
    assert_eq!(range("report.name"), Range::Text);
    assert_eq!(
        range("report.inners[0].next.x"),
        Range::Whole { low: i64::MIN.into(), high: i64::MAX.into(), names: Vec::new() }
    );
    assert_eq!(range("report.nums"), Range::Any);
    assert_eq!(range("report"), Range::Any);
}

#[test]
fn protobuf_messages_can_be_in_lists_and_structures() {
    let protocol = proto("Inner", |inner| {
        let reports = Field { id: name("reports"), ..inner.clone() };
        vec![
            Field { repeat: Some(Repeat::Prefixed(Prefix::Unsigned(8))), ..reports },
            field("deep", Type::Fields(vec![inner])),
        ]
    });
    let packet = b"\x02\x02\x08\x05\0\x02\x08\x07";
    let all = map(r#"{"reports": [{"x": 5}, {}], "deep": {"report": {"x": 7}}}"#);
    let parts = [("reports", all.get("reports")), ("deep", all.get("deep"))];
    let given = parts.map(|(name, value)| (name, value.unwrap().clone()));
    assert_eq!(write(&protocol, "it", &given, 0), packet);
    for (path, expected) in [
        ("reports[0].x", Some(Value::Int(5))),
        ("reports[1].x", Some(Value::Null)),
        ("reports[2].x", None),
        ("deep.report.x", Some(Value::Int(7))),
        ("deep", Some(map(r#"{"report": {"x": 7, "next": null}}"#))),
    ] {
        assert_eq!(get(&protocol, packet, path), expected, "{path}");
    }
    // Each of them is the same whether it is given as a whole or field by field.
    let id = protocol.message("it").unwrap();
    let wrong = |given: Given| {
        let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(Some(map("[{\"y\": 1}]")));
        let given = vec![("reports".to_owned(), given)];
        let deep = Given::Fields(vec![("report".to_owned(), Given::Literal(map("{}")))]);
        let given = [given, vec![("deep".to_owned(), deep)]].concat();
        let template = protocol.prepare(id, &Given::Fields(given))?;
        let EncodeError::Value { field, reason } =
            protocol.encode(&template, 0, &mut leaf, &mut Vec::new()).unwrap_err();
        Ok::<_, GivenMistake>((field, reason.english()))
    };
    let told = ("reports.y".to_owned(), "`Inner` has no field `y`".to_owned());
    assert_eq!(wrong(Given::Leaf(0)), Ok(told.clone()));
    let item = Given::Fields(vec![("y".to_owned(), Given::Leaf(0))]);
    let mistake = wrong(Given::Items(vec![item])).unwrap_err();
    assert_eq!(mistake.path, ["reports", "[0]", "y"]);
    assert_eq!(mistake.message, told.1);
    let item = Given::Fields(vec![("x".to_owned(), Given::Leaf(0))]);
    let (field, _) = wrong(Given::Items(vec![item])).unwrap();
    assert_eq!(field, "reports.x");
}

#[test]
fn protobuf_and_json_are_given_field_by_field() {
    let protocol = protobuf();
    let id = protocol.message("it").unwrap();
    fn given(value: &Value, all: &mut Vec<Value>) -> Given {
        match value {
            Value::Map(entries) => Given::Fields(
                entries.iter().map(|(name, value)| (name.to_string(), given(value, all))).collect(),
            ),
            Value::List(items) => Given::Items(items.iter().map(|item| given(item, all)).collect()),
            value => {
                all.push(value.clone());
                Given::Leaf(all.len() as u16 - 1)
            }
        }
    }
    let encode = |protocol: &Protocol, id, value: &Value, name: &str| {
        let mut all = Vec::new();
        let given = Given::Fields(vec![(name.to_owned(), given(value, &mut all))]);
        let template = protocol.prepare(id, &given).unwrap();
        let mut out = Vec::new();
        let mut leaf = |leaf: u16, out: &mut Vec<u8>| match &all[usize::from(leaf)] {
            Value::Text(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok::<_, Infallible>(None)
            }
            value => Ok(Some(value.clone())),
        };
        protocol.encode(&template, 0, &mut leaf, &mut out).unwrap();
        out
    };
    assert_eq!(encode(&protocol, id, &map(REPORT), "report"), protobuf_packet());
    let missing = Given::Fields(vec![("report".to_owned(), Given::Fields(Vec::new()))]);
    let wrong = protocol.prepare(id, &missing).unwrap_err();
    assert_eq!(
        (wrong.path.join("."), wrong.message.english().as_str()),
        ("report.id".to_owned(), "the required field `id` is missing")
    );

    let miop = miop();
    let report = miop.message("report").unwrap();
    let data = map(r#"{"battery": 7, "say \"x\"": ["a\"b", "plain", null, {"c": true}]}"#);
    let packet = encode(&miop, report, &data, "data");
    let text = br#"{"battery":7,"say \"x\"":["a\"b","plain",null,{"c":true}]}"#;
    assert!(packet.ends_with(text), "{}", packet.escape_ascii());
    // A text that is JSON is inserted unchanged, other text becomes a string.
    let packet = write(&miop, "report", &[("data", Value::from("{\"a\" : 1}"))], 0);
    assert!(packet.ends_with(b"{\"a\" : 1}"));
    let packet = write(&miop, "report", &[("data", Value::from("5"))], 0);
    assert!(packet.ends_with(b"\"5\""));
}

#[test]
fn a_push_is_acknowledged_from_its_own_fields() {
    let miop = miop();
    let push = miop.message("push").unwrap();
    let given = [("id", Value::Int(77)), ("sent_ns", Value::Int(1)), ("data", map("{}"))];
    let packet = write(&miop, "push", &given, 0x0102_0304);
    let acknowledging = miop.acknowledgement(push).unwrap();
    assert!(miop.acknowledgement(miop.message("bound").unwrap()).is_none());
    let mut decoded = Decoded::default();
    miop.decode(&packet, &mut decoded).unwrap();
    let mut out = Vec::new();
    let mut leaf = |leaf: u16, _: &mut Vec<u8>| {
        Ok::<_, Infallible>(miop.value(&packet, &decoded, &acknowledging.leaves[usize::from(leaf)]))
    };
    miop.encode(&acknowledging.template, 0, &mut leaf, &mut out).unwrap();
    // With its number, and not with one of ours.
    assert!(acknowledging.template.gives_correlation());
    assert_eq!(out, b"\0\x0d\x06\x01\x02\x03\x04\0\0\0\0\0\0\0\x4d");
}

#[test]
fn the_correlating_field_may_be_given() {
    let chat = chat();
    let ping = chat.message("ping").unwrap();
    let encoded = |given: Given, value: Value| {
        let template = chat.prepare(ping, &given).unwrap();
        let mut out = Vec::new();
        let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(Some(value.clone()));
        let written = chat.encode(&template, 77, &mut leaf, &mut out);
        written.map(|()| (template.gives_correlation(), out[7..11].to_vec()))
    };
    let seq = |given| Given::Fields(vec![("seq".to_owned(), given)]);
    assert_eq!(encoded(Given::Fields(vec![]), Value::Null), Ok((false, vec![0, 0, 0, 77])));
    let literal = seq(Given::Literal(Value::Int(258)));
    assert_eq!(encoded(literal, Value::Null), Ok((true, vec![0, 0, 1, 2])));
    assert_eq!(encoded(seq(Given::Leaf(0)), Value::Int(9)), Ok((true, vec![0, 0, 0, 9])));
    assert!(encoded(seq(Given::Leaf(0)), Value::from("x")).is_err());
}

#[test]
fn packets_are_described_part_by_part() {
    let chat = chat();
    let given = [("id", Value::Int(1)), ("sent_ns", Value::Int(2)), ("text", Value::from("hi"))];
    let packet = write(&chat, "say", &given, 3);
    let mut decoded = Decoded::default();
    chat.decode(&packet, &mut decoded).unwrap();
    let shown: Vec<String> = chat
        .describe(&packet, &decoded)
        .iter()
        .map(|part| {
            let value = part.value.to_text();
            format!(
                "{}..{} {} {} {value} {}",
                part.start,
                part.end,
                part.path,
                part.type_word,
                part.note.english()
            )
        })
        .collect();
    let expected = [
        "0..2 magic u16 50343 constant",
        "2..6 length u32 20 length",
        "6..7 kind u8 7 kind",
        "7..11 seq u32 3 correlation",
        "11..19 id u64 1 ",
        "19..27 sent_ns u64 2 ",
        "27..29 text u16 2 number of bytes that follow",
        "29..31 text str hi ",
    ];
    assert_eq!(shown, expected);
    // Of what is broken that is shown which was read.
    let broken = chat.decode(&packet[..20], &mut decoded).unwrap_err();
    assert_eq!(broken.field, "length");
    assert_eq!(chat.describe(&packet[..20], &decoded).len(), 2);
    let rows: Vec<String> = chat
        .layout(chat.message("say").unwrap())
        .iter()
        .map(|row| {
            format!(
                "{:?} {} {} {} {}",
                row.offset,
                row.path,
                row.type_word,
                row.bytes,
                row.note.english()
            )
        })
        .collect();
    let expected = [
        "Some(0) magic u16 2 c4 a7",
        "Some(2) length u32 4 length",
        "Some(6) kind u8 1 kind 7",
        "Some(7) seq u32 4 correlation",
        "Some(11) id u64 8 ",
        "Some(19) sent_ns u64 8 ",
        "Some(27) text str 2 + n ",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn the_readable_part_of_a_malformed_packet_is_known() {
    let protocol = chat();
    let mut packet =
        write(&protocol, "joined", &[("code", Value::Int(1)), ("online", Value::Int(2))], 77);
    let mut decoded = Decoded::default();
    // The body is shorter than it should be.
    packet.truncate(packet.len() - 4);
    packet[5] -= 4;
    let broken = protocol.decode(&packet, &mut decoded).unwrap_err();
    assert_eq!(decoded.correlation(), Some(77));
    assert_eq!(decoded.message(), protocol.message("joined"));
    assert_eq!(*broken.excerpt, packet[..]);
    assert_eq!(
        broken.said().english(),
        "byte 13, `online`: 4 bytes are needed here, but only 0 are left"
    );
    // Before the field nothing is known, nor of the packet that was read before.
    packet[0] = 0;
    let broken = protocol.decode(&packet, &mut decoded).unwrap_err();
    assert_eq!((decoded.correlation(), decoded.message()), (None, None));
    assert_eq!(broken.excerpt.len(), packet.len());
    assert_eq!(
        wrong(&one_of("a"), b"\x01"),
        "byte 0, `a`: 2 bytes are needed here, but only 1 is left"
    );
    assert_eq!(
        wrong(&one_of("a"), b"\0\0\x01"),
        "byte 2, `body`: 1 byte is left after the last field"
    );
}

/// A protocol whose message has a number of two bytes.
fn one_of(id: &str) -> Protocol {
    compiled(one(vec![uint(id, 16)]))
}

#[test]
fn lost_framing_shows_its_bytes_however_they_are_split() {
    let protocol = chat();
    let mut stream = write(&protocol, "ping", &[], 1);
    let good = stream.len();
    stream.extend_from_slice(&[0xc4, 0xa8]);
    stream.extend(1..=60);
    for cut in 0..=stream.len() {
        let mut reader = PacketReader::new();
        let (mut packets, mut parts) = (0, [&stream[..cut], &stream[cut..]].into_iter());
        let (mut part, mut room) = (&[][..], Vec::new());
        let broken = loop {
            match next(&mut reader, &protocol, &mut part, &mut room) {
                Ok(Some(_)) => packets += 1,
                Ok(None) => part = parts.next().expect("it breaks"),
                Err(broken) => break broken,
            }
        };
        // Bytes that have not arrived cannot be shown.
        let come = if cut >= good + 2 { cut } else { stream.len() };
        let shown = &stream[good..come.min(good + EXCERPT_BYTES_MAX)];
        assert_eq!(*broken.excerpt, *shown, "{cut}");
        assert!(broken.is_lost && packets == 1, "{cut}");
        assert_eq!(
            broken.said().english(),
            "byte 0, `magic`: found c4 a8, but the protocol requires c4 a7 here"
        );
    }
}
