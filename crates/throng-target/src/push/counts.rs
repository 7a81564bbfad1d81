//! The counts of a push service. Each worker writes its own counts, readers add them up.

/// Why a packet closes its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// A length above the maximum.
    TooLong,
    /// A length below that of the header.
    TooShort,
    UnknownKind,
    /// A body that does not match its kind.
    Malformed,
    /// A report whose data is not JSON.
    NotJson,
    /// Another packet preceded the bind.
    NotBound,
    /// A bind on a bound connection.
    BoundAgain,
}

sums! {
    /// The counts of a push service, as `/stats` shows them.
    pub(crate) struct PushStats {
        /// All binds, with any reply.
        pub(crate) binds: u64,
        /// Binds with reply code 0.
        pub(crate) bound: u64,
        /// Binds with a key other than `pk`, reply code 1.
        pub(crate) refused_keys: u64,
        /// Binds that Redis did not confirm in time, reply code 2.
        pub(crate) unconfirmed: u64,
        /// Binds with reply code 0 that were then forgotten by an injected fault.
        pub(crate) forgotten: u64,
        /// Devices that went offline and were left in Redis by an injected fault.
        pub(crate) uncleared: u64,
        /// Connections that were closed because their device bound on another one.
        pub(crate) kicked: u64,
        pub(crate) heartbeats: u64,
        pub(crate) reports: u64,
        /// Devices that pushes were for, including those whose push still waits.
        pub(crate) addressed: u64,
        /// Acknowledgements of pushes: `received` with the sequence number of the push.
        pub(crate) acknowledged: u64,
        /// The same with any other number: they acknowledge no push.
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
        /// No packet arrived for the idle timeout.
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
