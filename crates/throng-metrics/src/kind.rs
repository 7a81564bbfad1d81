//! The kind of a row, and what follows from it: whether it is in the sum of all steps, shares and
//! thresholds without a subject, and the table it appears in. The words of run directories are
//! converted to kinds only when they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::TrendUnit;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $table:ident $(, $trait:ident)*;)*) => {
        /// The kind of a step: the scenario's word for it, or what throng itself counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum StepKind {
            $($(#[$doc])* $name,)*
            /// The word of a kind unknown to this version; empty for a sum of several steps and for
            /// a step without a name. It counts as an attempt.
            Other(&'static str),
        }

        impl StepKind {
            /// All known kinds.
            pub const ALL: &'static [StepKind] = &[$(StepKind::$name,)*];

            /// The word of the language, which thresholds use for all steps of the kind.
            pub const fn word(self) -> &'static str {
                match self {
                    $(StepKind::$name => $word,)*
                    StepKind::Other(word) => word,
                }
            }

            /// The table of the report that contains its rows.
            pub const fn table(self) -> Table {
                match self {
                    $(StepKind::$name => Table::$table,)*
                    StepKind::Other(_) => Table::Steps,
                }
            }

            const fn traits(self) -> Traits {
                match self {
                    $(StepKind::$name => Traits { $($trait: true,)* ..Traits::NONE },)*
                    StepKind::Other(_) => Traits { attempt: true, timed: true, ..Traits::NONE },
                }
            }
        }
    };
}

// The table, then the properties of the kind.
kinds! {
    Http, "http", Steps, attempt, timed, asked, request, http;
    Grpc, "grpc", Steps, attempt, timed, asked, request, http;
    Connect, "connect", Steps, attempt, timed, asked, idle;
    Secure, "secure", Steps, attempt, timed, asked, idle;
    Send, "send", Steps, attempt, timed, message;
    Expect, "expect", Steps, attempt, timed, message;
    Request, "request", Steps, attempt, timed, asked, request, message;
    Publish, "publish", Steps, attempt, timed, asked, message;
    Subscribe, "subscribe", Steps, attempt, timed, asked;
    Unsubscribe, "unsubscribe", Steps, attempt, timed, asked;
    Redis, "redis", Steps, attempt, timed, asked, request, message;
    Sql, "sql", Steps, attempt, timed, asked, request;
    Stay, "stay", Steps, attempt, idle;
    Heartbeat, "heartbeat", Steps, attempt, timed, idle;
    /// Unsolicited messages of the target, which are only counted.
    Message, "message", Pushed, timed, message;
    /// Deliveries of the ledger's messages.
    Delivery, "delivery", Elsewhere, timed, message;
    /// Bytes that violate the declared protocol: their message is unknown.
    Broken, "broken", Elsewhere;
    /// Expressions outside other steps (`set`, `if`, `think`, …) that failed. The row exists only
    /// if one failed.
    Expression, "expression", Steps, attempt, timed;
    /// The nested steps are attempts themselves, and must not count twice.
    Transaction, "transaction", Transactions, timed;
    /// Users wait for each other; nothing is sent to the target.
    Rendezvous, "rendezvous", Steps, timed;
    /// Counters of the scenario.
    Counter, "counter", Own;
    /// Trends of the scenario.
    Trend, "trend", Own;
}

/// The table of a kind's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Steps,
    Transactions,
    Pushed,
    Own,
    /// In tables with other content: deliveries, errors.
    Elsewhere,
}

/// The properties of a kind.
struct Traits {
    attempt: bool,
    timed: bool,
    asked: bool,
    request: bool,
    message: bool,
    idle: bool,
    http: bool,
}

impl Traits {
    const NONE: Traits = Traits {
        attempt: false,
        timed: false,
        asked: false,
        request: false,
        message: false,
        idle: false,
        http: false,
    };
}

/// A row of the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepInfo {
    pub name: String,
    pub kind: StepKind,
    /// By name; steps with the same name and kind but other labels have rows of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// For a trend: the unit of its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<TrendUnit>,
}

impl StepInfo {
    /// A row without labels.
    pub fn new(name: impl Into<String>, kind: StepKind) -> StepInfo {
        StepInfo { name: name.into(), kind, ..StepInfo::default() }
    }
}

words! {
    /// Steps that run once.
    OncePart {
        /// Runs before the load, which starts only if it succeeds.
        Setup, "setup";
        /// Runs after the load, however the load ended.
        Teardown, "teardown";
    }
}

impl StepKind {
    /// For a sum of several kinds, or an unknown step.
    pub const NONE: StepKind = StepKind::Other("");

    /// Whether each execution of the step, with all its tries, is an attempt. Defines the row of
    /// all attempts, error shares, thresholds without a subject, phases and the live line.
    pub const fn is_attempt(self) -> bool {
        self.traits().attempt
    }

    /// Whether its time is a latency. The duration of a stay is not.
    pub const fn is_timed(self) -> bool {
        self.traits().timed
    }

    /// Whether it sends a request and receives a response, so that a service time exists in
    /// addition to the response time.
    pub const fn is_asked(self) -> bool {
        self.traits().asked
    }

    /// Whether reports call an attempt a request.
    pub const fn is_request(self) -> bool {
        self.traits().request
    }

    /// Whether it sends, receives or handles messages.
    pub const fn is_message(self) -> bool {
        self.traits().message
    }

    /// Whether it is an HTTP request, which has a first byte and can be sent again.
    pub const fn is_http(self) -> bool {
        self.traits().http
    }

    /// Whether a user that does nothing else only keeps its connection open.
    pub const fn is_idle(self) -> bool {
        self.traits().idle
    }
}

impl From<&str> for StepKind {
    /// From the word in a run directory.
    fn from(word: &str) -> StepKind {
        static OTHERS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        if let Some(known) = StepKind::ALL.iter().find(|kind| kind.word() == word) {
            return *known;
        }
        // Stored permanently, each word once, so that a kind is `Copy`.
        let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = others.get(word) {
            return StepKind::Other(other);
        }
        let word: &'static str = Box::leak(word.into());
        others.insert(word);
        StepKind::Other(word)
    }
}

impl Default for StepKind {
    fn default() -> StepKind {
        StepKind::NONE
    }
}

impl Serialize for StepKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for StepKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StepKind, D::Error> {
        Ok(String::deserialize(deserializer)?.as_str().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_recorded_as_its_word_even_if_unknown() {
        for kind in StepKind::ALL {
            let text = serde_json::to_string(kind).unwrap();
            assert_eq!(text, format!("\"{}\"", kind.word()));
            assert_eq!(serde_json::from_str::<StepKind>(&text).unwrap(), *kind);
        }
        let read = |text: &str| serde_json::from_str::<StepKind>(text).unwrap();
        let [one, other] = [read("\"quic\""), read("\"quic\"")];
        assert_eq!((one, one.word(), one.is_attempt()), (other, "quic", true));
        assert_eq!(serde_json::to_string(&one).unwrap(), "\"quic\"");
        assert_eq!(read("\"\""), StepKind::NONE);
        assert_eq!(StepKind::default().word(), "");
    }

    #[test]
    fn kinds_with_requests_are_attempts() {
        for kind in StepKind::ALL {
            let is_more = kind.is_asked() || kind.is_request() || kind.is_idle();
            assert!(kind.is_attempt() || !is_more, "{kind:?}");
            assert!(!kind.is_attempt() || kind.table() == Table::Steps, "{kind:?}");
        }
    }
}
