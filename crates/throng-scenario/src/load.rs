//! The phases of a run and what each drives.

use std::collections::HashSet;
use std::time::Duration;

use throng_base::Said;
use throng_base::units::{format_count, write_duration};
use throng_program::load::{PRECISION, PRECISION_MAX};
use throng_program::{Drive, Load, Phase, Rate, Scheme};

use crate::ast;
use crate::read::Context;
use crate::syntax::{Kind, Node, Place};
use crate::words::shorten;

mod changes;
mod churn;
mod possible;
mod rate;
mod several;
mod shape;
mod users;

pub use changes::{LoadChanges, precision};
pub(crate) use churn::read_close_mode;
pub(crate) use possible::warn_churn;

const GRACEFUL_STOP: Duration = Duration::from_secs(30);

/// Phases are numbered through all loads.
const PHASES_MAX: usize = u16::MAX as usize;

const LOAD_HELP: Said = say!("write `load: [{{users: 100, for: 30s}}]`");

/// Facts about one load or all of them, for compiling sessions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Maximum number of concurrent users; None for arrivals.
    pub(crate) users_max: Option<u64>,
    /// True if users run their steps more than once.
    pub(crate) iterates: bool,
    /// Duration of the run and of its longest phase, if known.
    pub(crate) time: Option<Duration>,
    pub(crate) longest_phase: Option<Duration>,
    /// A mistake makes the facts unknown.
    pub(crate) broken: bool,
    /// Changes from the command line, in words.
    pub(crate) changes: Vec<Said>,
    /// One for each phase, by its number through all loads.
    spans: Vec<Span>,
    /// Where a phase, by its number, declares its churn.
    churns: Churns,
}

type Churns = Vec<(usize, Place)>;

/// What is known of a phase before the run.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Maximum number of users that stay.
    users_max: u64,
    time: Option<Duration>,
}

impl Facts {
    /// For a single user that runs everything once.
    pub(crate) fn of_one() -> Facts {
        Facts { users_max: Some(1), ..Facts::default() }
    }

    /// The loads together last as long as the longest, with the users of all of them.
    fn new(loads: &[Load], broken: bool) -> Facts {
        let broken = broken || loads.is_empty();
        let (mut spans, mut iterates, mut users_max) = (Vec::new(), false, Some(0_u64));
        let mut time = Some(Duration::ZERO);
        for load in loads {
            let (first, mut length) = (spans.len(), Some(Duration::ZERO));
            for (phase, planned) in load.phases.iter().zip(throng_load::plan_of(load)) {
                let arrives = matches!(phase.drive, Drive::Arrivals(_));
                iterates |= planned.users.1 > 0 && !arrives;
                users_max = users_max.filter(|_| !arrives);
                let users_max = if arrives { 0 } else { planned.users.0.max(planned.users.1) };
                spans.push(Span { users_max, time: planned.length });
                let both = length.zip(planned.length);
                length = both.map(|(sum, time)| sum.saturating_add(time));
            }
            let users = spans[first..].iter().map(|span: &Span| span.users_max).max();
            users_max = users_max.map(|sum| sum.saturating_add(users.unwrap_or(0)));
            time = time.zip(length).map(|(longest, length)| longest.max(length));
        }
        let times: Option<Vec<Duration>> = spans.iter().map(|span| span.time).collect();
        let longest_phase = times.map(|times| times.into_iter().max().unwrap_or_default());
        Facts {
            users_max: users_max.filter(|_| !broken),
            iterates,
            time: time.filter(|_| !broken),
            longest_phase: longest_phase.filter(|_| !broken),
            broken,
            spans,
            ..Facts::default()
        }
    }
}

/// The loads of a scenario, and settings common to all of them.
pub(crate) struct Loads {
    pub(crate) loads: Vec<Load>,
    pub(crate) graceful_stop: Duration,
    pub(crate) precision: Duration,
}

/// Input for reading phases, besides the state from earlier phases.
struct Stage<'a> {
    scheme: Option<Scheme>,
    precision: Duration,
    /// Where the precision is given.
    given: Option<&'a Node>,
}

