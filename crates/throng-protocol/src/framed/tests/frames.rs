//! Where packets and their parts end: lengths with other counting rules, structures with a length,
//! lists terminated by bytes, optional ends, and packets that end with their last field.

use throng_fuzz::splits;

use super::*;

fn decimal(id: &str, end: &[u8]) -> Field {
    field(id, Type::Coded(Coding::Decimal(end.into())))
}

fn line(id: &str) -> Field {
    field(id, Type::Text(Extent::Delimited(b"\r\n".to_vec())))
}

fn bytes_of(id: &str, counter: &str) -> Field {
    field(id, Type::Bytes(Extent::Field(name(counter))))
}

fn crlf(id: &str) -> Field {
    let constant = Some(placed(Literal::Bytes(b"\r\n".to_vec())));
    Field { constant, ..field(id, Type::Bytes(Extent::Fixed(2))) }
}

fn only_if(field: Field, asked: &str, comparison: Comparison, value: i64) -> Field {
    let condition = Some(Condition { field: name(asked), comparison, value });
    Field { condition, ..field }
}

fn worded(message: Message, kind: &[u8]) -> Message {
    Message { kind: Some(placed(MessageKind::Text(kind.to_vec()))), ..message }
}

/// Replies and commands of Redis, without lists in lists.
pub(super) fn resp() -> Protocol {
    let constant = Some(placed(Literal::Bytes(b"$".to_vec())));
    let mark = Field { constant, ..field("mark", Type::Bytes(Extent::Fixed(1))) };
    let bulk = vec![mark, decimal("size", b"\r\n"), bytes_of("data", "size"), crlf("end")];
    let items = || {
        let repeat = Some(Repeat::Field(name("count")));
        vec![decimal("count", b"\r\n"), Field { repeat, ..field("items", Type::Struct(0)) }]
    };
    let at_least = |field: Field| only_if(field, "size", Comparison::GreaterOrEqual, 0);
    let found =
        vec![decimal("size", b"\r\n"), at_least(bytes_of("data", "size")), at_least(crlf("end"))];
    let answer = |id: &str, body: Vec<Field>| answer(id, 0, &["command"], body);
    compiled(Declaration {
        framing: Framing::Fields { bytes_max: 200, place: PlaceId::default() },
        packet: vec![role("type", Type::Bytes(Extent::Rest), Role::Selects), body()],
        types: vec![Struct { name: name("bulk"), fields: bulk }],
        messages: vec![
            worded(message("command", 0, items()), b"*"),
            worded(answer("status", vec![line("text")]), b"+"),
            worded(answer("error", vec![line("text")]), b"-"),
            worded(answer("integer", vec![decimal("value", b"\r\n")]), b":"),
            worded(answer("value", found), b"$"),
            worded(answer("list", items()), b"*"),
        ],
        ..Declaration::default()
    })
}

/// Some messages of NATS.
pub(super) fn nats() -> Protocol {
    let word = |id: &str| field(id, Type::Text(Extent::Delimited(b" ".to_vec())));
    let payload = || [decimal("size", b"\r\n"), bytes_of("payload", "size"), crlf("end")];
    let published = [vec![word("subject")], payload().to_vec()].concat();
    let said = [vec![word("subject"), decimal("sid", b" ")], payload().to_vec()].concat();
    let json = |id: &str| field(id, Type::Json(Extent::Delimited(b"\r\n".to_vec())));
    compiled(Declaration {
        framing: Framing::Fields { bytes_max: 4096, place: PlaceId::default() },
        packet: vec![role("command", Type::Text(Extent::Rest), Role::Selects), body()],
        messages: vec![
            worded(push("info", 0, vec![json("info")]), b"INFO "),
            worded(message("publish", 0, published), b"PUB "),
            worded(push("said", 0, said), b"MSG "),
            worded(push("done", 0, vec![]), b"+OK\r\n"),
            worded(message("ping", 0, vec![]), b"PING\r\n"),
            worded(answer("pong", 0, &["ping"], vec![]), b"PONG\r\n"),
        ],
        ..Declaration::default()
    })
}

