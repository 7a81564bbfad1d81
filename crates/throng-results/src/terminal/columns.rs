//! Tables for the terminal and Markdown, defined by columns: a heading and the cell of each row.
//! Names of percentiles come from [`Percentile`], and one rule decides which columns are omitted.

use std::rc::Rc;

use throng_base::Said;
use throng_metrics::{Percentile, Unit};

use super::Ink;
use super::table::{Cell, Table};
use super::text::{nanos, rate};
use crate::summary::Latency;

/// Shown without a value.
pub(crate) const NOTHING: &str = "–";
/// Marks a percentile that the generator's lateness can explain.
pub(super) const EXPLAINED: &str = "~";

/// A value of a [`Latency`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    Min,
    Mean,
    Deviation,
    At(Percentile),
    Max,
}

pub(crate) const P50: Time = Time::At(Percentile::P50);
pub(super) const P90: Time = Time::At(Percentile::P90);
pub(super) const P95: Time = Time::At(Percentile::P95);
pub(crate) const P99: Time = Time::At(Percentile::P99);
/// The columns of tables with only times.
pub(crate) const TIMES: [Time; 6] = [P50, P90, P95, P99, Time::At(Percentile::P999), Time::Max];
/// The time columns of most tables.
pub(super) const BRIEF: [Time; 4] = [P50, P90, P99, Time::Max];

impl Time {
    pub(super) fn head(self) -> Said {
        match self {
            Time::Min => say!("min"),
            Time::Mean => say!("mean"),
            Time::Deviation => say!("sd"),
            Time::At(percentile) => Said::of_others(percentile.label()),
            Time::Max => say!("max"),
        }
    }

    /// In nanoseconds; `None` with too few values.
    fn of(self, latency: &Latency) -> Option<u64> {
        let some = |ns: u64| (!latency.is_empty()).then_some(ns);
        match self {
            Time::Min => some(latency.min_ns),
            Time::Mean => some(latency.mean_ns as u64),
            Time::Deviation => some(latency.deviation_ns as u64),
            Time::At(percentile) => latency.percentile(percentile),
            Time::Max => latency.max(),
        }
    }

    /// For values other than nanoseconds; `None` with too few values.
    pub(super) fn value(self, values: &Latency) -> Option<f64> {
        match self {
            Time::Mean if !values.is_empty() => Some(values.mean_ns),
            _ => self.of(values).map(|value| value as f64),
        }
    }

    pub(crate) fn text(self, latency: &Latency) -> String {
        self.of(latency).map_or_else(|| NOTHING.to_string(), nanos)
    }

    pub(crate) fn cell(self, latency: &Latency) -> Cell {
        self.of(latency).map_or_else(|| NOTHING.into(), Cell::nanos)
    }
}

/// The columns of a table.
pub(crate) struct Columns<'a, R> {
    columns: Vec<Column<'a, R>>,
    ink: Box<dyn Fn(&R) -> Ink + 'a>,
}

/// A condition on a row.
type Asked<'a, R> = Box<dyn Fn(&R) -> bool + 'a>;

struct Column<'a, R> {
    head: Said,
    cell: Box<dyn Fn(&R) -> Cell + 'a>,
    /// Words are aligned left, numbers right.
    is_words: bool,
    /// If set, the column is omitted unless a row satisfies it.
    is_told: Option<Asked<'a, R>>,
}

impl<'a, R> Columns<'a, R> {
    /// Starts with a column of row names.
    pub(crate) fn of<C: Into<Cell>>(head: Said, name: impl Fn(&R) -> C + 'a) -> Columns<'a, R> {
        let columns = Columns { columns: Vec::new(), ink: Box::new(|_| Ink::Plain) };
        columns.cell(head, name).words()
    }

    /// The previous column contains numbers, although it is the first.
    pub(crate) fn numbers(mut self) -> Columns<'a, R> {
        self.columns.last_mut().into_iter().for_each(|column| column.is_words = false);
        self
    }

