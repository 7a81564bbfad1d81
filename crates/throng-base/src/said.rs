//! Messages to users: a key, which is the English template, and its values. A message is rendered
//! where it is displayed, in the reader's language. A value can itself be a message, such as a
//! parser's error.
//!
//! `say!` creates one, and does not compile without a translation. Foreign messages, such as those
//! of an operating system, are their own key ([`Said::of_others`]).

use std::borrow::Cow;
use std::{fmt, io};

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clean::clean;
use crate::language::{Language, rendering, spoken};

#[derive(Clone, Default)]
pub struct Said {
    key: Cow<'static, str>,
    /// `None` without values: then it can be a constant.
    values: Option<Box<[Argument]>>,
}

/// A value of a message.
#[derive(Clone)]
pub enum Argument {
    /// A number, a name, or user input: the same in every language.
    Text(String),
    /// A message of throng.
    Said(Said),
}

/// A type that can be a value of a message.
pub trait Speak {
    fn argument(&self) -> Argument;
}

impl<T: fmt::Display + ?Sized> Speak for T {
    fn argument(&self) -> Argument {
        Argument::Text(self.to_string())
    }
}

impl Speak for Said {
    fn argument(&self) -> Argument {
        Argument::Said(self.clone())
    }
}

impl Speak for &Said {
    fn argument(&self) -> Argument {
        Argument::Said((*self).clone())
    }
}

impl Said {
    /// A message without values; used by `say!`.
    pub const fn plain(key: &'static str) -> Said {
        Said { key: Cow::Borrowed(key), values: None }
    }

    /// A message with values; used by `say!`.
    pub fn with(key: &'static str, values: Vec<Argument>) -> Said {
        Said { key: Cow::Borrowed(key), values: Some(values.into()) }
    }

    /// A message of an operating system, a library or a target. Common ones have translations;
    /// others are shown unchanged.
    pub fn of_others(text: impl Into<String>) -> Said {
        Said { key: Cow::Owned(text.into()), values: None }
    }

    /// The message of an I/O error, which may contain a message of throng.
    pub fn of_error(error: &io::Error) -> Said {
        let reason = Said::reason(error);
        match error.raw_os_error() {
            Some(number) => say!("{reason} (os error {number})"),
            None => reason,
        }
    }

    /// The same without `(os error 111)`.
    pub fn reason(error: &io::Error) -> Said {
        if let Some(Told(said)) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return said.clone();
        }
        let mut text = error.to_string();
        text.truncate(text.find(" (os error").unwrap_or(text.len()));
        Said::of_others(text)
    }

    fn values(&self) -> &[Argument] {
        self.values.as_deref().unwrap_or_default()
    }

    /// A template from a table, with its values.
    pub fn filled(mut self, values: &[&dyn Speak]) -> Said {
        self.values = Some(values.iter().map(|value| value.argument()).collect());
        self
    }

    /// Makes foreign text in it harmless.
    pub fn cleaned(mut self) -> Said {
        self.change_texts(&|text| clean(text));
        self
    }

    /// The same, with each foreign text truncated to `chars_max` characters and an ellipsis.
    pub fn shortened(mut self, chars_max: usize) -> Said {
        self.change_texts(&|text| match text.char_indices().nth(chars_max) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_string(),
        });
        self
    }

    /// Joins messages with commas.
    pub fn listed(parts: impl IntoIterator<Item = Said>) -> Said {
        let both = |before: Said, next: Said| say!("{before}, {next}");
        parts.into_iter().reduce(both).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.english().is_empty()
    }

    /// Changes every foreign text.
    pub fn change_texts(&mut self, change: &dyn Fn(&str) -> String) {
        if let Cow::Owned(text) = &mut self.key {
            *text = change(text);
        }
        for value in self.values.iter_mut().flatten() {
            match value {
                Argument::Text(text) => *text = change(text),
                Argument::Said(said) => said.change_texts(change),
            }
        }
    }

    /// In English, as for machine-readable output.
    pub fn english(&self) -> String {
        self.render(Language::English)
    }

    /// In the user's language.
    pub fn spoken(&self) -> String {
        self.render(spoken())
    }

    pub fn render(&self, language: Language) -> String {
        let translated = match language {
            Language::English => None,
            Language::Chinese => rendering(&self.key),
        };
        let template = translated.unwrap_or(&self.key);
        if self.values().is_empty() {
            return template.to_string();
        }
        let mut out = String::new();
        let (mut rest, mut turn) = (template, 0);
        while let Some((before, number, after)) = next_place(rest) {
            out.push_str(before);
            let value = match self.values().get(number.unwrap_or(turn)) {
                Some(Argument::Text(text)) => Cow::Borrowed(text.as_str()),
                Some(Argument::Said(said)) => Cow::Owned(said.render(language)),
                None => Cow::Borrowed(""),
            };
            turn += 1;
            // Chinese characters are separated from Latin text and code by a space.
            let is_spaced = translated.is_some();
            if is_spaced && out.ends_with(is_ideograph) && value.starts_with(is_beside_space) {
                out.push(' ');
            }
            out.push_str(&value);
            rest = after;
            if is_spaced && rest.starts_with(is_ideograph) && out.ends_with(is_beside_space) {
                out.push(' ');
            }
        }
        out + rest
    }
}

