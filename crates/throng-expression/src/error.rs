//! An error in an expression, and its position.

use throng_base::Said;

/// An error in an expression, ready for a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Byte positions within the expression's text, on boundaries of characters.
    pub start: usize,
    pub end: usize,
    /// `bad-expression`, `unknown-name`, `unknown-function` or `wrong-arguments`.
    pub code: &'static str,
    pub message: Said,
    /// Shown beside the marked position; may be empty.
    pub label: Said,
    /// What to do next; may be empty.
    pub help: Said,
}

impl CompileError {
    pub(crate) fn new(code: &'static str, start: usize, end: usize) -> Box<CompileError> {
        Box::new(CompileError {
            start,
            end,
            code,
            message: Said::default(),
            label: Said::default(),
            help: Said::default(),
        })
    }

    pub(crate) fn message(mut self: Box<Self>, message: Said) -> Box<Self> {
        self.message = message;
        self
    }

    pub(crate) fn label(mut self: Box<Self>, label: Said) -> Box<Self> {
        self.label = label;
        self
    }

    pub(crate) fn help(mut self: Box<Self>, help: Said) -> Box<Self> {
        self.help = help;
        self
    }
}
