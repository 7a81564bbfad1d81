//! The language as a JSON Schema (draft-07), from the tables of [`crate::keys`], so that editors
//! complete and check scenarios.
//!
//! It is designed for language servers: a step is checked by its verb (`if` and `then`), so that a
//! mistake is shown on its own line with one message. The schema covers shapes, not meaning: it
//! accepts everything that `throng check` accepts, and more.

mod json;
mod shapes;

use throng_base::Said;

use crate::keys::{self, BARE_VERBS, KeyDoc, MAP_KINDS, MapKind, VERBS};
use crate::protocol::keys::PROTOCOL_KINDS;
use json::{Entries, Json, map, pretty, texts};

/// The JSON Schema of scenario files, as text.
pub fn json_schema() -> String {
    let mut schema = pretty(&root());
    schema.push('\n');
    schema
}

/// The JSON Schema of protocol files, as text.
pub fn protocol() -> String {
    let mut definitions = Entries::default();
    for (name, kind) in PROTOCOL_KINDS {
        definitions.add(&name.to_ascii_lowercase(), definition(name, kind));
    }
    definitions.extend(shapes::definitions());
    let root = map([
        ("$schema", "http://json-schema.org/draft-07/schema#".into()),
        ("$id", "urn:throng:protocol".into()),
        ("title", "throng protocol".into()),
        ("description", "A private protocol: its packets, its messages and their replies.".into()),
        ("$ref", "#/definitions/protocol".into()),
        ("definitions", definitions.into_json()),
    ]);
    let mut schema = pretty(&root);
    schema.push('\n');
    schema
}

fn root() -> Json {
    map([
        ("$schema", "http://json-schema.org/draft-07/schema#".into()),
        ("$id", "urn:throng:scenario".into()),
        ("title", "throng scenario".into()),
        (
            "description",
            "A load test: what users do, how many there are, and the pass/fail criteria.".into(),
        ),
        ("type", "object".into()),
        ("$ref", "#/definitions/scenario".into()),
        ("definitions", definitions()),
    ])
}

fn definitions() -> Json {
    let mut definitions = Entries::default();
    for (name, kind) in MAP_KINDS {
        // The keys of an included file are those of a scenario, so it needs no definition.
        if *name != "INCLUDED" {
            definitions.add(&name.to_ascii_lowercase(), definition(name, kind));
        }
    }
    definitions.add(CHECK_OF_MESSAGE, open_check());
    let steps = map([("type", "array".into()), ("items", reference("step"))]);
    definitions.add("steps", steps);
    definitions.add("step", step());
    definitions.extend(shapes::definitions());
    definitions.into_json()
}

/// A check of a message: the keys of checks, or fields of a declared message, whose names only the
/// protocol knows.
const CHECK_OF_MESSAGE: &str = "check_of_message";

fn open_check() -> Json {
    let mut properties = Entries::default();
    for key in keys::CHECK.keys {
        properties.add(key.name, property("CHECK", key));
    }
    map([
        ("title", "check".into()),
        ("type", "object".into()),
        ("properties", properties.into_json()),
    ])
}

fn definition(name: &str, kind: &'static MapKind) -> Json {
    let mut entries = Entries::default();
    entries.add("title", title(kind));
    entries.add("type", "object");
    let mut properties = Entries::default();
    for key in kind.keys {
        properties.add(key.name, property(name, key));
    }
    entries.add("properties", properties.into_json());
    if name == "CHECK" {
        // `json.data.code: 0`
        entries.add("patternProperties", map([("^json[.\\[]", map([]))]));
    }
    let patterns = PARTS.iter().flat_map(|part| part.patterns);
    for (_, pattern) in patterns.filter(|(kind, _)| *kind == name) {
        entries.add("patternProperties", map([(*pattern, map([]))]));
    }
    let is_open = ["MESSAGE", "EXPECTATION", "CONDITIONS"].contains(&name);
    // A message of a declared protocol with its fields, or the fields of a message in a call.
    if !(is_open && std::ptr::eq(kind, scenario(name))) {
        entries.add("additionalProperties", false);
    }
    let mut needs = PARTS.iter().flat_map(|part| part.needs).chain(NEEDS);
    if let Some((_, needs)) = needs.find(|(needing, _)| *needing == name) {
        entries.extend(needs.entries(kind));
    }
    if name == "SCENARIO" {
        entries.add("defaultSnippets", Json::from(vec![snippet()]));
    }
    entries.into_json()
}

