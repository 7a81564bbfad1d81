//! The path of a JSON field: names and indexes in the fast form, otherwise an RFC 9535 query.

use std::fmt;

use serde_json::Value as Json;

use throng_base::Said;

use super::evaluate;
use super::query::{INDEX_MAX, Segment, Selector, parse_query};
use throng_markup::{PathError, Refusal, beginnings};

/// Maximum length of a path.
const PATH_BYTES_MAX: usize = 4096;

const HELP: Said = say!("separate names with dots and put indexes in brackets: `data.items[0].id`");
const HELP_QUERY: Said =
    say!("to use wildcards, filters or quoted names, start with `$`: `$.items[*].id`, `$['a.b']`");

/// `data.items[0].id`, `$.data.items[0].id`, or a complete query: `$..items[?@.price < 10].id`.
#[derive(Clone, Debug)]
pub struct JsonPath {
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Parts(Vec<JsonPart>),
    /// The text starts with `$`.
    Query {
        text: String,
        segments: Vec<Segment>,
    },
}

/// One step of a simple path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonPart {
    Name(String),
    Index(usize),
}

/// How far a path without a match leads into a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonReach {
    /// Its longest prefix with a match.
    pub path: JsonPath,
    /// The next name, which is missing there.
    pub missing: Option<String>,
    pub there: JsonThere,
}

/// The value at the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonThere {
    /// An object, by its keys.
    Keys(Vec<String>),
    /// How many items the list has.
    List(usize),
    Text,
    Number,
    Bool,
    Null,
}

impl JsonPath {
    pub fn parse(text: &str) -> Result<JsonPath, PathError> {
        let whole = (0, text.len());
        if text.len() > PATH_BYTES_MAX {
            let message = say!("a path can have at most {PATH_BYTES_MAX} bytes");
            return Err(PathError::new(whole, message, HELP));
        }
        let Some(rest) = text.strip_prefix('$') else {
            return Ok(JsonPath::from(plain_parts(text, text)?));
        };
        if rest.is_empty() || rest == "." {
            return Ok(JsonPath::default());
        }
        if !rest.contains(['*', '\'', '"', '?', ':', ',', ' ', '\t', '\r', '\n'])
            && let Some(plain) = rest.strip_prefix('.').or(rest.starts_with('[').then_some(rest))
            && let Ok(parts) = plain_parts(plain, text)
        {
            return Ok(JsonPath::from(parts));
        }
        let segments = parse_query(text)?;
        let parts: Option<Vec<JsonPart>> = segments.iter().map(simple_part).collect();
        Ok(match parts {
            Some(parts) => JsonPath::from(parts),
            None => JsonPath { form: Form::Query { text: text.to_string(), segments } },
        })
    }

    /// The names and indexes, if it is simple.
    pub fn parts(&self) -> Option<&[JsonPart]> {
        match &self.form {
            Form::Parts(parts) => Some(parts),
            Form::Query { .. } => None,
        }
    }

