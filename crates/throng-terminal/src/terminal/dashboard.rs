//! `--tui`: shows a run on a full screen. `figures` has the data and `draw` the layout; this module
//! owns the screen, which is restored however the process ends.

mod draw;
mod figures;

use std::io::{self, Stdout, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use throng_metrics::{Gauges, Interval};
use throng_results::RunInfo;
use throng_results::terminal::{Progress, Style};

use figures::Figures;

/// The screen is in use, and must be restored before the process ends.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Maximum number of messages that are printed again when the screen is closed.
const SAID_MAX: usize = 200;
/// Faster updates are not readable.
const REDRAW: Duration = Duration::from_millis(500);

/// See the module's description.
pub(super) struct Dashboard {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    figures: Figures,
    style: Style,
    helps: bool,
    /// Messages on the screen, for printing when it is closed.
    said: Vec<String>,
    /// Something new must be drawn.
    is_stale: bool,
    drawn: Option<throng_base::Time>,
}

impl Dashboard {
    /// Opens the screen.
    pub(super) fn open(style: Style, info: &RunInfo) -> io::Result<Dashboard> {
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()));
        let terminal = terminal.inspect_err(|_| give_back())?;
        Ok(Dashboard {
            terminal,
            figures: Figures::new(info),
            style,
            helps: false,
            said: Vec::new(),
            is_stale: true,
            drawn: None,
        })
    }

    /// Adds the figures of a second; `gauges` covers all loads.
    pub(super) fn interval(&mut self, interval: &Interval, gauges: &Gauges) {
        self.figures.add(interval, gauges);
        self.is_stale = true;
    }

    /// Adds an event: a notice, a log line of the scenario, the reply to a key.
    pub(super) fn tell(&mut self, at: throng_base::Time, text: &str) {
        self.figures.event(at, text);
        if self.said.len() < SAID_MAX {
            self.said.push(text.to_string());
        }
        self.is_stale = true;
    }

    pub(super) fn help(&mut self) {
        self.helps = !self.helps;
        self.is_stale = true;
    }

    /// Sets up the screen again after the process was stopped and continued.
    pub(super) fn take_again(&mut self) {
        if take().is_ok() {
            // `clear` would query the position of the cursor: the reader of keys would get the
            // reply, and the run would wait for it.
            let size = self.terminal.size().unwrap_or_default();
            let _ = self.terminal.resize(size.into());
            self.is_stale = true;
        }
    }

    /// Draws changes. A failing terminal does not stop a run.
    pub(super) fn draw(&mut self, now: throng_base::Time, progress: Option<&Progress>) {
        let is_due = self.drawn.is_none_or(|drawn| now.since(drawn) >= REDRAW);
        if !self.is_stale && !is_due {
            return;
        }
        (self.is_stale, self.drawn) = (false, Some(now));
        let Dashboard { terminal, figures, style, helps, .. } = self;
        let view = draw::View { figures, progress, style: *style, helps: *helps };
        let _ = terminal.draw(|frame| draw::draw(frame, &view));
    }

    /// Closes the screen. Returns its messages.
    pub(super) fn close(mut self) -> Vec<String> {
        give_back();
        std::mem::take(&mut self.said)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, Hide).inspect_err(|_| give_back())
}

/// Restores the previous content of the terminal; also after a panic.
pub(super) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A failure cannot be reported anywhere.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = io::stdout().flush();
    }
}
