//! When things are due: phases, arrivals, populations, exact splitting over shards. Pure.
//!
//! A [`Schedule`] is one shard's part of a load, and [`Schedules`] are those of all loads of a run.
//! Each is asked for the next moment at which
//! something is due and for what is due then; it never waits and never reads a clock.
//! The parts of all shards together are exactly the load: no event is lost or done twice,
//! and no shard has to ask another. Users come and go and their number is held exactly; that some
//! of them fall out of their connection for a while does not change it.
//!
//! A [`Forecast`] says what a run comes to beforehand: it folds over the sessions once, and walks
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

pub use amendment::{Amendment, Change};
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
