//! Problems in sources of rows with which a run would start, but not work as intended.

use std::sync::Arc;

use throng_base::Diagnostic;
use throng_base::units::format_count;
use throng_data::{AtEnd, Table, leading_space};
use throng_load::{Assumed, Forecast};
use throng_program::Program;

/// Warnings about the sources; `tables` are those of the program, opened.
pub(super) fn warnings(
    program: &Program,
    forecast: &Forecast<'_>,
    tables: &[Arc<Table>],
) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let most = forecast.course(Assumed::most());
    for (number, (source, table)) in (0..).zip(program.data.iter().zip(tables)) {
        // Files that cannot be read are refused when tables are opened.
        if let Ok(Some(found)) = leading_space(&source.origin) {
            let Diagnostic { message, notes, help, .. } = found.diagnostic();
            warnings.push(Diagnostic { notes, help, ..Diagnostic::warning(found.code, message) });
        }
        let needed = forecast.rows(number, &most);
        let ends = source.take.can_end() && source.at_end == AtEnd::Unsaid;
        let Some((rows, needed)) = table.rows().zip(needed) else { continue };
        if ends && rows < needed {
            let (rows, needed) = (format_count(rows), format_count(needed));
            let message = say!(
                "`{}` has {rows} rows, but up to {needed} are needed: the run may end early",
                source.name
            );
            warnings.push(Diagnostic::warning("data-ended", message).help(say!(
                "add rows, reuse them with `at_end: wrap` or another `take`, or shorten the load"
            )));
        }
    }
    warnings
}
