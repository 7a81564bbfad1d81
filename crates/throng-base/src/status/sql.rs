//! SQLSTATEs (SQL standard; PostgreSQL documentation, appendix A) and MySQL error numbers: their
//! names, their blame, and their recorded numbers.

use super::{Beside, Blame, Meaning};
use Blame::{Generator, Scenario, Target, TargetOrScenario};

/// The recorded number of the first row.
const STATUSES_BEGIN: u16 = 12_000;

/// A known SQLSTATE, or a MySQL error number.
#[derive(Debug, PartialEq, Eq)]
struct SqlState {
    code: &'static str,
    /// The name of the condition, the same in both dialects.
    name: &'static str,
    blame: Blame,
    /// The SQLSTATE that MySQL assigns to the number; otherwise the code.
    state: &'static str,
}

const fn row(code: &'static str, name: &'static str, blame: Blame) -> SqlState {
    SqlState { code, name, blame, state: code }
}

const fn number(
    code: &'static str,
    state: &'static str,
    name: &'static str,
    blame: Blame,
) -> SqlState {
    SqlState { code, name, blame, state }
}

/// Run directories store indexes into this list: append new rows. A row whose code ends with `000`
/// represents its class.
static STATES: [SqlState; 150] = [
    row("00000", "successful_completion", Target),
    // All codes of classes without a row.
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
    row("HY000", "general_error", TargetOrScenario),
    row("01000", "warning", TargetOrScenario),
    row("70000", "interrupted", Target),
    number("1005", "HY000", "cannot_create_table", Scenario),
    number("1021", "HY000", "disk_full", Target),
    number("1037", "HY001", "out_of_memory", Target),
    number("1040", "08004", "too_many_connections", Target),
    number("1041", "HY000", "out_of_memory", Target),
    number("1043", "08S01", "protocol_violation", Generator),
    number("1044", "42000", "insufficient_privilege", Scenario),
    number("1045", "28000", "invalid_password", Scenario),
    number("1046", "3D000", "invalid_catalog_name", Scenario),
    number("1047", "08S01", "protocol_violation", Generator),
    number("1048", "23000", "not_null_violation", TargetOrScenario),
    number("1049", "42000", "invalid_catalog_name", Scenario),
    number("1050", "42S01", "duplicate_table", Scenario),
    number("1051", "42S02", "undefined_table", Scenario),
    number("1053", "08S01", "admin_shutdown", Target),
    number("1054", "42S22", "undefined_column", Scenario),
    number("1062", "23000", "unique_violation", TargetOrScenario),
    number("1064", "42000", "syntax_error", Scenario),
    number("1114", "HY000", "disk_full", Target),
    number("1129", "HY000", "host_is_blocked", Target),
    number("1130", "HY000", "host_not_privileged", Scenario),
    number("1142", "42000", "insufficient_privilege", Scenario),
    number("1146", "42S02", "undefined_table", Scenario),
    number("1153", "08S01", "packet_too_large", Scenario),
    number("1203", "42000", "too_many_connections", Target),
    number("1205", "HY000", "lock_not_available", TargetOrScenario),
    number("1206", "HY000", "lock_table_full", Target),
    number("1210", "HY000", "wrong_arguments", Scenario),
    number("1213", "40001", "deadlock_detected", TargetOrScenario),
    number("1226", "42000", "too_many_connections", Target),
    number("1227", "42000", "insufficient_privilege", Scenario),
    number("1243", "HY000", "invalid_sql_statement_name", Generator),
    number("1264", "22003", "numeric_value_out_of_range", Scenario),
    number("1265", "01000", "data_truncated", Scenario),
    number("1290", "HY000", "read_only_sql_transaction", TargetOrScenario),
    number("1292", "22007", "invalid_datetime_format", Scenario),
    number("1295", "HY000", "feature_not_supported", Scenario),
    number("1305", "42000", "undefined_function", Scenario),
    number("1317", "70100", "query_canceled", Target),
    number("1364", "HY000", "not_null_violation", TargetOrScenario),
    number("1365", "22012", "division_by_zero", Scenario),
    number("1366", "HY000", "invalid_text_representation", Scenario),
    number("1406", "22001", "string_data_right_truncation", Scenario),
    number("1451", "23000", "foreign_key_violation", TargetOrScenario),
    number("1452", "23000", "foreign_key_violation", TargetOrScenario),
    number("1461", "42000", "too_many_prepared_statements", Target),
    number("1524", "HY000", "plugin_not_loaded", Scenario),
    number("1615", "HY000", "needs_reprepare", TargetOrScenario),
    number("1690", "22003", "numeric_value_out_of_range", Scenario),
    number("1698", "28000", "invalid_password", Scenario),
    number("1792", "25006", "read_only_sql_transaction", TargetOrScenario),
    number("1836", "HY000", "read_only_sql_transaction", TargetOrScenario),
    number("1927", "70100", "admin_shutdown", Target),
    number("1969", "70100", "query_canceled", Target),
    number("3024", "HY000", "query_canceled", Target),
    number("3159", "HY000", "secure_transport_required", Scenario),
    number("3572", "HY000", "lock_not_available", TargetOrScenario),
    number("3819", "HY000", "check_violation", TargetOrScenario),
    number("3948", "42000", "local_files_disabled", Scenario),
    number("4025", "23000", "check_violation", TargetOrScenario),
    number("4031", "HY000", "idle_session_timeout", Target),
    number("4166", "HY000", "local_files_disabled", Scenario),
];

