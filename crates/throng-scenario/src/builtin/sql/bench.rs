//! Statements of a command line.

use crate::quote::text;
use crate::writer::Writer;

/// The default statement.
const STATEMENT: &str = "select 1";

pub(super) fn write_session(writer: &mut Writer<'_>) {
    writer.line("    steps:");
    let sql = writer.bench.given("--sql").next().unwrap_or(STATEMENT);
    writer.line(&format!("      - sql: {}", text(sql)));
    writer.timeout();
    if writer.bench.keep_alive == Some(false) {
        writer.line("      - disconnect");
    }
    writer.think();
}
