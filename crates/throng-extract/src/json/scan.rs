//! Finds several simple paths in one pass over JSON, building only the requested values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use throng_expression::{Passed, Value, within_range};

use super::path::{JsonPart, JsonPath};
use super::{NotJson, plain_bytes};

/// The paths of several fields, read together. The hot path of checks.
#[derive(Clone, Debug)]
pub struct JsonPaths {
    paths: Vec<JsonPath>,
    root: Branch,
}

/// The paths that continue at one value.
#[derive(Clone, Debug, Default)]
struct Branch {
    /// The paths that end here.
    slots: Vec<usize>,
    names: Vec<(String, Branch)>,
    /// In rising order.
    indexes: Vec<(usize, Branch)>,
}

impl JsonPaths {
    /// `None` if one of them is a complete query: those need the complete value.
    pub fn new(paths: Vec<JsonPath>) -> Option<JsonPaths> {
        let mut root = Branch::default();
        for (slot, path) in paths.iter().enumerate() {
            let end = path.parts()?.iter().fold(&mut root, Branch::child);
            end.slots.push(slot);
        }
        Some(JsonPaths { paths, root })
    }

    pub fn paths(&self) -> &[JsonPath] {
        &self.paths
    }

    /// Stores the matches of the paths in `out`, one per path, `None` if missing. The result is the
    /// same as parsing everything and following the paths; the last of repeated names counts. On an
    /// error all are `None`.
    pub fn read(&self, bytes: &[u8], out: &mut [Option<Value>]) -> Result<(), NotJson> {
        debug_assert_eq!(out.len(), self.paths.len());
        let bytes = plain_bytes(bytes)?;
        let read = self.read_once(bytes, out);
        let read = read.or_else(|error| match within_range(bytes) {
            Some(bytes) => self.read_once(&bytes, out),
            None => Err(error),
        });
        read.map_err(|error| {
            out.fill(None);
            NotJson::of(&error)
        })
    }

    fn read_once(&self, bytes: &[u8], out: &mut [Option<Value>]) -> serde_json::Result<()> {
        out.fill(None);
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        Read { branch: &self.root, out }.deserialize(&mut reader)?;
        reader.end()
    }
}

impl Branch {
    fn child(&mut self, part: &JsonPart) -> &mut Branch {
        match part {
            JsonPart::Name(name) => {
                let at = self.names.iter().position(|(other, _)| other == name);
                let at = at.unwrap_or_else(|| {
                    self.names.push((name.clone(), Branch::default()));
                    self.names.len() - 1
                });
                &mut self.names[at].1
            }
            JsonPart::Index(index) => {
                let at = self.indexes.binary_search_by_key(index, |(other, _)| *other);
                let at = at.unwrap_or_else(|at| {
                    self.indexes.insert(at, (*index, Branch::default()));
                    at
                });
                &mut self.indexes[at].1
            }
        }
    }

    fn children(&self) -> impl Iterator<Item = &Branch> {
        let named = self.names.iter().map(|(_, branch)| branch);
        named.chain(self.indexes.iter().map(|(_, branch)| branch))
    }

    /// Drops earlier matches: the same name was repeated.
    fn clear(&self, out: &mut [Option<Value>]) {
        self.slots.iter().for_each(|slot| out[*slot] = None);
        self.children().for_each(|branch| branch.clear(out));
    }

    fn put(&self, value: &Value, out: &mut [Option<Value>]) {
        self.slots.iter().for_each(|slot| out[*slot] = Some(value.clone()));
    }

    /// Stores the parts of a value that was built because a path ends at it.
    fn put_all(&self, json: &Json, out: &mut [Option<Value>]) {
        if !self.slots.is_empty() {
            self.put(&Value::from_json(json), out);
        }
        if let Json::Object(entries) = json {
            for (name, branch) in &self.names {
                if let Some(json) = entries.get(name) {
                    branch.put_all(json, out);
                }
            }
        }
        if let Json::Array(items) = json {
            for (index, branch) in &self.indexes {
                if let Some(json) = items.get(*index) {
                    branch.put_all(json, out);
                }
            }
        }
    }
}

/// Reads one value that some paths need.
struct Read<'p, 'o> {
    branch: &'p Branch,
    out: &'o mut [Option<Value>],
}

impl<'de> DeserializeSeed<'de> for Read<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.branch.put(&Value::Null, self.out);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.branch.put(&Value::Bool(value), self.out);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.branch.put(&Value::Int(value), self.out);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        let value = i64::try_from(value).map_or(Value::UInt(value), Value::Int);
        self.branch.put(&value, self.out);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.branch.put(&Value::Float(value), self.out);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if !self.branch.slots.is_empty() {
            self.branch.put(&Value::Text(text.into()), self.out);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if !self.branch.slots.is_empty() {
            let entries = serde::de::value::MapAccessDeserializer::new(map);
            let json = <Json as serde::Deserialize>::deserialize(entries)?;
            self.branch.put_all(&json, self.out);
            return Ok(());
        }
        while let Some(known) = map.next_key_seed(Key { names: &self.branch.names })? {
            match known {
                Some(branch) => {
                    branch.clear(self.out);
                    map.next_value_seed(Read { branch, out: self.out })?;
                }
                None => {
                    map.next_value::<Passed>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if !self.branch.slots.is_empty() {
            let items = serde::de::value::SeqAccessDeserializer::new(items);
            let json = <Json as serde::Deserialize>::deserialize(items)?;
            self.branch.put_all(&json, self.out);
            return Ok(());
        }
        let mut at = 0;
        for (index, branch) in &self.branch.indexes {
            while at < *index {
                if items.next_element::<Passed>()?.is_none() {
                    return Ok(());
                }
                at += 1;
            }
            if items.next_element_seed(Read { branch, out: self.out })?.is_none() {
                return Ok(());
            }
            at += 1;
        }
        while items.next_element::<Passed>()?.is_some() {}
        Ok(())
    }
}

/// Finds a name among the requested ones, without keeping it.
struct Key<'p> {
    names: &'p [(String, Branch)],
}

impl<'de, 'p> DeserializeSeed<'de> for Key<'p> {
    type Value = Option<&'p Branch>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Key<'p> {
    type Value = Option<&'p Branch>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.names.iter().find(|(name, _)| name == key).map(|(_, branch)| branch))
    }
}