/// The kind of a scenario map by name: names of protocol maps are separate.
fn scenario(name: &str) -> &'static MapKind {
    let found = MAP_KINDS.iter().find(|(other, _)| *other == name);
    found.map_or(&keys::SCENARIO, |(_, kind)| *kind)
}

/// The title of a map: "`tls`" as `tls`, "an `http` step" as `http step`.
fn title(kind: &MapKind) -> String {
    let what = kind.what.english();
    let what = what.strip_prefix("a ").or(what.strip_prefix("an ")).unwrap_or(&what);
    what.replace('`', "")
}

fn property(kind: &str, key: &'static KeyDoc) -> Json {
    match key.later {
        Some(_) => later(key),
        None => {
            let mut all = PARTS.iter().flat_map(|part| part.examples).chain(EXAMPLES);
            let given = all.find(|(kinds, names, _)| {
                let kinds = kinds.split(' ').any(|one| one == "*" || one == kind);
                kinds && names.split(' ').any(|name| name == key.name)
            });
            let examples = given.map_or(&[][..], |(_, _, examples)| *examples);
            let mut own = PARTS.iter().flat_map(|part| part.message_checks);
            let is_message = matches!(kind, "EXPECT" | "REQUEST" | "HANDLER");
            if key.name == "check" && (is_message || own.any(|one| *one == kind)) {
                let mut entries = Entries::default();
                entries.add("$ref", format!("#/definitions/{CHECK_OF_MESSAGE}"));
                entries.extend(description(key.doc));
                return entries.into_json();
            }
            shapes::schema(&key.shape, description(key.doc), examples).into_json()
        }
    }
}

/// The description, also as Markdown if it contains Markdown syntax.
fn description(doc: &str) -> Entries {
    let mut entries = Entries::default();
    entries.add("description", doc);
    if doc.contains('`') {
        entries.add("markdownDescription", doc);
    }
    entries
}

/// Editors do not suggest it, and show the reason if it is used.
fn later(key: &KeyDoc) -> Json {
    let instead = key.later.as_ref().map(Said::english).unwrap_or_default();
    let name = key.name;
    let mut entries = description(key.doc);
    let message = format!("`{name}` is not supported in this version: {instead}");
    entries.add("deprecationMessage", message);
    entries.into_json()
}

/// A step is a word, or a map that is checked by its verb.
fn step() -> Json {
    let list: Vec<String> = VERBS.iter().map(|(verb, _)| format!("`{verb}`")).collect();
    let one_of = format!("a step must have one of these verbs: {}", list.join(", "));
    let mut ways = Vec::new();
    for (verb, kind) in VERBS {
        let name = MAP_KINDS.iter().find(|(_, other)| std::ptr::eq(*other, *kind));
        let name = name.map_or(String::new(), |(name, _)| name.to_ascii_lowercase());
        let mut when = has_verb(verb);
        // `expect` is both a verb and a modifier of `request`.
        if *verb == "expect" {
            when.add("not", required(&["request"]));
        }
        ways.push(map([("if", when.into_json()), ("then", reference(&name))]));
    }
    ways.push(without_verb(&one_of));
    map([
        ("title", "step".into()),
        ("type", texts(&["object", "string"])),
        ("errorMessage", one_of.as_str().into()),
        ("if", map([("type", "string".into())])),
        ("then", word_alone(&one_of)),
        ("else", map([("allOf", Json::from(ways))])),
    ])
}

/// An empty item has no verb; without the type, it would match all verbs.
fn has_verb(verb: &str) -> Entries {
    let mut entries = Entries::default();
    entries.add("type", "object");
    entries.add("required", texts(&[verb]));
    entries
}

