//! Documents of all formats: RFC 8949's examples, MessagePack's types, and what is wrong.

use super::*;

const BINARY: [Format; 2] = [Format::Cbor, Format::MessagePack];

#[test]
fn what_is_json_passes_and_what_is_not_is_found() {
    let good = [
        "0",
        "-0.5e+7",
        "1E9",
        "\"\"",
        "\"a\\n\\u00e9\\ud83d\\ude00é\"",
        "true",
        " null ",
        "[]",
        "[ ]",
        "[1, 2]",
        "{}",
        "{\"a\" : [ {\"b\":false} ] , \"c\":1}",
    ];
    for text in good {
        assert_eq!(Format::Json.check(text.as_bytes()), Ok(()), "{text}");
    }
    let bad = [
        ("", 0),
        ("01", 1),
        ("-", 0),
        ("1.", 1),
        ("1e", 1),
        ("+1", 0),
        ("\"a", 2),
        ("nul", 0),
        ("[1,]", 3),
        ("{a:1}", 1),
        ("{\"a\" 1}", 5),
        ("1 2", 2),
        ("\"\n\"", 1),
        ("\"\\x\"", 1),
        ("\"\\ud83d\"", 1),
        ("\"\\ude00\"", 1),
        ("[1}", 2),
    ];
    for (text, at) in bad {
        assert_eq!(Format::Json.check(text.as_bytes()), Err(at), "{text}");
    }
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(Format::Json.check(deep(DEPTH_MAX).as_bytes()), Ok(()));
    assert!(Format::Json.check(deep(DEPTH_MAX + 1).as_bytes()).is_err());
    assert!(Format::Json.check("[".repeat(1_000_000).as_bytes()).is_err());
}

#[test]
fn parts_are_found_where_they_lie() {
    let text = br#" {"a": [1, {"b": "x"}], "\u0062": 3, "a": [4, {"b" : "y" }, []]} "#;
    let part = |steps: &[Inner]| Format::Json.find(text, steps).map(|range| &text[range]);
    let key = |key: &str| Inner::Key(key.into());
    assert_eq!(part(&[key("a"), Inner::Index(1), key("b")]), Some(&b"\"y\""[..]));
    assert_eq!(part(&[key("b")]), Some(&b"3"[..]));
    assert_eq!(part(&[key("a"), Inner::Index(2), Inner::Index(0)]), None);
    assert_eq!(part(&[key("a"), Inner::Index(3)]), None);
    assert_eq!(part(&[key("c")]), None);
    assert_eq!(part(&[Inner::Index(0)]), None);
}

