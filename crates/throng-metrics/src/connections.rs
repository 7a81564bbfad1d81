//! Connections: which side closed them, and how long they lived.

use serde::{Deserialize, Serialize};

use crate::figures::Connections;
use crate::histogram::Histogram;
use crate::merge::Keyed;

words! {
    /// Which side ended a connection, and how. The word is the name of its counter.
    Ending {
        ClosedByUs, "closed_by_us", "closed by throng";
        ClosedByTarget, "closed_by_target", "closed by the target";
        Reset, "reset", "reset by the target";
        ResetByUs, "reset_by_us", "reset by throng";
        Vanished, "vanished", "silently dropped by throng";
        HalfClosed, "half_closed", "half-closed by throng";
        TimedOut, "timed_out", "timed out";
    }
}

impl Ending {
    /// Its counter.
    pub fn of(self, connections: &mut Connections) -> &mut u64 {
        match self {
            Ending::ClosedByUs => &mut connections.closed_by_us,
            Ending::ClosedByTarget => &mut connections.closed_by_target,
            Ending::Reset => &mut connections.reset,
            Ending::ResetByUs => &mut connections.reset_by_us,
            Ending::Vanished => &mut connections.vanished,
            Ending::HalfClosed => &mut connections.half_closed,
            Ending::TimedOut => &mut connections.timed_out,
        }
    }
}

merged! {
    /// Lifetimes of connections that ended in the same way, from establishment to the end. The rows
    /// of an ending together have as many times as its counter.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct ResidenceInterval {
        pub ended: Ending => Key,
        /// They ended before they were open, because TLS or the first exchange failed. A connect
        /// without a response is included with a lifetime of zero.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub unopened: bool => Key,
        pub time: Histogram => Sum,
    }
}

impl ResidenceInterval {
    /// The times of an ending, in the order of endings.
    pub fn of(rows: &mut Vec<ResidenceInterval>, ended: Ending, unopened: bool) -> &mut Histogram {
        let place = match rows.binary_search_by_key(&(unopened, ended), Keyed::key) {
            Ok(place) => place,
            Err(place) => {
                let row = ResidenceInterval { ended, unopened, time: Histogram::new() };
                rows.insert(place, row);
                place
            }
        };
        &mut rows[place].time
    }
}

keyed! {
    sorted ResidenceInterval: (bool, Ending), |row| (row.unopened, row.ended);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Merge as _;

    #[test]
    fn rows_add_up_by_ending() {
        let row = |ended, unopened, times| {
            let mut time = Histogram::new();
            time.record_times(1_000, times);
            ResidenceInterval { ended, unopened, time }
        };
        let mut sum = Vec::new();
        for (ended, unopened, times) in [
            (Ending::Reset, false, 1),
            (Ending::TimedOut, true, 2),
            (Ending::ClosedByUs, false, 3),
            (Ending::Reset, false, 4),
            (Ending::Reset, true, 5),
        ] {
            sum.merge(&vec![row(ended, unopened, times)]);
        }
        let counts = sum.iter().map(|row| (row.ended, row.unopened, row.time.count()));
        let wanted = [
            (Ending::ClosedByUs, false, 3),
            (Ending::Reset, false, 5),
            (Ending::Reset, true, 5),
            (Ending::TimedOut, true, 2),
        ];
        assert_eq!(counts.collect::<Vec<_>>(), wanted);
        let json = serde_json::to_string(&sum[3]).unwrap();
        assert!(
            json.starts_with(r#"{"ended":"timed_out","unopened":true,"time":[2000,"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<ResidenceInterval>(&json).unwrap(), sum[3]);
    }

    #[test]
    fn every_ending_has_a_counter_with_the_same_word() {
        for ending in Ending::ALL {
            let mut connections = Connections::default();
            *ending.of(&mut connections) += 7;
            assert_eq!(serde_json::to_value(&connections).unwrap()[ending.word()], 7);
            assert_eq!(serde_json::to_value(ending).unwrap(), ending.word());
        }
    }
}
