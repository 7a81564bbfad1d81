//! A service whose throughput depends on its concurrency by the Universal Scalability Law; and a
//! rate limiter.

use std::collections::VecDeque;

use throng_base::random::Random;

use super::counts::Counts;

/// Serves up to `max` attempts at once, at `single * n / (1 + contention (n - 1) + crosstalk n (n -
/// 1))` per second; others wait. Each is equally likely to end next.
pub(super) struct Shared {
    /// Throughput by concurrency.
    rates: Vec<f64>,
    /// Due times of the attempts in service, and of those that wait.
    served_s: Vec<f64>,
    waiting_s: VecDeque<f64>,
    now_s: f64,
}

impl Shared {
    /// `highest` is the maximum throughput.
    pub(super) fn new(highest: f64, (contention, crosstalk): (f64, f64), max: usize) -> Shared {
        let rate = |n: usize| {
            let n = n as f64;
            n / (1.0 + contention * (n - 1.0) + crosstalk * n * (n - 1.0))
        };
        let peak = (1..=max).map(rate).fold(0.0, f64::max);
        let rates = (0..=max).map(|n| rate(n).max(0.0) * highest / peak).collect();
        Shared { rates, served_s: Vec::new(), waiting_s: VecDeque::new(), now_s: 0.0 }
    }

    pub(super) fn arrive(&mut self, at_s: f64, counts: &mut Counts, random: &mut Random) {
        self.advance(at_s, counts, random);
        counts.begin();
        match self.served_s.len() < self.rates.len() - 1 {
            true => self.served_s.push(at_s),
            false => self.waiting_s.push_back(at_s),
        }
    }

    /// Ends attempts up to this time. Times between departures are memoryless, so the remaining
    /// time is drawn again.
    pub(super) fn advance(&mut self, until_s: f64, counts: &mut Counts, random: &mut Random) {
        while !self.served_s.is_empty() {
            let next_s = self.now_s + random.exponential(1.0 / self.rates[self.served_s.len()]);
            if next_s > until_s {
                break;
            }
            self.now_s = next_s;
            let place = random.below(self.served_s.len() as u64) as usize;
            let due_s = self.served_s.swap_remove(place);
            counts.end(next_s, next_s - due_s, true);
            self.served_s.extend(self.waiting_s.pop_front());
        }
        self.now_s = until_s;
    }
}

/// A token bucket with a rate per second and a size. An attempt without a token fails immediately.
pub(super) struct Bucket {
    rate: f64,
    store: f64,
    tokens: f64,
    at_s: f64,
    service_s: f64,
}

impl Bucket {
    pub(super) fn new(rate: f64, store: f64, service_s: f64) -> Bucket {
        Bucket { rate, store, tokens: store, at_s: 0.0, service_s }
    }

    pub(super) fn arrive(&mut self, at_s: f64, counts: &mut Counts, random: &mut Random) {
        counts.begin();
        self.tokens = (self.tokens + (at_s - self.at_s) * self.rate).min(self.store);
        self.at_s = at_s;
        let is_good = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(is_good));
        let takes_s = if is_good { random.exponential(self.service_s) } else { 0.0002 };
        counts.end(at_s + takes_s, takes_s, is_good);
    }
}
