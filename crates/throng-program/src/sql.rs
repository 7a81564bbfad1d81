//! Databases.

/// Who logs in, and to which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    pub user: String,
    pub password: Option<String>,
    pub name: String,
    pub tls: SslMode,
}

/// Whether the server is asked for TLS, as `sslmode` says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    #[default]
    Disable,
    /// Where the server has it.
    Prefer,
    Require,
}

impl SslMode {
    pub const ALL: [(&str, SslMode); 3] =
        [("disable", SslMode::Disable), ("prefer", SslMode::Prefer), ("require", SslMode::Require)];
}
