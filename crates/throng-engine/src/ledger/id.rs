//! IDs of messages: a number for the tables, and the text from the message for display.

use std::sync::Arc;

use throng_expression::Value;

use super::mix;

/// Characters of an ID that are remembered.
const TEXT_CHARS_MAX: usize = 80;
/// IDs of receipts whose texts are remembered, on each shard.
const TEXTS_MAX: usize = 4_096;

/// The ID of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) key: u64,
    /// As in the message; `None` if it equals the digits of the key.
    pub(super) text: Option<Arc<str>>,
}

impl Id {
    pub(crate) fn of(value: Value) -> Id {
        let key = mix::of_value(&value);
        let text = match value {
            Value::UInt(_) => None,
            Value::Int(number) if number >= 0 => None,
            Value::Text(text) if *text == *key.to_string() => None,
            Value::Text(text) if text.chars().nth(TEXT_CHARS_MAX).is_none() => Some(text),
            Value::Bytes(bytes) => Some(shortened(bytes.iter().map(|byte| format!("{byte:02x}")))),
            other => Some(shortened(other.to_text().chars().map(String::from))),
        };
        Id { key, text }
    }
}

fn shortened(mut pieces: impl Iterator<Item = String>) -> Arc<str> {
    let mut text: String = pieces.by_ref().take(TEXT_CHARS_MAX).collect();
    if pieces.next().is_some() {
        text.push('…');
    }
    text.into()
}

/// The ID as in the log of the target.
pub(super) fn shown(key: u64, text: Option<&Arc<str>>) -> String {
    text.map_or_else(|| key.to_string(), |text| text.to_string())
}

/// The texts of the IDs of the last receipts: one place per key, taken by the latest. Empty as long
/// as all IDs are numbers.
#[derive(Debug, Default)]
pub(super) struct Texts {
    places: Vec<Option<(u64, Arc<str>)>>,
}

impl Texts {
    #[inline]
    pub(super) fn keep(&mut self, id: &Id) {
        let Some(text) = &id.text else { return };
        if self.places.is_empty() {
            self.places.resize(TEXTS_MAX, None);
        }
        let place = &mut self.places[id.key as usize % TEXTS_MAX];
        if place.as_ref().is_none_or(|(key, _)| *key != id.key) {
            *place = Some((id.key, Arc::clone(text)));
        }
    }

    pub(super) fn shown(&self, key: u64) -> String {
        let place = self.places.get(key as usize % TEXTS_MAX).and_then(Option::as_ref);
        shown(key, place.filter(|(kept, _)| *kept == key).map(|(_, text)| text))
    }
}

#[cfg(test)]
impl From<u64> for Id {
    fn from(key: u64) -> Id {
        Id { key, text: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_as_in_the_message() {
        let text = |text: &str| Value::Text(text.into());
        let long = "x".repeat(200);
        for (value, want) in [
            (Value::Int(17), "17"),
            (Value::UInt(u64::MAX), "18446744073709551615"),
            (Value::Int(-17), "-17"),
            (text("17"), "17"),
            (text("0017"), "0017"),
            (text("0b9e-é"), "0b9e-é"),
            (Value::Bytes([0, 255][..].into()), "00ff"),
            (text(&long), &format!("{}…", "x".repeat(TEXT_CHARS_MAX))),
        ] {
            let id = Id::of(value.clone());
            assert_eq!(id.key, mix::of_value(&value));
            assert_eq!(shown(id.key, id.text.as_ref()), want);
            let mut texts = Texts::default();
            texts.keep(&id);
            assert_eq!(texts.shown(id.key), want);
        }
    }
}
