//! Iterations by session, if a scenario has several.

use throng_metrics::Percentile;

use super::super::Style;
use super::super::columns::{BRIEF, Columns, Time};
use super::super::text::clean;
use super::best_left_out;
use crate::summary::{SessionRow, Summary};

pub(super) fn sessions(summary: &Summary, style: &Style) -> String {
    let more =
        say!("… and {{}} sessions with better results; `throng report --json` lists all of them");
    let weight = |row: &SessionRow| (row.failed, row.time.at(Percentile::P99), row.begun);
    best_left_out(&summary.parts.sessions, weight, &columns(&BRIEF), more, style)
}

pub(crate) fn columns<'a>(which: &[Time]) -> Columns<'a, SessionRow> {
    Columns::of(say!("session"), |row: &SessionRow| clean(&row.name))
        .count(say!("started"), |row| row.begun)
        .count(say!("finished"), |row| row.finished)
        .bad(say!("failed"), |row| row.failed)
        .count(say!("interrupted"), |row| row.interrupted)
        .rate(say!("finished/s"), |row| row.finished_per_s)
        .times(which, |row| row.time)
}
