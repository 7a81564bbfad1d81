//! The end of a run: its summary, its last record lines, its report and its exit code.

use std::borrow::Cow;

use throng_base::{Exit, clock::wall_now};
use throng_results::page::summary_data;
use throng_results::{Collector, Event, Recorder, RunInfo, exit_code, timestamp};

use crate::files::{write_files, write_html, write_page};
use crate::live::Live;
use crate::{Conduct, Line};

/// A run that has ended or failed to start.
pub(crate) struct Ending<'a> {
    pub(crate) conduct: &'a Conduct<'a>,
    pub(crate) info: RunInfo,
    pub(crate) collector: Collector,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) live: Option<Live>,
}

impl Ending<'_> {
    pub(crate) fn event(&mut self, event: &Event) {
        let event = &event.masked(&self.conduct.program.secrets);
        self.collector.event(event);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.event(event)
        {
            self.conduct.operator.diagnostic(&error.diagnostic());
        }
    }

    /// Computes the summary, records the end and prints both. `whole` is false if a shard panicked.
    pub(crate) fn conclude(mut self, whole: bool) -> Exit {
        let (output, errors) = (&self.conduct.settings, self.conduct.operator);
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
            // The run directory contains everything that the page would show.
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
        errors.tell(Line::Summary { summary: Cow::Borrowed(&summary), has_page });
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
