//! What a row of the report is about, and all that follows from it for figures: sums of all steps,
//! shares, thresholds without a subject, and the table that a row stands in. Texts of records turn
//! into a kind where they are read, and nowhere else.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $table:ident $(, $trait:ident)*;)*) => {
        /// What a step is: the word of the language for it, or what throng itself counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum StepKind {
            $($(#[$doc])* $name,)*
            /// A kind that this version does not know, by its word; empty of a sum of several
            /// steps and of a step that the record does not name. It counts as an attempt.
            Other(&'static str),
        }

        impl StepKind {
            /// All that this version knows.
            pub const ALL: &'static [StepKind] = &[$(StepKind::$name,)*];

            /// The word of the language, which thresholds use for all steps of the kind.
            pub const fn word(self) -> &'static str {
                match self {
                    $(StepKind::$name => $word,)*
                    StepKind::Other(word) => word,
                }
            }

            /// The table of the report that its rows stand in.
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

// The table, then what holds of the kind.
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
    /// Messages that the target sends and no step asks for: counted, and nothing more.
    Message, "message", Pushed, timed, message;
    /// Messages of the ledger at their receivers: delivered, or lost.
    Delivery, "delivery", Elsewhere, timed, message;
    /// Bytes that break the declared protocol: whose they were is not known.
    Broken, "broken", Elsewhere;
    /// Expressions outside of other steps (`set`, `if`, `think`, …) that had no value. There is a
    /// row of them only when one had none.
    Expression, "expression", Steps, attempt, timed;
    /// The steps inside are attempts of their own: counted together they would count twice.
    Transaction, "transaction", Transactions, timed;
    /// Users wait for each other: nothing is asked of the target.
    Rendezvous, "rendezvous", Steps, timed;
    /// What the scenario counts of its own.
    Counter, "counter", Own;
    /// What the scenario measures of its own.
    Trend, "trend", Own;
}

/// Where the rows of a kind stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Steps,
    Transactions,
    Pushed,
    Own,
    /// In tables with other figures: deliveries, errors.
    Elsewhere,
}

/// What holds of a kind.
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

impl StepKind {
    /// Of a sum of steps of several kinds, or of one that the record does not name.
    pub const NONE: StepKind = StepKind::Other("");

    /// Whether each doing of the step, with all its tries, is an attempt. The one rule for the row
    /// of all attempts, shares of failures, thresholds without a subject, phases and the live line.
    pub const fn is_attempt(self) -> bool {
        self.traits().attempt
    }

    /// Whether its time is a latency. How long a user stays is none.
    pub const fn is_timed(self) -> bool {
        self.traits().timed
    }

    /// Whether something is asked and answered, so that there is a service time beside the response
    /// time.
    pub const fn is_asked(self) -> bool {
        self.traits().asked
    }

    /// Whether an attempt at it is a request, in the words of a report.
    pub const fn is_request(self) -> bool {
        self.traits().request
    }

    /// Whether it sends messages, waits for them, or is what is made of them.
    pub const fn is_message(self) -> bool {
        self.traits().message
    }

    /// Whether it is a request over HTTP: it has a first byte, and can be sent again.
    pub const fn is_http(self) -> bool {
        self.traits().http
    }

    /// Whether a user that does nothing else only holds its connection.
    pub const fn is_idle(self) -> bool {
        self.traits().idle
    }
}

impl From<&str> for StepKind {
    /// That of a record.
    fn from(word: &str) -> StepKind {
        static OTHERS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        if let Some(known) = StepKind::ALL.iter().find(|kind| kind.word() == word) {
            return *known;
        }
        // Kept for good, each word once, so that a kind is copied as the numbers beside it are.
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
    fn a_kind_is_its_word_in_a_record_also_one_of_a_newer_version() {
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
    fn what_is_asked_and_what_is_a_request_is_an_attempt() {
        for kind in StepKind::ALL {
            let is_more = kind.is_asked() || kind.is_request() || kind.is_idle();
            assert!(kind.is_attempt() || !is_more, "{kind:?}");
            assert!(!kind.is_attempt() || kind.table() == Table::Steps, "{kind:?}");
        }
    }
}
