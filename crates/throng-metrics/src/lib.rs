//! Histograms, counters, intervals, merging, thresholds. Pure: no clock, no files, no printing.
//!
//! - [`audit`]: findings of audits.
//! - [`capacity`]: the result of a capacity search, as text and exit code.
//! - [`chain`]: the stages of one attempt.
//! - [`duel`]: the result of a duel, as text and exit code.
//! - [`histogram`]: durations, merged exactly.
//! - [`outcome`]: causes of failures and their blame; the stages of opening a connection; why a
//!   run ended early.
//! - [`cells`]: the states of users, by part of the population.
//! - [`connections`]: how connections ended, and how long they lived.
//! - [`figures`]: the table of counts.
//! - `flat`: structs with flattened groups.
//! - [`host`]: the table of a host's metrics.
//! - [`interval`]: the results of one second; a run is the sum of its intervals.
//! - [`percentile`]: the percentiles and their names.
//! - [`places`]: results by address, instance and session.
//! - [`kind`]: steps and their kinds.
//! - [`presence`]: the presence of users as the generator knows it.
//! - [`quantity`]: the table of compared values.
//! - [`slowest`]: the slowest attempts.
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
pub use kind::{OncePart, StepInfo, StepKind, Table};
pub use merge::{Keyed, Merge};
pub use outcome::{
    Blame, Cause, Stage, StopBy, blames_request, status_number, status_text, status_word,
};
pub use percentile::Percentile;
pub use places::{INSTANCES_MAX, InstanceInterval, Place, SessionInterval, TargetInterval};
pub use quantity::{Quantity, Unit};
pub use slowest::{Slow, SlowBounds};
pub use threshold::{
    AbortRule, Around, Comparison, HostFigure, Measure, Monitored, Subject, Threshold, TrendUnit,
    Verdict,
};
pub use times::{Timed, Times};
