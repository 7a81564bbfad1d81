//! JSON that is skipped.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// A value that is read and not kept. It rejects everything that a [`Value`](crate::Value) rejects,
/// while serde's `IgnoredAny` accepts invalid escapes, huge numbers and any depth.
pub struct Passed;

impl<'de> Deserialize<'de> for Passed {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Passed, D::Error> {
        reader.deserialize_any(Passed)
    }
}

impl<'de> Visitor<'de> for Passed {
    type Value = Passed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    scalars!(Passed);

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Passed, A::Error> {
        while items.next_element::<Passed>()?.is_some() {}
        Ok(Passed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Passed, A::Error> {
        while entries.next_entry::<Passed, Passed>()?.is_some() {}
        Ok(Passed)
    }
}
