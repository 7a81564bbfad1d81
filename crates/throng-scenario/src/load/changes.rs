//! Changes to a load from the command line: maximum users, peak rate, total duration. The shape is
//! kept: phases keep their names, order and proportions, so loads with one phase and with many are
//! changed in the same way.

use std::time::Duration;

use clap::Args;
use throng_base::Said;
use throng_base::flags::{count, duration, in_words, rate};
use throng_base::units::{self, format_count, write_duration};
use throng_program::load::PRECISION_MAX;
use throng_program::{Amount, Coming, Drive, Load, Phase, Rate};

use super::{Facts, Span};
use crate::read::Context;
use crate::syntax::Place;

/// Changes to the load of a scenario; None keeps the scenario's value.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
#[command(next_help_heading = "Load overrides for this run")]
pub struct LoadChanges {
    /// Peak number of users, instead of the scenario's; all phases are scaled in proportion
    #[arg(short = 'u', long, visible_alias = "vus", value_name = "N", value_parser = count)]
    pub users: Option<u64>,
    /// Total duration of the load; all phases are scaled in proportion
    #[arg(
        short = 'd',
        long = "for",
        visible_alias = "duration",
        value_name = "DURATION",
        value_parser = duration
    )]
    pub time: Option<Duration>,
    /// Duration of the longest phase with a constant load, such as `24h`; the exit code is 1 if
    /// response times, failures, memory or descriptors grow
    #[arg(long, value_name = "DURATION", conflicts_with = "time", value_parser = duration)]
    pub soak: Option<Duration>,
    /// Peak rate of arrivals or iterations per second; all phases are scaled in proportion
    #[arg(long, value_parser = rate)]
    pub rate: Option<f64>,
    /// Maximum delay of a start, a heartbeat or the end of a pause, so that throng can process
    /// several in one wake-up; 0 disables this
    #[arg(long, value_name = "TIME", value_parser = precision)]
    pub precision: Option<Duration>,
}

/// Parses the flag: a maximum delay, or `0`.
pub fn precision(text: &str) -> Result<Duration, String> {
    let precision = match text {
        "0" => Duration::ZERO,
        _ => units::parse_duration(text).map_err(|error| in_words(&error))?,
    };
    match precision > PRECISION_MAX {
        true => Err(tell!(
            "the maximum is 5ms: with longer delays, the generator would appear to fall behind \
             schedule"
        )),
        false => Ok(precision),
    }
}

/// Why a load cannot be changed this way, and what to write instead.
type Unfit = (Said, Said);

/// Changes the only load and the precision of the run, and describes the previous values.
pub(super) fn apply(
    cx: &mut Context<'_>,
    changes: LoadChanges,
    loads: &mut [Load],
    precision: &mut Duration,
    facts: &Facts,
    place: Place,
) -> Vec<Said> {
    let mut alone = |change: &dyn Fn(&mut Load) -> Result<Said, Unfit>| match &mut *loads {
        [load] => change(load),
        _ => Err((
            say!("there are several loads, and the option does not select one"),
            say!(
                "write `${{vars.users}}` in the load that you want to change, and add `--set \
                 users=50`"
            ),
        )),
    };
    let done = [
        changes.users.map(|users| ("--users", alone(&|load| change_users(load, users)))),
        changes.time.map(|time| ("--for", alone(&|load| change_time(load, time, facts)))),
        changes.soak.map(|time| ("--soak", alone(&|load| change_hold(load, time)))),
        changes.rate.map(|rate| ("--rate", alone(&|load| change_rate(load, rate)))),
        changes.precision.map(|wanted| ("--precision", Ok(change_precision(precision, wanted)))),
    ];
    let mut said = Vec::new();
    for (flag, done) in done.into_iter().flatten() {
        match done {
            Ok(sentence) => said.push(sentence),
            Err((reason, help)) => {
                let message = say!("`{flag}` has no effect: {reason}");
                cx.report("flag-without-effect", place, message, say!("this load"), help);
            }
        }
    }
    said
}

fn change_users(load: &mut Load, users: u64) -> Result<Said, Unfit> {
    let before = load.staying_max();
    if before == 0 {
        return Err((
            say!("the arrival rate determines the number of users"),
            say!("give --rate, or write `{{users: 100, for: 30s}}`"),
        ));
    }
    let factor = users as f64 / before as f64;
    // A small part of a few users is still one user.
    let scaled = |count: u64| match count {
        0 => 0,
        count if count == before => users,
        count => ((count as f64 * factor).round() as u64).max(1),
    };
    for phase in &mut load.phases {
        match &mut phase.drive {
            Drive::Users(drive) => {
                drive.to = scaled(drive.to);
                match &mut drive.coming {
                    Coming::Rate(rate) => *rate *= factor,
                    Coming::Steps { size, .. } => *size = scaled(*size),
                    Coming::AtOnce => {}
                }
            }
            Drive::Iterations(drive) => drive.users = scaled(drive.users),
            Drive::Arrivals(_) | Drive::Hold => {}
        }
        if let Some(Amount::Rate(rate)) = phase.churn.as_mut().map(|churn| &mut churn.amount) {
            *rate *= factor;
        }
    }
    let (now, before) = (format_count(users), format_count(before));
    Ok(say!("--users: at most {now} users instead of {before}"))
}

