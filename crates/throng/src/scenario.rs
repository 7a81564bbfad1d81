//! Scenario files for `run`, `check` and `try`: compiles them and reports mistakes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throng_base::{Diagnostic, Exit, Said, Source, plain};
use throng_program::Program;
use throng_run::bundle::Loaded;
use throng_scenario::{
    CompileOptions, ReadFile, ReadVariable, Recorded, RunOptions, SOURCE_BYTES_MAX, read_disk,
    read_variable, whole,
};
use throng_terminal::Screen;

use crate::arguments::ScenarioArguments;

/// Reads and compiles a file; reports mistakes.
pub(crate) fn load(arguments: &ScenarioArguments, errors: Screen) -> Result<Loaded, Exit> {
    load_changed(arguments, RunOptions::default(), errors)
}

/// The same, with changes to the load, labels and thresholds from the command line.
pub(crate) fn load_changed(
    arguments: &ScenarioArguments,
    given: RunOptions,
    errors: Screen,
) -> Result<Loaded, Exit> {
    let text = plain::read_given_text(&arguments.file, SOURCE_BYTES_MAX)
        .map_err(|error| unreadable(&arguments.file, Said::of_error(&error), errors))?;
    let set = assignments(&arguments.set, errors)?;
    let source = Source::new(arguments.file.display().to_string(), text);
    // A pipe from a shell or another program has no folder of its own.
    let folder = arguments.file.parent().filter(|_| !plain::is_given(&arguments.file));
    let base = folder.unwrap_or(Path::new("")).to_path_buf();
    let RunOptions { load, labels, thresholds, .. } = given;
    let run = RunOptions { load, labels, thresholds, ..RunOptions::fresh(arguments.seed) };
    let compiled = compile_run(&source, set, (base, &read_variable), run, &read_disk);
    let (program, warnings, mut recorded) = compiled.map_err(|told| errors.refused_all(&told))?;
    errors.diagnostics(&warnings);
    recorded.path = whole(&arguments.file);
    Ok(Loaded { program, warnings: warnings.len(), recorded })
}

/// The variables of `--set`, by name and value.
pub(crate) fn assignments(set: &[String], errors: Screen) -> Result<Vec<(String, String)>, Exit> {
    let pairs = set.iter().map(|assignment| match assignment.split_once('=') {
        Some((name, value)) => Ok((name.to_string(), value.to_string())),
        None => {
            let message = say!("`{assignment}` is not an assignment to a variable");
            let error = Diagnostic::error("bad-set", message);
            Err(errors.refused(&error.help(say!("write --set name=value"))))
        }
    });
    pairs.collect()
}

#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
fn unreadable(path: &Path, reason: Said, errors: Screen) -> Exit {
    let message = say!("cannot read the scenario {}: {reason}", path.display());
    errors.diagnostic(
        &Diagnostic::error("file-unreadable", message)
            .help(say!("give the path of a scenario file (YAML), or start with `throng init`")),
    );
    Exit::Usage
}

/// Compiles a scenario for a run, and for recording it.
pub(crate) fn compile_run(
    source: &Arc<Source>,
    set: Vec<(String, String)>,
    (base, env): (PathBuf, ReadVariable<'_>),
    run: RunOptions,
    read_file: ReadFile<'_>,
) -> Result<(Program, Vec<Diagnostic>, Recorded), Vec<Diagnostic>> {
    let options = CompileOptions { set, base, read_file, env, run };
    throng_scenario::compile_recorded(source, &options)
}
