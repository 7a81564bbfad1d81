//! Errors with their place, cause and fix, rendered for a terminal or a log.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use strsim::osa_distance;
use unicode_width::UnicodeWidthStr as _;

use crate::clean::{clean, clean_lines};
use crate::columns::paint;
use crate::language::{Language, spoken};
use crate::said::Said;
use crate::secret::blot;

/// A text that can contain errors: a file, a command line, a cURL command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its name for the user: a path, or `command line`.
    pub name: String,
    pub text: String,
    /// Its lines are not shown, because it may be another file than intended.
    is_private: bool,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into(), is_private: false })
    }

    /// The same source; errors give the position, but do not show the line.
    pub fn private(&self) -> Arc<Source> {
        let (name, text) = (self.name.clone(), self.text.clone());
        Arc::new(Source { name, text, is_private: true })
    }

    /// The same source with these ranges replaced by stars. Positions stay the same.
    pub fn blotted(&self, ranges: &[Range<usize>]) -> Arc<Source> {
        let (name, text) = (self.name.clone(), blot(&self.text, ranges));
        Arc::new(Source { name, text, is_private: self.is_private })
    }

    /// Line and column of a byte position, both from 1. Columns count characters.
    pub fn line_column(&self, position: usize) -> (usize, usize) {
        let position = self.floor_char(position);
        let before = &self.text[..position];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        (line, self.text[line_start..position].chars().count() + 1)
    }

    /// The line that contains a byte position, without its line break.
    pub fn line_at(&self, position: usize) -> &str {
        let position = self.floor_char(position);
        let start = self.text[..position].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        self.text[start..end].trim_end_matches('\r')
    }

    fn floor_char(&self, position: usize) -> usize {
        self.text.floor_char_boundary(position.min(self.text.len()))
    }
}

/// A range in a source, as byte positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub source: Arc<Source>,
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// What is wrong, where, why, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable code, such as `unknown-key`, that users can search for.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: Said,
    pub span: Option<Span>,
    /// A label for the marked place: `did you mean …`.
    pub label: Option<Said>,
    /// Facts that explain the error: `cause: …`.
    pub notes: Vec<Said>,
    /// What to do next.
    pub help: Option<Said>,
}

