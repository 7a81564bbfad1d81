//! Counts the attempts on a virtual target by the second in which they end, as a run does.

use std::collections::VecDeque;

use throng_metrics::Histogram;

use crate::capacity::hold::{Percentiles, Second, Tally};

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
        bucket.times.record((response_s * 1e9) as u64);
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
        second.p50_s = (!times.is_empty()).then(|| seconds_at(&times, 0.5));
        self.held.merge(&times);
        second
    }

    /// Response times since the last call.
    pub(super) fn percentiles(&mut self) -> Option<Percentiles> {
        let held = std::mem::take(&mut self.held);
        let at = |quantile| seconds_at(&held, quantile);
        (!held.is_empty()).then(|| Percentiles { p50_s: at(0.5), p90_s: at(0.9), p99_s: at(0.99) })
    }
}

fn seconds_at(times: &Histogram, quantile: f64) -> f64 {
    times.value_at(quantile) as f64 / 1e9
}
