//! Exports the figures of a run to other programs, second by second.
//!
//! - [`metrics`]: the metrics of a second, the same for all outputs.
//! - [`queue`]: a thread and a bounded queue for each output; a slow or dead one loses seconds
//!   (they are counted) and never slows the load.
//! - `prometheus`, `remote_write`, `otlp`, `statsd`, `influx`, `text`, `hdr`: the kinds of outputs,
//!   which implement [`Export`].
//! - `totals`: sums since the start; `native`: native histograms; `wire`: Protocol Buffers.

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
pub use queue::{ExportOutcome, Exports, Opened};

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