impl Diagnostic {
    pub fn error(code: &'static str, message: impl Into<Said>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            span: None,
            label: None,
            notes: Vec::new(),
            help: None,
        }
    }

    pub fn warning(code: &'static str, message: impl Into<Said>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    pub fn at(mut self, span: Span) -> Diagnostic {
        self.span = Some(span);
        self
    }

    pub fn label(mut self, label: impl Into<Said>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    pub fn note(mut self, note: impl Into<Said>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    pub fn help(mut self, help: impl Into<Said>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The diagnostic as text in the user's language, with a final line break; `colour` adds ANSI
    /// colors.
    pub fn render(&self, colour: bool) -> String {
        self.render_in(spoken(), colour)
    }

    pub fn render_in(&self, language: Language, colour: bool) -> String {
        let say = |said: &Said| clean_lines(&said.render(language));
        let paint = |code: &str, text: &str| paint(colour, code, text);
        let (word, code) = match self.severity {
            Severity::Error => (say!("error"), "1;31"),
            Severity::Warning => (say!("warning"), "1;33"),
        };
        let head = paint(code, &format!("{}[{}]", say(&word), self.code));
        let mut out = format!("{head}: {}\n", paint("1", &say(&self.message)));
        let label = self.label.as_ref().map_or_else(String::new, say);
        let mut margin = 1;
        if let Some(span) = &self.span {
            margin = span.source.line_column(span.start).0.to_string().len();
            span.show(&mut out, &label, colour, code);
        }
        let pad = " ".repeat(margin);
        let equals = paint("34", "=");
        if self.span.as_ref().is_some_and(|span| span.source.is_private) && !label.is_empty() {
            let _ = writeln!(out, "{pad} {equals} {label}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "{pad} {equals} {}", say(note));
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{pad} {equals} {}: {}", say(&say!("help")), say(help));
        }
        out
    }
}

impl Span {
    /// Writes the position, and the line with the place marked.
    fn show(&self, out: &mut String, label: &str, colour: bool, code: &str) {
        let paint = |code: &str, text: &str| paint(colour, code, text);
        let (line, column) = self.source.line_column(self.start);
        let pad = " ".repeat(line.to_string().len());
        let name = clean(&self.source.name);
        let _ = writeln!(out, "{pad}{} {name}:{line}:{column}", paint("34", "-->"));
        if self.source.is_private {
            return;
        }
        let bar = paint("34", "|");
        let _ = writeln!(out, "{pad} {bar}");
        let (text, shift) = window(self.source.line_at(self.start), column);
        let (before, rest) = text.split_at(text.len().min(column - 1 - shift));
        let place = self.source.text.get(self.start..self.end).unwrap_or("");
        let length = place.split('\n').next().unwrap_or("").chars().count();
        // The marks end with the shown line. A wide character gets two marks.
        let marked = shown(&rest[..length.min(rest.len())]).width().max(1);
        let _ = writeln!(out, "{} {bar} {}", paint("34", &line.to_string()), shown(&text));
        let marks = paint(code, &format!("{} {label}", "^".repeat(marked)));
        let marks = format!("{}{marks}", " ".repeat(shown(before).width()));
        let _ = writeln!(out, "{pad} {bar} {}", marks.trim_end());
    }
}

/// Maximum length of a shown source line.
const SHOWN_CHARS_MAX: usize = 140;

/// The part of a long line around `column`, and the number of characters removed before it.
fn window(line: &str, column: usize) -> (Vec<char>, usize) {
    let cut = if column > SHOWN_CHARS_MAX / 2 && line.chars().count() > SHOWN_CHARS_MAX {
        column - SHOWN_CHARS_MAX / 2
    } else {
        0
    };
    (line.chars().skip(cut).take(SHOWN_CHARS_MAX).collect(), cut)
}

/// A part of a source line as printed.
fn shown(piece: &[char]) -> String {
    let text: String = piece.iter().map(|c| if *c == '\t' { ' ' } else { *c }).collect();
    clean(&text)
}

/// The most similar candidate, if its [distance](osa_distance) is at most a third of the word's
/// length, and at least one.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance <= limit || (candidate.len() >= 3 && word.contains(*candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_others(text: &str) -> Said {
        Said::of_others(text)
    }

    #[test]
    fn an_error_is_shown_with_its_place() {
        let source = Source::new("checkout.yaml", "steps:\n  - thinktime: 2s\n");
        let span = Span { source, start: 11, end: 20 };
        let text =
            Diagnostic::error("unknown-key", of_others("`thinktime` is not a key of a step"))
                .at(span)
                .label(of_others("did you mean `think`?"))
                .help(of_others("a step must have one of these verbs: `http`, `think`"))
                .render(false);
        assert_eq!(
            text,
            "error[unknown-key]: `thinktime` is not a key of a step\n\
             \x20--> checkout.yaml:2:5\n\
             \x20 |\n\
             2 |   - thinktime: 2s\n\
             \x20 |     ^^^^^^^^^ did you mean `think`?\n\
             \x20 = help: a step must have one of these verbs: `http`, `think`\n"
        );
    }

    #[test]
    fn marks_are_below_wide_characters() {
        let source = Source::new("x.yaml", "- {名称: 登录, 步骤: x}\n");
        let start = source.text.find("步骤").unwrap();
        let span = Span { source, start, end: start + "步骤".len() };
        let text = Diagnostic::warning("unknown-key", of_others("this")).at(span).render(false);
        assert!(text.ends_with("1 | - {名称: 登录, 步骤: x}\n  |                ^^^^\n"), "{text}");
    }

    #[test]
    fn control_characters_are_shown_as_escapes() {
        let source = Source::new("a\u{1b}[2J.yaml", "x: \u{202e}y z\n");
        let span = Span { start: 8, end: 9, source };
        let text = Diagnostic::error("code", of_others("no `\u{9b}2J`"))
            .at(span)
            .note(of_others("\u{7}"))
            .render(false);
        let want = "error[code]: no `\\u{9b}2J`\n --> a\\u{1b}[2J.yaml:1:7\n  |\n\
            1 | x: \\u{202e}y z\n  |              ^\n  = \\u{7}\n";
        assert_eq!(text, want);
    }

    #[test]
    fn the_lines_of_a_private_source_are_not_shown() {
        let source = Source::new("shadow", "root:$6$abc:1\n").private();
        let error =
            Diagnostic::error("code", of_others("no")).at(Span { source, start: 4, end: 6 });
        let text = error.label(of_others("here it is")).render(false);
        assert_eq!(text, "error[code]: no\n --> shadow:1:5\n  = here it is\n");
    }

    #[test]
    fn any_span_can_be_shown() {
        let source = Source::new("x", "ä\tb\r\n".to_string() + &"y".repeat(1000));
        for start in 0..source.text.len() + 3 {
            let span = Span { source: source.clone(), start, end: start + 400 };
            let text = Diagnostic::error("code", of_others("message")).at(span).render(true);
            assert!(text.lines().all(|line| line.chars().count() < 220), "{text}");
        }
    }

    #[test]
    fn similar_words_are_found() {
        assert_eq!(did_you_mean("thinktime", ["think", "http"]), Some("think"));
        assert_eq!(did_you_mean("htp", ["think", "http"]), Some("http"));
        assert_eq!(did_you_mean("banana", ["think", "http"]), None);
    }

    #[test]
    fn swapped_letters_are_one_error() {
        assert_eq!(did_you_mean("chekc", ["think", "check"]), Some("check"));
        assert_eq!(did_you_mean("fro", ["rate", "for"]), Some("for"));
    }
}
