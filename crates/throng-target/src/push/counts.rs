//! The statistics of a push service. Each worker writes its own counts, and readers add them up.

/// Why a packet closes its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// The length exceeds the maximum.
    TooLong,
    /// The length is shorter than the head.
    TooShort,
    UnknownKind,
    /// The body does not match its kind.
    Malformed,
    /// The data of a report is not JSON.
    NotJson,
    /// The first packet is not a bind.
    NotBound,
    /// The connection is already bound.
    BoundAgain,
}

sums! {
    /// Statistics of a push service, as in `/stats`.
    pub(crate) struct PushStats {
        /// All binds, with any reply.
        pub(crate) binds: u64,
        /// Binds confirmed with code 0.
        pub(crate) bound: u64,
        /// Binds with another key than `pk`, rejected with code 1.
        pub(crate) refused_keys: u64,
        /// Binds that Redis did not confirm in time, rejected with code 2.
        pub(crate) unconfirmed: u64,
        /// Binds confirmed with code 0 and then deliberately forgotten.
        pub(crate) forgotten: u64,
        /// Devices that went offline and were deliberately left in Redis.
        pub(crate) uncleared: u64,
        /// Connections closed because their device bound on another one.
        pub(crate) kicked: u64,
        pub(crate) heartbeats: u64,
        pub(crate) reports: u64,
        /// Devices that pushes were addressed to, including those that still wait.
        pub(crate) addressed: u64,
        /// Acknowledgements (`received`) with the sequence number of a push.
        pub(crate) acknowledged: u64,
        /// Acknowledgements with any other number, which have no effect.
        pub(crate) misnumbered: u64,
        /// Connections closed by the server, by reason.
        pub(crate) closed: Closed,
    }
}

sums! {
    pub(crate) struct Closed {
        pub(crate) too_long: u64,
        pub(crate) too_short: u64,
        pub(crate) unknown_kind: u64,
        pub(crate) malformed: u64,
        pub(crate) not_json: u64,
        pub(crate) not_bound: u64,
        pub(crate) bound_again: u64,
        /// No packet arrived within the idle timeout.
        pub(crate) idle: u64,
    }
}

impl Closed {
    pub(crate) fn count(&mut self, breach: Breach) {
        let count = match breach {
            Breach::TooLong => &mut self.too_long,
            Breach::TooShort => &mut self.too_short,
            Breach::UnknownKind => &mut self.unknown_kind,
            Breach::Malformed => &mut self.malformed,
            Breach::NotJson => &mut self.not_json,
            Breach::NotBound => &mut self.not_bound,
            Breach::BoundAgain => &mut self.bound_again,
        };
        *count += 1;
    }
}
