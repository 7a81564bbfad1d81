//! The typed tree of a scenario: a struct for each map of the language, generated from
//! [`crate::keys`], with a field per key. Each map is read once. Values are read where their
//! meaning is known; steps and everything that contains steps are read with the map, so that a
//! scenario is one tree.

mod instead;
mod tree;
mod verb;

use throng_base::Said;

use instead::instead;

use crate::keys::{self, MapKind};
use crate::read::Context;
use crate::scope::Spoken;
use crate::synonyms::did_you_mean;
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::shorten;

pub(crate) use tree::{
    Aside, Item, Items, List, Named, PartName, Saves, See, SessionFact, Step, Steps, Value,
};

type Entry = (Key, Node);

/// A key of a map, and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'n> {
    /// The key is missing; its name.
    Missing(&'static &'static str),
    /// An unknown key that was probably meant to be this one, and its value.
    Meant(&'n Node),
    There(&'n Entry),
}

impl<'n> Field<'n> {
    pub(crate) fn entry(self) -> Option<(&'n Key, &'n Node)> {
        match self {
            Field::There((key, node)) => Some((key, node)),
            Field::Missing(_) | Field::Meant(_) => None,
        }
    }

    pub(crate) fn node(self) -> Option<&'n Node> {
        self.entry().map(|(_, node)| node)
    }

    pub(crate) fn key(self) -> Option<&'n Key> {
        self.entry().map(|(key, _)| key)
    }

    pub(crate) fn is_there(self) -> bool {
        matches!(self, Field::There(_))
    }

    /// Whether both are the same key of the same map.
    pub(crate) fn is(self, key: &Key) -> bool {
        self.key().is_some_and(|own| std::ptr::eq(own, key))
    }

    pub(crate) fn is_meant(self) -> bool {
        matches!(self, Field::Meant(_))
    }

    /// The position of the key, or the given one if the key is missing.
    pub(crate) fn place_or(self, place: Place) -> Place {
        self.key().map_or(place, |key| key.place)
    }
}

/// A map of the language.
pub(crate) trait Map<'n>: Sized {
    const KIND: &'static MapKind;

    /// The map without any keys.
    fn at(place: Place) -> Self;

    fn place(&self) -> Place;

    fn all(&self) -> impl Iterator<Item = Field<'n>>;

    fn get(&self, name: &str) -> Option<Field<'n>> {
        let mut all = Self::KIND.keys.iter().zip(self.all());
        all.find(|(key, _)| key.name == name).map(|(_, field)| field)
    }

    fn field(&mut self, name: &str) -> Option<&mut Field<'n>>;

    /// Reads the values of its keys that are read with the map.
    fn fill(&mut self, cx: &mut Context<'_>);

    fn show<'t>(&'t self, see: See<'_, 't, 'n>);
}

/// The type of a field of a struct.
macro_rules! field_type {
    ($n:lifetime) => { Field<$n> };
    ($n:lifetime $type:ident) => { $type<$n> };
    ($n:lifetime $type:ident $one:ident) => { $type<$n, $one<$n>> };
}

