//! Packets that are XML elements: where they end on a stream, and their parts by paths.

use throng_fuzz::mutations;

use super::*;

fn at(path: &str, id: &str) -> Field {
    Field { path: Some(name(path)), ..field(id, Type::Text(Extent::Rest)) }
}

fn always(path: &str, id: &str, value: &str) -> Field {
    Field { constant: Some(placed(Literal::Text(value.to_owned()))), ..at(path, id) }
}

fn optional(field: Field) -> Field {
    Field { is_optional: true, ..field }
}

fn of(kind: &str, message: Message) -> Message {
    Message { kind: Some(placed(MessageKind::Text(kind.as_bytes().to_vec()))), ..message }
}

/// A small XMPP.
fn declaration() -> Declaration {
    let id = || Field { role: Role::Correlates, ..at("@id", "id") };
    let stream = vec![at("@to", "to"), always("@version", "version", "1.0")];
    let iq = vec![at("@type", "type"), id(), at("node()", "content")];
    let ping = vec![always("ping/@xmlns", "xmlns", "p"), at("@from", "from")];
    let chat = vec![at("@to", "to"), at("body", "text"), optional(at("delay/@at", "at"))];
    let came = vec![
        optional(Field { ty: Type::Unsigned(16), ..at("@n", "n") }),
        optional(at("body", "text")),
        optional(at("error/@code", "code")),
        optional(at("node()", "all")),
    ];
    Declaration {
        format: Some(Format::Xml),
        framing: Framing::Document {
            root: Some(name("s:stream")),
            bytes_max: 300,
            place: PlaceId::default(),
        },
        packet: vec![role("element", Type::Text(Extent::Rest), Role::Selects), body()],
        messages: vec![
            of("s:stream", message("open", 0, stream)),
            of("s:stream", answer("opened", 0, &["open"], vec![at("@id", "stream")])),
            of("/s:stream", message("close", 0, vec![])),
            of("/s:stream", push("closed", 0, vec![])),
            of("iq", message("ask", 0, iq)),
            of(
                "iq",
                push("pinged", 0, [vec![always("@type", "type", "get"), id()], ping].concat()),
            ),
            of("iq", answer("result", 0, &["ask"], vec![id(), always("@type", "type", "result")])),
            of("iq", answer("refused", 0, &["ask"], vec![id(), at("error/text", "text")])),
            of("message", message("say", 0, chat)),
            of("message", push("said", 0, came)),
            Message { kind: None, ..push("other", 0, vec![]) },
        ],
        ..Declaration::default()
    }
}

fn named<'v>(entries: &[(&'v str, &str)]) -> Vec<(&'v str, Value)> {
    entries.iter().map(|(name, value)| (*name, Value::from(*value))).collect()
}

/// The packets of a stream in these parts, and what ended it.
fn packets(protocol: &Protocol, parts: &[&[u8]]) -> (Vec<String>, String) {
    let (mut reader, mut all) = (PacketReader::new(), Vec::new());
    for part in parts {
        let (mut rest, mut room) = (*part, Vec::new());
        loop {
            match reader.next(Records::Declared(protocol), &mut rest, &mut room) {
                Ok(Some(packet)) => all.push(String::from_utf8_lossy(packet).into_owned()),
                Ok(None) => break,
                Err(broken) => return (all, broken.said().english()),
            }
        }
    }
    (all, String::new())
}

/// The same cut at every byte, byte by byte, and whole.
fn in_every_cut(protocol: &Protocol, stream: &[u8]) -> (Vec<String>, String) {
    let whole = packets(protocol, &[stream]);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(packets(protocol, &bytes), whole, "{}", stream.escape_ascii());
    for cut in 0..stream.len() {
        let (one, other) = stream.split_at(cut);
        assert_eq!(packets(protocol, &[one, other]), whole, "{cut} {}", stream.escape_ascii());
    }
    whole
}

