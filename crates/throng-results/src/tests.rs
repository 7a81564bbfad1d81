//! What the tests of all modules use.

pub(crate) mod sample;