macro_rules! structs {
    ($($name:ident $struct:ident = $what:literal {
        $($key:ident $($word:literal)? $([$($type:ident)+])?: $shape:expr => $doc:expr,)*
    } $(=> later {
        $($late:ident: $late_shape:expr => $late_doc:expr, $instead:expr,)*
    })?)*) => {$(
        #[doc = $what]
        #[allow(dead_code)] // Some keys are only checked.
        pub(crate) struct $struct<'n> {
            pub(crate) place: Place,
            $(pub(crate) $key: field_type!('n $($($type)+)?),)*
        }

        #[allow(dead_code)] // Not all maps use all of these.
        impl<'n> $struct<'n> {
            pub(crate) fn read(cx: &mut Context<'_>, node: &'n Node) -> Option<$struct<'n>> {
                crate::ast::read(cx, node)
            }

            /// The value of a required key.
            pub(crate) fn need(
                &self,
                cx: &mut Context<'_>,
                field: Field<'n>,
                help: Said,
            ) -> Option<&'n Node> {
                crate::ast::need(cx, (&keys::$name, self.place), field, help)
            }
        }

        impl<'n> crate::ast::Map<'n> for $struct<'n> {
            const KIND: &'static MapKind = &keys::$name;

            fn at(place: Place) -> $struct<'n> {
                let missing = |name| Field::Missing(name);
                $struct { place, $($key: missing(&key_name!($key $($word)?)).into(),)* }
            }

            fn place(&self) -> Place {
                self.place
            }

            fn all(&self) -> impl Iterator<Item = Field<'n>> {
                [$(self.$key.field(),)*].into_iter()
            }

            fn field(&mut self, name: &str) -> Option<&mut Field<'n>> {
                $(if name == key_name!($key $($word)?) {
                    return Some(self.$key.field_mut());
                })*
                None
            }

            fn fill(&mut self, cx: &mut Context<'_>) {
                $(self.$key.fill(cx);)*
            }

            fn show<'t>(&'t self, see: See<'_, 't, 'n>) {
                $(self.$key.show(see);)*
            }
        }
    )*};
}

scenario_maps!(structs);

/// The key of a step that selects its connection.
#[derive(Clone, Copy)]
pub(crate) enum Uses<'n> {
    /// A connection to a target, which the step opens itself.
    Target(Field<'n>),
    /// A connection opened by a `connect`.
    On(Field<'n>),
}

macro_rules! uses {
    (target $map:ident) => {
        Uses::Target($map.target)
    };
    (on $map:ident) => {
        Uses::On($map.on)
    };
}

macro_rules! verb_enum {
    ($(
        $word:literal $key:ident $name:ident $struct:ident $($alone:ident)?
        $(($use:ident $($reader:tt)*))?,
    )*) => {
        /// A step by its verb.
        pub(crate) enum Verb<'n> {
            $($struct(Box<$struct<'n>>),)*
        }

        impl<'n> Verb<'n> {
            /// Reads a step with a verb.
            pub(crate) fn read(
                cx: &mut Context<'_>,
                word: &str,
                node: &'n Node,
            ) -> Option<Verb<'n>> {
                match word {
                    $($word => $struct::read(cx, node).map(|map| Verb::$struct(Box::new(map))),)*
                    _ => None,
                }
            }

            /// A step that consists only of its verb.
            pub(crate) fn bare(word: &str, place: Place) -> Option<Verb<'n>> {
                match word {
                    $($word => Some(Verb::$struct(Box::new($struct::at(place)))),)*
                    _ => None,
                }
            }

            fn show<'t>(&'t self, see: See<'_, 't, 'n>) {
                match self {
                    $(Verb::$struct(map) => map.show(see),)*
                }
            }

            pub(crate) fn word(&self) -> &'static str {
                match self {
                    $(Verb::$struct(_) => $word,)*
                }
            }

            /// The connection that it uses, unless it opens a long-lived one.
            pub(crate) fn uses(&self) -> Option<Uses<'n>> {
                match self {
                    $($(Verb::$struct(map) => Some(uses!($use map)),)?)*
                    _ => None,
                }
            }

            /// The position of the verb.
            pub(crate) fn place(&self) -> Place {
                match self {
                    $(Verb::$struct(map) => map.$key.place_or(map.place),)*
                }
            }
        }
    };
}

scenario_verbs!(verb_enum);

/// Reads a map whose keys are in a table.
pub(crate) fn read<'n, M: Map<'n>>(cx: &mut Context<'_>, node: &'n Node) -> Option<M> {
    let Kind::Map(entries) = &node.kind else {
        return cx.wrong_type(node, say!("a map for {}", M::KIND.what), M::KIND.key_list());
    };
    let mut map = M::at(node.place);
    let mut strange: Vec<&Entry> = Vec::new();
    for entry in entries {
        match map.field(&entry.0.text) {
            Some(Field::There((first, _))) => cx.duplicate_key(&entry.0, first.place),
            Some(field) => *field = Field::There(entry),
            None => strange.push(entry),
        }
    }
    for (key, node) in cx.unique(strange.into_iter()) {
        if let Some(meant) = unknown_key(cx, key, M::KIND)
            && let Some(field) = map.field(meant)
            && !field.is_there()
        {
            *field = Field::Meant(node);
        }
    }
    map.fill(cx);
    Some(map)
}

