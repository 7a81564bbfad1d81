//! What a scenario declares about a source of rows. Cheap to clone; it opens nothing.

use std::path::PathBuf;
use std::sync::Arc;

use throng_expression::Value;

use crate::error::DataError;
use crate::generate::Generator;

/// Maximum number of columns of a source.
pub const COLUMNS_MAX: usize = 1_000;

/// A declared source of rows, and the parts of its rows that the scenario uses. Only those are read
/// from a file: an unused field costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub name: String,
    pub origin: Origin,
    pub take: Take,
    pub at_end: AtEnd,
    /// The columns that the scenario uses; the index is the number of the column.
    pub(crate) used: Vec<Arc<str>>,
    pub(crate) whole: bool,
}

/// Where rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// RFC 4180; the first line contains the names unless `columns` does. Fields are texts.
    Csv { path: PathBuf, separator: u8, columns: Option<Vec<String>> },
    /// One JSON value per line; values keep their types.
    JsonLines { path: PathBuf },
    /// Written in the scenario.
    List(Arc<[Value]>),
    /// Generated. Without `rows` there are as many as the longest range has numbers; without a
    /// range, infinitely many.
    Generate { columns: Vec<(String, Generator)>, rows: Option<u64> },
}

/// Which row a user gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Take {
    /// Each row is used once in the whole run, on all machines.
    Unique,
    /// In order, repeatedly.
    Circular,
    /// Any row, each time.
    Random,
    /// In random order, all rows once per round; each round has a different order.
    Shuffle,
    /// Each user has one row for its lifetime, selected by its number.
    PerUser,
}

impl Take {
    /// True if the rows can run out, so that `at_end` applies.
    pub fn can_end(self) -> bool {
        matches!(self, Take::Unique | Take::PerUser)
    }
}

/// What happens when all rows are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AtEnd {
    /// Not set: the run ends gracefully and its result is invalid, because running out of rows may
    /// be a mistake.
    #[default]
    Unsaid,
    /// The run ends gracefully, as intended.
    Stop,
    /// The rows start again.
    Wrap,
    /// The step fails.
    Error,
}

impl Source {
    pub fn new(name: impl Into<String>, origin: Origin, take: Take, at_end: AtEnd) -> Source {
        Source { name: name.into(), origin, take, at_end, used: Vec::new(), whole: false }
    }

    /// Marks a column as used and returns its number for [`crate::Row::field`]. Whether it exists
    /// is checked by [`crate::columns`], or when the table is opened.
    pub fn column(&mut self, name: &str) -> Result<u16, DataError> {
        if let Some(known) = self.used.iter().position(|used| **used == *name) {
            return Ok(known as u16);
        }
        if self.used.len() >= COLUMNS_MAX {
            return Err(too_many_columns());
        }
        self.used.push(name.into());
        Ok((self.used.len() - 1) as u16)
    }

    /// The used columns, by number.
    pub fn used(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|name| &**name)
    }

    /// Marks whole rows as used, for [`crate::Row::whole`].
    pub fn use_whole(&mut self) {
        self.whole = true;
    }
}

/// Refuses too many columns and duplicate names. Empty names are accepted: exports of spreadsheets
/// have them, and scenarios cannot name such a column.
pub(crate) fn check_names(names: &[String]) -> Result<(), DataError> {
    if names.len() > COLUMNS_MAX {
        return Err(too_many_columns());
    }
    let mut sorted: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(DataError::new("data-column", say!("two columns are named `{}`", pair[0]))
                .help(say!("give each column a unique name")))
        }
        None => Ok(()),
    }
}

fn too_many_columns() -> DataError {
    DataError::new("data-column", say!("there are more than {COLUMNS_MAX} columns"))
        .help(say!("leave out the columns that the scenario does not use"))
}
