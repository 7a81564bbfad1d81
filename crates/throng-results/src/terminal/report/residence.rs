//! Lifetimes of connections by the side that closed them. Shown with `--details`.

use super::super::Style;
use super::super::columns::{BRIEF, Columns, Time};
use crate::summary::{ResidenceRow, Summary};

pub(super) fn residence(summary: &Summary, style: &Style) -> String {
    if summary.connections.residence.is_empty() {
        return String::new();
    }
    columns(&BRIEF, style).table(&summary.connections.residence).render(style)
}

pub(crate) fn columns<'a>(which: &[Time], style: &'a Style) -> Columns<'a, ResidenceRow> {
    let name = move |row: &ResidenceRow| match row.unopened {
        true => style.say(say!("{} before the connection was open", style.say(row.ended.text()))),
        false => style.say(row.ended.text()),
    };
    Columns::of(say!("connections ended"), name)
        .count(say!("count"), |row| row.time.count)
        .times(&[Time::Min, Time::Mean], |row| row.time)
        .times(which, |row| row.time)
}
