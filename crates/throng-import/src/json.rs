//! JSON whose fields keep their order and whose texts may contain values: for recorded bodies, and
//! for service descriptions in JSON and YAML.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::text::{Piece, Text};
use crate::yaml::Node;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Json {
    #[default]
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(Text),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

/// A body with deeper nesting stays text: scenarios have a limit, too.
const DEPTH_MAX: usize = 40;

impl Json {
    pub(crate) fn parse(text: &str) -> Result<Json, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// A body that may contain values, in quotes or as a whole value.
    pub(crate) fn of_body(body: &Text) -> Option<Json> {
        let trimmed = body.pieces().first().and_then(|piece| match piece {
            Piece::Literal(text) => text.trim_start().chars().next(),
            Piece::Value(_) => None,
        });
        if !matches!(trimmed, Some('{' | '[')) {
            return None;
        }
        let (text, values) = marked(body);
        let json = Json::parse(&text).ok()?;
        (json.depth() <= DEPTH_MAX).then(|| json.unmarked(&values))
    }

    pub(crate) fn text(text: &str) -> Json {
        Json::Text(Text::literal(text))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The map of a field.
    pub(crate) fn map(&self, key: &str) -> Option<&Json> {
        self.get(key).filter(|value| matches!(value, Json::Map(_)))
    }

    /// The text of a field, or else an empty one.
    pub(crate) fn word(&self, key: &str) -> &str {
        self.str(key).unwrap_or_default()
    }

    /// The text of a field; a number as written.
    pub(crate) fn str(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Json::as_str)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Json::Text(text) => text.as_literal(),
            Json::Number(number) => Some(number),
            Json::Bool(true) => Some("true"),
            Json::Bool(false) => Some("false"),
            _ => None,
        }
    }

    /// As a header or a field of a form has it.
    pub(crate) fn as_text(&self) -> Text {
        match self {
            Json::Text(text) => text.clone(),
            Json::Map(_) | Json::List(_) => self.compact(),
            other => Text::literal(other.as_str().unwrap_or_default()),
        }
    }

    pub(crate) fn entries(&self) -> &[(String, Json)] {
        match self {
            Json::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }

    /// Names and values of a map, as a header or a form has them.
    pub(crate) fn pairs(&self) -> Vec<(String, Text)> {
        self.entries().iter().map(|(name, value)| (name.clone(), value.as_text())).collect()
    }

    pub(crate) fn entries_of(&self, key: &str) -> &[(String, Json)] {
        self.get(key).map_or(&[], Json::entries)
    }

    pub(crate) fn list(&self, key: &str) -> &[Json] {
        self.get(key).map_or(&[], Json::items)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some(&Json::Bool(true))
    }

    fn depth(&self) -> usize {
        let inner = match self {
            Json::List(items) => items.iter().map(Json::depth).max(),
            Json::Map(entries) => entries.iter().map(|(_, value)| value.depth()).max(),
            _ => return 0,
        };
        1 + inner.unwrap_or(0)
    }

    /// Each text and number, with the name of its field.
    pub(crate) fn leaves<'j>(&'j mut self, name: &str, visit: &mut dyn FnMut(&str, &mut Json)) {
        match self {
            Json::Text(_) | Json::Number(_) => visit(name, self),
            Json::List(items) => items.iter_mut().for_each(|item| item.leaves(name, visit)),
            Json::Map(entries) => {
                entries.iter_mut().for_each(|(key, value)| value.leaves(key, visit));
            }
            Json::Null | Json::Bool(_) => {}
        }
    }

    /// Each text, with the name of its field.
    pub(crate) fn each_text(&mut self, visit: &mut dyn FnMut(&str, &mut Text)) {
        self.leaves("", &mut |name, leaf| {
            if let Json::Text(text) = leaf {
                visit(name, text);
            }
        });
    }

    pub(crate) fn node(&self) -> Node {
        match self {
            Json::Null => Node::scalar("null"),
            Json::Bool(value) => Node::scalar(value.to_string()),
            Json::Number(number) => Node::scalar(number.clone()),
            Json::Text(text) => text.node(),
            Json::List(items) => Node::List(items.iter().map(Json::node).collect()),
            Json::Map(entries) => {
                let entry = |(key, value): &(String, Json)| {
                    (Text::literal(key.as_str()).scalar(), value.node())
                };
                Node::Map(entries.iter().map(entry).collect())
            }
        }
    }

    /// As compact JSON, with values as expressions: for bodies that cannot be written as YAML.
    pub(crate) fn compact(&self) -> Text {
        let mut out = Text::default();
        self.compact_into(&mut out);
        out
    }

    fn compact_into(&self, out: &mut Text) {
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        match self {
            Json::Null => out.push("null"),
            Json::Bool(value) => out.push(&value.to_string()),
            Json::Number(number) => out.push(number),
            Json::Text(text) if text.as_value().is_some() => out.append(text),
            Json::Text(text) => {
                out.push("\"");
                out.append(&text.map_literals(|literal| {
                    let text = quoted(literal);
                    Text::literal(&text[1..text.len() - 1])
                }));
                out.push("\"");
            }
            Json::List(items) => {
                out.push("[");
                for (number, item) in items.iter().enumerate() {
                    out.push(if number > 0 { "," } else { "" });
                    item.compact_into(out);
                }
                out.push("]");
            }
            Json::Map(entries) => {
                out.push("{");
                for (number, (key, value)) in entries.iter().enumerate() {
                    out.push(if number > 0 { "," } else { "" });
                    out.push(&format!("{}:", quoted(key)));
                    value.compact_into(out);
                }
                out.push("}");
            }
        }
    }

    fn unmarked(self, values: &[String]) -> Json {
        match self {
            Json::Text(text) => Json::Text(text.map_literals(|literal| unmarked(literal, values))),
            Json::List(items) => {
                Json::List(items.into_iter().map(|item| item.unmarked(values)).collect())
            }
            Json::Map(entries) => Json::Map(
                entries.into_iter().map(|(key, value)| (key, value.unmarked(values))).collect(),
            ),
            other => other,
        }
    }
}

