//! The types of the key tables: maps, keys, and the shapes of values.

use throng_base::Said;

use super::{CHECK, CONDITIONS, EXPECTATION, MESSAGE};

/// A kind of map and its keys.
#[derive(Debug)]
pub struct MapKind {
    /// As in "`x` is not a key of …".
    pub what: Said,
    pub keys: &'static [KeyDoc],
}

/// A key of a map.
#[derive(Debug)]
pub struct KeyDoc {
    pub name: &'static str,
    pub doc: &'static str,
    pub shape: Shape,
    /// Not supported in this version: what to do instead.
    pub later: Option<Said>,
}

/// The shape of a key's value. Any scalar may be an expression `${…}` instead.
#[derive(Debug)]
pub enum Shape {
    /// Any scalar, as written.
    Text,
    /// `7`
    Whole,
    /// `100`, `50_000`, `10k`
    Count,
    /// `3` or `3..10`
    CountRange,
    /// `250ms`
    Duration,
    /// `3s` or `1s..5s`
    DurationRange,
    /// `64KiB`
    Size,
    /// `500/s`
    Rate,
    /// `5%`
    Share,
    /// `true` or `false`
    Bool,
    /// One of these words.
    Words(&'static [&'static str]),
    /// `${…}` with a boolean or the required value.
    Expression,
    /// No value.
    Nothing,
    /// A list of steps, see [`VERBS`].
    Steps,
    List(&'static Shape),
    /// A map with names that the user chooses.
    Map(&'static Shape),
    Kind(&'static MapKind),
    OneOf(&'static [Shape]),
    Anything,
}

impl MapKind {
    pub fn find(&self, name: &str) -> Option<&'static KeyDoc> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// True if a declared protocol adds its own keys: its messages and their fields.
    pub(crate) fn of_protocol(&self) -> bool {
        [&MESSAGE, &EXPECTATION, &CHECK, &CONDITIONS]
            .into_iter()
            .any(|kind| std::ptr::eq(kind, self))
    }

    /// The keys that this version supports.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().filter(|key| key.later.is_none()).map(|key| key.name)
    }

    pub(crate) fn key_list(&self) -> Said {
        let names: Vec<&str> = self.names().collect();
        say!("valid keys of {}: `{}`", self.what, names.join("`, `"))
    }
}

pub(crate) const fn now(name: &'static str, shape: Shape, doc: &'static str) -> KeyDoc {
    KeyDoc { name, doc, shape, later: None }
}

pub(super) const fn later(
    name: &'static str,
    shape: Shape,
    doc: &'static str,
    instead: Said,
) -> KeyDoc {
    KeyDoc { name, doc, shape, later: Some(instead) }
}
