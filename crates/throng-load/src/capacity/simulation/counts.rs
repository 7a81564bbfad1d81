//! Counts the attempts on a virtual target by the second in which they end, as a run does.

use std::collections::VecDeque;

use crate::capacity::hold::{Percentiles, Second, Tally};

/// Buckets per doubling as a power of two; the first doubling starts at 2^-20 s.
const PARTS_BITS: u32 = 4;
const DOUBLINGS: usize = 30;
const LOWEST: u64 = 1023 - 20;

#[derive(Clone)]
struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

impl Histogram {
    fn new() -> Histogram {
        Histogram { counts: vec![0; DOUBLINGS << PARTS_BITS], total: 0 }
    }

    fn add(&mut self, seconds: f64) {
        // The exponent and the leading bits of the mantissa select the bucket.
        let bits = seconds.to_bits() >> (52 - PARTS_BITS);
        let index = bits.saturating_sub(LOWEST << PARTS_BITS) as usize;
        let last = self.counts.len() - 1;
        self.counts[index.min(last)] += 1;
        self.total += 1;
    }

    fn merge(&mut self, other: &Histogram) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        self.total += other.total;
    }

    fn percentile(&self, part: f64) -> Option<f64> {
        let wanted = (self.total as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let index = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        })?;
        let low = f64::from_bits((index as u64 + (LOWEST << PARTS_BITS)) << (52 - PARTS_BITS));
        Some(low * (1.0 + 0.5 / f64::from(1 << PARTS_BITS)))
    }
}

struct Bucket {
    second: Second,
    times: Histogram,
}

/// Counts of the seconds that have not passed. Attempts can end far in the future.
pub(super) struct Counts {
    now_s: f64,
    open: VecDeque<Bucket>,
    unanswered: u64,
    held: Histogram,
    /// A response that takes longer is bad for the first threshold; an error is bad for all.
    within_s: f64,
    shares: usize,
}

impl Counts {
    pub(super) fn new(within_s: f64, shares: usize) -> Counts {
        let (open, held) = (VecDeque::new(), Histogram::new());
        Counts { now_s: 0.0, open, unanswered: 0, held, within_s, shares }
    }

    pub(super) fn now_s(&self) -> f64 {
        self.now_s
    }

    pub(super) fn begin(&mut self) {
        self.unanswered += 1;
    }

    /// Counts an attempt that ends at this time.
    pub(super) fn end(&mut self, at_s: f64, response_s: f64, is_good: bool) {
        let index = (at_s - self.now_s) as usize;
        while self.open.len() <= index {
            let second =
                Second { counted: vec![Tally::default(); self.shares], ..Second::default() };
            self.open.push_back(Bucket { second, times: Histogram::new() });
        }
        let bucket = &mut self.open[index];
        bucket.second.ended += 1;
        bucket.second.good += u64::from(is_good);
        bucket.second.response_s += response_s;
        for (index, tally) in bucket.second.counted.iter_mut().enumerate() {
            let is_slow = index == 0 && response_s > self.within_s;
            tally.add(&Tally { attempts: 1.0, bad: f64::from(!is_good || is_slow) });
        }
        bucket.times.add(response_s);
    }

    /// The counts of the second that has passed.
    pub(super) fn second(&mut self, begun: u64) -> Second {
        self.now_s += 1.0;
        let Some(Bucket { mut second, times }) = self.open.pop_front() else {
            let counted = vec![Tally::default(); self.shares];
            return Second { begun, counted, unanswered: self.unanswered, ..Second::default() };
        };
        self.unanswered -= second.ended;
        second.begun = begun;
        second.unanswered = self.unanswered;
        second.p50_s = times.percentile(0.5);
        self.held.merge(&times);
        second
    }

    /// Response times since the last call.
    pub(super) fn percentiles(&mut self) -> Option<Percentiles> {
        let held = std::mem::replace(&mut self.held, Histogram::new());
        Some(Percentiles {
            p50_s: held.percentile(0.5)?,
            p90_s: held.percentile(0.9)?,
            p99_s: held.percentile(0.99)?,
        })
    }
}
