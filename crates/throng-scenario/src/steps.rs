//! Compiles sessions and their steps to trees of statements.
//!
//! - [`flow`]: loops, branches, parts; [`rest`]: how they end, and what would never rest.
//! - [`links`]: which connection a step uses.
//! - [`http`], [`message`], and those of [`crate::builtin`]: steps that ask the target; [`pause`],
//!   [`stay`], [`meeting`], [`secure`], [`act`]: others.
//! - [`conditions`]: which messages are meant.
//! - [`parallel`]: branches that are done at the same time.
//! - [`heartbeat`]; [`heard`]: what is done beside the user's own steps, [`beside`]: its bodies.
//!   [`background::slow`]: whether those are done in time.
//! - [`ends`]: of connections, which are wanted.
//! - [`used`]: rows of data.

mod act;
mod background;
mod conditions;
mod ends;
mod flow;
mod heard;
mod heartbeat;
mod http;
mod links;
mod meeting;
mod message;
mod parallel;
mod pause;
mod rest;
mod stay;
mod tally;
mod used;

use throng_base::Said;
use throng_expression::Expression;
use throng_program::{Block, Session, Statement};

use crate::ast::{self, Steps, Verb};
use crate::builtin;
use crate::load::Facts;
use crate::message::headers::read_session_headers;
use crate::network::users::{check_targets, read_network};
use crate::parts::{Foreseen, Parts};
use crate::reach::Reaches;
use crate::read::names::check_names;
use crate::read::template::constant;
use crate::read::{Context, Defaults, Scope};
use crate::scope::SessionNames;
use crate::step::failing::read_on_error;
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::syntax::{Key, Kind, Node};
use crate::words::shorten;

pub(crate) use act::parse_byte_rate;
pub(crate) use background::slow::warn_slow;
pub(crate) use conditions::{read_conditions, read_reply_conditions};

use background::Inside;
use background::slow::Body;
use links::Links;
use meeting::Meetings;
use pause::Wait;
use rest::{Flow, pause_of, rest_of};

/// A session with its name; None if it is invalid.
type Named<'n> = (&'n Key, Option<&'n ast::Session<'n>>);

/// Input for compiling sessions, and results besides the sessions.
pub(crate) struct Compiler<'n, 'p> {
    reaches: &'p Reaches,
    parts: &'n Parts<'n>,
    facts: &'p Facts,
    pub(crate) rows: Rows,
    meetings: Meetings,
    waits: Vec<Wait>,
    /// The background steps of all sessions.
    pub(crate) bodies: Vec<Body>,
    part_steps: usize,
}

const SESSIONS_HELP: Said = say!(
    "write `sessions: {{reader: {{steps: [{{http: GET /}}]}}}}`, with a name for each session"
);

impl<'n, 'p> Compiler<'n, 'p> {
    pub(crate) fn new(
        reaches: &'p Reaches,
        parts: &'n Parts<'n>,
        facts: &'p Facts,
    ) -> Compiler<'n, 'p> {
        Compiler {
            reaches,
            parts,
            facts,
            rows: Rows::default(),
            meetings: Meetings::default(),
            waits: Vec::new(),
            bodies: Vec::new(),
            part_steps: 0,
        }
    }

    /// The number of rendezvous points.
    pub(crate) fn rendezvous(&self) -> u16 {
        self.meetings.count()
    }

    pub(crate) fn read_sessions(
        &mut self,
        cx: &mut Context<'_>,
        sessions: &'n ast::Named<'n, ast::Session<'n>>,
    ) -> Vec<Session> {
        let (Some(node), entries) = (sessions.node(), &sessions.content) else { return Vec::new() };
        if node.is_empty() {
            cx.empty(node.place, say!("there are no sessions"), SESSIONS_HELP);
        }
        if entries.len() >= usize::from(u16::MAX) {
            let label = say!("too many");
            let help = say!("a session is a type of user, not a single user");
            cx.report("too-many", node.place, say!("more than 65,534 sessions"), label, help);
            return Vec::new();
        }
        let all: Vec<_> = entries.iter().map(|(key, one)| (*key, one.as_ref())).collect();
        let read = self.read_all(cx, &all);
        if read.len() == all.len() && !all.is_empty() {
            check_weights(cx, &all, &read, node);
        }
        read
    }

