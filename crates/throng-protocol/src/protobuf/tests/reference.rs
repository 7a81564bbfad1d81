//! What we write, prost-reflect reads, and the reverse.

use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, SerializeOptions};
use serde_json::{Value as Json, json};
use throng_base::Random;

use super::*;

/// Some JSON that is a message of the type, with well-known types as proto3 JSON has them.
fn some(message: &MessageDescriptor, random: &mut Random, left: usize) -> Json {
    if let Some(known) = well_known(message.full_name(), random, left) {
        return known;
    }
    let mut fields = serde_json::Map::new();
    let mut oneofs = Vec::new();
    for field in message.fields() {
        let is_deep = matches!(field.kind(), Kind::Message(_)) && left == 0;
        if is_deep || random.chance(0.5) {
            continue;
        }
        if let Some(oneof) = field.containing_oneof() {
            if oneofs.contains(&oneof.name().to_owned()) {
                continue;
            }
            oneofs.push(oneof.name().to_owned());
        }
        let name = if random.chance(0.5) { field.name() } else { field.json_name() };
        let count = [0, 1, 2, 5][random.below(4) as usize];
        let left = left.saturating_sub(1);
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else { panic!("an entry") };
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            let entries = (0..count).map(|_| {
                let key = match one(&key.kind(), random, left) {
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                (key, one(&value.kind(), random, left))
            });
            Json::Object(entries.collect())
        } else if field.is_list() {
            Json::Array((0..count).map(|_| one(&field.kind(), random, left)).collect())
        } else {
            one(&field.kind(), random, left)
        };
        fields.insert(name.to_owned(), value);
    }
    Json::Object(fields)
}

fn one(kind: &Kind, random: &mut Random, left: usize) -> Json {
    let zero = random.chance(0.2);
    let bits = random.next_u64() >> random.below(64);
    match kind {
        Kind::Double | Kind::Float if zero => json!(0.0),
        // Few enough digits for 32 bits.
        Kind::Double | Kind::Float => json!((bits as i32 >> 12) as f64 / 4.0),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => json!(bits as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 if zero => json!((bits as i64).to_string()),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!(bits as i64),
        Kind::Uint32 | Kind::Fixed32 => json!(bits as u32),
        Kind::Uint64 | Kind::Fixed64 if zero => json!(bits.to_string()),
        Kind::Uint64 | Kind::Fixed64 => json!(bits),
        Kind::Bool => json!(!zero),
        Kind::String if zero => json!(""),
        Kind::String => json!("größe ".repeat(random.below(40) as usize)),
        Kind::Bytes if zero => json!(""),
        Kind::Bytes => json!(["AAEC", "/+7dzA==", "YQ=="][random.below(3) as usize]),
        Kind::Enum(names) => {
            let values: Vec<_> = names.values().collect();
            let value = &values[random.below(values.len() as u64) as usize];
            if zero { json!(value.number()) } else { json!(value.name()) }
        }
        Kind::Message(message) => some(message, random, left),
    }
}

fn well_known(name: &str, random: &mut Random, left: usize) -> Option<Json> {
    let fraction = ["", ".5", ".000001", ".123456789"][random.below(4) as usize];
    let year = 1 + random.below(9998);
    let day = 1 + random.below(28);
    Some(match name.strip_prefix("google.protobuf.")? {
        "Timestamp" => json!(format!("{year:04}-02-{day:02}T23:59:{day:02}{fraction}Z")),
        "Duration" if random.chance(0.3) => json!(format!("-{year}{fraction}s")),
        "Duration" => json!(format!("{year}{fraction}s")),
        "FieldMask" => json!("displayName,user.photoUrl"),
        "Struct" => json!({"a": free(random, left), "b": {"c": free(random, left)}}),
        "ListValue" => json!([free(random, left), [free(random, left)]]),
        "Value" => free(random, left),
        "Any" if random.chance(0.5) => {
            json!({"@type": "type.googleapis.com/google.protobuf.Duration", "value": "1.5s"})
        }
        "Any" => json!({"@type": "type.googleapis.com/shapes.v1.Tree", "name": "x", "number": 3}),
        "DoubleValue" => json!(2.5),
        "Int64Value" | "UInt64Value" | "Int32Value" => json!(random.below(3)),
        "BoolValue" => json!(random.chance(0.5)),
        "StringValue" => json!(["", "a text"][random.below(2) as usize]),
        "BytesValue" => json!("AAEC"),
        _ => return None,
    })
}

fn free(random: &mut Random, left: usize) -> Json {
    match random.below(if left > 0 { 6 } else { 4 }) {
        0 => Json::Null,
        1 => json!(random.chance(0.5)),
        2 => json!(random.below(1000) as f64 / 8.0),
        3 => json!("a \"text\""),
        4 => json!([free(random, left - 1), free(random, left - 1)]),
        _ => json!({"x": free(random, left - 1), "y.z": free(random, left - 1)}),
    }
}

/// Without the fields that are null, with all numbers as the same kind of number.
fn plain(json: &Json) -> Json {
    match json {
        Json::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            Json::Object(fields.map(|(name, value)| (name.clone(), plain(value))).collect())
        }
        Json::Array(items) => Json::Array(items.iter().map(plain).collect()),
        Json::Number(number) if number.as_f64().is_some_and(|float| float.fract() == 0.0) => {
            let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            json!(whole.unwrap_or_else(|| number.as_f64().unwrap_or(0.0) as i128).to_string())
        }
        other => other.clone(),
    }
}

