//! The mistakes that were found so far. Only the first ones are shown.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throng_base::{Diagnostic, Severity, Source, Span};

/// Maximum number of mistakes that are shown per file; the last one says how many more there are.
pub const DIAGNOSTICS_MAX: usize = 100;

#[derive(Default)]
pub(crate) struct Mistakes {
    shown: Vec<Diagnostic>,
    /// By the number of a mistake: more places of the same mistake, as file and byte.
    repeated: HashMap<usize, HashSet<(u16, usize)>>,
    more_errors: usize,
}

impl Mistakes {
    /// True if no more mistakes are shown. Then places and suggestions are not searched, which
    /// would be slow in a large file with many mistakes.
    pub(crate) fn is_full(&self) -> bool {
        self.shown.len() >= DIAGNOSTICS_MAX
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    /// The number of errors so far.
    pub(crate) fn errors(&self) -> usize {
        let shown = self.shown.iter().filter(|one| one.severity == Severity::Error);
        shown.count() + self.more_errors
    }

    /// Counts an error that is not shown.
    pub(crate) fn count_error(&mut self) {
        self.more_errors += 1;
    }

    /// Adds a mistake; returns its number if it is shown.
    pub(super) fn add(&mut self, mut diagnostic: Diagnostic) -> Option<usize> {
        diagnostic.label.get_or_insert_with(|| say!("here"));
        // A mistake in a part is found at each use.
        if let Some(number) = self.shown.iter().position(|known| *known == diagnostic) {
            return Some(number);
        }
        if !self.is_full() {
            self.shown.push(diagnostic);
            return Some(self.shown.len() - 1);
        }
        if diagnostic.severity == Severity::Error {
            self.count_error();
        }
        None
    }

    /// Adds a place to a mistake: it is shown once, with the number of places. `file` is the number
    /// of its file.
    pub(super) fn repeat(&mut self, number: usize, file: u16, span: &Span) {
        if self.shown.get(number).is_some_and(|first| first.span.as_ref() != Some(span)) {
            self.repeated.entry(number).or_default().insert((file, span.start));
        }
    }

    /// All mistakes in the order of their files and places; those without a place first.
    pub(super) fn finish(
        mut self,
        file: impl Fn(&Arc<Source>) -> Option<usize>,
    ) -> Vec<Diagnostic> {
        for (number, places) in &self.repeated {
            self.shown[*number].notes.push(match places.len() {
                1 => say!("the same problem occurs in 1 other place"),
                more => say!("the same problem occurs in {more} other places"),
            });
        }
        self.shown.sort_by_key(|diagnostic| match &diagnostic.span {
            Some(span) => (file(&span.source), span.start),
            None => (None, 0),
        });
        if let (more @ 1.., Some(last)) = (self.more_errors, self.shown.last_mut()) {
            last.notes.push(say!("{more} more errors are not shown"));
        }
        self.shown
    }
}
