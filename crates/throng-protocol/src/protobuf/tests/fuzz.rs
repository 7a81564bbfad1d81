//! Damaged messages, descriptors and paths: answered, within limits, and never with a panic.

use prost_reflect::DynamicMessage;
use serde_json::json;

use super::*;
use crate::fields::number::write_varint;

/// One of everything.
fn everything() -> serde_json::Value {
    json!({
        "scalars": {"a_double": 1.5, "an_int64": -1, "a_string": "x", "some_bytes": "AAEC"},
        "lists": {"packed": [1, 2, 300], "loose": [-1, 5], "colours": ["RED", "DARK"],
            "trees": [{"name": "a", "scalars": {"a_bool": true}}, {}]},
        "maps": {"labels": {"a": "b"}, "by_number": {"7": {"maybe": 0}}, "colours": {"true": 2}},
        "tree": {"left": {"right": {"text": "deep"}}},
        "known": {"at": "2026-01-31T10:00:00.5Z", "took": "-1.5s", "mask": "aB,c",
            "extra": {"a": [1, null, {"b": "c"}]}, "any_value": null, "list": [true],
            "packed": {"@type": "t/shapes.v1.Tree", "name": "y"}, "nothing": {},
            "an_int64": 5, "values": {"k": 1}},
        "all": [{"tree": {"name": "z"}}],
    })
}

#[test]
fn damaged_messages_are_read_like_the_reference() {
    let (pool, schema) = (pool(), schema());
    let message = schema.message("shapes.v1.All").unwrap();
    let descriptor = pool.get_message_by_name("shapes.v1.All").unwrap();
    let good = bytes_of(&schema, "shapes.v1.All", &everything().to_string());
    let paths =
        ["", "lists.trees[1].scalars.a_bool", "maps.by_number.7.maybe", "known.extra.a[2].b"];
    let paths: Vec<FieldPath> =
        paths.iter().map(|path| schema.field(message, path).unwrap()).collect();
    throng_fuzz::mutations(&[&good], |input, _| {
        let checked = schema.check(message, input);
        if let Err(wrong) = &checked {
            assert!(wrong.position <= input.len() && !wrong.reason.is_empty());
        }
        // What we take, others take, but for what is in an `Any`.
        if checked.is_ok() {
            DynamicMessage::decode(descriptor.clone(), input).expect("they take it too");
        }
        for path in &paths {
            let _ = schema.value(input, path);
        }
    });
}

/// Found by a fuzz run: prost reads a tag as 32 bits, and so does everybody else.
#[test]
fn field_numbers_are_limited_by_32_bit_tags() {
    let schema = schema();
    let message = schema.message("shapes.v1.All").unwrap();
    for (number, good) in [(1 << 29, false), ((1_u64 << 29) - 1, true), (0, false)] {
        let mut bytes = Vec::new();
        write_varint(number << 3, &mut bytes);
        bytes.push(1);
        assert_eq!(schema.check(message, &bytes).is_ok(), good, "{number}");
    }
}

#[test]
fn truncated_messages_are_reported() {
    let schema = schema();
    let message = schema.message("shapes.v1.All").unwrap();
    let good = bytes_of(&schema, "shapes.v1.All", &everything().to_string());
    schema.check(message, &good).unwrap();
    let whole = (0..good.len()).filter(|end| schema.check(message, &good[..*end]).is_ok());
    // Only between two fields of the outermost message.
    assert_eq!(whole.count(), 6);
}

#[test]
fn values_of_any_shape_are_rejected_or_written() {
    let schema = schema();
    let message = schema.message("shapes.v1.All").unwrap();
    let text = everything().to_string();
    throng_fuzz::mutations(&[text.as_bytes()], |input, _| {
        let Ok(json) = serde_json::from_slice(input) else { return };
        let early = schema.prepare(message, &given(&json));
        let mut leaves = Vec::new();
        let late = schema.prepare(message, &leaves_of(&json, &mut leaves));
        let late = late.ok().map(|template| encoded(&schema, &template, &leaves, false));
        // What is refused for one is refused for the other.
        match (early, late) {
            (Ok(template), Some(Ok(bytes))) => {
                assert_eq!(template.constant(), Some(&bytes[..]));
                schema.check(message, &bytes).unwrap();
            }
            (Err(wrong), None | Some(Err(_))) => assert!(!wrong.message.is_empty()),
            (early, late) => panic!("{early:?} {late:?}"),
        }
        let template = schema.prepare(message, &Given::Leaf(0)).unwrap();
        let _ = encoded(&schema, &template, &[Value::from_json(&json)], false);
    });
}

#[test]
fn damaged_descriptors_and_paths_do_not_panic() {
    let set = pool().get_file_by_name("old.proto").unwrap().encode_to_vec();
    let set = [&[0x0a, 0x80 | (set.len() & 0x7f) as u8, (set.len() >> 7) as u8], &set[..]].concat();
    assert!(Schema::from_descriptor_set(&set).is_ok());
    let old = bytes_of(&schema(), "shapes.old.Old", r#"{"id": 1, "counts": {"a": 2, "b": 3}}"#);
    let json = serde_json::json!({"id": 5, "name": "x", "counts": {"a": 1}, "packed": [1]});
    let (mut read, mut written) = (0, 0);
    throng_fuzz::mutations(&[&set], |input, _| {
        let Ok(schema) = Schema::from_descriptor_set(input) else { return };
        let Some(message) = schema.message("shapes.old.Old") else { return };
        if schema.check(message, &old).is_ok() {
            let _ = schema.message_value(message, &old);
            read += 1;
        }
        let _ = schema.field(message, "counts.a").map(|path| schema.value(&old, &path));
        written += usize::from(schema.prepare(message, &given(&json)).is_ok());
    });
    assert!(read > 0 && written > 0, "{read} {written}");
    let schema = schema();
    let message = schema.message("shapes.v1.All").unwrap();
    throng_fuzz::mutations(&[b"lists.trees[1].left.name", b"maps.labels[\"a.b\"]"], |input, _| {
        let _ = schema.field(message, &String::from_utf8_lossy(input));
    });
}