/// A key in single quotes, as in a query (RFC 9535, 2.3.1).
pub(crate) fn json_key(key: &str) -> String {
    let mut out = String::new();
    for c in key.chars() {
        match c {
            '\\' | '\'' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Private characters enclose the number of a value while JSON is parsed.
const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';

/// The text with marks instead of values, quoted if the value is not inside a string.
fn marked(body: &Text) -> (String, Vec<String>) {
    let (mut out, mut values) = (String::new(), Vec::new());
    let (mut in_string, mut escaped) = (false, false);
    for piece in body.pieces() {
        match piece {
            Piece::Literal(text) => {
                for c in text.chars().filter(|c| !matches!(*c, OPEN | CLOSE)) {
                    in_string ^= c == '"' && !escaped;
                    escaped = in_string && c == '\\' && !escaped;
                    out.push(c);
                }
            }
            Piece::Value(expression) => {
                let quote = if in_string { "" } else { "\"" };
                out.push_str(&format!("{quote}{OPEN}{}{CLOSE}{quote}", values.len()));
                values.push(expression.clone());
            }
        }
    }
    (out, values)
}

fn unmarked(literal: &str, values: &[String]) -> Text {
    let mut out = Text::default();
    let mut rest = literal;
    while let Some((before, behind)) = rest.split_once(OPEN) {
        let Some((number, after)) = behind.split_once(CLOSE) else { break };
        out.push(before);
        match number.parse::<usize>().ok().and_then(|number| values.get(number)) {
            Some(value) => out.push_value(value.clone()),
            None => out.push(number),
        }
        rest = after;
    }
    out.push(rest);
    out
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        let number = serde_json::Number::from_f64(value);
        Ok(number.map_or(Json::Null, |number| Json::Number(number.to_string())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut entries: Vec<(String, Json)> = Vec::new();
        while let Some((key, value)) = access.next_entry::<String, Json>()? {
            // The last one counts, as in JavaScript; large maps rarely have duplicate keys.
            match entries.len() < 1000 && entries.iter().any(|(other, _)| *other == key) {
                true => entries.iter_mut().filter(|(other, _)| *other == key).for_each(|entry| {
                    entry.1 = value.clone();
                }),
                false => entries.push((key, value)),
            }
        }
        Ok(Json::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_have_values_inside_and_outside_strings() {
        let mut body = Text::literal("{\"b\": \"x-");
        body.push_value("vars.b");
        body.push("\", \"a\": ");
        body.push_value("vars.a");
        body.push(", \"c\": [1.5, \"\\\"\", true, null]}");
        let json = Json::of_body(&body).unwrap();
        let want = "{\"b\":\"x-${vars.b}\",\"a\":${vars.a},\"c\":[1.5,\"\\\"\",true,null]}";
        assert_eq!(json.compact().to_string(), want);
        assert_eq!(json.get("a"), Some(&Json::Text(Text::value("vars.a"))));
        assert_eq!(Json::of_body(&Text::literal("{broken")), None);
        assert_eq!(Json::of_body(&Text::literal("plain")), None);
    }

    #[test]
    fn a_duplicate_field_has_its_last_value() {
        assert_eq!(Json::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap().str("a"), Some("3"));
    }
}
