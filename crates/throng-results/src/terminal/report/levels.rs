//! The results of each step at each level of the load, and the response times of the levels.

use throng_base::Said;
use throng_base::units::format_count;
use throng_metrics::{Percentile, Unit};

use super::super::columns::{Columns, P50, P99, Time};
use super::super::table::{Cell, Table};
use super::super::text::{nanos, rate, span};
use super::super::{Ink, Style};
use super::{known, left_out, note, pick_some};
use crate::summary::{LEVELS_DRAWN_MIN, LevelRow, Row, Summary};

/// Maximum number of steps per level; JSON has all.
const STEPS_MAX: usize = 10;
const BAR_COLUMNS: usize = 40;

/// A row of the table of levels; empty without values.
pub(crate) struct Line<'a> {
    /// The level, with its step unless that has its own column.
    name: String,
    step: String,
    ink: Ink,
    /// All steps of a level, or one of them.
    row: Option<&'a Row>,
    /// Values that exist only for the whole level.
    level: Option<&'a LevelRow>,
}

impl Line<'_> {
    fn of_row(&self, cell: impl Fn(&Row) -> Cell) -> Cell {
        self.row.map(cell).unwrap_or_default()
    }

    fn of_level(&self, cell: impl Fn(&LevelRow) -> Cell) -> Cell {
        self.level.map(cell).unwrap_or_default()
    }
}

/// The columns after those with names.
fn columns<'a>(names: Columns<'a, Line<'a>>) -> Columns<'a, Line<'a>> {
    let time = |time: Time| move |line: &Line| line.of_row(|row| time.cell(&row.latency));
    let cores =
        |level: &LevelRow| Cell::of(Unit::Decimal, level.cores, format!("{:.2}", level.cores));
    names
        .cell(say!("count"), |line| line.of_row(|row| Cell::number(row.count)))
        .cell(say!("failed"), |line| line.of_row(|row| Cell::number(row.failed)))
        .cell(P50.head(), time(P50))
        .cell(P99.head(), time(P99))
        .cell(say!("connects/s"), |line| {
            line.of_level(|level| {
                Cell::of(Unit::PerSecond, level.opened_per_s, rate(level.opened_per_s))
            })
        })
        .cell(say!("users"), |line| line.of_level(|level| Cell::number(level.users_online)))
        .cell(say!("explained / users"), |line| line.of_level(|level| explained(level).into()))
        .if_any(|line| line.level.is_some_and(|level| level.users_explained.is_some()))
        .cell(say!("cores"), move |line| line.of_level(cores))
        .cell(say!("target CPU"), |line| line.of_level(target_cpu))
        .if_any(|line| line.level.is_some_and(|level| level.target_cpu_s.is_some()))
}

/// All columns, with a separate one for steps and the target's usage.
pub(crate) fn all_columns<'a>() -> Columns<'a, Line<'a>> {
    let names = Columns::of(say!("level"), |line: &Line| line.name.clone())
        .cell(say!("step"), |line| line.step.clone())
        .words()
        .cell(say!("duration"), |line| {
            line.of_level(|level| Cell::nanos(level.lasted.as_nanos() as u64))
        });
    let memory = |line: &Line| line.level.and_then(|level| level.target_memory_bytes);
    let each = |line: &Line| line.level.and_then(|level| level.target_connection_bytes);
    columns(names)
        .cell(say!("target memory"), move |line| size(memory(line)))
        .if_any(move |line| memory(line).is_some())
        .cell(say!("per connection"), move |line| size(each(line)))
        .if_any(move |line| each(line).is_some())
}

/// Rows with a separate column for steps; empty if the load never changed.
pub(crate) fn all_lines<'a>(summary: &'a Summary, style: &Style) -> Vec<Line<'a>> {
    let levels = summary.parts.levels.iter().filter(|_| summary.parts.levels.len() > 1);
    let lines = levels.flat_map(|level| {
        let name = style.say(match level.measured {
            true => level.label(&summary.info),
            false => say!("{} (not measured)", level.label(&summary.info)),
        });
        let line = move |step: String, row, level| Line {
            name: name.clone(),
            step,
            ink: Ink::Plain,
            row: Some(row),
            level,
        };
        let whole = line(style.say(say!("all")), &level.total, Some(level));
        let steps = level.steps.iter().filter(move |_| level.steps.len() > 1);
        let steps = steps.map(move |row| line(throng_base::clean(&row.name), row, None));
        std::iter::once(whole).chain(steps)
    });
    lines.collect()
}

