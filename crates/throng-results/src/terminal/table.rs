//! Columns that line up: the first to the left, the rest to the right, none wider than the page.
//! Of a name that is too long the middle is left out; counts that are too long are shortened.

use throng_base::units::format_count;
use throng_base::{Language, Said};
use throng_metrics::Unit;

use super::text::{compact, cut, cut_middle, nanos, width};
use super::{Ink, Style};

/// A piece of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    ink: Ink,
    /// What the text is of.
    figure: Option<(Unit, f64)>,
}

impl Cell {
    pub(crate) fn new(ink: Ink, text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ink, figure: None }
    }

    pub(crate) fn of(unit: Unit, figure: f64, text: impl Into<String>) -> Cell {
        Cell { figure: Some((unit, figure)), ..Cell::new(Ink::Plain, text) }
    }

    pub(crate) fn number(count: u64) -> Cell {
        Cell::of(Unit::Number, count as f64, format_count(count))
    }

    pub(crate) fn nanos(ns: u64) -> Cell {
        Cell::of(Unit::Nanoseconds, ns as f64, nanos(ns))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn figure(&self) -> Option<(Unit, f64)> {
        self.figure
    }

    /// In this colour, where it has none of its own.
    pub(super) fn or_ink(self, ink: Ink) -> Cell {
        let ink = if self.ink == Ink::Plain { ink } else { self.ink };
        Cell { ink, ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(Ink::Plain, text)
    }
}

/// Rows under a head, which is translated. Short rows are filled up.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    head: Vec<Said>,
    rows: Vec<Vec<Cell>>,
    /// Columns that are aligned to the left, beside the first.
    words: Vec<usize>,
}

/// The first column is never made narrower than this.
const FIRST_COLUMNS_MIN: usize = 8;
/// What gives way, in this order, where a page is too narrow for all columns: no number is broken,
/// and the JSON has them all.
const GIVE_WAY: [&str; 16] = [
    "p99.99", "p90", "sd", "p99.9", "min", "mean", "p95*", "in", "out", "p50", "opened/s", "least",
    "max", "ok/s", "p95", "sent",
];
/// What a shortened count takes: `1.23M`.
const COUNT_COLUMNS_MIN: usize = 5;