#[test]
fn a_packet_ends_with_its_element() {
    let protocol = compiled(declaration());
    let all = [
        "<?xml version='1.0'?><s:stream a='>' b=\"'/>\">",
        "<a/>",
        "<a x='</a>'><b>&lt;</b><!-- </a> -- > --><![CDATA[</a>]] >]]><?a </a>?></a>",
        "<!----><a><a><a/></a></a >",
        "<s:stream\n/>",
        "<message to='\u{e9}/'>\u{4f60}<s:stream></s:stream></message>",
        "</s:stream >",
    ];
    let stream = all.join(" \r\n\t");
    let (found, end) = in_every_cut(&protocol, stream.as_bytes());
    assert_eq!((found.as_slice(), end.as_str()), (&all.map(str::to_owned)[..], ""));
    let joined = all.concat();
    assert_eq!(in_every_cut(&protocol, joined.as_bytes()).0, all);
    let mut split = Vec::new();
    Records::Declared(&protocol).split(stream.as_bytes(), &mut |packet| {
        split.push(String::from_utf8_lossy(packet).into_owned());
        true
    });
    assert_eq!(split, all, "in one message of a transport");
    // Spaces keep a connection alive, and are no packet.
    let mut reader = PacketReader::new();
    for _ in 0..3 {
        let mut spaces = &b" \n "[..];
        let mut room = Vec::new();
        let read = reader.next(Records::Declared(&protocol), &mut spaces, &mut room);
        assert_eq!((read, spaces, reader.heap_bytes()), (Ok(None), &b""[..], 0));
    }
}

#[test]
fn what_is_no_element_ends_the_stream() {
    let protocol = compiled(declaration());
    let deep = "<a>".repeat(65);
    for (stream, told) in [
        ("HTTP/1.1 400", "byte 0 of the packet: expected an XML element, not `H`"),
        ("<!-- --> a", "byte 9 of the packet: expected an XML element, not `a`"),
        ("</a>", "byte 0 of the packet: the element `a` ends here, but it is not open"),
        ("<!DOCTYPE a>", "byte 2 of the packet: the text is not valid XML from here: D"),
        ("<![CDA[", "byte 6 of the packet: the text is not valid XML from here: ["),
        ("< a>", "byte 1 of the packet: the text is not valid XML from here:  "),
        (&deep, "byte 192 of the packet: elements are nested more than 64 levels deep"),
    ] {
        assert_eq!(in_every_cut(&protocol, stream.as_bytes()).1, told, "{stream}");
    }
    let most = format!("<a>{}</a>", "x".repeat(293));
    assert_eq!(in_every_cut(&protocol, most.as_bytes()), (vec![most], String::new()));
    for more in [format!("<a>{}</a>", "x".repeat(294)), format!("<a>{}", "x".repeat(300))] {
        let told = "byte 0 of the packet: the packet has at least 301 bytes; the maximum is 300";
        assert_eq!(in_every_cut(&protocol, more.as_bytes()).1, told);
    }
}

/// Every byte is looked at once, also of a packet that comes byte by byte.
#[test]
fn an_element_byte_by_byte_takes_time_by_its_length() {
    let framing = Framing::Document { root: None, bytes_max: 64 << 20, place: PlaceId::default() };
    let messages = vec![Message { kind: None, ..push("any", 0, vec![]) }];
    let protocol = compiled(Declaration { framing, messages, ..declaration() });
    let stream = format!("<a>{}</a>", "<b c='>'/><!-- > -->".repeat(100_000));
    let mut reader = PacketReader::new();
    let mut room = Vec::new();
    // Quadratic time would be hours.
    let found = stream.as_bytes().chunks(1).find_map(|mut byte| {
        let read = reader.next(Records::Declared(&protocol), &mut byte, &mut room);
        read.unwrap().map(<[u8]>::len)
    });
    assert_eq!(found, Some(stream.len()));
}

fn read(protocol: &Protocol, text: &str) -> (String, Option<u64>) {
    let read = protocol.decode(text.as_bytes(), &mut Decoded::default());
    let packet = read.map_err(|broken| format!("{text}: {}", broken.said().english())).unwrap();
    (protocol.info(packet.message).name.clone(), packet.correlation)
}

