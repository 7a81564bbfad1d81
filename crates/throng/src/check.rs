//! `throng check`: what a scenario will do, without sending anything.

use throng_base::Exit;
use throng_plan::check::check as checked;
use throng_scenario::RunOptions;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::CheckArguments;
use crate::scenario;

pub(crate) fn check(arguments: &CheckArguments) -> Ended {
    let screen = Screen::output(arguments.no_color);
    let errors = Screen::errors(arguments.no_color);
    let given = RunOptions { load: arguments.load.changes(), ..RunOptions::default() };
    let loaded = scenario::load_changed(&arguments.scenario, given, errors)?;
    let checked = checked(&loaded.program, &screen.style);
    let checked = checked.map_err(|error| errors.refused(&error.diagnostic()))?;
    errors.diagnostics(&checked.warnings);
    screen.text(&checked.text);
    screen.line(&match loaded.warnings + checked.warnings.len() {
        0 => tell!("the scenario is valid; nothing was sent"),
        1 => tell!("the scenario is valid, with 1 warning; nothing was sent"),
        more => tell!("the scenario is valid, with {more} warnings; nothing was sent"),
    });
    Ok(Exit::Success)
}
