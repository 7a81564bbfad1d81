//! `throng duel`: alternates the same load between two targets, slice by slice, and compares them.

use std::path::{Path, PathBuf};

use throng_base::clean::without_mark;
use throng_base::{Diagnostic, Exit, Said, Source, plain};
use throng_program::Program;
use throng_run::Conduct;
use throng_run::duel::{Terms, prepare, redirect};
use throng_scenario::{Recorded, RunOptions, SOURCE_BYTES_MAX, read_disk, read_variable, whole};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::DuelArguments;
use crate::bench;
use crate::run::{command, with_program};
use crate::scenario::{assignments, compile_run};

/// `throng duel`.
pub(crate) fn duel(arguments: &DuelArguments) -> Ended {
    let errors = Screen::errors(arguments.bench.output.shown.no_color);
    let refused = |told: Box<Diagnostic>| {
        errors.diagnostic(&told);
        errors.say(say!("nothing was sent"));
        Exit::Usage
    };
    let DuelArguments { bench, slice, within, conditions, .. } = arguments;
    let terms = fitting(arguments);
    let terms = terms.and_then(|()| Terms::new(*slice, bench.duration, *within, conditions));
    let terms = terms.map_err(refused)?;
    let (programs, recorded) = match &arguments.other {
        Some(other) => of_urls(arguments, other, errors)?,
        None => of_scenario(arguments, errors)?,
    };
    let prepared = prepare(programs, terms, |targets| named(arguments, targets));
    let (a, opponent) = prepared.map_err(refused)?;
    let (given, duel) = ((&bench.output, &bench.limits), Some(opponent));
    Ok(with_program((a, recorded), given, command(), |conduct| Conduct { duel, ..conduct }.run()))
}

fn mistake(code: &'static str, message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, message).help(help))
}

/// Refuses flags of `bench` that a duel does not support.
fn fitting(arguments: &DuelArguments) -> Result<(), Box<Diagnostic>> {
    let (bench, output) = (&arguments.bench, &arguments.bench.output.settings);
    let flags = [
        ("--requests", bench.requests.is_some()),
        ("--hold", bench.hold.is_some()),
        ("--heartbeat", bench.heartbeat.is_some()),
        ("--warm-up", bench.warm_up.is_some()),
        ("--capacity", !bench.capacity.is_empty()),
        ("--print-scenario", bench.print_scenario),
        ("--threshold", !bench.expectation.thresholds.is_empty()),
        ("--abort-when", !bench.expectation.abort_when.is_empty()),
        ("--processes", output.processes.is_some()),
        ("--part", output.part.is_some()),
        ("--fleet", output.fleet.is_some()),
        ("--back-off", bench.limits.back_off.is_some()),
    ];
    if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
        let message = say!("{flag} does not apply to a duel");
        return Err(mistake("flag-without-effect", message, say!("omit it")));
    }
    Ok(())
}

type Sides = ([Program; 2], Recorded);

/// Two URLs, as for `bench`.
fn of_urls(arguments: &DuelArguments, other: &str, errors: Screen) -> Result<Sides, Exit> {
    let (mut a, recorded) =
        bench::compiled(&arguments.bench, arguments.bench.url.as_deref(), errors)?;
    let (mut b, _) = bench::compiled(&arguments.bench, Some(other), errors)?;
    (b.seed, b.run_id) = (a.seed, a.run_id.clone());
    a.name = tell!("duel");
    Ok(([a, b], recorded))
}

/// One scenario with different targets or variables.
fn of_scenario(arguments: &DuelArguments, errors: Screen) -> Result<Sides, Exit> {
    let file = arguments.bench.url.as_deref().unwrap_or_default();
    let differs = !arguments.set_a.is_empty() || !arguments.set_b.is_empty();
    if file.is_empty()
        || (arguments.targets.len() != 2 && !(arguments.targets.is_empty() && differs))
    {
        let message = say!("a duel needs two targets");
        let help = say!(
            "write `throng duel URL URL`, or `throng duel FILE --target URL --target URL`; \
             --a NAME=VALUE and --b NAME=VALUE set a variable of one side"
        );
        return Err(errors.refused(&mistake("duel-unclear", message, help)));
    }
    let path = Path::new(file);
    let text = plain::read_given_text(path, SOURCE_BYTES_MAX).map_err(|error| {
        let error = Said::of_error(&error);
        let message = say!("cannot read the scenario {}: {error}", path.display());
        let help = say!("give the path of a scenario file, or two URLs");
        errors.refused(&mistake("file-unreadable", message, help))
    })?;
    let source = Source::new(path.display().to_string(), without_mark(&text));
    let base = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let run = RunOptions::fresh(arguments.bench.seed);
    let labels = arguments.bench.output.settings.labels.clone();
    let of = |own: &[String], target: Option<&String>, base: PathBuf, run: RunOptions| {
        let set = assignments(&[&arguments.set[..], own].concat(), errors)?;
        let compiled = compile_run(&source, set, (base, &read_variable), run, &read_disk);
        let (mut program, warnings, recorded) =
            compiled.map_err(|told| errors.refused_all(&told))?;
        if let Some(url) = target {
            redirect(&mut program, url).map_err(|told| errors.refused(&told))?;
        }
        Ok((program, warnings, recorded))
    };
    let run = RunOptions { labels, ..run };
    let (a, warnings, mut recorded) =
        of(&arguments.set_a, arguments.targets.first(), base.clone(), run)?;
    errors.diagnostics(&warnings);
    recorded.path = whole(path);
    let again = RunOptions { id: a.run_id.clone(), seed: Some(a.seed), ..RunOptions::fresh(None) };
    let (b, ..) = of(&arguments.set_b, arguments.targets.get(1), base, again)?;
    Ok(([a, b], recorded))
}

/// URLs as written, or the targets with the variables that differ.
fn named(arguments: &DuelArguments, [a, b]: [String; 2]) -> [String; 2] {
    let url = arguments.bench.url.clone().unwrap_or_default();
    match &arguments.other {
        Some(other) => [url, other.clone()],
        None => [(a, &arguments.set_a), (b, &arguments.set_b)].map(|(target, set)| {
            let words = std::iter::once(target).chain(set.iter().cloned());
            words.collect::<Vec<_>>().join(" ")
        }),
    }
}
