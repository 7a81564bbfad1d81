//! The points of sparklines, computed while lines are summed up, so that a run without a directory
//! has them, too.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use throng_metrics::{Histogram, Interval, Merge as _, Percentile, StepInterval, merged};

use super::loads::time_of;
use super::phase::SECOND_NS;
use crate::summary::{Attempts, Curves, Latency, POINTS_MAX, per_second};

merged! {
    /// The sums of a few seconds.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    struct Piece {
        in_time: u64 => Sum,
        latency: Histogram => Sum,
        users: u64 => Most,
    }
}

/// Accepts lines in any order. Longer runs have longer pieces, so that there are at most twice
/// [`POINTS_MAX`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pieces {
    /// The length of a piece.
    seconds: u64,
    /// By index: the second divided by `seconds`.
    pieces: BTreeMap<u64, Piece>,
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces { seconds: 1, pieces: BTreeMap::new() }
    }
}

impl Pieces {
    /// Adds a line of a measured phase; `users` is the number online in all loads.
    pub(crate) fn add(&mut self, interval: &Interval, attempts: &Attempts, users: u64) {
        let mut piece = Piece { users, ..Piece::default() };
        let is_attempt = |row: &&StepInterval| attempts.holds(throng_base::StepId(row.step));
        for row in interval.steps.iter().filter(is_attempt) {
            piece.in_time += row.ok_in_time();
            piece.latency.merge(&row.latency);
        }
        self.pieces.entry(interval.second / self.seconds).or_default().merge(&piece);
        while self.places() > 2 * POINTS_MAX as u64 {
            self.widen(2);
        }
    }

    /// The number of pieces from the first to the last.
    fn places(&self) -> u64 {
        let ends = self.pieces.first_key_value().zip(self.pieces.last_key_value());
        ends.map_or(0, |((first, _), (last, _))| (last - first).saturating_add(1))
    }

    fn widen(&mut self, times: u64) {
        self.seconds = self.seconds.saturating_mul(times);
        for (place, piece) in std::mem::take(&mut self.pieces) {
            self.pieces.entry(place / times).or_default().merge(&piece);
        }
    }

    /// The points, given the time spans of measured phases. A piece at the ends that was measured
    /// for less than half its time is dropped, because it would look like a decrease.
    pub(crate) fn finish(mut self, measured: &[Range<u64>]) -> Curves {
        if self.places() > POINTS_MAX as u64 {
            self.widen(2);
        }
        let width_ns = self.seconds.saturating_mul(SECOND_NS);
        let time = |place: u64| {
            let from = place.saturating_mul(width_ns);
            let clip = |span: &Range<u64>| {
                span.start.max(from)..span.end.min(from.saturating_add(width_ns))
            };
            let clipped = measured.iter().map(clip).filter(|span| span.start < span.end);
            time_of(clipped)
        };
        let whole =
            |(place, _): &(&u64, &Piece)| time(**place).as_nanos() * 2 >= u128::from(width_ns);
        let (Some((&first, _)), Some((&last, _))) =
            (self.pieces.iter().find(whole), self.pieces.iter().rfind(whole))
        else {
            return Curves::default();
        };
        let mut curves = Curves::default();
        for place in first..=last {
            let piece = self.pieces.get(&place);
            let p99 = |piece: &Piece| Latency::of(&piece.latency).percentile(Percentile::P99);
            let rate = |piece: &Piece| per_second(piece.in_time, time(place));
            curves.rate.push(piece.map(rate));
            curves.p99.push(piece.and_then(p99).map(|ns| ns as f64));
            curves.users.push(piece.map(|piece| piece.users as f64));
        }
        curves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample::{self, interval};

    fn attempts() -> Attempts {
        Attempts::new(&sample::info())
    }

    fn seconds(count: u64) -> Pieces {
        let mut pieces = Pieces::default();
        let attempts = attempts();
        (0..count).for_each(|second| pieces.add(&interval(second, 1), &attempts, second));
        pieces
    }

    #[test]
    fn a_short_run_has_one_point_per_second() {
        let all = 2 * SECOND_NS..12 * SECOND_NS + SECOND_NS / 4;
        let mut pieces = Pieces::default();
        (2..13).for_each(|second| pieces.add(&interval(second, 1), &attempts(), 64));
        let curves = pieces.finish(&[all]);
        assert_eq!(curves.rate, vec![Some(10_090.0); 10], "the last quarter of a second is none");
        assert_eq!((curves.p99.len(), &curves.users), (10, &vec![Some(64.0); 10]));
    }

    #[test]
    fn a_long_run_has_a_limited_number_of_points_and_the_same_rate() {
        for count in [41, 80, 81, 1_000, 5_000] {
            let all = 0..count * SECOND_NS;
            let curves = seconds(count).finish(&[all]);
            assert!(curves.rate.len() <= POINTS_MAX, "{count}: {}", curves.rate.len());
            assert!(curves.rate.len() >= POINTS_MAX / 2 - 1, "{count}: {}", curves.rate.len());
            let off = |rate: &Option<f64>| (rate.unwrap() - 10_090.0).abs() > 1.0;
            assert!(!curves.rate.iter().any(off), "{count}: {:?}", curves.rate);
        }
        let all = 0..5_000 * SECOND_NS;
        let users = seconds(5_000).finish(&[all]).users;
        // The last piece was measured for less than half of its time.
        assert_eq!(users.last(), Some(&Some(4_991.0)));
    }

    #[test]
    fn a_malicious_run_directory_uses_little_memory() {
        let mut pieces = seconds(3);
        let hostile = Interval { second: u64::MAX, ..interval(0, 1) };
        pieces.add(&hostile, &attempts(), 1);
        assert!(pieces.places() <= 2 * POINTS_MAX as u64);
        let all = 0..u64::MAX;
        let curves = pieces.finish(&[all]);
        assert!(curves.rate.len() <= POINTS_MAX);
    }

    #[test]
    fn unmeasured_time_is_a_gap() {
        let mut pieces = Pieces::default();
        for second in [0, 1, 5, 6] {
            pieces.add(&interval(second, 1), &attempts(), 1);
        }
        let curves = pieces.finish(&[0..2 * SECOND_NS, 5 * SECOND_NS..7 * SECOND_NS]);
        let is_known: Vec<bool> = curves.rate.iter().map(Option::is_some).collect();
        assert_eq!(is_known, [true, true, false, false, false, true, true]);
    }
}