    /// The first match. A query that takes too many steps has none.
    pub fn first<'v>(&self, value: &'v Json) -> Option<&'v Json> {
        self.find(value).ok()?.first().copied()
    }

    /// All matches; a simple path has at most one.
    pub fn all<'v>(&self, value: &'v Json) -> Vec<&'v Json> {
        self.find(value).map(Found::into_vec).unwrap_or_default()
    }

    /// How far it matches.
    pub(crate) fn reach_in(&self, json: &Json) -> Option<JsonReach> {
        let text = self.rooted();
        let pieces = |text: &str| JsonPath::parse(text).ok().map(|path| path.segments().len());
        for shorter in beginnings(&text, pieces) {
            let Ok(path) = JsonPath::parse(shorter) else { continue };
            let Some(value) = path.first(json) else { continue };
            let next = self.segments().get(path.segments().len()).and_then(simple_part);
            let missing = match next {
                Some(JsonPart::Name(name)) => Some(name),
                _ => None,
            };
            return Some(JsonReach { path, missing, there: JsonThere::of(value) });
        }
        None
    }

    /// The path continued with `other`: for checks written as nested maps.
    pub fn join(&self, other: &JsonPath) -> JsonPath {
        if let (Form::Parts(first), Form::Parts(second)) = (&self.form, &other.form) {
            return JsonPath::from([first.as_slice(), second].concat());
        }
        let text = format!("{}{}", self.rooted(), &other.rooted()[1..]);
        let segments = [self.segments(), other.segments()].concat();
        JsonPath { form: Form::Query { text, segments } }
    }

    /// The path of an item of the list at this path.
    pub fn index(&self, index: usize) -> JsonPath {
        self.join(&JsonPath::from(vec![JsonPart::Index(index)]))
    }

    pub(crate) fn find<'v>(&self, value: &'v Json) -> Result<Found<'v>, Refusal> {
        match &self.form {
            Form::Parts(parts) => Ok(Found::One(follow(parts, value))),
            Form::Query { segments, .. } => evaluate::find(segments, value).map(Found::Many),
        }
    }

    fn segments(&self) -> Vec<Segment> {
        match &self.form {
            Form::Query { segments, .. } => segments.clone(),
            Form::Parts(parts) => parts.iter().map(segment_of).collect(),
        }
    }

    /// The text with `$` and a `.` or bracket, to which more can be appended.
    fn rooted(&self) -> String {
        match &self.form {
            Form::Query { text, .. } => text.clone(),
            Form::Parts(parts) => {
                let quoted = parts.iter().map(|part| match part {
                    JsonPart::Name(name) => quote(name),
                    JsonPart::Index(index) => format!("[{index}]"),
                });
                let plain = JsonPath::from(parts.clone()).to_string();
                match parts.first() {
                    None => "$".into(),
                    _ if !parts.iter().all(is_query_name) => {
                        std::iter::once("$".to_string()).chain(quoted).collect()
                    }
                    Some(JsonPart::Index(_)) => format!("${plain}"),
                    Some(JsonPart::Name(_)) => format!("$.{plain}"),
                }
            }
        }
    }
}

impl JsonThere {
    fn of(value: &Json) -> JsonThere {
        match value {
            Json::Object(object) => JsonThere::Keys(object.keys().cloned().collect()),
            Json::Array(items) => JsonThere::List(items.len()),
            Json::String(_) => JsonThere::Text,
            Json::Number(_) => JsonThere::Number,
            Json::Bool(_) => JsonThere::Bool,
            Json::Null => JsonThere::Null,
        }
    }
}

/// The matches of a search, without a list for a single value.
pub(crate) enum Found<'v> {
    One(Option<&'v Json>),
    Many(Vec<&'v Json>),
}

impl<'v> Found<'v> {
    pub(crate) fn first(&self) -> Option<&&'v Json> {
        match self {
            Found::One(value) => value.as_ref(),
            Found::Many(values) => values.first(),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<&'v Json> {
        match self {
            Found::One(value) => value.into_iter().collect(),
            Found::Many(values) => values,
        }
    }
}

impl Default for JsonPath {
    /// The path of the complete value.
    fn default() -> JsonPath {
        JsonPath { form: Form::Parts(Vec::new()) }
    }
}

impl From<Vec<JsonPart>> for JsonPath {
    fn from(parts: Vec<JsonPart>) -> JsonPath {
        JsonPath { form: Form::Parts(parts) }
    }
}

impl PartialEq for JsonPath {
    fn eq(&self, other: &JsonPath) -> bool {
        match (&self.form, &other.form) {
            (Form::Parts(one), Form::Parts(other)) => one == other,
            (Form::Query { text: one, .. }, Form::Query { text: other, .. }) => one == other,
            _ => false,
        }
    }
}

impl Eq for JsonPath {}

impl fmt::Display for JsonPath {
    /// As written, without `$.` if it is names and indexes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match &self.form {
            Form::Query { text, .. } => return f.write_str(text),
            Form::Parts(parts) => parts,
        };
        if parts.is_empty() {
            return f.write_str("$");
        }
        let odd = parts.iter().any(|part| matches!(part, JsonPart::Name(name) if is_odd(name)));
        if odd {
            f.write_str("$")?;
        }
        for (i, part) in parts.iter().enumerate() {
            match part {
                JsonPart::Name(name) if odd => f.write_str(&quote(name))?,
                JsonPart::Name(name) if i == 0 => write!(f, "{name}")?,
                JsonPart::Name(name) => write!(f, ".{name}")?,
                JsonPart::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Whether the fast form cannot express this name.
fn is_odd(name: &str) -> bool {
    name.is_empty() || name.starts_with('$') || name.contains(['.', '[', ']', '*'])
}

/// Whether the name can follow a `.` in a query.
fn is_query_name(part: &JsonPart) -> bool {
    match part {
        JsonPart::Index(_) => true,
        JsonPart::Name(name) => {
            name.starts_with(|c: char| !c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii())
        }
    }
}

fn quote(name: &str) -> String {
    let mut text = String::from("['");
    for c in name.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            '\0'..='\x1f' => text.push_str(&format!("\\u{:04x}", c as u32)),
            _ => text.push(c),
        }
    }
    text.push_str("']");
    text
}

fn follow<'v>(parts: &[JsonPart], value: &'v Json) -> Option<&'v Json> {
    parts.iter().try_fold(value, |value, part| match part {
        JsonPart::Name(name) => value.as_object()?.get(name),
        JsonPart::Index(index) => value.as_array()?.get(*index),
    })
}

