//! The search for the highest load at which a service meets its thresholds, with an interval.
//!
//! [`Search`] is a state machine: one finished hold or wait in, one order out. It reads no clock
//! and does no I/O. While a hold lasts, its [`Judge`] says when to give it up; while a wait lasts,
//! its [`Watch`] says when it is over. The search climbs until a level fails, brackets the border,
//! collects counts on both sides of it, promises the lower end of a 95 % interval, confirms the
//! promise, and looks at what too much load does. After each failure it waits until the service has
//! recovered. Its answer is the record's own form, `throng_metrics::Capacity`. `simulation` runs it
//! on queues whose capacity is known.

mod autocorrelation;
mod fit;
mod hold;
mod judge;
mod knee;
mod search;
pub mod simulation;

pub use hold::{
    Ended, Goals, Held, Hold, Order, Outcome, Percentiles, Second, Share, Tally, Until, Wait,
    Waited, Why,
};
pub use judge::{Judge, Watch};
pub use search::{BASE_PART, Search, Settings, Stage, Status};