/// For codes without a row: the row of their class, or the first row.
fn place(code: &str) -> usize {
    let of = |code: &str| STATES.iter().position(|state| state.code == code);
    let class = || code.get(..2).and_then(|class| of(&format!("{class}000")));
    of(code).or_else(class).unwrap_or(1)
}

/// The recorded number of a successful statement: `00000`.
pub const SUCCESS: u16 = STATUSES_BEGIN;

/// The recorded number of an error, by its MySQL number (otherwise 0) or its SQLSTATE. Unknown ones
/// share the number of their class.
pub fn status(number: u16, code: &str) -> u16 {
    let is = |state: &SqlState| state.code.parse() == Ok(number);
    let known = if number > 0 { STATES.iter().position(is) } else { None };
    STATUSES_BEGIN + known.unwrap_or_else(|| place(code)) as u16
}

/// The meaning of a recorded number.
pub fn meaning(status: u16) -> Option<Meaning> {
    let SqlState { code, name, blame, .. } = *state_of(status)?;
    Some(Meaning { word: code, beside: Beside::Name(name), blame })
}

/// The SQLSTATE of a recorded number.
fn state_of(status: u16) -> Option<&'static SqlState> {
    STATES.get(usize::from(status.checked_sub(STATUSES_BEGIN)?))
}

/// All recorded numbers with this code, number or name. A SQLSTATE includes its MySQL numbers.
pub fn named(text: &str) -> impl Iterator<Item = u16> {
    let is = move |state: &SqlState| [state.code, state.name, state.state].contains(&text);
    (STATUSES_BEGIN..).zip(&STATES).filter(move |(_, state)| is(state)).map(|(status, _)| status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sqlstate_has_a_number_and_unknown_ones_that_of_their_class() {
        for (at, state) in STATES.iter().enumerate() {
            let number = state.code.parse().unwrap_or(0);
            let of_it = if state.state == state.code { 0 } else { number };
            assert_eq!(state_of(status(of_it, state.state)), Some(state), "{}", state.code);
            let all: Vec<u16> = named(state.name).collect();
            assert!(named(state.code).any(|status| all.contains(&status)), "{}", state.code);
            assert!(STATES[..at].iter().all(|before| before.code != state.code), "{}", state.code);
        }
        assert_eq!(status(0, "00000"), SUCCESS);
        let of_class = |code: &str| state_of(status(0, code)).map(|state| state.code);
        assert_eq!(of_class("23999"), Some("23000"));
        assert_eq!([of_class("ZZ123"), of_class(""), of_class("ü")], [Some("?????"); 3]);
        assert_eq!([state_of(11_999), state_of(STATUSES_BEGIN + 150)], [None, None]);
        let number = |number, code| state_of(status(number, code)).map(|state| state.code);
        assert_eq!([number(1062, "23000"), number(9999, "42S99")], [Some("1062"), Some("42000")]);
        let named = |text| named(text).filter_map(state_of).map(|it| it.code).collect::<Vec<_>>();
        assert_eq!(named("too_many_connections"), ["53300", "1040", "1203", "1226"]);
        assert_eq!(named("40001"), ["40001", "1213"]);
        assert!(named("nonsense").is_empty());
        assert_eq!(meaning(status(0, "53300")).map(|it| it.blame), Some(Target));
    }
}
