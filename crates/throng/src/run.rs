//! `throng run`: a scenario file, or the visits of an access log (`--replay`). `capacity`: the same
//! with a search; `check` and `try`: what it would do; `rerun`: a recorded run again.

use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use throng_base::{Diagnostic, Exit, Source};
use throng_import::replay::replay;
use throng_plan::check::check as checked;
use throng_program::Program;
use throng_results::Run;
use throng_run::attempt::{Attempt, attempt as tried};
use throng_run::bundle::{self, Given, Loaded};
use throng_run::{Conduct, HostLimits, SearchOptions, capacity};
use throng_scenario::{Recorded, RunOptions, read_disk, read_variable};
use throng_terminal::screen::StandardOutput;
use throng_terminal::{Screen, Terminal};

use crate::Ended;
use crate::arguments::{
    CapacityArguments, CheckArguments, OutputArguments, RerunArguments, RunArguments, TryArguments,
};
use crate::scenario::{self, assignments, compile_run, load_changed};

pub(crate) fn run(arguments: &RunArguments) -> Ended {
    with_run(arguments, |conduct| conduct.run())
}

pub(crate) fn capacity(arguments: &CapacityArguments) -> Ended {
    with_run(&arguments.run, |conduct| capacity::search(conduct, &arguments.search))
}

pub(crate) fn check(arguments: &CheckArguments) -> Ended {
    let screen = Screen::output(arguments.no_color);
    let errors = Screen::errors(arguments.no_color);
    let given = RunOptions { load: arguments.load, ..RunOptions::default() };
    let loaded = load_changed(&arguments.scenario, given, errors)?;
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
    tried(&loaded.program, wanted, &mut StandardOutput, &errors)
}

/// Calls `then` with the run of a scenario file or a log.
pub(crate) fn with_run(arguments: &RunArguments, then: impl FnOnce(Conduct<'_>) -> Exit) -> Ended {
    match &arguments.replay {
        Some(log) => with_log(arguments, log, then),
        None => with_file(arguments, then),
    }
}

/// Calls `then` with the run of a program and its output options; `command` is recorded.
pub(crate) fn with_program(
    (program, recorded): (Program, Recorded),
    (output, limits): (&OutputArguments, &HostLimits),
    command: Vec<String>,
    then: impl FnOnce(Conduct<'_>) -> Exit,
) -> Exit {
    let terminal = Terminal::new(&output.shown);
    then(Conduct {
        command,
        settings: output.settings(),
        limits: limits.clone(),
        ..Conduct::new(Arc::new(program), recorded, &terminal)
    })
}

/// The words of this command line.
pub(crate) fn command() -> Vec<String> {
    std::iter::once("throng".to_string()).chain(std::env::args().skip(1)).collect()
}

fn with_file(arguments: &RunArguments, then: impl FnOnce(Conduct<'_>) -> Exit) -> Ended {
    let given = RunOptions {
        load: arguments.load,
        labels: arguments.output.settings.labels.clone(),
        thresholds: arguments.thresholds.clone(),
        ..RunOptions::default()
    };
    let errors = Screen::errors(arguments.output.shown.no_color);
    let Loaded { program, recorded, .. } = load_changed(&arguments.scenario, given, errors)?;
    let given = (&arguments.output, &arguments.limits);
    Ok(with_program((program, recorded), given, std::env::args().collect(), then))
}

fn with_log(arguments: &RunArguments, log: &Path, then: impl FnOnce(Conduct<'_>) -> Exit) -> Ended {
    let errors = Screen::errors(arguments.output.shown.no_color);
    let url = arguments.scenario.file.to_string_lossy();
    let replay = replay(log, &url, arguments.speed).map_err(|told| {
        errors.diagnostic(&told);
        errors.say(say!("nothing was sent"));
        Exit::Usage
    })?;
    replay.remarks.iter().for_each(|remark| errors.say(remark.clone()));
    let source = Source::new(tell!("the scenario of this replay"), replay.scenario.clone());
    let base = PathBuf::from(replay.folder());
    let given = RunOptions {
        labels: arguments.output.settings.labels.clone(),
        thresholds: arguments.thresholds.clone(),
        ..RunOptions::fresh(arguments.scenario.seed)
    };
    let compiled = compile_run(&source, Vec::new(), (base, &read_variable), given, &read_disk);
    let (program, warnings, recorded) = compiled.map_err(|told| errors.refused_all(&told))?;
    errors.diagnostics(&warnings);
    let given = (&arguments.output, &arguments.limits);
    Ok(with_program((program, recorded), given, command(), then))
}

pub(crate) fn rerun(arguments: RerunArguments) -> Ended {
    with_record(arguments, |conduct, search| match search {
        Some(options) => capacity::search(conduct, &options),
        None => conduct.run(),
    })
}

/// Calls `then` with the run that a recorded command line describes, and with the options of its
/// search.
pub(crate) fn with_record(
    mut arguments: RerunArguments,
    then: impl FnOnce(Conduct<'_>, Option<SearchOptions>) -> Exit,
) -> Ended {
    let errors = Screen::errors(arguments.output.shown.no_color);
    let run = Run::open(&arguments.run).map_err(|told| errors.refused(&told))?;
    if run.info.mode.duel {
        let message = say!("{} is a duel, which cannot be rerun", arguments.run.display());
        let help = say!("start it again with `throng duel`; `run.json` has its command and seed");
        return Err(errors.refused(&Diagnostic::error("duel-unclear", message).help(help)));
    }
    let set = assignments(&arguments.set, errors)?;
    let labels = arguments.output.settings.labels.clone();
    let given = Given { set, labels, allow_changed: arguments.allow_changed, ..Given::default() };
    let loaded = bundle::load(&run, &given, &errors)?;
    // Shards divide the users and the rows.
    let shards = usize::try_from(run.info.generator.shards).ok().filter(|shards| *shards > 0);
    arguments.output.settings.shards = arguments.output.settings.shards.or(shards);
    // A run of one share of a load keeps the share; processes of a run had all of it together.
    if let [only] = &*run.info.generator.machines
        && only.part.width < only.part.of
        && arguments.output.settings.processes.is_none()
    {
        arguments.output.settings.part.get_or_insert(only.part);
    }
    let search = run.info.sources.bundle.and_then(|bundle| bundle.search);
    let search = search.map(serde_json::from_value).transpose();
    let search = search.map_err(|error| errors.refused(&unread(&error)))?;
    let given = (&arguments.output, &arguments.limits);
    let compiled = (loaded.program, loaded.recorded);
    Ok(with_program(compiled, given, std::env::args().collect(), |conduct| {
        then(Conduct { rerun_of: Some(run.info.id), ..conduct }, search)
    }))
}

/// The options of a search were recorded by another version.
fn unread(error: &serde_json::Error) -> Diagnostic {
    let error = error.to_string();
    let message = say!("the recorded options of the search cannot be read: {error}");
    let help = say!("search again with `throng capacity` and the recorded scenario");
    Diagnostic::error("run-unreadable", message).help(help)
}
