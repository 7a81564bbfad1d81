//! SQL: the verb `sql`.

#[macro_use]
mod keys;
mod bench;
mod outline;
mod scan;
mod step;

use super::{Builtin, PLAIN};

pub(crate) use step::read_sql;

pub(super) static BUILTIN: Builtin =
    Builtin { verb: "sql", line: outline::line, session: bench::write_session, ..PLAIN };
