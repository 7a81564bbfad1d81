//! The operator of a run in a terminal: a line per second with a progress line, or a full screen
//! (`dashboard`); the `keys` that control the run, and the signals that stop it.

mod dashboard;
mod keys;

use std::cell::RefCell;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use throng_base::units::format_duration;
use throng_base::{Clock, Diagnostic, Said, Time};
use throng_results::directory::RECORDS;
use throng_results::terminal::{Live, Progress, Style, progress_line, summary_text};
use throng_results::{RunInfo, Summary, summary_json};
use throng_run::{Line, Operator, StopRequests};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::bug;
use crate::screen::Screen;
use crate::signals::{Stops, stop_requests};
use crate::system::{self, is_in_front};
use dashboard::Dashboard;
use keys::Keys;

/// Restores the terminal; also after a panic.
pub fn restore() {
    dashboard::give_back();
    system::give_terminal_back();
}

/// Flags for the output of a run.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print the summary as JSON on standard output; see docs/json.md
    #[arg(long)]
    pub json: bool,
    /// Print all metrics instead of the short summary, and the data sent and received in the first
    /// failures of each kind
    #[arg(long)]
    pub details: bool,
    /// Do not print progress lines during the run
    #[arg(long)]
    pub quiet: bool,
    /// Show charts, steps, connections and errors in a full-screen view during the run; keys change
    /// the load
    #[arg(long = "tui", conflicts_with_all = ["json", "quiet"])]
    pub full_screen: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub no_color: bool,
}

/// See the module's description.
pub struct Terminal {
    screen: Screen,
    errors: Screen,
    json: bool,
    quiet: bool,
    wants_dashboard: bool,
    state: RefCell<TerminalState>,
}

#[derive(Default)]
struct TerminalState {
    clock: Option<Clock>,
    /// The line of the current second.
    second: Option<Live>,
    progress_drawn: bool,
    /// Replaces lines, if requested.
    dashboard: Option<Dashboard>,
    keys: Option<Keys>,
    /// Restores the terminal when the shell stops this process.
    stops: Option<JoinHandle<()>>,
    /// The next line covers seconds that only the dashboard showed.
    skips_second: bool,
}

impl Terminal {
    pub fn new(output: &Output) -> Terminal {
        let errors = Screen::errors(output.no_color);
        // With JSON, standard output is for a program, and text is on standard error.
        let mut screen = if output.json { errors } else { Screen::output(output.no_color) };
        screen.style.details = output.details;
        Terminal {
            screen,
            errors,
            json: output.json,
            quiet: output.quiet,
            wants_dashboard: output.full_screen,
            state: RefCell::default(),
        }
    }

    fn begin(&self, info: &RunInfo, clock: Clock) {
        let mut state = self.state.borrow_mut();
        state.clock = Some(clock);
        state.second = Some(Live::new(self.screen.style, info));
        if !self.wants_dashboard {
            return;
        }
        let is_heard = io::stdin().is_terminal() && is_in_front();
        state.dashboard = match self.screen.is_terminal && is_heard {
            true => Dashboard::open(self.screen.style, info).ok(),
            false => None,
        };
        if state.dashboard.is_none() {
            return self.errors.say(say!(
                "`--tui` requires a terminal for input and output; throng prints progress lines \
                 instead"
            ));
        }
        state.stops = Some(tokio::spawn(async {
            let mut stops = Stops::new(true);
            loop {
                stops.next().await;
                // The shell gets a restored terminal; after `fg` it is set again, see `draw`.
                restore();
                stops.stop();
            }
        }));
    }