fn change_rate(load: &mut Load, rate: f64) -> Result<Said, Unfit> {
    let mut rates: Vec<&mut Rate> =
        load.phases.iter_mut().filter_map(|phase| phase.drive.rate_mut()).collect();
    let before = rates.iter().map(|rate| rate.peak()).fold(0.0, f64::max);
    if before <= 0.0 {
        return Err((
            say!(
                "the load has no rate: its users start each iteration as soon as the previous \
                 one ends"
            ),
            say!(
                "write `{{iterations: 50/s, users: 100, for: 30s}}`, or `{{arrivals: 50/s, for: 30s}}`"
            ),
        ));
    }
    rates.iter_mut().for_each(|own| **own = own.scaled(before, rate));
    Ok(say!("--rate: at most {} instead of {}", per_second(rate), per_second(before)))
}

fn change_precision(precision: &mut Duration, wanted: Duration) -> Said {
    let before = std::mem::replace(precision, wanted);
    let (now, before) = (write_duration(wanted), write_duration(before));
    say!("--precision: {now} instead of {before}")
}

fn per_second(rate: f64) -> String {
    format!("{}/s", (rate * 1000.0).round() / 1000.0)
}

fn change_time(load: &mut Load, time: Duration, facts: &Facts) -> Result<Said, Unfit> {
    let now = write_duration(time);
    let Some(before) = facts.time.filter(|before| !before.is_zero()) else {
        if let [phase] = load.phases.as_mut_slice() {
            phase.time = Some(time);
            return Ok(say!("--for: at most {now}"));
        }
        return Err((
            say!("the duration of a phase without `for` is not known in advance"),
            say!("give each phase a duration: `{{iterations: 1000, users: 100, for: 30s}}`"),
        ));
    };
    let factor = time.as_secs_f64() / before.as_secs_f64();
    let scaled = |time: Duration| {
        let nanos = (time.as_nanos() as f64 * factor).round().max(1.0);
        Duration::from_nanos(nanos as u64)
    };
    for (phase, Span { time, .. }) in load.phases.iter_mut().zip(&facts.spans) {
        // A ramp that ends with its last user still does: its own steps are changed below.
        if phase.time.is_some() {
            phase.time = time.map(scaled);
        }
        if let Some(rate) = phase.drive.rate_mut() {
            *rate = rate.stretched(factor);
        }
        if let Drive::Users(users) = &mut phase.drive {
            match &mut users.coming {
                Coming::Rate(rate) => *rate /= factor,
                Coming::Steps { every, .. } => *every = scaled(*every),
                Coming::AtOnce => {}
            }
        }
    }
    Ok(say!("--for: {now} in total instead of {}", write_duration(before)))
}

