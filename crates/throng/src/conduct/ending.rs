//! The end of a run: summed up, recorded, printed, and the code to exit with.

use throng_base::{Exit, clock::wall_now};
use throng_results::directory::RECORDS;
use throng_results::page::summary_data;
use throng_results::terminal::summary_text;
use throng_results::{Collector, Event, Recorder, RunInfo, exit_code, summary_json, timestamp};

use super::Conduct;
use super::live::Live;
use crate::files::{write_files, write_html, write_page};
use crate::screen::Screen;

/// A run that is over, or that never began.
pub(super) struct Ending<'a> {
    pub(super) conduct: &'a Conduct<'a>,
    pub(super) info: RunInfo,
    pub(super) collector: Collector,
    pub(super) recorder: Option<Recorder>,
    pub(super) live: Option<Live>,
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
        self.info.time.ended = Some(timestamp(wall_now()));
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
        let page = self.recorder.is_some().then(|| write_page(&summary, None));
        let page = page.transpose().unwrap_or_else(|diagnostic| {
            // The record has all that the page would show.
            errors.diagnostic(&diagnostic);
            None
        });
        let has_page = page.is_some();
        if let (Some(path), Some(page)) = (&output.html, &page)
            && let Err(diagnostic) = write_html(page, path)
        {
            errors.diagnostic(&diagnostic);
            untold = true;
        }
        if let Some(live) = &mut self.live {
            live.end(page, summary_data(&summary));
        }
        if output.json {
            Screen::output(true).json(&summary_json(&summary));
        } else {
            let screen = Screen::output(output.no_color).with_details(output.details);
            let is_newest = summary.directory.as_ref().is_some_and(|it| it.starts_with(RECORDS));
            let screen = screen.of_newest(is_newest).with_page(has_page);
            screen.text(&summary_text(&summary, &screen.style));
        }
        let (junit, markdown) = (output.junit.as_deref(), output.markdown.as_deref());
        for diagnostic in write_files(junit, markdown, &summary) {
            errors.diagnostic(&diagnostic);
            untold = true;
        }
        if untold && matches!(exit, Exit::Success | Exit::ThresholdsNotMet) {
            exit = Exit::ResultInvalid;
        }
        if let Some(live) = self.live {
            live.leave();
        }
        if whole { exit } else { Exit::Bug }
    }
}
