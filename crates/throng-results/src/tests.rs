//! Helpers for the tests of all modules.

pub(crate) mod sample;
