//! Packets that are JSON documents: fields by paths, in any order and with any spaces.

use throng_fuzz::mutations;

use super::super::path;
use super::super::wanted::{ABSENT, Inner, Wanted};
use super::*;
use crate::fields::Parts;

fn at(path: &str, field: Field) -> Field {
    Field { path: Some(name(path)), ..field }
}

fn string(id: &str) -> Field {
    field(id, Type::Text(Extent::Rest))
}

fn any(id: &str) -> Field {
    field(id, Type::Json(Extent::Rest))
}

fn optional(field: Field) -> Field {
    Field { is_optional: true, ..field }
}

fn correlates(field: Field) -> Field {
    Field { role: Role::Correlates, ..field }
}

fn of_kind(kind: &str, message: Message) -> Message {
    Message { kind: Some(placed(MessageKind::Text(kind.as_bytes().to_vec()))), ..message }
}

fn without_kind(message: Message) -> Message {
    Message { kind: None, ..message }
}

fn documents(packet: Vec<Field>, messages: Vec<Message>) -> Declaration {
    Declaration {
        transport: Transport::WebSocket,
        is_text: true,
        format: Some(Format::Json),
        packet,
        messages,
        ..Declaration::default()
    }
}

/// `[type, id, …]`.
pub(super) fn calls() -> Declaration {
    let action = || at("[2]", string("action"));
    let payload = |path: &str| at(path, any("payload"));
    documents(
        vec![
            at("[0]", role("type", Type::Unsigned(8), Role::Selects)),
            at("[1]", correlates(string("id"))),
            body(),
        ],
        vec![
            message("call", 2, vec![action(), payload("[3]")]),
            answer("result", 3, &["call"], vec![payload("[2]")]),
            answer("error", 4, &["call"], vec![at("[2]", string("code")), payload("[4]")]),
            push("asked", 2, vec![action(), payload("[3]")]),
            answer("told", 3, &["asked"], vec![payload("[2]")]),
        ],
    )
}

/// Objects with a type, of which some have a number of their own.
pub(super) fn objects() -> Declaration {
    let id = || correlates(string("id"));
    documents(
        vec![optional(role("type", Type::Text(Extent::Rest), Role::Selects)), body()],
        vec![
            of_kind("ask", message("ask", 0, vec![id(), at("data.text", string("text"))])),
            of_kind("say", answer("refused", 0, &["ask"], vec![id(), uint("code", 16)])),
            of_kind(
                "say",
                answer("said", 0, &["ask"], vec![id(), optional(at("data.list[1]", any("one")))]),
            ),
            without_kind(push("other", 0, vec![optional(field("on", Type::Bool))])),
            without_kind(message("hello", 0, vec![field("at", Type::Float64)])),
        ],
    )
}

fn read(protocol: &Protocol, text: &str) -> (String, Option<u64>) {
    let read = protocol.decode(text.as_bytes(), &mut Decoded::default());
    let packet = read.map_err(|broken| format!("{text}: {}", broken.said().english())).unwrap();
    (protocol.info(packet.message).name.clone(), packet.correlation)
}

