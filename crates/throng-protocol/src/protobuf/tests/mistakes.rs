//! What is wrong with what is given, when it is compiled and when it is written.

use serde_json::{Value as Json, json};

use super::*;

/// The path, what is wrong, and the cure.
fn told(message: &str, json: &Json) -> (String, String, String) {
    let schema = schema();
    let message = schema.message(&format!("shapes.v1.{message}")).unwrap();
    let wrong = schema.prepare(message, &given(json)).unwrap_err();
    let mut leaves = Vec::new();
    let shape = leaves_of(json, &mut leaves);
    let late = schema.prepare(message, &shape).map(|template| {
        encoded(&schema, &template, &leaves, false).expect_err("it is wrong for a user as well")
    });
    // Errors that depend on the value are reported for the same field when it is known.
    match late {
        Ok(EncodeError::Value { field, reason }) => {
            assert_eq!((field, reason), (wrong.path.join("."), wrong.message.clone()));
        }
        Ok(EncodeError::Leaf(fault)) => panic!("{fault:?}"),
        Err(late) => assert_eq!(late.path, wrong.path),
    }
    (wrong.path.join("."), wrong.message.english(), wrong.help.english())
}

#[test]
fn unknown_fields_suggest_the_nearest_name() {
    let (path, message, help) = told("All", &json!({"lists": {"trees": [{}, {"nmae": "x"}]}}));
    assert_eq!(path, "lists.trees.1.nmae");
    assert_eq!(message, "`shapes.v1.Tree` has no field `nmae`");
    assert!(help.starts_with("did you mean `name`? available: `name`, `left`"), "{help}");
    let (path, _, help) = told("Tree", &json!({"left": {"left": {"left": {"zzz": 1}}}}));
    assert_eq!(path, "left.left.left.zzz");
    assert!(help.starts_with("available: `name`"), "{help}");
}

#[test]
fn type_errors_name_the_expected_type() {
    for (message, json, path, wrong) in [
        ("Scalars", json!({"an_int32": "many"}), "an_int32", "expected a whole number"),
        ("Scalars", json!({"anInt32": 1.5}), "anInt32", "expected a whole number, not 1.5"),
        ("Scalars", json!({"an_int32": 3_000_000_000_u64}), "an_int32", "is out of range"),
        ("Scalars", json!({"a_uint64": -1}), "a_uint64", "is out of range"),
        ("Scalars", json!({"a_bool": "maybe"}), "a_bool", "expected true or false, not"),
        ("Scalars", json!({"a_string": [1]}), "a_string", "expected text, not"),
        ("Scalars", json!({"some_bytes": "a!"}), "some_bytes", "expected bytes as base64"),
        ("Scalars", json!({"a_double": {"x": 1}}), "a_double", "expected"),
        ("Lists", json!({"packed": 1}), "packed", "expected a list, not a whole number"),
        ("Lists", json!({"packed": [1, "x"]}), "packed.1", "expected a whole number"),
        ("Lists", json!({"texts": ["a", null]}), "texts.1", "null"),
        ("Lists", json!({"scalars": [{}, {"a_bool": 7}]}), "scalars.1.a_bool", "true or false"),
        ("Lists", json!({"trees": {"name": "x"}}), "trees", "expected a list, not a map"),
        ("Lists", json!({"packed": {"1": 1}}), "packed", "expected a list, not a map"),
        ("Maps", json!({"labels": [1]}), "labels", "expected a map, not"),
        ("Maps", json!({"by_number": {"x": {}}}), "by_number.x", "expected a whole number"),
        ("Maps", json!({"by_number": {"7": {"maybe": "x"}}}), "by_number.7.maybe", "whole"),
        ("Tree", json!({"left": "x"}), "left", "expected a map of fields, not text"),
        ("Known", json!({"at": "yesterday"}), "at", "a time such as"),
        ("Known", json!({"at": "2026-02-29T00:00:00Z"}), "at", "a time such as"),
        ("Known", json!({"at": 7}), "at", "a time such as"),
        ("Known", json!({"took": "5"}), "took", "a duration such as `1.5s`"),
        ("Known", json!({"list": 1}), "list", "expected a list, not"),
        ("Known", json!({"packed": {"@type": "x.y/No.Such"}}), "packed.@type", "no message"),
    ] {
        let (at, message, _) = told(message, &json);
        assert_eq!(at, path, "{json}: {message}");
        assert!(message.contains(wrong), "{json}: {message}");
    }
}

