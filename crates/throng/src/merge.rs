//! `throng merge`: the records of several machines become one, and its summary is printed.

use throng_base::Diagnostic;
use throng_results::terminal::summary_text;
use throng_results::{Run, exit_code, merge_runs, summary_json};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::MergeArguments;

pub(crate) fn merge(arguments: &MergeArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let summary = merged(arguments).map_err(|told| errors.refused(&told))?;
    let screen = Screen::output(arguments.no_color).with_details(arguments.details);
    match arguments.json {
        true => screen.json(&summary_json(&summary)),
        false => screen.text(&summary_text(&summary, &screen.style)),
    }
    Ok(exit_code(&summary))
}

fn merged(arguments: &MergeArguments) -> Result<throng_results::Summary, Box<Diagnostic>> {
    let runs: Result<Vec<Run>, _> = arguments.runs.iter().map(|run| Run::open(run)).collect();
    merge_runs(&runs?, &arguments.out)?;
    Run::open(&arguments.out)?.summary()
}
