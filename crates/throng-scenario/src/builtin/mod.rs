//! The protocols with their own verbs: a folder for each, and this list.
//!
//! - `keys.rs`: a macro with the protocol's part of the language tables: the rows of its
//!   connections ([`crate::native`]), its verbs, maps and keys ([`crate::keys`]), and additions to
//!   the schema.
//! - `mod.rs`: its row of [`ALL`], with the functions that compile, print and write its steps.

#[macro_use]
pub(crate) mod grpc;
#[macro_use]
pub(crate) mod mqtt;
#[macro_use]
pub(crate) mod redis;
#[macro_use]
pub(crate) mod sql;

use throng_program::{Check, Connect, Content, Statement};

use crate::ast::{self, Field};
use crate::phrases::Words;
use crate::reach::Reach;
use crate::read::Context;
use crate::writer::Writer;

pub use grpc::to_reflect;
pub(crate) use grpc::{find_method, read_message_of_call};

/// Iterates over the protocols. `each` passes on their macros; otherwise, each macro in turn
/// appends its part to the tokens, and the last one receives all of them.
macro_rules! builtins {
    (each $then:ident) => { $then! { mqtt grpc redis sql } };
    ($part:ident $last:ident $($tokens:tt)*) => {
        mqtt! { $part [grpc redis sql $last] $($tokens)* }
    };
}

/// The functions of a protocol for steps, outlines and `bench`.
pub(crate) struct Builtin {
    /// The verb of its row in [`crate::native`].
    pub(crate) verb: &'static str,
    /// Compiles its part of a `connect` step.
    pub(crate) opens: fn(&mut Context<'_>, &ast::Connect<'_>, &Reach, &mut Connect) -> Option<()>,
    /// Warns about a session with several users.
    pub(crate) warns: fn(&mut Context<'_>, &[&ast::Connect<'_>]),
    /// Its keys of message patterns.
    looks: &'static [(&'static str, ReadsLook)],
    /// Formats a step with one of its verbs.
    pub(crate) line: fn(&Words<'_>, &Statement, &mut Vec<String>) -> Option<String>,
    message: fn(&Content, &mut Vec<String>) -> Option<Written>,
    /// Formats a `connect` that opens it, if that is more than a path.
    pub(crate) connects: fn(&Words<'_>, &Connect, &mut Vec<String>) -> Option<String>,
    /// Writes the session of `throng bench`.
    pub(crate) session: fn(&mut Writer<'_>),
}

/// The line of a message, and the default name of its row.
pub(crate) type Written = (String, String);

type ReadsLook = fn(&mut Context<'_>, Field<'_>, &mut Vec<Check>) -> Option<()>;

/// A protocol that only has verbs.
const PLAIN: Builtin = Builtin {
    verb: "",
    opens: |_, _, _, _| Some(()),
    warns: |_, _| {},
    looks: &[],
    line: |_, _, _| None,
    message: |_, _| None,
    connects: |_, _, _| None,
    session: |_| {},
};

macro_rules! all {
    ($($name:ident)*) => {
        pub(crate) static ALL: &[&Builtin] = &[$(&$name::BUILTIN),*];
    };
}

builtins!(each all);

/// Reads the keys of a message pattern that belong to a protocol.
pub(crate) fn read_looks<'n>(
    cx: &mut Context<'_>,
    fields: impl Iterator<Item = Field<'n>>,
    checks: &mut Vec<Check>,
) -> Option<()> {
    for field in fields {
        let is_it = |name: &str| field.key().is_some_and(|key| key.text == name);
        let looks = ALL.iter().flat_map(|one| one.looks).find(|(name, _)| is_it(name));
        if let Some((_, read)) = looks {
            read(cx, field, checks)?;
        }
    }
    Some(())
}

pub(crate) fn message(content: &Content, notes: &mut Vec<String>) -> Option<Written> {
    ALL.iter().find_map(|one| (one.message)(content, notes))
}
