//! The states of all users over the time of a run: rows of cells and columns of time, with the
//! worst state of each. Columns and rows become wider as needed, so the size is limited.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throng_metrics::{Census, Interval, Shade, UserState};

const COLUMNS_MAX: u64 = 240;
const ROWS_MAX: usize = 250;

/// Adds changes line by line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    census: Census,
    /// The current second.
    second: u64,
    width_s: u64,
    cells_per_row: usize,
    columns: Vec<Column>,
    /// By state.
    most: [Most; UserState::ALL.len()],
}

/// The maximum number of users in a state, and the first second at whose end it was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Most {
    pub users: u64,
    pub at_s: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Column {
    rows: Shades,
    /// By state: the maximum number of users.
    most: [u64; UserState::ALL.len()],
}

/// Run-length encoded letters: `12O3a`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
struct Shades(Vec<Shade>);

impl From<Shades> for String {
    fn from(shades: Shades) -> String {
        let runs = shades.0.chunk_by(|one, next| one == next);
        runs.map(|run| format!("{}{}", run.len(), run[0].letter())).collect()
    }
}

impl From<String> for Shades {
    fn from(text: String) -> Shades {
        let (mut shades, mut times) = (Vec::new(), 0_usize);
        for byte in text.bytes() {
            if byte.is_ascii_digit() {
                times = times.saturating_mul(10).saturating_add(usize::from(byte - b'0'));
                continue;
            }
            let room = throng_metrics::cells::CELLS_MAX - shades.len();
            shades.extend(std::iter::repeat_n(Shade::from_letter(byte), times.min(room)));
            times = 0;
        }
        Shades(shades)
    }
}

impl Default for Picture {
    fn default() -> Picture {
        Picture {
            census: Census::default(),
            second: 0,
            width_s: 1,
            cells_per_row: 1,
            columns: Vec::new(),
            most: <_>::default(),
        }
    }
}

impl Picture {
    /// Adds a line. Lines of the same second can be in any order; late ones count toward the
    /// current second.
    pub(crate) fn add(&mut self, interval: &Interval) {
        if interval.second > self.second {
            self.end_second();
            self.second = interval.second;
            // Without lines, users keep their states.
            let at = self.reach();
            if self.columns.len() < at {
                let column = self.column();
                self.columns.resize(at, column);
            }
        }
        self.census.add(&interval.cells);
    }

    /// The picture of the whole run; `None` without users on long-lived connections.
    pub(crate) fn finished(mut self) -> Option<Picture> {
        self.end_second();
        (self.census.cells() > 0).then_some(self)
    }

    fn end_second(&mut self) {
        if self.census.cells() == 0 {
            return;
        }
        while self.census.cells() > ROWS_MAX * self.cells_per_row {
            self.cells_per_row *= 2;
            self.columns.iter_mut().for_each(Column::fold_rows);
        }
        let column = self.column();
        for (most, users) in self.most.iter_mut().zip(column.most) {
            if users > most.users {
                *most = Most { users, at_s: self.second };
            }
        }
        let at = self.reach();
        if self.columns.len() <= at {
            self.columns.resize_with(at + 1, Column::default);
        }
        self.columns[at].merge(&column);
    }

    /// The column of the current second; creates it if necessary.
    fn reach(&mut self) -> usize {
        while self.second / self.width_s >= COLUMNS_MAX {
            self.width_s = self.width_s.saturating_mul(2);
            self.columns = self.columns.chunks(2).map(Column::worst).collect();
        }
        (self.second / self.width_s) as usize
    }

    /// The current state.
    fn column(&self) -> Column {
        let rows = self.shades(self.cells_per_row).collect();
        Column { rows: Shades(rows), most: self.census.all() }
    }

    fn shades(&self, cells: usize) -> impl Iterator<Item = Shade> + '_ {
        let rows = (0..self.census.cells()).step_by(cells.max(1));
        rows.map(move |first| self.census.shade(first..first + cells))
    }

    pub fn users_per_cell(&self) -> u64 {
        self.census.users_per_cell
    }

    pub fn cells(&self) -> usize {
        self.census.cells()
    }

    /// Only states that occurred.
    pub fn most(&self) -> impl Iterator<Item = (UserState, Most)> {
        UserState::ALL.into_iter().zip(self.most).filter(|(_, most)| most.users > 0)
    }

    /// The columns, and the current cells, for a page.
    pub(crate) fn json(&self) -> Value {
        let text = |shades: &Shades| String::from(shades.clone());
        let columns = self.columns.iter().map(|column| text(&column.rows));
        let most = self.columns.iter().map(|column| column.most);
        json!({
            "users_per_cell": self.users_per_cell(),
            "cells": self.cells(),
            "cells_per_row": self.cells_per_row,
            "width_s": self.width_s,
            "columns": columns.collect::<Vec<_>>(),
            "most": most.collect::<Vec<_>>(),
            "now": text(&Shades(self.shades(1).collect())),
            "users": self.census.all(),
        })
    }
}

