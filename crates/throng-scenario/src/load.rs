//! The phases of a run and what each drives.

use std::collections::HashSet;
use std::time::Duration;

use throng_base::units::{format_count, write_duration};
use throng_program::{Arrivals, Drive, Iterations, Load, Phase, Scheme};

use crate::keys;
use crate::read::{Context, Fields};
use crate::syntax::{Kind, Node, Place};
use crate::words::shorten;

mod changes;
mod churn;
mod possible;
mod users;

pub use changes::LoadChanges;
pub(crate) use churn::read_parting;
pub(crate) use possible::warn_churn;

use users::reached;

const GRACEFUL_STOP: Duration = Duration::from_secs(30);

const LOAD_HELP: &str = "write `load: [{users: 100, for: 30s}]`";

/// What the load says of the whole run, for those who compile the sessions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The most users who are online at a time; None where they arrive.
    pub(crate) users_max: Option<u64>,
    /// Whether users do their steps more than once.
    pub(crate) iterates: bool,
    /// How long the run and its longest phase take, where that is known.
    pub(crate) time: Option<Duration>,
    pub(crate) longest_phase: Option<Duration>,
    /// A mistake keeps it from being known.
    pub(crate) broken: bool,
    /// What a command has changed of the load that the scenario has, in words.
    pub(crate) changes: Vec<String>,
    /// Of each phase.
    spans: Vec<Span>,
    /// Where a phase, by its index, says how often users fall out.
    churns: Vec<(usize, Place)>,
}

/// A phase as it is known beforehand.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The most users who stay.
    users_max: u64,
    time: Option<Duration>,
}

impl Facts {
    /// Of one user who does everything once.
    pub(crate) fn of_one() -> Facts {
        Facts {
            users_max: Some(1),
            iterates: false,
            time: None,
            longest_phase: None,
            broken: false,
            changes: Vec::new(),
            spans: Vec::new(),
            churns: Vec::new(),
        }
    }

    pub(crate) fn new(load: &Load, broken: bool) -> Facts {
        let mut users: u64 = 0;
        let mut facts = Facts { users_max: Some(0), broken, ..Facts::default() };
        let mut times = Some(Vec::new());
        for phase in &load.phases {
            let before = users;
            match &phase.drive {
                Drive::Hold => {}
                Drive::Users(to) => users = reached(before, *to, phase.time),
                Drive::Iterations(iterations) => users = iterations.users,
                Drive::Arrivals(_) => facts.users_max = None,
            }
            facts.iterates |= users > 0 && !matches!(phase.drive, Drive::Arrivals(_));
            facts.users_max = facts.users_max.map(|most| most.max(users).max(before));
            let time = phase.time.or(match &phase.drive {
                Drive::Users(users) => Some(users::time_of(before, *users)),
                _ => None,
            });
            let users_max = match &phase.drive {
                Drive::Arrivals(_) => 0,
                _ => before.max(users),
            };
            facts.spans.push(Span { users_max, time });
            times = times.zip(time).map(|(mut times, time)| {
                times.push(time);
                times
            });
        }
        if broken {
            return Facts { users_max: None, ..facts };
        }
        facts.longest_phase = times.as_ref().and_then(|times| times.iter().max().copied());
        let add = |sum: Duration, time: &Duration| sum.saturating_add(*time);
        facts.time = times.map(|times| times.iter().fold(Duration::ZERO, add));
        facts
    }
}

/// What a scenario says of its load beside the phases.
pub(crate) struct Beside<'a> {
    pub(crate) graceful_stop: Option<&'a Node>,
    pub(crate) precision: Option<&'a Node>,
}

pub(crate) fn read_load(
    cx: &mut Context<'_>,
    node: Option<&Node>,
    beside: &Beside<'_>,
    scheme: Option<Scheme>,
    changes: LoadChanges,
) -> (Load, Facts) {
    let failed = cx.errors();
    let mut churns = Vec::new();
    let mut load = read_phases(cx, node, beside, scheme, &mut churns);
    let mut facts = Facts::new(&load, node.is_none() || cx.errors() > failed);
    if let Some(node) = node.filter(|_| !facts.broken && changes != LoadChanges::default()) {
        let said = changes::apply(cx, changes, &mut load, &facts, node.place);
        facts = Facts { changes: said, ..Facts::new(&load, cx.errors() > failed) };
    }
    (load, Facts { churns, ..facts })
}

