//! What each step did at each level of the load, as a pull request shows it.

use throng_metrics::{Percentile, Unit};

use super::escape;
use crate::summary::{LevelRow, Row, Summary};
use crate::terminal::figure_text;

/// Rows of the table; the JSON has all.
const ROWS_MAX: usize = 60;

/// Empty for a run whose load was the same throughout.
pub(super) fn levels_markdown(summary: &Summary) -> String {
    if !summary.has_levels() {
        return String::new();
    }
    let mut out = "\n| level | step | count | failed | p50 | p99 | connects/s | users | cores |\n\
                   | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_string();
    let rows: Vec<String> = summary.parts.levels.iter().flat_map(|it| lines(summary, it)).collect();
    rows.iter().take(ROWS_MAX).for_each(|row| out += row);
    if let Some(more) = rows.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        out += &format!("\nand {more} more rows\n");
    }
    out
}

/// A line for all steps of a level, and one for each if there are several.
fn lines(summary: &Summary, level: &LevelRow) -> Vec<String> {
    let label = escape(&level.label(&summary.info).english());
    let more = [
        figure_text(Unit::Number, level.opened_per_s),
        figure_text(Unit::Number, level.users_online as f64),
        format!("{:.2}", level.cores),
    ];
    let all = line([label.clone(), "all".into()], &level.total, &more);
    let steps = level.steps.iter().filter(|_| level.steps.len() > 1);
    let steps = steps
        .map(|row| line([label.clone(), escape(&row.name)], row, &[const { String::new() }; 3]));
    std::iter::once(all).chain(steps).collect()
}

fn line([level, step]: [String; 2], row: &Row, [opened, users, cores]: &[String; 3]) -> String {
    let time = |which| {
        let text = |nanos: u64| figure_text(Unit::Nanoseconds, nanos as f64);
        row.latency.percentile(which).map_or_else(|| "–".to_string(), text)
    };
    let (count, failed) = (row.count, row.failed);
    let [p50, p99] = [Percentile::P50, Percentile::P99].map(time);
    format!(
        "| {level} | {step} | {count} | {failed} | {p50} | {p99} | {opened} | {users} | {cores} |\n"
    )
}
