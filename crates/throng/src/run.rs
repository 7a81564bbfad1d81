//! `throng run`: a scenario file, or the visits of an access log (`--replay`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throng_base::{Exit, Source};
use throng_import::replay::replay;
use throng_program::Program;
use throng_run::Conduct;
use throng_run::bundle::Loaded;
use throng_scenario::{Recorded, RunOptions, read_disk, read_variable};
use throng_terminal::Screen;
use throng_terminal::Terminal;

use crate::Ended;
use crate::arguments::{LimitArguments, OutputArguments, RunArguments};
use crate::scenario::{compile_run, load_changed};

pub(crate) fn run(arguments: &RunArguments) -> Ended {
    with_run(arguments, |conduct| conduct.run())
}

/// With the run of a scenario file, or of a log.
pub(crate) fn with_run(arguments: &RunArguments, then: impl FnOnce(Conduct<'_>) -> Exit) -> Ended {
    match &arguments.replay {
        Some(log) => with_log(arguments, log, then),
        None => with_file(arguments, then),
    }
}

/// With the run of a program, what is told of it; `command` is for its record.
pub(crate) fn with_program(
    (program, recorded): (Program, Recorded),
    (output, limits): (&OutputArguments, &LimitArguments),
    command: Vec<String>,
    then: impl FnOnce(Conduct<'_>) -> Exit,
) -> Exit {
    let terminal = Terminal::new(&output.shown());
    then(Conduct {
        command,
        settings: output.settings(),
        limits: limits.limits(),
        ..Conduct::new(Arc::new(program), recorded, &terminal)
    })
}

/// The words of this command line.
pub(crate) fn command() -> Vec<String> {
    std::iter::once("throng".to_string()).chain(std::env::args().skip(1)).collect()
}

fn with_file(arguments: &RunArguments, then: impl FnOnce(Conduct<'_>) -> Exit) -> Ended {
    let given = RunOptions {
        load: arguments.load.changes(),
        labels: arguments.output.labels.clone(),
        thresholds: arguments.thresholds.clone(),
        ..RunOptions::default()
    };
    let errors = Screen::errors(arguments.output.no_color);
    let Loaded { program, recorded, .. } = load_changed(&arguments.scenario, given, errors)?;
    let given = (&arguments.output, &arguments.limits);
    Ok(with_program((program, recorded), given, std::env::args().collect(), then))
}

fn with_log(arguments: &RunArguments, log: &Path, then: impl FnOnce(Conduct<'_>) -> Exit) -> Ended {
    let errors = Screen::errors(arguments.output.no_color);
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
        labels: arguments.output.labels.clone(),
        thresholds: arguments.thresholds.clone(),
        ..RunOptions::fresh(arguments.scenario.seed)
    };
    let compiled = compile_run(&source, Vec::new(), (base, &read_variable), given, &read_disk);
    let (program, warnings, recorded) = compiled.map_err(|told| errors.refused_all(&told))?;
    errors.diagnostics(&warnings);
    let given = (&arguments.output, &arguments.limits);
    Ok(with_program((program, recorded), given, command(), then))
}