fn word_alone(one_of: &str) -> Json {
    let list: Vec<String> = BARE_VERBS.iter().map(|verb| format!("`{verb}`")).collect();
    let message = format!("only {} can be a single word; {one_of}", list.join(", "));
    let docs = BARE_VERBS.iter().map(|verb| {
        let kind = VERBS.iter().find(|(other, _)| other == verb);
        let doc = kind.and_then(|(_, kind)| kind.find(verb)).map_or("", |key| key.doc);
        map([("if", map([("const", (*verb).into())])), ("then", description(doc).into_json())])
    });
    // With `enum`, editors would suggest the words twice, next to the verbs with values.
    map([
        ("pattern", format!("^(?:{})$", BARE_VERBS.join("|")).into()),
        ("errorMessage", message.into()),
        ("allOf", Json::from(docs.collect::<Vec<_>>())),
    ])
}

/// A step without a verb yet: editors suggest verbs.
fn without_verb(one_of: &str) -> Json {
    let mut properties = Entries::default();
    for (verb, _) in VERBS {
        properties.add(verb, reference(&format!("{verb}/properties/{verb}")));
    }
    let any = VERBS.iter().map(|(verb, _)| has_verb(verb).into_json());
    let any = map([("anyOf", Json::from(any.collect::<Vec<_>>()))]);
    let then = map([
        ("properties", properties.into_json()),
        ("additionalProperties", false.into()),
        ("errorMessage", one_of.into()),
    ]);
    map([("if", map([("not", any)])), ("then", then)])
}

/// The initial content of an empty file in an editor.
fn snippet() -> Json {
    let step = map([("http", "${3:GET /}".into())]);
    let session = map([("steps", Json::from(vec![step]))]);
    let phase = map([("users", "${4:100}".into()), ("for", "${5:30s}".into())]);
    let body = map([
        ("target", "${1:http://127.0.0.1:8080}".into()),
        ("sessions", map([("${2:reader}", session)])),
        ("load", Json::from(vec![phase])),
    ]);
    let doc = "A complete scenario to start from.";
    map([("label", "scenario".into()), ("description", doc.into()), ("body", body)])
}

fn reference(name: &str) -> Json {
    map([("$ref", format!("#/definitions/{name}").into())])
}

fn required(keys: &[&str]) -> Json {
    map([("required", texts(keys))])
}

/// What a map lacks when it is not there.
enum Needs {
    All(&'static [&'static str]),
    /// One of these.
    One(&'static [&'static str]),
    /// The first key, and one of the others.
    Both(&'static str, &'static [&'static str]),
    /// If any of them is present: the first, and one of the others.
    Together(&'static str, &'static [&'static str]),
}

/// Additions of a protocol with its own verbs, by kinds of maps.
struct SchemaPart {
    needs: &'static [(&'static str, Needs)],
    examples: &'static [Example],
    /// Keys in addition to those of the map.
    patterns: &'static [(&'static str, &'static str)],
    /// Maps whose `check` can contain fields of a message.
    message_checks: &'static [&'static str],
}

const NOTHING: SchemaPart =
    SchemaPart { needs: &[], examples: &[], patterns: &[], message_checks: &[] };

macro_rules! parts {
    ($($name:ident)*) => {
        const PARTS: &[SchemaPart] = &[$($name! { schema }),*];
    };
}

builtins!(each parts);

