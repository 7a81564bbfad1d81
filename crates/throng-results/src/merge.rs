//! Merges several machines to one run: their lines during the run, or their run directories
//! afterwards.

mod order;
mod runs;

pub use order::{Line, Merge};
pub use runs::merge_runs;
