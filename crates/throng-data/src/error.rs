//! What is wrong with a source of data: the file, the line, the cause, the cure.

use std::io;
use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Said};

/// Every code a [`DataError`] can have, so that each can be explained.
pub const CODES: [&str; 8] = [
    "data-unreadable",
    "data-malformed",
    "data-empty",
    "data-column",
    "data-generator",
    "data-changed",
    "data-too-few",
    "data-space",
];

/// A mistake in a source of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// One of [`CODES`].
    pub code: &'static str,
    pub file: Option<PathBuf>,
    /// Counted from 1. Rows with quoted line ends take several lines; this is the first of them,
    /// or the line of the quote that is meant.
    pub line: Option<u64>,
    pub message: Said,
    pub help: Option<Said>,
}

impl DataError {
    pub(crate) fn new(code: &'static str, message: Said) -> DataError {
        debug_assert!(CODES.contains(&code), "`{code}` is not listed");
        DataError { code, file: None, line: None, message, help: None }
    }

    pub(crate) fn file(mut self, path: &Path) -> DataError {
        self.file = Some(path.to_path_buf());
        self
    }

    pub(crate) fn line(mut self, line: u64) -> DataError {
        self.line = Some(line);
        self
    }

    pub(crate) fn help(mut self, help: Said) -> DataError {
        self.help = Some(help);
        self
    }

    /// The operating system refused to let us read.
    pub(crate) fn unreadable(path: &Path, cause: &io::Error) -> DataError {
        let help = match cause.kind() {
            io::ErrorKind::NotFound => {
                say!("check the path; it is relative to the scenario's folder")
            }
            io::ErrorKind::PermissionDenied => say!("give your user permission to read the file"),
            _ => say!("check that the file can be read, for example with `head`"),
        };
        let cause = Said::of_error(cause);
        let message = say!("`{}` cannot be read: {cause}", path.display());
        DataError::new("data-unreadable", message).file(path).help(help)
    }

    /// `accounts.csv:17`, as far as it is known.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?.display();
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_string(),
        })
    }

    /// The mistake as a diagnostic. Its span is the caller's to set: the place in the scenario
    /// where the source is declared.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(self.code, &self.message);
        if let Some(place) = self.place() {
            diagnostic = diagnostic.note(say!("in {place}"));
        }
        match &self.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

impl DataError {
    pub fn said(&self) -> Said {
        match self.place() {
            Some(place) => say!("{place}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Why a reader gave no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untaken {
    /// Every row was used and `at_end: stop` holds: the run ends in order.
    RunEnds,
    /// Every row was used and nothing is said about that: the run ends in order, too early.
    RunEndsShort,
    /// Every row was used and `at_end: error` holds: the step fails.
    StepFails,
    /// The file is no longer what it was when the run began: the step fails.
    Broken(Box<DataError>),
}

impl Untaken {
    pub fn said(&self) -> Said {
        match self {
            Untaken::RunEnds | Untaken::RunEndsShort | Untaken::StepFails => {
                say!("all rows were used")
            }
            Untaken::Broken(error) => error.said(),
        }
    }
}

impl From<DataError> for Untaken {
    fn from(error: DataError) -> Untaken {
        Untaken::Broken(Box::new(error))
    }
}
