//! Input that is not RESP2, or exceeds a limit.

use throng_base::Said;
use throng_base::units::format_bytes;

/// The longest line: a status, an error, a number, a length.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;
/// Most nested lists.
pub(super) const DEPTH_MAX: usize = 64;

/// Nothing can be read after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// No reply starts with this byte.
    Mark(u8),
    Foreign(Foreign),
    /// A line ends in LF alone.
    LineEnd,
    /// The type byte of a number or a length is not followed by one.
    Number(u8),
    /// A text is not followed by CR and LF.
    TextEnd,
    /// A reply arrived while no command was waiting for one.
    Unasked,
    LineTooLong,
    TooDeep,
    /// A reply of at least this many bytes.
    TooLarge {
        bytes: u64,
        limit: usize,
    },
}

/// The other protocol of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    Http,
    Tls,
}

impl Foreign {
    /// By the first bytes, of which more may follow.
    pub(super) fn of(begin: &[u8]) -> Option<Foreign> {
        // A TLS alert (RFC 8446, 5.1): its type and the version of the record.
        let known = [(&b"HTTP/"[..], Foreign::Http), (&[21, 3], Foreign::Tls)];
        let is_it =
            |(word, _): &(&[u8], Foreign)| begin.starts_with(word) || word.starts_with(begin);
        known.into_iter().find(is_it).map(|(_, foreign)| foreign)
    }
}

impl Violation {
    pub fn said(&self) -> Said {
        match self {
            Violation::Foreign(Foreign::Http) => {
                say!("the server on this port uses HTTP, not the Redis protocol")
            }
            Violation::Foreign(Foreign::Tls) => {
                say!("the server on this port uses TLS: write `rediss://`")
            }
            Violation::Mark(byte) => {
                let shown = char::from(*byte).escape_default();
                say!("a Redis reply cannot start with `{shown}` (0x{byte:02x})")
            }
            Violation::LineEnd => say!("a line of a Redis reply does not end in CR and LF"),
            Violation::Number(mark) => {
                let mark = char::from(*mark);
                say!("a number is missing after `{mark}` in a Redis reply")
            }
            Violation::TextEnd => say!("CR and LF are missing after a string in a Redis reply"),
            Violation::Unasked => say!("a Redis reply arrived, but no command was sent"),
            Violation::LineTooLong => {
                say!("a line of a Redis reply is longer than {LINE_BYTES_MAX} bytes")
            }
            Violation::TooDeep => {
                say!("the lists of a Redis reply are nested deeper than {DEPTH_MAX} levels")
            }
            Violation::TooLarge { bytes, limit } => {
                let (bytes, limit) = (format_bytes(*bytes as f64), format_bytes(*limit as f64));
                say!("a Redis reply of at least {bytes} exceeds the limit of {limit}")
            }
        }
    }

    /// Whether it is not an error, but exceeds a limit.
    pub fn is_our_limit(&self) -> bool {
        matches!(self, Violation::LineTooLong | Violation::TooDeep | Violation::TooLarge { .. })
    }
}