/// Empty if the load never changed.
pub(in crate::terminal) fn load_levels(summary: &Summary, style: &Style) -> String {
    if !summary.has_levels() {
        return String::new();
    }
    let lines: Vec<Line> =
        summary.parts.levels.iter().flat_map(|level| lines(summary, level, style)).collect();
    let names = Columns::of(say!("level"), |line: &Line| line.name.clone()).inked(|line| line.ink);
    let table = columns(names).table(&lines);
    let any =
        |of: fn(&LevelRow) -> Option<f64>| summary.parts.levels.iter().any(|it| of(it).is_some());
    let mut text = "\n".to_string() + &table.render(style);
    text += &note(say!("cores: processors that the generator used, on average"), style);
    if any(|level| level.users_explained) {
        let law =
            say!("explained / users: attempts/s × (response time + pause), and users on average");
        text += &note(law, style);
    }
    if any(|level| level.target_cpu_s) {
        text += &note(say!("target CPU: the target's CPU time per attempt"), style);
    }
    text + &drawn(summary, style) + &memory(summary, style)
}

/// The target's memory per connection.
fn memory(summary: &Summary, style: &Style) -> String {
    let levels = summary.parts.levels.iter();
    let levels: Vec<&LevelRow> = levels.filter(|it| it.target_memory_bytes.is_some()).collect();
    if levels.is_empty() || levels.iter().all(|level| level.connections_open == 0) {
        return String::new();
    }
    let open = |level: &&LevelRow| format_count(level.connections_open);
    let table = Columns::of(say!("connections"), open)
        .cell(say!("target memory"), |level| size(level.target_memory_bytes))
        .cell(say!("per connection"), |level| size(level.target_connection_bytes))
        .table(&levels);
    let meaning =
        say!("per connection: growth of the target's memory, divided by open connections");
    "\n".to_string() + &table.render(style) + &note(meaning, style)
}

fn size(bytes: Option<u64>) -> Cell {
    known(Unit::Bytes, bytes.map(|bytes| bytes as f64))
}

fn target_cpu(level: &LevelRow) -> Cell {
    known(Unit::Nanoseconds, level.target_cpu_s.map(|seconds| seconds * 1e9))
}

/// Both sides of Little's law.
fn explained(level: &LevelRow) -> String {
    let number = |users: f64| throng_metrics::capacity::number((users * 10.0).round() / 10.0);
    match level.users_explained.zip(level.users_mean) {
        Some((explained, users)) => format!("{} / {}", number(explained), number(users)),
        None => String::new(),
    }
}

/// A row for all steps of a level, and one for each if there are several.
fn lines<'a>(summary: &Summary, level: &'a LevelRow, style: &Style) -> Vec<Line<'a>> {
    let ink = if level.measured { Ink::Plain } else { Ink::Dim };
    let name = format!("{} {}", style.say(level.label(&summary.info)), span(level.lasted));
    let step = String::new;
    let mut lines =
        vec![Line { name, step: step(), ink, row: Some(&level.total), level: Some(level) }];
    if level.steps.len() < 2 {
        return lines;
    }
    let worst = |row: &Row| (row.failed, row.latency.at(Percentile::P99));
    let shown = pick_some(&level.steps, STEPS_MAX, worst);
    lines.extend(shown.iter().map(|row| {
        let name = format!("  {}", throng_base::clean(&row.name));
        Line { name, step: step(), ink, row: Some(row), level: None }
    }));
    let more =
        say!("… and {{}} steps with better results; `throng report --json` lists all of them");
    let left = left_out(level.steps.len(), shown.len(), more, style);
    if !left.is_empty() {
        let name = format!("  {}", left.trim());
        lines.push(Line { name, step: step(), ink: Ink::Dim, row: None, level: None });
    }
    lines
}

/// The p99 of each level as a bar, by load.
fn drawn(summary: &Summary, style: &Style) -> String {
    let (varied, levels) = summary.levels_by_load();
    if levels.len() < LEVELS_DRAWN_MIN {
        return String::new();
    }
    let p99 = |level: &LevelRow| level.total.latency.at(Percentile::P99);
    let most = levels.iter().map(|(_, level)| p99(level)).max().unwrap_or(0).max(1);
    let mut table = Table::new([varied, P99.head(), Said::default()]);
    for (load, level) in levels {
        let columns = (p99(level) as f64 / most as f64 * BAR_COLUMNS as f64).round() as usize;
        let bar = "█".repeat(columns.max(1));
        table.row([rate(load), nanos(p99(level)), bar].map(Cell::from));
    }
    "\n".to_string() + &table.words_in([2]).render(style)
}