    /// Compiles sessions; those with mistakes are left out.
    pub(crate) fn read_all(&mut self, cx: &mut Context<'_>, all: &[Named<'n>]) -> Vec<Session> {
        let mut sessions = Vec::with_capacity(all.len());
        for (number, (key, fields)) in all.iter().enumerate() {
            self.rows.session = number as u16;
            sessions.extend(fields.and_then(|fields| self.session(cx, key, fields)));
        }
        if sessions.len() == all.len() && !all.is_empty() {
            self.meetings.fill(cx, &mut sessions, self.facts);
        }
        pause::warn_long(cx, self.facts, &self.waits);
        sessions
    }

    fn session(
        &mut self,
        cx: &mut Context<'_>,
        key: &Key,
        fields: &'n ast::Session<'n>,
    ) -> Option<Session> {
        ast::one_of(cx, &[fields.weight, fields.users]);
        let count = match fields.users.node() {
            Some(node) => match cx.count(node)? {
                0 => {
                    return cx.bad_value(
                        node,
                        say!("the session has no users"),
                        say!("write `users: 1`"),
                    );
                }
                count => Some(count),
            },
            None => None,
        };
        let weight = fields.weight.node().map_or(Some(1), |node| cx.small_count(node));
        let timeout = fields.timeout.node().and_then(|node| cx.time_limit(node));
        let failing = fields.on_error.node().and_then(|node| read_on_error(cx, node));
        let foreseen = Foreseen::of(fields, self.parts);
        let mut names = SessionNames::of_session(&cx.shared_slots);
        let inside = &mut cx.in_session(&mut names);
        inside.declare_all(&foreseen.saved);
        let outer = inside.scope.defaults;
        let defaults = Defaults {
            headers: read_session_headers(inside, fields.headers.node()),
            cookies: outer.cookies.clone(),
            timeout: timeout.or(outer.timeout),
            connect_timeout: outer.connect_timeout,
            failing: failing.unwrap_or(outer.failing),
        };
        let scope = Scope { defaults: &defaults, ..inside.scope };
        let inside = &mut inside.scoped(scope);
        let network = fields.network.node().and_then(|node| read_network(inside, node));
        let session = self.code(inside, fields, &foreseen.connects, key);
        if count.or(self.facts.users_max).is_none_or(|users| users > 1) {
            builtin::ALL.iter().for_each(|one| (one.warns)(inside, &foreseen.connects));
        }
        check_names(inside);
        let session = session?;
        check_targets(cx, &session, fields.network.key(), &self.reaches.targets);
        let slots = names.slots.into();
        if let Some(before) = fields.before.key()
            && !cx.data.sources.is_empty()
        {
            used::warn_other_rows(cx, &session, before.place);
        }
        Some(Session { name: key.text.clone(), weight: weight?, count, network, slots, ..session })
    }

    fn code(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Session<'n>,
        connects: &[&ast::Connect<'n>],
        key: &Key,
    ) -> Option<Session> {
        let mut coder = Coder {
            links: Links::of_session(cx, (self.reaches, self.reaches.of(&key.text)), connects),
            parts: self.parts,
            rows: &mut self.rows,
            meetings: &mut self.meetings,
            waits: &mut self.waits,
            known: &mut self.bodies,
            part_steps: &mut self.part_steps,
            section: Section::Before,
            inside: None,
            block: Block::new(),
            bodies: 0,
            open_parts: Vec::new(),
        };
        coder.links.read_heartbeats(cx, (fields, key), connects, coder.rows);
        if let Some(steps) = &fields.before.content {
            coder.steps(cx, steps);
        }
        let before = std::mem::take(&mut coder.block);
        coder.section = Section::Steps;
        fields.need(cx, *fields.steps, say!("write `steps: [{{http: GET /}}]`"))?;
        let steps = fields.steps.content.as_ref()?;
        let flow = coder.steps(cx, steps);
        rest::check_iteration(cx, steps.place, flow, self.facts.iterates);
        let steps = std::mem::take(&mut coder.block);
        coder.section = Section::After;
        if let Some(steps) = &fields.after.content {
            coder.steps(cx, steps);
        }
        let after = std::mem::take(&mut coder.block);
        coder.read_beside(cx, fields, key);
        Some(Session { before, steps, after, links: coder.links.finish(), ..Session::default() })
    }
}

