//! The lines of all agents of a run, each reported once and in the order of its agent: lines after
//! a gap wait. These are few, because an agent sends only a limited number ahead.

use std::collections::BTreeMap;

use throng_bus::Logged;

use super::{Missing, Output};
use crate::presence::Incarnation;
use crate::receipt::{Receipt, Taken};
use crate::wire::{Batch, End, Head, Plan};

pub(super) struct Gather {
    agents: Vec<Agent>,
}

struct Agent {
    name: String,
    life: Incarnation,
    receipt: Receipt,
    /// The next line to report, and later ones that have arrived.
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
    end: Option<End>,
    is_told: bool,
}

impl Gather {
    pub(super) fn new(plan: &Plan) -> Gather {
        let agents = plan.parts.iter().map(|part| Agent {
            name: part.agent.clone(),
            life: part.life,
            receipt: Receipt::default(),
            next: 0,
            waiting: BTreeMap::new(),
            end: None,
            is_told: false,
        });
        Gather { agents: agents.collect() }
    }

    /// The new lines in a batch of the log.
    pub(super) fn take(&mut self, logged: &Logged) -> Vec<Output> {
        let name = logged.subject.rsplit('.').next().unwrap_or_default();
        let found = self.agents.iter_mut().enumerate().find(|(_, agent)| agent.name == name);
        let Some((number, agent)) = found else { return Vec::new() };
        // Only agents write there, so anything else is from another version.
        let Some(Batch { head, lines }) = Batch::from_bytes(&logged.payload) else {
            return Vec::new();
        };
        let Head { life, first, end, .. } = head;
        if life != agent.life {
            return Vec::new();
        }
        let mut new = Vec::with_capacity(lines.len());
        for (line, text) in (first..).zip(lines.split_inclusive(|byte| *byte == b'\n')) {
            match agent.receipt.take(line) {
                Taken::New if line == agent.next => {
                    new.extend_from_slice(text);
                    agent.next += 1;
                }
                Taken::New => drop(agent.waiting.insert(line, text.to_vec())),
                Taken::Again | Taken::Refused => {}
            }
        }
        while let Some(text) = agent.waiting.remove(&agent.next) {
            new.extend(text);
            agent.next += 1;
        }
        let mut told = Vec::new();
        if !new.is_empty() {
            told.push(Output::Lines { agent: number, lines: new });
        }
        if let Some(end) = end
            && agent.receipt.ends_with(end.lines)
            && agent.end.is_none()
        {
            agent.end = Some(end);
        }
        // Its end is reported after its last line, whichever arrived first.
        if agent.receipt.is_complete()
            && let Some(end) = agent.end.clone().filter(|_| !agent.is_told)
        {
            agent.is_told = true;
            told.push(Output::Ended { agent: number, end });
        }
        told
    }

    /// Stops waiting for this agent: reports the lines after gaps, and what is missing.
    pub(super) fn give_up(&mut self, agent: usize) -> Vec<Output> {
        let Some(it) = self.agents.get_mut(agent) else { return Vec::new() };
        let lines: Vec<u8> = std::mem::take(&mut it.waiting).into_values().flatten().collect();
        let mut told = Vec::new();
        if !lines.is_empty() {
            told.push(Output::Lines { agent, lines });
        }
        told.push(Output::GivenUp(Missing {
            agent,
            lines: it.receipt.missing(),
            open_from: (!it.receipt.is_ended()).then(|| it.receipt.reach()),
        }));
        told
    }

    pub(super) fn is_complete(&self) -> bool {
        self.agents.iter().all(|agent| agent.receipt.is_complete())
    }
}
