//! The end of a run: summed up, recorded, printed, and the code to exit with.

use throng_base::{Exit, clock::wall_now};
use throng_results::terminal::summary_text;
use throng_results::{
    Collector, Event, Recorder, RunInfo, details_text, exit_code, summary_json, timestamp,
};

use super::Conduct;
use crate::files::{write_files, write_page};
use crate::screen::Screen;

/// A run that is over, or that never began.
pub(super) struct Ending<'a> {
    pub(super) conduct: &'a Conduct<'a>,
    pub(super) info: RunInfo,
    pub(super) collector: Collector,
    pub(super) recorder: Option<Recorder>,
}

impl Ending<'_> {
    pub(super) fn event(&mut self, event: &Event) {
        let event = &event.masked(&self.conduct.program.secrets);
        self.collector.event(event);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.event(event)
        {
            Screen::errors(self.conduct.output.no_color).diagnostic(&error.diagnostic());
        }
    }

    /// Sums up, records the end, prints. `whole` is false where a shard ended by a panic.
    pub(super) fn conclude(mut self, whole: bool) -> Exit {
        let output = self.conduct.output;
        let errors = Screen::errors(output.no_color);
        self.info.ended = Some(timestamp(wall_now()));
        self.info.lines_lost = self.recorder.as_ref().map_or(0, Recorder::lost);
        let mut summary = self.collector.finish(self.info);
        summary.directory = self.recorder.as_ref().map(|it| it.directory().to_path_buf());
        let mut exit = exit_code(&summary);
        let mut untold = false;
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.finish(&summary.info)
        {
            errors.diagnostic(&error.diagnostic());
            untold = true;
        }
        if self.recorder.is_some()
            && let Err(diagnostic) = write_page(&summary, None)
        {
            // The record has all that the page would show.
            errors.diagnostic(&diagnostic);
        }
        if output.json {
            Screen::output(true).json(&summary_json(&summary));
        } else {
            let screen = Screen::output(output.no_color).with_details(output.details);
            screen.text(&summary_text(&summary, &screen.style));
            if output.details {
                screen.text(&details_text(&summary, &screen.style));
            }
        }
        let (junit, markdown) = (output.junit.as_deref(), output.markdown.as_deref());
        for diagnostic in write_files(junit, markdown, &summary) {
            errors.diagnostic(&diagnostic);
            untold = true;
        }
        if untold && matches!(exit, Exit::GoalsMet | Exit::GoalsNotMet) {
            exit = Exit::ResultInvalid;
        }
        if whole { exit } else { Exit::Bug }
    }
}