/// Sets the duration of the longest phase with a constant load; other phases stay unchanged.
fn change_hold(load: &mut Load, time: Duration) -> Result<Said, Unfit> {
    let keeps = |phase: &&mut Phase| {
        phase.measured
            && phase.time.is_some()
            && match &phase.drive {
                Drive::Users(drive) => matches!(drive.coming, Coming::AtOnce),
                Drive::Arrivals(_) | Drive::Iterations(_) | Drive::Hold => true,
            }
    };
    let longest = load.phases.iter_mut().filter(keeps).max_by_key(|phase| phase.time);
    let Some(phase) = longest else {
        return Err((
            say!("no phase has a constant load for a fixed duration"),
            say!("add one: `{{users: 100, for: 10m}}`"),
        ));
    };
    let before = phase.time.replace(time).unwrap_or_default();
    let (now, before) = (write_duration(time), write_duration(before));
    Ok(say!("--soak: `{}` takes {now} instead of {before}", (phase.name.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::compile_changed;

    fn changed(load: &str, changes: LoadChanges) -> (Load, Vec<Said>) {
        let program = compile_changed(&scenario(load), changes).expect("a good scenario");
        (program.loads[0].clone(), program.changes)
    }

    fn scenario(load: &str) -> String {
        format!("target: http://a\nsessions: {{a: {{steps: [{{http: GET /}}]}}}}\nload: {load}\n")
    }

    /// The result is the same as if the scenario contained the change.
    #[track_caller]
    fn same(load: &str, changes: LoadChanges, as_if: &str) -> Vec<Said> {
        let (got, said) = changed(load, changes);
        assert_eq!(got, changed(as_if, LoadChanges::default()).0);
        said
    }

    const NONE: LoadChanges =
        LoadChanges { users: None, time: None, soak: None, rate: None, precision: None };

    fn users(users: u64) -> LoadChanges {
        LoadChanges { users: Some(users), ..NONE }
    }

    fn time(seconds: u64) -> LoadChanges {
        LoadChanges { time: Some(Duration::from_secs(seconds)), ..NONE }
    }

    #[test]
    fn a_soak_sets_the_duration_of_the_longest_hold() {
        let soak = LoadChanges { soak: Some(Duration::from_secs(3_600)), ..NONE };
        let three = "[{users: {to: 10, rate: 1/s}}, {users: 10, for: 20s}, {users: 10, for: 40s}]";
        let (load, said) = changed(three, soak);
        let times: Vec<Option<u64>> =
            load.phases.iter().map(|phase| phase.time.map(|time| time.as_secs())).collect();
        assert_eq!(times.last(), Some(&Some(3_600)), "{times:?}");
        assert!(times.contains(&Some(20)) && said.len() == 1, "{times:?} {said:?}");
    }

    fn rate(rate: f64) -> LoadChanges {
        LoadChanges { rate: Some(rate), ..NONE }
    }

    #[test]
    fn a_single_phase_takes_the_values_of_the_command() {
        let both = LoadChanges { time: Some(Duration::from_secs(10)), ..users(5) };
        let said = same("[{users: 100, for: 1m}]", both, "[{users: 5, for: 10s}]");
        assert_eq!(
            said,
            ["--users: at most 5 users instead of 100", "--for: 10s in total instead of 1m"]
        );
        let said = same("[{arrivals: 900/s, for: 1m}]", rate(30.0), "[{arrivals: 30/s, for: 1m}]");
        assert_eq!(said, ["--rate: at most 30/s instead of 900/s"]);
        same(
            "[{iterations: 500/s, users: 200, for: 1m}]",
            LoadChanges { rate: Some(5.0), ..users(2) },
            "[{iterations: 5/s, users: 2, for: 1m}]",
        );
        same("[{iterations: 50, users: 2}]", time(9), "[{iterations: 50, users: 2, for: 9s}]");
    }

    #[test]
    fn many_phases_keep_their_shape() {
        let load = "[{name: up, users: {to: 100, rate: 10/s}}, {name: stay, for: 80s}, \
                    {name: more, users: {to: 400, step: 100, every: 10s}, for: 70s}, \
                    {name: down, users: {to: 0, rate: 10/s}}]";
        // 10 s, 80 s, 70 s, 40 s.
        let as_if = "[{name: up, users: {to: 10, rate: 1/s}}, {name: stay, for: 80s}, \
                     {name: more, users: {to: 40, step: 10, every: 10s}, for: 70s}, \
                     {name: down, users: {to: 0, rate: 1/s}}]";
        same(load, users(40), as_if);
        let as_if = "[{name: up, users: {to: 100, rate: 100/s}}, {name: stay, for: 8s}, \
                     {name: more, users: {to: 400, step: 100, every: 1s}, for: 7s}, \
                     {name: down, users: {to: 0, rate: 100/s}}]";
        assert_eq!(same(load, time(20), as_if), ["--for: 20s in total instead of 200s"]);
        same(
            "[{arrivals: {from: 10/s, to: 100/s}, for: 5s}, {arrivals: 100/s, for: 5s}]",
            rate(10.0),
            "[{arrivals: {from: 1/s, to: 10/s}, for: 5s}, {arrivals: 10/s, for: 5s}]",
        );
        let few = "[{users: 3, for: 1s}, {users: 1000, for: 1s}]";
        same(few, users(10), "[{users: 1, for: 1s}, {users: 10, for: 1s}]");
    }

    #[test]
    fn a_change_that_does_not_fit_the_load_is_refused_with_advice() {
        for (load, changes, said) in [
            ("[{arrivals: 5/s, for: 1m}]", users(5), "`--users` has no effect"),
            ("[{users: 5, for: 1m}]", rate(5.0), "`--rate` has no effect"),
            ("[{iterations: 5, users: 1}, {users: 2, for: 1s}]", time(5), "`--for` has no effect"),
        ] {
            let errors = compile_changed(&scenario(load), changes).unwrap_err();
            let text = errors[0].render(false);
            assert!(text.contains(said) && text.contains("help: "), "{text}");
            assert_eq!(errors[0].code, "flag-without-effect");
        }
    }
}
