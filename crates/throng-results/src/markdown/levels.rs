//! The results of each step at each level of the load as Markdown.

use throng_metrics::Unit;

use super::{escape, more, word};
use crate::summary::{LevelRow, Row, Summary};
use crate::terminal::columns::{Columns, P50, P99};
use crate::terminal::figure_text;

/// Maximum number of rows; JSON has all.
const ROWS_MAX: usize = 60;

/// A row of the table: all steps of a level, or one of its steps.
struct Line<'a> {
    level: &'a LevelRow,
    row: &'a Row,
    is_all: bool,
}

impl Line<'_> {
    fn of_level(&self, text: impl Fn(&LevelRow) -> String) -> String {
        if self.is_all { text(self.level) } else { String::new() }
    }
}

/// Empty if the load never changed.
pub(super) fn levels_markdown(summary: &Summary) -> String {
    if !summary.has_levels() {
        return String::new();
    }
    let lines: Vec<Line> = summary.parts.levels.iter().flat_map(lines).collect();
    let number = |number: f64| figure_text(Unit::Number, number);
    let label = |line: &Line| line.level.label(&summary.info).english();
    let name = |line: &Line| if line.is_all { "all" } else { line.row.name.as_str() }.to_string();
    let table = Columns::of(word("level"), label)
        .cell(word("step"), name)
        .words()
        .cell(word("count"), |line| line.row.count.to_string())
        .cell(word("failed"), |line| line.row.failed.to_string())
        .times(&[P50, P99], |line| line.row.latency)
        .cell(word("connects/s"), |line| line.of_level(|level| number(level.opened_per_s)))
        .cell(word("users"), |line| line.of_level(|level| number(level.users_online as f64)))
        .cell(word("cores"), |line| line.of_level(|level| format!("{:.2}", level.cores)))
        .table(lines.iter().take(ROWS_MAX));
    format!("\n{}{}", table.markdown(escape), more(lines.len(), ROWS_MAX, " rows"))
}

/// A row for all steps of a level, and one for each if there are several.
fn lines(level: &LevelRow) -> Vec<Line<'_>> {
    let all = Line { level, row: &level.total, is_all: true };
    let steps = level.steps.iter().filter(|_| level.steps.len() > 1);
    let steps = steps.map(|row| Line { level, row, is_all: false });
    std::iter::once(all).chain(steps).collect()
}
