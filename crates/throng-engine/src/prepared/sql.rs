//! The prepared data of an SQL statement.

use throng_program::Sql;

use super::look::Look;

pub(crate) struct SqlPlan {
    pub(crate) look: Look,
    /// True if the first row is read by a check, save or expression.
    pub(crate) keeps: bool,
}

impl SqlPlan {
    pub(super) fn new(sql: &Sql) -> SqlPlan {
        SqlPlan { look: Look::new(&sql.checks, &sql.saves), keeps: sql.looks_at_rows() }
    }
}
