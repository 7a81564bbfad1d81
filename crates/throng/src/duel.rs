//! `throng duel`: the same load on two targets in turn, slice by slice, and how they differ.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throng_base::clean::without_mark;
use throng_base::{Diagnostic, Exit, Said, Side, Source, Turns, plain};
use throng_program::{Coming, Drive, Phase, Points, Program, Rate, Users};
use throng_results::compare::{Condition, Plan, SLICE_S_MIN};
use throng_run::{Conduct, Opponent};
use throng_scenario::{
    Recorded, RunOptions, SOURCE_BYTES_MAX, Url, read_disk, read_variable, whole,
};
use throng_terminal::Screen;

use crate::arguments::DuelArguments;
use crate::bench;
use crate::run::{command, with_program};
use crate::scenario::{assignments, compile_run};

/// How long it goes on if it is not decided earlier.
const TIME: Duration = Duration::from_mins(5);
/// Each slice of a rate is two points of a curve, and each pair is kept until the end.
const TIME_MAX: Duration = Duration::from_hours(24);

/// `throng duel`.
pub(crate) fn duel(arguments: &DuelArguments) -> Exit {
    let errors = Screen::errors(arguments.bench.output.no_color);
    let refused = |told: &Diagnostic| {
        errors.diagnostic(told);
        errors.say(say!("nothing was sent"));
        Exit::Usage
    };
    if let Err(told) = fitting(arguments) {
        return refused(&told);
    }
    let sides = match &arguments.other {
        Some(other) => of_urls(arguments, other, errors),
        None => of_scenario(arguments, errors),
    };
    let (mut programs, recorded) = match sides {
        Ok(sides) => sides,
        Err(exit) => return exit,
    };
    match prepare(&mut programs, arguments) {
        Ok(plan) => fight(programs, recorded, plan, arguments),
        Err(told) => refused(&told),
    }
}

fn fight([a, b]: [Program; 2], recorded: Recorded, plan: Plan, arguments: &DuelArguments) -> Exit {
    let given = (&arguments.bench.output, &arguments.bench.limits);
    let duel = Some(Opponent { program: Arc::new(b), plan });
    with_program((a, recorded), given, command(), |conduct| Conduct { duel, ..conduct }.run())
}

fn mistake(code: &'static str, message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, message).help(help))
}

/// Flags of `bench` that a duel has no use for.
fn fitting(arguments: &DuelArguments) -> Result<(), Box<Diagnostic>> {
    let (bench, output) = (&arguments.bench, &arguments.bench.output);
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
    if arguments.slice.subsec_nanos() > 0 || arguments.slice.as_secs() < SLICE_S_MIN {
        let message = say!("--slice must be a whole number of seconds, at least {SLICE_S_MIN}");
        return Err(mistake("bad-value", message, say!("write a duration, such as `--slice 5s`")));
    }
    let most = TIME_MAX.as_secs() / 3_600;
    if time(arguments) > TIME_MAX {
        let message = say!("a duel takes at most {most} hours");
        return Err(mistake("bad-value", message, say!("shorten it with --for")));
    }
    if time(arguments) < arguments.slice * 4 {
        let message = say!("--for is too short: the first pair of slices is a warm-up");
        let help =
            say!("set --for to at least ten pairs of slices, or use shorter slices with --slice");
        return Err(mistake("bad-value", message, help));
    }
    Ok(())
}

fn time(arguments: &DuelArguments) -> Duration {
    let pair = arguments.slice.as_secs() * 2;
    // Whole pairs.
    let given = arguments.bench.duration.unwrap_or(TIME).as_secs();
    Duration::from_secs(given / pair.max(1) * pair)
}

type Sides = ([Program; 2], Recorded);

/// Two URLs, as those of `bench`.
fn of_urls(arguments: &DuelArguments, other: &str, errors: Screen) -> Result<Sides, Exit> {
    let (mut a, recorded) =
        bench::compiled(&arguments.bench, arguments.bench.url.as_deref(), errors)?;
    let (mut b, _) = bench::compiled(&arguments.bench, Some(other), errors)?;
    (b.seed, b.run_id) = (a.seed, a.run_id.clone());
    a.name = tell!("duel");
    Ok(([a, b], recorded))
}

