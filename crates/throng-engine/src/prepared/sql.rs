//! The prepared data of an SQL statement.

use throng_program::Sql;

use super::check_plan::CheckPlan;

pub(crate) struct SqlPlan {
    pub(crate) check_plan: CheckPlan,
    /// True if the first row is read by a check, save or expression.
    pub(crate) keeps: bool,
}

impl SqlPlan {
    pub(super) fn new(sql: &Sql) -> SqlPlan {
        SqlPlan { check_plan: CheckPlan::new(&sql.checks, &sql.saves), keeps: sql.looks_at_rows() }
    }
}
