//! Errors of the server, and protocol violations.

use throng_base::{Said, sql};

use super::parts::Parts;

/// Longest text of the server that is quoted.
const SHOWN_CHARS_MAX: usize = 300;

/// An error field that PostgreSQL does not have: MySQL's error number.
pub(super) const NUMBER: u8 = b'#';

/// Errors of PostgreSQL if another client of a connection pooler has created a prepared statement
/// or has not: `duplicate_prepared_statement`, `invalid_sql_statement_name`.
const POOLED: [&str; 2] = ["42P05", "26000"];

/// An error of the server: an ErrorResponse of PostgreSQL, an ERR packet of MySQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`.
    pub severity: String,
    /// The SQLSTATE.
    pub code: String,
    pub message: String,
    /// Empty if there is none.
    pub detail: String,
    /// For MySQL; otherwise 0.
    pub number: u16,
}

impl ServerError {
    /// Reads the body of a PostgreSQL message; missing fields are empty.
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
                NUMBER => error.number = shown(text).parse().unwrap_or(0),
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
        sql::status(self.number, &self.code)
    }

    pub fn said(&self) -> Said {
        let ServerError { severity, code, message, detail, number } = self;
        match (number, detail.is_empty()) {
            (0, _) if POOLED.contains(&code.as_str()) => say!(
                "{severity} {code}: {message}; if there is a connection pooler before the \
                 database, set `prepare: false`"
            ),
            (0, true) => say!("{severity} {code}: {message}"),
            (0, false) => say!("{severity} {code}: {message} ({detail})"),
            _ => say!("{severity} {number} ({code}): {message}"),
        }
    }
}

/// A text of the server in a form that is safe for reports.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN_CHARS_MAX)]);
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(SHOWN_CHARS_MAX).collect()
}

/// Why a connection can no longer be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlError {
    /// The server refuses the login, or ends the connection.
    Server(Box<ServerError>),
    /// An impossible message length.
    Length {
        kind: u8,
        length: usize,
    },
    TooLarge {
        kind: u8,
        bytes: usize,
        bytes_max: usize,
    },
    /// A message whose content does not match its type.
    Malformed(u8),
    /// A message that is not allowed here.
    Unexpected(u8),
    /// The first message is not from PostgreSQL.
    NotPostgres(u8),
    /// The first packet is not from MySQL.
    NotMySql(u8),
    /// The version of MySQL's protocol is not 10.
    Version(u8),
    /// For MySQL, whose packets have no types.
    PacketTooLarge {
        bytes: usize,
        bytes_max: usize,
    },
    /// A violation of MySQL's protocol.
    Packet(&'static Said),
    /// A MySQL authentication method that throng does not support.
    Plugin(String),
    /// The server requests a cleartext password on a connection that others can read.
    Cleartext,
    /// The server's key for the password cannot be used.
    Key,
    /// An authentication method that throng does not support.
    Authentication(u32),
    /// The server offers only other mechanisms.
    Mechanisms(String),
    Scram(&'static Said),
    /// A password is requested, and there is none.
    NoPassword,
}

impl SqlError {
    pub fn is_too_large(&self) -> bool {
        matches!(self, SqlError::TooLarge { .. } | SqlError::PacketTooLarge { .. })
    }

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
            SqlError::NotMySql(kind) => {
                say!("the server does not speak MySQL: it sent `{}` first", name(kind))
            }
            SqlError::Version(version) => say!(
                "the server uses version {version} of the MySQL protocol, but throng supports only \
                 version 10: connect to the port of the classic protocol, 3306"
            ),
            SqlError::PacketTooLarge { bytes, bytes_max } => {
                say!("a MySQL packet has {bytes} bytes, more than the limit of {bytes_max}")
            }
            SqlError::Packet(reason) => (*reason).clone(),
            SqlError::Plugin(name) => say!(
                "the server requires the authentication plugin `{name}`, but throng supports only \
                 mysql_native_password, caching_sha2_password and, with TLS, mysql_clear_password"
            ),
            SqlError::Cleartext => say!(
                "the server requires the password in cleartext, which throng sends only with TLS: \
                 write `?ssl-mode=REQUIRED` behind the target"
            ),
            SqlError::Key => say!("the server sent a public key that is not a valid RSA key"),
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
