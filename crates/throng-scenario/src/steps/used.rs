//! The rows of data that the steps of a session use.

use throng_data::Take;
use throng_program::Session;
use throng_program::statement::sources;

use crate::read::Context;
use crate::syntax::Place;
use crate::words::shorten;

/// Warns if `before` and the steps use rows of one source: each iteration takes the next row, so
/// `before` uses a different one.
pub(crate) fn warn_other_rows(cx: &mut Context<'_>, session: &Session, before: Place) {
    let in_steps = sources(&session.steps);
    for source in sources(&session.before) {
        let Some(found) = cx.data.sources.get(usize::from(source)) else { continue };
        if found.take == Take::PerUser || !in_steps.contains(&source) {
            continue;
        }
        let name = shorten(&found.name);
        let message = say!("`before` and the steps use different rows of `{name}`");
        let help = say!(
            "write `take: per user`, or save the value: `- set: {{name: \
             \"${{data.{name}.COLUMN}}\"}}`"
        );
        cx.warn("row-changes", before, message, say!("every iteration uses a new row"), help);
    }
}
