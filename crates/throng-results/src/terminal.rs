//! Text for a terminal, as pure functions. The [`Style`] contains the width, the language and
//! whether to use colors; the caller prints.
//!
//! - `columns`: tables, defined by their columns.
//! - [`comparison`]: compared runs.
//! - `curve`: sparklines.
//! - `details`: the evidence of failures, after the report.
//! - [`findings`]: the findings in a run, and their causes.
//! - [`history`]: the runs of a folder.
//! - [`live`]: the line of each second, and the progress line.
//! - [`report`]: all results of a run, section by section: `--details`.
//! - `summary`: the most important results in a few lines.
//! - `table`, `text`: columns, truncation, wrapping, numbers.

mod chains;
pub(crate) mod columns;
pub(crate) mod comparison;
pub(crate) mod curve;
mod details;
pub(crate) mod findings;
pub(crate) mod history;
pub mod live;
pub mod report;
mod summary;
pub(crate) mod table;
pub(crate) mod text;

use throng_base::units::format_count;
use throng_base::{Language, Said};

pub use chains::slowest_text;
pub use comparison::comparison_text;
pub use findings::findings_text;
pub use history::history_text;
pub use live::{Live, Progress, progress_line};
pub use report::figure_text;

use crate::summary::Summary;

/// The summary of a run, short or with all details. Every line ends with a line break.
pub fn summary_text(summary: &Summary, style: &Style) -> String {
    let text = match style.details {
        false => summary::short_text(summary, style),
        true => {
            report::report_text(summary, style)
                + &report::load_levels(summary, style)
                + &details::details_text(summary, style)
        }
    };
    if style.ascii { text::ascii(&text) } else { text }
}

/// How to format text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Use ANSI colors.
    pub colour: bool,
    /// In columns; at least [`Style::WIDTH_MIN`].
    pub width: usize,
    pub language: Language,
    /// Show everything.
    pub details: bool,
    /// Use only ASCII, except in foreign text.
    pub ascii: bool,
    /// The run is the one that `throng report` shows by default.
    pub newest: bool,
    /// The run directory contains the HTML page.
    pub page: bool,
}

impl Style {
    pub const WIDTH_MIN: usize = 60;
    /// Wider text is hard to read.
    const WIDTH_MAX: usize = 110;

    /// 80 columns of English without colors, for files and pipes.
    pub fn plain() -> Style {
        Style {
            colour: false,
            width: 80,
            language: Language::English,
            details: false,
            ascii: false,
            newest: false,
            page: false,
        }
    }

    /// Renders a message or label in the user's language.
    #[allow(clippy::needless_pass_by_value)] // Most are temporary values.
    fn say(&self, said: Said) -> String {
        said.render(self.language)
    }

    fn columns(&self) -> usize {
        self.width.clamp(Style::WIDTH_MIN, Style::WIDTH_MAX)
    }

    /// Wraps colored text.
    fn paragraph(&self, ink: Ink, text: &str) -> String {
        let lines = text::wrap(text, self.columns()).into_iter();
        lines.map(|line| self.paint(ink, &line) + "\n").collect()
    }

    /// The counts that are not 0, with their words.
    fn counts(&self, counts: &[(u64, Said)]) -> Vec<String> {
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let text = |(count, words): &(u64, Said)| words.clone().filled(&[&format_count(*count)]);
        told.map(|counted| self.say(text(counted))).collect()
    }

    fn paint(&self, ink: Ink, text: &str) -> String {
        match ink {
            Ink::Plain => text.to_string(),
            ink => self.ink(ink.code(), text),
        }
    }

    /// Colors text by an ANSI code.
    pub fn ink(&self, code: &str, text: &str) -> String {
        throng_base::columns::paint(self.colour, code, text)
    }

    pub fn bold(&self, text: &str) -> String {
        self.ink("1", text)
    }

    pub fn dim(&self, text: &str) -> String {
        self.ink("2", text)
    }
}

/// The role of a text, which determines its color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ink {
    #[default]
    Plain,
    Bold,
    /// Details of minor interest.
    Dim,
    Good,
    Bad,
    Warn,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Ink::Plain => "0",
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Good => "32",
            Ink::Bad => "31",
            Ink::Warn => "33",
        }
    }
}

#[cfg(test)]
mod tests;
