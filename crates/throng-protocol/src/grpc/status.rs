//! How a call ended (github.com/grpc/grpc, `doc/statuscodes.md`).

use std::fmt;

/// The longest message of a status that is kept.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The codes of gRPC.
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

    pub fn of_number(number: u8) -> Option<Code> {
        Code::ALL.get(usize::from(number)).copied()
    }

    /// As the specification writes it: `DEADLINE_EXCEEDED`.
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

    /// By its name in any case, or by its number.
    pub fn named(text: &str) -> Option<Code> {
        let number = text.parse().ok().and_then(Code::of_number);
        number.or_else(|| Code::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(text)))
    }

    /// What an HTTP status means where a proxy answered and no gRPC status is there
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

    /// What the error code of a RST_STREAM means (`doc/PROTOCOL-HTTP2.md`, "Errors").
    pub fn of_reset(code: u32) -> Code {
        match code {
            7 => Code::Unavailable,
            8 => Code::Cancelled,
            11 => Code::ResourceExhausted,
            12 => Code::PermissionDenied,
            _ => Code::Internal,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a status comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `grpc-status` says it.
    Server,
    /// Made of this HTTP status, since there is no `grpc-status`.
    Http(u16),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    /// The number as it came: unknown ones are [`Code::Unknown`].
    pub number: u32,
    pub message: Box<str>,
    pub origin: Origin,
}

impl Status {
    pub fn is_ok(&self) -> bool {
        self.code == Code::Ok
    }

    /// From the values of `grpc-status` and `grpc-message`; None when the first is not a number.
    pub(super) fn read(status: &[u8], message: &[u8]) -> Option<Status> {
        let digits = std::str::from_utf8(status).ok()?;
        let number: u32 =
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
        let code = u8::try_from(number).ok().and_then(Code::of_number);
        Some(Status {
            code: code.unwrap_or(Code::Unknown),
            number,
            message: percent_decoded(message).into(),
            origin: Origin::Server,
        })
    }

    // sentences
    pub(super) fn of_http(status: u16) -> Status {
        let code = Code::of_http(status);
        let message = match status {
            200 => "the response has no gRPC status".to_owned(),
            _ => format!("HTTP status {status} without a gRPC status"),
        };
        let number = u32::from(code.number());
        Status { code, number, message: message.into(), origin: Origin::Http(status) }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.is_empty() {
            true => f.write_str(self.code.name()),
            false => write!(f, "{}: {}", self.code, self.message),
        }
    }
}

/// Text with `%41` for bytes. What is no escape stays as it is, what is not UTF-8 is replaced.
fn percent_decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len().min(MESSAGE_BYTES_MAX));
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        if bytes.len() == MESSAGE_BYTES_MAX {
            break;
        }
        let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
