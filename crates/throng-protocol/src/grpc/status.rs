//! How a call ended (github.com/grpc/grpc, `doc/statuscodes.md`).

use throng_base::Said;
use throng_base::grpc::Code;

/// Longest status message that is kept.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The origin of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `grpc-status`.
    Server,
    /// Derived from this HTTP status, because `grpc-status` is missing.
    Http(u16),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    /// The number as received: unknown ones are [`Code::Unknown`].
    pub number: u32,
    pub message: Said,
    pub origin: Origin,
}

impl Status {
    pub fn is_ok(&self) -> bool {
        self.code == Code::Ok
    }

    /// From the values of `grpc-status` and `grpc-message`; `None` if the first is not a number.
    pub(super) fn read(status: &[u8], message: &[u8]) -> Option<Status> {
        let digits = std::str::from_utf8(status).ok()?;
        let number: u32 =
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
        let code = u8::try_from(number).ok().and_then(Code::of_number);
        Some(Status {
            code: code.unwrap_or(Code::Unknown),
            number,
            message: say!("{}", percent_decoded(message)),
            origin: Origin::Server,
        })
    }

    pub(super) fn of_http(status: u16) -> Status {
        let code = Code::of_http(status);
        let message = match status {
            200 => say!("the response has no gRPC status"),
            _ => say!("HTTP status {status} without a gRPC status"),
        };
        let number = u32::from(code.number());
        Status { code, number, message, origin: Origin::Http(status) }
    }
}

impl Status {
    pub fn said(&self) -> Said {
        match self.message.is_empty() {
            true => say!("{}", self.code),
            false => say!("{}: {}", self.code, self.message),
        }
    }
}

/// Decodes `%41` to a byte. Invalid escapes are unchanged, invalid UTF-8 is replaced.
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