/// Required keys, as in the reader. Only the reader reports conflicting keys.
const NEEDS: &[(&str, Needs)] = &[
    // A file without them is one to be included.
    ("SCENARIO", Needs::Together("sessions", &["load", "loads"])),
    ("TARGET", Needs::One(&["addresses", "url"])),
    ("ADDRESS", Needs::All(&["url"])),
    ("PROXY", Needs::All(&["url"])),
    ("SOURCE", Needs::One(&["addresses", "ports"])),
    ("VARIABLE", Needs::All(&["env"])),
    ("DATA", Needs::One(&["csv", "json_lines", "list", "generate"])),
    ("SESSION", Needs::All(&["steps"])),
    ("THINK_TIME", Needs::One(&["exponential", "normal"])),
    ("REPEAT", Needs::All(&["steps"])),
    ("DURING", Needs::All(&["steps"])),
    ("WHILE", Needs::All(&["steps"])),
    ("FOR_EACH", Needs::All(&["steps"])),
    ("WAY", Needs::One(&["steps", "use"])),
    ("IF", Needs::One(&["then", "steps"])),
    ("TRANSACTION", Needs::All(&["steps"])),
    ("AUTH", Needs::All(&["user"])),
    ("BODY", Needs::One(&["file", "hex"])),
    ("PART", Needs::Both("name", &["value", "file"])),
    ("TEXT_CHECK", Needs::One(&["contains", "equals", "matches"])),
    ("FOUND_CHECK", Needs::One(&["contains", "equals", "matches", "count"])),
    ("SAVE", Needs::One(&["json", "regex", "xpath", "css", "header", "cookie", "field"])),
    ("LOAD", Needs::All(&["phases"])),
    ("USERS", Needs::All(&["to"])),
    ("CHURN", Needs::One(&["share", "rate"])),
    ("HANDLER", Needs::All(&["message"])),
    ("EVERY", Needs::All(&["time", "do"])),
    ("SPEED", Needs::One(&["read", "write"])),
    ("DELIVERY", Needs::All(&["sent", "received", "match"])),
    ("MATCH", Needs::One(&["sent", "json", "regex"])),
    ("MARK", Needs::One(&["json", "regex"])),
    ("AUDIENCE", Needs::One(&["same", "to"])),
    ("ARRIVALS", Needs::One(&["to", "sine", "points", "log"])),
    ("ITERATIONS", Needs::One(&["total", "rate", "to", "sine", "points", "log"])),
    ("SINE", Needs::All(&["mean", "amplitude", "period"])),
    ("POINTS", Needs::All(&["file"])),
    ("MONITOR", Needs::One(&["url", "node", "host", "json"])),
    ("JSON_VALUE", Needs::All(&["json"])),
    ("METRIC", Needs::All(&["metric"])),
    ("AUDIT", Needs::All(&["name"])),
    ("AUDIT_VIEW", Needs::One(&["redis", "http", "run"])),
    ("AUDIT_COUNT", Needs::One(&["redis", "http", "run"])),
    (
        "OUTPUT",
        Needs::One(&[
            "prometheus",
            "prometheus-rw",
            "prometheus-rw-native",
            "otlp",
            "statsd",
            "influx",
            "csv",
            "jsonl",
            "hdr",
        ]),
    ),
    ("ACCESS_LOG", Needs::All(&["file"])),
    // Protocol files.
    ("PROTOCOL", Needs::Both("messages", &["packet", "seq"])),
    ("FIELD", Needs::All(&["id"])),
    ("BEAT", Needs::All(&["send", "every"])),
];

impl Needs {
    fn entries(&self, kind: &MapKind) -> Entries {
        let mut entries = Entries::default();
        let one = |keys: &[&str]| {
            let list: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            let message = format!("{} has one of {}", kind.what.english(), list.join(", "));
            let mut all: Vec<Json> = keys.iter().map(|key| required(&[key])).collect();
            all[0] = map([("required", texts(&keys[..1])), ("errorMessage", message.into())]);
            Json::from(all)
        };
        match self {
            Needs::All(keys) => entries.add("required", texts(keys)),
            Needs::One(keys) => entries.add("anyOf", one(keys)),
            Needs::Both(key, keys) => {
                entries.add("required", texts(&[key]));
                entries.add("anyOf", one(keys));
            }
            Needs::Together(key, keys) => {
                let mut any: Vec<Json> = keys.iter().map(|key| required(&[key])).collect();
                any.push(required(&[key]));
                entries.add("if", map([("anyOf", Json::from(any))]));
                let then = [("required", texts(&[key])), ("anyOf", one(keys))];
                entries.add("then", map(then));
            }
        }
        entries
    }
}

/// Suggested values, besides keywords: kinds of maps, key, values.
type Example = (&'static str, &'static str, &'static [&'static str]);

