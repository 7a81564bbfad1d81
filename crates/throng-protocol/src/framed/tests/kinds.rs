//! Which message a packet is: by direction, by several fields, by texts.

use super::*;

/// Requests and replies that have the same numbers, as Modbus has them.
pub(super) fn modbus() -> Protocol {
    compiled(modbus_declaration())
}

pub(super) fn modbus_declaration() -> Declaration {
    let list = Type::Bytes(Extent::Prefixed { prefix: Prefix::Unsigned(8), bytes_max: None });
    Declaration {
        packet: vec![
            role("transaction", Type::Unsigned(16), Role::Correlates),
            Field { constant: Some(placed(Literal::Int(0))), ..uint("protocol", 16) },
            length(16, Counts::After, 254),
            Field { default: Some(placed(Literal::Int(1))), ..uint("unit", 8) },
            role("function", Type::Unsigned(8), Role::Selects),
            body(),
        ],
        messages: vec![
            message("read", 3, vec![uint("address", 16), uint("count", 16)]),
            answer("registers", 3, &["read"], vec![field("values", list)]),
            message("write", 6, vec![uint("address", 16), uint("value", 16)]),
            answer("written", 6, &["write"], vec![uint("address", 16), uint("value", 16)]),
            answer("refused", 0x83, &["read"], vec![uint("code", 8)]),
        ],
        ..Declaration::default()
    }
}

/// Frames whose methods are selected by class and number, as in AMQP.
pub(super) fn amqp() -> Protocol {
    compiled(amqp_declaration())
}

pub(super) fn amqp_declaration() -> Declaration {
    let is_method =
        || Some(Condition { field: name("frame"), comparison: Comparison::Equal, value: 1 });
    let selects =
        |id: &str| Field { condition: is_method(), ..role(id, Type::Unsigned(16), Role::Selects) };
    let kinds = |message: Message, kinds: &[i64]| Message {
        kind: Some(placed(MessageKind::Numbers(kinds.to_vec()))),
        ..message
    };
    Declaration {
        packet: vec![
            role("frame", Type::Unsigned(8), Role::Selects),
            uint("channel", 16),
            length(32, Counts::After, 1000),
            selects("class"),
            selects("method"),
            body(),
            Field { constant: Some(placed(Literal::Int(0xce))), ..uint("end", 8) },
        ],
        messages: vec![
            kinds(message("open", 0, vec![text("host")]), &[1, 10, 40]),
            kinds(answer("open_ok", 0, &["open"], vec![]), &[1, 10, 41]),
            kinds(message("ack", 0, vec![uint("tag", 64)]), &[1, 60, 40]),
            kinds(message("content", 3, vec![field("data", Type::Bytes(Extent::Rest))]), &[3]),
            kinds(message("heartbeat", 8, vec![]), &[8]),
        ],
        ..Declaration::default()
    }
}

/// Commands that are words, as NATS has them.
pub(super) fn words_declaration(extent: Extent) -> Declaration {
    let is = |message: Message, kind: &[u8]| Message {
        kind: Some(placed(MessageKind::Text(kind.to_vec()))),
        ..message
    };
    let rest = || field("rest", Type::Text(Extent::Rest));
    Declaration {
        framing: Framing::Delimiter { bytes: placed(b"\r\n".to_vec()), bytes_max: 100 },
        packet: vec![role("command", Type::Text(extent), Role::Selects), body()],
        messages: vec![
            is(message("publish", 0, vec![rest()]), b"PUB"),
            is(push("said", 0, vec![rest()]), b"MSG"),
            is(message("ping", 0, vec![]), b"PING"),
            is(answer("pong", 0, &["ping"], vec![]), b"PONG"),
        ],
        ..Declaration::default()
    }
}

fn sent(protocol: &Protocol, packet: &[u8]) -> String {
    let read = protocol.decode_sent(packet, &mut Decoded::default()).unwrap();
    protocol.info(read.message).name.clone()
}

fn come(protocol: &Protocol, packet: &[u8]) -> String {
    let read = protocol.decode(packet, &mut Decoded::default()).unwrap();
    protocol.info(read.message).name.clone()
}

#[test]
fn the_sender_distinguishes_two_messages_with_one_number() {
    let modbus = modbus();
    let given = [("address", Value::Int(2)), ("count", Value::Int(1))];
    let packet = write(&modbus, "read", &given, 9);
    assert_eq!(packet, [0, 9, 0, 0, 0, 6, 1, 3, 0, 2, 0, 1]);
    assert_eq!(sent(&modbus, &packet), "read");
    assert_eq!(
        wrong(&modbus, &packet),
        "byte 9, `body`: 3 bytes are left after the last field",
        "the target does not send it"
    );
    let reply = [0, 9, 0, 0, 0, 5, 1, 3, 2, 0, 7];
    assert_eq!(come(&modbus, &reply), "registers");
    assert_eq!(write(&modbus, "registers", &[("values", Value::from(vec![0u8, 7]))], 9), reply);
    let as_it = modbus.decode_as(modbus.message("read").unwrap(), &packet, &mut Decoded::default());
    assert_eq!(as_it.map(|read| read.message), Ok(modbus.message("read").unwrap()));
    // What one side alone has is known in both directions.
    assert_eq!(come(&chat(), &write(&chat(), "ping", &[], 1)), "ping");
}

