//! `throng control`: sends a command to a run in progress, over the socket in its directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_base::clean::clean;
use throng_base::{Diagnostic, Exit, Said, units};
use throng_program::Change;
use throng_results::Run;
use throng_results::directory::RECORDS;
use throng_run::control::command::{Answer, Command, LoadStatus, Request, SOCKET, VERSION};
use throng_run::control::socket::ask;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::{ControlArguments, What};

pub(crate) fn control(arguments: &ControlArguments) -> Ended {
    let screen = Screen::output(false);
    let request = Request {
        version: VERSION,
        command: command(&arguments.what),
        load: arguments.load.clone(),
    };
    let errors = Screen::errors(false);
    let answer = find(arguments.run.as_deref()).and_then(|directory| ask(&directory, &request));
    let answer = answer.map_err(|told| errors.refused(&told))?;
    if let Answer::Refused { message, help } = answer {
        return Err(errors.refused(&Diagnostic::error("control-refused", message).help(help)));
    }
    match (&answer, arguments.json) {
        (answer, true) => screen.json(&serde_json::to_value(answer).unwrap_or_default()),
        (Answer::Status(loads), false) => loads.iter().for_each(|it| show(it, screen)),
        (Answer::Done(said) | Answer::Refused { message: said, .. }, false) => {
            screen.say(said.clone());
        }
    }
    Ok(Exit::Success)
}

fn command(what: &What) -> Command {
    match what {
        What::Status => Command::Status,
        What::More { share } => Command::Change(Change::Times(1.0 + share)),
        What::Less { share } => Command::Change(Change::Times(1.0 / (1.0 + share))),
        What::Users { count } => Command::Change(Change::Users(*count)),
        What::Rate { rate } => Command::Change(Change::Rate(*rate)),
        What::Pause => Command::Pause,
        What::GoOn => Command::GoOn,
        What::EndPhase => Command::Change(Change::EndPhase),
        What::Mark { name } => Command::Mark(name.clone()),
        What::Stop => Command::Stop,
        What::Abort => Command::Abort,
    }
}

fn show(status: &LoadStatus, screen: Screen) {
    let elapsed = units::format_duration(Duration::from_nanos(status.elapsed_ns));
    let mut line = match status.load.as_str() {
        "" => format!("[{elapsed}] {}", clean(&status.phase)),
        load => format!("[{elapsed}] {} · {}", clean(load), clean(&status.phase)),
    };
    if let Some(users) = status.users {
        line += &format!(" · {}", say!("{users} users").spoken());
    }
    if let Some(rate) = status.per_second {
        line += &format!(" · {rate:.1}/s");
    }
    if status.paused {
        line += &format!(" · {}", say!("paused").spoken());
    }
    screen.line(&line);
}

/// The directory of the run, given by path or ID; by default the newest run in progress.
fn find(run: Option<&str>) -> Result<PathBuf, Box<Diagnostic>> {
    let goes_on = |run: &Run| run.directory.join(SOCKET).exists();
    let Some(named) = run else {
        return Run::newest(goes_on).map(|run| run.directory).ok_or_else(|| {
            let message = say!("no run is in progress in ./{RECORDS}");
            no_run(message)
        });
    };
    let path = Path::new(named);
    if path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let by_id = Run::newest(|run| run.info.id == named).map(|run| run.directory);
    by_id.ok_or_else(|| no_run(say!("`{named}` is neither a run directory nor a run ID")))
}

fn no_run(message: Said) -> Box<Diagnostic> {
    let help = say!(
        "give the directory of a run in progress, or change to the directory where it was started"
    );
    Box::new(Diagnostic::error("run-unreadable", message).help(help))
}
