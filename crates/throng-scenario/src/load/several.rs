//! `loads`: several concurrent loads, each with its own sessions, phases and start.

use std::collections::HashMap;

use throng_base::Said;
use throng_program::{Load, Start};

use super::{Churns, Stage, read_phases};
use crate::ast;
use crate::read::Context;
use crate::syntax::{Key, Node, Place};
use crate::words::shorten;

const HELP: Said =
    say!("write `loads: {{readers: {{sessions: reader, phases: [{{users: 100, for: 30s}}]}}}}`");
const PHASES_HELP: Said = say!("write `phases: [{{users: 100, for: 30s}}]`");
/// Each shard has statistics and a schedule for every load.
const LOADS_MAX: usize = 100;

/// Reads the loads, with the places where their phases declare churn.
pub(super) fn read_loads(
    cx: &mut Context<'_>,
    node: &Node,
    sessions: &[(&Key, Option<ast::Session<'_>>)],
    stage: &Stage<'_>,
) -> Vec<(Load, Churns)> {
    let entries = cx.filled_map(node, say!("a map of loads"), say!("there are no loads"), HELP);
    if let Some((key, _)) = entries.get(LOADS_MAX) {
        let help = say!("a load can have many sessions and many phases");
        cx.too_many(key.place, say!("more than {LOADS_MAX} loads"), help);
        return Vec::new();
    }
    let sessions: Vec<&Key> = sessions.iter().map(|(key, _)| *key).collect();
    let mut reader = LoadsReader { entries: &entries, sessions: &sessions, taken: HashMap::new() };
    let mut loads = Vec::with_capacity(entries.len());
    let mut failed = false;
    for number in 0..entries.len() {
        match reader.load(cx, number, stage) {
            Some(load) => loads.push(load),
            None => failed = true,
        }
    }
    if !failed && loads.len() == entries.len() {
        reader.check_sessions(cx);
        reader.check_circles(cx, &loads);
    }
    loads
}

struct LoadsReader<'n> {
    entries: &'n [(&'n Key, &'n Node)],
    sessions: &'n [&'n Key],
    /// The load of each session.
    taken: HashMap<u16, usize>,
}

