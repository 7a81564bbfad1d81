//! `throng history`: the runs of a folder in the order of time, and what has changed for good.

use std::path::Path;

use throng_base::Diagnostic;
use throng_results::compare::{Asked, Condition, History, exit_of, history_json};
use throng_results::directory::RECORDS;
use throng_results::markdown::history_markdown;
use throng_results::terminal::history_text;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::HistoryArguments;

pub(crate) fn history(arguments: &HistoryArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let history = read(arguments).map_err(|told| errors.refused(&told))?;
    let screen = Screen::output(arguments.no_color);
    match (arguments.json, arguments.markdown) {
        (true, _) => screen.json(&history_json(&history)),
        (_, true) => screen.text(&history_markdown(&history)),
        _ => screen.text(&history_text(&history, &screen.style)),
    }
    Ok(exit_of(history.scenarios.iter().flat_map(|trend| &trend.judged)))
}

fn read(arguments: &HistoryArguments) -> Result<History, Box<Diagnostic>> {
    let conditions = arguments.conditions.iter().map(|text| Condition::parse(text));
    let asked = Asked {
        step: arguments.step.clone(),
        labels: arguments.labels.clone(),
        last: arguments.last.map(|last| usize::try_from(last).unwrap_or(usize::MAX)),
        baseline: arguments.baseline.clone(),
        conditions: conditions.collect::<Result<_, _>>()?,
        without_links: false,
    };
    let folder = arguments.folder.as_deref().unwrap_or(Path::new(RECORDS));
    History::read(folder, &asked)
}