const EXAMPLES: &[Example] = &[
    ("SCENARIO", "target", &["http://127.0.0.1:8080"]),
    ("SCENARIO", "thresholds", &["http p99 < 50ms", "errors < 0.1%", "checks > 99.9%"]),
    ("SCENARIO", "abort_when", &["errors > 10% over 10s for 20s", "http p99 > 5s over 30s"]),
    ("SCENARIO", "hold_when", &["errors > 1% for 5s", "host cpu > 90% for 10s"]),
    ("SCENARIO", "graceful_stop", &["30s"]),
    ("SCENARIO", "precision", &["250us", "1ms"]),
    ("CONNECTION", "proxy", &["http://proxy.example:3128"]),
    ("PROXY", "url", &["http://proxy.example:3128"]),
    ("TARGET ADDRESS", "url", &["http://127.0.0.1:8080"]),
    ("TARGET ADDRESS", "unix_socket", &["/run/app.sock", "@app"]),
    ("TRACE", "header", &["traceparent"]),
    ("MONITOR", "url", &["http://127.0.0.1:9100/metrics"]),
    ("MONITOR", "node", &["10.0.0.5"]),
    ("MONITOR", "host", &["user@shop-1"]),
    ("MONITOR", "every", &["5s"]),
    ("METRIC", "metric", &["node_load1"]),
    ("AUDIT", "every", &["30s"]),
    ("AUDIT", "agree_within", &["35s"]),
    ("AUDIT", "equals", &["ok(\"POST /orders\")"]),
    ("AUDIT_VIEW", "scan mget", &["online:${user.id}"]),
    ("AUDIT_VIEW", "id", &["d${user.id}"]),
    ("OUTPUT", "prometheus", &["127.0.0.1:9464"]),
    ("OUTPUT", "statsd", &["127.0.0.1:8125"]),
    ("OUTPUT", "otlp", &["http://127.0.0.1:4318/v1/metrics"]),
    ("LIMITS", "head body message", &["64KiB"]),
    ("DATA", "separator", &[";", "tab"]),
    ("HTTP", "http", &["GET /", "POST /"]),
    ("THINK", "think", &["2s", "1s..5s"]),
    ("THINK_TIME", "exponential", &["3s"]),
    ("STAY", "stay", &["10m"]),
    ("HEARTBEAT", "every", &["30s"]),
    ("HEARTBEAT", "lost_after", &["10s"]),
    ("SOURCE CONNECTION", "addresses sources", &["127.1.0.0/16"]),
    ("SOURCE", "ports", &["20_000..60_000"]),
    ("CHURN", "share", &["20%"]),
    ("CHURN", "every", &["10s"]),
    ("EVERY", "time", &["5m"]),
    ("SPEED", "read write", &["1KiB/s"]),
    ("DELIVERY", "lost_after", &["10s"]),
    ("AUDIENCE", "same", &["${saved.room}"]),
    ("SCENARIO", "protocol", &["chat.protocol.yaml"]),
    ("REPEAT", "repeat", &["3", "3..10"]),
    ("DURING", "during", &["5m"]),
    ("WHILE IF", "while if", &["${saved.code == 0}"]),
    ("FOR_EACH", "for_each", &["${saved.ids}"]),
    ("WAY", "weight", &["70%"]),
    ("RETRY", "wait", &["1s..30s"]),
    ("CHECK", "status", &["200", "2xx", "200..299"]),
    ("CHECK", "size", &["< 10KiB"]),
    ("CHECK", "time", &["< 500ms"]),
    ("EXPECTATION", "delimiter", &["\n"]),
    ("PHASE", "users", &["100"]),
    ("PHASE", "arrivals", &["100/s"]),
    ("PHASE", "iterations", &["500/s", "10_000"]),
    ("PHASE", "for", &["30s"]),
    ("USERS ITERATIONS CHURN", "rate", &["50/s"]),
    ("USERS", "every", &["30s"]),
    ("ARRIVALS", "from to", &["100/s"]),
    ("PROTOCOL", "delimiter", &["\n"]),
    ("BEAT", "every", &["30s"]),
    ("BEAT", "lost_after", &["10s"]),
    ("FIELD", "type", &["u8", "u16", "u32", "u64", "i32", "varint", "str", "bytes", "json"]),
    ("FIELD", "length", &["u8", "u16", "u32", "varint"]),
    ("FIELD", "repeat", &["u8", "u16", "rest"]),
    ("*", "timeout", &["10s"]),
    ("*", "retry", &["3"]),
];

#[cfg(test)]
mod tests;
