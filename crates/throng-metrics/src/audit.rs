//! What audits found: what the target says of the presence of users against what the generator
//! knows, and what its books say against what was counted. As recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_base::Said;

use crate::histogram::Histogram;
use crate::presence::Change;

/// The first so many wrong users of a view are named.
pub const WRONG_MAX: usize = 64;

/// A round of an audit of presence: every view was read once, and users that had only just changed
/// were asked for again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// From the start of the first reading to the last answer, without what was asked again.
    pub took_ns: u64,
    /// In the order of the audit's views.
    pub views: Vec<ViewRound>,
    pub pairs: Vec<Pair>,
}

impl Round {
    /// Rounds of generators, each of which has judged its own users, as one of all users. A view
    /// that one of them could not read was not read.
    pub fn sum(parts: impl IntoIterator<Item = Round>) -> Round {
        let mut parts = parts.into_iter();
        let mut sum = parts.next().unwrap_or_default();
        for part in parts {
            sum.took_ns = sum.took_ns.max(part.took_ns);
            for (view, own) in sum.views.iter_mut().zip(part.views) {
                view.add(own);
            }
            for (pair, own) in sum.pairs.iter_mut().zip(part.pairs) {
                pair.counts.iter_mut().zip(own.counts).for_each(|(sum, own)| *sum += own);
            }
        }
        sum
    }
}

/// What a view said in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewRound {
    /// Users that were judged: `agree + false_online + false_offline`.
    pub compared: u64,
    pub agree: u64,
    /// The view says online, and the user is not.
    pub false_online: u64,
    /// The view says offline, and the user is online.
    pub false_offline: u64,
    /// Users that changed within `agree_within`, and of which the view had not heard when the
    /// round ended.
    pub undecided: u64,
    /// Users that the view lists more than once.
    pub twice: u64,
    /// Users that are online as the view says, and on another node.
    pub wrong_node: u64,
    /// Entries that are no user of this run.
    pub strangers: u64,
    /// Of users that the view contradicted after a change, the time until it agreed, in
    /// nanoseconds: by the kind of change.
    pub times: BTreeMap<Change, Histogram>,
    /// The first ones by their numbers.
    pub wrong: Vec<Wrong>,
    /// The first few that are no users.
    pub unknown: Vec<String>,
    /// The view could not be read: nothing was judged.
    pub trouble: Option<Said>,
}

impl ViewRound {
    fn add(&mut self, other: ViewRound) {
        if let Some(trouble) = self.trouble.take().or(other.trouble) {
            *self = ViewRound { trouble: Some(trouble), ..ViewRound::default() };
            return;
        }
        for (sum, own) in [
            (&mut self.compared, other.compared),
            (&mut self.agree, other.agree),
            (&mut self.false_online, other.false_online),
            (&mut self.false_offline, other.false_offline),
            (&mut self.undecided, other.undecided),
            (&mut self.twice, other.twice),
            (&mut self.wrong_node, other.wrong_node),
            (&mut self.strangers, other.strangers),
        ] {
            *sum += own;
        }
        for (change, times) in &other.times {
            self.times.entry(*change).or_default().merge(times);
        }
        self.wrong.extend(other.wrong);
        self.wrong.sort_by_key(|wrong| wrong.user);
        self.wrong.truncate(WRONG_MAX);
        self.unknown.extend(other.unknown);
    }

    /// Users of which it says what is not so.
    pub fn wrong_users(&self) -> u64 {
        self.false_online + self.false_offline + self.wrong_node
    }

    pub fn count(&self, figure: AuditFigure) -> u64 {
        match figure {
            AuditFigure::Compared => self.compared,
            AuditFigure::Agree => self.agree,
            AuditFigure::FalseOnline => self.false_online,
            AuditFigure::FalseOffline => self.false_offline,
            AuditFigure::Undecided => self.undecided,
            AuditFigure::Twice => self.twice,
            AuditFigure::WrongNode => self.wrong_node,
            AuditFigure::Strangers => self.strangers,
            AuditFigure::TimeToAgree | AuditFigure::Off => 0,
        }
    }
}

/// A user of which a view says what is not so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wrong {
    pub user: u64,
    pub what: WrongKind,
    /// The last event of the user, and when it was.
    pub last: Change,
    pub at_ns: u64,
}

words! {
    WrongKind {
        FalseOnline, "false-online", "false online";
        FalseOffline, "false-offline", "false offline";
        WrongNode, "wrong-node", "wrong node";
    }
}

/// Two views of a round by what is so: users that had not changed before either was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// By their places in the audit.
    pub one: u16,
    pub other: u16,
    /// By `4 × is online + 2 × the first says online + the second says online`.
    pub counts: [u64; 8],
}

/// Which figure of an audit a threshold looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditFigure {
    Compared,
    Agree,
    FalseOnline,
    FalseOffline,
    Undecided,
    Twice,
    WrongNode,
    Strangers,
    TimeToAgree,
    /// Of books: by how much they say too little or too much.
    Off,
}

impl AuditFigure {
    /// Those that are counts.
    pub const COUNTS: [AuditFigure; 8] = [
        AuditFigure::Compared,
        AuditFigure::Agree,
        AuditFigure::FalseOnline,
        AuditFigure::FalseOffline,
        AuditFigure::Undecided,
        AuditFigure::Twice,
        AuditFigure::WrongNode,
        AuditFigure::Strangers,
    ];

    /// The word of thresholds and JSON.
    pub fn word(self) -> &'static str {
        match self {
            AuditFigure::Compared => "compared",
            AuditFigure::Agree => "agree",
            AuditFigure::FalseOnline => "false_online",
            AuditFigure::FalseOffline => "false_offline",
            AuditFigure::Undecided => "undecided",
            AuditFigure::Twice => "twice",
            AuditFigure::WrongNode => "wrong_node",
            AuditFigure::Strangers => "strangers",
            AuditFigure::TimeToAgree => "time_to_agree",
            AuditFigure::Off => "off",
        }
    }

    /// More of it is worse.
    pub fn is_bad(self) -> bool {
        !matches!(self, AuditFigure::Compared | AuditFigure::Agree)
    }
}

/// What the books of the target said, and what they may say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// What they said, less what they said before the load.
    pub said: i64,
    /// What they said before the load.
    pub before: i64,
    /// What the target has confirmed by then.
    pub least: u64,
    /// The same with what it may have done: what failed after it was sent, and what is in flight.
    pub most: u64,
    /// At the end of the run, when nothing is in flight.
    pub is_last: bool,
    /// They could not be read.
    pub trouble: Option<Said>,
}

impl Entry {
    /// By how much they say too little (negative) or too much.
    pub fn off(&self) -> i64 {
        let (least, most) = (self.least as i64, self.most as i64);
        match self.said {
            said if said < least => said - least,
            said if said > most => said - most,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_are_off_by_what_lies_outside() {
        let entry = |said| Entry { said, least: 10, most: 12, ..Entry::default() };
        let off: Vec<i64> = [8, 10, 11, 12, 15].map(|said| entry(said).off()).to_vec();
        assert_eq!(off, [-2, 0, 0, 0, 3]);
    }
}
