//! Statements of a command line.

use super::{Bench, Writer};
use crate::quote::text;

impl Writer<'_> {
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
