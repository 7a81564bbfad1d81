//! Findings of audits, as recorded: the target's data about the presence of users compared with the
//! generator's, and the target's counts compared with those of the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_base::Said;

use crate::histogram::Histogram;
use crate::merge::Merge as _;
use crate::presence::Change;

/// Maximum number of wrong users named per view.
pub const WRONG_MAX: usize = 64;

/// A round of a presence audit: each view is read once, and users that changed recently are read
/// again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// From the start of the first reading to the last response, without repeated readings.
    pub took_ns: u64,
    /// In the order of the audit's views.
    pub views: Vec<ViewRound>,
    pub pairs: Vec<Pair>,
}

impl Round {
    /// Combines the rounds of several generators, each with its own users. A view that one of them
    /// could not read counts as not read.
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

merged! {
    /// The result of a view in a round.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct ViewRound {
        /// Users that were compared: `agree + false_online + false_offline`.
        pub compared: u64 => Sum,
        pub agree: u64 => Sum,
        /// The view shows the user as online, but it is not.
        pub false_online: u64 => Sum,
        /// The view shows the user as offline, but it is online.
        pub false_offline: u64 => Sum,
        /// Users that changed within `agree_within`, and whose change the view did not show by the
        /// end of the round.
        pub undecided: u64 => Sum,
        /// Users that the view contains more than once.
        pub twice: u64 => Sum,
        /// Users that are online, but on another node than in the view.
        pub wrong_node: u64 => Sum,
        /// Entries that are not users of this run.
        pub strangers: u64 => Sum,
        /// For users that the view showed wrongly after a change: the time in nanoseconds until it
        /// agreed, by the kind of change.
        pub times: BTreeMap<Change, Histogram> => Own,
        /// The first wrong users, by number.
        pub wrong: Vec<Wrong> => Own,
        /// The first entries that are not users.
        pub unknown: Vec<String> => Own,
        /// Set if the view could not be read, so nothing was compared.
        pub trouble: Option<Said> => Own,
    }
}

impl ViewRound {
    fn add(&mut self, other: ViewRound) {
        if let Some(trouble) = self.trouble.take().or_else(|| other.trouble.clone()) {
            *self = ViewRound { trouble: Some(trouble), ..ViewRound::default() };
            return;
        }
        self.merge(&other);
        for (change, times) in &other.times {
            self.times.entry(*change).or_default().merge(times);
        }
        self.wrong.extend(other.wrong);
        self.wrong.sort_by_key(|wrong| wrong.user);
        self.wrong.truncate(WRONG_MAX);
        self.unknown.extend(other.unknown);
    }

    /// Number of users that the view shows wrongly.
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

/// A user that a view shows wrongly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wrong {
    pub user: u64,
    pub what: WrongKind,
    /// The user's last event, and its time.
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

/// Two views of a round compared with the truth, for users that had not changed before either was
/// read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Indexes in the audit.
    pub one: u16,
    pub other: u16,
    /// By `4 × is online + 2 × online in the first view + online in the second view`.
    pub counts: [u64; 8],
}

/// The value of an audit that a threshold applies to.
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
    /// For counts: the difference between the target's count and the nearest possible one.
    Off,
}

impl AuditFigure {
    /// The values that are counts.
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

    /// The word in thresholds and JSON.
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

    /// Whether more is worse.
    pub fn is_bad(self) -> bool {
        !matches!(self, AuditFigure::Compared | AuditFigure::Agree)
    }
}

/// A reading of the target's count, and the range of possible values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// The target's count, minus its count before the load.
    pub said: i64,
    /// The target's count before the load.
    pub before: i64,
    /// What the target had confirmed by then.
    pub least: u64,
    /// The same plus what the target may have processed: failures after sending, and attempts in
    /// flight.
    pub most: u64,
    /// At the end of the run, when nothing is in flight.
    pub is_last: bool,
    /// Set if the count could not be read.
    pub trouble: Option<Said>,
}

impl Entry {
    /// How far the count is below (negative) or above the range.
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
    fn counts_are_off_by_their_distance_to_the_range() {
        let entry = |said| Entry { said, least: 10, most: 12, ..Entry::default() };
        let off: Vec<i64> = [8, 10, 11, 12, 15].map(|said| entry(said).off()).to_vec();
        assert_eq!(off, [-2, 0, 0, 0, 3]);
    }
}
