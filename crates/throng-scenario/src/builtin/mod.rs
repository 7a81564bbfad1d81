//! The protocols that have verbs of their own: a folder for each, and this list of them.
//!
//! - `keys.rs`: a macro of what the tables of the language have of it: the rows of its connections
//!   ([`crate::native`]), its verbs, maps and keys ([`crate::keys`]), and what the schema adds.
//! - `mod.rs`: its row of [`ALL`], with what compiles, shows and writes its steps.

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

/// Goes through the protocols. `each` hands their macros over; otherwise, each macro in turn adds
/// its part to the tokens, and the last one gets them all.
macro_rules! builtins {
    (each $then:ident) => { $then! { mqtt grpc redis sql } };
    ($part:ident $last:ident $($tokens:tt)*) => {
        mqtt! { $part [grpc redis sql $last] $($tokens)* }
    };
}

/// What one of them adds to steps and to what shows and writes them.
pub(crate) struct Builtin {
    /// Its row of [`crate::native`] has this verb.
    pub(crate) verb: &'static str,
    /// What a `connect` step says of it.
    pub(crate) opens: fn(&mut Context<'_>, &ast::Connect<'_>, &Reach, &mut Connect) -> Option<()>,
    /// Warnings for a session with several users.
    pub(crate) warns: fn(&mut Context<'_>, &[&ast::Connect<'_>]),
    /// Keys of message patterns.
    looks: &'static [(&'static str, ReadsLook)],
    /// The line of a step of its own.
    pub(crate) line: fn(&Words<'_>, &Statement, &mut Vec<String>) -> Option<String>,
    message: fn(&Content, &mut Vec<String>) -> Option<Written>,
    /// The line of a `connect` that opens it, where that says more than a path.
    pub(crate) connects: fn(&Words<'_>, &Connect, &mut Vec<String>) -> Option<String>,
    /// Writes the session of `throng bench`.
    pub(crate) session: fn(&mut Writer<'_>),
}

/// The line of a message of its own, and what its row is called without a name.
pub(crate) type Written = (String, String);

type ReadsLook = fn(&mut Context<'_>, Field<'_>, &mut Vec<Check>) -> Option<()>;

/// One that only has verbs.
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

/// Reads the keys of a message pattern that are of one protocol.
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
