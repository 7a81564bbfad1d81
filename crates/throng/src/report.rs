//! `throng report`: the summary of a recorded run, printed again.

use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Exit};
use throng_results::{Run, details_text, exit_code, summary_json};

use crate::arguments::ReportArguments;
use crate::conduct::RECORDS;
use crate::files::{write_junit, write_page};
use crate::screen::Screen;

/// How many run directories are looked at for one that fits.
const RUNS_MAX: usize = 1_000;
/// Of a run directory's name: when the run began, `20261121-120301`.
const STAMP_BYTES: usize = 15;

pub(crate) fn report(arguments: &ReportArguments) -> Exit {
    let screen = Screen::output(arguments.no_color).with_details(arguments.details);
    let run = match &arguments.run {
        Some(directory) => Run::open(directory),
        None => newest(|_| true).ok_or_else(no_runs),
    };
    let summary = run.and_then(|run| run.summary());
    match summary {
        Ok(summary) => {
            match arguments.json {
                true => screen.json(&summary_json(&summary)),
                false => {
                    screen.text(&throng_results::terminal::summary_text(&summary, &screen.style));
                    if arguments.details {
                        screen.text(&details_text(&summary, &screen.style));
                    }
                }
            }
            if let Some(path) = &arguments.html
                && let Err(diagnostic) = write_page(&summary, path.as_deref())
            {
                Screen::errors(arguments.no_color).diagnostic(&diagnostic);
                return Exit::Usage;
            }
            if let Some(path) = &arguments.junit
                && let Err(diagnostic) = write_junit(path, &summary)
            {
                Screen::errors(arguments.no_color).diagnostic(&diagnostic);
                return Exit::Usage;
            }
            exit_code(&summary)
        }
        Err(diagnostic) => {
            Screen::errors(arguments.no_color).diagnostic(&diagnostic);
            Exit::Usage
        }
    }
}

fn no_runs() -> Box<Diagnostic> {
    let message = say!("no run is recorded below ./{RECORDS}");
    let help = say!("give the directory of a run, or go where `throng run` was started");
    Box::new(Diagnostic::error("run-unreadable", message).help(help))
}

/// The newest run that fits below `throng-runs`.
pub(crate) fn newest(fits: impl Fn(&Run) -> bool) -> Option<Run> {
    let entries = std::fs::read_dir(RECORDS).ok()?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // Names begin with the time, to the second.
    paths.sort_unstable_by(|a, b| b.cmp(a));
    let runs = paths.iter().take(RUNS_MAX).filter_map(|path| Run::open(path).ok());
    let mut runs = runs.filter(fits);
    let first = runs.next()?;
    let stamp = stamp(&first.directory);
    let later = runs.take_while(|run| self::stamp(&run.directory) == stamp);
    std::iter::once(first)
        .chain(later.collect::<Vec<_>>())
        .max_by(|a, b| a.info.started.cmp(&b.info.started))
}

fn stamp(directory: &Path) -> Option<Vec<u8>> {
    let name = directory.file_name()?.as_encoded_bytes();
    name.get(..STAMP_BYTES).map(<[u8]>::to_vec)
}
