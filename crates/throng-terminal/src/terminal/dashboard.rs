//! `--tui`: a run on a full screen while it goes on. What is drawn is kept by `figures`, how by
//! `draw`; this is the screen itself, which is given back however the process ends.

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

/// The screen is ours: whoever ends this process gives it back.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Of what was said on the way, so much is said again where the screen was.
const SAID_MAX: usize = 200;
/// More often nobody can read it.
const REDRAW: Duration = Duration::from_millis(500);

/// See the module's description.
pub(super) struct Dashboard {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    figures: Figures,
    style: Style,
    helps: bool,
    /// What went to the screen in place of the terminal, for when it is given back.
    said: Vec<String>,
    /// Something is to be drawn that was not there before.
    is_stale: bool,
    drawn: Option<throng_base::Time>,
}

impl Dashboard {
    /// Takes the screen.
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

    /// Takes figures of a second; `gauges` are of all loads.
    pub(super) fn interval(&mut self, interval: &Interval, gauges: &Gauges) {
        self.figures.add(interval, gauges);
        self.is_stale = true;
    }

    /// Something happened: a notice, a line of the scenario, an answer to a key.
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

    /// Who was stopped and goes on finds the screen as the shell has it.
    pub(super) fn take_again(&mut self) {
        if take().is_ok() {
            // `clear` would ask the terminal where its cursor is: whoever reads keys would get the
            // answer, and the run would wait for it.
            let size = self.terminal.size().unwrap_or_default();
            let _ = self.terminal.resize(size.into());
            self.is_stale = true;
        }
    }

    /// Draws what is new. A terminal that takes nothing more is no reason to stop a run.
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

    /// Gives the screen back. Returns what was said while it was taken.
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

/// The terminal shows what it showed before; also after a panic.
pub(super) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Nowhere is left to tell that it failed.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = io::stdout().flush();
    }
}
