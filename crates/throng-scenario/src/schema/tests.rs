//! The schema is complete and valid, and accepts what the reader accepts: the examples and all
//! valid blocks of the language's own files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use regex::Regex;
use serde_json::{Value, json};
use throng_base::Source;
use throng_base::units;

use super::*;
use crate::syntax::{Kind, Node, parse};

/// Far below the size that slows down editors.
const BYTES_MAX: usize = 240_000;

fn value() -> Value {
    serde_json::from_str(&json_schema()).unwrap()
}

#[test]
fn the_schema_is_small() {
    let bytes = json_schema().len();
    assert!(bytes < BYTES_MAX, "{bytes} bytes");
}

#[test]
fn every_key_is_in_the_schema() {
    let schema = value();
    for (name, kind) in MAP_KINDS {
        let name = if *name == "INCLUDED" { "scenario" } else { &name.to_ascii_lowercase() };
        let definition = &schema["definitions"][name];
        let is_open = matches!(name, "message" | "expectation" | "conditions");
        let others = &definition["additionalProperties"];
        assert!(if is_open { others.is_null() } else { *others == false }, "{name}");
        for key in kind.keys {
            let property = &definition["properties"][key.name];
            assert!(property["description"].is_string(), "`{}` of {name}", key.name);
            let later = property["deprecationMessage"].is_string();
            assert_eq!(later, key.later.is_some(), "`{}` of {name}", key.name);
        }
    }
}

#[test]
fn every_verb_is_in_the_schema() {
    let schema = value();
    let ways = schema["definitions"]["step"]["else"]["allOf"].as_array().unwrap();
    for (verb, _) in VERBS {
        let way = ways.iter().find(|way| way["if"]["required"] == json!([verb]));
        let name = way.unwrap()["then"]["$ref"].as_str().unwrap();
        let definition = schema.pointer(name.trim_start_matches('#')).unwrap();
        assert!(definition["properties"][verb].is_object(), "{verb}");
        let offered = &ways.last().unwrap()["then"]["properties"][verb];
        assert!(offered["$ref"].is_string(), "{verb}");
    }
}

