//! Native histograms of Prometheus: buckets with exponential bounds, of which only non-empty ones
//! are sent. One series contains what takes twenty classic series, with a higher resolution.

use std::collections::BTreeMap;

use crate::wire::{double, field, number, packed, zigzag};

/// Each doubling has 2 to the power of this many buckets: each is 4.4 % wide.
const SCHEMA: i64 = 4;
/// Values up to this count as zero; throng measures in nanoseconds.
const ZERO_S: f64 = 1e-9;
/// The upper bound of a bucket is 2 to the power of its index divided by this.
const PER_DOUBLING: f64 = (1 << SCHEMA) as f64;

#[derive(Default)]
pub(crate) struct Native {
    zero: u64,
    /// By the index of the bucket.
    counts: BTreeMap<i64, u64>,
}

/// The field numbers of a histogram in one of its two messages.
pub(crate) struct Fields {
    pub(crate) count: u8,
    pub(crate) sum: u8,
    pub(crate) schema: u8,
    pub(crate) zero_threshold: u8,
    pub(crate) zero_count: u8,
    pub(crate) spans: u8,
    pub(crate) deltas: u8,
}

impl Native {
    pub(crate) fn add(&mut self, value_s: f64, count: u64) {
        match value_s > ZERO_S {
            true => *self.counts.entry(index(value_s)).or_default() += count,
            false => self.zero += count,
        }
    }

    /// Encodes a Protocol Buffers message: spans of buckets with the gaps before them, and the
    /// differences between consecutive counts.
    pub(crate) fn write(&self, out: &mut Vec<u8>, fields: &Fields, (count, sum_s): (u64, f64)) {
        number(out, fields.count, count);
        double(out, fields.sum, sum_s);
        number(out, fields.schema, zigzag(SCHEMA));
        double(out, fields.zero_threshold, ZERO_S);
        number(out, fields.zero_count, self.zero);
        for (gap, length) in self.spans() {
            let mut span = Vec::new();
            number(&mut span, 1, zigzag(gap));
            number(&mut span, 2, length);
            field(out, fields.spans, &span);
        }
        let mut before = 0;
        let deltas = self.counts.values().map(|count| {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            count - std::mem::replace(&mut before, count)
        });
        field(out, fields.deltas, &packed(deltas.map(zigzag)));
    }

    /// The gap before each span of buckets, and its length. The first gap is counted from 0.
    fn spans(&self) -> Vec<(i64, u64)> {
        let mut spans: Vec<(i64, u64)> = Vec::new();
        let mut next = 0;
        for index in self.counts.keys() {
            match spans.last_mut() {
                Some((_, length)) if *index == next => *length += 1,
                _ => spans.push((index - next, 1)),
            }
            next = index + 1;
        }
        spans
    }
}

/// The index of the first bucket whose upper bound is not less.
fn index(value_s: f64) -> i64 {
    (value_s.log2() * PER_DOUBLING).ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_within_the_bounds_of_its_bucket() {
        let bound = |index: i64| (index as f64 / PER_DOUBLING).exp2();
        for value in [2e-9, 1e-6, 0.000_313, 0.05, 1.0, 1.000_1, 3.7, 100.0, 86_400.0] {
            let index = index(value);
            assert!(value <= bound(index) && value > bound(index - 1), "{value}");
            assert!(bound(index) / bound(index - 1) < 1.0443, "{value}");
        }
        assert_eq!((index(1.0), index(2.0), index(0.5)), (0, 16, -16));
    }

    #[test]
    fn only_nonempty_buckets_are_sent() {
        let mut native = Native::default();
        // The buckets -16, 0, 1 and 16.
        for (value, count) in [(0.5, 7), (1.0, 3), (1.04, 5), (2.0, 1), (0.0, 4), (1e-9, 1)] {
            native.add(value, count);
        }
        assert_eq!(native.spans(), [(-16, 1), (15, 2), (14, 1)]);
        assert_eq!(native.zero, 5);
        let fields = Fields {
            count: 1,
            sum: 2,
            schema: 5,
            zero_threshold: 6,
            zero_count: 7,
            spans: 12,
            deltas: 13,
        };
        let mut out = Vec::new();
        native.write(&mut out, &fields, (21, 13.7));
        let mut wanted = vec![1 << 3, 21, 2 << 3 | 1];
        wanted.extend(13.7_f64.to_le_bytes());
        wanted.extend([5 << 3, 8, 6 << 3 | 1]);
        wanted.extend(1e-9_f64.to_le_bytes());
        wanted.extend([7 << 3, 5]);
        // Offsets and deltas are sint: twice the number, minus one if it is negative.
        for (gap, length) in [(31, 1), (30, 2), (28, 1)] {
            wanted.extend([12 << 3 | 2, 4, 1 << 3, gap, 2 << 3, length]);
        }
        // 7, then 4 less, 2 more, 4 less.
        wanted.extend([13 << 3 | 2, 4, 14, 7, 4, 7]);
        assert_eq!(out, wanted);
    }
}