fn told(message: &DynamicMessage) -> Json {
    let options = SerializeOptions::new()
        .skip_default_fields(false)
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false);
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut text);
    message.serialize_with_options(&mut serializer, &options).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Some message, its descriptor, and how prost-reflect reads its JSON.
fn round(pool: &DescriptorPool, seed: u64) -> (Json, MessageDescriptor, DynamicMessage) {
    const NAMES: [&str; 6] = ["Scalars", "Lists", "Maps", "Tree", "Known", "All"];
    let mut random = Random::for_owner(7, seed);
    let name = NAMES[random.below(6) as usize];
    let message = pool.get_message_by_name(&format!("shapes.v1.{name}")).unwrap();
    let json = some(&message, &mut random, 3);
    let theirs = DynamicMessage::deserialize(message.clone(), json.clone());
    let theirs = theirs.unwrap_or_else(|error| panic!("{error}: {json}"));
    // Without the empty lists that the JSON names.
    let theirs = DynamicMessage::decode(message.clone(), &theirs.encode_to_vec()[..]).unwrap();
    (json, message, theirs)
}

#[test]
fn the_reference_reads_our_messages() {
    let (pool, schema) = (pool(), schema());
    for seed in 0..600 {
        let (json, descriptor, theirs) = round(&pool, seed);
        let message = schema.message(descriptor.full_name()).unwrap();
        let read = |bytes: &[u8]| DynamicMessage::decode(descriptor.clone(), bytes).unwrap();
        let template = schema.prepare(message, &given(&json)).expect("a message");
        let bytes = encoded(&schema, &template, &[], false).unwrap();
        assert_eq!(template.constant(), Some(&bytes[..]));
        assert!(read(&bytes) == theirs, "seed {seed}: {json}");
        let mut leaves = Vec::new();
        let shape = leaves_of(&json, &mut leaves);
        let template = schema.prepare(message, &shape).expect("a message");
        for in_place in [false, true] {
            let bytes = encoded(&schema, &template, &leaves, in_place).unwrap();
            assert!(read(&bytes) == theirs, "seed {seed}, leaves: {json}");
        }
        // One leaf that is all of it.
        let template = schema.prepare(message, &Given::Leaf(0)).expect("a message");
        let bytes = encoded(&schema, &template, &[Value::from_json(&json)], false).unwrap();
        assert!(read(&bytes) == theirs, "seed {seed}, one leaf: {json}");
    }
}

