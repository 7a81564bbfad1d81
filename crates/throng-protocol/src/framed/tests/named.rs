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
