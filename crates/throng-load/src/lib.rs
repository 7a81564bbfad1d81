//! Computes when starts and stops are due: phases, arrivals, populations, and their exact split
//! over shards. Without I/O.
//!
//! A [`Schedule`] is one shard's part of a load, and [`Schedules`] are those of all loads of a run.
//! A schedule returns the next time at which something is due, and what is due then; it never waits
//! and never reads a clock. The parts of all shards add up to exactly the load: no event is lost or
//! duplicated, and shards need not communicate. Users start and stop, and their number is exact;
//! temporary disconnects do not change it.
//!
//! A [`Forecast`] estimates a run in advance: it folds over the sessions once, and then walks
//! through the phases.

#![forbid(unsafe_code)]

mod amendment;
pub mod capacity;
mod churning;
mod coming;
mod curve;
mod expected;
mod flow;
mod forecast;
mod held;
mod plan;
mod population;
mod portion;
mod profile;
mod schedule;
mod schedules;
mod start_queue;
mod starts;
mod turn;

pub use amendment::{Adjustment, Amendment};
pub use curve::Curve;
pub use expected::{Expected, SessionExpected};
pub use forecast::{Assumed, Bound, Course, Forecast, Rates, Stretch, connects};
pub use held::Held;
pub use plan::{Planned, comers, plan, plan_of, reached};
pub use population::Population;
pub use profile::{Piece, Profile};
pub use schedule::{Action, Pace, Schedule};
pub use schedules::Schedules;
pub use start_queue::{Asked, StartQueue};
