//! The search for the highest load at which a service meets its thresholds, with an interval.
//!
//! [`Search`] is a pure state machine: it takes one finished hold or wait and returns one order. It
//! reads no clock and does no I/O. A [`Judge`] decides during a hold whether to give it up; a
//! [`Watch`] decides during a wait whether it is over. The search climbs until a level fails,
//! brackets the border, collects counts on both sides of it, promises the lower end of a 95 %
//! interval, confirms the promise, and overloads the service. After each failure, it waits until
//! the service has recovered. `simulation` runs searches on queues of known capacity.

mod answer;
mod autocorrelation;
mod fit;
mod hold;
mod judge;
mod knee;
mod search;
pub mod simulation;

pub use answer::{Answer, Basis, Collapse, EndedBy, FailedBy, Knee, Level, LevelVerdict};
pub use hold::{
    Ended, GaveUp, Goals, Held, Hold, Limit, Order, Outcome, Percentiles, Purpose, Second, Share,
    Unit, Until, Wait, Waited, Why,
};
pub use judge::{Judge, Watch};
pub use search::{Search, Settings, Stage, Status};