impl From<&Said> for Said {
    fn from(said: &Said) -> Said {
        said.clone()
    }
}

/// The next `{}` or `{1}`: the text before it, its number, and the text after it.
pub(crate) fn next_place(text: &str) -> Option<(&str, Option<usize>, &str)> {
    let mut from = 0;
    loop {
        let open = from + text.get(from..)?.find('{')?;
        let close = open + text[open..].find('}')?;
        let inner = &text[open + 1..close];
        if inner.is_empty() || inner.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some((&text[..open], inner.parse().ok(), &text[close + 1..]));
        }
        from = open + 1;
    }
}

fn is_ideograph(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

fn is_beside_space(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | '(' | ')')
}

/// A message as the reason of a library's error, such as an I/O error.
#[derive(Debug)]
pub struct Told(pub Said);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.english())
    }
}

impl std::error::Error for Told {}

/// The English text.
impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.english().fmt(f)
    }
}

/// Compares the English texts.
impl PartialEq for Said {
    fn eq(&self, other: &Said) -> bool {
        self.english() == other.english()
    }
}

impl Eq for Said {}

/// Compares with the English text.
impl<T: AsRef<str> + ?Sized> PartialEq<T> for Said {
    fn eq(&self, other: &T) -> bool {
        self.english() == other.as_ref()
    }
}

/// A message without values is serialized as text, others as a list of the template and its values.
/// A nested list is a message of throng.
impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.values().is_empty() {
            true => serializer.serialize_str(&self.key),
            false => self.serialize_list(serializer),
        }
    }
}

impl Said {
    fn serialize_list<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.values().len() + 1))?;
        list.serialize_element(&self.key)?;
        self.values().iter().try_for_each(|value| list.serialize_element(value))?;
        list.end()
    }
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Argument::Text(text) => serializer.serialize_str(text),
            Argument::Said(said) => said.serialize_list(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Said, D::Error> {
        Ok(match Argument::deserialize(deserializer)? {
            Argument::Text(text) => Said::of_others(text),
            Argument::Said(said) => said,
        })
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Argument, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Argument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of a template and its values")
    }

    fn visit_str<E>(self, text: &str) -> Result<Argument, E> {
        Ok(Argument::Text(text.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Argument, A::Error> {
        let key: Option<String> = list.next_element()?;
        let key = key.ok_or_else(|| A::Error::custom("a sentence without its template"))?;
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Argument::Said(Said { key: Cow::Owned(key), values: Some(values.into()) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_rendered_in_both_languages() {
        let unit = "fortnight";
        let inner = say!("`{unit}` is not a unit of time");
        assert_eq!(inner.english(), "`fortnight` is not a unit of time");
        assert_eq!(inner.render(Language::Chinese), "`fortnight` 不是时间单位");
        let outer = say!("{}: {}", "x", inner);
        assert_eq!(outer.english(), "x: `fortnight` is not a unit of time");
        assert_eq!(outer.render(Language::Chinese), "x：`fortnight` 不是时间单位");
        assert_eq!(tell!("help"), "help", "English is spoken in tests");
        assert_eq!(say!("{:.1}/{n}", 0.25, n = 3).english(), "0.2/3");
    }

    #[test]
    fn serialization_keeps_the_key_and_the_values() {
        let inner = say!("`{}` is not a unit of time", "x");
        for (said, json) in [
            (say!("a duration is missing"), r#""a duration is missing""#),
            (inner.clone(), r#"["`{}` is not a unit of time","x"]"#),
            (
                say!("{}: {}", say!("error"), &inner),
                r#"["{}: {}",["error"],["`{}` is not a unit of time","x"]]"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&said).unwrap(), json);
            assert_eq!(serde_json::from_str::<Said>(json).unwrap(), said);
        }
        assert!(serde_json::from_str::<Said>("[]").is_err());
        assert!(serde_json::from_str::<Said>("3").is_err());
    }

    #[test]
    fn system_errors_are_identified_by_their_reason() {
        let refused = io::Error::from_raw_os_error(111);
        let said = Said::of_error(&refused);
        assert_eq!(said, "Connection refused (os error 111)");
        assert_eq!(said.render(Language::Chinese), "连接被拒绝（os error 111）");
        assert_eq!(Said::reason(&refused).render(Language::Chinese), "连接被拒绝");
        let told = io::Error::other(Told(say!("a duration is missing")));
        assert_eq!(Said::of_error(&told).render(Language::Chinese), "缺少时长");
    }

    #[test]
    fn unknown_messages_are_shown_unchanged() {
        let said: Said = serde_json::from_str(r#"["of a {} version","later"]"#).unwrap();
        assert_eq!(said.render(Language::Chinese), "of a later version");
        assert_eq!(Said::of_others("so it is").render(Language::Chinese), "so it is");
        assert_eq!(Said::of_others("{}").english(), "{}");
    }
}
