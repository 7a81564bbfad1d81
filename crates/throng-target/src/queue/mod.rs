//! What a server can carry: a queue with its service times, a limit of the rate, and the law that
//! says the highest rate for a threshold.
//!
//! - [`Gate`] with its [`Machine`](machine::Machine) is what a request meets, without a clock.
//! - [`Capacity`] is the one gate of all workers: each worker that touches it sets its own timer
//!   for the next departure, if no other worker has set one for as early.
//! - [`Law`] says what rate the gate carries.

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
