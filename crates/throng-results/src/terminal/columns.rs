//! Tables by their columns: what each is called, and what it shows of a row; of the terminal and of
//! Markdown. Percentiles and their names come from [`Percentile`], and one rule decides which
//! columns are left out.

use std::rc::Rc;

use throng_base::Said;
use throng_metrics::{Percentile, Unit};

use super::Ink;
use super::table::{Cell, Table};
use super::text::{nanos, rate};
use crate::summary::Latency;

/// What stands where there is no figure.
pub(crate) const NOTHING: &str = "–";
/// What stands before a percentile that the generator's own lateness can explain.
pub(super) const EXPLAINED: &str = "~";

/// A figure of a [`Latency`].
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
/// What tables of times alone show.
pub(crate) const TIMES: [Time; 6] = [P50, P90, P95, P99, Time::At(Percentile::P999), Time::Max];
/// What most tables show of times.
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

    /// In nanoseconds; None where there are too few values for it.
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

    /// Of values that are not nanoseconds; None as well.
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

/// The columns of a table of rows.
pub(crate) struct Columns<'a, R> {
    columns: Vec<Column<'a, R>>,
    ink: Box<dyn Fn(&R) -> Ink + 'a>,
}

/// Whether something holds of a row.
type Asked<'a, R> = Box<dyn Fn(&R) -> bool + 'a>;

struct Column<'a, R> {
    head: Said,
    cell: Box<dyn Fn(&R) -> Cell + 'a>,
    /// Words are aligned to the left, numbers to the right.
    is_words: bool,
    /// It is left out where this holds of no row.
    is_told: Option<Asked<'a, R>>,
}

impl<'a, R> Columns<'a, R> {
    /// With the names of the rows as the first.
    pub(crate) fn of<C: Into<Cell>>(head: Said, name: impl Fn(&R) -> C + 'a) -> Columns<'a, R> {
        let columns = Columns { columns: Vec::new(), ink: Box::new(|_| Ink::Plain) };
        columns.cell(head, name).words()
    }

    /// The column before holds numbers, although it is the first.
    pub(crate) fn numbers(mut self) -> Columns<'a, R> {
        self.columns.last_mut().into_iter().for_each(|column| column.is_words = false);
        self
    }

    /// The colour of what has none of its own.
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

    /// The column before holds words.
    pub(crate) fn words(mut self) -> Columns<'a, R> {
        self.columns.last_mut().into_iter().for_each(|column| column.is_words = true);
        self
    }

    /// The column before is there only where this holds of a row: a figure that says nothing of
    /// any of them is not shown.
    pub(crate) fn if_any(mut self, is_told: impl Fn(&R) -> bool + 'a) -> Columns<'a, R> {
        if let Some(column) = self.columns.last_mut() {
            column.is_told = Some(Box::new(is_told));
        }
        self
    }

    pub(crate) fn count(self, head: Said, count: impl Fn(&R) -> u64 + 'a) -> Columns<'a, R> {
        self.cell(head, move |row| Cell::number(count(row)))
    }

    /// A count that most runs have none of.
    pub(crate) fn rare(self, head: Said, count: impl Fn(&R) -> u64 + Clone + 'a) -> Columns<'a, R> {
        self.count(head, count.clone()).if_any(move |row| count(row) > 0)
    }

    /// A count of what went wrong, in red where it is one.
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

    /// The same; what the lateness of the generator can explain is marked.
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

/// How many failed: in red where it is one.
pub(super) fn failures(count: u64) -> Cell {
    Cell::number(count).or_ink(if count > 0 { Ink::Bad } else { Ink::Plain })
}
