//! The fields of a HAR file that are read. Recorders differ: a value that is missing, null or of
//! another type is ignored, and only invalid JSON is an error.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{RECEIVED_BYTES_MAX, SENT_BYTES_MAX};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    #[serde(skip)]
    pub(super) number: usize,
    #[serde(rename = "startedDateTime")]
    pub(super) started: Word,
    #[serde(deserialize_with = "number")]
    pub(super) time: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) request: Option<Request>,
    #[serde(deserialize_with = "lenient")]
    pub(super) response: Option<Response>,
    #[serde(rename = "_resourceType")]
    pub(super) resource_type: Word,
    #[serde(rename = "_webSocketMessages", deserialize_with = "lenient_list")]
    pub(super) messages: Option<Vec<SocketMessage>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Request {
    pub(super) method: Word,
    pub(super) url: Word,
    #[serde(deserialize_with = "list")]
    pub(super) headers: Vec<Field>,
    #[serde(rename = "postData", deserialize_with = "lenient")]
    pub(super) post: Option<PostData>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PostData {
    #[serde(rename = "mimeType")]
    pub(super) mime: Word,
    pub(super) text: Word<SENT_BYTES_MAX>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) params: Option<Vec<Param>>,
    #[serde(alias = "_encoding")]
    pub(super) encoding: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Param {
    pub(super) name: Word,
    pub(super) value: Word<SENT_BYTES_MAX>,
    #[serde(rename = "fileName")]
    pub(super) file_name: Word,
    #[serde(rename = "contentType")]
    pub(super) content_type: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    #[serde(deserialize_with = "number")]
    pub(super) status: Option<f64>,
    #[serde(deserialize_with = "list")]
    pub(super) headers: Vec<Field>,
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Option<Content>,
    /// Why there is no response, in Chrome's words.
    #[serde(rename = "_error")]
    pub(super) error: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    #[serde(rename = "mimeType")]
    pub(super) mime: Word,
    pub(super) text: Word<RECEIVED_BYTES_MAX>,
    pub(super) encoding: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Field {
    pub(super) name: Word,
    pub(super) value: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SocketMessage {
    #[serde(rename = "type")]
    pub(super) direction: Word,
    #[serde(deserialize_with = "number")]
    pub(super) time: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub(super) opcode: Option<f64>,
    pub(super) data: Word<SENT_BYTES_MAX>,
}

/// A text of which at most `MAX` bytes are kept; a number is a text, too.
#[derive(Debug, Default)]
pub(super) struct Word<const MAX: usize = { 64 << 10 }> {
    pub(super) text: Option<String>,
    pub(super) cut: bool,
}

impl<const MAX: usize> Word<MAX> {
    pub(super) fn text(&self) -> String {
        self.text.clone().unwrap_or_default()
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Word<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let any = deserializer.deserialize_any(AnyScalar { bytes_max: MAX })?;
        Ok(Word { text: any.text, cut: any.cut })
    }
}

/// A scalar of any type; a list or a map is ignored.
#[derive(Default)]
struct Scalar {
    text: Option<String>,
    cut: bool,
}

struct AnyScalar {
    bytes_max: usize,
}

impl<'de> Visitor<'de> for AnyScalar {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        let end = text.floor_char_boundary(self.bytes_max);
        Ok(Scalar { text: Some(text[..end].into()), cut: end < text.len() })
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::default())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar { text: Some(value.to_string()), cut: false })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar { text: Some(value.to_string()), cut: false })
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar { text: Some(value.to_string()), cut: false })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar { text: Some(value.to_string()), cut: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Scalar, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Scalar, A::Error> {
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::default())
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let word = Word::<100>::deserialize(deserializer)?;
    Ok(word.text.and_then(|text| text.parse().ok()).filter(|number: &f64| number.is_finite()))
}

/// A map; other types are ignored.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(AnyMap(std::marker::PhantomData))
}

struct AnyMap<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for AnyMap<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        T::deserialize(serde::de::value::MapAccessDeserializer::new(access)).map(Some)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    scalars!(None);
}

fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    lenient_list(deserializer).map(Option::unwrap_or_default)
}

/// A list of maps; other types are ignored.
fn lenient_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    deserializer.deserialize_any(AnyList(std::marker::PhantomData))
}

struct AnyList<T>(std::marker::PhantomData<T>);

/// An item of a list, if it is a map.
struct Lenient<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient(deserializer).map(Lenient)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for AnyList<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Lenient(item)) = access.next_element()? {
            items.extend(item);
        }
        Ok(Some(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    scalars!(None);
}

/// Finds `log.entries` and passes each entry to `each` while the file is read; returns whether it
/// exists.
pub(super) struct Entries<'f> {
    pub(super) each: &'f dyn Fn(Entry),
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(Inside { name: "log", each: self.each })
    }
}

/// A map of which one entry is read.
struct Inside<'f> {
    name: &'static str,
    each: &'f dyn Fn(Entry),
}

impl<'de> Visitor<'de> for Inside<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map with `{}`", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(key) = access.next_key::<String>()? {
            match (key == self.name, self.name) {
                (true, "log") => found |= access.next_value_seed(Log { each: self.each })?,
                (true, _) => found |= access.next_value_seed(Listed { each: self.each })?,
                (false, _) => drop(access.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

struct Log<'f> {
    each: &'f dyn Fn(Entry),
}

impl<'de> DeserializeSeed<'de> for Log<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(Inside { name: "entries", each: self.each })
    }
}

struct Listed<'f> {
    each: &'f dyn Fn(Entry),
}

impl<'de> DeserializeSeed<'de> for Listed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Listed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<bool, A::Error> {
        let mut number = 0;
        while let Some(Lenient::<Entry>(entry)) = access.next_element()? {
            number += 1;
            (self.each)(Entry { number, ..entry.unwrap_or_default() });
        }
        Ok(true)
    }
}
