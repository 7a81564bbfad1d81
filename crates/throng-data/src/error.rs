//! A mistake in a source of data: the file, the line, the cause, the fix.

use std::io;
use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Said};

/// All codes of a [`DataError`], so that each can be explained.
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
    /// Counted from 1. A row with quoted line ends has several lines; this is the first one, or the
    /// line of the relevant quote.
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

    /// The operating system denied reading.
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

    /// `accounts.csv:17`, as far as known.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?.display();
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_string(),
        })
    }

    /// The mistake as a diagnostic. The caller sets its span: the place in the scenario where the
    /// source is declared.
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

/// Why a reader returned no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untaken {
    /// All rows are used and `at_end: stop` is set: the run ends gracefully.
    RunEnds,
    /// All rows are used and `at_end` is not set: the run ends gracefully, but early.
    RunEndsShort,
    /// All rows are used and `at_end: error` is set: the step fails.
    StepFails,
    /// The file has changed since the run began: the step fails.
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
