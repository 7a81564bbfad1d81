//! `throng try`: a scenario with one user or a few, step by step.

use std::io::{BufRead, BufReader, stdin};

use throng_run::attempt::{Attempt, attempt as tried};
use throng_terminal::Screen;
use throng_terminal::screen::StandardOutput;

use crate::Ended;
use crate::arguments::TryArguments;
use crate::scenario;

pub(crate) fn attempt(arguments: &TryArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let loaded = scenario::load(&arguments.scenario, errors)?;
    let input = || Box::new(BufReader::new(stdin())) as Box<dyn BufRead + Send>;
    let wanted = Attempt {
        session: arguments.session.clone(),
        users: arguments.users,
        pause: arguments.pause,
        full: arguments.full,
        show_secrets: arguments.show_secrets,
        input: arguments.step.then(input),
        style: Screen::output(arguments.no_color).style,
    };
    Ok(tried(&loaded.program, wanted, &mut StandardOutput, &errors))
}