fn read_phases(
    cx: &mut Context<'_>,
    node: Option<&Node>,
    beside: &Beside<'_>,
    scheme: Option<Scheme>,
    churns: &mut Vec<(usize, Place)>,
) -> Load {
    let graceful_stop = beside.graceful_stop.and_then(|node| cx.duration(node));
    let precision = beside.precision.and_then(|node| read_precision(cx, node));
    let mut load = Load {
        phases: Vec::new(),
        graceful_stop: graceful_stop.unwrap_or(GRACEFUL_STOP),
        precision: precision.unwrap_or(Load::PRECISION),
    };
    let items = node.and_then(|node| cx.items(node, "a list of phases", LOAD_HELP));
    if let (Some(node), Some([])) = (node, items) {
        let error = cx.error("empty", "there is no load", node.place);
        cx.note(error.label("empty").help(LOAD_HELP));
    }
    if let (Some(node), Some(items)) = (node, items)
        && items.len() >= usize::from(u16::MAX)
    {
        let error = cx.error("too-many", "more than 65,534 phases", node.place);
        cx.note(error.label("too many").help("a ramp is one phase: `{to: 100, rate: 50/s}`"));
        return load;
    }
    let items = items.unwrap_or_default();
    let mut names = HashSet::new();
    let mut state = State { scheme, population: 0, first: true, last: false, churn: None };
    for (i, item) in items.iter().enumerate() {
        (state.first, state.last) = (i == 0, i + 1 == items.len());
        let failed = cx.errors();
        if let Some(phase) = read_phase(cx, item, i, &mut state) {
            churns.extend(state.churn.take().map(|place| (load.phases.len(), place)));
            if !names.insert(phase.name.clone()) {
                let message = format!("two phases have the name `{}`", shorten(&phase.name));
                let error = cx.error("duplicate-name", message, item.place);
                cx.note(error.label("the second one").help("give it a name of its own"));
            }
            load.phases.push(phase);
        }
        // How many a phase would bring whose numbers are wrong nobody knows: later ones are not
        // wrong for it.
        if cx.errors() > failed && brings_users(item) {
            state.population = state.population.max(1);
        }
    }
    if load.phases.len() == items.len()
        && let Some(first) =
            items.first().filter(|_| load.phases.iter().all(|phase| !phase.measured))
    {
        let warning = cx
            .warning("nothing-measured", "no phase is measured", first.place)
            .label("`measured: false`")
            .help("the summary and the thresholds will be empty: leave it out in one phase");
        cx.note(warning);
    }
    if let Some(place) = beside.precision.or(node).map(|node| node.place) {
        warn_of_bursts(cx, &load, place);
    }
    load
}

/// From this many requests at the same moment on, a target sees a burst.
const BURST_MIN: f64 = 50.0;

/// What is due within the precision goes out together.
fn warn_of_bursts(cx: &mut Context<'_>, load: &Load, place: Place) {
    let rate = |phase: &Phase| match &phase.drive {
        Drive::Arrivals(arrivals) => arrivals.rate.max(arrivals.to),
        Drive::Iterations(iterations) => iterations.rate.unwrap_or_default(),
        Drive::Users(_) | Drive::Hold => 0.0,
    };
    let rate = load.phases.iter().map(rate).fold(0.0, f64::max);
    let together = rate * load.precision.as_secs_f64();
    if together < BURST_MIN {
        return;
    }
    let (count, precision) = (format_count(together as u64), write_duration(load.precision));
    let message = format!("up to {count} starts go out together: all that are due in {precision}");
    let finer = Duration::from_nanos((BURST_MIN / 2.0 / rate * 1e9) as u64 / 1_000 * 1_000);
    let help = format!("write `precision: {}`, or spread the load", write_duration(finer));
    let warning = cx.warning("burst", message, place);
    cx.note(warning.label("a burst for the target").help(&help));
}

/// How late what is due may be done so that wakings are shared.
fn read_precision(cx: &mut Context<'_>, node: &Node) -> Option<Duration> {
    let precision = cx.duration(node)?;
    if precision > Load::PRECISION_MAX {
        let most = write_duration(Load::PRECISION_MAX);
        // sentences
        let reason = format!("starts would be up to {} late", write_duration(precision));
        return cx.bad_value(node, &reason, &format!("write at most `{most}`, such as `1ms`"));
    }
    Some(precision)
}

fn brings_users(phase: &Node) -> bool {
    let Kind::Map(entries) = &phase.kind else { return false };
    entries.iter().any(|(key, _)| ["users", "iterations"].contains(&key.text.as_ref()))
}

/// What phases know of those before them.
struct State {
    scheme: Option<Scheme>,
    /// How many users there are before the phase, and then after it.
    population: u64,
    first: bool,
    last: bool,
    /// Where the phase says how often users fall out.
    churn: Option<Place>,
}

fn read_phase(cx: &mut Context<'_>, node: &Node, index: usize, state: &mut State) -> Option<Phase> {
    let fields = Fields::read(cx, node, &keys::PHASE)?;
    let name = match fields.get("name") {
        Some(node) => cx.text(node, "the name of a phase")?,
        None => format!("phase {}", index + 1),
    };
    let time = match fields.get("for") {
        Some(node) => Some(cx.time_limit(node)?),
        None => None,
    };
    let measured = match fields.get("measured") {
        Some(node) => cx.bool(node)?,
        None => true,
    };
    let before = state.population;
    let drive = read_drive(cx, &fields, state)?;
    if matches!(drive, Drive::Arrivals(_)) {
        state.population = 1;
    }
    let churn = match fields.get("churn") {
        Some(node) => Some(churn::read_churn(cx, &fields, node, state.scheme, &drive, before)?),
        None => None,
    };
    let (churn, place) = churn.unzip();
    state.churn = place;
    Some(Phase { name, drive, time, churn, measured })
}

