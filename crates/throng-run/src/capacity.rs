//! Runs a capacity search: sets the load level by level until it has found the highest load that
//! meets the thresholds.

use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::time::Duration;

use throng_base::units::format_duration;
use throng_base::{Diagnostic, Exit, Said};
use throng_engine::is_public;
use throng_load::capacity::{BASE_PART, Goals, Settings, Share};
use throng_metrics::capacity::LoadUnit;
use throng_metrics::{Comparison, Measure, Threshold};
use throng_program::{Drive, Iterations, Load, Phase, Program, Rate, Spacing};

use crate::controller::pilot::{Wanted, share};
use crate::guard::Guard;
use crate::{Conduct, Operator, SearchOptions};

/// Time beyond the budget in which a drain or a recovery may finish.
const GRACE: Duration = Duration::from_secs(300);
/// Initial rate if none is given.
const BASE_PER_S: f64 = 50.0;
/// Default number of users for `bench`, enough for a search at thousands of requests per second.
pub const USERS_MIN: u64 = 1_000;

/// Runs the program with a search instead of its load.
pub fn search(conduct: Conduct<'_>, options: &SearchOptions) -> Exit {
    let errors = conduct.operator;
    match guarded(&conduct.program, options, errors) {
        Ok(()) => searching(conduct, options, |conduct| conduct.run()),
        Err(exit) => exit,
    }
}

/// Replaces the scenario's load by one that the search can vary. Each process of a run and each
/// agent of a fleet compiles the scenario, so each calls this.
pub fn searching(
    mut conduct: Conduct<'_>,
    options: &SearchOptions,
    then: impl FnOnce(Conduct<'_>) -> Exit,
) -> Exit {
    let mut program = (*conduct.program).clone();
    match prepare(&mut program, options) {
        Ok(wanted) => {
            conduct.program = Arc::new(program);
            conduct.search = Some(wanted);
            then(conduct)
        }
        Err(told) => conduct.operator.refuse(&told, Exit::Usage),
    }
}

fn mistake(message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("capacity-unclear", message).help(help))
}

/// A search overloads the service. A public target must be in a list of allowed targets, or the
/// user must confirm it.
fn guarded(program: &Program, options: &SearchOptions, errors: &dyn Operator) -> Result<(), Exit> {
    if options.yes || !Guard::read(errors)?.lists.is_empty() {
        return Ok(());
    }
    match public_host(program) {
        None => Ok(()),
        Some(host) => {
            let message = say!(
                "`{host}` has a public address, and a search loads the service up to its limit"
            );
            let help = say!(
                "if you own the service, add --yes, or add the target to the list of allowed \
                     targets"
            );
            Err(errors.refuse(&mistake(message, help), Exit::Usage))
        }
    }
}

/// The first target with a public address. Names that do not resolve yet are checked at the start.
fn public_host(program: &Program) -> Option<String> {
    let is_open = |target: &&throng_program::Target| {
        let addresses = (target.host_alone(), target.port).to_socket_addrs();
        target.unix_socket.is_none()
            && addresses.is_ok_and(|mut all| all.any(|address| is_public(address.ip())))
    };
    program.targets.iter().find(is_open).map(|target| target.host.clone())
}

/// Prepares the load that the search varies, and its first level.
fn prepare(program: &mut Program, options: &SearchOptions) -> Result<Wanted, Box<Diagnostic>> {
    let load = varied(program, options)?;
    let (unit, drive, base) = driven(&program.loads[load], options)?;
    let base = options.from.unwrap_or(base);
    if let Some(max) = options.max.filter(|max| *max < base) {
        let message = say!("the first level ({base}) is above --max ({max})");
        return Err(mistake(message, say!("choose a lower --from, or a higher --max")));
    }
    let (shares, plain) = goals(program, load)?;
    if unit == LoadUnit::Users {
        let most = options.max.map_or(0, |max| max.ceil() as u64);
        program.users_room = most.max(program.staying_max());
    }
    let time = options.budget + options.confirm + GRACE;
    let churn = program.loads[load].phases.last().and_then(|phase| phase.churn.clone());
    let name = tell!("search");
    let phase = Phase { name, drive: at(drive, base), time: Some(time), churn, measured: true };
    program.loads[load].phases = vec![phase];
    for other in program.loads.iter_mut().enumerate().filter(|(it, _)| *it != load) {
        // Loads that run in parallel last as long as the search.
        if let Some(last) = other.1.phases.last_mut() {
            last.time = last.time.map(|_| time);
        }
    }
    (program.thresholds, program.abort_when) = (Vec::new(), Vec::new());
    program.hold_when.clear();
    let shown: Vec<Share> = shares.iter().filter_map(share).collect();
    let settings = Settings {
        goals: Goals { shares: shown, plain: plain.iter().map(|one| one.text.clone()).collect() },
        unit,
        base,
        max: options.max,
        budget_s: options.budget.as_secs_f64(),
        confirm_s: u32::try_from(options.confirm.as_secs()).unwrap_or(u32::MAX),
        overload: !options.no_overload
            && unit == LoadUnit::PerS
            && (options.overload || public_host(program).is_none()),
        seed: program.seed,
    };
    refuse_rare(&settings)?;
    let least = Duration::from_secs_f64(settings.budget_min_s().ceil());
    if options.budget < least {
        let message = say!(
            "a search needs at least {} to bracket the capacity, not {}",
            format_duration(least),
            format_duration(options.budget)
        );
        return Err(mistake(message, say!("give it more time with --budget")));
    }
    let (at_least, peak) = (options.at_least, options.peak);
    let varied = (program.loads.len() > 1).then(|| program.loads[load].name.clone());
    let options = options.clone();
    Ok(Wanted { settings, shares, plain, load, varied, at_least, peak, options })
}

