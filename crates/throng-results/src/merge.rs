//! Several machines become one run: their lines in one order while it goes on, or their records
//! when it is over.

mod order;
mod runs;

pub use order::{Line, Merge};
pub use runs::merge_runs;
