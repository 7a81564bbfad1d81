//! What all steps have in common: rows of the report, handling of failures, time limits, and the
//! content of messages.

pub(crate) mod content;
pub(crate) mod failing;
pub(crate) mod rows;
pub(crate) mod via;
