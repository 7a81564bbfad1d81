//! The capacity of a server: a queue with its service times, a rate limit, and the law that gives
//! the highest rate for a threshold.
//!
//! - [`Gate`] with its [`Machine`](machine::Machine) admits requests, without a clock.
//! - [`Capacity`] is the gate that all workers share: each worker that uses it sets its own timer
//!   for the next departure, unless another worker has set an earlier one.
//! - [`Law`] gives the rate that the gate sustains.

mod bucket;
mod capacity;
mod gate;
mod law;
mod machine;
mod options;
mod speed;

pub(crate) use capacity::{Capacity, Orders};
pub(crate) use gate::{Entry, Refused};
pub(crate) use law::{Law, Question};

pub use bucket::RateLimit;
pub use machine::Usl;
pub use options::CapacityOptions;
pub use speed::{SlowSpells, WarmUp};