/// An acknowledgement of MQTT 5 and its properties, with optional ends.
pub(super) fn mqtt() -> Protocol {
    let property = vec![uint("id", 8), text("value")];
    let list = Field { repeat: Some(Repeat::Rest), ..field("list", Type::Struct(0)) };
    let properties = Field {
        bound: Some(Extent::Prefixed { prefix: Prefix::Varint, bytes_max: None }),
        is_optional: true,
        ..field("properties", Type::Fields(vec![list]))
    };
    let reason = Field { is_optional: true, ..uint("reason", 8) };
    compiled(Declaration {
        packet: vec![
            role("kind", Type::Unsigned(8), Role::Selects),
            role(
                "length",
                Type::Varint,
                Role::Length { counts: Counts::After, plus: 0, bytes_max: None },
            ),
            body(),
        ],
        types: vec![Struct { name: name("property"), fields: property }],
        messages: vec![push("acknowledged", 0x40, vec![uint("id", 16), reason, properties])],
        ..Declaration::default()
    })
}

pub(super) const MQTT: &[u8] = b"\x40\x09\0\x07\x10\x05\x1f\0\x02no";

/// A question of DNS.
pub(super) fn dns() -> Protocol {
    let extent = Extent::Prefixed { prefix: Prefix::Unsigned(8), bytes_max: Some(63) };
    let labels =
        Field { repeat: Some(Repeat::Until(vec![0])), ..field("labels", Type::Text(extent)) };
    compiled(Declaration {
        transport: Transport::Udp,
        packet: vec![role("id", Type::Unsigned(16), Role::Correlates), body()],
        ..one(vec![labels, uint("type", 16)])
    })
}

pub(super) const DNS: &[u8] = b"\0\x01\x03www\x02at\0\0\x01";

fn values(json: &str) -> Vec<(&'static str, Value)> {
    let Value::Map(entries) = Value::parse_json(json.as_bytes()).unwrap() else { panic!("a map") };
    let named = entries.iter().map(|(name, value)| (&*name.to_string().leak(), value.clone()));
    named.collect()
}

/// The packets of a stream in every cut: messages, and what ended it.
fn read(protocol: &Protocol, stream: &[u8]) -> (Vec<String>, String) {
    let mut all: Option<(Vec<String>, String)> = None;
    splits(stream, |parts| {
        let mut reader = PacketReader::new();
        let (mut names, mut end) = (Vec::new(), String::new());
        'parts: for part in parts {
            let (mut rest, mut room) = (*part, Vec::new());
            loop {
                match reader.next(Records::Declared(protocol), &mut rest, &mut room) {
                    Ok(Some(packet)) => {
                        let read = protocol.decode(packet, &mut Decoded::default()).unwrap();
                        names.push(protocol.info(read.message).name.clone());
                    }
                    Ok(None) => break,
                    Err(broken) => {
                        assert!(broken.is_lost);
                        end = broken.said().english();
                        break 'parts;
                    }
                }
            }
        }
        let read = (names, end);
        assert_eq!(*all.get_or_insert_with(|| read.clone()), read, "{parts:?}");
    });
    all.unwrap()
}