#[test]
fn several_fields_select_together() {
    let amqp = amqp();
    let given = [("host", Value::from("/")), ("channel", Value::Int(0))];
    let open = write(&amqp, "open", &given, 0);
    assert_eq!(open, b"\x01\0\0\0\0\0\x08\0\x0a\0\x28\0\x01/\xce");
    assert_eq!(sent(&amqp, &open), "open");
    let channel = [("channel", Value::Int(1))];
    let beat = write(&amqp, "heartbeat", &channel, 0);
    assert_eq!(beat, b"\x08\0\x01\0\0\0\x01\xce");
    assert_eq!(come(&amqp, &beat), "heartbeat");
    assert_eq!(get(&amqp, &open, "method"), Some(Value::Int(40)));
    assert_eq!(
        wrong(&amqp, b"\x01\0\0\0\0\0\x05\0\x0a\0\x2a\xce"),
        "byte 0, `frame`: no message has the kind [1, 10, 42]"
    );
    let rows: Vec<String> = amqp
        .layout(amqp.message("open").unwrap())
        .iter()
        .map(|row| format!("{} {}", row.path, row.note.english()))
        .collect();
    assert!(rows.contains(&"frame kind 1".to_owned()), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("method kind 40")), "{rows:?}");
}

#[test]
fn texts_select_with_or_without_a_terminator() {
    let spaced = compiled(words_declaration(Extent::Rest));
    assert_eq!(write(&spaced, "publish", &[("rest", Value::from(" a b"))], 0), b"PUB a b\r\n");
    assert_eq!(come(&spaced, b"PONG"), "pong");
    assert_eq!(get(&spaced, b"MSG a", "rest"), Some(Value::from(" a")));
    assert_eq!(get(&spaced, b"MSG a", "command"), Some(Value::from("MSG")));
    assert_eq!(wrong(&spaced, b"MS"), "byte 0, `command`: no message has the kind MS");
    let ended = compiled(words_declaration(Extent::Delimited(b" ".to_vec())));
    assert_eq!(write(&ended, "publish", &[("rest", Value::from("a"))], 0), b"PUB a\r\n");
    assert_eq!(get(&ended, b"MSG a", "rest"), Some(Value::from("a")));
    assert_eq!(wrong(&ended, b"MSGS a"), "byte 0, `command`: no message has the kind MSGS");
    let parts = ended.describe(b"MSG a", &{
        let mut decoded = Decoded::default();
        ended.decode(b"MSG a", &mut decoded).unwrap();
        decoded
    });
    let told: Vec<String> = parts
        .iter()
        .map(|part| format!("{}..{} {} {}", part.start, part.end, part.path, part.note.english()))
        .collect();
    assert_eq!(told, ["0..3 command kind", "3..4 command delimiter", "4..5 rest "]);
}

#[test]
fn impossible_kinds_are_rejected() {
    let told = |declaration: Declaration| match Protocol::compile(declaration) {
        Ok(_) => String::new(),
        Err(mistakes) => {
            let mistakes =
                mistakes.iter().map(|one| format!("{}: {}", one.code, one.message.english()));
            mistakes.collect::<Vec<_>>().join("\n")
        }
    };
    let amqp = |index: usize, kind: &[i64]| {
        let mut declaration = amqp_declaration();
        declaration.messages[index].kind = Some(placed(MessageKind::Numbers(kind.to_vec())));
        told(declaration)
    };
    let code = "protocol-bad-kind:";
    assert_eq!(amqp(0, &[1, 10]), format!("{code} the `kind` of `open` has no value for `method`"));
    assert_eq!(
        amqp(4, &[8, 0]),
        format!("{code} `class` cannot be 0 here, because its `if` is not true")
    );
    assert_eq!(
        amqp(0, &[1, 10, 40, 7]),
        format!("{code} no field with `selects` corresponds to the 7 in the `kind` of `open`")
    );
    assert_eq!(amqp(0, &[1, 70_000, 40]), format!("{code} `class` cannot encode the kind 70000"));
    assert_eq!(
        amqp(2, &[1, 10, 40]),
        "protocol-kind-twice: `open` and `ack` both have the kind [1, 10, 40]"
    );
    let words = |kind: &[u8], extent: Extent| {
        let mut declaration = words_declaration(extent);
        declaration.messages[2].kind = Some(placed(MessageKind::Text(kind.to_vec())));
        told(declaration)
    };
    assert_eq!(
        words(b"PU", Extent::Rest),
        "protocol-kind-twice: `publish` and `ping` both have the kind PU"
    );
    assert_eq!(words(b"PU", Extent::Delimited(b" ".to_vec())), "");
    assert_eq!(
        words(b"A B", Extent::Delimited(b" ".to_vec())),
        format!(
            "{code} `command` cannot encode the kind A B: it contains the delimiter of the field"
        )
    );
    assert_eq!(
        words(b"A\r\n", Extent::Rest),
        "protocol-bad-delimiter: the kind A\\r\\n contains the packet delimiter"
    );
    let mut both = words_declaration(Extent::Rest);
    both.packet.insert(0, role("number", Type::Unsigned(8), Role::Selects));
    assert!(told(both).starts_with("protocol-bad-role: `command` cannot select"));
    let mut asks = amqp_declaration();
    asks.packet[3].condition.as_mut().unwrap().field = name("channel");
    assert!(told(asks).starts_with("protocol-bad-role: the condition of `class` depends on"));
}
