//! Connects the ledgers of the machines of a run: messages sent on one are announced to the others,
//! in batches, and enter their exchange like those of another shard. The carrier may lose a batch,
//! duplicate it or deliver it late: batches are numbered and contain the count of messages before
//! them, so that missing ones are counted as unwatched and never misattributed.
//!
//! The clocks of two machines agree only within an error. A message of another machine is placed at
//! the earliest time at which it can have been sent by our clock: a receipt never precedes its
//! message, and members that joined within the error are not expected to get it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::{Share, StepId, Time, UserId};

use super::Port;
use super::exchange::{HELD_MAX, News, Sent};
use crate::peers::{Known, Muster, every, is_another, silent};

/// Messages per batch.
const BATCH_MAX: usize = 20_000;
/// The lower half of a shard's number in the run identifies it on its machine.
const MACHINE_BITS: u32 = 16;

/// An announcement of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Announced {
    /// Its part of the run, which identifies it.
    first: u64,
    width: u64,
    /// Batches count from 0.
    number: u64,
    rows: Vec<Row>,
}

/// One row of deliveries. Times are in nanoseconds on the clock of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Row {
    /// Everything sent before is announced; u64::MAX once its shards are gone.
    until: u64,
    /// Messages in all batches before.
    before: u64,
    /// ID, group, sender, time, shard.
    sent: Vec<(u64, u64, u64, u64, u32)>,
    /// IDs as in the messages, if they are not just numbers: by index in `sent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    texts: BTreeMap<usize, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withdrawn: Vec<(u64, u64)>,
    /// Start and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unannounced: Vec<(u64, u64)>,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Bridge {
    share: Share,
    rows: Vec<Here>,
    /// By the first of their parts.
    others: BTreeMap<u64, Other>,
    number: u64,
    muster: Muster,
}

/// A row on this machine.
#[derive(Debug)]
struct Here {
    step: StepId,
    port: Port,
    /// Announcements of others that the exchange has had no room for.
    pending: Vec<News>,
    /// Messages that were announced to others.
    sent: u64,
    /// Shards were told that everything before is known.
    told: Time,
    /// Messages of others that did not arrive, or too late.
    missed: u64,
}

/// Another machine.
#[derive(Debug)]
struct Other {
    width: u64,
    /// The number of its next batch.
    number: u64,
    heard: Time,
    /// By row: the time up to which everything is known, and how many messages that is.
    rows: Vec<(Time, u64)>,
}

impl Bridge {
    pub(crate) fn new(share: Share, rows: impl Iterator<Item = (StepId, Port)>) -> Bridge {
        let here = |(step, port)| Here {
            step,
            port,
            pending: Vec::new(),
            sent: 0,
            told: Time::ZERO,
            missed: 0,
        };
        let rows = rows.map(here).collect();
        Bridge { share, rows, others: BTreeMap::new(), number: 0, muster: Muster::default() }
    }

    /// A shard that has ended waits for others no longer than this.
    pub(crate) fn patience(share: Share) -> Duration {
        silent(share) + every(share) * 2
    }

    /// Returns the announcements for the others, and passes theirs on to the shards.
    pub(crate) fn tell(&mut self, now: Time) -> Vec<Announced> {
        let silent = silent(self.share);
        let is_there = |other: &Other| now.since(other.heard) < silent || other.has_left();
        // A machine that was never heard of is also waited for, for a while.
        let widths = self.others.values().map(|other| other.width);
        let known = self.muster.known(self.share, widths, now);
        let all_known = known != Known::No;
        let all_there = known == Known::All && self.others.values().all(is_there);
        let mut told = Vec::new();
        for (index, row) in self.rows.iter_mut().enumerate() {
            let those = self.others.values().filter(|other| is_there(other));
            let known = those.map(|other| other.rows[index].0).min().unwrap_or(Time::NEVER);
            let known = if all_known { known } else { Time::ZERO };
            told.push(row.trade(known, !all_there && all_known, now));
        }
        self.batches(told)
    }

    /// Splits rows into as many batches as needed.
    fn batches(&mut self, mut rows: Vec<Row>) -> Vec<Announced> {
        let mut batches = Vec::new();
        loop {
            let longest = rows.iter().map(|row| row.sent.len()).max().unwrap_or(0);
            let is_last = longest <= BATCH_MAX;
            let now = if is_last {
                std::mem::take(&mut rows)
            } else {
                rows.iter_mut().map(Row::take_first).collect()
            };
            let (first, width, _) = self.share.machine();
            batches.push(Announced { first, width, number: self.number, rows: now });
            self.number += 1;
            if is_last {
                return batches;
            }
        }
    }

    /// Another machine has announced this; its clock and ours agree within `error`.
    pub(crate) fn hear(&mut self, announced: &Announced, error: Duration, now: Time) {
        let Announced { first, width, number, rows } = announced;
        if !is_another(self.share, *first, *width) || rows.len() != self.rows.len() {
            return;
        }
        let other = self.others.entry(*first).or_insert_with(|| Other {
            width: *width,
            number: 0,
            heard: now,
            rows: vec![(Time::ZERO, 0); rows.len()],
        });
        if *number < other.number {
            return;
        }
        (other.number, other.heard) = (number.saturating_add(1), now);
        let home = (*first as u32).wrapping_add(1) << MACHINE_BITS;
        for ((here, row), known) in self.rows.iter_mut().zip(rows).zip(&mut other.rows) {
            here.hear(row, known, (error, home, now));
        }
    }

