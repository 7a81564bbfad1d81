//! The headers of a call.

use std::fmt;
use std::time::Duration;

use super::message::Encoding;

pub const CONTENT_TYPE: &str = "application/grpc";

/// The most digits of a `grpc-timeout`.
const TIMEOUT_MAX: u128 = 99_999_999;

/// A deadline in the format of `grpc-timeout`: at most eight digits and a unit, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    number: u32,
    unit: char,
}

impl Timeout {
    /// In the smallest unit that can express it, limited to the maximum in hours.
    pub fn new(time: Duration) -> Timeout {
        const UNITS: [(u128, char); 6] = [
            (1, 'n'),
            (1_000, 'u'),
            (1_000_000, 'm'),
            (1_000_000_000, 'S'),
            (60_000_000_000, 'M'),
            (3_600_000_000_000, 'H'),
        ];
        let nanos = time.as_nanos();
        let fits = UNITS.iter().map(|(unit, name)| (nanos.div_ceil(*unit), *name));
        let (number, unit) =
            fits.clone().find(|(number, _)| *number <= TIMEOUT_MAX).unwrap_or((TIMEOUT_MAX, 'H'));
        Timeout { number: number as u32, unit }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.unit)
    }
}

/// Calls `each` with the headers of a call in order, except for those of HTTP/2 itself and the
/// metadata: `te`, `content-type`, compression, and the deadline.
pub fn request_fields(
    encoding: Encoding,
    timeout: Option<Duration>,
    each: &mut dyn FnMut(&str, &[u8]),
) {
    if let Some(time) = timeout {
        each("grpc-timeout", Timeout::new(time).to_string().as_bytes());
    }
    each("te", b"trailers");
    each("content-type", CONTENT_TYPE.as_bytes());
    if encoding != Encoding::Identity {
        each("grpc-encoding", encoding.name().as_bytes());
    }
    each("grpc-accept-encoding", b"identity,gzip");
}
