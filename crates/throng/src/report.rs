//! `throng report`: the summary of a recorded run, printed again.

use throng_base::Exit;
use throng_results::{Run, exit_code, summary_json};

use crate::arguments::ReportArguments;
use crate::conduct::write_junit;
use crate::screen::Screen;

pub(crate) fn report(arguments: &ReportArguments) -> Exit {
    let screen = Screen::output(arguments.no_color).with_details(arguments.details);
    let summary = Run::open(&arguments.run).and_then(|run| run.summary());
    match summary {
        Ok(summary) => {
            match arguments.json {
                true => screen.json(&summary_json(&summary)),
                false => {
                    screen.text(&throng_results::terminal::summary_text(&summary, &screen.style));
                }
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