#[test]
fn fuzz_what_passes_is_read_by_another_parser() {
    let corpus: &[&[u8]] = &[
        br#"{"a": [1, -2.5e3, {"b": "x\u00e9\ud83d\ude00"}], "c": null, "d": [true, false]}"#,
        b"[[[[[1]]]], 0, \"\\\\\", {}]",
    ];
    throng_fuzz::mutations(corpus, |input, _| {
        if std::str::from_utf8(input).is_err() {
            return;
        }
        match (Format::Json.check(input), Value::parse_json(input)) {
            (Ok(()), Err(error)) => assert!(error.contains("out of range"), "{error}"),
            // The other parser reads half of a surrogate pair as U+FFFD; here it is a mistake.
            (Err(at), Ok(value)) => {
                let is_lone = format!("{value:?}").contains('\u{fffd}');
                assert!(is_lone, "refused at {at}: {value:?}");
            }
            _ => {}
        }
    });
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a document, which is JSON that people are shown.
fn read(format: Format, document: &[u8]) -> String {
    assert_eq!(format.check(document), Ok(()), "{}", hex(document));
    for cut in 0..document.len() {
        let at = format.check(&document[..cut]).expect_err("a beginning is not a document");
        let said = format.wrong(&document[..cut], at).english();
        assert!(said.contains("incomplete"), "{said}: {} at {cut}", hex(document));
        let Ok(Extent::Needs(needed)) =
            format.extent(&[], &document[..cut], &mut ExtentSearch::default())
        else {
            panic!("{} at {cut}", hex(document))
        };
        assert!(needed > cut && needed <= document.len(), "{} at {cut}: {needed}", hex(document));
    }
    let whole = format.extent(&[], document, &mut ExtentSearch::default());
    assert!(matches!(whole, Ok(Extent::Complete(end)) if end == document.len()));
    let mut out = Vec::new();
    format.value(document).unwrap().write_json(&mut out);
    String::from_utf8(out).unwrap()
}

/// The examples of RFC 8949, appendix A.
#[test]
fn examples_of_the_standard_are_read() {
    for (written, value) in [
        ("00", "0"),
        ("17", "23"),
        ("1818", "24"),
        ("1903e8", "1000"),
        ("1a000f4240", "1000000"),
        ("1b000000e8d4a51000", "1000000000000"),
        ("1bffffffffffffffff", "18446744073709551615"),
        ("20", "-1"),
        ("3863", "-100"),
        ("3903e7", "-1000"),
        ("f4", "false"),
        ("f5", "true"),
        ("f6", "null"),
        ("f7", "null"),
        ("f0", "null"),
        ("f8ff", "null"),
        ("c074323031332d30332d32315432303a30343a30305a", "\"2013-03-21T20:04:00Z\""),
        ("c11a514b67b0", "1363896240"),
        ("60", "\"\""),
        ("62225c", "\"\\\"\\\\\""),
        ("64f0908591", "\"\u{10151}\""),
        ("83010203", "[1,2,3]"),
        ("8301820203820405", "[1,[2,3],[4,5]]"),
        ("a201020304", "{\"1\":2,\"3\":4}"),
        ("a26161016162820203", "{\"a\":1,\"b\":[2,3]}"),
        ("7f657374726561646d696e67ff", "\"streaming\""),
        ("9fff", "[]"),
        ("9f018202039f0405ffff", "[1,[2,3],[4,5]]"),
        ("83018202039f0405ff", "[1,[2,3],[4,5]]"),
        ("bf61610161629f0203ffff", "{\"a\":1,\"b\":[2,3]}"),
        ("826161bf61626163ff", "[\"a\",{\"b\":\"c\"}]"),
    ] {
        assert_eq!(read(Format::Cbor, &bytes(written)), value, "{written}");
    }
    for (written, value) in [
        ("f93e00", 1.5),
        ("f97bff", 65_504.0),
        ("f9c400", -4.0),
        ("f90001", 5.960464477539063e-8),
        ("f90400", 0.00006103515625),
        ("fa47c35000", 100_000.0),
        ("fb3ff199999999999a", 1.1),
        ("fbc010666666666666", -4.1),
        ("f9fc00", f64::NEG_INFINITY),
    ] {
        assert_eq!(Format::Cbor.value(&bytes(written)), Some(Value::Float(value)), "{written}");
    }
    let embedded = Format::Cbor.value(&bytes("d818456449455446"));
    assert_eq!(embedded, Some(Value::from(&b"dIETF"[..])));
    let pieces = Format::Cbor.value(&bytes("5f42010243030405ff"));
    assert_eq!(pieces, Some(Value::from(&[1u8, 2, 3, 4, 5][..])));
    let nothing = Format::Cbor.value(&bytes("f97e00"));
    assert!(matches!(nothing, Some(Value::Float(number)) if number.is_nan()));
}

/// One of each type of MessagePack's specification.
#[test]
fn every_type_of_message_pack_is_read() {
    for (written, value) in [
        ("7f", "127"),
        ("e0", "-32"),
        ("ccff", "255"),
        ("cd0100", "256"),
        ("ce00010000", "65536"),
        ("cfffffffffffffffff", "18446744073709551615"),
        ("d080", "-128"),
        ("d18000", "-32768"),
        ("d280000000", "-2147483648"),
        ("d38000000000000000", "-9223372036854775808"),
        ("c0", "null"),
        ("c2", "false"),
        ("c3", "true"),
        ("ca3fc00000", "1.5"),
        ("cb3ff199999999999a", "1.1"),
        ("a3616263", "\"abc\""),
        ("d903616263", "\"abc\""),
        ("da0003616263", "\"abc\""),
        ("db00000003616263", "\"abc\""),
        ("93010203", "[1,2,3]"),
        ("dc000101", "[1]"),
        ("dd0000000101", "[1]"),
        ("82a161 01 05 c3", "{\"a\":1,\"5\":true}"),
        ("de0001a16101", "{\"a\":1}"),
        ("df00000001a16101", "{\"a\":1}"),
        ("d40561", "null"),
        ("d6ff00000000", "null"),
        ("93 01 c70305 616263 02", "[1,null,2]"),
        ("c8000105 61", "null"),
        ("c90000000105 61", "null"),
    ] {
        assert_eq!(read(Format::MessagePack, &bytes(written)), value, "{written}");
    }
    for written in ["c403010203", "c50003010203", "c600000003010203"] {
        let value = Format::MessagePack.value(&bytes(written));
        assert_eq!(value, Some(Value::from(&[1u8, 2, 3][..])));
    }
}

#[test]
fn what_is_written_is_short_and_read_again() {
    let numbers = [0, 23, 24, 127, 128, 255, 256, 65_535, 65_536, 1 << 32, i64::MAX];
    let negative = [-1, -24, -25, -32, -33, -128, -129, -32_768, -32_769, i64::MIN];
    let mut values: Vec<Value> = numbers.into_iter().chain(negative).map(Value::Int).collect();
    values.extend([Value::Null, true.into(), false.into(), Value::UInt(u64::MAX)]);
    values.extend([Value::Float(-0.5), "é".into(), "x".repeat(300).into()]);
    values.extend([Value::from("x".repeat(70_000)), Value::from(&[7u8; 300][..])]);
    values.push(vec![Value::Int(1); 20].into());
    values.push(vec![("k".into(), Value::Int(1)), ("l".into(), values.clone().into())].into());
    for format in BINARY {
        for value in &values {
            let mut out = Vec::new();
            format.write(value, &mut out);
            assert_eq!(format.check(&out), Ok(()));
            assert_eq!(format.value(&out).as_ref(), Some(value));
        }
    }
    let written = |format: Format, value: Value| {
        let mut out = Vec::new();
        format.write_any(&value, &mut out);
        hex(&out)
    };
    let both = |value: Value| BINARY.map(|format| written(format, value.clone()));
    assert_eq!(both(Value::Int(-500)), ["3901f3", "d1fe0c"]);
    assert_eq!(both(Value::Int(200)), ["18c8", "ccc8"]);
    assert_eq!(both(Value::from(&[1u8][..])), ["4101", "c40101"]);
    assert_eq!(both("{\"a\": [1]}".into()), ["a161618101", "81a1619101"]);
    assert_eq!(both("{a".into()), ["627b61", "a27b61"]);
}

#[test]
fn what_is_not_a_document_is_told() {
    let deep = |open: u8, depth: usize| [vec![open; depth], vec![1]].concat();
    let told = |format: Format, document: &[u8]| {
        let at = format.check(document).unwrap_err();
        format!("{at}: {}", format.wrong(document, at).english())
    };
    for (written, expected) in [
        ("821c", "1: this is not valid CBOR: 0x1c"),
        ("ff", "0: this is not valid CBOR: 0xff"),
        ("bf01ff", "2: this is not valid CBOR: 0xff"),
        ("7f4101ff", "1: this is not valid CBOR: 0x41"),
        ("5f5f41ffff", "1: this is not valid CBOR: 0x5f"),
        ("3f", "0: this is not valid CBOR: 0x3f"),
        ("f818", "0: this is not valid CBOR: 0xf8"),
        ("8161ff", "1: the text is not valid UTF-8"),
        ("0101", "1: this is not valid CBOR: 0x01"),
        ("9bffffffffffffffff01", "10: the CBOR data is incomplete"),
        ("5bffffffffffffffff01", "0: the CBOR data is incomplete"),
    ] {
        assert_eq!(told(Format::Cbor, &bytes(written)), expected, "{written}");
    }
    assert_eq!(told(Format::MessagePack, &bytes("91c1")), "1: this is not valid MessagePack: 0xc1");
    let too_deep = "64: lists and maps are nested more than 64 levels deep";
    for (format, open) in [(Format::Cbor, 0x81), (Format::MessagePack, 0x91)] {
        assert_eq!(format.check(&deep(open, DEPTH_MAX)), Ok(()));
        assert_eq!(told(format, &deep(open, DEPTH_MAX + 1)), too_deep);
        assert_eq!(told(format, &vec![open; 1_000_000]), too_deep);
    }
    // A chain of tags is one item, however long it is.
    assert_eq!(Format::Cbor.check(&deep(0xc1, 1_000_000)), Ok(()));
}

/// What passes a check has a value, ends where it should, and is the same when it is written again.
#[test]
fn fuzz_documents_that_are_binary() {
    let corpus: Vec<Vec<u8>> = [
        "bf61610161629f0203ffff",
        "a2 61 74 d8 18 45 6449455446 7f 61 69 61 64 ff fb3ff199999999999a",
        "82a161 93 01 c70305 616263 02 a164 cb3ff199999999999a",
        "de0002 a16101 d90162 c403010203",
    ]
    .map(bytes)
    .into();
    let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
    let path = [Inner::Key("a".into()), Inner::Index(1)];
    let mut wanted = Wanted::default();
    wanted.add(&path);
    wanted.number(&mut 0);
    throng_fuzz::mutations(&corpus, |input, _| {
        for format in BINARY {
            let mut found = [ABSENT];
            let checked = format.check(input);
            assert_eq!(format.scan(&[], input, &wanted, &mut found), checked);
            match (checked, format.extent(&[], input, &mut ExtentSearch::default())) {
                (Ok(()), Ok(Extent::Complete(end))) => assert_eq!(end, input.len()),
                (Err(at), Ok(Extent::Complete(end))) => assert_eq!(at, end),
                (Err(_), Ok(Extent::Needs(needed))) => assert!(needed > input.len()),
                (Err(at), Err((place, _))) => assert_eq!(at, place),
                (Ok(()), _) => panic!("it is complete"),
            }
            let Ok(()) = checked else { continue };
            let span = format
                .find(input, &path)
                .map_or(ABSENT, |part| (part.start as u32, part.end as u32));
            assert_eq!(found[0], span);
            let value = format.value(input).expect("a value");
            let mut again = Vec::new();
            format.write(&value, &mut again);
            assert_eq!(format.check(&again), Ok(()));
            let read = format.value(&again).expect("a value");
            assert_eq!(format!("{value:?}"), format!("{read:?}"));
        }
    });
}
