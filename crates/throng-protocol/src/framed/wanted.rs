//! The parts of a document that fields name by path, as a tree: one pass over the document finds
//! all of them.

use std::ops::Range;

/// One step of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Inner {
    Key(Box<str>),
    Index(u32),
}

/// Start and end of a wanted part.
pub(super) type Span = (u32, u32);

/// A part that the document does not have.
pub(super) const ABSENT: Span = (u32::MAX, u32::MAX);

/// The wanted parts below one place of a document.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Sorted.
    pub(super) children: Vec<(Inner, Wanted)>,
    /// Where this part itself is recorded.
    pub(super) slot: Option<u16>,
    /// The slots of this part and of all below it.
    pub(super) slots: Range<u16>,
}

impl Wanted {
    pub(super) fn add(&mut self, path: &[Inner]) {
        let Some((first, rest)) = path.split_first() else {
            self.slot = Some(0);
            return;
        };
        let at = match self.children.binary_search_by(|(step, _)| step.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (first.clone(), Wanted::default()));
                at
            }
        };
        self.children[at].1.add(rest);
    }

    /// Numbers the slots after all parts are added.
    pub(super) fn number(&mut self, next: &mut u16) {
        let first = *next;
        if let Some(slot) = &mut self.slot {
            *slot = *next;
            *next += 1;
        }
        for (_, child) in &mut self.children {
            child.number(next);
        }
        self.slots = first..*next;
    }

    pub(super) fn find(&self, path: &[Inner]) -> Option<u16> {
        match path.split_first() {
            None => self.slot,
            Some((first, rest)) => {
                let at = self.children.binary_search_by(|(step, _)| step.cmp(first)).ok()?;
                self.children[at].1.find(rest)
            }
        }
    }

    /// The part below this one whose step `is_it` accepts.
    pub(super) fn below(&self, mut is_it: impl FnMut(&Inner) -> bool) -> Option<&Wanted> {
        self.children.iter().find(|(step, _)| is_it(step)).map(|(_, child)| child)
    }
}

/// What stands around the values of a document.
#[derive(Default)]
pub(super) struct Around {
    /// Which value comes next.
    pub(super) order: Vec<usize>,
    /// What is before each of them.
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) end: Vec<u8>,
}

impl Around {
    /// The next value.
    pub(super) fn value(&mut self, index: usize) {
        self.order.push(index);
        self.pieces.push(std::mem::take(&mut self.end));
    }
}

/// The places of values in a document that is written: a value, or what contains values.
#[derive(Default)]
pub(super) struct ValueTree<'p> {
    pub(super) value: Option<usize>,
    /// Keys in the order in which they are first named, items in order.
    pub(super) children: Vec<(&'p Inner, ValueTree<'p>)>,
}

impl<'p> ValueTree<'p> {
    pub(super) fn add(&mut self, path: &'p [Inner], index: usize) {
        let Some((first, rest)) = path.split_first() else {
            self.value = Some(index);
            return;
        };
        let at = match self.children.iter().position(|(step, _)| *step == first) {
            Some(at) => at,
            None => {
                let behind = |(step, _): &(&Inner, ValueTree<'_>)| match (step, first) {
                    (Inner::Index(one), Inner::Index(other)) => one > other,
                    _ => false,
                };
                let at = self.children.iter().position(behind).unwrap_or(self.children.len());
                self.children.insert(at, (first, ValueTree::default()));
                at
            }
        };
        self.children[at].1.add(rest, index);
    }
}
