//! Decides who is right: a pure function of what a view says and what throng knows about users.
//!
//! A view that was read from `from` to `to` may contradict a user for three reasons: it is wrong,
//! it has not heard of a change yet, or the user changed while it was read. Only a user whose last
//! change is older than `within` can be wrong, and only if the view contradicts it in two looks
//! that are at least [`CONFIRMED_AFTER`] apart, with no change between: a login that the view has
//! heard of and whose answer is on its way looks like an error in one look. All others are pending,
//! and are asked for again.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use throng_base::Time;
use throng_metrics::audit::{Pair, ViewRound, WRONG_MAX, Wrong, WrongKind};
use throng_metrics::presence::{Known, Node, Snapshot};

/// Between the two looks that make a user wrong. Logins take less.
pub const CONFIRMED_AFTER: Duration = Duration::from_secs(1);
/// A view that agrees at first sight tells the time to agree only so soon after the change.
const SOON: Duration = Duration::from_secs(1);

/// What a view said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// When the first request was sent, and when the last answer had come.
    pub from: Time,
    pub to: Time,
    /// Who is online, in ascending order, each once, and where.
    pub online: Vec<(u64, Node)>,
    /// It was asked for these alone, in ascending order; None: for all.
    pub asked: Option<Vec<u64>>,
    /// Users that it lists more than once.
    pub twice: u64,
    /// Entries whose names are of no user, and the first few of them.
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

/// The judge of one view, through all rounds of a run.
#[derive(Debug)]
pub struct Judge {
    within: Duration,
    /// Users that the view has contradicted, each since its last change.
    waiting: HashMap<u64, Waiting>,
    /// Of this round: users that are asked for again.
    pending: Vec<u64>,
    round: ViewRound,
    wrong: BTreeMap<u64, Wrong>,
    /// Of this round: users that were judged, by `2 × is online + the view says online`.
    judged: Vec<(u64, u8)>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// As it was when the view contradicted it; None: not a user of the run so far.
    known: Option<Known>,
    /// When the view first contradicted that.
    since: Time,
}

/// What a look at one user tells.
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

    /// A round begins with a reading of all users, and what was known of them after it.
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

    /// The pending users were asked for again.
    pub fn again(&mut self, reading: &Reading, known: &Snapshot) {
        for user in std::mem::take(&mut self.pending) {
            match reading.has_asked(user) {
                true => self.take(user, known.of(user), reading.says(user), reading),
                false => self.pending.push(user),
            }
        }
    }

    /// Users that are to be asked for again, in ascending order.
    pub fn pending(&self) -> &[u64] {
        &self.pending
    }

    /// Ends the round. Users that are still pending stay undecided.
    pub fn end(&mut self) -> ViewRound {
        self.round.undecided = self.pending.len() as u64;
        self.round.wrong = self.wrong.values().take(WRONG_MAX).cloned().collect();
        self.judged.sort_unstable();
        std::mem::take(&mut self.round)
    }

    /// Leaves out this round, because the view could not be read.
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
                        // It is online, as the view says.
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

    /// The view agrees: how long did it take?
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

/// What is wrong if the view is.
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

/// All pairs of the views whose round has just ended, over the users that were judged in both.
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
