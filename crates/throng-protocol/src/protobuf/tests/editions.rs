//! Descriptors of editions, as `protoc` 33 writes them.

use super::*;

/// `tests/edition.proto`.
const SET: &[u8] = include_bytes!("edition.desc");

#[test]
fn editions_behave_as_their_features_say() {
    let schema = Schema::from_descriptor_set(SET).unwrap();
    let message = schema.message("shapes.edition.New").unwrap();
    let json =
        r#"{"id": 0, "packed": [1, 2], "expanded": [1, 2], "counts": {"a": 0}, "mode": "SLOW"}"#;
    let ours = bytes_of(&schema, "shapes.edition.New", json);
    // As Python's protobuf writes it.
    let theirs = b"\x08\0\x20\x01\x20\x02\x2a\x02\x01\x02\x30\x01\x3a\x05\x0a\x01a\x10\0";
    assert_eq!(ours.len(), theirs.len());
    let value = schema.message_value(message, theirs).unwrap();
    assert_eq!(schema.message_value(message, &ours).unwrap(), value);
    assert_eq!((value.get("id"), value.get("name")), (Some(&Value::Int(0)), Some(&Value::Null)));
    assert_eq!(value.get("mode"), Some(&Value::from("SLOW")));
    // Without presence, it has its zero, which is not written.
    assert_eq!(value.get("plain"), Some(&Value::Int(0)));
    assert_eq!(bytes_of(&schema, "shapes.edition.New", r#"{"plain": 0, "name": ""}"#), b"\x12\0");
    let names: Vec<&str> = schema.field_names(message).collect();
    assert!(names.contains(&"delimited") && value.get("delimited").is_none());
    let method = schema.method(schema.find_method("Renewer/Renew").unwrap());
    assert_eq!((method.kind, method.input), (CallKind::ServerStreaming, message));
}

#[test]
fn fuzz_descriptors_of_editions() {
    assert!(descriptor_set(b"").is_err() && descriptor_set(b"\x08\x01").is_err());
    throng_fuzz::mutations(&[SET], |input, _| {
        let _ = Schema::from_descriptor_set(input);
    });
}
