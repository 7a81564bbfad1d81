//! The search on virtual targets whose capacity is known: hundreds of searches within minutes, in
//! simulated time. Used by tests and by `cargo xtask bench capacity`.

mod counts;
mod law;
mod queue;
mod retry;
mod run;
mod shared;
mod table;
mod target;

pub use law::{brute_force, law};
pub use run::{Searched, search, settings};
pub use table::{Figures, HEADING, figures};
pub use target::{Model, VirtualTarget};

#[cfg(test)]
mod tests;
