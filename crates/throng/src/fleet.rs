//! `throng fleet`, `agent`, `monitor`, `resume` and `collect`: machines that work together.

use throng_base::{Diagnostic, Exit};
use throng_bus::keys::Token;
use throng_run::FLEET;
use throng_run::agent::work::{self, AgentOptions, is_token};
use throng_run::fleet::{Collect, Resume, manage};
use throng_run::monitor::MonitorOptions;
use throng_terminal::{Screen, Terminal};

use crate::arguments::{CollectArguments, FleetArguments, FleetWhat, ResumeArguments};
use crate::{Ended, system, version};

pub(crate) fn fleet(arguments: &FleetArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let screen = Screen::output(arguments.no_color);
    let directory = &arguments.fleet;
    let done = match &arguments.what {
        FleetWhat::Init { address } => manage::init(directory, address, &screen),
        FleetWhat::Token { name, valid } => manage::token(directory, (name, *valid), &screen),
        FleetWhat::Serve { nats_server } => {
            manage::serve(directory, nats_server.as_deref(), &errors)
        }
        FleetWhat::Agents { json } => manage::agents(directory, *json, &screen),
        FleetWhat::Stop => manage::stop(directory, &screen),
    };
    match done {
        Ok(()) => Ok(Exit::Success),
        Err(diagnostic) => {
            errors.diagnostic(&diagnostic);
            Err(if diagnostic.code == "fleet-keys" { Exit::Usage } else { Exit::HostUnfit })
        }
    }
}

pub(crate) fn agent(options: &AgentOptions) -> Ended {
    let errors = Screen::errors(options.no_color);
    let token = token(&options.join).map_err(|told| errors.refused(&told))?;
    Ok(work::agent(options, token, &version::build(), &errors))
}

/// Removes a token on the command line from the process list, which every user of this host can
/// read. Must be called before a thread is started.
fn token(join: &str) -> Result<Token, Box<Diagnostic>> {
    if is_token(join) {
        system::hide_argument(join);
    }
    work::token(join)
}

pub(crate) fn monitor(options: MonitorOptions) -> Ended {
    let errors = Screen::errors(false);
    let token = options.join.as_deref().map(token).transpose();
    let monitored = token.and_then(|token| {
        throng_run::monitor::monitor(options, token, &errors, move |text| errors.say(text))
    });
    monitored.map_err(|told| errors.refused(&told))
}

pub(crate) fn resume(arguments: &ResumeArguments) -> Ended {
    let mut settings = arguments.output.settings();
    settings.fleet.get_or_insert_with(|| FLEET.into());
    let asked = Resume { run: arguments.run.clone(), standby: arguments.standby, settings };
    Ok(throng_run::resume(&asked, &Terminal::new(&arguments.output.shown)))
}

pub(crate) fn collect(arguments: &CollectArguments) -> Ended {
    let asked = Collect {
        directories: arguments.directories.clone(),
        run: arguments.run.clone(),
        settings: arguments.output.settings(),
    };
    Ok(throng_run::collect(&asked, &Terminal::new(&arguments.output.shown)))
}
