//! The scenario language: YAML → located syntax → validated → [`Program`]. It does not depend on
//! the engine and prints nothing; all mistakes of a file are returned together as [`Diagnostic`]s.
//!
//! - [`compile`]: compiles a scenario file to a program.
//! - [`curl`]: reads commands as browsers copy them ("Copy as cURL").
//! - [`bench`]: writes a scenario for a command line.
//! - [`keys`]: the keys of all maps with their descriptions.
//! - [`outline`]: describes what a program will do, before anything is sent.
//! - [`protocol`]: compiles a protocol file.
//! - [`schema`]: the language as a JSON Schema, for editors.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

#[macro_use]
mod builtin;
#[macro_use]
pub mod keys;
#[macro_use]
mod ast;
mod file;
mod labels;
mod load;
mod message;
mod native;
mod network;
mod parts;
mod phrases;
mod reach;
mod read;
mod run;
mod scope;
mod step;
mod steps;
mod synonyms;
mod syntax;
mod words;
mod writer;

pub mod bench;
pub mod curl;
pub mod outline;
pub mod protocol;
pub mod quote;
pub mod schema;
pub mod url;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throng_base::ids::run_id;
use throng_base::{Diagnostic, Random, Said, Secrets, Source, StepId, random};
use throng_metrics::{AbortRule, Threshold};
use throng_program::{
    Audit, Delivery, Load, Monitor, Once, Phase, Program, Session, Statement, StepInfo, StepKind,
    TimedEvent,
};

pub use bench::{Bench, BenchBody, BenchRoute, FormContent, FormPart};
pub use file::include::INCLUDES_MAX;
pub use file::secrets::{Masked, masked_in, masked_scenario};
pub use file::vars::{Input, inputs};
use load::Loads;
pub use load::{LoadChanges, precision};
pub use message::body::{bytes_of_base64, parse_hex};
pub use message::matchers::{JsonMatcher, parse_json_expectation};
pub use network::route::{
    BenchProxy, abstract_socket_of_curl, connect_to_of_curl, proxy_of_curl, resolve_of_curl,
    unix_socket_of_curl,
};
pub use network::source::check_source;
pub use protocol::read_protocol;
pub use read::{DIAGNOSTICS_MAX, ReadFile, ReadVariable};
pub use run::recorded::{Recorded, RecordedFile, RecordedVariable, VariableState, whole};
pub use scope::FileRole;
pub use syntax::{NESTING_MAX, SOURCE_BYTES_MAX};
pub use url::Url;

use file::{data, include, secrets, vars};
use message::headers;
use network::{source, streams, target};
use parts::Parts;
use reach::Reaches;
use read::{Context, Defaults, Found, Scope};
use run::recorded::SeenInputs;
use run::{audit, deliveries, events, monitor, once, output, recorded, thresholds, trace};
use scope::SessionNames;
use step::failing::read_on_error;
use steps::Compiler;
use syntax::{Kind, Node, Place};

/// Options for compiling a scenario.
pub struct CompileOptions<'a> {
    /// Variables from the command line: name and value.
    pub set: Vec<(String, String)>,
    /// The folder that relative paths in the scenario start from.
    pub base: PathBuf,
    /// Reads a file, but at most one byte more than the limit; rows of `data` are not read with it.
    pub read_file: ReadFile<'a>,
    /// Reads an environment variable.
    pub env: ReadVariable<'a>,
    pub run: RunOptions,
}

/// Settings of the run from the command line, and values unique to the run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// `run.id`.
    pub id: String,
    /// The seed from the command line; it wins over that of the scenario.
    pub seed: Option<u64>,
    /// The seed if neither gives one.
    pub fresh_seed: u64,
    /// Changes to the load from the command line.
    pub load: LoadChanges,
    /// Labels from the command line; they win over those of the scenario.
    pub labels: Vec<(String, String)>,
    /// Thresholds from the command line, in addition to those of the scenario.
    pub thresholds: Vec<String>,
}

impl RunOptions {
    /// For a run that starts now: a new ID, and a new seed unless one is given.
    pub fn fresh(seed: Option<u64>) -> RunOptions {
        let id = run_id(&mut Random::new(random::fresh()));
        RunOptions { id, seed, fresh_seed: random::fresh_seed(), ..RunOptions::default() }
    }
}

impl CompileOptions<'static> {
    /// For a scenario that is examined but not run: reads files from disk, with paths relative to
    /// `base`, and variables from the environment of this process.
    pub fn of_process(set: Vec<(String, String)>, base: PathBuf) -> CompileOptions<'static> {
        let run = RunOptions::default();
        CompileOptions { set, base, read_file: &read_disk, env: &read_variable, run }
    }
}

