//! Prepares a duel: applies the same load to two targets in alternating slices, and checks whether
//! they can be compared. The result for the second side is a [`crate::Opponent`].

use std::sync::Arc;
use std::time::Duration;

use throng_base::{Diagnostic, Said, Side, Turns};
use throng_program::{Coming, Drive, Phase, Points, Program, Rate, Target, Users};
use throng_results::compare::{Condition, Plan, SLICE_S_MIN};
use throng_scenario::Url;

use crate::Opponent;

/// Maximum duration, unless the duel is decided earlier.
const TIME: Duration = Duration::from_mins(5);
/// Each slice of a rate is two points of a curve, and each pair is kept until the end.
const TIME_MAX: Duration = Duration::from_hours(24);

/// Settings of a duel.
pub struct Terms {
    slice: Duration,
    /// A multiple of the length of a pair.
    time: Duration,
    within: f64,
    conditions: Vec<Condition>,
}

impl Terms {
    /// Alternates slices of this length until the confidence interval is `within` the share, but at
    /// most for the given time. Side B must meet the conditions.
    ///
    /// # Errors
    /// The slices or the time are too short or too long, or a condition is invalid.
    pub fn new(
        slice: Duration,
        time: Option<Duration>,
        within: f64,
        conditions: &[String],
    ) -> Result<Terms, Box<Diagnostic>> {
        let pair = slice.as_secs() * 2;
        let given = time.unwrap_or(TIME).as_secs();
        let time = Duration::from_secs(given / pair.max(1) * pair);
        if slice.subsec_nanos() > 0 || slice.as_secs() < SLICE_S_MIN {
            let message = say!("--slice must be a whole number of seconds, at least {SLICE_S_MIN}");
            return Err(mistake(
                "bad-value",
                message,
                say!("write a duration, such as `--slice 5s`"),
            ));
        }
        let most = TIME_MAX.as_secs() / 3_600;
        if time > TIME_MAX {
            let message = say!("a duel takes at most {most} hours");
            return Err(mistake("bad-value", message, say!("shorten it with --for")));
        }
        if time < slice * 4 {
            let message = say!("--for is too short: the first pair of slices is a warm-up");
            let help = say!(
                "set --for to at least ten pairs of slices, or use shorter slices with --slice"
            );
            return Err(mistake("bad-value", message, help));
        }
        let conditions = conditions.iter().map(|text| Condition::parse(text));
        let conditions = conditions.collect::<Result<Vec<_>, _>>()?;
        Ok(Terms { slice, time, within, conditions })
    }
}

fn mistake(code: &'static str, message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, message).help(help))
}

/// Replaces the only target of a scenario.
///
/// # Errors
/// The scenario has several targets, or the scheme of the URL differs from that of its target.
pub fn redirect(program: &mut Program, url: &str) -> Result<(), Box<Diagnostic>> {
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

/// Gives both sides the same load in alternating slices; `name` names each side by its first
/// target. Returns the program of side A, and side B.
///
/// # Errors
/// The programs cannot be compared, or use a feature that a duel does not support.
pub fn prepare(
    mut programs: [Program; 2],
    terms: Terms,
    name: impl FnOnce([String; 2]) -> [String; 2],
) -> Result<(Program, Opponent), Box<Diagnostic>> {
    comparable(&programs)?;
    let Terms { slice, time, within, conditions } = terms;
    let drive = driven(&programs[0])?;
    let is_paced = drive.is_paced();
    let seed = programs[0].seed;
    for (program, side) in programs.iter_mut().zip(Side::BOTH) {
        let turns = Turns { slice, seed, side };
        let load = &mut program.loads[0];
        let name = tell!("duel");
        let drive = in_turn(drive.clone(), turns, time);
        let phase = Phase { name, drive, time: Some(time), churn: None, measured: true };
        (load.phases, load.turns) = (vec![phase], Some(turns));
        (program.thresholds, program.abort_when) = (Vec::new(), Vec::new());
        program.hold_when.clear();
    }
    let sides = [&programs[0], &programs[1]]
        .map(|program| program.targets.first().map(Target::written).unwrap_or_default());
    let plan = Plan {
        sides: name(sides),
        seed,
        slice_s: slice.as_secs(),
        within,
        budget_s: time.as_secs(),
        is_paced,
        conditions,
    };
    let [a, b] = programs;
    Ok((a, Opponent { program: Arc::new(b), plan }))
}

/// Checks what must be equal on both sides, and what a duel does not support.
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

/// The highest level that the scenario sets: a rate if it has one, otherwise users.
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

/// The rate is zero in the slices of the other side; users pause in them.
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
    fn only_one_side_generates_load_at_any_time() {
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