#[test]
fn references_resolve_and_all_definitions_are_used() {
    let text = json_schema();
    let schema = value();
    let pattern = Regex::new(r##""#(/[^"]+)""##).unwrap();
    for found in pattern.captures_iter(&text) {
        assert!(schema.pointer(&found[1]).is_some(), "{}", &found[1]);
    }
    for name in schema["definitions"].as_object().unwrap().keys() {
        assert!(text.contains(&format!("\"#/definitions/{name}\"")), "{name} is not used");
    }
}

#[test]
fn required_keys_exist() {
    let kind = |name: &str| {
        let mut kinds = MAP_KINDS.iter().chain(PROTOCOL_KINDS);
        kinds.find(|(other, _)| *other == name).unwrap().1
    };
    for (name, needs) in NEEDS {
        let keys = match needs {
            Needs::All(keys) | Needs::One(keys) => keys.to_vec(),
            Needs::Both(key, keys) | Needs::Together(key, keys) => [&[*key], *keys].concat(),
        };
        assert!(keys.iter().all(|key| kind(name).find(key).is_some()), "{name}: {keys:?}");
    }
    for (kinds, names, _) in EXAMPLES.iter().filter(|(kinds, ..)| *kinds != "*") {
        for name in names.split(' ') {
            assert!(kinds.split(' ').any(|one| kind(one).find(name).is_some()), "{kinds} {name}");
        }
    }
}

#[test]
fn protocol_files_have_their_own_schema() {
    let text = protocol();
    assert!(text.len() < BYTES_MAX, "{} bytes", text.len());
    let schema: Value = serde_json::from_str(&text).unwrap();
    let faults = |text: &str| {
        let mut faults = Vec::new();
        let value = yaml(text).unwrap_or(json!({}));
        validate(&schema, &schema["definitions"]["protocol"], &value, "", &mut faults);
        faults
    };
    let markdown = include_str!("../../tests-md/protocol.md");
    let blocks = markdown.split("```yaml protocol\n").skip(1);
    // Only the first block of the file is valid.
    let first = blocks.clone().next().and_then(|block| block.split("```").next()).unwrap();
    let chat = include_str!("../../../../examples/chat.protocol.yaml");
    let push = include_str!("../../../../examples/miop.protocol.yaml");
    for good in [chat, push, first] {
        assert_eq!(faults(good), Vec::<String>::new(), "{good}");
    }
    for wrong in [
        "packet: []",
        "messages: {a: }",
        "packet: [{type: u8}]\nmessages: {a: }",
        "packet: [{id: a, typ: u8}]\nmessages: {a: }",
        "packet: [{id: a, fields: [{typ: u8}]}]\nmessages: {a: }",
        "packet: []\nmessages: {a: {knd: 1}}",
        "packet: []\nmessages: {a: }\ntransport: quic",
    ] {
        assert!(!faults(wrong).is_empty(), "{wrong}");
    }
    for (name, kind) in PROTOCOL_KINDS {
        let properties = &schema["definitions"][name.to_ascii_lowercase()]["properties"];
        assert!(kind.keys.iter().all(|key| properties[key.name]["description"].is_string()));
    }
}

#[test]
fn suggested_values_are_valid() {
    fn walk(schema: &Value, at: &Value, path: &str) {
        for example in at["examples"].as_array().into_iter().flatten() {
            let mut faults = Vec::new();
            validate(schema, at, example, path, &mut faults);
            assert!(faults.is_empty(), "{path}: {faults:?}");
        }
        match at {
            Value::Object(entries) => {
                entries.iter().for_each(|(key, at)| walk(schema, at, &format!("{path}/{key}")));
            }
            Value::Array(items) => items.iter().for_each(|at| walk(schema, at, path)),
            _ => {}
        }
    }
    let schema = value();
    walk(&schema, &schema, "");
}

#[test]
fn units_are_accepted_like_in_the_reader() {
    let schema = value();
    type Parse = fn(&str) -> bool;
    let parsers: [(&str, Parse); 6] = [
        ("duration", |text| units::parse_time(text).is_ok()),
        ("duration_range", |text| units::parse_time_range(text).is_ok()),
        ("size", |text| units::parse_size(text).is_ok()),
        ("rate", |text| units::parse_rate(text).is_ok()),
        ("share", |text| units::parse_share(text).is_ok()),
        ("amount", |text| units::parse_count(text).is_ok()),
    ];
    let texts = [
        "250ms",
        "3s",
        "1.5s",
        "10m",
        "1h30m",
        "1h 30m",
        "2d",
        "5min",
        "20us",
        "20µs",
        "1_000ms",
        ".5s",
        "5",
        "s",
        "5 parsecs",
        "-3s",
        "..s",
        "1s..5s",
        "1s..",
        "64KiB",
        "10MB",
        "512B",
        "512",
        "10 potatoes",
        "10 kB",
        "500/s",
        "30/m",
        "1.5/s",
        "500",
        "500/week",
        "1/2s",
        "1 / 1m30s",
        "1/2",
        "1/2x",
        "1..5",
        "1..5m",
        "5 / min",
        "5%",
        "0.1%",
        "5 %",
        "%",
        "100",
        "50_000",
        "10k",
        "1M",
        "1.5k",
        "-1",
        "10 k",
        "ten",
        "",
    ];
    for (name, parse) in parsers {
        let pattern = Regex::new(schema["definitions"][name]["pattern"].as_str().unwrap()).unwrap();
        for text in texts {
            assert_eq!(pattern.is_match(text), parse(text), "{name}: `{text}`");
        }
        assert!(pattern.is_match("${vars.time}"));
    }
}

/// Parses a file as YAML 1.2, like editors.
fn yaml(text: &str) -> Option<Value> {
    let source = Source::new("test.yaml", text);
    parse(&source, 0).ok().flatten().map(|node| as_json(&node))
}

fn as_json(node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar { text, plain: true } => match text.as_str() {
            "" | "~" | "null" => Value::Null,
            "true" => true.into(),
            "false" => false.into(),
            text => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(whole), _) => whole.into(),
                (_, Ok(number)) if text.ends_with(|c: char| c.is_ascii_digit()) => number.into(),
                _ => text.into(),
            },
        },
        Kind::Scalar { text, .. } => text.as_str().into(),
        Kind::List(items) => items.iter().map(as_json).collect(),
        Kind::Map(entries) => {
            entries.iter().map(|(key, value)| (key.text.clone(), as_json(value))).collect()
        }
    }
}

/// The subset of draft-07 that the schema uses; planned keys are faults, because editors flag them.
fn validate(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else { return };
    if let Some(name) = keywords.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(name.trim_start_matches('#')).unwrap();
        return validate(root, target, value, at, faults);
    }
    let fits = |schema: &Value| {
        let mut faults = Vec::new();
        validate(root, schema, value, at, &mut faults);
        faults.is_empty()
    };
    for (keyword, rule) in keywords {
        let rules = || rule.as_array().unwrap().iter();
        let good = match keyword.as_str() {
            "type" if rule.is_array() => rules().any(|one| has_type(value, one)),
            "type" => has_type(value, rule),
            "const" => rule == value,
            "enum" => rules().any(|one| one == value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| matches(rule.as_str().unwrap(), text)),
            "required" => value.as_object().is_none_or(|entries| {
                rules().all(|key| entries.contains_key(key.as_str().unwrap()))
            }),
            "anyOf" => rules().any(fits),
            "not" => !fits(rule),
            "deprecationMessage" => false,
            _ => true,
        };
        if !good {
            faults.push(format!("{at}: {keyword} {rule}, not {value}"));
        }
    }
    for one in schema["allOf"].as_array().into_iter().flatten() {
        validate(root, one, value, at, faults);
    }
    if let Some(condition) = keywords.get("if") {
        let branch = if fits(condition) { &schema["then"] } else { &schema["else"] };
        validate(root, branch, value, at, faults);
    }
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(i, item)| {
            validate(root, &schema["items"], item, &format!("{at}/{i}"), faults);
        }),
        Value::Object(entries) => {
            for (key, value) in entries {
                let at = format!("{at}/{key}");
                validate_entry(root, schema, key, value, &at, faults);
            }
        }
        _ => {}
    }
}