/// Reads `load`, which is the only one, or `loads`.
pub(crate) fn read_loads(
    cx: &mut Context<'_>,
    fields: &ast::Scenario<'_>,
    scheme: Option<Scheme>,
    changes: LoadChanges,
) -> (Loads, Facts) {
    let failed = cx.mistakes.errors();
    let graceful_stop = fields.graceful_stop.node().and_then(|node| cx.duration(node));
    let given = fields.precision.node();
    let precision = given.and_then(|node| read_precision(cx, node)).unwrap_or(PRECISION);
    let stage = Stage { scheme, precision, given };
    let (node, read) = match ast::one_of(cx, &[fields.load, fields.loads]) {
        Some((key, node)) if fields.loads.is(key) => {
            (Some(node), several::read_loads(cx, node, &fields.sessions.content, &stage))
        }
        Some((_, node)) => {
            let mut churns = Vec::new();
            let load = Load::alone(read_phases(cx, node, &stage, &mut churns));
            (Some(node), vec![(load, churns)])
        }
        None => (
            fields.need(cx, fields.load, say!("write `load: [{{users: 100, for: 30s}}]`")),
            Vec::new(),
        ),
    };
    let (mut loads, mut churns) = (Vec::new(), Vec::new());
    let mut first = 0;
    for (load, own) in read {
        churns.extend(own.into_iter().map(|(phase, place)| (first + phase, place)));
        first += load.phases.len();
        loads.push(load);
    }
    warn_unmeasured(cx, &loads, node);
    let mut facts = Facts::new(&loads, cx.mistakes.errors() > failed);
    let mut precision = precision;
    if let Some(node) = node.filter(|_| !facts.broken && changes != LoadChanges::default()) {
        let changes = changes::apply(cx, changes, &mut loads, &mut precision, &facts, node.place);
        facts = Facts { changes, ..Facts::new(&loads, cx.mistakes.errors() > failed) };
    }
    facts.churns = churns;
    let graceful_stop = graceful_stop.unwrap_or(GRACEFUL_STOP);
    (Loads { loads, graceful_stop, precision }, facts)
}

/// Warns if no phase is measured: the summary would be empty.
fn warn_unmeasured(cx: &mut Context<'_>, loads: &[Load], node: Option<&Node>) {
    let mut phases = loads.iter().flat_map(|load| &load.phases).peekable();
    if let Some(node) = node.filter(|_| phases.peek().is_some())
        && phases.all(|phase| !phase.measured)
    {
        let place = match &node.kind {
            Kind::List(items) => items.first().map_or(node.place, |first| first.place),
            _ => node.place,
        };
        let warning = cx
            .warning("nothing-measured", say!("no phase is measured"), place)
            .label(say!("`measured: false`"))
            .help(say!(
                "the summary and the thresholds will have no data: remove `measured: false` from \
                 at least one phase"
            ));
        cx.note(warning);
    }
}

/// The phases of one load, with the places that declare churn.
fn read_phases(
    cx: &mut Context<'_>,
    node: &Node,
    stage: &Stage<'_>,
    churns: &mut Churns,
) -> Vec<Phase> {
    let mut phases = Vec::new();
    let none = say!("there are no phases");
    let items = cx.filled_list(node, say!("a list of phases"), none, LOAD_HELP);
    if items.len() >= PHASES_MAX {
        let help = say!("a ramp is one phase: `{{to: 100, rate: 50/s}}`");
        cx.report("too-many", node.place, say!("more than 65,534 phases"), say!("too many"), help);
        return phases;
    }
    let mut names = HashSet::new();
    let mut state =
        LoadState { scheme: stage.scheme, population: 0, first: true, last: false, churn: None };
    for (i, item) in items.iter().enumerate() {
        (state.first, state.last) = (i == 0, i + 1 == items.len());
        let failed = cx.mistakes.errors();
        if let Some(phase) = read_phase(cx, item, i, &mut state) {
            churns.extend(state.churn.take().map(|place| (phases.len(), place)));
            if !names.insert(phase.name.clone()) {
                let message = say!("two phases are named `{}`", shorten(&phase.name));
                let help = say!("give it a unique name");
                cx.report("duplicate-name", item.place, message, say!("the second one"), help);
            }
            phases.push(phase);
        }
        // The users of a phase with a mistake are unknown, so later phases are not checked against
        // them.
        if cx.mistakes.errors() > failed && brings_users(item) {
            state.population = state.population.max(1);
        }
    }
    let place = stage.given.unwrap_or(node).place;
    warn_of_bursts(cx, &phases, stage.precision, place);
    phases
}

/// From this many simultaneous requests on, a target sees a burst.
const BURST_MIN: f64 = 50.0;

/// Starts that are due within the precision are sent together.
fn warn_of_bursts(cx: &mut Context<'_>, phases: &[Phase], precision: Duration, place: Place) {
    let rate = |phase: &Phase| phase.drive.rate().map_or(0.0, Rate::peak);
    let rate = phases.iter().map(rate).fold(0.0, f64::max);
    let together = rate * precision.as_secs_f64();
    if together < BURST_MIN {
        return;
    }
    let (count, precision) = (format_count(together as u64), write_duration(precision));
    let message = say!(
        "up to {count} starts are combined into one burst: all that are due within \
             {precision}"
    );
    let finer = Duration::from_nanos((BURST_MIN / 2.0 / rate * 1e9) as u64 / 1_000 * 1_000);
    let help = say!("write `precision: {}`, or spread the load", write_duration(finer));
    cx.warn("burst", place, message, say!("the target receives a burst"), &help);
}

