//! The files of a scenario: includes, variables, data and secrets.

pub(crate) mod data;
pub(crate) mod include;
pub(crate) mod secrets;
pub(crate) mod vars;