fn read_drive(cx: &mut Context<'_>, fields: &Fields<'_>, state: &mut State) -> Option<Drive> {
    // `iterations` have `users` beside them; `arrivals` go with neither.
    fields.one_of(cx, &["arrivals", "iterations"]);
    if fields.get("iterations").is_none() {
        fields.one_of(cx, &["arrivals", "users"]);
    }
    let get = |name| fields.get(name);
    let drive = match (get("arrivals"), get("iterations"), get("users")) {
        (Some(arrivals), _, _) => read_arrivals(cx, fields, arrivals)?,
        (_, Some(iterations), _) => read_iterations(cx, fields, iterations, &mut state.population)?,
        (_, _, Some(users)) => {
            return users::read_users(cx, users, fields, state.last, &mut state.population);
        }
        (None, None, None) => {
            if ["users", "arrivals", "iterations"].iter().any(|name| fields.is_meant(name)) {
                return None;
            }
            fields.need(cx, "for", "a phase that drives nothing holds for a time: `{for: 10m}`")?;
            if state.population == 0 && state.first && get("churn").is_none() {
                return no_users(cx, fields.place, "there is nobody to hold yet");
            }
            Drive::Hold
        }
    };
    if let Some(key) = fields.key("at_once") {
        let error = cx.error("conflicting-keys", "`at_once` belongs to `users`", key.place);
        cx.note(error.label("no `users` come here").help("write `{users: 100, at_once: true}`"));
    }
    Some(drive)
}

fn no_users<T>(cx: &mut Context<'_>, place: Place, message: &str) -> Option<T> {
    let error = cx.error("no-users", message.to_string(), place).label("no user comes");
    cx.fail(error.help("write how many users there are: `{users: 100, for: 30s}`"))
}

fn positive_rate(cx: &mut Context<'_>, node: &Node) -> Option<f64> {
    let rate = cx.rate(node)?;
    match rate > 0.0 {
        true => Some(rate),
        false => cx.bad_value(node, "a rate of zero never gets there", "write `50/s`"),
    }
}

fn read_arrivals(cx: &mut Context<'_>, fields: &Fields<'_>, node: &Node) -> Option<Drive> {
    let (rate, to) = match &node.kind {
        Kind::Map(_) => {
            let inner = Fields::read(cx, node, &keys::ARRIVALS)?;
            let to = inner.need(cx, "to", "write `arrivals: {from: 10/s, to: 900/s}`")?;
            let from = match inner.get("from") {
                Some(node) => cx.rate(node)?,
                None => 0.0,
            };
            (from, cx.rate(to)?)
        }
        _ => cx.rate(node).map(|rate| (rate, rate))?,
    };
    fields.need(cx, "for", "say how long they come: `{arrivals: 900/s, for: 10m}`")?;
    if rate <= 0.0 && to <= 0.0 {
        return no_users(cx, node.place, "no user ever arrives");
    }
    Some(Drive::Arrivals(Arrivals { rate, to }))
}

fn read_iterations(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    node: &Node,
    population: &mut u64,
) -> Option<Drive> {
    let (total, rate) = match &node.kind {
        Kind::Map(_) => {
            let inner = Fields::read(cx, node, &keys::ITERATIONS)?;
            let total = match inner.get("total") {
                Some(node) => Some(cx.count(node)?),
                None => None,
            };
            let rate = match inner.get("rate") {
                Some(node) => Some(positive_rate(cx, node)?),
                None => None,
            };
            if total.is_none() && rate.is_none() {
                let help = "write `iterations: {total: 10_000, rate: 500/s}`";
                return inner.need(cx, "total", help).and(None);
            }
            (total, rate)
        }
        _ => match cx.text(node, "a rate or a number of iterations")?.contains('/') {
            true => (None, Some(positive_rate(cx, node)?)),
            false => (Some(cx.count(node)?), None),
        },
    };
    if total == Some(0) {
        return cx.bad_value(node, "no iterations at all", LOAD_HELP);
    }
    let users_node = fields.need(
        cx,
        "users",
        "say how many users do them: `{iterations: 500/s, users: 100, for: 30s}`",
    )?;
    let users = cx.count(users_node)?;
    if users == 0 {
        return no_users(cx, users_node.place, "0 users do no iteration");
    }
    if total.is_none() {
        fields.need(cx, "for", "say how long: `{iterations: 500/s, users: 100, for: 30s}`")?;
    }
    *population = users;
    Some(Drive::Iterations(Iterations { users, rate, total }))
}
