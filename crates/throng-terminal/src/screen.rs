//! All output: its destination, width and language, with or without colors.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use throng_base::clean::{clean_json, on_screen};
use throng_base::{Diagnostic, Exit, Said, Severity, language, system::EBADF};
use throng_results::terminal::Style;

use crate::system;

/// Text for people, on standard output or standard error.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    pub style: Style,
    to_errors: bool,
    /// A progress line can be redrawn.
    pub is_terminal: bool,
}

const WIDTH_PLAIN: usize = 80;

impl Screen {
    /// Standard output.
    pub fn output(no_color: bool) -> Screen {
        let is_terminal = io::stdout().is_terminal();
        Screen::new(is_terminal, no_color, false)
    }

    /// Standard error: for errors, and for all text if standard output is for a program.
    pub fn errors(no_color: bool) -> Screen {
        Screen::new(io::stderr().is_terminal(), no_color, true)
    }

    fn new(is_terminal: bool, no_color: bool, to_errors: bool) -> Screen {
        let forbidden = no_color || std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
        let width = match terminal_size::terminal_size() {
            Some((width, _)) if is_terminal => usize::from(width.0),
            _ => WIDTH_PLAIN,
        };
        // A dumb terminal has a width, but neither colors nor a cursor that moves.
        let is_terminal = is_terminal && std::env::var_os("TERM").is_none_or(|it| it != "dumb");
        let colour = is_terminal && !forbidden;
        let ascii = std::env::var_os("TERM").is_some_and(|it| it == "dumb") && width > 0;
        let style = Style { colour, width, language: language::spoken(), ascii, ..Style::plain() };
        Screen { style, to_errors, is_terminal }
    }

    /// Erases the progress line; without colors, uses no control sequences.
    fn line_away(&self) -> String {
        match self.style.colour {
            true => "\r\x1b[K".to_string(),
            false => format!("\r{}\r", " ".repeat(self.style.width.saturating_sub(1))),
        }
    }

    /// Writes text for people. Control characters in names are escaped.
    pub fn text(&self, text: &str) {
        self.write(&on_screen(text, self.style.colour));
    }

    /// Writes a document for programs unchanged, except in a terminal.
    pub fn document(&self, text: &str) {
        let is_shown = match self.to_errors {
            true => io::stderr().is_terminal(),
            false => io::stdout().is_terminal(),
        };
        match is_shown {
            true => self.text(text),
            false => self.write(text),
        }
    }

    /// Erases the progress line, and draws the new one if there is one.
    pub fn redraw(&self, line: &str) {
        self.write(&format!("{}{}", self.line_away(), on_screen(line, self.style.colour)));
    }

    /// Writes text unchanged. A failing output does not stop a run.
    pub fn write(&self, text: &str) {
        match self.to_errors {
            // A failure cannot be reported anywhere.
            true => drop(io::stderr().lock().write_all(text.as_bytes())),
            false => output(text.as_bytes()),
        }
    }

    pub fn line(&self, line: &str) {
        self.text(&format!("{line}\n"));
    }

    /// A value for a program, which may contain text from strangers.
    pub fn json(&self, value: &serde_json::Value) {
        self.line(&clean_json(&value.to_string()));
    }

    /// A sentence of ours, in the language of the person.
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub fn say(&self, said: Said) {
        self.line(&said.spoken());
    }

    pub fn diagnostic(&self, diagnostic: &Diagnostic) {
        self.text(&diagnostic.render(self.style.colour));
    }

    /// Reports the error that ends a command; returns the exit code.
    pub fn refused(&self, diagnostic: &Diagnostic) -> Exit {
        self.diagnostic(diagnostic);
        Exit::Usage
    }

    /// Like [`Screen::refused`], for several errors.
    pub fn refused_all(&self, diagnostics: &[Diagnostic]) -> Exit {
        self.diagnostics(diagnostics);
        Exit::Usage
    }

    /// All diagnostics, and their number.
    pub fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        diagnostics.iter().for_each(|diagnostic| {
            self.diagnostic(diagnostic);
            self.line("");
        });
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
        let errors = diagnostics.iter().filter(is_error).count();
        match errors {
            0 => {}
            1 => self.say(say!("1 error; nothing was sent")),
            errors => self.say(say!("{errors} errors; nothing was sent")),
        }
    }
}

/// Why standard output is incomplete.
static OUTPUT_FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// The reader of standard output is gone.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// True if the reader of standard output is gone, as with `head`.
pub fn is_reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

/// Writes to standard output; [`delivered`] reports failures at the end.
pub fn output(bytes: &[u8]) {
    // The parent process has closed it.
    if !system::has_output() {
        return note_failure(Err(io::Error::from_raw_os_error(EBADF)), false);
    }
    let mut output = io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    note_failure(written, io::stdout().is_terminal());
}

/// Standard output as a writer. It fails only if its reader is gone.
pub struct StandardOutput;

impl io::Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        output(bytes);
        match is_reader_gone() {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that stops (`| head`) or a closed terminal is not a failure.
fn note_failure(written: io::Result<()>, to_terminal: bool) {
    let Err(error) = written else { return };
    if error.kind() == io::ErrorKind::BrokenPipe {
        READER_GONE.store(true, Ordering::Relaxed);
    }
    if error.kind() != io::ErrorKind::BrokenPipe && !to_terminal {
        let mut failed = OUTPUT_FAILED.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert(error);
    }
}

/// The exit code of a command, which is a failure if its output could not be written.
pub fn delivered(exit: Exit) -> Exit {
    let failed = OUTPUT_FAILED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(error) = failed else { return exit };
    let message = say!("cannot write to standard output: {error}", error = Said::of_error(&error));
    let diagnostic = Diagnostic::error("output-failed", message)
        .help(say!("the output is incomplete: free some space, or write it to another location"));
    Screen::errors(false).diagnostic(&diagnostic);
    match exit {
        Exit::Success | Exit::ThresholdsNotMet => Exit::ResultInvalid,
        exit => exit,
    }
}
