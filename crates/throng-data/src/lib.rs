//! Rows for users, the `data:` part of a scenario: CSV, JSON lines, lists and generators, taken
//! once, in turn or at random. The only crate below the engine that reads files; it writes none.
//!
//! - [`source`]: a declared source; it opens nothing and is part of the program.
//! - [`table`]: a source opened for a run: checked, counted, indexed; one per process.
//! - [`reader`]: takes rows from a table; one per shard and source.
//! - [`generate`]: generated rows, which are always the same.
//! - [`access_log`]: the times in a log, for loads that follow it.
//! - [`PointsFile`]: rates over time.
//! - [`error`]: mistakes in a source, with place and fix.
//!
//! Private modules: `csv` and `json` parse the formats, `file` reads and indexes files, `header`
//! finds the names of columns, `plan` selects the values of a row, `shuffle` permutes rows in
//! constant memory.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod access_log;
mod csv;
pub mod error;
mod file;
pub mod generate;
mod header;
mod json;
mod moment;
mod plan;
mod points;
pub mod reader;
mod shuffle;
pub mod source;
pub mod table;
#[cfg(test)]
mod tests;

pub use error::{CODES, DataError, Untaken};
pub use generate::Generator;
pub use header::{columns, leading_space};
pub use points::{POINTS_MAX, PointsFile};
pub use reader::{Reader, Row};
pub use source::{AtEnd, COLUMNS_MAX, Origin, Source, Take};
pub use table::Table;

/// The longest row of a file, in bytes.
pub const ROW_BYTES_MAX: usize = 1024 * 1024;
