//! gRPC status codes (github.com/grpc/grpc, `doc/statuscodes.md`): scenarios name them, calls end
//! with them, and reports show them.

use std::fmt;

use super::{Beside, Blame, Meaning};

/// The recorded number of [`Code::Ok`].
const STATUSES_BEGIN: u16 = 10_000;

/// A gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    pub const ALL: [Code; 17] = [
        Code::Ok,
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its recorded number, far above those of HTTP and WebSocket closes.
    pub fn status(self) -> u16 {
        STATUSES_BEGIN + u16::from(self.number())
    }

    /// The code of a recorded number.
    pub fn of_status(status: u16) -> Option<Code> {
        let number = status.checked_sub(STATUSES_BEGIN)?;
        u8::try_from(number).ok().and_then(Code::of_number)
    }

    /// Codes of wrong or forbidden requests correspond to a 4xx of HTTP.
    fn blame(self) -> Blame {
        use Code::{AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, OutOfRange};
        use Code::{PermissionDenied, Unauthenticated, Unimplemented};
        let wrong = [InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, OutOfRange];
        let refused = [PermissionDenied, Unauthenticated, Unimplemented];
        match wrong.contains(&self) || refused.contains(&self) {
            true => Blame::TargetOrScenario,
            false => Blame::Target,
        }
    }

    pub fn of_number(number: u8) -> Option<Code> {
        Code::ALL.get(usize::from(number)).copied()
    }

    /// As in the specification: `DEADLINE_EXCEEDED`.
    pub fn name(self) -> &'static str {
        match self {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// From its name in any case, or its number.
    pub fn named(text: &str) -> Option<Code> {
        let number = text.parse().ok().and_then(Code::of_number);
        number.or_else(|| Code::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(text)))
    }

    /// The code for the HTTP status of a proxy's response without a gRPC status
    /// (`doc/http-grpc-status-mapping.md`).
    pub fn of_http(status: u16) -> Code {
        match status {
            400 => Code::Internal,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::Unimplemented,
            429 | 502 | 503 | 504 => Code::Unavailable,
            _ => Code::Unknown,
        }
    }
}

/// The meaning of a recorded number.
pub fn meaning(status: u16) -> Option<Meaning> {
    let code = Code::of_status(status)?;
    let beside = Beside::Number(code.number());
    Some(Meaning { word: code.name(), beside, blame: code.blame() })
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
