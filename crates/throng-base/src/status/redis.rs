//! Errors of Redis: their first words, whom they blame, and their numbers among the statuses of all
//! protocols.

use super::{Beside, Blame, Meaning};
use Blame::{Scenario, Target, TargetOrScenario};

/// The status of the first error among those of all protocols.
const STATUSES_BEGIN: u16 = 13_000;

/// What an error is counted as whose word is none of these.
const OTHER: &str = "ERR";

/// In the order of their statuses: new ones are added at the end.
#[rustfmt::skip]
const ERRORS: [(&str, Blame); 27] = [
    (OTHER, TargetOrScenario),
    // A cluster has the key elsewhere; redirects are not followed.
    ("ASK", Scenario),
    ("BUSY", Target),
    ("BUSYGROUP", Scenario),
    ("BUSYKEY", Scenario),
    ("CLUSTERDOWN", Target),
    ("CROSSSLOT", Scenario),
    ("DENIED", Target),
    ("EXECABORT", Scenario),
    ("INPROG", Target),
    ("LOADING", Target),
    ("MASTERDOWN", Target),
    ("MISCONF", Target),
    ("MOVED", Scenario),
    ("NOAUTH", Scenario),
    ("NOGROUP", Scenario),
    ("NOPERM", TargetOrScenario),
    ("NOREPLICAS", Target),
    ("NOSCRIPT", Scenario),
    ("NOTBUSY", Scenario),
    ("OOM", Target),
    ("READONLY", TargetOrScenario),
    ("TRYAGAIN", Target),
    ("UNBLOCKED", Target),
    ("UNKILLABLE", Target),
    ("WRONGPASS", Scenario),
    ("WRONGTYPE", Scenario),
];

/// The status of an error with this first word.
pub fn status(word: &[u8]) -> u16 {
    let known = ERRORS.iter().position(|(known, _)| known.as_bytes() == word);
    STATUSES_BEGIN + known.unwrap_or(0) as u16
}

/// What such a status means: the first word of the error.
pub fn meaning(status: u16) -> Option<Meaning> {
    let (word, blame) = *ERRORS.get(usize::from(status.checked_sub(STATUSES_BEGIN)?))?;
    Some(Meaning { word, beside: Beside::Nothing, blame })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_known_by_their_first_words() {
        assert!(ERRORS.is_sorted_by_key(|(word, _)| if *word == OTHER { "" } else { word }));
        let error = |status| meaning(status).map(|error| (error.word, error.blame));
        assert_eq!(error(status(b"MOVED")), Some(("MOVED", Scenario)));
        assert_eq!(error(status(b"OOM")), Some(("OOM", Target)));
        assert_eq!(error(status(b"MYMODULE")), Some((OTHER, TargetOrScenario)));
        assert_eq!([error(12_999), error(13_027)], [None, None]);
    }
}
