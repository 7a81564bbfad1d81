//! Between the ledgers of the machines of a run: what was sent on one is announced to the others,
//! batch by batch, and joins their exchange as if another shard had said it. Who carries a batch
//! may lose it, double it or bring it late: batches are numbered and say how much came before
//! them, so what is missing is counted as not watched and never taken for something else.
//!
//! The clocks of two machines agree only within an error. What another machine has sent is placed
//! at the earliest moment it can have been sent by our clock: a receipt is never before its
//! message, and members who came within the error are not expected to get it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::{Share, StepId, Time, UserId};

use super::Port;
use super::exchange::{HELD_MAX, News, Sent};
use crate::peers::{Known, Muster, every, is_another, silent};

/// Messages of one batch.
const BATCH_MAX: usize = 20_000;
/// Shards of one machine are told apart by the lower half of their number in the run.
const MACHINE_BITS: u32 = 16;

/// What a machine announces at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Announced {
    /// Its part of the run, which names it.
    first: u64,
    width: u64,
    /// Batches count from 0.
    number: u64,
    rows: Vec<Row>,
}

/// Of one row of deliveries. Times are in nanoseconds on the clock of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Row {
    /// All that was sent up to here is announced; u64::MAX once its shards are gone.
    until: u64,
    /// Messages in all batches before.
    before: u64,
    /// Id, group, sender, moment, shard.
    sent: Vec<(u64, u64, u64, u64, u32)>,
    /// How ids stood in messages, where they are more than numbers: by place in `sent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    texts: BTreeMap<usize, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withdrawn: Vec<(u64, u64)>,
    /// From when to when.
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
    /// What others have announced and the exchange has had no room for.
    pending: Vec<News>,
    /// Messages that were announced to others.
    sent: u64,
    /// Shards were told that all is known up to here.
    told: Time,
    /// Messages of others that did not come, or too late.
    missed: u64,
}

/// Another machine.
#[derive(Debug)]
struct Other {
    width: u64,
    /// The number of its next batch.
    number: u64,
    heard: Time,
    /// By row: up to when all is known, and how many messages that is.
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

    /// A shard at its end waits for others no longer than this.
    pub(crate) fn patience(share: Share) -> Duration {
        silent(share) + every(share) * 2
    }

    /// What the others have to hear; also says to the shards what others have announced.
    pub(crate) fn tell(&mut self, now: Time) -> Vec<Announced> {
        let silent = silent(self.share);
        let is_there = |other: &Other| now.since(other.heard) < silent || other.has_left();
        // Who was never heard is waited for as well, for a while.
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

    /// Rows in as many batches as they need.
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

    /// By step: messages of other machines that nobody of this one will ever watch, since the last
    /// time.
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
    /// Shards hear what others have sent up to `known`, and tell what they have. At `unsure`
    /// somebody is not heard who may send something.
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

    /// What was sent behind this moment is not known up to now.
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
        // Shards have gone on as if there was nothing up to here.
        let too_late = |at: u64| at < self.told.0;
        let late = row.sent.iter().filter(|sent| too_late(sent.3)).count() as u64;
        // The gap is what another machine claims.
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

    /// Takes out as much as a batch has; what is withdrawn is told with the last one.
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
        // Nothing is complete before the last batch has come.
        Row { until: 0, before, sent, texts, ..Row::default() }
    }
}
