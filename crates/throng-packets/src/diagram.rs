//! A packet as a drawing: eight bytes per line, a box per field, as in the RFCs.

use throng_base::columns::cut;
use unicode_width::UnicodeWidthStr as _;

use crate::layout::{Bytes, Row};

/// Bytes per line, and the width of a byte.
const LINE_BYTES: usize = 8;
const BYTE_COLUMNS: usize = 8;
/// A longer field is shortened.
const DRAWN_BYTES_MAX: u64 = 16;
const LINES_MAX: usize = 64;
/// The width of the offsets before the drawing.
const MARGIN: usize = 7;

type Line = [Option<usize>; LINE_BYTES];

/// The drawing of these fields, of which the first starts at `begin`; empty if there are none.
pub(crate) fn diagram(rows: &[Row], begin: Bytes) -> String {
    let cells = cells(rows);
    if cells.is_empty() {
        return String::new();
    }
    let mut drawing = Drawing::new(begin);
    for (index, cell) in cells.iter().enumerate() {
        drawing.place(index, cell);
    }
    drawing.text(&cells)
}

struct Cell {
    label: String,
    at: Bytes,
    size: Bytes,
}

/// Nested fields are not drawn; bit fields share the box of their bytes.
fn cells(rows: &[Row]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut bits_end: Option<u64> = None;
    for row in rows.iter().filter(|row| row.depth == 0) {
        let Some((first, bits)) = row.bits else {
            bits_end = None;
            cells.push(Cell { label: row.id.clone(), at: row.at, size: row.size });
            continue;
        };
        let begin = row.at.least * 8 + u64::from(first);
        let label = format!("{}:{bits}", row.id);
        let end = begin + u64::from(bits);
        match cells.last_mut().filter(|_| bits_end == Some(begin)) {
            Some(cell) => {
                cell.label = format!("{} {label}", cell.label);
                cell.size.least = end.div_ceil(8) - cell.at.least;
            }
            None => cells.push(Cell { label, at: row.at, size: row.size }),
        }
        bits_end = Some(end);
    }
    cells
}

struct Drawing {
    lines: Vec<Line>,
    /// The offset of each line.
    offsets: Vec<Bytes>,
    column: usize,
    /// A field was shortened: columns are no longer offsets.
    is_cut: bool,
}

impl Drawing {
    fn new(begin: Bytes) -> Drawing {
        let column = match begin.varies {
            true => 0,
            false => (begin.least % LINE_BYTES as u64) as usize,
        };
        let least = begin.least - column as u64;
        let offset = Bytes { least, varies: begin.varies };
        Drawing { lines: vec![[None; LINE_BYTES]], offsets: vec![offset], column, is_cut: false }
    }

    fn place(&mut self, index: usize, cell: &Cell) {
        if cell.size.least == 0 && !cell.size.varies {
            return;
        }
        let is_short = cell.size.varies || cell.size.least > DRAWN_BYTES_MAX;
        if self.column == LINE_BYTES || self.is_cut {
            self.next_line(cell.at);
        }
        self.is_cut = false;
        if is_short {
            // To the end of the line; the next cell starts a new one.
            self.fill(index, LINE_BYTES - self.column);
            self.is_cut = true;
            return;
        }
        let mut left = cell.size.least as usize;
        while left > 0 && self.lines.len() <= LINES_MAX {
            if self.column == LINE_BYTES {
                let done = cell.size.least - left as u64;
                self.next_line(Bytes { least: cell.at.least + done, varies: cell.at.varies });
            }
            let part = left.min(LINE_BYTES - self.column);
            self.fill(index, part);
            left -= part;
        }
    }

    fn fill(&mut self, index: usize, bytes: usize) {
        if let Some(line) = self.lines.last_mut() {
            line[self.column..self.column + bytes].fill(Some(index));
        }
        self.column += bytes;
    }

    fn next_line(&mut self, at: Bytes) {
        if self.lines.len() <= LINES_MAX {
            self.lines.push([None; LINE_BYTES]);
            self.offsets.push(at);
        }
        self.column = 0;
    }