fn check_weights(cx: &mut Context<'_>, entries: &[Named<'_>], sessions: &[Session], node: &Node) {
    if sessions.iter().all(|session| session.weight == 0) {
        let label = say!("no session ever runs");
        let help = say!("give at least one of them a weight of 1 or more");
        cx.report("never-runs", node.place, say!("all sessions have a weight of 0"), label, help);
        return;
    }
    for ((key, _), _) in entries.iter().zip(sessions).filter(|(_, session)| session.weight == 0) {
        let message = say!("the session `{}` has a weight of 0", shorten(&key.text));
        let help = say!("give it a weight of 1 or more, or remove it");
        cx.warn("never-runs", key.place, message, say!("no user ever runs it"), help);
    }
}

/// Which list of steps of the session is being compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Steps,
    After,
}

impl Section {
    fn word(self) -> &'static str {
        match self {
            Section::Before => "before",
            Section::Steps => "steps",
            Section::After => "after",
        }
    }
}

/// Compiles the steps of one session.
struct Coder<'c, 'n> {
    links: Links<'c>,
    parts: &'c Parts<'n>,
    rows: &'c mut Rows,
    meetings: &'c mut Meetings,
    waits: &'c mut Vec<Wait>,
    /// The bodies of all sessions.
    known: &'c mut Vec<Body>,
    /// The number of steps from parts, in all sessions.
    part_steps: &'c mut usize,
    section: Section,
    /// The enclosing body.
    inside: Option<Inside>,
    /// The steps that are being compiled.
    block: Block,
    /// The number of bodies of the session so far.
    bodies: u32,
    /// The enclosing parts.
    open_parts: Vec<usize>,
}

