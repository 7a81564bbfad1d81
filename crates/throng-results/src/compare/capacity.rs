//! Compares the results of two capacity searches: they differ only if their intervals do not
//! overlap.

use serde_json::{Value, json};
use throng_base::Said;

use crate::summary::Summary;
use throng_metrics::capacity::{Basis, Capacity, LoadUnit, load_text, number};

/// The promise of a run, and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    pub unit: LoadUnit,
    pub carries: Option<f64>,
    /// The 95 % interval; `None` if the search found only a bracket, or nothing.
    pub interval: Option<(f64, f64)>,
}

words! {
    /// How a capacity is to an earlier one.
    CapacityChange {
        Higher, "better", "higher: the intervals do not overlap";
        Lower, "worse", "lower: the intervals do not overlap";
        /// The intervals overlap.
        Unchanged, "unchanged", "no difference: the intervals overlap";
        /// An interval is missing, or the units differ.
        Unknown, "unknown", "unknown whether they differ: an interval is missing";
    }
}

impl Carried {
    pub(crate) fn of(summary: &Summary) -> Option<Carried> {
        let Capacity { unit, carries, low, high, basis, .. } = summary.capacity.as_deref()?;
        let interval = low.zip(*high).filter(|_| *basis == Basis::Interval);
        Some(Carried { unit: *unit, carries: *carries, interval })
    }

    /// Compared with an earlier capacity.
    pub fn since(&self, before: &Carried) -> CapacityChange {
        match (before.interval, self.interval) {
            (Some(before), Some(now)) if now.0 > before.1 => CapacityChange::Higher,
            (Some(before), Some(now)) if now.1 < before.0 => CapacityChange::Lower,
            (Some(_), Some(_)) => CapacityChange::Unchanged,
            _ => CapacityChange::Unknown,
        }
    }

    /// `860/s (864 to 905)`.
    pub(crate) fn text(&self) -> Said {
        let carries = self.carries.map(|load| load_text(self.unit, load));
        let range = self.interval.map(|(low, high)| (number(low), number(high)));
        match (carries, range) {
            (Some(carries), Some((low, high))) => say!("{carries} ({low} to {high})"),
            (Some(carries), None) => carries,
            (None, Some((low, high))) => say!("not confirmed ({low} to {high})"),
            (None, None) => say!("not confirmed"),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "carries": self.carries,
            "low": self.interval.map(|(low, _)| low),
            "high": self.interval.map(|(_, high)| high),
            "unit": self.unit.word(),
        })
    }
}

/// The capacities of two runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacities {
    pub baseline: Carried,
    pub run: Carried,
}

impl Capacities {
    pub(super) fn of(baseline: &Summary, run: &Summary) -> Option<Capacities> {
        let (baseline, run) = (Carried::of(baseline)?, Carried::of(run)?);
        (baseline.unit == run.unit).then_some(Capacities { baseline, run })
    }

    pub fn change(&self) -> CapacityChange {
        self.run.since(&self.baseline)
    }

    pub(crate) fn text(&self) -> Said {
        let (before, after) = (self.baseline.text(), self.run.text());
        say!("capacity: {before} before, {after} now; {}", self.change().text())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "baseline": self.baseline.json(),
            "value": self.run.json(),
            "verdict": self.change().word(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample::capacity::{capacity, searched};

    #[test]
    fn capacities_differ_only_where_intervals_do_not_overlap() {
        let of = |low: f64, high: f64| {
            let found = Capacity { low: Some(low), high: Some(high), ..capacity() };
            searched(found)
        };
        let change = |low, high| Capacities::of(&of(864.0, 905.0), &of(low, high)).unwrap();
        assert_eq!(change(905.0, 950.0).change(), CapacityChange::Unchanged);
        assert_eq!(change(906.0, 950.0).change(), CapacityChange::Higher);
        assert_eq!(change(700.0, 863.0).change(), CapacityChange::Lower);
        assert_eq!(
            change(700.0, 863.0).text().english(),
            "capacity: 860/s (864 to 905) before, 860/s (700 to 863) now; lower: the intervals do \
             not overlap"
        );
        assert_eq!(change(700.0, 863.0).json()["verdict"], "worse");
        let bracket = Capacity { basis: Basis::Bracket, carries: None, ..capacity() };
        let unsure = Capacities::of(&of(1.0, 2.0), &searched(bracket)).unwrap();
        assert_eq!(unsure.change(), CapacityChange::Unknown);
        assert_eq!(unsure.run.text().english(), "not confirmed");
        let users = searched(Capacity { unit: LoadUnit::Users, ..capacity() });
        assert_eq!(Capacities::of(&of(1.0, 2.0), &users), None);
        assert_eq!(Capacities::of(&of(1.0, 2.0), &crate::tests::sample::summary()), None);
    }
}
