//! Shapes as JSON Schema. YAML determines types itself (`100` is a number, `50_000` a text), so a
//! value is checked by type and, if it is a text, by pattern; `${…}` is valid everywhere.

use throng_base::units::{self, UnitError};

use crate::keys::{MAP_KINDS, MapKind, Shape};
use crate::protocol::keys::PROTOCOL_KINDS;
use crate::schema::json::{Entries, Json, map, texts};
use crate::schema::reference;

/// A decimal number as `throng_base::units` reads it.
const NUMBER: &str = r"(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)";

/// An expression, whose value is unknown.
const FILLED_IN: &str = r"\$\{";

/// The values that a shape accepts, collected from its alternatives.
#[derive(Default)]
struct Taken {
    anything: bool,
    /// Any scalar.
    scalar: bool,
    /// Null.
    empty: bool,
    /// YAML types besides text and those implied by the fields below.
    types: Vec<&'static str>,
    patterns: Vec<String>,
    words: Vec<&'static str>,
    steps: bool,
    list: Option<&'static Shape>,
    map: Option<&'static Shape>,
    kind: Option<&'static MapKind>,
    /// The message for other values.
    wanted: Vec<String>,
}

/// The shared definitions.
pub(super) fn definitions() -> Entries {
    let mut entries = Entries::default();
    for shape in SHARED {
        if let Some(name) = shared(shape) {
            entries.add(name, Taken::of(shape).scalars(&[]).into_json());
        }
    }
    // With explicit types, editors would suggest `true` and `null` for every text. The empty
    // `properties` distinguish it from the text alternative, otherwise its title is shown twice.
    let not = |types: &[&str]| {
        let others = map([("type", texts(types)), ("properties", map([]))]);
        map([("not", others), ("properties", map([]))])
    };
    entries.add("number_or_bool", not(&["string", "array", "object", "null"]));
    entries.add("other_or_empty", not(&["string", "array", "object"]));
    entries
}

static SHARED: &[Shape] = &[
    Shape::Text,
    Shape::Whole,
    Shape::Count,
    Shape::Duration,
    Shape::DurationRange,
    Shape::Size,
    Shape::Rate,
    Shape::Share,
    Shape::Bool,
    Shape::Expression,
];

fn shared(shape: &Shape) -> Option<&'static str> {
    Some(match shape {
        Shape::Text => "text",
        Shape::Whole => "whole",
        Shape::Count => "amount",
        Shape::Duration => "duration",
        Shape::DurationRange => "duration_range",
        Shape::Size => "size",
        Shape::Rate => "rate",
        Shape::Share => "share",
        Shape::Bool => "bool",
        Shape::Expression => "expression",
        _ => return None,
    })
}

/// The schema of a value; `doc` describes it.
pub(super) fn schema(shape: &'static Shape, doc: Entries, examples: &[&str]) -> Entries {
    let mut entries = Entries::default();
    if let Some(name) = shared(shape) {
        entries.add("$ref", format!("#/definitions/{name}"));
        entries.extend(doc);
        entries.extend(offered(examples.iter()));
        return entries;
    }
    if let Shape::Nothing = shape {
        // Without a type, editors write the word alone.
        let then = map([("type", "null".into()), ("errorMessage", "nothing stands here".into())]);
        entries.extend(doc);
        entries.add("if", map([]));
        entries.add("then", then);
        return entries;
    }
    let taken = Taken::of(shape);
    let single = matches!(shape, Shape::Kind(_) | Shape::Steps);
    if let (true, Some(name)) = (single, taken.reference()) {
        entries.add("$ref", format!("#/definitions/{name}"));
        entries.extend(doc);
        return entries;
    }
    if let Shape::Words(words) = shape {
        let mut one = Entries::default();
        one.add("enum", texts(words));
        one.extend(doc.clone());
        let filled_in = map([("type", "string".into()), ("pattern", FILLED_IN.into())]);
        entries.extend(doc);
        entries.add("anyOf", vec![one.into_json(), filled_in]);
        return entries;
    }
    entries.extend(doc);
    match (taken.anything, taken.reference()) {
        (true, Some(name)) => entries.add("anyOf", vec![reference(&name), map([])]),
        // A single alternative that accepts anything makes editors add a colon after the key.
        (true, None) => entries.add("anyOf", vec![map([])]),
        (false, _) => entries.extend(taken.scalars(examples)),
    }
    entries
}

