//! Lists of names and values, read and sent by name.

use super::*;

fn frames() -> Protocol {
    let header = vec![
        field("name", Type::Text(Extent::Delimited(b":".to_vec()))),
        field("value", Type::Text(Extent::Delimited(b"\n".to_vec()))),
    ];
    let headers = field("headers", Type::Fields(header));
    let repeat = Some(Repeat::Until(b"\n".to_vec()));
    compiled(one(vec![
        Field { repeat, by: Some(name("name")), ..headers },
        field("text", Type::Text(Extent::Rest)),
    ]))
}

#[test]
fn items_are_read_by_their_names() {
    let frames = frames();
    let frame = b"content-type:a/b\nReceipt-Id:7\nreceipt-id:8\n\nhello";
    assert_eq!(get(&frames, frame, "headers.receipt-id"), Some(Value::from("7")));
    assert_eq!(get(&frames, frame, "headers[\"content-type\"]"), Some(Value::from("a/b")));
    assert_eq!(get(&frames, frame, "headers.content"), None);
    assert_eq!(get(&frames, frame, "headers[2].value"), Some(Value::from("8")));
    assert_eq!(get(&frames, b"\nhello", "headers.receipt-id"), None);
    let it = frames.message("it").unwrap();
    assert!(frames.field(it, "headers.a.b").is_err(), "a text has no fields");
    assert_eq!(frames.range(&frames.field(it, "headers.a").unwrap()), Range::Text);
}

#[test]
fn items_are_sent_by_their_names() {
    let frames = frames();
    let it = frames.message("it").unwrap();
    let headers =
        vec![("a".to_owned(), Given::Literal(Value::Int(1))), ("b".to_owned(), Given::Leaf(0))];
    let given = Given::Fields(vec![
        ("headers".to_owned(), Given::Fields(headers)),
        ("text".to_owned(), Given::Literal(Value::from("x"))),
    ]);
    let template = frames.prepare(it, &given).unwrap();
    let mut out = Vec::new();
    let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(Some(Value::from("two")));
    frames.encode(&template, 0, &mut leaf, &mut out).unwrap();
    assert_eq!(out, b"a:1\nb:two\n\nx");
    let wrong = Given::Fields(vec![("a:b".to_owned(), Given::Literal(Value::Int(1)))]);
    let given = Given::Fields(vec![("headers".to_owned(), wrong)]);
    assert!(frames.prepare(it, &given).is_err(), "a name has no delimiter in it");
}

#[test]
fn a_list_by_name_has_a_name_and_a_value() {
    let wrong = |fields: Vec<Field>, by: &str| {
        let list = field("list", Type::Fields(fields));
        let by = Some(name(by));
        let list = Field { repeat: Some(Repeat::Rest), by, ..list };
        let found = Protocol::compile(one(vec![list])).unwrap_err();
        found.iter().map(|one| one.message.english()).collect::<Vec<_>>()
    };
    let told = ["`name` does not name the items of `list`"];
    assert_eq!(wrong(vec![text("name"), text("a"), text("b")], "name"), told);
    assert_eq!(wrong(vec![uint("name", 8), text("a")], "name"), told);
    assert_eq!(wrong(vec![text("a"), text("b")], "name"), told);
}

/// A part of STOMP: the receipt is in a header of the request, and in one of the reply.
fn receipts() -> Declaration {
    let headers = |item: &str| {
        let end = |end: &[u8]| Type::Text(Extent::Delimited(end.to_vec()));
        let header = vec![field("name", end(b":")), field("value", end(b"\n"))];
        let repeat = Some(Repeat::Until(b"\n".to_vec()));
        let (by, carries) = (Some(name("name")), Some(name(item)));
        Field { repeat, by, carries, ..field("headers", Type::Fields(header)) }
    };
    Declaration {
        transport: Transport::Udp,
        packet: vec![role("kind", Type::Unsigned(8), Role::Selects), body()],
        messages: vec![
            message("send", 65, vec![headers("receipt"), field("text", Type::Text(Extent::Rest))]),
            answer("receipt", 66, &["send"], vec![headers("receipt-id")]),
        ],
        ..Declaration::default()
    }
}

