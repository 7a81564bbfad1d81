//! SQLSTATEs (SQL standard; PostgreSQL documentation, appendix A): their names, whom they blame,
//! and their numbers among the statuses of all protocols.

use crate::status::{Beside, Blame, Meaning};
use Blame::{Generator, Scenario, Target, TargetOrScenario};

/// The status of the first row, behind those of MQTT.
const STATUSES_BEGIN: u16 = 12_000;

/// A SQLSTATE that throng knows.
#[derive(Debug, PartialEq, Eq)]
struct SqlState {
    code: &'static str,
    name: &'static str,
    blame: Blame,
}

const fn row(code: &'static str, name: &'static str, blame: Blame) -> SqlState {
    SqlState { code, name, blame }
}

/// Run directories have the places in this list: new rows go to its end. A row whose code ends
/// with `000` stands for its class.
static STATES: [SqlState; 85] = [
    row("00000", "successful_completion", Target),
    // Every code of a class that has no row.
    row("?????", "unknown_sqlstate", TargetOrScenario),
    row("03000", "sql_statement_not_yet_complete", Scenario),
    row("08000", "connection_exception", Target),
    row("08P01", "protocol_violation", Generator),
    row("0A000", "feature_not_supported", Scenario),
    row("0L000", "invalid_grantor", Scenario),
    row("0P000", "invalid_role_specification", Scenario),
    row("21000", "cardinality_violation", Scenario),
    row("22000", "data_exception", Scenario),
    row("22001", "string_data_right_truncation", Scenario),
    row("22003", "numeric_value_out_of_range", Scenario),
    row("22007", "invalid_datetime_format", Scenario),
    row("22012", "division_by_zero", Scenario),
    row("22021", "character_not_in_repertoire", Scenario),
    row("22P02", "invalid_text_representation", Scenario),
    row("22P04", "bad_copy_file_format", Scenario),
    row("23000", "integrity_constraint_violation", TargetOrScenario),
    row("23001", "restrict_violation", TargetOrScenario),
    row("23502", "not_null_violation", TargetOrScenario),
    row("23503", "foreign_key_violation", TargetOrScenario),
    row("23505", "unique_violation", TargetOrScenario),
    row("23514", "check_violation", TargetOrScenario),
    row("23P01", "exclusion_violation", TargetOrScenario),
    row("24000", "invalid_cursor_state", Scenario),
    row("25000", "invalid_transaction_state", Scenario),
    row("25001", "active_sql_transaction", Scenario),
    row("25006", "read_only_sql_transaction", TargetOrScenario),
    row("25P01", "no_active_sql_transaction", Scenario),
    row("25P02", "in_failed_sql_transaction", Scenario),
    row("25P03", "idle_in_transaction_session_timeout", TargetOrScenario),
    row("26000", "invalid_sql_statement_name", Generator),
    row("28000", "invalid_authorization_specification", Scenario),
    row("28P01", "invalid_password", Scenario),
    row("2D000", "invalid_transaction_termination", Scenario),
    row("2F000", "sql_routine_exception", TargetOrScenario),
    row("34000", "invalid_cursor_name", Scenario),
    row("38000", "external_routine_exception", TargetOrScenario),
    row("39000", "external_routine_invocation_exception", TargetOrScenario),
    row("3B000", "savepoint_exception", Scenario),
    row("3D000", "invalid_catalog_name", Scenario),
    row("3F000", "invalid_schema_name", Scenario),
    row("40000", "transaction_rollback", TargetOrScenario),
    row("40001", "serialization_failure", TargetOrScenario),
    row("40003", "statement_completion_unknown", Target),
    row("40P01", "deadlock_detected", TargetOrScenario),
    row("42000", "syntax_error_or_access_rule_violation", Scenario),
    row("42501", "insufficient_privilege", Scenario),
    row("42601", "syntax_error", Scenario),
    row("42602", "invalid_name", Scenario),
    row("42701", "duplicate_column", Scenario),
    row("42702", "ambiguous_column", Scenario),
    row("42703", "undefined_column", Scenario),
    row("42704", "undefined_object", Scenario),
    row("42710", "duplicate_object", Scenario),
    row("42723", "duplicate_function", Scenario),
    row("42725", "ambiguous_function", Scenario),
    row("42803", "grouping_error", Scenario),
    row("42804", "datatype_mismatch", Scenario),
    row("42883", "undefined_function", Scenario),
    row("42P01", "undefined_table", Scenario),
    row("42P02", "undefined_parameter", Scenario),
    row("42P05", "duplicate_prepared_statement", TargetOrScenario),
    row("42P07", "duplicate_table", Scenario),
    row("42P18", "indeterminate_datatype", Scenario),
    row("44000", "with_check_option_violation", TargetOrScenario),
    row("53000", "insufficient_resources", Target),
    row("53100", "disk_full", Target),
    row("53200", "out_of_memory", Target),
    row("53300", "too_many_connections", Target),
    row("54000", "program_limit_exceeded", TargetOrScenario),
    row("55000", "object_not_in_prerequisite_state", TargetOrScenario),
    row("55006", "object_in_use", TargetOrScenario),
    row("55P03", "lock_not_available", TargetOrScenario),
    row("57000", "operator_intervention", Target),
    row("57014", "query_canceled", Target),
    row("57P01", "admin_shutdown", Target),
    row("57P02", "crash_shutdown", Target),
    row("57P03", "cannot_connect_now", Target),
    row("57P05", "idle_session_timeout", Target),
    row("58000", "system_error", Target),
    row("F0000", "config_file_error", Target),
    row("HV000", "fdw_error", TargetOrScenario),
    row("P0000", "plpgsql_error", TargetOrScenario),
    row("XX000", "internal_error", Target),
];

/// Of codes without a row: that of its class, or of none.
fn place(code: &str) -> usize {
    let of = |code: &str| STATES.iter().position(|state| state.code == code);
    let class = || code.get(..2).and_then(|class| of(&format!("{class}000")));
    of(code).or_else(class).unwrap_or(1)
}

/// The status of a SQLSTATE; those that throng does not know share the one of their class.
pub fn status(code: &str) -> u16 {
    STATUSES_BEGIN + place(code) as u16
}

/// What such a status means.
pub fn meaning(status: u16) -> Option<Meaning> {
    let SqlState { code, name, blame } = *state_of(status)?;
    Some(Meaning { word: code, beside: Beside::Name(name), blame })
}

/// The SQLSTATE of such a status.
fn state_of(status: u16) -> Option<&'static SqlState> {
    STATES.get(usize::from(status.checked_sub(STATUSES_BEGIN)?))
}

/// By its code or its name.
pub fn named(text: &str) -> Option<u16> {
    let is = |state: &SqlState| state.code == text || state.name == text;
    STATES.iter().position(is).map(|at| STATUSES_BEGIN + at as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sqlstate_has_a_status_and_unknown_ones_that_of_their_class() {
        for (at, state) in STATES.iter().enumerate() {
            assert_eq!(state_of(status(state.code)), Some(state), "{}", state.code);
            assert_eq!(named(state.name), named(state.code));
            assert!(STATES[..at].iter().all(|before| before.code != state.code), "{}", state.code);
        }
        let of_class = |code: &str| state_of(status(code)).map(|state| state.code);
        assert_eq!(of_class("23999"), Some("23000"));
        assert_eq!([of_class("ZZ123"), of_class(""), of_class("ü")], [Some("?????"); 3]);
        assert_eq!([state_of(11_999), state_of(STATUSES_BEGIN + 85)], [None, None]);
        assert_eq!(meaning(status("53300")).map(|it| it.blame), Some(Target));
    }
}