    /// The default color of a row.
    pub(super) fn inked(mut self, ink: impl Fn(&R) -> Ink + 'a) -> Columns<'a, R> {
        self.ink = Box::new(ink);
        self
    }

    pub(crate) fn cell<C: Into<Cell>>(
        mut self,
        head: Said,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Columns<'a, R> {
        let cell = Box::new(move |row: &R| cell(row).into());
        self.columns.push(Column { head, cell, is_words: false, is_told: None });
        self
    }

    /// The previous column contains words.
    pub(crate) fn words(mut self) -> Columns<'a, R> {
        self.columns.last_mut().into_iter().for_each(|column| column.is_words = true);
        self
    }

    /// Omits the previous column unless a row satisfies the condition.
    pub(crate) fn if_any(mut self, is_told: impl Fn(&R) -> bool + 'a) -> Columns<'a, R> {
        if let Some(column) = self.columns.last_mut() {
            column.is_told = Some(Box::new(is_told));
        }
        self
    }

    pub(crate) fn count(self, head: Said, count: impl Fn(&R) -> u64 + 'a) -> Columns<'a, R> {
        self.cell(head, move |row| Cell::number(count(row)))
    }

    /// A count that is 0 in most runs.
    pub(crate) fn rare(self, head: Said, count: impl Fn(&R) -> u64 + Clone + 'a) -> Columns<'a, R> {
        self.count(head, count.clone()).if_any(move |row| count(row) > 0)
    }

    /// A count of errors, red if it is not 0.
    pub(crate) fn bad(self, head: Said, count: impl Fn(&R) -> u64 + 'a) -> Columns<'a, R> {
        self.cell(head, move |row| failures(count(row)))
    }

    pub(crate) fn rate(self, head: Said, per_s: impl Fn(&R) -> f64 + 'a) -> Columns<'a, R> {
        self.cell(head, move |row| {
            let per_s = per_s(row);
            Cell::of(Unit::PerSecond, per_s, rate(per_s))
        })
    }

    pub(crate) fn times(
        self,
        which: &[Time],
        latency: impl Fn(&R) -> Latency + 'a,
    ) -> Columns<'a, R> {
        self.timed(which, latency, Time::cell)
    }

    fn timed(
        self,
        which: &[Time],
        latency: impl Fn(&R) -> Latency + 'a,
        cell: impl Fn(Time, &Latency) -> Cell + 'a,
    ) -> Columns<'a, R> {
        let made = Rc::new(move |time: Time, row: &R| cell(time, &latency(row)));
        which.iter().fold(self, |columns, time| {
            let (time, made) = (*time, Rc::clone(&made));
            columns.cell(time.head(), move |row| made(time, row))
        })
    }

    /// The same; percentiles that the generator's lateness can explain are marked.
    pub(super) fn times_beside(
        self,
        lateness: &'a Latency,
        which: &[Time],
        latency: impl Fn(&R) -> Latency + 'a,
    ) -> Columns<'a, R> {
        self.timed(which, latency, move |time, latency| match time {
            Time::At(percentile) if latency.is_explained_by(lateness, percentile) => {
                Cell::new(Ink::Warn, format!("{EXPLAINED}{}", time.text(latency)))
            }
            _ => Cell::from(time.text(latency)),
        })
    }

    pub(crate) fn table<'r>(&self, rows: impl IntoIterator<Item = &'r R>) -> Table
    where
        R: 'r,
    {
        let rows: Vec<&R> = rows.into_iter().collect();
        let is_shown = |column: &&Column<'a, R>| {
            column.is_told.as_ref().is_none_or(|told| rows.iter().any(|row| told(row)))
        };
        let shown: Vec<&Column<'a, R>> = self.columns.iter().filter(is_shown).collect();
        let heads = shown.iter().map(|column| column.head.clone());
        let words = (0..).zip(&shown).filter(|(_, column)| column.is_words).map(|(at, _)| at);
        let mut table = Table::new(heads).words_in(words);
        for row in rows {
            let ink = (self.ink)(row);
            table.row(shown.iter().map(|column| (column.cell)(row).or_ink(ink)));
        }
        table
    }
}

/// The number of failures, red if it is not 0.
pub(super) fn failures(count: u64) -> Cell {
    Cell::number(count).or_ink(if count > 0 { Ink::Bad } else { Ink::Plain })
}