#[test]
fn names_of_enums_are_suggested() {
    let (path, message, help) = told("Scalars", &json!({"colour": "GREN"}));
    assert_eq!(
        (path.as_str(), message.as_str()),
        ("colour", "`GREN` is not a value of `shapes.v1.Colour`")
    );
    assert_eq!(help, "did you mean `GREEN`? available: `COLOUR_UNKNOWN`, `RED`, `GREEN`, `DARK`");
}

#[test]
fn members_of_a_oneof_exclude_each_other() {
    let (path, message, _) = told("Tree", &json!({"number": 1, "paint": "RED"}));
    assert_eq!(path, "paint");
    assert_eq!(message, "`number` and `paint` both belong to the oneof `leaf`");
    // One that is null is not given.
    let schema = schema();
    assert_eq!(
        bytes_of(&schema, "shapes.v1.Tree", r#"{"number": null, "text": "x"}"#),
        b"\x2a\x01x"
    );
}

#[test]
fn missing_required_fields_and_groups_are_reported() {
    let schema = schema();
    let old = schema.message("shapes.old.Old").unwrap();
    let wrong = schema.prepare(old, &given(&json!({"name": "x"}))).unwrap_err();
    assert_eq!(
        (wrong.path.join("."), wrong.message.english().as_str()),
        ("id".into(), "the required field `id` is missing")
    );
    let wrong = schema.prepare(old, &given(&json!({"id": 1, "part": {}}))).unwrap_err();
    assert_eq!(wrong.message, "`shapes.old.Old` has no field `part`");
}

#[test]
fn nesting_is_limited() {
    let schema = schema();
    let tree = schema.message("shapes.v1.Tree").unwrap();
    let nested =
        |depth: usize| (0..depth).fold(json!({"name": "x"}), |inner, _| json!({ "left": inner }));
    assert!(schema.prepare(tree, &given(&nested(DEPTH_MAX - 1))).is_ok());
    let wrong = schema.prepare(tree, &given(&nested(DEPTH_MAX))).unwrap_err();
    assert!(
        wrong.message.english().starts_with("protobuf messages are nested more than 64"),
        "{}",
        wrong.message.english()
    );
    let mut leaves = Vec::new();
    let shape = leaves_of(&nested(DEPTH_MAX - 1), &mut leaves);
    let template = schema.prepare(tree, &shape).unwrap();
    let bytes = encoded(&schema, &template, &leaves, true).unwrap();
    schema.check(tree, &bytes).unwrap();
    let deeper = [&[0x12, 0x80 | (bytes.len() & 0x7f) as u8, (bytes.len() >> 7) as u8], &bytes[..]];
    assert!(schema.check(tree, &deeper.concat()).is_err());
    assert!(schema.message_value(tree, &deeper.concat()).is_err());
}

#[test]
fn the_number_of_values_per_read_is_limited() {
    let schema = schema();
    let lists = schema.message("shapes.v1.Lists").unwrap();
    let mut bytes = vec![0x22, 0xa1, 0x8d, 0x06];
    bytes.resize(4 + VALUES_MAX + 1, 1);
    schema.check(lists, &bytes).unwrap();
    let bools = schema.field(lists, "bools").unwrap();
    assert_eq!(schema.value(&bytes, &bools).unwrap_err().reason, "it has more than 100000 values");
    let packed = schema.field(lists, "packed").unwrap();
    assert_eq!(schema.value(&bytes, &packed).unwrap(), Some(Value::from(Vec::<Value>::new())));
    // Empty messages with many fields count as what they are made of.
    let many = b"\x42\0".repeat(10_000);
    assert!(schema.message_value(lists, &many).is_err());
}
