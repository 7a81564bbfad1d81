//! A scenario as a file: what it includes, and the variables, rows and secrets that it names.

pub(crate) mod data;
pub(crate) mod include;
pub(crate) mod secrets;
pub(crate) mod vars;