/// Caches compiled patterns, which are few and used often.
fn matches(pattern: &str, text: &str) -> bool {
    thread_local! {
        static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default();
    }
    PATTERNS.with_borrow_mut(|known| {
        let known = known.entry(pattern.to_string());
        known.or_insert_with(|| Regex::new(pattern).unwrap()).is_match(text)
    })
}

fn validate_entry(
    root: &Value,
    schema: &Value,
    key: &str,
    value: &Value,
    at: &str,
    faults: &mut Vec<String>,
) {
    let patterns = schema["patternProperties"].as_object().into_iter().flatten();
    let mut matching = patterns.filter(|(pattern, _)| matches(pattern, key));
    match (schema["properties"].get(key), matching.next(), &schema["additionalProperties"]) {
        (Some(inner), _, _) | (None, Some((_, inner)), _) => {
            validate(root, inner, value, at, faults);
        }
        (None, None, Value::Bool(false)) => faults.push(format!("{at} is not allowed")),
        (None, None, inner) => validate(root, inner, value, at, faults),
    }
}

fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is not a type"),
    }
}

fn faults(text: &str) -> Vec<String> {
    let (schema, mut faults) = (value(), Vec::new());
    validate(&schema, &schema, &yaml(text).unwrap_or(json!({})), "", &mut faults);
    faults
}

/// The blocks of the language's own files, with their expected diagnostics.
fn blocks() -> Vec<(String, Option<String>)> {
    let mut blocks = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests-md");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "md") {
            let markdown = std::fs::read_to_string(path).unwrap();
            for block in markdown.split("```yaml\n").skip(1) {
                let (text, rest) = block.split_once("\n```").unwrap();
                let answer = rest.strip_prefix("\n```text\n");
                let answer = answer.and_then(|rest| rest.split("\n```").next());
                blocks.push((text.to_string(), answer.map(str::to_string)));
            }
        }
    }
    blocks
}

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let good =
        |answer: &Option<String>| answer.as_ref().is_none_or(|answer| !answer.contains("error["));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (text, _) in blocks().into_iter().filter(|(_, answer)| good(answer)) {
        seen += 1;
        let faults = faults(&text);
        if !faults.is_empty() {
            wrong.push(format!("{text}\n=> {faults:#?}"));
        }
    }
    assert!(seen > 25, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn unknown_keys_and_wrong_types_are_reported() {
    // Mistakes that it misses depend on other files, on users' actions, or on the meaning of
    // thresholds.
    let mut missed = Vec::new();
    let (mut seen, mut found) = (0, 0);
    for (text, answer) in blocks() {
        let answer = answer.unwrap_or_default();
        let codes = ["unknown-key", "wrong-type", "unknown-step", "missing-key", "not-yet"];
        if codes.iter().any(|code| answer.contains(&format!("error[{code}]"))) {
            seen += 1;
            match faults(&text).is_empty() {
                true => missed.push(format!("{text}\n=> {answer}")),
                false => found += 1,
            }
        }
    }
    assert!(found * 4 >= seen * 3, "{found} of {seen}; missed:\n{}", missed.join("\n\n"));
}

#[test]
fn examples_only_use_supported_or_planned_keys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".yaml") || name.contains(".protocol.") {
            continue;
        }
        let faults = faults(&std::fs::read_to_string(path).unwrap());
        let later = |fault: &String| fault.contains("deprecationMessage");
        assert!(faults.iter().all(later), "{name}: {faults:#?}");
    }
}

/// Neither the schema nor the reader accepts these.
#[test]
fn values_outside_of_shapes_are_refused() {
    let steps = ["{disconnect: now}", "{send: [hi]}", "{slow: fast}", "{stay: 1m, on: [{}]}"];
    for step in steps {
        let text = format!(
            "{{target: ws://a, load: [{{users: 1, for: 1s}}], \
             sessions: {{a: {{steps: [connect, {step}]}}}}}}"
        );
        let options = crate::CompileOptions {
            set: Vec::new(),
            base: Path::new(".").to_path_buf(),
            read_file: &crate::read_disk,
            env: &|_| None,
            run: crate::RunOptions::default(),
        };
        assert!(crate::compile(&Source::new("test.yaml", &*text), &options).is_err(), "{step}");
        assert!(!faults(&text).is_empty(), "{step}");
    }
}