impl Taken {
    fn of(shape: &'static Shape) -> Taken {
        let mut taken = Taken::default();
        taken.add(shape);
        taken
    }

    fn add(&mut self, shape: &'static Shape) {
        match shape {
            Shape::OneOf(shapes) => shapes.iter().for_each(|shape| self.add(shape)),
            Shape::Anything => self.anything = true,
            Shape::Text | Shape::Expression => {
                self.scalar = true;
                self.want("one value stands here, such as `a text` or `5`");
            }
            Shape::Nothing => {
                self.empty = true;
                self.want("nothing");
            }
            Shape::Bool => {
                self.text("true|false", "`true` or `false`");
                self.types.push("boolean");
            }
            Shape::Words(words) => {
                self.words.extend(*words);
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                self.want(&words.join(", "));
            }
            Shape::Steps => {
                self.steps = true;
                self.want("a list of steps");
            }
            Shape::List(inner) => {
                self.list = Some(inner);
                self.want("a list");
            }
            Shape::Map(inner) => {
                self.map = Some(inner);
                self.want("a map of names and values");
            }
            Shape::Kind(kind) => {
                self.kind = Some(kind);
                let keys: Vec<String> = kind.names().map(|key| format!("`{key}`")).collect();
                self.want(&format!("a map with {}", keys.join(", ")));
            }
            _ => self.add_unit(shape),
        }
    }

    fn add_unit(&mut self, shape: &Shape) {
        let duration = format!(r"(?:{NUMBER}\s*(?:ns|us|µs|μs|ms|s|min|m|h|d)\s*)+");
        let count = format!("{NUMBER}[kKM]?");
        match shape {
            Shape::Whole => self.text("[0-9_]+", "a whole number: `7`"),
            Shape::Count => self.text(&count, &help(units::parse_count)),
            Shape::CountRange => {
                self.text(&format!(r"{count}(?:\s*\.\.\s*{count})?"), "`3`, or a range: `3..10`");
            }
            Shape::Duration => {
                let duration = format!("{duration}|{NUMBER}");
                self.text(&duration, &help(units::parse_time));
            }
            Shape::DurationRange => {
                let seconds = format!(r"{NUMBER}(?:\s*\.\.\s*{NUMBER})?");
                let range = format!(r"{duration}(?:\.\.\s*{duration})?|{seconds}");
                self.text(&range, "a duration or a range of them: `2s`, `1s..5s`");
            }
            Shape::Size => {
                let size = format!(r"{NUMBER}\s*(?:B|kB|KB|MB|GB|KiB|K|k|MiB|M|GiB|G)?");
                self.text(&size, &help(units::parse_size));
            }
            Shape::Rate => {
                let time = "s|sec|second|m|min|minute|h|hour|d|day";
                let rate = format!(r"{NUMBER}\s*/\s*(?:{time}|{duration})");
                self.text(&rate, &help(units::parse_rate));
            }
            Shape::Share => self.text(&format!(r"{NUMBER}\s*%"), &help(units::parse_share)),
            _ => {}
        }
        match shape {
            Shape::Whole | Shape::Count | Shape::CountRange => self.types.push("integer"),
            Shape::Size | Shape::Duration | Shape::DurationRange => self.types.push("number"),
            _ => {}
        }
    }

    fn text(&mut self, pattern: &str, wanted: &str) {
        self.patterns.push(pattern.to_string());
        self.want(wanted);
    }

    fn want(&mut self, wanted: &str) {
        self.wanted.push(wanted.to_string());
    }

    /// The definition of the map or of the steps that are accepted.
    fn reference(&self) -> Option<String> {
        let Some(kind) = self.kind else {
            return self.steps.then(|| "steps".to_string());
        };
        let mut kinds = MAP_KINDS.iter().chain(PROTOCOL_KINDS);
        let found = kinds.find(|(_, other)| std::ptr::eq(*other, kind));
        found.map(|(name, _)| name.to_ascii_lowercase())
    }

