//! The sources of rows that a scenario declares.

use std::collections::HashMap;

use throng_base::Said;
use throng_data::{DataError, Origin, Source};

use crate::syntax::Place;
use crate::words::shorten;

/// The sources that the scenario declares.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) sources: Vec<Source>,
    pub(crate) declared: Vec<Declared>,
    pub(crate) by_name: HashMap<String, u16>,
    /// Names of sources with mistakes: declared, but with unknown columns.
    pub(crate) broken: Vec<String>,
}

pub(crate) struct Declared {
    pub(crate) place: Place,
    /// None if rows can have different columns.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) used: bool,
}

/// The result of resolving `data.NAME`.
pub(crate) enum Known {
    Source(u16),
    /// A source whose mistake is already reported.
    Broken,
    No,
}

impl Data {
    pub(crate) fn find(&self, name: &str) -> Known {
        match self.by_name.get(name) {
            Some(source) => Known::Source(*source),
            None if self.broken.iter().any(|broken| broken == name) => Known::Broken,
            None => Known::No,
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.sources.iter().map(|source| source.name.as_str())
    }

    /// The columns of a source, if known.
    pub(crate) fn columns(&self, source: u16) -> Option<&[String]> {
        self.declared[usize::from(source)].columns.as_deref()
    }

    /// A source with this column.
    pub(crate) fn with_column(&self, name: &str) -> Option<&str> {
        let has = |declared: &Declared| {
            declared.columns.as_ref().is_some_and(|all| all.iter().any(|column| column == name))
        };
        let number = self.declared.iter().position(has)?;
        self.sources.get(number).map(|source| source.name.as_str())
    }

    /// Advice if a file lacks a requested column because its first line does not look like a
    /// header.
    pub(crate) fn header_doubt(&self, source: u16) -> Option<Said> {
        let Origin::Csv { columns: None, .. } = &self.sources[usize::from(source)].origin else {
            return None;
        };
        let columns = self.columns(source)?;
        if let [only] = columns
            && let Some(separator) = [';', '\t', '|', ','].into_iter().find(|c| only.contains(*c))
        {
            let separator = match separator {
                '\t' => "tab".to_string(),
                other => format!("\"{other}\""),
            };
            let first = shorten(only);
            let help = say!(
                "the first line of the file, `{first}`, is read as one column: write \
                     `separator: {separator}`"
            );
            return Some(help);
        }
        let is_number = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_digit()) && name.parse::<f64>().is_ok()
        };
        let is_data = |name: &&String| name.contains('@') || is_number(name);
        let name = shorten(columns.iter().find(is_data)?);
        let help = say!(
            "the first line of the file should contain column names, not `{name}`; if it is a \
             data row, write `columns: [name, …]`"
        );
        Some(help)
    }

    /// The number of a column, which is marked as used.
    pub(crate) fn column(&mut self, source: u16, name: &str) -> Result<u16, DataError> {
        self.declared[usize::from(source)].used = true;
        self.sources[usize::from(source)].column(name)
    }

    /// Marks whole rows as used.
    pub(crate) fn use_whole(&mut self, source: u16) {
        self.declared[usize::from(source)].used = true;
        self.sources[usize::from(source)].use_whole();
    }
}