impl LoadsReader<'_> {
    fn load(
        &mut self,
        cx: &mut Context<'_>,
        number: usize,
        stage: &Stage<'_>,
    ) -> Option<(Load, Churns)> {
        let (key, node) = self.entries[number];
        let fields = ast::Load::read(cx, node)?;
        let start = self.start(cx, number, &fields);
        let sessions = self.sessions(cx, number, &fields);
        let phases = fields.need(cx, fields.phases, PHASES_HELP)?;
        let mut churns = Vec::new();
        let phases = read_phases(cx, phases, stage, &mut churns);
        let name = key.text.clone();
        let load = Load { name, sessions: sessions?, start: start?, phases, turns: None };
        Some((load, churns))
    }

    fn start(&self, cx: &mut Context<'_>, number: usize, fields: &ast::Load<'_>) -> Option<Start> {
        let Some((key, node)) = ast::one_of(cx, &[fields.at, fields.after, fields.with]) else {
            return Some(Start::At(std::time::Duration::ZERO));
        };
        if fields.at.is(key) {
            return cx.duration(node).map(Start::At);
        }
        let name = cx.text(node, say!("the name of a load"))?;
        let loads = self.entries.iter().map(|(key, _)| key.text.as_str());
        let Some(other) = loads.clone().position(|load| load == name) else {
            let others = loads.filter(|load| *load != self.entries[number].0.text);
            return unknown(cx, "load", &name, others, node.place);
        };
        let other = other as u16;
        Some(if fields.after.is(key) { Start::After(other) } else { Start::With(other) })
    }

    /// The sessions of a load. A single load need not name them.
    fn sessions(
        &mut self,
        cx: &mut Context<'_>,
        number: usize,
        fields: &ast::Load<'_>,
    ) -> Option<Option<Box<[u16]>>> {
        let help = say!("list the sessions that its users run: `sessions: [reader, buyer]`");
        if self.entries.len() == 1 && fields.sessions.key().is_none() {
            return Some(None);
        }
        let node = fields.need(cx, fields.sessions, help.clone())?;
        let name = shorten(&self.entries[number].0.text);
        let items = cx.some_items(node, say!("the load `{name}` has no sessions"), help)?;
        let found: Vec<Option<u16>> =
            items.iter().map(|item| self.session(cx, number, item)).collect();
        let mut found = found.into_iter().collect::<Option<Vec<u16>>>()?;
        // In the order of the scenario, which is also the order of counted sessions.
        found.sort_unstable();
        Some(Some(found.into()))
    }

    fn session(&mut self, cx: &mut Context<'_>, load: usize, node: &Node) -> Option<u16> {
        let name = cx.text(node, say!("the name of a session"))?;
        let Some(found) = self.sessions.iter().position(|key| key.text == name) else {
            // A scenario without sessions is reported elsewhere.
            if self.sessions.is_empty() {
                return None;
            }
            let all = self.sessions.iter().map(|key| key.text.as_str());
            return unknown(cx, "session", &name, all, node.place);
        };
        let session = u16::try_from(found).ok()?;
        let Some(other) = self.taken.insert(session, load) else { return Some(session) };
        let (name, first) = (shorten(&name), shorten(&self.entries[other].0.text));
        let message = say!("the session `{name}` is in two loads");
        let label = say!("the session is already in the load `{first}`");
        let help = say!("keep the session in one load; to share steps between loads, use `parts`");
        cx.refuse("session-in-two-loads", node.place, message, label, help)
    }

    /// Reports sessions that no load runs.
    fn check_sessions(&self, cx: &mut Context<'_>) {
        if self.taken.is_empty() {
            return;
        }
        for (number, key) in self.sessions.iter().enumerate() {
            if !u16::try_from(number).is_ok_and(|number| self.taken.contains_key(&number)) {
                let message = say!("the session `{}` is not in any load", shorten(&key.text));
                let help = say!("add it to the `sessions` of a load, or remove it");
                cx.report("session-without-load", key.place, message, say!("never runs"), help);
            }
        }
    }

    /// Reports loads that wait for each other; each cycle once.
    fn check_circles(&self, cx: &mut Context<'_>, loads: &[(Load, Churns)]) {
        let next = |load: usize| match loads[load].0.start {
            Start::At(_) => None,
            Start::After(other) | Start::With(other) => Some(usize::from(other)),
        };
        let mut known = vec![false; loads.len()];
        for first in 0..loads.len() {
            let way: Vec<usize> = std::iter::successors(Some(first), |load| next(*load))
                .take(loads.len() + 1)
                .collect();
            // Only a cycle that returns to its first load before a load that was already reported.
            let Some(length) = way.iter().skip(1).position(|load| *load == first) else { continue };
            let circle = &way[..=length];
            if circle.iter().any(|load| known[*load]) {
                continue;
            }
            circle.iter().for_each(|load| known[*load] = true);
            let name = |load: &usize| format!("`{}`", shorten(&loads[*load].0.name));
            let mut names: Vec<String> = circle.iter().map(name).collect();
            names.push(name(&first));
            let message = say!("loads wait for each other in a cycle: {}", names.join(", "));
            let label = say!("no load in the cycle ever starts");
            let help = say!(
                "let one load start independently: remove its `after` or `with`, or write `at: \
                 2m`"
            );
            cx.report("load-cycle", self.entries[first].0.place, message, label, help);
        }
    }
}

fn unknown<'n, T>(
    cx: &mut Context<'_>,
    what: &str,
    name: &str,
    all: impl Iterator<Item = &'n str> + Clone,
    place: Place,
) -> Option<T> {
    let message = say!("there is no {what} `{}`", shorten(name));
    let none = say!("the scenario has no other {what}");
    cx.unknown("unknown-name", place, message, (name, all), say!("here"), none)
}