    /// Prints the messages of the dashboard again after it is closed.
    fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.keys = None;
        state.stops.take().iter().for_each(JoinHandle::abort);
        if let Some(dashboard) = state.dashboard.take() {
            state.skips_second = true;
            dashboard.close().iter().for_each(|text| self.errors.line(text));
        }
    }

    /// Shows a message on the dashboard, or as a line without one.
    fn tell(&self, text: impl FnOnce() -> String, line: impl FnOnce()) {
        let mut state = self.state.borrow_mut();
        let TerminalState { dashboard, clock, .. } = &mut *state;
        if let (Some(dashboard), Some(clock)) = (dashboard, clock) {
            return dashboard.tell(clock.now(), &text());
        }
        self.clear(&mut state);
        line();
    }

    fn diagnostic(&self, diagnostic: &Diagnostic) {
        let text = || diagnostic.render(false).trim_end().to_string();
        self.tell(text, || self.errors.diagnostic(diagnostic));
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    fn say(&self, said: Said) {
        self.tell(|| said.spoken(), || self.errors.say(said.clone()));
    }

    fn log(&self, at: Option<(u64, u64)>, text: &str) {
        let line = || match at {
            Some((at_ns, user)) => {
                let at = format_duration(Duration::from_nanos(at_ns));
                let who = if user > 0 { format!(" user {user}") } else { String::new() };
                format!("[{at}{who}] {text}")
            }
            None => text.to_string(),
        };
        if !self.quiet {
            self.tell(line, || self.screen.line(&line()));
        }
    }

    fn second(&self, until: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(line) = state.second.as_mut().map(|second| second.line(until)) else { return };
        let skips = std::mem::take(&mut state.skips_second) || state.dashboard.is_some();
        if !self.quiet && !skips {
            self.clear(state);
            self.screen.line(&line);
        }
    }

    fn draw(&self, progress: Option<&Progress>) {
        let TerminalState { dashboard, keys, clock, progress_drawn, .. } =
            &mut *self.state.borrow_mut();
        if keys.as_ref().is_some_and(Keys::keep)
            && let Some(dashboard) = dashboard
        {
            dashboard.take_again();
        }
        if let (Some(dashboard), Some(clock)) = (dashboard, clock) {
            // In the background, it would overwrite the output of the shell.
            if is_in_front() {
                dashboard.draw(clock.now(), progress);
            }
            return;
        }
        let Some(progress) = progress else { return };
        self.screen.redraw(&progress_line(progress, &self.screen.style));
        *progress_drawn = true;
    }

    fn summary(&self, summary: &Summary, has_page: bool) {
        self.clear_progress();
        if self.json {
            return Screen::output(true).json(&summary_json(summary));
        }
        let newest = summary.directory.as_ref().is_some_and(|it| it.starts_with(RECORDS));
        let style = Style { newest, page: has_page, ..self.screen.style };
        self.screen.text(&summary_text(summary, &style));
    }

    fn clear_progress(&self) {
        self.clear(&mut self.state.borrow_mut());
    }

    fn clear(&self, state: &mut TerminalState) {
        if std::mem::take(&mut state.progress_drawn) {
            self.screen.redraw("");
        }
    }
}

impl Operator for Terminal {
    fn tell(&self, line: Line<'_>) {
        match line {
            Line::Said(said) => self.say(said),
            Line::Diagnostic(diagnostic) => self.diagnostic(&diagnostic),
            Line::Mistakes(all) => self.errors.diagnostics(&all),
            Line::Text(text) => self.tell(|| text.to_string(), || self.errors.text(&text)),
            Line::Log { at, text } => self.log(at, &text),
            Line::Once(_) if self.quiet => {}
            Line::Once(said) => self.tell(|| said.spoken(), || self.screen.say(said.clone())),
            Line::Bug(reason) => bug::tell(&reason),
            Line::Began { info, clock } => self.begin(&info, clock),
            Line::Interval { interval, gauges } => {
                let TerminalState { second, dashboard, .. } = &mut *self.state.borrow_mut();
                second.iter_mut().for_each(|second| second.add(&interval));
                dashboard.iter_mut().for_each(|it| it.interval(&interval, &gauges));
            }
            Line::Event(_) => {}
            Line::Second(until) => self.second(until),
            Line::Progress(progress) => self.draw(progress.as_ref()),
            Line::Interrupted => self.clear_progress(),
            Line::Over => self.end(),
            Line::Summary { summary, has_page } => self.summary(&summary, has_page),
        }
    }

    fn stop_requests(&self) -> io::Result<StopRequests> {
        stop_requests()
    }

    fn keys(&self) -> Option<UnboundedReceiver<u8>> {
        let state = &mut *self.state.borrow_mut();
        let (keys, pressed) = Keys::read(self.sees_progress(), state.dashboard.is_some());
        state.keys = Some(keys);
        pressed
    }

    fn sees_progress(&self) -> bool {
        self.screen.is_terminal && !self.quiet
    }

    fn helps(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.dashboard.iter_mut().for_each(Dashboard::help);
        state.dashboard.is_some()
    }
}

/// For commands that use the crate of runs without starting a run.
impl Operator for Screen {
    fn tell(&self, line: Line<'_>) {
        match line {
            Line::Said(said) => self.say(said),
            Line::Diagnostic(diagnostic) => self.diagnostic(&diagnostic),
            Line::Mistakes(all) => self.diagnostics(&all),
            Line::Text(text) => self.text(&text),
            Line::Bug(reason) => bug::tell(&reason),
            _ => {}
        }
    }

    fn stop_requests(&self) -> io::Result<StopRequests> {
        stop_requests()
    }
}

#[cfg(test)]
mod tests;
