//! A token bucket, which limits the rate of requests.

use std::time::Duration;

use throng_base::Time;

/// A rate limit: a bucket of `burst` tokens that receives `per_s` tokens per second. A request
/// takes one, or is rejected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    pub per_s: f64,
    pub burst: u64,
}

/// A bucket that is initially full. It has no clock: times are arguments, in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    limit: RateLimit,
    tokens: f64,
    at: Time,
}

impl Bucket {
    pub(crate) fn new(limit: RateLimit) -> Bucket {
        Bucket { limit, tokens: limit.burst as f64, at: Time::ZERO }
    }

    /// Takes a token, or returns how long to wait for one.
    pub(crate) fn take(&mut self, at: Time) -> Result<(), Duration> {
        let at = at.max(self.at);
        let new = (at - self.at).as_secs_f64() * self.limit.per_s;
        self.tokens = (self.tokens + new).min(self.limit.burst as f64);
        self.at = at;
        // An even rate at the limit must not fail because of rounding, or a nanosecond.
        if self.tokens >= 1.0 - 1e-6 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) / self.limit.per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_applies() {
        let mut bucket = Bucket::new(RateLimit { per_s: 10.0, burst: 5 });
        let at = |ms: u64| Time(ms * 1_000_000);
        let passed =
            |bucket: &mut Bucket, ms, n| (0..n).filter(|_| bucket.take(at(ms)).is_ok()).count();
        assert_eq!(passed(&mut bucket, 0, 9), 5);
        assert_eq!(bucket.take(at(40)), Err(Duration::from_millis(60)));
        assert_eq!(passed(&mut bucket, 100, 2), 1);
        assert_eq!(passed(&mut bucket, 100_000, 9), 5);
        // An earlier time counts as the last one.
        assert_eq!(passed(&mut bucket, 3, 1), 0);
    }

    #[test]
    fn an_even_rate_at_the_limit_passes() {
        let mut bucket = Bucket::new(RateLimit { per_s: 300.0, burst: 1 });
        let moments = (0..30_000u64).map(|n| Time(n * 1_000_000_000 / 300 + 1));
        assert!(moments.into_iter().all(|at| bucket.take(at).is_ok()));
    }
}
