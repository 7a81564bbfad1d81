//! Why something failed: its cause, which determines the responsible side, and a message.

use std::io;

use throng_base::Said;
use throng_metrics::presence::Change;
use throng_metrics::{Cause, Ending};
use throng_protocol::{http1, http2};

use crate::system;

/// The longest excerpt of a response that an example shows.
const SHOWN_BYTES_MAX: usize = 80;

const SPEAKS_TLS: Said = say!("this port speaks TLS: write `https://`, or `wss://`");

/// What is wrong with a response: its cause, and a message that quotes what was found.
pub(crate) type Finding = (Cause, Said);

/// Why a connection did not open.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) detail: Said,
    /// Status of the response, or the close code of a WebSocket.
    pub(crate) status: u16,
    /// Seconds to wait before the next attempt, or 0 without a request to wait. Small, because
    /// users keep failures.
    pub(crate) retry_after_s: u16,
}

impl Failure {
    pub(crate) fn new(cause: Cause, detail: Said) -> Failure {
        Failure { cause, detail, status: 0, retry_after_s: 0 }
    }

    pub(crate) fn finding(&self) -> Finding {
        (self.cause, self.detail.clone())
    }

    /// Adds the failure at another address of the target before this one.
    pub(crate) fn behind(self, before: Failure) -> Failure {
        let Failure { cause, detail, status, retry_after_s } = before;
        Failure { cause, detail: say!("{}; {}", detail, self.detail), status, retry_after_s }
    }
}

impl From<Finding> for Failure {
    fn from((cause, detail): Finding) -> Failure {
        Failure::new(cause, detail)
    }
}

/// Which side ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    ByUs,
    /// By us, in the middle of its work: it says nothing about the target.
    CutOff,
    ByTarget,
    Reset,
    ResetByUs,
    Vanished,
    HalfClosed,
    TimedOut,
}

impl Ended {
    /// The ending that it is counted as, the change that audits report for a user that was online,
    /// and the cause if the end was not intended and nothing more is known.
    fn row(self) -> (Ending, Change, Option<Cause>) {
        match self {
            Ended::ByUs => (Ending::ClosedByUs, Change::Left, None),
            Ended::CutOff => (Ending::ClosedByUs, Change::CutOff, None),
            Ended::ByTarget => (Ending::ClosedByTarget, Change::ClosedByTarget, Some(Cause::Lost)),
            Ended::Reset => (Ending::Reset, Change::Reset, Some(Cause::Reset)),
            Ended::ResetByUs => (Ending::ResetByUs, Change::ResetByUs, None),
            Ended::Vanished => (Ending::Vanished, Change::Vanished, None),
            Ended::HalfClosed => (Ending::HalfClosed, Change::HalfClosed, None),
            Ended::TimedOut => (Ending::TimedOut, Change::TimedOut, Some(Cause::Timeout)),
        }
    }

    pub(crate) fn ending(self) -> Ending {
        self.row().0
    }

    pub(crate) fn change(self) -> Change {
        self.row().1
    }

    pub(crate) fn cause(self) -> Option<Cause> {
        self.row().2
    }
}

pub(crate) fn io_failure(error: &io::Error) -> Failure {
    if let Some(tls) = tls_error(error) {
        let failed = || Failure::new(Cause::TlsFailed, Said::reason(error));
        return client_refused(tls).unwrap_or_else(failed);
    }
    Failure::new(cause_of(error), Said::reason(error))
}

/// An error on an open connection, or on a UDP socket, where each datagram can be refused.
pub(crate) fn lost_failure(error: &io::Error) -> Failure {
    let failure = io_failure(error);
    match failure.cause {
        Cause::ConnectTimeout => Failure { cause: Cause::Timeout, ..failure },
        Cause::ConnectRefused if error.raw_os_error().is_some() => {
            Failure { cause: Cause::Reset, ..failure }
        }
        _ => failure,
    }
}

