//! Histograms, counters, intervals, merging, thresholds. Pure: no clock, no files, no printing.
//!
//! - [`audit`]: what audits of presence and books found.
//! - [`capacity`]: the answer of a search for the highest load, in words and as an exit code.
//! - [`chain`]: where the time of one attempt went.
//! - [`duel`]: two targets under the same load in turn: the answer, and its exit code.
//! - [`histogram`]: durations, merged exactly.
//! - [`outcome`]: why something failed and who is to blame; the stages of opening a connection.
//! - [`cells`]: how many users of which part of the population are in which state.
//! - [`connections`]: how they began, who ended them, and how long they were there.
//! - [`figures`]: the table of counts, and what is made of it.
//! - `flat`: structs whose groups are flat in a record.
//! - [`host`]: the table of figures of a host.
//! - [`interval`]: what one second brought; a run is the sum of its intervals.
//! - [`percentile`]: the percentiles of times, and what they are called.
//! - [`places`]: what was done by the address it went to.
//! - [`kind`]: what a step is, and what follows from it for its figures.
//! - [`presence`]: what a generator knows of the presence of its users.
//! - [`quantity`]: the table of what is compared, and which of two figures is better.
//! - [`slowest`]: the slowest attempts, with what finds them elsewhere.
//! - [`threshold`]: thresholds and verdicts.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

#[macro_use]
pub mod merge;
#[doc(hidden)]
#[macro_use]
pub mod flat;

pub mod audit;
pub mod capacity;
pub mod cells;
pub mod chain;
pub mod connections;
pub mod duel;
pub mod figures;
pub mod gauges;
pub mod histogram;
pub mod host;
pub mod interval;
pub mod kind;
pub mod outcome;
pub mod percentile;
pub mod places;
pub mod presence;
pub mod quantity;
pub mod slowest;
pub mod threshold;
pub mod times;

pub use capacity::Capacity;
pub use cells::{CellCounter, Cells, Census, Shade, UserState};
pub use chain::Chain;
pub use connections::{Ending, ResidenceInterval};
pub use duel::Duel;
pub use figures::{
    Connections, Counter, Counts, DeliveryCounter, DeliveryInterval, Figure, Heartbeats, Lifecycle,
    Messages, Packets, Population, Retries, SAMPLED_OF, SampleInterval,
};
pub use gauges::{Cpu, Gauge, Gauges, Line, Output, Reading, Resources};
pub use histogram::Histogram;
pub use interval::{
    ConnectionsInterval, GeneratorInterval, Interval, LOST_NS_MIN, PartsInterval, StageInterval,
    StepInterval, TcpSamples, Together, TrafficInterval,
};
pub use kind::{StepKind, Table};
pub use merge::{Keyed, Merge};
pub use outcome::{Blame, Cause, Stage, blames_request, status_number, status_text, status_word};
pub use percentile::Percentile;
pub use places::{INSTANCES_MAX, InstanceInterval, Place, SessionInterval, TargetInterval};
pub use quantity::{Quantity, Unit};
pub use slowest::{Slow, SlowBounds};
pub use threshold::{
    AbortRule, Around, Comparison, HostFigure, Measure, Monitored, Subject, Threshold, TrendUnit,
    Verdict,
};
pub use times::{Timed, Times};