    /// Types and patterns first; maps and lists are then checked separately.
    fn scalars(&self, examples: &[&str]) -> Entries {
        let mut entries = Entries::default();
        let mut types: Vec<&str> = self.types.clone();
        let is_text = self.scalar || !self.patterns.is_empty() || !self.words.is_empty();
        if is_text {
            types.insert(0, "string");
        }
        if self.kind.is_some() || self.map.is_some() {
            types.push("object");
        }
        if self.list.is_some() || self.steps {
            types.push("array");
        }
        if self.empty && !self.scalar {
            types.push("null");
        }
        let types = match types[..] {
            [one] => Json::from(one),
            _ => texts(&types),
        };
        let message = self.wanted.join(", or ");
        match self.scalar {
            true => {
                let first = map([("type", types), ("errorMessage", message.into())]);
                let second = if self.empty { "other_or_empty" } else { "number_or_bool" };
                entries.add("anyOf", vec![first, reference(second)]);
            }
            false => {
                entries.add("type", types);
                entries.add("errorMessage", message);
            }
        }
        if is_text && !self.scalar {
            let words = self.words.iter().map(|word| word.to_string());
            let patterns: Vec<String> = self.patterns.iter().cloned().chain(words).collect();
            entries.add("pattern", format!(r"^\s*(?:{})\s*$|{FILLED_IN}", patterns.join("|")));
        }
        if self.types.iter().any(|one| matches!(*one, "integer" | "number")) {
            entries.add("minimum", 0);
        }
        self.inner(&mut entries, is_text, examples);
        entries
    }

    fn inner(&self, entries: &mut Entries, is_text: bool, examples: &[&str]) {
        let items = self.list.map(|inner| match inner {
            // Editors suggest values for an item only if its type is one.
            Shape::Text if !is_text && !examples.is_empty() => {
                let mut items = Entries::default();
                items.add("type", "string");
                items.extend(offered(examples.iter()));
                items.into_json()
            }
            _ => schema(inner, Entries::default(), examples).into_json(),
        });
        let mut typed = Vec::new();
        match items {
            // With `items`, editors would start a list even if a scalar is more common.
            Some(items) if is_text => typed.push(when("array", map([("items", items)]))),
            Some(items) => entries.add("items", items),
            None => {}
        }
        if let Some(inner) = self.map {
            let values = schema(inner, Entries::default(), &[]).into_json();
            entries.add("additionalProperties", values);
        }
        if let (true, Some(_)) = (self.steps, self.kind) {
            typed.push(when("array", reference("steps")));
        }
        if let Some(name) = self.reference() {
            typed.push(when("object", reference(&name)));
        }
        match typed.len() {
            0 | 1 => typed.into_iter().for_each(|one| entries.extend(one)),
            _ => {
                let all: Vec<Json> = typed.into_iter().map(Entries::into_json).collect();
                entries.add("allOf", all);
            }
        }
        if is_text {
            entries.extend(offered(examples.iter().chain(&self.words)));
        }
    }
}

/// Constraints on values of a type.
fn when(kind: &str, then: Json) -> Entries {
    let mut entries = Entries::default();
    // The empty `properties` again prevent hover from treating it as an alternative.
    entries.add("if", map([("type", kind.into()), ("properties", map([]))]));
    entries.add("then", then);
    entries
}

/// Values that editors suggest.
fn offered<'e>(examples: impl Iterator<Item = &'e &'e str>) -> Entries {
    let mut entries = Entries::default();
    let examples: Vec<Json> = examples
        .map(|text| text.parse().map_or(Json::from(*text), |number: u64| Json::from(number)))
        .collect();
    if !examples.is_empty() {
        entries.add("examples", examples);
    }
    entries
}

/// The explanation of a unit, from its parser.
fn help<T>(parse: fn(&str) -> Result<T, UnitError>) -> String {
    parse("").err().map_or_else(String::new, |reason| reason.help.english())
}
