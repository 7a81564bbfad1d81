//! `throng report`: the summary of a recorded run, printed again.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use throng_base::{Diagnostic, Exit};
use throng_results::csv::seconds_csv;
use throng_results::directory::RECORDS;
use throng_results::terminal::summary_text;
use throng_results::{Run, exit_code, summary_json};
use throng_run::files::{PAGE_FILE, unwritable, write_files, write_page, write_whole};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::ReportArguments;

/// A path that stands for standard output.
const OUTPUT: &str = "-";

pub(crate) fn report(arguments: &ReportArguments) -> Ended {
    told(arguments).map_err(|told| {
        let errors = Screen::errors(arguments.no_color);
        told.iter().for_each(|diagnostic| errors.diagnostic(diagnostic));
        Exit::Usage
    })
}

fn told(arguments: &ReportArguments) -> Result<Exit, Vec<Diagnostic>> {
    let screen = Screen::output(arguments.no_color).with_details(arguments.details);
    let screen = screen.of_newest(arguments.run.is_none());
    let run = given_or_newest(arguments.run.as_deref()).map_err(|told| vec![*told])?;
    let summary = run.summary().map_err(|told| vec![*told])?;
    let own_page = summary.directory.clone().unwrap_or_default().join(PAGE_FILE);
    if let Some(path) = &arguments.html {
        write_page(&summary, path.as_deref()).map_err(|told| vec![*told])?;
    }
    let screen = screen.with_page(own_page.is_file());
    let to_output = arguments.csv.as_deref() == Some(Path::new(OUTPUT));
    match arguments.json {
        true => screen.json(&summary_json(&summary)),
        false if to_output => {}
        false => {
            screen.text(&summary_text(&summary, &screen.style));
            if let Some(path) = &arguments.html {
                let path = path.as_deref().unwrap_or(&own_page);
                screen.say(say!("page: {}", path.display()));
            }
        }
    }
    if let Some(path) = &arguments.csv {
        write_csv(&run, path, screen).map_err(|told| vec![*told])?;
    }
    let (junit, markdown) = (arguments.junit.as_deref(), arguments.markdown.as_deref());
    match write_files(junit, markdown, &summary) {
        failed if failed.is_empty() => Ok(exit_code(&summary)),
        failed => Err(failed),
    }
}

/// A row for each second and step, as they are read.
fn write_csv(run: &Run, path: &Path, screen: Screen) -> Result<(), Box<Diagnostic>> {
    if path == Path::new(OUTPUT) {
        return seconds_csv(run, |piece| screen.document(piece));
    }
    let failed = |error: &std::io::Error| unwritable("--csv", path, error);
    let mut read = Ok(());
    let written = write_whole(path, &mut OpenOptions::new(), |file| {
        let mut file = std::io::BufWriter::new(file);
        let mut written = Ok(());
        read = seconds_csv(run, |piece| {
            if written.is_ok() {
                written = file.write_all(piece.as_bytes());
            }
        });
        written.and_then(|()| file.flush())
    });
    read.and(written.map_err(|error| failed(&error)))
}

/// The run that a command is given, or the newest one.
pub(crate) fn given_or_newest(given: Option<&Path>) -> Result<Run, Box<Diagnostic>> {
    match given {
        Some(directory) => Run::open(directory),
        None => Run::newest(|_| true).ok_or_else(no_runs),
    }
}

fn no_runs() -> Box<Diagnostic> {
    let message = say!("no run is recorded in ./{RECORDS}");
    let help =
        say!("give a run directory, or change to the directory where `throng run` was started");
    Box::new(Diagnostic::error("run-unreadable", message).help(help))
}
