//! The desired state, written for all agents: one write at a time, and always complete.

use bytes::Bytes;

use super::Sign;
use crate::wire::{Desired, ORDERS_MAX, Ordered, Plan, Raw, SignedStart, Start, names, to_json};

pub(super) struct Command {
    run: String,
    agents: Vec<String>,
    desired: Desired,
    /// The revision of the last write.
    revision: u64,
    /// The plan is in its register; agents must not look for it earlier.
    is_planned: bool,
    is_new: bool,
    is_writing: bool,
}

impl Command {
    pub(super) fn new(plan: &Plan, resumed: Option<(u64, Desired)>) -> Command {
        let is_planned = resumed.is_some();
        let (revision, desired) = resumed.unwrap_or_default();
        Command {
            run: plan.run.clone(),
            agents: plan.parts.iter().map(|part| part.agent.clone()).collect(),
            desired,
            revision,
            is_planned,
            // A new controller announces itself, which deposes the earlier one.
            is_new: true,
            is_writing: false,
        }
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// The revision of the register, once it was written.
    pub(super) fn revision(&self) -> Option<u64> {
        (self.revision > 0).then_some(self.revision)
    }

    pub(super) fn planned(&mut self) {
        self.is_planned = true;
    }

    pub(super) fn start(&mut self, unix_ns: u64, sign: &Sign) {
        if self.desired.start.is_none() {
            let mut begins = SignedStart { start: Start { unix_ns }, signature: String::new() };
            begins.signature = sign(&begins.signed_text(&self.run));
            self.desired.start = Some(begins);
            self.is_new = true;
        }
    }

    pub(super) fn order(&mut self, at_ns: u64, (except, order): (Option<usize>, Raw), sign: &Sign) {
        if self.desired.orders.len() < ORDERS_MAX {
            let except = except.and_then(|agent| self.agents.get(agent).cloned());
            let place = self.desired.orders.len();
            let mut ordered = Ordered { at_ns, except, order, signature: String::new() };
            ordered.signature = sign(&ordered.signed_text(&self.run, place));
            self.desired.orders.push(ordered);
            self.is_new = true;
        }
    }

    pub(super) fn over(&mut self) {
        self.desired.over = true;
        self.is_new = true;
    }

    /// True if the desired state is not completely written.
    pub(super) fn is_pending(&self) -> bool {
        self.is_planned && (self.is_writing || self.is_new)
    }

    /// The next write: the register, its current revision, and the value.
    pub(super) fn write(&mut self, epoch: u64) -> Option<(String, u64, Bytes)> {
        if !self.is_planned || self.is_writing || !self.is_new {
            return None;
        }
        (self.is_writing, self.is_new) = (true, false);
        self.desired.epoch = epoch;
        Some((names::desired(&self.run), self.revision, to_json(&self.desired).into()))
    }

    pub(super) fn written(&mut self, revision: u64) {
        self.is_writing = false;
        self.revision = self.revision.max(revision);
    }

    /// Handles the value after a write with unknown outcome. If it is not ours, it is written
    /// again. Another controller deposes this one by the lease.
    pub(super) fn reread(&mut self, there: Option<(u64, Option<Desired>)>) {
        self.is_writing = false;
        let Some((revision, desired)) = there else {
            self.is_new = true;
            return;
        };
        self.revision = revision;
        self.is_new |= desired.as_ref() != Some(&self.desired);
    }
}
