//! Errors of the server, and what breaks the protocol.

use throng_base::{Said, sql};

use super::parts::Parts;

/// The longest text of the server that is repeated.
const SHOWN_CHARS_MAX: usize = 300;

/// An ErrorResponse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`.
    pub severity: String,
    /// The SQLSTATE.
    pub code: String,
    pub message: String,
    /// Empty where it says none.
    pub detail: String,
}

impl ServerError {
    /// Reads the body of a message; what it does not say stays empty.
    pub fn read(body: &[u8]) -> ServerError {
        let (mut error, mut parts, mut local) = (ServerError::default(), Parts(body), "".into());
        while let Some(kind @ 1..) = parts.byte() {
            let Some(text) = parts.text() else { break };
            match kind {
                b'V' => error.severity = shown(text),
                // In the language of the server.
                b'S' => local = shown(text),
                b'C' => error.code = shown(text),
                b'M' => error.message = shown(text),
                b'D' => error.detail = shown(text),
                _ => {}
            }
        }
        if error.severity.is_empty() {
            error.severity = local;
        }
        error
    }

    /// Whether the server ends the connection.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    pub fn status(&self) -> u16 {
        sql::status(&self.code)
    }

    pub fn said(&self) -> Said {
        let ServerError { severity, code, message, detail } = self;
        match detail.is_empty() {
            true => say!("{severity} {code}: {message}"),
            false => say!("{severity} {code}: {message} ({detail})"),
        }
    }
}

/// A text of the server as a report may have it.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN_CHARS_MAX)]);
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(SHOWN_CHARS_MAX).collect()
}

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlError {
    /// The server refuses the login, or ends the connection.
    Server(Box<ServerError>),
    /// A message with a length that no message has.
    Length {
        kind: u8,
        length: usize,
    },
    TooLarge {
        kind: u8,
        bytes: usize,
        bytes_max: usize,
    },
    /// A message that its kind does not have.
    Malformed(u8),
    /// A message that has no place here.
    Unexpected(u8),
    /// The first message is none of PostgreSQL.
    NotPostgres(u8),
    /// A way to log in that throng does not know.
    Authentication(u32),
    /// The server offers other mechanisms only.
    Mechanisms(String),
    Scram(&'static Said),
    /// A password is asked for, and there is none.
    NoPassword,
}

impl SqlError {
    pub fn said(&self) -> Said {
        let name = |kind: &u8| char::from(*kind).escape_default().to_string();
        match self {
            SqlError::Server(error) => error.said(),
            SqlError::Length { kind, length } => {
                say!("the message `{}` has an invalid length of {length}", name(kind))
            }
            SqlError::TooLarge { kind, bytes, bytes_max } => say!(
                "the message `{}` has {bytes} bytes, more than the limit of {bytes_max}",
                name(kind)
            ),
            SqlError::Malformed(kind) => say!("the message `{}` is malformed", name(kind)),
            SqlError::Unexpected(kind) => {
                say!("the server sent the unexpected message `{}`", name(kind))
            }
            SqlError::NotPostgres(kind) => {
                say!("the server does not speak PostgreSQL: it sent `{}` first", name(kind))
            }
            SqlError::Authentication(kind) => say!(
                "the server requires authentication method {kind}, but throng supports only \
                 SCRAM-SHA-256, MD5 and cleartext passwords"
            ),
            SqlError::Mechanisms(offered) => say!(
                "the server offers the SASL mechanisms {offered}, but throng supports only \
                 SCRAM-SHA-256"
            ),
            SqlError::Scram(reason) => (*reason).clone(),
            SqlError::NoPassword => {
                say!(
                    "the server requires a password: write `postgres://USER:PASSWORD@HOST/DATABASE`"
                )
            }
        }
    }
}