/// Rejects a threshold that needs more attempts than the highest level can make within the budget.
fn refuse_rare(settings: &Settings) -> Result<(), Box<Diagnostic>> {
    let attempts = settings.goals.attempts_min();
    let most = settings.max.map(|max| max * settings.budget_s);
    if settings.unit == LoadUnit::Users || most.is_none_or(|most| attempts <= most) {
        return Ok(());
    }
    let count = throng_base::units::format_count;
    let (attempts, most) = (count(attempts as u64), count(most.unwrap_or(0.0) as u64));
    let message = say!(
        "no level can collect enough attempts: the thresholds require {attempts} attempts, but \
         --max and --budget allow only {most}"
    );
    Err(mistake(message, say!("use a lower percentile, or raise --max or --budget")))
}

/// The load to vary: the named one, or the only one.
fn varied(program: &Program, options: &SearchOptions) -> Result<usize, Box<Diagnostic>> {
    let names: Vec<&str> = program.loads.iter().map(|load| load.name.as_str()).collect();
    let named = options.vary.as_deref().filter(|name| !["rate", "users"].contains(name));
    let list = names.join(", ");
    match named {
        Some(name) => names.iter().position(|one| *one == name).ok_or_else(|| {
            let message = say!("the scenario has no load `{name}`");
            let help = match names.len() {
                1 => say!("vary `rate` or `users`"),
                _ => say!("vary `rate`, `users`, or one of its loads: {list}"),
            };
            mistake(message, help)
        }),
        None if names.len() == 1 => Ok(0),
        None => Err(mistake(
            say!("the scenario has several loads"),
            say!("choose the one to vary with --vary NAME: {list}"),
        )),
    }
}

/// The unit that the search varies, the drive of the load, and a level that is certainly low.
fn driven(load: &Load, options: &SearchOptions) -> Result<(LoadUnit, Drive, f64), Box<Diagnostic>> {
    let wants_users = options.vary.as_deref() == Some("users");
    let paced = load.phases.iter().filter_map(|phase| Some((&phase.drive, phase.drive.rate()?)));
    let fastest = paced.max_by(|one, other| one.1.peak().total_cmp(&other.1.peak()));
    if let Some((drive, rate)) = fastest.filter(|_| !wants_users) {
        return Ok((LoadUnit::PerS, drive.clone(), (rate.peak() / BASE_PART).max(1.0)));
    }
    let users = load.staying_max();
    if wants_users && users > 0 {
        let drive = load.phases.iter().find(|it| matches!(it.drive, Drive::Users(_)));
        if let Some(phase) = drive {
            let base = (users as f64 / BASE_PART).round().max(1.0);
            return Ok((LoadUnit::Users, phase.drive.clone(), base));
        }
    }
    if wants_users {
        return Err(mistake(
            say!("this load does not set a number of users, so there is none to vary"),
            say!("give it a phase with `users`, or vary its rate"),
        ));
    }
    if options.vary.as_deref() == Some("rate") || options.from.is_some() {
        let iterations = Iterations {
            users: users.max(USERS_MIN),
            rate: Some(Rate::constant(BASE_PER_S)),
            spacing: Spacing::Poisson,
            total: None,
            drops: false,
        };
        return Ok((LoadUnit::PerS, Drive::Iterations(iterations), BASE_PER_S));
    }
    Err(mistake(
        say!("this load has no rate, so it slows down when the service does (closed model)"),
        say!(
            "use `--vary rate` to start iterations at a rate instead, or `--vary users` for \
             long-lived connections"
        ),
    ))
}

/// The drive at a level.
fn at(mut drive: Drive, level: f64) -> Drive {
    if let Some(rate) = drive.rate_mut() {
        *rate = Rate::constant(level);
    }
    match &mut drive {
        Drive::Users(users) => users.to = level.round() as u64,
        Drive::Iterations(iterations) => iterations.total = None,
        Drive::Arrivals(_) | Drive::Hold => {}
    }
    drive
}

/// The thresholds of the load: shares of attempts, and all others.
fn goals(
    program: &Program,
    load: usize,
) -> Result<(Vec<Threshold>, Vec<Threshold>), Box<Diagnostic>> {
    let is_of = |it: &&Threshold| {
        it.around.is_none() && it.load.is_none_or(|number| usize::from(number) == load)
    };
    let all = program.thresholds.iter().filter(is_of);
    // Thresholds apply to the whole level.
    let all = all.map(|it| Threshold { load: None, phase: None, over_s: 0, ..it.clone() });
    let (shares, plain): (Vec<_>, Vec<_>) = all.partition(|it| share(it).is_some());
    let is_of_the_load = |it: &&Threshold| {
        matches!(it.measure, Measure::Count | Measure::Rate)
            && matches!(it.comparison, Comparison::Greater | Comparison::GreaterOrEqual)
            || it.subject.is_gauge()
    };
    if let Some(odd) = plain.iter().find(is_of_the_load) {
        let text = &odd.text;
        let message = say!("`{text}` depends on the load, so it cannot be a criterion for a level");
        let help = say!("remove it for a search; state the required load with --at-least instead");
        return Err(mistake(message, help));
    }
    if shares.is_empty() && plain.is_empty() {
        return Err(mistake(
            say!("a capacity search requires thresholds that the service must meet"),
            say!(
                "add some with `thresholds` in the scenario, or with --threshold 'http p99 < 50ms' \
                 --threshold 'errors < 1%'"
            ),
        ));
    }
    Ok((shares, plain))
}
