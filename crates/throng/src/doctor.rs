//! `throng doctor`: every limit that stands between this host and so many users, and what cures it.

use throng_base::{Exit, Said};
use throng_host::Root;
use throng_host::doctor::{Host, Needs, Role, apply, examine};
use throng_load::Forecast;
use throng_plan::doctor::{as_json, page};
use throng_plan::needs::needs;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::{DoctorArguments, ScenarioArguments};
use crate::scenario;

/// Where neither a scenario nor `--users` says how many.
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

/// What is asked for, and what the person should know of how that was found.
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
        // The service has users from anywhere; where throng's come from is not its affair.
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