#[test]
fn messages_of_the_reference_are_read() {
    let (pool, schema) = (pool(), schema());
    for seed in 0..600 {
        let (json, descriptor, theirs) = round(&pool, seed);
        let message = schema.message(descriptor.full_name()).unwrap();
        let bytes = theirs.encode_to_vec();
        schema.check(message, &bytes).unwrap();
        let value = schema.message_value(message, &bytes).unwrap();
        let (ours, want) = (plain(&value.to_json()), plain(&told(&theirs)));
        assert_eq!(ours, want, "seed {seed}: {json}");
        // Each field alone is what it is in the whole.
        for name in schema.field_names(message) {
            let path = schema.field(message, name).unwrap();
            let field = schema.value(&bytes, &path).unwrap();
            assert_eq!(field.as_ref(), value.get(name), "seed {seed}: {name}");
            walk(&schema, message, &bytes, name, value.get(name).unwrap());
        }
    }
}

/// Every part of a value is found by its path.
fn walk(schema: &Schema, message: MessageType, bytes: &[u8], path: &str, value: &Value) {
    let parts: Vec<(String, &Value)> = match value {
        Value::List(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| (format!("{path}[{at}]"), item)).collect()
        }
        Value::Map(entries) => {
            let entries = entries.iter();
            entries.map(|(key, item)| (format!("{path}[\"{key}\"]"), item)).collect()
        }
        _ => return,
    };
    for (path, value) in parts {
        let field = schema.field(message, &path).expect("a path");
        assert_eq!(schema.value(bytes, &field).unwrap().as_ref(), Some(value), "{path}");
        walk(schema, message, bytes, &path, value);
    }
}

#[test]
fn proto2_follows_its_own_rules() {
    let (pool, schema) = (pool(), schema());
    let descriptor = pool.get_message_by_name("shapes.old.Old").unwrap();
    let message = schema.message("shapes.old.Old").unwrap();
    let bytes = bytes_of(
        &schema,
        "shapes.old.Old",
        r#"{"id": 0, "numbers": [1, 2], "packed": [3, 4], "counts": {"a": 0}}"#,
    );
    assert_eq!(bytes, b"\x32\x05\x0a\x01a\x10\0\x08\0\x20\x01\x20\x02\x2a\x02\x03\x04");
    let theirs = DynamicMessage::decode(descriptor, &bytes[..]).unwrap();
    assert_eq!(theirs.encode_to_vec().len(), bytes.len());
    let value = schema.message_value(message, &bytes).unwrap();
    let want = json!({"id": 0, "name": "none", "mode": "FAST", "numbers": [1, 2],
        "packed": [3, 4], "counts": {"a": 0}});
    assert_eq!(value.to_json(), want);
    // A group is passed over, and an entry without a value has its zero.
    let bytes = b"\x3b\x08\x01\x3c\x08\x07\x32\x03\x0a\x01b";
    schema.check(message, bytes).unwrap();
    let of = |path| schema.value(bytes, &schema.field(message, path).unwrap()).unwrap().unwrap();
    assert_eq!((of("id"), of("counts.b")), (Value::Int(7), Value::Int(0)));
    assert_eq!(
        schema.check(message, b"").unwrap_err().reason,
        "the required field `id` of `shapes.old.Old` is missing"
    );
}

#[test]
fn parts_of_a_message_are_merged_and_the_last_of_a_oneof_counts() {
    let schema = schema();
    let tree = schema.message("shapes.v1.Tree").unwrap();
    // `left` twice; `number`, then `scalars` in two parts, then `text`.
    let bytes = b"\x12\x03\x0a\x01a\x12\x02\x20\x05\x20\x01\x32\x02\x18\x01\x2a\x01x";
    let value = schema.message_value(tree, bytes).unwrap();
    assert_eq!(value.get("left").unwrap().get("name"), Some(&Value::from("a")));
    assert_eq!(value.get("left").unwrap().get("number"), Some(&Value::Int(5)));
    assert_eq!(value.get("text"), Some(&Value::from("x")));
    let of = |path| schema.value(bytes, &schema.field(tree, path).unwrap()).unwrap();
    assert_eq!(of("left.name"), Some(Value::from("a")));
    assert_eq!(of("left.number"), Some(Value::Int(5)));
    assert_eq!((of("number"), of("scalars")), (Some(Value::Null), Some(Value::Null)));
    // What is in a message that is not there is not there either.
    assert_eq!((of("scalars.an_int32"), of("right.name")), (None, None));
}