impl Column {
    fn worst(columns: &[Column]) -> Column {
        let mut worst = Column::default();
        columns.iter().for_each(|column| worst.merge(column));
        worst
    }

    fn merge(&mut self, other: &Column) {
        let rows = &mut self.rows.0;
        rows.resize(rows.len().max(other.rows.0.len()), Shade::default());
        rows.iter_mut().zip(&other.rows.0).for_each(|(mine, theirs)| *mine = *(&*mine).max(theirs));
        self.most.iter_mut().zip(other.most).for_each(|(mine, theirs)| *mine = theirs.max(*mine));
    }

    fn fold_rows(&mut self) {
        let worst = |pair: &[Shade]| pair.iter().copied().max().unwrap_or_default();
        self.rows = Shades(self.rows.0.chunks(2).map(worst).collect());
    }
}

#[cfg(test)]
mod tests {
    use throng_metrics::Cells;
    use throng_metrics::cells::CellRow;

    use super::*;

    /// Users of each cell enter one state and leave another.
    fn line(second: u64, cells: std::ops::Range<u16>, changes: [i64; 6]) -> Interval {
        let rows = cells.map(|cell| CellRow(cell, changes)).collect();
        let cells = Cells { users_per_cell: 10, rows };
        Interval { second, cells, ..Interval::default() }
    }

    fn column(picture: &Picture, second: u64) -> String {
        let at = (second / picture.width_s) as usize;
        String::from(picture.columns[at].rows.clone())
    }

    #[test]
    fn a_reconnect_storm_is_visible() {
        let mut picture = Picture::default();
        picture.add(&line(0, 0..100, [10, 0, 0, 0, 0, 0]));
        picture.add(&line(5, 20..60, [-10, 0, 0, 0, 10, 0]));
        picture.add(&line(7, 20..40, [10, 0, 0, 0, -10, 0]));
        picture.add(&line(8, 40..60, [9, 0, 0, 0, -9, 0]));
        picture.add(&line(9, 0..100, [0; 6]));
        let picture = picture.finished().unwrap();
        let seen = [4, 5, 6, 7, 8].map(|second| column(&picture, second));
        let stormy = "20O40A40O";
        assert_eq!(seen, ["100O", stormy, stormy, "40O20A40O", "40O20a40O"]);
        let most: Vec<_> = picture.most().map(|(state, it)| (state, it.users, it.at_s)).collect();
        assert_eq!(most, [(UserState::Online, 1_000, 0), (UserState::Away, 400, 5)]);
        assert_eq!(picture.columns[6].most, [600, 0, 0, 0, 400, 0]);
    }

    #[test]
    fn a_day_has_limited_size_and_keeps_a_short_outage() {
        let mut picture = Picture::default();
        picture.add(&line(0, 0..2_000, [10, 0, 0, 0, 0, 0]));
        picture.add(&line(40_000, 0..2_000, [-10, 0, 0, 0, 10, 0]));
        picture.add(&line(40_012, 0..2_000, [10, 0, 0, 0, -10, 0]));
        picture.add(&line(86_399, 0..2_000, [-10, 0, 0, 0, 0, 0]));
        let picture = picture.finished().unwrap();
        assert_eq!((picture.cells(), picture.cells_per_row, picture.width_s), (2_000, 8, 512));
        assert!(picture.columns.len() <= COLUMNS_MAX as usize);
        let storms = (0..169).filter(|at| column(&picture, at * 512) == "250A").count();
        assert_eq!(storms, 1);
        let text = serde_json::to_string(&picture).unwrap();
        assert!(text.len() < 100_000, "{}", text.len());
        assert_eq!(serde_json::from_str::<Picture>(&text).unwrap(), picture);
    }

    #[test]
    fn lines_of_a_second_may_be_in_any_order_and_no_cells_mean_no_picture() {
        let lines = |reversed: bool| {
            let parts = [
                line(3, 0..7, [0, 0, 10, 0, 0, 0]),
                line(3, 5..9, [3, 0, 0, 0, 0, 0]),
                line(3, 0..3, [9, 0, -9, 0, 0, 0]),
            ];
            let mut picture = Picture::default();
            picture.add(&line(0, 0..0, [0; 6]));
            match reversed {
                true => parts.iter().rev().for_each(|part| picture.add(part)),
                false => parts.iter().for_each(|part| picture.add(part)),
            }
            picture.finished()
        };
        assert_eq!(lines(true), lines(false));
        let mut empty = Picture::default();
        empty.add(&line(5, 0..0, [0; 6]));
        assert_eq!(empty.finished(), None);
        // A damaged run directory can contain any second.
        let mut last = Picture::default();
        last.add(&line(0, 0..3, [1, 0, 0, 0, 0, 0]));
        last.add(&line(u64::MAX, 0..3, [1, 0, 0, 0, 0, 0]));
        assert!(last.finished().unwrap().columns.len() <= COLUMNS_MAX as usize);
    }
}
