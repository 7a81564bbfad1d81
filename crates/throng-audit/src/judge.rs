//! Compares a view with the known state of users, as a pure function.
//!
//! A view that was read from `from` to `to` can contradict a user for three reasons: it is wrong,
//! it has not seen a change yet, or the user changed while it was read. Only a user whose last
//! change is older than `within` can be wrong, and only if the view contradicts it in two readings
//! at least [`CONFIRMED_AFTER`] apart, without a change between them: a login that the view has
//! seen and whose response is in transit looks like an error in one reading. All others are pending
//! and are read again.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use throng_base::Time;
use throng_metrics::audit::{Pair, ViewRound, WRONG_MAX, Wrong, WrongKind};
use throng_metrics::presence::{Known, Node, Snapshot};

/// Minimum time between the two readings that prove a user wrong. Logins take less.
pub const CONFIRMED_AFTER: Duration = Duration::from_secs(1);
/// A view that agrees at the first reading is a sample of the time to agree only this soon after
/// the change.
const SOON: Duration = Duration::from_secs(1);

/// The content of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// When the first request was sent, and when the last response had arrived.
    pub from: Time,
    pub to: Time,
    /// The online users, in ascending order without duplicates, and their nodes.
    pub online: Vec<(u64, Node)>,
    /// Only these users were requested, in ascending order; None for all.
    pub asked: Option<Vec<u64>>,
    /// Users that it lists more than once.
    pub twice: u64,
    /// The number of entries whose names belong to no user, and the first few of them.
    pub strangers: u64,
    pub unknown: Vec<String>,
}

impl Reading {
    fn says(&self, user: u64) -> Option<Node> {
        let index = self.online.binary_search_by_key(&user, |(user, _)| *user).ok()?;
        Some(self.online[index].1)
    }

    fn has_asked(&self, user: u64) -> bool {
        self.asked.as_ref().is_none_or(|asked| asked.binary_search(&user).is_ok())
    }
}

/// The judge of one view, for all rounds of a run.
#[derive(Debug)]
pub struct Judge {
    within: Duration,
    /// Users that the view has contradicted since their last change.
    waiting: HashMap<u64, Waiting>,
    /// In this round: users to be read again.
    pending: Vec<u64>,
    round: ViewRound,
    wrong: BTreeMap<u64, Wrong>,
    /// In this round: judged users, by `2 × is online + the view says online`.
    judged: Vec<(u64, u8)>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The state that the view contradicted; None if it is not a user of the run so far.
    known: Option<Known>,
    /// When the view first contradicted it.
    since: Time,
}

/// The result of comparing one user.
enum Look {
    Agrees,
    Wrong(WrongKind),
    Stranger,
    Pending,
}

impl Judge {
    pub fn new(within: Duration) -> Judge {
        Judge {
            within,
            waiting: HashMap::new(),
            pending: Vec::new(),
            round: ViewRound::default(),
            wrong: BTreeMap::new(),
            judged: Vec::new(),
        }
    }

    /// Starts a round with a reading of all users, and their states after it.
    pub fn begin(&mut self, reading: &Reading, known: &Snapshot) {
        self.pending.clear();
        self.wrong.clear();
        self.judged.clear();
        self.round = ViewRound {
            twice: reading.twice,
            strangers: reading.strangers,
            unknown: reading.unknown.clone(),
            ..ViewRound::default()
        };
        let mut said = reading.online.iter().copied().peekable();
        for (user, packed) in &known.users {
            while let Some((other, node)) = said.next_if(|(other, _)| other < user) {
                self.take(other, None, Some(node), reading);
            }
            let node = said.next_if(|(other, _)| other == user).map(|(_, node)| node);
            self.take(*user, Some(packed.known()), node, reading);
        }
        for (other, node) in said {
            self.take(other, None, Some(node), reading);
        }
    }

    /// Compares the pending users with a second reading.
    pub fn again(&mut self, reading: &Reading, known: &Snapshot) {
        for user in std::mem::take(&mut self.pending) {
            match reading.has_asked(user) {
                true => self.take(user, known.of(user), reading.says(user), reading),
                false => self.pending.push(user),
            }
        }
    }

    /// Users to be read again, in ascending order.
    pub fn pending(&self) -> &[u64] {
        &self.pending
    }

    /// Ends the round. Pending users stay undecided.
    pub fn end(&mut self) -> ViewRound {
        self.round.undecided = self.pending.len() as u64;
        self.round.wrong = self.wrong.values().take(WRONG_MAX).cloned().collect();
        self.judged.sort_unstable();
        std::mem::take(&mut self.round)
    }

