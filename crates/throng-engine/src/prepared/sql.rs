//! What is known beforehand of a statement of SQL.

use throng_program::Sql;

use super::look::Look;

pub(crate) struct SqlPlan {
    pub(crate) look: Look,
    /// Somebody looks at the first row.
    pub(crate) keeps: bool,
}

impl SqlPlan {
    pub(super) fn new(sql: &Sql) -> SqlPlan {
        SqlPlan { look: Look::new(&sql.checks, &sql.saves), keeps: sql.looks_at_rows() }
    }
}