pub(crate) fn http_failure(error: &http1::HttpError) -> Failure {
    use http1::HttpError as E;
    // A TLS alert (RFC 8446, 5.1): its type and the version of the record.
    if matches!(error, E::NotHttp(begin) if begin.as_bytes().starts_with(&[21, 3])) {
        return Failure::new(Cause::WrongScheme, SPEAKS_TLS);
    }
    let cause = match error {
        E::HeadTooLarge { .. }
        | E::TrailersTooLarge { .. }
        | E::BodyTooLarge { .. }
        | E::ChunkLineTooLong { .. } => Cause::TooLarge,
        E::CutOffInHead { .. } | E::CutOffInBody { .. } => Cause::ClosedEarly,
        _ => Cause::Malformed,
    };
    Failure::new(cause, Said::of_others(error.to_string()))
}

pub(crate) fn http2_failure(violation: &http2::Violation) -> Failure {
    let cause = match violation {
        http2::Violation::Http(error) => return http_failure(error),
        violation if violation.is_http1() => Cause::WrongScheme,
        violation if violation.is_too_large() => Cause::TooLarge,
        violation if violation.is_cut_off() => Cause::ClosedEarly,
        _ => Cause::Malformed,
    };
    Failure::new(cause, Said::of_others(violation.to_string()))
}

/// The cause of an operating system error, which determines the responsible side.
pub(crate) fn cause_of(error: &io::Error) -> Cause {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => Cause::ConnectRefused,
        Some(libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED) => Cause::Reset,
        Some(libc::ETIMEDOUT) => Cause::ConnectTimeout,
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | system::EHOSTDOWN) => {
            Cause::Unreachable
        }
        Some(libc::EMFILE | libc::ENFILE) => Cause::DescriptorsExhausted,
        Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => Cause::PortsExhausted,
        // ENOSPC: no more sockets can be watched (epoll(7), max_user_watches).
        Some(libc::ENOMEM | libc::ENOBUFS | libc::ENOSPC) => Cause::MemoryExhausted,
        Some(libc::EACCES | libc::EPERM) => Cause::Denied,
        Some(libc::EINVAL | libc::EMSGSIZE) => Cause::ScenarioFailed,
        Some(_) => Cause::NetworkFailed,
        None => match error.kind() {
            io::ErrorKind::UnexpectedEof => Cause::ClosedEarly,
            // Our own error: that of the system has a number.
            io::ErrorKind::OutOfMemory => Cause::MemoryLimit,
            io::ErrorKind::InvalidData => Cause::Malformed,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Cause::Reset,
            io::ErrorKind::ConnectionRefused => Cause::ConnectRefused,
            io::ErrorKind::TimedOut => Cause::Timeout,
            io::ErrorKind::InvalidInput => Cause::ScenarioFailed,
            _ => Cause::NetworkFailed,
        },
    }
}

pub(crate) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// A target that requires client certificates refuses them by an alert (RFC 8446, 6.2), often only
/// after the handshake.
pub(crate) fn client_refused(error: &rustls::Error) -> Option<Failure> {
    use rustls::AlertDescription as Alert;
    let rustls::Error::AlertReceived(alert) = error else { return None };
    let detail = match alert {
        Alert::CertificateRequired => {
            say!(
                "the target requires a client certificate; give one with --cert FILE and --key \
                 FILE"
            )
        }
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => {
            say!("the target rejected the client certificate ({alert:?})")
        }
        _ => return None,
    };
    Some(Failure::new(Cause::ClientCertificate, detail))
}

/// Bytes from the target in a form that is safe for reports: short, without control characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let text = String::from_utf8_lossy(cut);
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut.len() < bytes.len() { format!("{clean}…") } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_free_of_control_characters() {
        assert_eq!(shown(b"a\x1b[31mb\n"), "a [31mb ");
        assert!(shown(&[b'x'; 500]).chars().count() < 100);
    }
}
