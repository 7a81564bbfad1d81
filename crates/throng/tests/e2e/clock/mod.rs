//! Tests that measure time. `cargo xtask test` runs them one after another, alone.

mod chaos;
mod demo;
mod history;
mod meeting;
mod plan;
mod search;
mod stopped;
mod truth;
