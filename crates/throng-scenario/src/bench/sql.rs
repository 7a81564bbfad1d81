//! Statements of a command line.

use super::{Bench, Writer};
use crate::quote::text;

impl Writer<'_> {
    /// Where it leads: a database is named with the user and the name that its URL has.
    pub(super) fn target(&mut self) {
        let target = match self.scheme.is_sql() {
            true => self.bench.route.target(&self.bench.url),
            false => self.bench.route.target(&self.origin),
        };
        self.line(&format!("target: {target}"));
    }

    pub(super) fn sql_session(&mut self) {
        self.line("    steps:");
        let sql = self.bench.sql.as_deref().unwrap_or(Bench::STATEMENT);
        self.line(&format!("      - sql: {}", text(sql)));
        self.timeout();
        if self.bench.keep_alive == Some(false) {
            self.line("      - disconnect");
        }
        self.think();
    }
}

impl Bench {
    /// What a database is asked if the command line does not say it.
    const STATEMENT: &str = "select 1";
}
