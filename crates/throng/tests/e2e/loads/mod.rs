//! How much load: shapes, rates, steering, capacity, and the limits of the generator.

mod capacity;
mod control;
mod doctor;
mod duel;
mod guard;
mod held;
mod known_capacity;
mod limits;
pub(crate) mod plan;
mod polite;
mod precision;
mod replay;
mod shapes;
mod side_by_side;
