//! Steps shared by name: `parts`, which `use` inserts into a session.

use std::cell::Cell;
use std::collections::HashMap;

use throng_base::diagnostic::did_you_mean;

use throng_expression::Value;

use crate::ast::{Connect, Item as _, Map, Named, Session, SessionFact, Steps};
use crate::read::Context;
use crate::read::template::constant;
use crate::synonyms::near_label;
use crate::syntax::{Key, Node, Place};
use crate::words::{self, is_name, shorten};

/// Maximum number of steps from parts in all sessions: nested parts multiply.
pub(crate) const PART_STEPS_MAX: usize = 200_000;

/// Maximum nesting depth of parts.
pub(crate) const PARTS_DEPTH_MAX: usize = 16;

/// The parts of the scenario and of the files it includes.
#[derive(Default)]
pub(crate) struct Parts<'n> {
    parts: Vec<Part<'n>>,
    by_name: HashMap<&'n str, usize>,
}

struct Part<'n> {
    key: &'n Key,
    steps: Option<&'n Steps<'n>>,
    used: Cell<bool>,
}

impl<'n> Parts<'n> {
    pub(crate) fn of(named: &'n Named<'n, Steps<'n>>) -> Parts<'n> {
        let mut parts = Parts::default();
        for (key, steps) in &named.content {
            parts.by_name.insert(&key.text, parts.parts.len());
            parts.parts.push(Part { key, steps: steps.as_ref(), used: Cell::new(false) });
        }
        parts
    }

    /// The steps of a part; None if they are invalid.
    pub(crate) fn steps(&self, number: usize) -> Option<&'n Steps<'n>> {
        self.parts[number].steps
    }

    pub(crate) fn name(&self, number: usize) -> &'n str {
        &self.parts[number].key.text
    }

    /// The number of the part that a `use` names.
    pub(crate) fn find(&self, cx: &mut Context<'_>, node: &Node) -> Option<usize> {
        let name = cx.text(node, say!("the name of a part"))?;
        if let Some(number) = self.by_name.get(name.as_str()) {
            self.parts[*number].used.set(true);
            return Some(*number);
        }
        let message = say!("there is no part `{}`", shorten(&name));
        let names = self.parts.iter().map(|part| part.key.text.as_str());
        let label = near_label(did_you_mean(&name, names.clone()), say!("not in `parts`"));
        let help = match self.parts.is_empty() {
            true => say!("declare it: `parts: {{login: [{{http: POST /login}}]}}`"),
            false => say!("`parts` contains {}", words::names(names)),
        };
        cx.refuse("unknown-name", node.place, message, label, help)
    }

    /// Warns of unused parts, except in included files, which may offer more than each scenario
    /// needs.
    pub(crate) fn warn_unused(&self, cx: &mut Context<'_>) {
        for part in &self.parts {
            let Place { file, .. } = part.key.place;
            if part.used.get() || file > 0 {
                continue;
            }
            let name = shorten(&part.key.text);
            let message = say!("the part `{name}` is never used");
            let help = say!("write `- use: {name}` where it is needed, or remove it");
            cx.warn("unused-part", part.key.place, message, say!("never used"), help);
        }
    }
}

/// What is known of a session, including parts, before its steps are compiled: a step may use a
/// value that a later step saves, and name a connection before it is opened.
pub(crate) struct Foreseen<'n> {
    /// The names of saved values; true if the session itself saves them.
    pub(crate) saved: Vec<(&'n Key, bool)>,
    pub(crate) connects: Vec<&'n Connect<'n>>,
    parts: &'n Parts<'n>,
    used: Vec<&'n str>,
    depth: usize,
}

impl<'n> Foreseen<'n> {
    pub(crate) fn of(session: &'n Session<'n>, parts: &'n Parts<'n>) -> Foreseen<'n> {
        let (saved, connects) = (Vec::new(), Vec::new());
        let mut foreseen = Foreseen { saved, connects, parts, used: Vec::new(), depth: 0 };
        Map::show(session, &mut |seen| foreseen.see(seen));
        foreseen
    }

    fn see(&mut self, seen: SessionFact<'n, 'n>) {
        match seen {
            SessionFact::Saved(key) => self.saved.push((key, self.depth == 0)),
            SessionFact::Connect(connect) => self.connects.push(connect),
            SessionFact::Part(name)
                if self.depth < PARTS_DEPTH_MAX && !self.used.contains(&name) =>
            {
                self.used.push(name);
                let number = self.parts.by_name.get(name);
                if let Some(steps) = number.and_then(|number| self.parts.steps(*number)) {
                    self.depth += 1;
                    steps.show(&mut |seen| self.see(seen));
                    self.depth -= 1;
                }
            }
            SessionFact::Part(_) => {}
        }
    }
}

/// The variables that `with` passes to a part.
pub(crate) fn read_given(cx: &mut Context<'_>, node: &Node) -> Vec<(String, Value)> {
    let help = say!("write `- {{use: login, with: {{role: admin}}}}`");
    let mut given = Vec::new();
    for (key, value) in cx.entries(node, say!("a map of variables"), help).unwrap_or_default() {
        if !is_name(&key.text) {
            let message = say!("`{}` is not a valid variable name", shorten(&key.text));
            let help = say!("a name consists of letters, digits and `_`: `user_count`");
            cx.report("bad-value", key.place, message, say!("not a valid name"), help);
            continue;
        }
        // An invalid value is replaced by null, so that the part is still checked.
        let value = constant(cx, value).unwrap_or_default();
        given.push((key.text.clone(), value));
    }
    given
}
