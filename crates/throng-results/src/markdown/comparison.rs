//! A comparison as Markdown.

use super::{escape, list, word};
use crate::compare::{Comparison, Figure, Row, Sampled};
use crate::terminal::Ink;
use crate::terminal::columns::Columns;
use crate::terminal::comparison::{changes, conclusion};
use crate::terminal::table::Cell;
use crate::terminal::text::better;

/// A run compared with the baseline: all attempts, and the steps that changed.
pub fn comparison_markdown(baseline: &Sampled, other: &Sampled, held: &Comparison) -> String {
    let (one, two) = (escape(&baseline.name()), escape(&other.name()));
    let mut out = format!("### {two} compared with {one}\n\n{}\n\n", conclusion(held).english());
    for said in &held.unlike {
        out += &format!("- Note: {}\n", escape(&said.english()));
    }
    if !held.unlike.is_empty() {
        out.push('\n');
    }
    let figures = held.rows.iter().enumerate().flat_map(|(at, row)| {
        let named = |figure: &Figure| figure.change.as_ref().is_some_and(|it| it.named);
        let told = row.figures.iter().filter(move |figure| at == 0 || named(figure));
        told.map(move |figure| (row, figure))
    });
    let name = |row: &Row| row.name.as_deref().unwrap_or("all attempts").to_string();
    let columns = Columns::of(word(""), |(row, _): &(&Row, &Figure)| name(row))
        .cell(word("metric"), |(_, figure)| figure.measure.word())
        .words();
    out += &changes(columns, |(_, figure)| figure)
        .cell(word(""), |(_, figure)| changed(figure))
        .words()
        .table(&figures.collect::<Vec<_>>())
        .markdown(escape);
    if let Some(both) = &held.capacity {
        out += &format!("\n- {}\n", escape(&both.text().english()));
    }
    let judged = held.judged.iter();
    out + &list(judged.map(|it| format!("**{}**: {}", it.fails.shown(), escape(&it.text))))
}

/// The word for a change; regressions are bold.
fn changed(figure: &Figure) -> Cell {
    match better(figure.verdict()) {
        (Ink::Bad, said) => Cell::new(Ink::Bold, said.english()),
        (_, said) => said.english().into(),
    }
}
