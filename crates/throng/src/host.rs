//! `throng plan` and `throng doctor`: machines for a load, and checks of this host.

use throng_base::{Diagnostic, Exit, Said};
use throng_fleet::presence::AGENTS_MAX;
use throng_host::Root;
use throng_host::doctor::{Host, Needs, Role, apply, examine};
use throng_load::Forecast;
use throng_plan::doctor::{as_json, page};
use throng_plan::needs::needs;
use throng_plan::reckon::Peak;
use throng_plan::report::{Planned, json, text};
use throng_plan::{Asked, newest, users_without_scenario};
use throng_program::Program;
use throng_results::Run;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::{DoctorArguments, PlanArguments, ScenarioArguments};
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
    let told = |diagnostic: Box<Diagnostic>| errors.refused(&diagnostic);
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

/// The program of the file; otherwise a built-in user.
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

/// The default if neither a scenario nor `--users` gives a number.
const USERS: u64 = 10_000;

pub(crate) fn doctor(arguments: &DoctorArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let screen = Screen::output(arguments.no_color);
    let (needs, remark) = wanted(arguments, errors)?;
    let host = Host::new(Root::default());
    let mut examination = examine(&host, &needs);
    let mut applied = Vec::new();
    if arguments.fix {
        applied = apply(&host, &examination.findings);
        examination = examine(&host, &needs);
    }
    match arguments.json {
        true => screen.line(&as_json(&needs, &examination, &applied).to_string()),
        false => {
            remark.into_iter().for_each(|remark| screen.say(remark));
            screen.text(&page(&needs, &examination, &applied, arguments.fix, &screen.style));
        }
    }
    if examination.is_fit() { Ok(Exit::Success) } else { Err(Exit::HostUnfit) }
}

/// The requirements, and notes about how they were determined.
fn wanted(arguments: &DoctorArguments, errors: Screen) -> Result<(Needs, Option<Said>), Exit> {
    let role = if arguments.target { Role::Target } else { Role::Generator };
    let Some(file) = &arguments.file else {
        let remark = arguments.users.is_none().then(|| {
            say!(
                "the number of users is not given: {USERS} users are assumed (give --users N, or \
                 a scenario)"
            )
        });
        return Ok((Needs::of(arguments.users.unwrap_or(USERS), role), remark));
    };
    let arguments_of =
        ScenarioArguments { file: file.clone(), set: arguments.set.clone(), seed: None };
    let program = scenario::load(&arguments_of, errors)?.program;
    let mut needs = Needs { role, ..needs(&program) };
    if needs.role == Role::Target {
        // The service gets users from anywhere; the source addresses of throng do not matter to it.
        needs.routes.clear();
        needs.sources.clear();
    }
    let mut remark = None;
    match arguments.users {
        Some(users) => needs = needs.with_users(users),
        None if program.staying_max() > 0 => {}
        None if Forecast::new(&program).pauses_say_who_is_there() => {
            let text = say!(
                "the number of concurrent users is estimated from pauses alone; a slow target \
                 keeps more users online (give --users N)"
            );
            remark = Some(text);
        }
        None => {
            let text = say!(
                "the number of concurrent users is unknown, so the number of arrivals per second \
                 is used instead (give --users N)"
            );
            remark = Some(text);
        }
    }
    Ok((needs, remark))
}
