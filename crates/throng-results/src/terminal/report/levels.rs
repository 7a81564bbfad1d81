//! What each step did at each level of the load, and the response time of the levels.

use throng_base::Said;
use throng_base::units::format_count;

use super::super::table::{Cell, Table};
use super::super::text::{nanos, rate, span};
use super::super::{Ink, Style};
use super::{NOTHING, left_out, note, percentile, pick_some};
use crate::summary::{LEVELS_DRAWN_MIN, LevelRow, Percentile, Row, Summary};

/// Rows of steps of one level; the JSON has all.
const STEPS_MAX: usize = 10;
const BAR_COLUMNS: usize = 40;

/// Empty for a run whose load was the same throughout.
pub(in crate::terminal) fn load_levels(summary: &Summary, style: &Style) -> String {
    if !summary.has_levels() {
        return String::new();
    }
    let mut table = Table::new([
        say!("level"),
        say!("count"),
        say!("failed"),
        say!("p50"),
        say!("p99"),
        say!("connects/s"),
        say!("users"),
        say!("cores"),
    ]);
    summary.parts.levels.iter().for_each(|level| rows(&mut table, summary, level, style));
    let explained = say!("cores: processors that the generator used, on average");
    "\n".to_string() + &table.render(style) + &note(explained, style) + &drawn(summary, style)
}

/// A row for all steps of a level, and one for each if there are several.
fn rows(table: &mut Table, summary: &Summary, level: &LevelRow, style: &Style) {
    let ink = if level.measured { Ink::Plain } else { Ink::Dim };
    let name = format!("{} {}", style.say(level.label(&summary.info)), span(level.lasted));
    let more =
        [rate(level.opened_per_s), format_count(level.users_online), format!("{:.2}", level.cores)];
    table.row(cells(name, &level.total, more).map(|text| Cell::new(ink, text)));
    if level.steps.len() < 2 {
        return;
    }
    let shown = pick_some(&level.steps, STEPS_MAX, |row| (row.failed, row.latency.p99_ns));
    for row in &shown {
        let name = format!("  {}", throng_base::clean(&row.name));
        let texts = cells(name, row, [const { String::new() }; 3]);
        table.row(texts.map(|text| Cell::new(ink, text)));
    }
    let more =
        say!("… and {{}} steps with better results; `throng report --json` lists all of them");
    let left = left_out(level.steps.len(), shown.len(), more, style);
    if !left.is_empty() {
        let mut line = [const { String::new() }; 8];
        line[0] = format!("  {}", left.trim());
        table.row(line.map(|text| Cell::new(Ink::Dim, text)));
    }
}

fn cells(name: String, row: &Row, [opened, users, cores]: [String; 3]) -> [String; 8] {
    let [p50, p99] = [Percentile::P50, Percentile::P99].map(|it| percentile(&row.latency, it));
    let (count, failed) = (format_count(row.count), format_count(row.failed));
    [name, count, failed, p50, p99, opened, users, cores]
}

/// The 99th percentile of each level as a bar, by load.
fn drawn(summary: &Summary, style: &Style) -> String {
    let (varied, levels) = summary.levels_by_load();
    if levels.len() < LEVELS_DRAWN_MIN {
        return String::new();
    }
    let most = levels.iter().map(|(_, level)| level.total.latency.p99_ns).max().unwrap_or(0).max(1);
    let mut table = Table::new([varied, say!("p99"), Said::default()]);
    for (load, level) in levels {
        let p99 = level.total.latency.p99_ns;
        let columns = (p99 as f64 / most as f64 * BAR_COLUMNS as f64).round() as usize;
        let bar = "█".repeat(columns.max(1));
        let time = if level.total.latency.is_empty() { NOTHING.into() } else { nanos(p99) };
        table.row([rate(load).into(), time.into(), Cell::from(bar)]);
    }
    "\n".to_string() + &table.words_in(&[2]).render(style)
}