    fn text(&self, cells: &[Cell]) -> String {
        let mut out = " ".repeat(MARGIN);
        for byte in 0..LINE_BYTES {
            out.push_str(&format!("{:^BYTE_COLUMNS$}", format!("+{byte}")));
        }
        let mut out = format!("{}\n", out.trim_end());
        let mut labelled = vec![false; cells.len()];
        let nothing = [None; LINE_BYTES];
        for (at, line) in self.lines.iter().enumerate().take(LINES_MAX) {
            let above = at.checked_sub(1).map_or(&nothing, |above| &self.lines[above]);
            out.push_str(&border(above, line));
            let below = self.lines.get(at + 1).unwrap_or(&nothing);
            out.push_str(&self.row(self.offsets[at], line, below, cells, &mut labelled));
        }
        let last = self.lines.len().min(LINES_MAX) - 1;
        out.push_str(&border(&self.lines[last], &nothing));
        out
    }

    fn row(
        &self,
        offset: Bytes,
        line: &Line,
        below: &Line,
        cells: &[Cell],
        labelled: &mut [bool],
    ) -> String {
        let more = if offset.varies { "+" } else { "" };
        let mut out = format!("{:>width$} ", format!("{}{more}", offset.least), width = MARGIN - 1);
        let mut column = 0;
        while column < LINE_BYTES {
            let cell = line[column];
            let end = (column..LINE_BYTES).find(|at| line[*at] != cell).unwrap_or(LINE_BYTES);
            let room = (end - column) * BYTE_COLUMNS - 1;
            let is_edge = cell.is_some() || (column > 0 && line[column - 1].is_some());
            out.push(if is_edge { '│' } else { ' ' });
            let mut label = String::new();
            if let Some(index) = cell.filter(|index| !labelled[*index]) {
                // The name is in the widest part.
                let here = end - column;
                let there = below.iter().filter(|other| **other == cell).count();
                if here >= there {
                    labelled[index] = true;
                    label = fitted(&cells[index], room);
                }
            }
            let free = room.saturating_sub(label.width());
            out.push_str(&" ".repeat(free / 2));
            out.push_str(&label);
            out.push_str(&" ".repeat(free - free / 2));
            column = end;
        }
        out.push(if line[LINE_BYTES - 1].is_some() { '│' } else { ' ' });
        format!("{}\n", out.trim_end())
    }
}

/// The name of a field with its length, shortened to fit.
fn fitted(cell: &Cell, room: usize) -> String {
    let size = match (cell.size.varies, cell.size.least) {
        (true, 0) => " …".to_string(),
        (true, least) => format!(" ({least}+) …"),
        (false, bytes) if bytes > DRAWN_BYTES_MAX => format!(" ({bytes}) …"),
        _ => String::new(),
    };
    let whole = format!("{}{size}", cell.label);
    if whole.width() <= room {
        return whole;
    }
    cut(&cell.label, room)
}

/// The line between two lines of bytes: none within a field that continues.
fn border(above: &Line, below: &Line) -> String {
    let is_drawn = |column: usize| above[column] != below[column];
    let edge = |line: &Line, column: usize| {
        let left = column.checked_sub(1).and_then(|left| line[left]);
        let right = line.get(column).copied().flatten();
        left != right
    };
    let mut out = " ".repeat(MARGIN);
    for column in 0..=LINE_BYTES {
        let left = column > 0 && is_drawn(column - 1);
        let right = column < LINE_BYTES && is_drawn(column);
        out.push(corner(edge(above, column), edge(below, column), left, right));
        if column < LINE_BYTES {
            let stroke = if is_drawn(column) { "─" } else { " " };
            out.push_str(&stroke.repeat(BYTE_COLUMNS - 1));
        }
    }
    format!("{}\n", out.trim_end())
}

fn corner(up: bool, down: bool, left: bool, right: bool) -> char {
    match (up, down, left, right) {
        (true, true, true, true) => '┼',
        (true, true, true, false) => '┤',
        (true, true, false, true) => '├',
        (true, true, false, false) => '│',
        (true, false, true, true) => '┴',
        (true, false, true, false) => '┘',
        (true, false, false, true) => '└',
        (false, true, true, true) => '┬',
        (false, true, true, false) => '┐',
        (false, true, false, true) => '┌',
        (false, false, false, false) => ' ',
        (false, false, _, _) => '─',
        (true, false, false, false) | (false, true, false, false) => '│',
    }
}
