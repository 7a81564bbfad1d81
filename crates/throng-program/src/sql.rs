//! Statements of SQL, and databases.

use std::time::Duration;

use throng_base::StepId;
use throng_expression::Expression;

use crate::Scheme;
use crate::check::{Check, Pick, Save};
use crate::failing::Failing;
use crate::text::Text;

impl Scheme {
    /// Whether it is a database.
    pub fn is_sql(self) -> bool {
        self == Scheme::Postgres
    }
}

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

/// A statement of SQL, or several in one text. It opens its connection itself, as a request of HTTP
/// does, and the user keeps that.
#[derive(Clone, Debug)]
pub struct Sql {
    pub step: StepId,
    pub link: u8,
    pub text: Text,
    /// The values of its parameters. None sends the text alone (simple protocol), which may have
    /// several statements.
    pub with: Option<Vec<Text>>,
    /// It is prepared once for each connection.
    pub prepares: bool,
    pub timeout: Duration,
    /// Of the status, which is a SQLSTATE ([`throng_base::sql::status`]), and of
    /// [`Pick::Result`]. Without one of the status, an error is a failure.
    pub checks: Vec<Check>,
    /// Of the first row.
    pub saves: Vec<Save>,
    pub failing: Failing,
}

impl Sql {
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        self.text.expressions(visit);
        self.with.iter().flatten().for_each(|value| value.expressions(visit));
    }

    /// Whether somebody looks at the first row.
    pub fn looks_at_rows(&self) -> bool {
        let checked = self.checks.iter().map(|check| &check.pick);
        let mut picks = checked.chain(self.saves.iter().map(|save| &save.pick));
        picks.any(|pick| matches!(pick, Pick::Result(name) if name != "rows"))
    }
}
