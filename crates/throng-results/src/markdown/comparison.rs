//! A comparison as tables.

use super::escape;
use crate::compare::{Comparison, Figure, Row, Sampled};
use crate::terminal::comparison::{by_text, conclusion};
use crate::terminal::figure_text;

/// A run held against the baseline: all attempts, and of the steps what has changed.
pub fn comparison_markdown(baseline: &Sampled, other: &Sampled, held: &Comparison) -> String {
    let (one, two) = (escape(&baseline.name()), escape(&other.name()));
    let mut out = format!("### {two} compared with {one}\n\n{}\n\n", conclusion(held).english());
    for said in &held.unlike {
        out += &format!("- Note: {}\n", escape(&said.english()));
    }
    if !held.unlike.is_empty() {
        out.push('\n');
    }
    out += "| | figure | baseline | run | change | 95 % interval | |\n";
    out += "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
    for (at, row) in held.rows.iter().enumerate() {
        let named = |figure: &&Figure| figure.change.as_ref().is_some_and(|it| it.named);
        let told = row.figures.iter().filter(|figure| at == 0 || named(figure));
        told.for_each(|figure| out += &line(row, figure));
    }
    if let Some(both) = &held.capacity {
        out += &format!("\n- {}\n", escape(&both.text().english()));
    }
    for (at, judged) in held.judged.iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        out += &format!("{gap}- **{}**: {}\n", judged.fails.shown(), escape(&judged.text));
    }
    out
}

fn line(row: &Row, figure: &Figure) -> String {
    let text = |value: Option<f64>| value.map_or("–".into(), |it| figure_text(figure.unit(), it));
    let name = row.name.as_deref().map_or("all attempts".into(), escape);
    let change = figure.change.as_ref();
    let by = change.map_or("–".into(), |change| by_text(figure, change.by));
    let between = change.and_then(|change| change.interval).map_or("–".into(), |(low, high)| {
        format!("{} … {}", by_text(figure, low), by_text(figure, high))
    });
    let arrow = match change.filter(|change| change.named) {
        None => "",
        Some(change) if figure.is_better(change) => "better",
        Some(_) => "**worse**",
    };
    let (before, after) = (text(figure.before), text(figure.after));
    let figure = figure.word();
    format!("| {name} | {figure} | {before} | {after} | {by} | {between} | {arrow} |\n")
}
