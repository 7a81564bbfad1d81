//! The figures of a run for other programs while it goes on, a second at a time.
//!
//! - [`metrics`]: what is told of a second, in the same words to all.
//! - [`queue`]: a thread and a bounded queue for each receiver; a slow or dead one is counted, and
//!   never slows the load.
//! - `prometheus`, `remote_write`, `otlp`, `statsd`, `influx`, `text`, `hdr`: a kind of receiver
//!   each, behind the one trait [`Export`].
//! - `totals`: sums since the beginning; `native`: native histograms; `wire`: Protocol Buffers.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod hdr;
mod influx;
pub mod metrics;
mod native;
mod open;
mod otlp;
mod prometheus;
pub mod queue;
mod remote_write;
mod sender;
mod statsd;
mod text;
mod totals;
mod wire;

pub use metrics::Second;
pub use queue::{Exports, Opened, Told};

use throng_base::Said;

/// Receives the figures of a run, second by second. It runs in its own thread and may block.
pub trait Export: Send {
    /// A second that failed is passed again, until some time after the end of the run.
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said>;

    /// The run has ended.
    fn finish(&mut self) -> Result<(), Said> {
        Ok(())
    }
}
