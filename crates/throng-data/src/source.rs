//! What a scenario declares about a source of rows. Cheap to clone; it opens nothing.

use std::path::PathBuf;
use std::sync::Arc;

use throng_expression::Value;

use crate::error::DataError;
use crate::generate::Generator;

/// The most columns a source has.
pub const COLUMNS_MAX: usize = 1_000;

/// A source of rows as it is declared, and what the scenario looks at of its rows. Only that is
/// read from a file: a field that nobody names costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub name: String,
    pub origin: Origin,
    pub take: Take,
    pub at_end: AtEnd,
    /// The columns the scenario names; the number of a column is its index here.
    pub(crate) used: Vec<Arc<str>>,
    pub(crate) whole: bool,
}

/// Where rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// RFC 4180; a line of its own names the columns unless `columns` does. Fields are texts.
    Csv { path: PathBuf, separator: u8, columns: Option<Vec<String>> },
    /// One JSON value per line; values keep their types.
    JsonLines { path: PathBuf },
    /// Written in the scenario.
    List(Arc<[Value]>),
    /// Made up. Without `rows` there are as many as the longest range has numbers; without a
    /// range they never end.
    Generate { columns: Vec<(String, Generator)>, rows: Option<u64> },
}

/// Which row a user gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Take {
    /// No row is used twice in the whole run, on all machines.
    Unique,
    /// In order, again and again.
    Circular,
    /// Any row, each time.
    Random,
    /// In a random order, all once before any comes again; each round has an order of its own.
    Shuffle,
    /// Each user has one row for its whole life, the one of its number.
    PerUser,
}

impl Take {
    /// Whether the rows can be used up, so that `at_end` means something.
    pub fn can_end(self) -> bool {
        matches!(self, Take::Unique | Take::PerUser)
    }
}

/// What happens when every row was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AtEnd {
    /// The scenario does not say: the run ends in order and its result is invalid, since running
    /// out of rows may be a mistake.
    #[default]
    Unsaid,
    /// The run ends in order, as it should.
    Stop,
    /// The rows begin again.
    Wrap,
    /// The step fails.
    Error,
}

impl Source {
    pub fn new(name: impl Into<String>, origin: Origin, take: Take, at_end: AtEnd) -> Source {
        Source { name: name.into(), origin, take, at_end, used: Vec::new(), whole: false }
    }

    /// The number of a column for [`crate::Row::field`]: the scenario looks at it. Whether the
    /// column exists is seen with [`crate::columns`], or at the latest when the table is opened.
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

    /// The columns the scenario names, by their numbers.
    pub fn used(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|name| &**name)
    }

    /// The scenario looks at whole rows, [`crate::Row::whole`].
    pub fn use_whole(&mut self) {
        self.whole = true;
    }
}

/// Refuses too many columns and names that come twice. Empty names are let through: exports of
/// tables have them, and nobody can ask for such a column.
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