#[test]
fn elements_are_written_and_read_by_paths() {
    let protocol = compiled(declaration());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    for (name, given, written) in [
        ("open", vec![("to", "a'b&c")], "<s:stream to='a&apos;b&amp;c' version='1.0'>"),
        ("close", vec![], "</s:stream>"),
        (
            "ask",
            vec![("type", "get"), ("content", "<q a='1'>x</q>")],
            "<iq type='get' id='7'><q a='1'>x</q></iq>",
        ),
        (
            "say",
            vec![("to", "b"), ("text", "<1>")],
            "<message to='b'><body>&lt;1&gt;</body></message>",
        ),
        (
            "say",
            vec![("to", ""), ("text", ""), ("at", "x")],
            "<message to=''><body></body><delay at='x'/></message>",
        ),
    ] {
        assert_eq!(text(write(&protocol, name, &named(&given), 7)), written);
        assert_eq!(packets(&protocol, &[written.as_bytes()]).0, [written], "it is one packet");
    }
    let broken = named(&[("type", "get"), ("content", "<q>")]);
    assert_eq!(
        try_write(&protocol, "ask", &broken, 1),
        Err("content: it is not well-formed XML".to_owned())
    );
    for (packet, message, id) in [
        ("<?xml version='1.0'?><s:stream id='x'>", "opened", None),
        ("</s:stream>", "closed", None),
        ("<iq type='result' id='12'/>", "result", Some(12)),
        ("<iq id=\"&#49;2\"\ntype = 'result'></iq>", "result", Some(12)),
        ("<iq id='5' type='error'><error><text>no</text></error></iq>", "refused", Some(5)),
        ("<message/>", "said", None),
        ("<s:features><a/></s:features>", "other", None),
    ] {
        assert_eq!(read(&protocol, packet), (message.to_owned(), id), "{packet}");
    }
    let ping = "<iq from='s' type='get' id='x-1'><ping xmlns='p'/></iq>";
    assert_eq!(read(&protocol, ping).0, "pinged");
    assert!(read(&protocol, ping).1 > Some(u64::from(u32::MAX)), "none of ours");
    let said = "<message n='7'>a<body>&#x4f60;<b>1</b><![CDATA[<&]]><!-- x --></body>\
                <body>second</body><error code='&quot;'/><error code='2'/></message>";
    for (path, value) in [
        ("n", Value::Int(7)),
        ("text", Value::from("\u{4f60}1<&")),
        ("code", Value::from("\"")),
        ("element", Value::from("message")),
    ] {
        assert!(get(&protocol, said.as_bytes(), path).unwrap().equals(&value), "{path}");
    }
    assert_eq!(get(&protocol, b"<message>a <b/></message>", "all"), Some("a <b/>".into()));
    assert_eq!(get(&protocol, b"<message/>", "text"), None);
}

#[test]
fn what_is_wrong_with_an_element_is_told() {
    let protocol = compiled(declaration());
    for (packet, told) in [
        ("<iq", "byte 3 of the packet: the XML text is incomplete"),
        ("<iq></iq", "byte 8 of the packet: the XML text is incomplete"),
        ("<iq></is>", "byte 7 of the packet: the text is not valid XML from here: s"),
        ("<iq a='1'b='2'/>", "byte 9 of the packet: the text is not valid XML from here: b"),
        ("<iq a=1/>", "byte 6 of the packet: the text is not valid XML from here: 1"),
        ("<iq a='<'/>", "byte 7 of the packet: the text is not valid XML from here: <"),
        ("<iq>&nbsp;</iq>", "byte 4 of the packet: the text is not valid XML from here: &"),
        ("<iq/><iq/>", "byte 5 of the packet: the text is not valid XML from here: <"),
        ("</iq>", "byte 1 of the packet: the text is not valid XML from here: /"),
        ("<message n='70000'/>", "byte 12, `n`: its type is `u16`, but it is 70000"),
        ("<s:stream>", "byte 0, `stream`: the field is missing"),
    ] {
        assert_eq!(wrong(&protocol, packet.as_bytes()), told, "{packet}");
    }
}

