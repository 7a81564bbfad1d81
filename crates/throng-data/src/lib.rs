//! Rows for users, the `data:` part of a scenario: CSV, JSON lines, lists and generators, taken
//! once, in turn or by chance. The one crate below the engine that reads files; it writes none.
//!
//! - [`source`]: what a scenario declares; it opens nothing and lives in the program.
//! - [`table`]: a source opened for a run: checked, counted, indexed; one per process.
//! - [`reader`]: takes rows from a table; one per shard and source.
//! - [`generate`]: rows that are made up, the same every time.
//! - [`access_log`]: the times of a log, for loads that are to be like it.
//! - [`PointsFile`]: rates over time.
//! - [`error`]: what is wrong with a source, where, and what to do.
//!
//! Inside: `csv` and `json` know the formats, `file` walks through files and indexes them, `header`
//! knows the names of their columns, `plan` what is made of a row, `shuffle` permutes rows without
//! holding them.

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