impl<'n> Coder<'_, 'n> {
    /// Steps that must not be empty.
    fn steps(&mut self, cx: &mut Context<'_>, steps: &Steps<'n>) -> Flow {
        if steps.list.is_empty() {
            let help = say!("write a list: `steps: [{{http: GET /}}, {{think: 2s}}]`");
            cx.empty(steps.place, say!("there are no steps"), help);
            return Flow::UNKNOWN;
        }
        self.steps_or_none(cx, Some(steps))
    }

    fn steps_or_none(&mut self, cx: &mut Context<'_>, steps: Option<&Steps<'n>>) -> Flow {
        let Some(steps) = steps else { return Flow::UNKNOWN };
        let mut flow = Flow::NOTHING;
        let mut warned = false;
        for step in &steps.list {
            if !self.count_part_step(cx, step.place) {
                return Flow::UNKNOWN;
            }
            if let Some(ending) = flow.ends
                && !std::mem::replace(&mut warned, true)
            {
                rest::warn_unreachable(cx, ending, step.place);
            }
            flow = flow.then(match &step.verb {
                Some(verb) if self.fits_inside(cx, verb) => self.verb(cx, verb),
                _ => Flow::UNKNOWN,
            });
        }
        flow
    }

    fn verb(&mut self, cx: &mut Context<'_>, verb: &Verb<'n>) -> Flow {
        let statement = match verb {
            Verb::Repeat(map) => return self.repeat(cx, map),
            Verb::During(map) => return self.during(cx, map),
            Verb::While(map) => return self.r#while(cx, map),
            Verb::ForEach(map) => return self.for_each(cx, map),
            Verb::Choose(map) => return self.choose(cx, map),
            Verb::If(map) => return self.r#if(cx, map),
            Verb::Transaction(map) => return self.transaction(cx, map),
            Verb::Parallel(map) => return self.parallel(cx, map),
            Verb::Use(map) => return self.part(cx, *map.r#use, map.with),
            Verb::Set(map) => return self.set(cx, map),
            Verb::Log(map) => return self.log(cx, map),
            Verb::Next(map) => return self.end(cx, verb.word(), (map.next, map.place)),
            Verb::Leave(map) => return self.end(cx, verb.word(), (map.leave, map.place)),
            Verb::Stop(map) => return self.end(cx, verb.word(), (map.stop, map.place)),
            Verb::Stay(map) => self.stay(cx, map),
            Verb::Think(map) => pause::read_think(cx, map, self.waits),
            Verb::Rendezvous(map) => self.meetings.read(cx, map, self.rows),
            Verb::Count(map) => tally::read_count(cx, map, self.rows),
            Verb::Measure(map) => tally::read_measure(cx, map, self.rows),
            Verb::Connect(map) => {
                let Some(via) = self.links.connect_link(cx, map) else { return Flow::UNKNOWN };
                let connect = cx.speaking(&via.reach.spoken, |cx| {
                    message::read_connect(cx, map, via, self.rows)
                });
                let Some(connect) = connect else { return Flow::UNKNOWN };
                let flow = self.push(connect);
                self.read_settings(cx, map, via);
                return flow;
            }
            _ => {
                let via = self.links.link(cx, verb, self.inside.is_some());
                via.and_then(|via| self.using(cx, verb, via))
            }
        };
        statement.map_or(Flow::UNKNOWN, |statement| self.push(statement))
    }

    /// A step that uses a connection.
    fn using(&mut self, cx: &mut Context<'_>, verb: &Verb<'_>, via: Via<'_>) -> Option<Statement> {
        let is_request = matches!(verb, Verb::Request(_));
        cx.speaking(&via.reach.spoken, |cx| {
            let read = read_using(cx, verb, via, self.rows);
            let fits = !is_request || self.correlates(cx, via, read.as_ref(), verb.place());
            read.filter(|_| fits)
        })
    }

    fn push(&mut self, statement: Statement) -> Flow {
        let (rest, pause) = (rest_of(&statement), pause_of(&statement));
        self.block.push(statement);
        Flow { pause, ..Flow::of(rest) }
    }
}

macro_rules! readers {
    ($(
        $word:literal $key:ident $name:ident $struct:ident $($alone:ident)?
        $(($use:ident $reader:path))?,
    )*) => {
        /// Compiles a step that uses a connection.
        fn read_using(
            cx: &mut Context<'_>,
            verb: &Verb<'_>,
            via: Via<'_>,
            rows: &mut Rows,
        ) -> Option<Statement> {
            match verb {
                $($(Verb::$struct(map) => $reader(cx, map, via, rows),)?)*
                _ => None,
            }
        }
    };
}

scenario_verbs!(readers);

/// The list of a loop: an expression, or its items.
fn read_list(cx: &mut Context<'_>, node: &Node) -> Option<Expression> {
    let list = match &node.kind {
        Kind::List(_) => constant(cx, node).map(Expression::constant),
        _ => cx.expression(node, say!("a list")),
    }?;
    match list.as_constant() {
        Some(value) if value.as_list().is_none() => {
            let message = say!("this value is never a list");
            cx.bad_value(node, message, say!("write `for_each: \"${{saved.ids}}\"` or `[a, b, c]`"))
        }
        Some(value) if value.len() == Some(0) => {
            let label = say!("its steps never run");
            let help = say!("add items, or remove the step");
            cx.warn("never-runs", node.place, say!("this list is empty"), label, help);
            Some(list)
        }
        _ => Some(list),
    }
}

#[cfg(test)]
mod tests;