#[test]
fn lists_are_written_and_read_by_index() {
    let calls = compiled(calls());
    let payload = Value::parse_json(br#"{"a": 1}"#).unwrap();
    let given = [("action", Value::from("Be\"at")), ("payload", payload)];
    assert_eq!(write(&calls, "call", &given, 17), br#"[2,"17","Be\"at",{"a":1}]"#);
    let spaced = " [ 3 , \"17\",\n{\"status\" : \"ok\"} ] ";
    assert_eq!(read(&calls, spaced), ("result".to_owned(), Some(17)));
    assert_eq!(get(&calls, spaced.as_bytes(), "payload.status"), Some(Value::from("ok")));
    assert_eq!(get(&calls, spaced.as_bytes(), "id"), Some(Value::from("17")));
    // Items that no field names are sent as null, and may be anything.
    let error = [("code", Value::from("E")), ("payload", Value::Null)];
    assert_eq!(write(&calls, "error", &error, 1), br#"[4,"1","E",null,null]"#);
    assert_eq!(read(&calls, r#"[4,"2","E",[[]],{}, 7]"#), ("error".to_owned(), Some(2)));
    // An id that is none of ours is the same whenever it is the same text.
    let (asked, id) = read(&calls, r#"[2, "e5-\u0031", "Clear", {}]"#);
    assert_eq!((asked.as_str(), id > Some(u64::from(u32::MAX))), ("asked", true));
    let foreign = |text: &str| read(&calls, &format!(r#"[2, "{text}", "Clear", {{}}]"#)).1;
    assert_eq!(foreign("e5-1"), foreign("e5-1"));
    assert_ne!(foreign("e5-1"), foreign("e5-2"));
    for text in ["017", "", "99999999999999999999999", "+1"] {
        assert!(foreign(text) > Some(u64::from(u32::MAX)), "{text}");
    }
    let told = [("id", Value::from("e5-1")), ("payload", Value::from(true))];
    assert_eq!(write(&calls, "told", &told, 9), br#"[3,"e5-1",true]"#);
}

#[test]
fn objects_are_read_in_any_order() {
    let objects = compiled(objects());
    assert_eq!(
        write(&objects, "ask", &[("text", Value::from("hé\n"))], 5),
        "{\"type\":\"ask\",\"id\":\"5\",\"data\":{\"text\":\"hé\\n\"}}".as_bytes()
    );
    assert_eq!(write(&objects, "hello", &[("at", Value::Float(1.5))], 5), br#"{"at":1.5}"#);
    for (text, message, id) in [
        (r#"{"type":"say","id":"5"}"#, "said", Some(5)),
        (
            r#"{ "id" : "5" , "data" : {"list":[{}, {"type": 1}]}, "type" : "say" }"#,
            "said",
            Some(5),
        ),
        (
            r#"{"code": 3, "more": {"id": "6"}, "\u0069d": "5", "type": "s\u0061y"}"#,
            "refused",
            Some(5),
        ),
        (r#"{"type":"say","id":"4","id":"5"}"#, "said", Some(5)),
        (r#"{"type":"new","on":true}"#, "other", None),
        (r#"{"type":"ask","on":true}"#, "other", None),
        (r#"{}"#, "other", None),
    ] {
        assert_eq!(read(&objects, text), (message.to_owned(), id), "{text}");
    }
    let one = br#"{"data": {"list": [0, {"a": [1]}]}, "type": "say", "id": "x"}"#;
    assert_eq!(get(&objects, one, "one.a[0]"), Some(Value::Int(1)));
    assert_eq!(get(&objects, br#"{"type":"say","id":"1"}"#, "one"), None);
    let twice = br#"{"data": {"list": [0, 1]}, "data": {}, "type": "say", "id": "x"}"#;
    assert_eq!(get(&objects, twice, "one"), None, "the last `data` counts");
    assert_eq!(objects.correlator(objects.message("ask").unwrap()), Some("id"));
    assert_eq!(objects.correlator(objects.message("other").unwrap()), None);
    assert_eq!(objects.correlation_max(objects.message("hello").unwrap()), 0);
}

#[test]
fn errors_in_documents_are_reported() {
    let (calls, objects) = (compiled(calls()), compiled(objects()));
    for (text, told) in [
        ("", "byte 0 of the packet: the packet is empty"),
        ("[3, \"1\", {}", "byte 11 of the packet: the JSON text is incomplete"),
        ("[3, \"1\" {}]", "byte 8 of the packet: the text is not valid JSON from here: {"),
        ("[5, \"1\", {}]", "byte 1, `type`: no message has the kind 5"),
        ("[\"3\", \"1\", {}]", "byte 1, `type`: no message has the kind \"3\""),
        ("[3, \"1\"]", "byte 0, `payload`: the field is missing"),
        ("[3, 1, {}]", "byte 4, `id`: its type is `str`, but it is 1"),
        ("{}", "byte 0, `type`: no message has these fields"),
    ] {
        assert_eq!(wrong(&calls, text.as_bytes()), told, "{text}");
    }
    assert_eq!(
        wrong(&calls, b"[3, \"\xff\", 1]"),
        "byte 5 of the packet: the text is not UTF-8: byte 0xff"
    );
    for (text, told) in [
        (r#"{"type":"say"}"#, "byte 0, `id`: the field is missing"),
        (
            r#"{"type":"say","id":"1","code":70000}"#,
            "byte 30, `code`: its type is `u16`, but it is 70000",
        ),
        (r#"{"on":1}"#, "byte 6, `on`: its type is `bool`, but it is 1"),
    ] {
        assert_eq!(wrong(&objects, text.as_bytes()), told, "{text}");
    }
    let deep = format!("[3, \"1\", {}1{}]", "[".repeat(64), "]".repeat(64));
    assert!(wrong(&calls, deep.as_bytes()).contains("not valid JSON"), "bounded depth");
    let long = [("action", Value::from("x".repeat(17 << 20))), ("payload", Value::Null)];
    assert!(try_write(&calls, "call", &long, 1).unwrap_err().contains("the maximum is"));
}

#[test]
fn contradictory_documents_are_rejected() {
    let mistakes = |declaration: Declaration| -> Vec<String> {
        let found = Protocol::compile(declaration).unwrap_err();
        found.iter().map(|one| format!("{}: {}", one.code, one.message.english())).collect()
    };
    let with =
        |field: Field| documents(vec![body()], vec![without_kind(message("m", 0, vec![field]))]);
    let repeated = Field { repeat: Some(Repeat::Rest), ..any("a") };
    assert_eq!(
        mistakes(with(repeated)),
        ["protocol-bad-type: `a` is a part of a document, so it cannot have `repeat`"]
    );
    assert_eq!(
        mistakes(with(field("a", Type::Bytes(Extent::Rest)))),
        ["protocol-bad-type: the type of `a` does not exist in JSON"]
    );
    assert_eq!(mistakes(with(at("a..b", any("a")))), ["protocol-bad-path: a name is missing"]);
    assert_eq!(
        mistakes(with(at("[256]", any("a")))),
        ["protocol-bad-path: `[256]` does not name a part of a document"]
    );
    for (one, other) in [("a", "a.b"), ("a.b", "a.b"), ("a[0]", "a.b")] {
        let fields = vec![at(one, any("x")), at(other, any("y"))];
        assert_eq!(
            mistakes(documents(vec![body()], vec![without_kind(message("m", 0, fields))])),
            ["protocol-bad-path: `x` and `y` cannot be in one document"],
            "{one} {other}"
        );
    }
    let two = |one: Vec<Field>, other: Vec<Field>| {
        let messages = vec![push("one", 1, one), push("other", 1, other)];
        documents(vec![role("type", Type::Unsigned(8), Role::Selects), body()], messages)
    };
    let hidden = ["protocol-kind-twice: `one` and `other` cannot be told apart"];
    assert_eq!(mistakes(two(vec![any("a")], vec![any("a"), any("b")])), hidden);
    assert_eq!(mistakes(two(vec![optional(any("b"))], vec![any("a")])), hidden);
    compiled(two(vec![any("a"), any("b")], vec![any("a")]));
    let constant = |value| Field { constant: Some(placed(Literal::Int(value))), ..any("a") };
    compiled(two(vec![constant(1)], vec![constant(2)]));
    assert_eq!(mistakes(two(vec![constant(1)], vec![constant(1)])), hidden);
    let stream = Declaration { transport: Transport::Tcp, ..calls() };
    let told = "protocol-no-length: the protocol does not define where a packet ends";
    assert_eq!(mistakes(stream.clone()), [told]);
    let fixed = Declaration { framing: Framing::Fixed(placed(5)), ..stream };
    let told = "protocol-no-length: the end of a document cannot be declared in this way";
    assert_eq!(mistakes(fixed), [told]);
    let twice = vec![correlates(string("id")), correlates(string("ref"))];
    assert_eq!(
        mistakes(documents(vec![body()], vec![without_kind(message("m", 0, twice))])),
        ["protocol-role-twice: two fields of the packet have the same purpose: correlation"]
    );
}

/// A message may have a correlation of its own, as a number or as text.
#[test]
fn messages_may_have_their_own_correlation() {
    let id = |ty| role("id", ty, Role::Correlates);
    let integer = Type::Bytes(Extent::Prefixed { prefix: Prefix::Unsigned(8), bytes_max: None });
    let line = Type::Text(Extent::Delimited(b" ".to_vec()));
    let protocol = compiled(Declaration {
        transport: Transport::Udp,
        packet: vec![role("kind", Type::Unsigned(8), Role::Selects), body()],
        messages: vec![
            message("plain", 1, vec![uint("x", 8)]),
            message("ask", 2, vec![uint("x", 8), id(Type::Unsigned(16))]),
            answer("told", 3, &["ask"], vec![id(line), uint("x", 8)]),
            answer("done", 4, &["ask"], vec![id(integer)]),
        ],
        ..Declaration::default()
    });
    let x = [("x", Value::Int(9))];
    assert_eq!(write(&protocol, "plain", &x, 7), b"\x01\x09");
    assert_eq!(write(&protocol, "ask", &x, 7), b"\x02\x09\0\x07");
    assert!(try_write(&protocol, "ask", &x, 70_000).is_err());
    assert_eq!(write(&protocol, "told", &x, 70_000), b"\x0370000 \x09");
    let correlation = |packet: &[u8]| protocol.decode(packet, &mut Decoded::default()).unwrap();
    assert_eq!(correlation(b"\x01\x09").correlation, None);
    assert_eq!(correlation(b"\x02\x09\0\x07").correlation, Some(7));
    assert_eq!(correlation(b"\x0370000 \x09").correlation, Some(70_000));
    for (number, integer) in [
        (0, &b"\x01\0"[..]),
        (127, b"\x01\x7f"),
        (128, b"\x02\0\x80"),
        (70_000, b"\x03\x01\x11\x70"),
        (0xffff_ffff, b"\x05\0\xff\xff\xff\xff"),
    ] {
        let done = [b"\x04", integer].concat();
        assert_eq!(write(&protocol, "done", &[], number), done);
        assert_eq!(correlation(&done).correlation, Some(number));
    }
    assert!(correlation(b"\x04\x01\xff").correlation > Some(u64::from(u32::MAX)));
    assert!(correlation(b"\x03a7 \x09").correlation > Some(u64::from(u32::MAX)));
}

fn steps(written: &str) -> Vec<Inner> {
    let mut parts = Parts::new(written).unwrap();
    std::iter::from_fn(|| parts.next().unwrap().map(path::json_step)).collect()
}

/// One pass finds what a search for each path finds, and refuses what a check refuses.
#[test]
fn fuzz_one_pass_agrees_with_separate_searches() {
    let paths = ["type", "id", "[0]", "[1]", "data", "data.list[1]", "data.text", "a.b.c", "a.b"];
    let paths: Vec<Vec<Inner>> = paths.into_iter().map(steps).collect();
    let (mut wanted, mut slots) = (Wanted::default(), 0);
    paths.iter().for_each(|path| wanted.add(path));
    wanted.number(&mut slots);
    let corpus: &[&[u8]] = &[
        br#"{"type": "say", "id": "5", "data": {"list": [0, {"a": 1}], "text": "x"}}"#,
        br#"[3, "17", {"a": {"b": {"c": [1]}}}, null]"#,
        br#"{"a": {"b": {"c": 1}}, "\u0061": {"b": 2}, "data": [1, 2], "id": -1.5e3}"#,
    ];
    let (calls, objects) = (compiled(calls()), compiled(objects()));
    let mut decoded = Decoded::default();
    mutations(corpus, |input, _| {
        for protocol in [&calls, &objects] {
            let read = protocol.decode(input, &mut decoded);
            let parts = protocol.describe(input, &decoded);
            let read = read.or_else(|_| protocol.decode_sent(input, &mut decoded));
            for part in parts.iter().filter(|_| read.is_ok()) {
                assert!(part.end <= input.len(), "{part:?}");
            }
        }
        if std::str::from_utf8(input).is_err() {
            return;
        }
        let mut found = vec![ABSENT; usize::from(slots)];
        assert_eq!(Format::Json.scan(&[], input, &wanted, &mut found), Format::Json.check(input));
        if Format::Json.check(input).is_err() {
            return;
        }
        for path in &paths {
            let (start, end) = found[usize::from(wanted.find(path).unwrap())];
            let searched = Format::Json.find(input, path);
            let span = searched.map_or(ABSENT, |part| (part.start as u32, part.end as u32));
            assert_eq!((start, end), span, "{path:?} in {}", input.escape_ascii());
        }
    });
}