/// Reads an environment variable of this process; for [`CompileOptions::env`].
pub fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads a regular file from disk; for [`CompileOptions::read_file`].
pub fn read_disk(path: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = (bytes_max as u64).saturating_add(1);
    throng_base::plain::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Compiles a scenario. Returns the program and warnings, or all mistakes; both in the order of
/// their places.
pub fn compile(
    source: &Arc<Source>,
    options: &CompileOptions<'_>,
) -> Result<(Program, Vec<Diagnostic>), Vec<Diagnostic>> {
    compile_recorded(source, options).map(|(program, diagnostics, _)| (program, diagnostics))
}

/// Like [`compile`], with the scenario as it is to be recorded; its secrets are not masked.
pub fn compile_recorded(
    source: &Arc<Source>,
    options: &CompileOptions<'_>,
) -> Result<(Program, Vec<Diagnostic>, Recorded), Vec<Diagnostic>> {
    let mut recorded = Recorded::default();
    let (mut found, mut names) = (Found::default(), SessionNames::default());
    let seen = SeenInputs::default();
    let read = |path: &Path, bytes_max: usize| seen.read(options.read_file, path, bytes_max);
    let env = |name: &str| seen.variable(options.env, name);
    let of_disk: (ReadFile<'_>, ReadVariable<'_>) = (&read, &env);
    let mut cx = Context::new((&mut found, &mut names), (source, &options.base), of_disk);
    cx.run_id.clone_from(&options.run.id);
    let program = match syntax::parse(source, 0) {
        Ok(root) => {
            let place = Place::default();
            let nothing = Kind::Scalar { text: String::new(), plain: true };
            let root = root.unwrap_or(Node { place, kind: nothing });
            let root = include::read_includes(&mut cx, root);
            let root = thresholds::with_given(&mut cx, root, &options.run.thresholds);
            secrets::collect(&mut cx, &root, &options.set);
            let program = read_scenario(&mut cx, &root, &options.set, &options.run);
            if program.is_some() {
                let given = (options.set.as_slice(), &options.run);
                let read = (&seen, &cx.secrets);
                recorded = recorded::recorded(source, &root, &cx.named_files, given, read);
            }
            program
        }
        Err(error) => {
            // Without a tree only names reveal what is secret.
            let secrets = Secrets::default();
            let span = error.span.as_ref();
            let ranges = span.map(|span| secrets.ranges(span.source.text.as_bytes()));
            ranges.into_iter().flatten().for_each(|range| {
                cx.hide(Place::new(0, range.start, range.end));
            });
            cx.fail(*error)
        }
    };
    let (diagnostics, failed) = found.finish();
    match program {
        Some(mut program) if !failed => {
            mask_names(&mut program);
            Ok((program, diagnostics, recorded))
        }
        _ => Err(diagnostics),
    }
}

/// Masks secrets in names, which every report contains.
fn mask_names(program: &mut Program) {
    let secrets = &program.secrets;
    let once = [&mut program.setup, &mut program.teardown].into_iter().flatten();
    let rows = once.flat_map(|once| &mut once.steps).chain(&mut program.steps);
    for step in rows {
        step.name = secrets.mask(&step.name).into_owned();
        mask_labels(secrets, &mut step.labels);
    }
    mask_labels(secrets, &mut program.labels);
    let rules = program.abort_when.iter_mut().chain(&mut program.hold_when);
    let conditions = rules.map(|rule| &mut rule.condition);
    for threshold in program.thresholds.iter_mut().chain(conditions) {
        threshold.text = secrets.mask(&threshold.text).into_owned();
        if let Some(around) = &mut threshold.around {
            around.mark = secrets.mask(&around.mark).into_owned();
        }
    }
    for event in &mut program.events {
        event.name = secrets.mask(&event.name).into_owned();
    }
}

fn mask_labels(secrets: &Secrets, labels: &mut labels::Labels) {
    for (name, value) in labels {
        *value = secrets.mask_value(name, value).into_owned();
    }
}

const SESSIONS_HELP: Said = say!("write `sessions: {{reader: {{steps: [{{http: GET /}}]}}}}`");

fn read_fields<'n>(cx: &mut Context<'_>, root: &'n Node) -> Option<ast::Scenario<'n>> {
    if matches!(root.kind, Kind::Scalar { .. }) {
        let help = say!("write `target: …`, `sessions: …`, `load: …`");
        return cx.wrong_type(root, say!("a scenario"), help);
    }
    ast::Scenario::read(cx, root)
}

fn read_scenario(
    cx: &mut Context<'_>,
    root: &Node,
    set: &[(String, String)],
    run: &RunOptions,
) -> Option<Program> {
    let fields = read_fields(cx, root)?;
    vars::read(cx, fields.vars.node().as_slice(), set);
    fields.data.node().into_iter().for_each(|node| data::read_data(cx, node));
    let name = fields.name.node().and_then(|node| cx.text(node, say!("the name of the scenario")));
    let labels = labels::read_run_labels(cx, fields.label.node(), &run.labels);
    let reaches = Reaches::read(cx, &fields);
    let connection = target::read_connection(cx, &fields, &reaches.targets);
    let mut limits = target::read_limits(cx, fields.limits.node());
    let defaults = read_defaults(cx, fields.defaults.node(), connection.connect_timeout);
    let cx = &mut cx.scoped(Scope { defaults: &defaults, ..cx.scope });
    let (Loads { loads, graceful_stop, precision }, facts) =
        load::read_loads(cx, &fields, reaches.asked_only(), run.load);
    let parts = Parts::of(&fields.parts);
    cx.shared_slots = deliveries::saved_names(fields.deliveries.node());
    let mut compiler = Compiler::new(&reaches, &parts, &facts);
    let (setup, setup_names) = once::read_setup(cx, &fields, &reaches, &parts);
    let cx = &mut cx.scoped(Scope { setup: &setup_names, ..cx.scope });
    let teardown = once::read_teardown(cx, &fields, &reaches, &parts);
    let sessions = fields.need(cx, *fields.sessions, SESSIONS_HELP);
    let sessions = sessions.map(|_| compiler.read_sessions(cx, &fields.sessions));
    limits.redirects_max = cx.redirects.limit.unwrap_or(limits.redirects_max);
    let read = sessions.as_deref().unwrap_or_default();
    streams::check_streams(cx, fields.connection.node(), &connection, &reaches.targets, read);
    let deliveries = read_ledger(cx, fields.deliveries.node(), &reaches, &mut compiler, read);
    let expressions = expressions_row(cx, &mut compiler, read, root.place);
    let phases: Vec<&Phase> = loads.iter().flat_map(|load| &load.phases).collect();
    load::warn_churn(cx, &phases, &facts, (read, &deliveries, &compiler.rows.steps));
    steps::warn_slow(cx, read, &deliveries, &reaches.protocols, &compiler.bodies);
    let monitors = monitor::read_monitors(cx, &fields);
    let rows = (&*compiler.rows.steps, &*monitors);
    let audits = audit::read_audits(cx, &fields, rows.0, &reaches);
    let rules = read_rules(cx, &fields, rows, (&loads, read), (&reaches, &audits));
    warn_unused(cx, (&fields, read), &parts, &reaches);
    let secures = secures(&compiler.rows.steps, [&setup, &teardown]);
    Some(Program {
        tls: target::read_tls(cx, &fields, &reaches.targets, secures),
        broken: broken_row(cx, &mut compiler, &reaches, root.place),
        name: name.unwrap_or_else(|| file_stem(&cx.source(root.place).name)),
        labels,
        rendezvous: compiler.rendezvous(),
        steps: compiler.rows.finish().0,
        targets: reaches.targets,
        expressions,
        protocols: reaches.protocols,
        schema: cx.descriptors.schema().cloned(),
        sessions: sessions?,
        setup,
        teardown,
        setup_values: Arc::default(),
        deliveries,
        loads,
        graceful_stop,
        precision,
        thresholds: rules.thresholds,
        abort_when: rules.abort_when,
        hold_when: rules.hold_when,
        events: rules.events,
        connection,
        limits,
        data: std::mem::take(&mut cx.data.sources),
        trace: fields.trace.node().and_then(|node| trace::read_trace(cx, node)),
        monitors,
        audits,
        outputs: output::read_outputs(cx, &fields),
        seed: read_seed(cx, &fields, run),
        run_id: run.id.clone(),
        users_room: 0,
        secrets: cx.secrets.clone(),
        changes: facts.changes,
    })
}

/// True if a step starts TLS on an open connection.
fn secures(rows: &[StepInfo], once: [&Option<Box<Once>>; 2]) -> bool {
    let once = once.into_iter().flatten().flat_map(|once| &once.steps);
    rows.iter().chain(once).any(|step| step.kind == StepKind::Secure)
}

/// The declared deliveries.
fn read_ledger(
    cx: &mut Context<'_>,
    ledger: Option<&Node>,
    reaches: &Reaches,
    compiler: &mut Compiler<'_, '_>,
    sessions: &[Session],
) -> Vec<Delivery> {
    let read = |node| deliveries::read_deliveries(cx, node, reaches, compiler, sessions);
    ledger.map(read).unwrap_or_default()
}

/// The seed from the command line, from the scenario, or a new one.
fn read_seed(cx: &mut Context<'_>, fields: &ast::Scenario<'_>, run: &RunOptions) -> u64 {
    let seed = fields.seed.node().and_then(|node| cx.whole(node));
    run.seed.or(seed).unwrap_or(run.fresh_seed)
}

/// The thresholds and the events of a run.
struct Rules {
    thresholds: Vec<Threshold>,
    abort_when: Vec<AbortRule>,
    hold_when: Vec<AbortRule>,
    events: Vec<TimedEvent>,
}

fn read_rules(
    cx: &mut Context<'_>,
    fields: &ast::Scenario<'_>,
    (steps, monitors): (&[StepInfo], &[Monitor]),
    (loads, sessions): (&[Load], &[Session]),
    (reaches, audits): (&Reaches, &[Audit]),
) -> Rules {
    let is_http = reaches.asked_only().is_some();
    let changes_load = fields.events.node().is_some();
    let unmeasured = thresholds::Unmeasured::of(sessions, loads, is_http && !changes_load);
    let names = thresholds::Names {
        steps,
        monitors,
        loads,
        audits,
        is_http,
        unmeasured: &unmeasured,
        complete: !cx.mistakes.has_errors(),
        events: &[],
    };
    let events = events::read_events(cx, fields, &names);
    audit::check_done(cx, fields, audits, &events);
    let names = thresholds::Names { events: &events, ..names };
    let thresholds = fields.thresholds.node();
    let thresholds = thresholds.map(|node| thresholds::read_thresholds(cx, node, &names));
    let [abort_when, hold_when] = [fields.abort_when.node(), fields.hold_when.node()]
        .map(|node| node.map(|node| thresholds::read_abort_rules(cx, node, &names)));
    Rules {
        thresholds: thresholds.unwrap_or_default(),
        abort_when: abort_when.unwrap_or_default(),
        hold_when: hold_when.unwrap_or_default(),
        events,
    }
}

/// The row of packets that violate their declaration, if the protocol can have any.
fn broken_row(
    cx: &mut Context<'_>,
    compiler: &mut Compiler<'_, '_>,
    reaches: &Reaches,
    place: Place,
) -> Option<StepId> {
    match reaches.protocols.is_empty() {
        true => None,
        false => compiler.rows.named(cx, StepKind::Broken, "broken packets", place),
    }
}

/// The row of evaluation errors outside of steps, if there can be any.
fn expressions_row(
    cx: &mut Context<'_>,
    compiler: &mut Compiler<'_, '_>,
    sessions: &[Session],
    place: Place,
) -> Option<StepId> {
    match sessions.iter().flat_map(Session::all).any(Statement::evaluates_for_itself) {
        true => compiler.rows.named(cx, StepKind::Expression, "expressions", place),
        false => None,
    }
}

/// Warns of what is written but has no effect.
fn warn_unused(
    cx: &mut Context<'_>,
    (fields, sessions): (&ast::Scenario<'_>, &[Session]),
    parts: &Parts<'_>,
    reaches: &Reaches,
) {
    if !cx.mistakes.has_errors() {
        source::warn_network(cx, fields, sessions);
        reaches.warn_unused(cx);
        vars::warn_unused(cx);
        data::warn_unused(cx);
        parts.warn_unused(cx);
    }
}

/// The name of a run if its scenario has none.
fn file_stem(name: &str) -> String {
    Path::new(name).file_stem().map_or(name.into(), |stem| stem.to_string_lossy().into_owned())
}

fn read_defaults(cx: &mut Context<'_>, node: Option<&Node>, connecting: Duration) -> Defaults {
    let mut defaults = Defaults { connect_timeout: Some(connecting), ..cx.scope.defaults.clone() };
    let fields = node.and_then(|node| ast::Defaults::read(cx, node));
    let Some(fields) = fields else { return defaults };
    if let Some(node) = fields.timeout.node() {
        defaults.timeout = cx.time_limit(node);
    }
    if let Some(failing) = fields.on_error.node().and_then(|node| read_on_error(cx, node)) {
        defaults.failing = failing;
    }
    if let Some(node) = fields.headers.node() {
        defaults.headers = headers::read_headers(cx, node);
    }
    if let Some(node) = fields.cookies.node() {
        defaults.cookies = headers::read_cookies(cx, node);
    }
    defaults
}

#[cfg(test)]
mod tests;
