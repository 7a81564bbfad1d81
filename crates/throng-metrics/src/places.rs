//! Results by address, instance and session, if there are several.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::figures::is_zero;
use crate::histogram::Histogram;

/// The peer of a connection: an address of a target, or of the proxy. A unix socket has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Index of the target in the run.
    pub target: u16,
    pub address: Option<SocketAddr>,
}

merged! {
    /// The results of one address. An attempt begins at the address where it is first sent, or
    /// opens a connection to send it; it ends at the address of its last try. So in a whole run,
    /// all rows together have `begun = count + interrupted`.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct TargetInterval {
        /// The two fields of its [`Place`].
        pub target: u16 => Key,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<SocketAddr> => Key,
        pub begun: u64 => Sum,
        pub count: u64 => Sum,
        pub ok: u64 => Sum,
        #[serde(default, skip_serializing_if = "is_zero")]
        pub interrupted: u64 => Sum,
        /// Like that of steps.
        pub latency: Histogram => Sum,
        pub bytes_in: u64 => Sum,
        pub bytes_out: u64 => Sum,
        pub connections_attempted: u64 => Sum,
        pub connections_opened: u64 => Sum,
        pub connections_failed: u64 => Sum,
        /// Connections that this address refused and another address of the target accepted.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub connections_passed_over: u64 => Sum,
    }
}

impl TargetInterval {
    pub fn new(place: Place) -> TargetInterval {
        TargetInterval { target: place.target, address: place.address, ..TargetInterval::default() }
    }

    pub fn place(&self) -> Place {
        Place { target: self.target, address: self.address }
    }

    pub fn failed(&self) -> u64 {
        self.count.saturating_sub(self.ok)
    }
}

merged! {
    /// Responses of one instance of a target: the server named in a response header. A retried
    /// attempt has a response for each try.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct InstanceInterval {
        /// Index of the target in the run.
        pub target: u16 => Key,
        /// The value of the header; [`InstanceInterval::OTHERS`] for instances after the first
        /// [`INSTANCES_MAX`].
        pub name: String => Key,
        pub count: u64 => Sum,
        #[serde(default, skip_serializing_if = "is_zero")]
        pub failed: u64 => Sum,
        /// Response times.
        pub latency: Histogram => Sum,
    }
}

/// Maximum number of instances of all targets with a separate row.
pub const INSTANCES_MAX: usize = 64;

impl InstanceInterval {
    pub const OTHERS: &str = "…";
}

merged! {
    /// Iterations of one session. Each that begins ends once: in a whole run, `begun = finished +
    /// failed + interrupted`.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct SessionInterval {
        /// Index in the run.
        pub session: u16 => Key,
        pub begun: u64 => Sum,
        pub finished: u64 => Sum,
        /// Given up because a step failed or a connection was lost.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub failed: u64 => Sum,
        /// Interrupted because the user left.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub interrupted: u64 => Sum,
        /// Of the completed ones.
        pub time: Histogram => Sum,
    }
}

keyed! {
    sorted TargetInterval: Place, |row| row.place();
    sorted InstanceInterval: (u16, &'a str), |row| (row.target, &row.name);
    sorted SessionInterval: u16, |row| row.session;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::{Keyed as _, Merge as _};

    #[test]
    fn instances_add_up_by_target_and_name() {
        let row = |target, name: &str, count| {
            let mut latency = Histogram::new();
            latency.record_times(1_000, count);
            let name = name.to_string();
            InstanceInterval { target, name, count, failed: count / 2, latency }
        };
        let mut sum = vec![row(0, "b", 4)];
        sum.merge(&vec![row(1, "a", 2), row(0, "a", 8), row(0, "b", 6)]);
        let seen: Vec<_> =
            sum.iter().map(|row| (row.key(), row.count, row.failed, row.latency.count())).collect();
        assert_eq!(seen, [((0, "a"), 8, 4, 8), ((0, "b"), 10, 5, 10), ((1, "a"), 2, 1, 2)]);
    }

    #[test]
    fn rows_add_up_by_target_and_address() {
        let row = |target: u16, address: Option<&str>, count: u64| {
            let address = address.map(|text| text.parse().unwrap());
            let mut row = TargetInterval::new(Place { target, address });
            (row.begun, row.count, row.ok) = (count + 1, count, count / 2);
            (row.interrupted, row.bytes_in, row.bytes_out) = (1, 10 * count, count);
            row.latency.record_times(1_000, count);
            let connections = [count, count - 1, 1];
            [row.connections_attempted, row.connections_opened, row.connections_failed] =
                connections;
            row.connections_passed_over = 2 * count;
            row
        };
        let (one, two) = (Some("127.0.0.1:80"), Some("127.0.0.2:80"));
        let mut sum = vec![row(0, one, 4)];
        sum.merge(&vec![row(1, None, 2), row(0, two, 8), row(0, one, 6)]);
        let seen = sum.iter().map(|row| (row.target, row.count, row.latency.count()));
        assert_eq!(seen.collect::<Vec<_>>(), [(0, 10, 10), (0, 8, 8), (1, 2, 2)]);
        assert_eq!((sum[0].begun, sum[0].interrupted, sum[0].failed()), (12, 2, 5));
        assert_eq!((sum[0].connections_opened, sum[0].connections_failed), (8, 2));
        assert_eq!(sum[0].connections_passed_over, 20);
        let json = serde_json::to_string(&sum[0]).unwrap();
        assert!(json.starts_with(r#"{"target":0,"address":"127.0.0.1:80","begun":12,"#), "{json}");
        assert_eq!(serde_json::from_str::<TargetInterval>(&json).unwrap(), sum[0]);
        let json = serde_json::to_string(&sum[2]).unwrap();
        assert!(!json.contains("address"), "{json}");
        assert_eq!(serde_json::from_str::<TargetInterval>(&json).unwrap(), sum[2]);
    }

    #[test]
    fn rows_add_up_by_session() {
        let row = |session: u16, finished: u64| {
            let mut time = Histogram::new();
            time.record_times(1_000, finished);
            let (failed, interrupted) = (1, 2);
            SessionInterval { session, begun: finished + 3, finished, failed, interrupted, time }
        };
        let mut sum = vec![row(1, 4)];
        sum.merge(&vec![row(2, 1), row(0, 3), row(1, 6)]);
        let seen = sum.iter().map(|row| (row.session, row.begun, row.time.count()));
        assert_eq!(seen.collect::<Vec<_>>(), [(0, 6, 3), (1, 16, 10), (2, 4, 1)]);
        assert_eq!((sum[1].finished, sum[1].failed, sum[1].interrupted), (10, 2, 4));
    }
}