/// The maximum delay with which due work may be done, so that wake-ups are shared.
fn read_precision(cx: &mut Context<'_>, node: &Node) -> Option<Duration> {
    let precision = cx.duration(node)?;
    if precision > PRECISION_MAX {
        let most = write_duration(PRECISION_MAX);
        let reason = say!("starts would be delayed by up to {}", write_duration(precision));
        return cx.bad_value(node, reason, say!("write at most `{most}`, such as `1ms`"));
    }
    Some(precision)
}

fn brings_users(phase: &Node) -> bool {
    phase.get("users").or_else(|| phase.get("iterations")).is_some()
}

/// What a phase inherits from those before it.
struct LoadState {
    scheme: Option<Scheme>,
    /// The number of users before the phase, and then after it.
    population: u64,
    first: bool,
    last: bool,
    /// Where the phase declares its churn.
    churn: Option<Place>,
}

fn read_phase(
    cx: &mut Context<'_>,
    node: &Node,
    index: usize,
    state: &mut LoadState,
) -> Option<Phase> {
    let fields = ast::Phase::read(cx, node)?;
    let name = match fields.name.node() {
        Some(node) => cx.text(node, say!("the name of a phase"))?,
        None => format!("phase {}", index + 1),
    };
    let time = fields.r#for.node().map_or(Some(None), |node| cx.time_limit(node).map(Some))?;
    let measured = fields.measured.node().map_or(Some(true), |node| cx.bool(node))?;
    let before = state.population;
    let drive = read_drive(cx, &fields, state)?;
    if matches!(drive, Drive::Arrivals(_)) {
        state.population = 1;
    }
    // The points of a rate determine their duration.
    let time = time.or(match drive.rate() {
        Some(Rate::Points(points)) => Some(points.length()),
        _ => None,
    });
    let churn = match fields.churn.node() {
        Some(node) => Some(churn::read_churn(cx, &fields, node, state.scheme, &drive, before)?),
        None => None,
    };
    let (churn, place) = churn.unzip();
    state.churn = place;
    Some(Phase { name, drive, time, churn, measured })
}

fn read_drive(
    cx: &mut Context<'_>,
    fields: &ast::Phase<'_>,
    state: &mut LoadState,
) -> Option<Drive> {
    // `iterations` can be combined with `users`; `arrivals` with neither.
    ast::one_of(cx, &[fields.arrivals, fields.iterations]);
    if !fields.iterations.is_there() {
        ast::one_of(cx, &[fields.arrivals, fields.users]);
    }
    let (arrivals, iterations, users) = (fields.arrivals, fields.iterations, fields.users);
    let drive = match (arrivals.node(), iterations.node(), users.node()) {
        (Some(arrivals), _, _) => rate::read_arrivals(cx, fields, arrivals)?,
        (_, Some(iterations), _) => {
            rate::read_iterations(cx, fields, iterations, &mut state.population)?
        }
        (_, _, Some(users)) => {
            return users::read_users(cx, users, fields, state.last, &mut state.population);
        }
        (None, None, None) => {
            if users.is_meant() || arrivals.is_meant() || iterations.is_meant() {
                return None;
            }
            fields.need(
                cx,
                fields.r#for,
                say!(
                    "a phase without `users`, `arrivals` or `iterations` requires a duration: \
                     `{{for: 10m}}`"
                ),
            )?;
            if state.population == 0 && state.first && !fields.churn.is_there() {
                return no_users(
                    cx,
                    fields.place,
                    say!("the first phase has no users to keep running"),
                );
            }
            Drive::Hold
        }
    };
    rate::check_beside(cx, fields, &drive)?;
    if let Some(key) = fields.at_once.key() {
        let message = say!("`at_once` is valid only with `users`");
        let help = say!("write `{{users: 100, at_once: true}}`");
        cx.report("conflicting-keys", key.place, message, say!("this phase has no `users`"), help);
    }
    Some(drive)
}

fn no_users<T>(cx: &mut Context<'_>, place: Place, message: Said) -> Option<T> {
    let help = say!("write the number of users: `{{users: 100, for: 30s}}`");
    cx.refuse("no-users", place, message, say!("no users"), help)
}
