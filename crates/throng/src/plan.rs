//! `throng plan`: how many machines so many users or requests need, by what a user of this scenario
//! has cost. Nothing is sent. The arithmetic is that of [`throng_plan`].

use throng_base::{Diagnostic, Exit};
use throng_fleet::presence::AGENTS_MAX;
use throng_plan::reckon::Peak;
use throng_plan::report::{Planned, json, text};
use throng_plan::{Asked, newest, users_without_scenario};
use throng_program::Program;
use throng_results::Run;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::{PlanArguments, ScenarioArguments};
use crate::scenario;

pub(crate) fn plan(arguments: &PlanArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let screen = Screen::output(arguments.no_color);
    let planned = planned(arguments, errors)?;
    match arguments.json {
        true => screen.json(&json(&planned)),
        false => screen.text(&text(&planned, arguments.explain, &screen.style)),
    }
    Ok(Exit::Success)
}

fn planned(arguments: &PlanArguments, errors: Screen) -> Result<Planned, Exit> {
    let peak = arguments.pv.map(|views| Peak {
        views,
        share: arguments.share.unwrap_or(0.8),
        of_day: arguments.of_day.unwrap_or(0.2),
    });
    let rate = arguments.rate.or(peak.map(|peak| peak.rate()));
    let program = program(arguments, rate.is_some(), errors)?;
    let told = |diagnostic: Box<Diagnostic>| {
        errors.diagnostic(&diagnostic);
        Exit::Usage
    };
    let run = match &arguments.from {
        Some(directory) => Some(Run::open(directory).map_err(told)?),
        None if arguments.file.is_some() => newest(&program.name),
        None => None,
    };
    let asked = Asked {
        program,
        is_scenario: arguments.file.is_some(),
        users: arguments.users,
        rate,
        peak,
        run,
        machine: arguments.machine,
        by_fleet: arguments.fleet,
    };
    Ok(Planned {
        file: arguments.file.clone(),
        set: arguments.set.clone(),
        per_machine: arguments.per_machine,
        agents_max: AGENTS_MAX as u64,
        plan: throng_plan::plan(asked).map_err(told)?,
    })
}

/// That of the file; else a user that everybody has.
fn program(arguments: &PlanArguments, asks: bool, errors: Screen) -> Result<Program, Exit> {
    if let Some(file) = &arguments.file {
        let scenario =
            ScenarioArguments { file: file.clone(), set: arguments.set.clone(), seed: None };
        return Ok(scenario::load(&scenario, errors)?.program);
    }
    if !asks && arguments.users.is_none() {
        let message = say!("no load is given");
        let help =
            say!("give a scenario, --users N, --rate N/s or --pv N: `throng plan --users 1M`");
        return Err(errors.refused(&Diagnostic::error("bad-plan", message).help(help)));
    }
    users_without_scenario(asks).map_err(|mistakes| {
        errors.diagnostics(&mistakes);
        Exit::Bug
    })
}
