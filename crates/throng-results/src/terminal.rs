//! What a person sees. Pure functions: figures in, text out; the width, the language and whether
//! colours are wanted come with the [`Style`]. Printing is the caller's.
//!
//! - `columns`: tables by what their columns show of a row.
//! - [`comparison`]: runs side by side.
//! - `curve`: a row of figures, drawn with a character for each.
//! - `details`: the evidence of failures, behind the report.
//! - [`findings`]: what was found in a run, and why.
//! - [`history`]: the runs of a folder.
//! - [`live`]: the line of every second and the line that moves.
//! - [`report`]: all figures of a run, section by section: `--details`.
//! - `summary`: what a person wants first, in few lines.
//! - `table`, `text`: columns, cutting, wrapping, numbers.

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
pub(crate) use report::known_text;

use crate::summary::Summary;

/// What is printed of a run, every line ending in a newline: in short, or with all details.
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

/// For whom the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours.
    pub colour: bool,
    /// In columns. Narrower than [`Style::WIDTH_MIN`] counts as that.
    pub width: usize,
    pub language: Language,
    /// With everything that is known, in as many lines as it takes.
    pub details: bool,
    /// A terminal that shows no more than ASCII, but for what others have named.
    pub ascii: bool,
    /// What is told of is what `throng report` shows when it is given no run.
    pub newest: bool,
    /// The page of the run is in its directory, for a browser.
    pub page: bool,
}

impl Style {
    pub const WIDTH_MIN: usize = 60;
    /// Wider text is hard to read.
    const WIDTH_MAX: usize = 110;

    /// 80 columns of English without colours: what a file or a pipe gets.
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

    /// A sentence or a label of ours in the language of the person.
    #[allow(clippy::needless_pass_by_value)] // Most are made where they are told.
    fn say(&self, said: Said) -> String {
        said.render(self.language)
    }

    fn columns(&self) -> usize {
        self.width.clamp(Style::WIDTH_MIN, Style::WIDTH_MAX)
    }

    /// Text in a colour, in lines that fit.
    fn paragraph(&self, ink: Ink, text: &str) -> String {
        let lines = text::wrap(text, self.columns()).into_iter();
        lines.map(|line| self.paint(ink, &line) + "\n").collect()
    }

    /// Counts with their words: those that are 0 say nothing.
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

    /// Text in a colour, by its code.
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

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ink {
    #[default]
    Plain,
    Bold,
    /// What is only read when it is looked for.
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