impl Table {
    pub(super) fn new(head: impl IntoIterator<Item = Said>) -> Table {
        let head = head.into_iter().collect();
        Table { head, rows: Vec::new(), words: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Aligns these columns to the left too: they hold words.
    pub(super) fn words_in(mut self, columns: impl IntoIterator<Item = usize>) -> Table {
        self.words = columns.into_iter().collect();
        self
    }

    /// In Markdown, where what is bold stands out and nothing gives way. Each text is escaped.
    pub(crate) fn markdown(&self, escape: impl Fn(&str) -> String) -> String {
        let head = |said: &Said| match said.english() {
            text if text.is_empty() => " |".to_string(),
            text => format!(" {text} |"),
        };
        let side = |at| if self.words.contains(&at) { " --- |" } else { " ---: |" };
        let cell = |cell: &Cell| match cell.ink {
            Ink::Bold => format!(" **{}** |", escape(&cell.text)),
            _ => format!(" {} |", escape(&cell.text)),
        };
        let mut out: String =
            ["|".to_string()].into_iter().chain(self.head.iter().map(head)).collect();
        out += "\n|";
        out.extend((0..self.head.len()).map(side));
        for row in &self.rows {
            out += "\n|";
            out.extend(row.iter().map(cell));
        }
        out + "\n"
    }

    /// Leaves out the columns in which every row has `nothing`.
    pub(super) fn leave_out_columns_of(&mut self, nothing: &str) {
        for column in (1..self.head.len()).rev() {
            let mut cells = self.rows.iter().map(|row| row.get(column));
            if cells.all(|cell| cell.is_none_or(|cell| cell.text == nothing)) {
                self.leave_out(column);
            }
        }
    }

    /// Leaves out these columns, one after another, while names would have to be cut.
    pub(super) fn leave_out_for_names(&mut self, heads: &[&str], style: &Style) {
        for head in heads {
            let said = self.said(style);
            let names = self.rows.iter().filter_map(|row| row.first());
            let widest = names.map(|name| width(&name.text)).max().unwrap_or(0);
            if widths(&said, &self.rows, style.columns()).1[0] >= widest {
                return;
            }
            self.leave_out_called(head);
        }
    }

    fn said(&self, style: &Style) -> Vec<String> {
        self.heads(style.language)
    }

    pub(crate) fn heads(&self, language: Language) -> Vec<String> {
        self.head.iter().map(|text| text.render(language)).collect()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Whether a column holds words, and not numbers.
    pub(crate) fn is_words(&self, at: usize) -> bool {
        at == 0 || self.words.contains(&at)
    }

    /// Leaves out the column behind the first that is called so in English.
    fn leave_out_called(&mut self, head: &str) {
        let mut heads = self.head.iter().skip(1);
        if let Some(column) = heads.position(|known| known.english() == head) {
            self.leave_out(column + 1);
        }
    }

    fn leave_out(&mut self, column: usize) {
        self.head.remove(column);
        self.words.retain(|of| *of != column);
        self.words.iter_mut().filter(|of| **of > column).for_each(|of| *of -= 1);
        for row in self.rows.iter_mut().filter(|row| row.len() > column) {
            row.remove(column);
        }
    }

    /// Whether there is a column that is called so in English.
    pub(super) fn has(&self, head: &str) -> bool {
        self.head.iter().any(|known| known.english() == head)
    }

    /// Whether the text of a cell begins so.
    pub(super) fn holds(&self, mark: &str) -> bool {
        self.rows.iter().any(|row| row.iter().skip(1).any(|cell| cell.text.starts_with(mark)))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The table, every line ending in a newline. The head is left out when it is empty.
    pub(super) fn render(&self, style: &Style) -> String {
        let mut table = self.clone();
        for head in GIVE_WAY {
            if table.fits(style) {
                break;
            }
            table.leave_out_called(head);
        }
        table.draw(style)
    }

    /// Whether every number is whole on the page.
    fn fits(&self, style: &Style) -> bool {
        let head = self.said(style);
        let rows = self.fitting(&head, style.columns());
        let (gap, widths) = widths(&head, &rows, style.columns());
        whole(gap, &widths) <= style.columns()
    }

    fn draw(&self, style: &Style) -> String {
        let head = self.said(style);
        let rows = self.fitting(&head, style.columns());
        let widths = widths(&head, &rows, style.columns());
        let mut out = String::new();
        if head.iter().any(|text| !text.is_empty()) {
            for (column, text) in head.iter().enumerate() {
                let ink = if column == 0 { Ink::Bold } else { Ink::Dim };
                self.put(&mut out, &widths, column, &Cell::new(ink, text.as_str()), style);
            }
            end_line(&mut out);
        }
        for row in &rows {
            for (column, cell) in row.iter().enumerate() {
                self.put(&mut out, &widths, column, cell, style);
            }
            end_line(&mut out);
        }
        out
    }

    fn put(
        &self,
        out: &mut String,
        (gap, widths): &(usize, Vec<usize>),
        at: usize,
        cell: &Cell,
        style: &Style,
    ) {
        let columns = widths[at];
        let text = if at == 0 { cut_middle(&cell.text, columns) } else { cut(&cell.text, columns) };
        let pad = " ".repeat(columns.saturating_sub(width(&text)));
        let painted = style.paint(cell.ink, &text);
        if at > 0 && columns > 0 {
            out.push_str(&" ".repeat(*gap));
        }
        match self.is_words(at) {
            true => out.extend([painted, pad]),
            false => out.extend([pad, painted]),
        }
    }

    /// The rows with their longest counts shortened as far as the page asks for it.
    fn fitting(&self, head: &[String], page: usize) -> Vec<Vec<Cell>> {
        let mut rows = self.rows.clone();
        loop {
            let (gap, widths) = widths(head, &rows, page);
            if whole(gap, &widths) <= page {
                return rows;
            }
            let longest = |column: &usize| longest_count(&rows, *column);
            let Some(column) = (1..head.len()).max_by_key(longest).filter(|c| longest(c) > 0)
            else {
                return rows;
            };
            let columns = longest(&column) - 1;
            for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
                if let Some(count) = cell.count().filter(|_| width(&cell.text) > columns) {
                    cell.text = compact(count, columns.max(COUNT_COLUMNS_MIN));
                }
            }
        }
    }
}

impl Cell {
    /// The count that it holds in full.
    fn count(&self) -> Option<u64> {
        let is_full = self.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        is_full.then(|| self.text.replace(',', "").parse().ok())?
    }
}

/// Of the counts of a column that can be shortened; 0 when there is none.
fn longest_count(rows: &[Vec<Cell>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column));
    let widths = cells.filter(|cell| cell.count().is_some()).map(|cell| width(&cell.text));
    widths.max().filter(|columns| *columns > COUNT_COLUMNS_MIN).unwrap_or(0)
}

fn whole(gap: usize, widths: &[usize]) -> usize {
    let gaps = widths.iter().skip(1).filter(|width| **width > 0).count();
    widths.iter().sum::<usize>() + gap * gaps
}

/// The gap between columns and the width of each: as wide as its widest text, but the first gives
/// way when all together are wider than the page.
fn widths(head: &[String], rows: &[Vec<Cell>], page: usize) -> (usize, Vec<usize>) {
    let mut widths: Vec<usize> = head.iter().map(|text| width(text)).collect();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(&cell.text));
        }
    }
    let rest: usize = widths.iter().skip(1).sum();
    // A column in which nothing stands takes no gap either.
    let gaps = widths.iter().skip(1).filter(|width| **width > 0).count();
    let gap = if rest + 2 * gaps + widths[0].min(2 * FIRST_COLUMNS_MIN) <= page { 2 } else { 1 };
    let room = page.saturating_sub(rest + gap * gaps).max(FIRST_COLUMNS_MIN);
    widths[0] = widths[0].min(room);
    (gap, widths)
}

fn end_line(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}