    /// By step: messages of other machines that no shard of this one will ever watch, since the
    /// last call.
    pub(crate) fn missed(&mut self) -> impl Iterator<Item = (StepId, u64)> {
        let rows = self.rows.iter_mut();
        rows.map(|row| (row.step, std::mem::take(&mut row.missed)))
            .filter(|(_, missed)| *missed > 0)
    }
}

impl Other {
    fn has_left(&self) -> bool {
        self.rows.iter().all(|(until, _)| *until == Time::NEVER)
    }
}

impl Here {
    /// Passes on to the shards what others have sent up to `known`, and takes their news. After
    /// `unsure`, a machine that may send messages is not heard of.
    fn trade(&mut self, known: Time, unsure: bool, now: Time) -> Row {
        if unsure {
            self.pending.push(Here::unannounced(self.told, now));
        }
        let heard = self.port.trade(&self.pending, known);
        if !heard.refused {
            self.pending.clear();
            self.told = self.told.max(known);
        } else if self.pending.len() > HELD_MAX {
            let lost = self.pending.drain(..).filter(|news| matches!(news, News::Sent(_)));
            self.missed = self.missed.saturating_add(lost.count() as u64);
            self.pending.push(Here::unannounced(self.told, now));
        }
        let before = self.sent;
        let mut row = Row { until: heard.complete_until.0, before, ..Row::default() };
        heard.news.iter().for_each(|news| news.iter().for_each(|news| row.add(news)));
        self.sent += row.sent.len() as u64;
        row
    }

    /// Messages sent after `known` are unknown until now.
    fn unannounced(known: Time, now: Time) -> News {
        News::Unannounced { at: Time(known.0.saturating_add(1)), until: now }
    }

    fn hear(
        &mut self,
        row: &Row,
        known: &mut (Time, u64),
        (error, home, now): (Duration, u32, Time),
    ) {
        let (until, count) = (known.0.max(self.told), known.1);
        let after = until.0.saturating_add(1);
        let earliest = |at: u64| at.saturating_sub(error.as_nanos() as u64);
        let gap = row.before.saturating_sub(count);
        // Shards have continued without any message up to here.
        let too_late = |at: u64| at < self.told.0;
        let late = row.sent.iter().filter(|sent| too_late(sent.3)).count() as u64;
        // The gap is only what another machine claims.
        let missing = gap.saturating_add(late);
        self.missed = self.missed.saturating_add(missing);
        if missing > 0 {
            self.pending.push(Here::unannounced(until, now));
        }
        for (place, &(id, group, sender, at, shard)) in row.sent.iter().enumerate() {
            if too_late(at) {
                continue;
            }
            self.pending.push(News::Sent(Sent {
                id,
                text: row.texts.get(&place).map(|text| text.as_str().into()),
                group,
                sender: UserId(sender),
                at: Time(earliest(at).max(after)),
                home: home | shard,
                member: None,
            }));
        }
        for &(id, at) in &row.withdrawn {
            self.pending.push(News::Withdrawn { id, at: Time(earliest(at).max(after)) });
        }
        for &(at, until) in &row.unannounced {
            let at = Time(earliest(at).max(after));
            self.pending.push(News::Unannounced { at, until: Time(until.max(at.0)) });
        }
        let until = if row.until == Time::NEVER.0 { row.until } else { earliest(row.until) };
        *known = (known.0.max(Time(until)), row.before.saturating_add(row.sent.len() as u64));
    }
}

impl Row {
    fn add(&mut self, news: &News) {
        match news {
            News::Sent(sent) => {
                let Sent { id, group, sender, at, home, .. } = *sent;
                if let Some(text) = &sent.text {
                    self.texts.insert(self.sent.len(), text.to_string());
                }
                self.sent.push((id, group, sender.0, at.0, home));
            }
            News::Withdrawn { id, at } => self.withdrawn.push((*id, at.0)),
            News::Unannounced { at, until } => self.unannounced.push((at.0, until.0)),
        }
    }

    /// Takes one batch; withdrawals are announced with the last one.
    fn take_first(&mut self) -> Row {
        let rest = self.sent.split_off(self.sent.len().min(BATCH_MAX));
        let sent = std::mem::replace(&mut self.sent, rest);
        let texts = self.texts.split_off(&sent.len());
        let texts = std::mem::replace(&mut self.texts, texts);
        self.texts = std::mem::take(&mut self.texts)
            .into_iter()
            .map(|(place, text)| (place - sent.len(), text))
            .collect();
        let before = self.before;
        self.before += sent.len() as u64;
        // Nothing is complete before the last batch has arrived.
        Row { until: 0, before, sent, texts, ..Row::default() }
    }
}
