//! The list of entries, one at a time. Recorders differ: a value that is missing, null or of
//! another type is ignored, and only invalid JSON is an error.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::json::Json;

/// Passes each entry to `each` while the file is read; returns whether the list exists.
pub(super) struct Entries<'f> {
    /// The names of the maps around the list.
    pub(super) path: &'static [&'static str],
    pub(super) each: &'f mut dyn FnMut(&Json),
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        match self.path {
            [] => deserializer.deserialize_seq(self),
            _ => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            [] => f.write_str("a list of entries"),
            [name, ..] => write!(f, "a map with `{name}`"),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(key) = access.next_key::<String>()? {
            match self.path {
                [name, path @ ..] if key == *name => {
                    found |= access.next_value_seed(Entries { path, each: &mut *self.each })?;
                }
                _ => drop(access.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<bool, A::Error> {
        while let Some(entry) = access.next_element()? {
            (self.each)(&entry);
        }
        Ok(true)
    }
}