#[test]
fn what_can_never_hold_is_found() {
    let mistakes = |declaration: Declaration| -> Vec<String> {
        let found = Protocol::compile(declaration).unwrap_err();
        found.iter().map(|one| format!("{}: {}", one.code, one.message.english())).collect()
    };
    let with = |fields| Declaration {
        messages: vec![of("s:stream", message("m", 0, fields))],
        ..declaration()
    };
    let told = "protocol-bad-path: `a[1]` does not name a part of an element";
    assert_eq!(mistakes(with(vec![at("a[1]", "x")])), [told]);
    let told = "protocol-bad-type: the type of `x` does not exist in XML";
    assert_eq!(mistakes(with(vec![field("x", Type::Json(Extent::Rest))])), [told]);
    let told = "protocol-bad-path: `x` and `y` cannot be in one document";
    for (one, other) in [("a", "a/b"), ("node()", "a"), ("a/node()", "a"), ("@a", "@a")] {
        assert_eq!(mistakes(with(vec![at(one, "x"), at(other, "y")])), [told], "{one} {other}");
    }
    compiled(with(vec![at("a", "x"), at("a/@b", "y"), at("@c", "z")]));
    let nameless = Declaration {
        messages: [declaration().messages, vec![Message { kind: None, ..message("m", 0, vec![]) }]]
            .concat(),
        ..declaration()
    };
    let told = "protocol-bad-kind: `m` has no `kind`, so its element has no name";
    assert_eq!(mistakes(nameless), [told]);
    let spaced =
        Declaration { messages: vec![of("a b", message("m", 0, vec![]))], ..declaration() };
    let told = "protocol-bad-kind: `a b` is not the name of an element";
    assert_eq!(mistakes(spaced)[0], told);
    let number = role("element", Type::Unsigned(8), Role::Selects);
    let told = "protocol-bad-path: `element` selects the message, so it is the element's name";
    let numbers = Declaration { packet: vec![number, body()], ..declaration() };
    assert_eq!(mistakes(numbers)[0], told);
    let rootless =
        Declaration { messages: vec![of("a", message("m", 0, vec![]))], ..declaration() };
    let told = "protocol-bad-kind: no message has the kind `s:stream`, which is the `stream`";
    assert_eq!(mistakes(rootless), [told]);
    let told = "protocol-no-length: `frame: xml` requires `format: xml`";
    let plain = Declaration { format: None, ..one(vec![text("a")]) };
    assert_eq!(mistakes(Declaration { framing: declaration().framing, ..plain }), [told]);
}

/// Another parser takes a beginning of the stream exactly where a packet ends, and reads the same
/// values.
#[test]
fn fuzz_elements_end_where_another_parser_ends_them() {
    let corpus: &[&[u8]] = &[
        b"<a x='1' y=\">\"><b>t&amp;&#x41;</b><!-- - --><c/><![CDATA[ ]] ]]></a><d/>",
        b"<?xml version='1.0'?> <message n='7'><body>hi</body><error code='4'/></message>",
        b"<a><a><a></a></a>&lt;&gt;</a>",
    ];
    let framing = Framing::Document { root: None, bytes_max: 1024, place: PlaceId::default() };
    let messages = declaration().messages.into_iter().filter(|one| one.push).collect();
    let protocol = compiled(Declaration { framing, messages, ..declaration() });
    let mut decoded = Decoded::default();
    mutations(corpus, |input, _| {
        let (found, _) = in_every_cut(&protocol, input);
        for packet in &found {
            let read = protocol.decode(packet.as_bytes(), &mut decoded);
            let parts = protocol.describe(packet.as_bytes(), &decoded);
            assert!(parts.iter().all(|part| part.end <= packet.len()), "{parts:?}");
            let parsed = roxmltree::Document::parse(packet);
            let Ok(document) = parsed else { continue };
            let element = document.root_element();
            let number = element.attribute("n").map_or(Ok(0), str::parse::<u16>);
            let is_message = element.tag_name().name() == "message";
            assert!(read.is_ok() || !is_message || number.is_err(), "{packet}");
            for (at, _) in packet.char_indices().skip(1) {
                assert!(roxmltree::Document::parse(&packet[..at]).is_err(), "{packet} {at}");
            }
            let Ok(read) = read else { continue };
            let body = element.children().find(|child| child.has_tag_name("body"));
            let all = |node: roxmltree::Node<'_, '_>| -> String {
                let texts = node.descendants().filter(roxmltree::Node::is_text);
                texts.filter_map(|text| text.text()).collect()
            };
            if protocol.info(read.message).name == "said" && !packet.contains('\r') {
                let path = protocol.field(read.message, "text").unwrap();
                let value = protocol.value(packet.as_bytes(), &decoded, &path);
                assert_eq!(value, body.map(|body| Value::from(all(body))), "{packet}");
            }
        }
    });
}