#[test]
fn a_packet_ends_with_its_last_field() {
    let resp = resp();
    let command = values(r#"{"items": [{"data": "GET"}, {"data": ""}]}"#);
    let packet = write(&resp, "command", &command, 0);
    assert_eq!(packet, b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
    let stream = b"+OK\r\n:-5\r\n$5\r\n\r\n+OK\r\n$-1\r\n*2\r\n$1\r\na\r\n$0\r\n\r\n-ERR no\r\n";
    let (names, end) = read(&resp, stream);
    assert_eq!(names, ["status", "integer", "value", "value", "list", "error"]);
    assert_eq!(end, "");
    assert_eq!(get(&resp, b"$-1\r\n", "size"), Some(Value::Int(-1)));
    assert_eq!(get(&resp, b"$-1\r\n", "data"), None);
    assert_eq!(get(&resp, b"*1\r\n$1\r\na\r\n", "items[0].data"), Some(Value::from(&b"a"[..])));
    for (stream, end) in [
        (&b"+OK\r\n!"[..], "byte 0, `type`: no message has the kind !"),
        (b"$999\r\n", "byte 6 of the packet: the packet has more than 200 bytes"),
        (b"*9999999\r\n", "byte 10 of the packet: the packet has more than 200 bytes"),
        (b":12a\r\n", "byte 1, `value`: expected a decimal number, not `12a`"),
        (b"$1\r\nabc", "byte 5, `end`: found 62 63, but the protocol requires 0d 0a here"),
    ] {
        assert_eq!(read(&resp, stream).1, end, "{stream:?}");
    }
    let nats = nats();
    let stream = b"INFO {\"a\": \"}\"}\r\nMSG a 1 5\r\na\r\nbc\r\n+OK\r\nPONG\r\n";
    assert_eq!(read(&nats, stream).0, ["info", "said", "done", "pong"]);
    let publish = values(r#"{"subject": "a.b", "payload": "hello world"}"#);
    assert_eq!(write(&nats, "publish", &publish, 0), b"PUB a.b 11\r\nhello world\r\n");
    // Text that never ends is refused at its limit, and costs no more than that.
    let mut reader = PacketReader::new();
    let endless = vec![b'x'; 300];
    let mut text = &b"+"[..];
    assert_eq!(reader.next(Records::Declared(&resp), &mut text, &mut Vec::new()), Ok(None));
    let mut text = &endless[..];
    assert!(reader.next(Records::Declared(&resp), &mut text, &mut Vec::new()).is_err());
}

#[test]
fn lengths_count_what_the_declaration_says() {
    let by = |ty: Type, counts: Counts, plus: i64| {
        compiled(Declaration {
            transport: Transport::Tcp,
            packet: vec![
                uint("type", 8),
                role("length", ty, Role::Length { counts, plus, bytes_max: None }),
                body(),
                uint("end", 8),
            ],
            ..one(vec![field("data", Type::Bytes(Extent::Rest))])
        })
    };
    let digits = || Type::Coded(Coding::Decimal((*b":").into()));
    for (protocol, written) in [
        // As in PostgreSQL: it counts itself, but not what precedes it.
        (by(Type::Unsigned(32), Counts::After, 4), &b"\x01\0\0\0\x07ab\x02"[..]),
        // As in AMQP: without the last byte.
        (by(Type::Unsigned(32), Counts::After, -1), b"\x01\0\0\0\x02ab\x02"),
        (by(Type::Coded(Coding::Ber), Counts::After, 0), b"\x01\x03ab\x02"),
        (by(Type::Coded(Coding::Lenenc), Counts::Body, 0), b"\x01\x02ab\x02"),
        (by(digits(), Counts::Packet, 0), b"\x016:ab\x02"),
        (by(digits(), Counts::Packet, 4), b"\x0111:ab\x02"),
    ] {
        let given = [("data", "ab".into()), ("type", Value::Int(1)), ("end", Value::Int(2))];
        assert_eq!(
            write(&protocol, "it", &given, 0).escape_ascii().to_string(),
            written.escape_ascii().to_string()
        );
        for size in [0, 125, 126, 250, 251, 1000] {
            let data = Value::from(vec![b'x'; size]);
            let given = [("data", data), ("type", Value::Int(1)), ("end", Value::Int(2))];
            let packet = write(&protocol, "it", &given, 0);
            let stream = [packet.clone(), packet].concat();
            assert_eq!(read(&protocol, &stream).0, ["it", "it"], "{size}");
        }
    }
    let least = by(Type::Unsigned(8), Counts::After, -4);
    let given = [("data", "ab".into()), ("type", Value::Int(1)), ("end", Value::Int(2))];
    assert_eq!(
        try_write(&least, "it", &given, 0),
        Err("length: it counts 3 bytes, but at least 4 are required".to_owned())
    );
}

#[test]
fn the_rest_may_end_with_given_bytes() {
    let rest = || field("data", Type::Json(Extent::RestBefore(b"}]".to_vec())));
    let protocol = compiled(one(vec![uint("id", 8), rest()]));
    let given = values(r#"{"id": 7, "data": {"a": [{}]}}"#);
    let packet = write(&protocol, "it", &given, 0);
    assert_eq!(packet, b"\x07{\"a\":[{}]}}]", "its own bytes may be in it");
    assert_eq!(get(&protocol, b"\x0721}]", "data"), Some(Value::Int(21)));
    assert_eq!(wrong(&protocol, b"\x071]"), "byte 1, `data`: its delimiter 7d 5d is missing");
    let followed = Protocol::compile(one(vec![rest(), uint("id", 8)]));
    assert_eq!(followed.unwrap_err()[0].code, "protocol-rest-not-last");
}

#[test]
fn structures_have_lengths_and_the_last_fields_may_be_missing() {
    let mqtt = mqtt();
    let properties = r#"{"list": [{"id": 31, "value": "no"}]}"#;
    let given = format!(r#"{{"id": 7, "reason": 16, "properties": {properties}}}"#);
    assert_eq!(write(&mqtt, "acknowledged", &values(&given), 0), MQTT);
    assert_eq!(get(&mqtt, MQTT, "properties.list[0].value"), Some(Value::from("no")));
    assert_eq!(write(&mqtt, "acknowledged", &values(r#"{"id": 7}"#), 0), b"\x40\x02\0\x07");
    assert_eq!(get(&mqtt, b"\x40\x02\0\x07", "reason"), None);
    assert_eq!(get(&mqtt, b"\x40\x03\0\x07\x10", "reason"), Some(Value::Int(16)));
    let given = values(&format!(r#"{{"id": 7, "properties": {properties}}}"#));
    assert_eq!(
        try_write(&mqtt, "acknowledged", &given, 0),
        Err("properties: it requires `reason`, which is missing".to_owned())
    );
    assert_eq!(
        wrong(&mqtt, b"\x40\x06\0\x07\x10\x02\x1f\0"),
        "byte 7, `properties.list.value`: 2 bytes are needed here, but only 1 is left"
    );
    assert_eq!(
        wrong(&mqtt, b"\x40\x05\0\x07\x10\x02\x1f"),
        "byte 6, `properties`: 2 bytes are needed here, but only 1 is left"
    );
}

#[test]
fn lists_end_at_their_bytes() {
    let dns = dns();
    let given = values(r#"{"labels": ["www", "at"], "type": 1}"#);
    assert_eq!(write(&dns, "it", &given, 1), DNS);
    let labels = Value::from(vec![Value::from("www"), Value::from("at")]);
    assert_eq!(get(&dns, DNS, "labels"), Some(labels));
    assert_eq!(get(&dns, DNS, "labels[1]"), Some(Value::from("at")));
    assert_eq!(write(&dns, "it", &values(r#"{"labels": [], "type": 1}"#), 1), b"\0\x01\0\0\x01");
    let given = values(r#"{"labels": ["a", ""], "type": 1}"#);
    assert_eq!(
        try_write(&dns, "it", &given, 1),
        Err("labels: one of its items starts with the bytes that end the list".to_owned())
    );
    assert_eq!(wrong(&dns, b"\0\x01\x01a"), "byte 4, `labels`: its delimiter 00 is missing");
    let mut decoded = Decoded::default();
    dns.decode(DNS, &mut decoded).unwrap();
    let told: Vec<String> = dns
        .describe(DNS, &decoded)
        .iter()
        .map(|part| format!("{}..{} {} {}", part.start, part.end, part.path, part.note.english()))
        .collect();
    assert_eq!(told[5], "9..10 labels delimiter", "{told:?}");
}

#[test]
fn impossible_ends_are_rejected() {
    let told = |declaration: Declaration| match Protocol::compile(declaration) {
        Ok(_) => panic!("it compiles"),
        Err(mistakes) => {
            let told =
                mistakes.iter().map(|one| format!("{}: {}", one.code, one.message.english()));
            told.collect::<Vec<_>>().join("\n")
        }
    };
    let framing = || Framing::Fields { bytes_max: 100, place: PlaceId::default() };
    let fields = |fields: Vec<Field>| Declaration { framing: framing(), ..one(fields) };
    let unknown = "protocol-no-length: `rest` has no defined end, so the end of the packet is \
                   unknown";
    assert_eq!(told(fields(vec![field("rest", Type::Text(Extent::Rest))])), unknown);
    let tail = || Field { is_optional: true, ..uint("rest", 8) };
    assert_eq!(told(fields(vec![tail()])), unknown);
    let mut counted = fields(vec![]);
    counted.packet.insert(0, length(8, Counts::After, 9));
    assert_eq!(
        told(counted),
        "protocol-no-length: `length` gives the length of the packet, so `frame` is not needed"
    );
    assert_eq!(
        told(one(vec![tail(), uint("more", 8)])),
        "protocol-bad-optional: `rest` is optional, but `more` after it is not"
    );
    let mut head = one(vec![]);
    head.packet.insert(0, tail());
    assert_eq!(
        told(head),
        "protocol-bad-optional: `rest` is a field of `packet`, so it cannot be optional"
    );
}
