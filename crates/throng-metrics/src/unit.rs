//! Units of figures.

/// In what a figure and the value it is compared with are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    PerSecond,
    /// 0 to 1.
    Share,
    Number,
    /// A number with decimals.
    Decimal,
    Bytes,
    BytesPerSecond,
}

impl Unit {
    /// The word that records carry.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "per_s",
            Unit::Share => "share",
            Unit::Number | Unit::Decimal => "number",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes_per_s",
        }
    }
}