    /// Skips this round, because the view could not be read.
    pub fn skip(&mut self) {
        self.pending.clear();
        self.judged.clear();
    }

    fn take(&mut self, user: u64, known: Option<Known>, said: Option<Node>, reading: &Reading) {
        match self.look(user, known, said, reading) {
            Look::Agrees => {
                self.round.compared += 1;
                self.round.agree += 1;
                self.settle(user, known, reading);
                self.judge(user, known, said);
            }
            Look::Wrong(what) => {
                self.round.compared += u64::from(what != WrongKind::WrongNode);
                match what {
                    WrongKind::FalseOnline => self.round.false_online += 1,
                    WrongKind::FalseOffline => self.round.false_offline += 1,
                    WrongKind::WrongNode => {
                        // The user and the view agree that it is online.
                        self.round.compared += 1;
                        self.round.agree += 1;
                        self.round.wrong_node += 1;
                    }
                }
                let (last, at) = known.map_or_else(Default::default, |it| (it.change, it.at.0));
                self.wrong.insert(user, Wrong { user, what, last, at_ns: at });
                self.judge(user, known, said);
            }
            Look::Stranger => self.round.strangers += 1,
            Look::Pending => self.pending.push(user),
        }
    }

    fn judge(&mut self, user: u64, known: Option<Known>, said: Option<Node>) {
        let online = known.is_some_and(|known| known.is_online());
        self.judged.push((user, 2 * u8::from(online) + u8::from(said.is_some())));
    }

    fn look(
        &mut self,
        user: u64,
        known: Option<Known>,
        said: Option<Node>,
        reading: &Reading,
    ) -> Look {
        let what = match (known, said) {
            (None, None) => return Look::Agrees,
            (None, Some(_)) => None,
            (Some(known), said) => {
                let contradiction = contradiction(&known, said);
                if contradiction.is_none() {
                    // It may have changed after it was read.
                    return match known.settled() > reading.from {
                        true => Look::Pending,
                        false => Look::Agrees,
                    };
                }
                contradiction
            }
        };
        let since = match self.waiting.get(&user) {
            Some(waiting) if waiting.known == known => waiting.since,
            _ => {
                self.waiting.insert(user, Waiting { known, since: reading.to });
                reading.to
            }
        };
        let changed = known.map_or(since, |known| known.settled());
        let is_old = changed.saturating_add(self.within) <= reading.from;
        let is_confirmed = since.saturating_add(CONFIRMED_AFTER) <= reading.from;
        match what {
            _ if !is_old || !is_confirmed => Look::Pending,
            Some(what) => Look::Wrong(what),
            None => Look::Stranger,
        }
    }

    /// The view agrees: measures the time to agree.
    fn settle(&mut self, user: u64, known: Option<Known>, reading: &Reading) {
        let Some(known) = known else { return };
        let was_wrong = match self.waiting.remove(&user) {
            Some(waiting) => waiting.known == Some(known),
            None => false,
        };
        let took = reading.to - known.at;
        if was_wrong || (known.at > Time::ZERO && took <= SOON) {
            let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            self.round.times.entry(known.change).or_default().record(nanos);
        }
    }
}

/// The kind of error if the view is wrong.
fn contradiction(known: &Known, said: Option<Node>) -> Option<WrongKind> {
    match (known.is_online(), said) {
        (true, None) => Some(WrongKind::FalseOffline),
        (false, Some(_)) => Some(WrongKind::FalseOnline),
        (true, Some(node)) if node != 0 && known.node != 0 && node != known.node => {
            Some(WrongKind::WrongNode)
        }
        _ => None,
    }
}

/// All pairs of views whose rounds have ended, compared over the users that were judged in both.
pub fn pairs(judges: &[Judge]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (one, first) in judges.iter().enumerate() {
        for (other, second) in judges.iter().enumerate().skip(one + 1) {
            let mut pair = Pair { one: one as u16, other: other as u16, counts: [0; 8] };
            let mut theirs = second.judged.iter().peekable();
            for (user, own) in &first.judged {
                while theirs.next_if(|(it, _)| it < user).is_some() {}
                if let Some((_, their)) = theirs.next_if(|(it, _)| it == user)
                    && own & 2 == their & 2
                {
                    let index = 4 * (own >> 1) + 2 * (own & 1) + (their & 1);
                    pair.counts[usize::from(index)] += 1;
                }
            }
            pairs.push(pair);
        }
    }
    pairs
}

#[cfg(test)]
mod tests;
