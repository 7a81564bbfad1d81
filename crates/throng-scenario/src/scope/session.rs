//! Names in a session: each has a slot for the user's value.

use std::cell::Cell;
use std::collections::HashMap;

use throng_expression::{Expression, Slots, Value};
use throng_program::{Extractor, Save, Segment, Text};

use crate::scope::{Kinds, Spoken};
use crate::syntax::Place;

/// Maximum number of values per user in one session.
pub(crate) const SLOTS_MAX: usize = 1_000;

/// The names of the session that is being compiled.
#[derive(Default)]
pub(crate) struct SessionNames {
    pub(crate) slots: Vec<String>,
    pub(crate) saved: HashMap<String, Saved>,
    /// Names of current loop items, the innermost last.
    pub(crate) items: Vec<(String, u16)>,
    pub(crate) full: bool,
    /// A session is being compiled.
    pub(crate) open: bool,
    /// By slot: an earlier step saves it.
    pub(crate) written: Vec<bool>,
    /// By slot: an earlier step tests whether it exists, or it is already reported that nothing
    /// saves it.
    pub(crate) excused: Vec<bool>,
    /// Saved values that are used before anything can have saved them, and where.
    pub(crate) early: Vec<(u16, Place)>,
    /// Compiled expressions: steps often repeat them.
    pub(crate) expressions: HashMap<Box<str>, (Expression, Slots)>,
    /// Unknown names, with the number of the mistake.
    pub(crate) unknown: HashMap<String, usize>,
    /// The message of the handler that is being compiled.
    pub(crate) heard: Option<Heard>,
}

/// The message that a handler processes.
pub(crate) struct Heard {
    /// Its possible kinds on a declared protocol.
    pub(crate) kinds: Option<Kinds>,
    /// It has metadata.
    pub(crate) has_headers: bool,
    /// The parts of it that the handler uses, each with its own slot.
    pub(crate) slots: HashMap<String, u16>,
    pub(crate) saves: Vec<Save>,
}

impl Heard {
    pub(crate) fn new(kinds: Option<Kinds>, spoken: &Spoken) -> Heard {
        let has_headers = spoken.has_headers();
        Heard { kinds, has_headers, slots: HashMap::new(), saves: Vec::new() }
    }
}

pub(crate) struct Saved {
    pub(crate) slot: u16,
    pub(crate) used: Cell<bool>,
    /// Where the session itself saves it; parts may save more than each session needs.
    pub(crate) place: Option<Place>,
}

impl SessionNames {
    /// The names of a session; the values that deliveries use have the same slots in all sessions.
    pub(crate) fn of_session(shared: &[String]) -> SessionNames {
        let mut names = SessionNames { open: true, ..SessionNames::default() };
        for name in shared {
            let slot = names.add(name);
            let saved = slot.map(|slot| Saved { slot, used: Cell::new(true), place: None });
            names.saved.extend(saved.map(|saved| (name.clone(), saved)));
        }
        names
    }

    /// Names for deliveries, which are evaluated on users of all sessions: only saved values with
    /// the same slot in all of them are known.
    pub(crate) fn of_ledger(shared: &[String]) -> SessionNames {
        let mut names = SessionNames::of_session(shared);
        (0..shared.len()).for_each(|slot| names.set_written(slot as u16));
        names
    }

    pub(crate) fn slot_of(&self, name: &str) -> Option<u16> {
        self.saved.get(name).map(|saved| saved.slot)
    }

    /// The slot of a value that an expression uses.
    pub(crate) fn used(&self, name: &str) -> Option<u16> {
        let saved = self.saved.get(name)?;
        saved.used.set(true);
        Some(saved.slot)
    }

    /// The slot of the innermost item with this name.
    pub(crate) fn item(&self, name: &str) -> Option<u16> {
        self.items.iter().rev().find(|(item, _)| item == name).map(|(_, slot)| *slot)
    }

    pub(crate) fn saved_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.slots.iter().map(String::as_str).filter(|name| self.saved.contains_key(*name))
    }

    /// Marks a value as saved from here on.
    pub(crate) fn set_written(&mut self, slot: u16) {
        if let Some(written) = self.written.get_mut(usize::from(slot)) {
            *written = true;
        }
    }

    /// The saved values that a text needs and that no earlier step saves.
    pub(crate) fn not_there(&self, text: &Text) -> Vec<u16> {
        let is_missing = |slot: &u16| self.written.get(usize::from(*slot)) == Some(&false);
        let mut missing = Vec::new();
        for segment in &text.segments {
            if let Segment::Value { value, .. } = segment {
                missing.extend(value.slots().needed.into_iter().filter(is_missing));
            }
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// A cached expression, and the result of [`SessionNames::look`] for it.
    pub(crate) fn known(&mut self, text: &str, in_time: bool) -> Option<(Expression, Option<u16>)> {
        let SessionNames { expressions, written, excused, .. } = self;
        let (known, slots) = expressions.get(text)?;
        Some((known.clone(), look(written, excused, slots, in_time)))
    }

    /// The first value that an expression needs and that cannot exist in the first iteration; each
    /// value is reported once.
    pub(crate) fn look(&mut self, slots: &Slots, in_time: bool) -> Option<u16> {
        look(&self.written, &mut self.excused, slots, in_time)
    }

    pub(crate) fn item_names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|(name, _)| name.as_str())
    }

    /// Must be called whenever the meaning of names changes.
    pub(crate) fn forget_expressions(&mut self) {
        self.expressions.clear();
    }

    /// Ends the scope of an item of `Context::enter_item`, if it got a slot.
    pub(crate) fn leave_item(&mut self) {
        self.forget_expressions();
        self.items.pop();
    }

    /// The possible kinds of the message that a handler processes.
    pub(crate) fn heard_kinds(&self) -> Option<Kinds> {
        self.heard.as_ref()?.kinds.clone()
    }

    /// Keeps a part of the message that a handler processes; returns its slot.
    pub(crate) fn keep_heard(&mut self, written: String, extractor: Extractor) -> Option<u16> {
        let slot = self.add(&format!("message.{written}"))?;
        self.set_written(slot);
        if let Some(heard) = &mut self.heard {
            heard.slots.insert(written, slot);
            // A missing part is null: the step that needs it reports that.
            let default = Some(Text::constant(Value::Null));
            heard.saves.push(Save { slot, extractor, all: false, default });
        }
        Some(slot)
    }

    pub(crate) fn add(&mut self, name: &str) -> Option<u16> {
        if self.slots.len() >= SLOTS_MAX {
            return None;
        }
        self.slots.push(name.to_string());
        self.written.push(false);
        self.excused.push(false);
        u16::try_from(self.slots.len() - 1).ok()
    }
}

fn look(written: &[bool], excused: &mut [bool], slots: &Slots, in_time: bool) -> Option<u16> {
    for slot in &slots.tested {
        if let Some(excused) = excused.get_mut(usize::from(*slot)) {
            *excused = true;
        }
    }
    let is_early = |slot: &&u16| {
        let at = usize::from(**slot);
        written.get(at) == Some(&false) && excused.get(at) == Some(&false)
    };
    let early = slots.needed.iter().find(is_early).copied().filter(|_| !in_time)?;
    excused[usize::from(early)] = true;
    Some(early)
}
