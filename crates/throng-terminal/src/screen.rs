//! Everything that is printed: where to, in which width and language, with or without colours.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use throng_base::clean::{clean_json, on_screen};
use throng_base::{Diagnostic, Exit, Said, Severity, language, system::EBADF};
use throng_results::terminal::Style;

use crate::system;

/// Text for people, on one of the two outputs.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    pub style: Style,
    to_errors: bool,
    /// A line that moves can be drawn.
    pub is_terminal: bool,
}

const WIDTH_PLAIN: usize = 80;

impl Screen {
    /// Standard output.
    pub fn output(no_color: bool) -> Screen {
        let is_terminal = io::stdout().is_terminal();
        Screen::new(is_terminal, no_color, false)
    }

    /// Standard error: for mistakes, and for everything when the output is for a program.
    pub fn errors(no_color: bool) -> Screen {
        Screen::new(io::stderr().is_terminal(), no_color, true)
    }

    fn new(is_terminal: bool, no_color: bool, to_errors: bool) -> Screen {
        let forbidden = no_color || std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
        let width = match terminal_size::terminal_size() {
            Some((width, _)) if is_terminal => usize::from(width.0),
            _ => WIDTH_PLAIN,
        };
        // Such a terminal has a width, but neither colours nor a cursor that moves.
        let is_terminal = is_terminal && std::env::var_os("TERM").is_none_or(|it| it != "dumb");
        let colour = is_terminal && !forbidden;
        let ascii = std::env::var_os("TERM").is_some_and(|it| it == "dumb") && width > 0;
        let style = Style { colour, width, language: language::spoken(), ascii, ..Style::plain() };
        Screen { style, to_errors, is_terminal }
    }

    /// What takes away the line that moves; without colours also without codes of the terminal.
    fn line_away(&self) -> String {
        match self.style.colour {
            true => "\r\x1b[K".to_string(),
            false => format!("\r{}\r", " ".repeat(self.style.width.saturating_sub(1))),
        }
    }

    /// Summaries with all that is known.
    pub fn with_details(mut self, details: bool) -> Screen {
        self.style.details = details;
        self
    }

    /// For the summary of a run that has its page.
    pub fn with_page(mut self, page: bool) -> Screen {
        self.style.page = page;
        self
    }

    /// For the summary of the run that `throng report` shows when it is given none.
    pub fn of_newest(mut self, newest: bool) -> Screen {
        self.style.newest = newest;
        self
    }

    /// Writes text for people. Names in it, whoever gave them, cannot do anything to a terminal.
    pub fn text(&self, text: &str) {
        self.write(&on_screen(text, self.style.colour));
    }

    /// Writes a text that is a file for programs, which stays as it is; but not at a terminal.
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

    /// Takes away the line that moves, and draws another one where there is one.
    pub fn redraw(&self, line: &str) {
        self.write(&format!("{}{}", self.line_away(), on_screen(line, self.style.colour)));
    }

    /// Writes text as it is. An output that takes nothing more is no reason to stop a run.
    pub fn write(&self, text: &str) {
        match self.to_errors {
            // There is nowhere left to tell that it failed.
            true => drop(io::stderr().lock().write_all(text.as_bytes())),
            false => output(text.as_bytes()),
        }
    }

    pub fn line(&self, line: &str) {
        self.text(&format!("{line}\n"));
    }

    /// A value for a program, which may hold text of strangers.
    pub fn json(&self, value: &serde_json::Value) {
        self.line(&clean_json(&value.to_string()));
    }

    /// A sentence of ours, in the language of the person.
    #[allow(clippy::needless_pass_by_value)] // A sentence is handed over to what says it.
    pub fn say(&self, said: Said) {
        self.line(&said.spoken());
    }

    pub fn diagnostic(&self, diagnostic: &Diagnostic) {
        self.text(&diagnostic.render(self.style.colour));
    }

    /// Tells what ends a command: its exit code.
    pub fn refused(&self, diagnostic: &Diagnostic) -> Exit {
        self.diagnostic(diagnostic);
        Exit::Usage
    }

    /// As [`Screen::refused`], of all that is wrong.
    pub fn refused_all(&self, diagnostics: &[Diagnostic]) -> Exit {
        self.diagnostics(diagnostics);
        Exit::Usage
    }

    /// All diagnostics, and how many there were.
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

/// Why the standard output does not have all that was written to it.
static OUTPUT_FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Nobody reads the standard output any more.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of the standard output has gone, as `head` does.
pub fn is_reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

/// Writes to the standard output; [`delivered`] tells at the end whether that was possible.
pub fn output(bytes: &[u8]) {
    // Without one, whoever started us has closed it.
    if !system::has_output() {
        return note_failure(Err(io::Error::from_raw_os_error(EBADF)), false);
    }
    let mut output = io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    note_failure(written, io::stdout().is_terminal());
}

/// The standard output for what takes a writer. It fails only if its reader has gone.
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

/// A reader that wants no more (`| head`), or a terminal that was closed, is no failure.
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

/// The exit code of a command, which is not good when its output could not be written.
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
