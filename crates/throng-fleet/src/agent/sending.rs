//! Sends the lines of a share to the log: reads them from the spool in batches, and resends until
//! they are acknowledged. Only batches in flight are in memory, which is bounded.

use std::collections::BTreeMap;

use bytes::Bytes;
use throng_base::{Said, Time};

use super::{Finish, Spool};
use crate::presence::Incarnation;
use crate::uplink::{Uplink, WINDOW};
use crate::wire::{Batch, End, Head};

/// Maximum number of compressed bytes in flight.
const OPEN_BYTES_MAX: usize = 8 << 20;

pub(super) struct Sending<S> {
    pub(super) number: usize,
    pub(super) run: String,
    pub(super) subject: String,
    life: Incarnation,
    spool: Option<S>,
    /// Lines that were put into batches.
    lines: u64,
    uplink: Uplink,
    batches: u64,
    /// Batches in flight, with their IDs.
    open: BTreeMap<u64, (String, Bytes)>,
    open_bytes: usize,
    is_ended: bool,
    /// Why the share ends early, if the agent knows it.
    why: Option<Said>,
}

impl<S: Spool> Sending<S> {
    pub(super) fn new(
        (number, run, subject): (usize, String, String),
        life: Incarnation,
        spool: Option<S>,
        end: Option<End>,
    ) -> Sending<S> {
        let mut sending = Sending {
            number,
            run,
            subject,
            life,
            spool,
            lines: 0,
            uplink: Uplink::default(),
            batches: 0,
            open: BTreeMap::new(),
            open_bytes: 0,
            is_ended: false,
            why: None,
        };
        if let Some(end) = end {
            sending.batch(Vec::new(), Some(end));
        }
        sending
    }

    /// The agent ends the share.
    pub(super) fn cut_short(&mut self, why: Said) {
        self.why.get_or_insert(why);
    }

    /// Reads as much from the spool as there is capacity for.
    pub(super) fn fill(&mut self) {
        while !self.is_ended && self.open.len() < WINDOW && self.open_bytes < OPEN_BYTES_MAX {
            let Some(spool) = &mut self.spool else { return };
            let lines = spool.read();
            if !lines.is_empty() {
                self.batch(lines, None);
                continue;
            }
            let Some(Finish { cut_short, refused }) = spool.ended() else { return };
            let cut_short = cut_short.or(self.why.take());
            let end = End { lines: self.lines, cut_short, refused };
            self.batch(Vec::new(), Some(end));
        }
    }

    fn batch(&mut self, lines: Vec<u8>, end: Option<End>) {
        let count = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.is_ended = end.is_some();
        let head = Head { life: self.life, first: self.lines, count, end };
        // If a later life makes different batches, they have different IDs.
        let last = if self.is_ended { ".end" } else { "" };
        let id = format!("{}.{}.{}{last}", self.life.0, self.lines, count);
        let payload = Batch { head, lines }.to_bytes();
        self.lines += count;
        self.open_bytes += payload.len();
        self.open.insert(self.batches, (id, payload));
        self.batches += 1;
        self.uplink.spooled(self.batches);
    }

    /// The next batch to send now: its number, its ID in the log, and its content.
    pub(super) fn next(&mut self, now: Time, agent: &str) -> Option<(u64, String, Bytes)> {
        let batch = self.uplink.send(now)?;
        let (id, payload) = self.open.get(&batch)?;
        Some((batch, format!("{}.{agent}.{id}", self.run), payload.clone()))
    }

    /// The log has it. True if it has everything.
    pub(super) fn acknowledged(&mut self, batch: u64) -> bool {
        self.uplink.acknowledged(batch);
        if let Some((_, payload)) = self.open.remove(&batch) {
            self.open_bytes -= payload.len();
        }
        let is_all = self.is_ended && self.open.is_empty();
        if is_all && let Some(spool) = &mut self.spool {
            spool.sent();
        }
        is_all
    }

    pub(super) fn refused(&mut self, batch: u64, now: Time) {
        self.uplink.refused(batch, now);
    }

    pub(super) fn reconnected(&mut self) {
        self.uplink.reconnected();
    }

    /// The number of batches that are not in the log.
    pub(super) fn waiting(&self) -> u64 {
        self.uplink.waiting()
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }
}
