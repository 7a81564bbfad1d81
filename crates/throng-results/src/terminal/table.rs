//! Aligned columns: the first to the left, the others to the right, within the width of the page.
//! Long names are truncated in the middle; long counts are abbreviated.

use throng_base::units::format_count;
use throng_base::{Language, Said};
use throng_metrics::Unit;

use super::text::{compact, cut, cut_middle, nanos, width};
use super::{Ink, Style};

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    ink: Ink,
    /// The value that the text shows.
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

    /// Sets the color if there is none.
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

/// Rows below a heading, which is translated. Short rows are padded.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    head: Vec<Said>,
    rows: Vec<Vec<Cell>>,
    /// Columns other than the first that are aligned left.
    words: Vec<usize>,
}

/// Minimum width of the first column.
const FIRST_COLUMNS_MIN: usize = 8;
/// Columns to omit on a narrow page, in this order, so that no number is truncated. JSON has them
/// all.
const GIVE_WAY: [&str; 16] = [
    "p99.99", "p90", "sd", "p99.9", "min", "mean", "p95*", "in", "out", "p50", "opened/s", "least",
    "max", "ok/s", "p95", "sent",
];
/// Width of an abbreviated count: `1.23M`.
const COUNT_COLUMNS_MIN: usize = 5;

impl Table {
    pub(super) fn new(head: impl IntoIterator<Item = Said>) -> Table {
        let head = head.into_iter().collect();
        Table { head, rows: Vec::new(), words: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Aligns these columns left, because they contain words.
    pub(super) fn words_in(mut self, columns: impl IntoIterator<Item = usize>) -> Table {
        self.words = columns.into_iter().collect();
        self
    }

    /// As Markdown, with bold cells and all columns. Each text is escaped.
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

    /// Omits the columns in which every row has `nothing`.
    pub(super) fn leave_out_columns_of(&mut self, nothing: &str) {
        for column in (1..self.head.len()).rev() {
            let mut cells = self.rows.iter().map(|row| row.get(column));
            if cells.all(|cell| cell.is_none_or(|cell| cell.text == nothing)) {
                self.leave_out(column);
            }
        }
    }

    /// Omits these columns one by one while names would be truncated.
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

    /// Whether a column contains words instead of numbers.
    pub(crate) fn is_words(&self, at: usize) -> bool {
        at == 0 || self.words.contains(&at)
    }

    /// Omits the column with this English heading, unless it is the first.
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

    /// Whether a column has this English heading.
    pub(super) fn has(&self, head: &str) -> bool {
        self.head.iter().any(|known| known.english() == head)
    }

    /// Whether the text of any cell starts with this.
    pub(super) fn holds(&self, mark: &str) -> bool {
        self.rows.iter().any(|row| row.iter().skip(1).any(|cell| cell.text.starts_with(mark)))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The table; every line ends with a line break. An empty heading is omitted.
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

    /// Whether every number is complete.
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

    /// The rows with their longest counts abbreviated as far as necessary.
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
    /// The full count.
    fn count(&self) -> Option<u64> {
        let is_full = self.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        is_full.then(|| self.text.replace(',', "").parse().ok())?
    }
}

/// Width of the longest count in a column that can be abbreviated; 0 if there is none.
fn longest_count(rows: &[Vec<Cell>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column));
    let widths = cells.filter(|cell| cell.count().is_some()).map(|cell| width(&cell.text));
    widths.max().filter(|columns| *columns > COUNT_COLUMNS_MIN).unwrap_or(0)
}

fn whole(gap: usize, widths: &[usize]) -> usize {
    let gaps = widths.iter().skip(1).filter(|width| **width > 0).count();
    widths.iter().sum::<usize>() + gap * gaps
}

/// The gap between columns and the width of each: that of its widest text. The first is narrower if
/// the table is wider than the page.
fn widths(head: &[String], rows: &[Vec<Cell>], page: usize) -> (usize, Vec<usize>) {
    let mut widths: Vec<usize> = head.iter().map(|text| width(text)).collect();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(&cell.text));
        }
    }
    let rest: usize = widths.iter().skip(1).sum();
    // An empty column has no gap.
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