fn simple_part(segment: &Segment) -> Option<JsonPart> {
    match (segment.deep, segment.selectors.as_slice()) {
        (false, [Selector::Name(name)]) => Some(JsonPart::Name(name.clone())),
        (false, [Selector::Index(index)]) => Some(JsonPart::Index(usize::try_from(*index).ok()?)),
        _ => None,
    }
}

fn segment_of(part: &JsonPart) -> Segment {
    let selector = match part {
        JsonPart::Name(name) => Selector::Name(name.clone()),
        JsonPart::Index(index) => Selector::Index(i64::try_from(*index).unwrap_or(i64::MAX)),
    };
    Segment { deep: false, selectors: vec![selector] }
}

/// Names and indexes; `plain` is the part of `text` after `$` and `.`.
fn plain_parts(plain: &str, text: &str) -> Result<Vec<JsonPart>, PathError> {
    let mut parts = Vec::new();
    let mut at = text.len() - plain.len();
    if plain.is_empty() {
        return Err(PathError::new((0, text.len()), say!("the path is empty"), HELP));
    }
    for (i, piece) in plain.split('.').enumerate() {
        let (name, indexes) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
        if name.is_empty() && (indexes.is_empty() || i > 0) {
            // The dot before the gap, or the one after it at the start.
            let dot = if i > 0 { at - 1 } else { at };
            let place = (dot, (dot + 1).min(text.len()));
            return Err(PathError::new(
                place,
                say!("a name is missing before or after a `.`"),
                HELP,
            ));
        }
        if name == "*" || name.contains(']') {
            let message = say!("`{name}` is not a name");
            return Err(PathError::new((at, at + name.len()), message, HELP_QUERY));
        }
        if !name.is_empty() {
            parts.push(JsonPart::Name(name.to_string()));
        }
        plain_indexes(indexes, at + name.len(), &mut parts)?;
        at += piece.len() + 1;
    }
    Ok(parts)
}

fn plain_indexes(indexes: &str, mut at: usize, parts: &mut Vec<JsonPart>) -> Result<(), PathError> {
    for index in indexes.split_inclusive(']') {
        let number = index.strip_prefix('[').and_then(|index| index.strip_suffix(']'));
        let parsed = number.and_then(|digits| Some((digits, digits.parse::<usize>().ok()?)));
        match parsed {
            Some((digits, number))
                if number.to_string() == digits && number <= INDEX_MAX as usize =>
            {
                parts.push(JsonPart::Index(number));
            }
            _ => {
                let message = say!("`{index}` is not an index such as `[0]`");
                return Err(PathError::new((at, at + index.len()), message, HELP_QUERY));
            }
        }
        at += index.len();
    }
    Ok(())
}
