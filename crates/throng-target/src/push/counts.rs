//! What a push service counts. Each worker writes its own counts, readers add them up.

/// Why a packet closes its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// A length above what a packet may have.
    TooLong,
    /// A length that does not even hold the head.
    TooShort,
    UnknownKind,
    /// A body that is not what its kind says.
    Malformed,
    /// A report whose data is no JSON.
    NotJson,
    /// Something else than a bind came first.
    NotBound,
    /// A bind on a connection that is bound.
    BoundAgain,
}

sums! {
    /// What a push service has done, as `/stats` tells it.
    pub(crate) struct PushStats {
        /// Binds of all kinds, whatever was answered.
        pub(crate) binds: u64,
        /// Binds answered with code 0.
        pub(crate) bound: u64,
        /// Binds with another key than `pk`, answered with code 1.
        pub(crate) refused_keys: u64,
        /// Binds that Redis did not confirm in time, answered with code 2.
        pub(crate) unconfirmed: u64,
        /// Binds answered with code 0 and then forgotten, because the server was told to.
        pub(crate) forgotten: u64,
        /// Devices that went and were left in Redis, because the server was told to.
        pub(crate) uncleared: u64,
        /// Connections closed because their device bound on another one.
        pub(crate) kicked: u64,
        pub(crate) heartbeats: u64,
        pub(crate) reports: u64,
        /// Devices that pushes were for: those who got one and those who still wait.
        pub(crate) addressed: u64,
        /// Acknowledgements of pushes, by `received` with the sequence number of the push.
        pub(crate) acknowledged: u64,
        /// The same with any other number: they acknowledge nothing.
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
        /// No packet came for the idle timeout.
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
