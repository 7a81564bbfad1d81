//! Types of values: those that functions accept and expressions return.

use throng_base::Said;

/// A set of types: the types that a function accepts, or that an expression can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u16);

impl Types {
    pub(crate) const NULL: Types = Types(1);
    pub(crate) const BOOL: Types = Types(2);
    pub(crate) const INT: Types = Types(4);
    pub(crate) const FLOAT: Types = Types(8);
    pub(crate) const TEXT: Types = Types(16);
    pub(crate) const BYTES: Types = Types(32);
    pub(crate) const LIST: Types = Types(64);
    pub(crate) const MAP: Types = Types(128);
    pub(crate) const ANY: Types = Types(255);
    pub(crate) const NUMBER: Types = Types(4 | 8);
    /// Whole numbers, also in the form `3.0`; the bit beyond the types marks it.
    pub(crate) const WHOLE: Types = Types(4 | 8 | 256);
    pub(crate) const OCTETS: Types = Types(16 | 32);
    pub(crate) const TEXT_OR_LIST: Types = Types(16 | 64);
    pub(crate) const SIZED: Types = Types(16 | 32 | 64 | 128);
    pub(crate) const NUMBER_OR_LIST: Types = Types(4 | 8 | 64);

    pub(crate) fn union(self, other: Types) -> Types {
        Types((self.0 | other.0) & Types::ANY.0)
    }

    /// Whether a value of these types can have one of `others`.
    pub(crate) fn may_be(self, others: Types) -> bool {
        self.0 & others.0 & Types::ANY.0 != 0
    }

    /// The name of the set in messages.
    pub(crate) fn name(self) -> Said {
        match self {
            Types::NULL => say!("null"),
            Types::BOOL => say!("true or false"),
            Types::INT | Types::WHOLE => say!("a whole number"),
            Types::FLOAT | Types::NUMBER => say!("a number"),
            Types::TEXT => say!("text"),
            Types::BYTES => say!("bytes"),
            Types::LIST => say!("a list"),
            Types::MAP => say!("a map"),
            Types::OCTETS => say!("text or bytes"),
            Types::TEXT_OR_LIST => say!("text or a list"),
            Types::NUMBER_OR_LIST => say!("numbers or a list of numbers"),
            Types::SIZED => say!("text, bytes, a list or a map"),
            _ => say!("a value"),
        }
    }
}