/// One scenario, whose target or variables differ.
fn of_scenario(arguments: &DuelArguments, errors: Screen) -> Result<Sides, Exit> {
    let refused = |told: &Diagnostic| {
        errors.diagnostic(told);
        Exit::Usage
    };
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
        return Err(refused(&mistake("duel-unclear", message, help)));
    }
    let path = Path::new(file);
    let text = plain::read_given_text(path, SOURCE_BYTES_MAX).map_err(|error| {
        let error = Said::of_error(&error);
        let message = say!("cannot read the scenario {}: {error}", path.display());
        let help = say!("give the path of a scenario file, or two URLs");
        refused(&mistake("file-unreadable", message, help))
    })?;
    let source = Source::new(path.display().to_string(), without_mark(&text));
    let base = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let run = RunOptions::fresh(arguments.bench.seed);
    let labels = arguments.bench.output.labels.clone();
    let of = |own: &[String], target: Option<&String>, base: PathBuf, run: RunOptions| {
        let set = assignments(&[&arguments.set[..], own].concat(), errors)?;
        match compile_run(&source, set, (base, &read_variable), run, &read_disk) {
            Ok((mut program, warnings, recorded)) => {
                if let Some(url) = target {
                    redirect(&mut program, url).map_err(|told| refused(&told))?;
                }
                Ok((program, warnings, recorded))
            }
            Err(diagnostics) => {
                errors.diagnostics(&diagnostics);
                Err(Exit::Usage)
            }
        }
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

/// The only target of a scenario is another.
fn redirect(program: &mut Program, url: &str) -> Result<(), Box<Diagnostic>> {
    let help = say!("write it as in the scenario: `--target http://127.0.0.1:8080`");
    let [target] = program.targets.as_mut_slice() else {
        let message = say!("--target requires a scenario with one target");
        let help = say!("use a variable in its targets, and set it with --a and --b");
        return Err(mistake("duel-unclear", message, help));
    };
    let parsed = Url::parse(url);
    let parsed = parsed
        .map_err(|_| mistake("duel-unclear", say!("`{url}` is not a valid URL"), help.clone()))?;
    if !matches!(parsed.path.as_str(), "" | "/") {
        let message = say!("`{url}` has a path; paths come from the scenario");
        return Err(mistake("duel-unclear", message, help));
    }
    if parsed.scheme != target.scheme {
        let message =
            say!("the scheme of `{url}` differs from the scenario's (`{}`)", target.scheme.word());
        return Err(mistake("duel-unclear", message, help));
    }
    (target.host, target.port) = (parsed.host, parsed.port);
    target.unix_socket = None;
    Ok(())
}

/// Gives both sides the same load in their own slices.
fn prepare(
    programs: &mut [Program; 2],
    arguments: &DuelArguments,
) -> Result<Plan, Box<Diagnostic>> {
    comparable(programs)?;
    let conditions = arguments.conditions.iter().map(|text| Condition::parse(text));
    let conditions = conditions.collect::<Result<Vec<_>, _>>()?;
    let time = time(arguments);
    let drive = driven(&programs[0])?;
    let is_paced = drive.is_paced();
    let seed = programs[0].seed;
    for (program, side) in programs.iter_mut().zip(Side::BOTH) {
        let turns = Turns { slice: arguments.slice, seed, side };
        let load = &mut program.loads[0];
        let name = tell!("duel");
        let drive = in_turn(drive.clone(), turns, time);
        let phase = Phase { name, drive, time: Some(time), churn: None, measured: true };
        (load.phases, load.turns) = (vec![phase], Some(turns));
        (program.thresholds, program.abort_when) = (Vec::new(), Vec::new());
        program.hold_when.clear();
    }
    let [a, b] = [&programs[0], &programs[1]].map(|program| {
        let first = program.targets.first().map(throng_program::Target::written);
        first.unwrap_or_default()
    });
    Ok(Plan {
        sides: named(arguments, [a, b]),
        seed,
        slice_s: arguments.slice.as_secs(),
        within: arguments.within,
        budget_s: time.as_secs(),
        is_paced,
        conditions,
    })
}

/// URLs as they were written, or the targets with the variables that differ.
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

/// What both sides must have alike, and what a duel cannot do.
fn comparable(programs: &[Program; 2]) -> Result<(), Box<Diagnostic>> {
    let [a, b] = programs;
    let alone = say!("remove it from the scenario of the duel");
    let has = [
        ("setup", a.setup.is_some()),
        ("teardown", a.teardown.is_some()),
        ("events", !a.events.is_empty()),
        ("loads", a.loads.len() > 1),
    ];
    if let Some((key, _)) = has.into_iter().find(|(_, given)| *given) {
        let message = say!("a duel cannot run a scenario with `{key}`");
        return Err(mistake("duel-unclear", message, alone));
    }
    let kinds = |program: &Program| program.steps.iter().map(|it| it.kind).collect::<Vec<_>>();
    match kinds(a) == kinds(b) {
        true => Ok(()),
        false => {
            let message = say!("side A and side B do not have the same steps");
            let help =
                say!("give both sides the same scheme, and variables that do not change the steps");
            Err(mistake("duel-unclear", message, help))
        }
    }
}

/// What the scenario drives, at its highest level: a rate if it has one, or users.
fn driven(program: &Program) -> Result<Drive, Box<Diagnostic>> {
    let load = &program.loads[0];
    let paced = load.phases.iter().filter_map(|phase| Some((&phase.drive, phase.drive.rate()?)));
    let fastest = paced.max_by(|one, other| one.1.peak().total_cmp(&other.1.peak()));
    if let Some((drive, rate)) = fastest {
        let (mut drive, peak) = (drive.clone(), rate.peak());
        drive.rate_mut().into_iter().for_each(|rate| *rate = Rate::constant(peak));
        if let Drive::Iterations(iterations) = &mut drive {
            iterations.total = None;
        }
        return Ok(drive);
    }
    match load.staying_max() {
        0 => {
            let message = say!("the scenario has no users and no rate");
            Err(mistake("duel-unclear", message, say!("give its load `users` or a rate")))
        }
        to => Ok(Drive::Users(Users { to, coming: Coming::AtOnce })),
    }
}

/// A rate is zero in the slices of the other side; users rest there by themselves.
fn in_turn(mut drive: Drive, turns: Turns, time: Duration) -> Drive {
    if let Some(rate) = drive.rate_mut() {
        let peak = rate.peak();
        let slices = time.as_secs() / turns.slice.as_secs();
        let points = (0..slices as u32).flat_map(|slice| {
            let rate = if turns.works_in(u64::from(slice)) { peak } else { 0.0 };
            [(turns.slice * slice, rate), (turns.slice * (slice + 1), rate)]
        });
        *rate = Rate::Points(Points::new(points));
    }
    drive
}

#[cfg(test)]
mod tests {
    use throng_program::Iterations;

    use super::*;

    #[test]
    fn a_rate_is_that_of_one_side_at_any_time() {
        let time = Duration::from_secs(40);
        let slice = Duration::from_secs(5);
        let rates = Side::BOTH.map(|side| {
            let turns = Turns { slice, seed: 3, side };
            let drive = Drive::Iterations(Iterations::new(5, Some(100.0), None));
            match in_turn(drive, turns, time).rate() {
                Some(rate @ Rate::Points(_)) => rate.clone(),
                other => panic!("{other:?}"),
            }
        });
        for slice in 0..8u64 {
            let [from, to] = [slice, slice + 1].map(|it| Duration::from_secs(5 * it));
            let begun = rates.each_ref().map(|rate| rate.until(to) - rate.until(from));
            let works = Side::of_slice(3, slice) as usize;
            assert_eq!((begun[works].round(), begun[1 - works].round()), (500.0, 0.0), "{slice}");
        }
    }
}
