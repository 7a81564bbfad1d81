//! JSON as values of scenarios: complete, or only the columns in use.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use throng_expression::{Passed, Value};

/// Why a text is not valid JSON, and the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub what: String,
    pub column: usize,
}

/// Reads the text as one JSON value.
pub(crate) fn parse(text: &str) -> Result<Value, Mistake> {
    serde_json::from_str(text).map_err(|error| mistake(&error))
}

/// Checks that the text is one JSON value that the other functions can read.
pub(crate) fn check(text: &str) -> Result<(), Mistake> {
    serde_json::from_str::<Passed>(text).map(|_| ()).map_err(|error| mistake(&error))
}

/// Calls `found` for the entries with these names if the text is an object; `names` are sorted. For
/// a duplicate name it is called twice, and the last value wins.
pub(crate) fn select(
    text: &str,
    names: &[(Arc<str>, u16)],
    found: &mut dyn FnMut(u16, Value),
) -> Result<(), Mistake> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Selected { names, found }
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
        .map_err(|error| mistake(&error))
}

fn mistake(error: &serde_json::Error) -> Mistake {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
    Mistake { what: what.to_string(), column: error.column() }
}

struct Selected<'a> {
    names: &'a [(Arc<str>, u16)],
    found: &'a mut dyn FnMut(u16, Value),
}

impl<'de> DeserializeSeed<'de> for Selected<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Rows that are not objects have no columns.
impl<'de> Visitor<'de> for Selected<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    scalars!(());

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(column) = entries.next_key_seed(Name(self.names))? {
            match column {
                Some(column) => {
                    let value = entries.next_value()?;
                    (self.found)(column, value);
                }
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The name of an entry as the number of its column.
struct Name<'a>(&'a [(Arc<str>, u16)]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<u16>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u16>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<u16>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<u16>, E> {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(name));
        Ok(found.ok().map(|at| self.0[at].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn only_the_requested_entries_are_read() {
        let names = [("a".into(), 0), ("c".into(), 1)];
        let mut found = Vec::new();
        let row = r#"{"b":{"a":9},"a":1,"c":"x","a":2}"#;
        select(row, &names, &mut |column, value| found.push((column, value))).unwrap();
        assert_eq!(found, [(0, Value::Int(1)), (1, text("x")), (0, Value::Int(2))]);
        for scalar in ["1", "null", "\"a\"", "[{\"a\":1}]", "-1", "1.5", "true"] {
            select(scalar, &names, &mut |_, _| panic!("{scalar} has no columns")).unwrap();
        }
    }

    #[test]
    fn mistakes_have_a_column() {
        for (text, what) in [
            ("{\"a\":1,}", "trailing comma"),
            ("{\"a\":1} x", "trailing characters"),
            ("[1e999]", "number out of range"),
            (r#"{"a":"\ud800"}"#, "unexpected end of hex escape"),
            ("{", "EOF while parsing an object"),
        ] {
            let mistake = check(text).unwrap_err();
            assert_eq!(mistake.what, what, "{text}");
            assert!(mistake.column > 0);
            assert!(parse(text).is_err());
        }
        assert!(check(&"[".repeat(100_000)).is_err());
    }
}