#[test]
fn an_item_correlates() {
    let protocol = compiled(receipts());
    let (send, receipt) = (protocol.message("send").unwrap(), protocol.message("receipt").unwrap());
    assert_eq!(protocol.correlated_item(send), Some(("headers", "receipt")));
    assert_eq!((protocol.correlator(send), protocol.correlates()), (None, true));
    assert!(protocol.correlation_max(send) >= u64::from(u32::MAX));
    let text = ("text".to_owned(), Given::Literal(Value::from("x")));
    let list = |items: &[(&str, &str)]| {
        let items = items
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Given::Literal(Value::from(*value))));
        ("headers".to_owned(), Given::Fields(items.collect()))
    };
    let written = |given: Vec<(String, Given)>, is_asked: bool| {
        let template = protocol.prepare(send, &Given::Fields(given)).unwrap();
        let template = if is_asked { template } else { protocol.unasked(template) };
        let mut out = Vec::new();
        let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(None);
        protocol.encode(&template, 17, &mut leaf, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(written(vec![text.clone()], true), "Areceipt:17\n\nx");
    assert_eq!(written(vec![list(&[("a", "b")]), text.clone()], true), "Aa:b\nreceipt:17\n\nx");
    assert_eq!(written(vec![list(&[("a", "b")]), text.clone()], false), "Aa:b\n\nx");
    assert_eq!(written(vec![text.clone()], false), "A\nx");
    assert_eq!(written(vec![list(&[("Receipt", "b")]), text], true), "AReceipt:b\n\nx");
    let read = |packet: &[u8]| protocol.decode(packet, &mut Decoded::default()).unwrap();
    assert_eq!(read(b"Ba:b\nReceipt-ID:17\nreceipt-id:18\n\n").correlation, Some(17));
    assert_eq!(read(b"Breceipt:17\n\n").correlation, None);
    assert!(read(b"Breceipt-id:x\n\n").correlation > Some(u64::from(u32::MAX)));
    assert_eq!(read(b"B\n").message, receipt);
    let numbers = |field: Field| {
        let value = vec![text_field("name"), uint("value", 8)];
        Field { ty: Type::Fields(value), ..field }
    };
    let mut wrong = receipts();
    wrong.messages[0].body[0] = numbers(wrong.messages[0].body[0].clone());
    let found = Protocol::compile(wrong).unwrap_err();
    assert_eq!(
        found[0].message.english(),
        "the items of `headers` cannot correlate: their values are not text"
    );
}

fn text_field(id: &str) -> Field {
    field(id, Type::Text(Extent::Delimited(b":".to_vec())))
}

/// Digits before what is no digit, as in Socket.IO.
#[test]
fn a_correlation_of_digits_may_have_none() {
    let id = || role("id", Type::Coded(Coding::Digits), Role::Correlates);
    let data = || field("data", Type::Json(Extent::Rest));
    let protocol = compiled(Declaration {
        transport: Transport::Udp,
        packet: vec![role("kind", Type::Unsigned(8), Role::Selects), body()],
        messages: vec![
            message("event", 65, vec![id(), data()]),
            answer("done", 66, &["event"], vec![id(), data()]),
        ],
        ..Declaration::default()
    });
    let event = protocol.message("event").unwrap();
    let items = || Value::List(vec![Value::Int(1)].into());
    assert_eq!(write(&protocol, "event", &[("data", items())], 7), b"A7[1]");
    let given = fields(&[("data", items())]);
    let template = protocol.unasked(protocol.prepare(event, &given).unwrap());
    let mut out = Vec::new();
    let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(None);
    protocol.encode(&template, 7, &mut leaf, &mut out).unwrap();
    assert_eq!(out, b"A[1]");
    let read = |packet: &[u8]| protocol.decode(packet, &mut Decoded::default());
    assert_eq!(read(b"B12[1]").unwrap().correlation, Some(12));
    assert_eq!(read(b"B[1]").unwrap().correlation, Some(0), "none of ours");
    assert!(read(b"B12").is_err() && read(b"B-1[1]").is_err());
    assert!(read(b"B99999999999999999999[]").is_err());
}