/// The entries of a map with additional keys: those in the table, and those for which `accepts` is
/// true.
pub(crate) fn read_open<'n>(
    cx: &mut Context<'_>,
    node: &'n Node,
    kind: &'static MapKind,
    accepts: impl Fn(&str) -> bool,
) -> Option<Vec<(&'n Key, &'n Node)>> {
    if !matches!(node.kind, Kind::Map(_)) {
        return cx.wrong_type(node, say!("a map for {}", kind.what), kind.key_list());
    }
    let mut all = cx.entries(node, Said::default(), Said::default())?;
    all.retain(|(key, _)| {
        let takes = kind.names().any(|name| name == key.text) || accepts(&key.text);
        if !takes {
            unknown_key(cx, key, kind);
        }
        takes
    });
    Some(all)
}

/// Reports a key that is not allowed here, and returns the key that was probably meant.
fn unknown_key(cx: &mut Context<'_>, key: &Key, kind: &'static MapKind) -> Option<&'static str> {
    if let Some(instead) = kind.find(&key.text).and_then(|doc| doc.later.clone()) {
        cx.not_yet(say!("`{}`", key.text), key.place, instead);
        return None;
    }
    // The protocol's messages and fields are unknown.
    if matches!(cx.scope.spoken, Spoken::Unknown) && kind.of_protocol() {
        return None;
    }
    if cx.mistakes.is_full() {
        cx.mistakes.count_error();
        return None;
    }
    let instead = instead(&key.text, kind);
    let meant = did_you_mean(&key.text, kind.names());
    let label = match meant {
        // The meaning of the word depends on its value.
        Some(_) if instead.is_some() && std::ptr::eq(kind, &keys::HTTP) => say!("unknown"),
        Some(word) => say!("did you mean `{word}`?"),
        None => say!("unknown"),
    };
    let message = say!("`{}` is not a key of {}", shorten(&key.text), kind.what);
    cx.report("unknown-key", key.place, message, label, instead.unwrap_or_else(|| kind.key_list()));
    meant
}

/// The value of a required key.
pub(crate) fn need<'n>(
    cx: &mut Context<'_>,
    (kind, place): (&'static MapKind, Place),
    field: Field<'n>,
    help: Said,
) -> Option<&'n Node> {
    match field {
        Field::There((_, node)) => Some(node),
        // The wrong name has already been reported.
        Field::Meant(_) => None,
        Field::Missing(name) => {
            let label = say!("`{name}` is missing");
            cx.refuse("missing-key", place, say!("{} requires `{name}`", kind.what), label, help)
        }
    }
}

/// The first of several keys in the order of the text.
pub(crate) fn first<'n>(
    fields: impl IntoIterator<Item = Field<'n>>,
) -> Option<(&'n Key, &'n Node)> {
    let there = fields.into_iter().filter_map(Field::entry);
    there.min_by_key(|(key, _)| (key.place.file, key.place.start()))
}

/// The one of several exclusive keys that is present; two are an error.
pub(crate) fn one_of<'n>(
    cx: &mut Context<'_>,
    fields: &[Field<'n>],
) -> Option<(&'n Key, &'n Node)> {
    let found = first(fields.iter().copied())?;
    let others = fields.iter().filter(|field| !field.is(found.0));
    if let Some((second, _)) = first(others.copied()) {
        let message = say!("`{}` and `{}` cannot be used together", found.0.text, second.text);
        let label = say!("`{}` is already given", found.0.text);
        cx.report("conflicting-keys", second.place, message, label, say!("keep the one you need"));
    }
    Some(found)
}
