//! SQL statements, and databases.

use std::time::Duration;

use throng_base::StepId;
use throng_expression::Expression;
use throng_protocol::sql::Dialect;

use super::{Login, Scheme};
use crate::Target;
use crate::check::{Check, Pick, Save};
use crate::failing::Failing;
use crate::text::Text;

impl Scheme {
    /// Whether it is a database.
    pub fn is_sql(self) -> bool {
        self.dialect().is_some()
    }

    /// The ALPN protocol for servers that require their own (PostgreSQL 17).
    pub fn alpn(self) -> Option<&'static [u8]> {
        (self == Scheme::Postgres).then_some(b"postgresql")
    }

    /// The SQL dialect of a database.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Scheme::Postgres => Some(Dialect::Postgres),
            Scheme::MySql => Some(Dialect::MySql),
            _ => None,
        }
    }
}

/// The credentials of a login, and the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    pub dialect: Dialect,
    pub user: String,
    pub password: Option<String>,
    /// Empty for none (MySQL).
    pub name: String,
    pub tls: SslMode,
}

impl Target {
    pub fn database(&self) -> Option<&Database> {
        match self.login.as_deref()? {
            Login::Sql(database) => Some(database),
            Login::Redis(_) => None,
        }
    }
}

/// Whether TLS is requested from the server, as the URL says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    #[default]
    Disable,
    /// If the server supports it.
    Prefer,
    Require,
}

/// An SQL statement, or several in one text. It opens its connection itself, as an HTTP request
/// does, and the user keeps the connection.
#[derive(Clone, Debug)]
pub struct Sql {
    pub step: StepId,
    pub link: u8,
    pub text: Text,
    /// The values of its parameters. `None` sends only the text (simple protocol), which may have
    /// several statements.
    pub with: Option<Vec<Text>>,
    /// It is prepared once per connection.
    pub prepares: bool,
    pub timeout: Duration,
    /// Checks of the status, which is a SQLSTATE ([`throng_base::sql::status`]), and of
    /// [`Pick::Result`]. Without a check of the status, an error is a failure.
    pub checks: Vec<Check>,
    /// From the first row.
    pub saves: Vec<Save>,
    pub failing: Failing,
}

impl Sql {
    /// The word of the language.
    pub const VERB: &'static str = "sql";

    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        self.text.expressions(visit);
        self.with.iter().flatten().for_each(|value| value.expressions(visit));
    }

    /// True if the first row is read by a check, save or expression.
    pub fn looks_at_rows(&self) -> bool {
        let checked = self.checks.iter().map(|check| &check.pick);
        let mut picks = checked.chain(self.saves.iter().map(|save| &save.pick));
        picks.any(|pick| matches!(pick, Pick::Result(name) if name.starts_with("column.")))
    }
}
