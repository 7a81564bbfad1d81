//! Databases.

use throng_protocol::sql::Dialect;

/// Who logs in, and to which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    pub dialect: Dialect,
    pub user: String,
    pub password: Option<String>,
    /// Empty for none (MySQL).
    pub name: String,
    pub tls: SslMode,
}

/// Whether the server is asked for TLS, as the URL says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    #[default]
    Disable,
    /// Where the server has it.
    Prefer,
    Require,
}
