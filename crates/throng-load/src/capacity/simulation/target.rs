//! The virtual targets.

use throng_base::random::Random;

use super::counts::Counts;
use super::queue::{Course, Queue};
use super::retry::Retry;
use super::shared::{Bucket, Shared};
use crate::capacity::hold::{Goals, Percentiles, Second, Share};

/// The shares that the thresholds allow: slow attempts, attempts refused by a full pool, and
/// attempts refused by a rate limiter.
pub(super) const SLOW_ALLOWED: f64 = 0.01;
pub(super) const REFUSED_ALLOWED: f64 = 0.001;
const LIMITED_ALLOWED: f64 = 0.01;

/// The kind of a virtual target. Times scale with its rate, which is its maximum throughput without
/// anything that slows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// M/M/1: exponential service times, `p99 <` 50 of them.
    OneServer,
    /// M/M/8: `p99 <` 6.25 service times.
    EightServers,
    /// M/D/1: fixed service times, `p99 <` 50 of them.
    FixedTimes,
    /// The Universal Scalability Law: contention 0.02, crosstalk 0.00005, at most 400 at once.
    Usl,
    /// M/M/8 with room for 60; further attempts fail immediately: `errors < 0.1 %`, `p99 <` 12.5
    /// service times.
    Pool,
    /// A token bucket with 0.1 s in store: `errors < 1 %`.
    RateLimit,
    /// M/M/1 at 60 % of its speed for the first minute.
    WarmUp,
    /// M/M/1, 1 % slower each minute.
    Drift,
    /// M/M/1, 15 % slower for 5 s every 45 s.
    Spells,
    /// M/M/1 whose clients time out after 200 service times and retry twice.
    Retry,
}

impl Model {
    pub const ALL: [Model; 10] = [
        Model::OneServer,
        Model::EightServers,
        Model::FixedTimes,
        Model::Usl,
        Model::Pool,
        Model::RateLimit,
        Model::WarmUp,
        Model::Drift,
        Model::Spells,
        Model::Retry,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Model::OneServer => "M/M/1",
            Model::EightServers => "M/M/8",
            Model::FixedTimes => "M/D/1",
            Model::Usl => "USL",
            Model::Pool => "pool",
            Model::RateLimit => "rate limit",
            Model::WarmUp => "warm-up",
            Model::Drift => "drift",
            Model::Spells => "spells",
            Model::Retry => "retry",
        }
    }

    /// The limit of its response time in seconds.
    pub fn within_s(self, rate: f64) -> f64 {
        match self {
            Model::Usl => 350.0 / rate,
            Model::Pool => 100.0 / rate,
            _ => 50.0 / rate,
        }
    }

    /// The thresholds that define whether it sustains a load.
    pub fn goals(self, rate: f64) -> Goals {
        let share = |text: &str, allowed, within_s| Share { text: text.into(), allowed, within_s };
        let slow = share("p99", SLOW_ALLOWED, Some(self.within_s(rate)));
        let errors = |allowed| share("errors", allowed, None);
        let shares = match self {
            Model::Pool => vec![slow, errors(REFUSED_ALLOWED)],
            Model::RateLimit => vec![errors(LIMITED_ALLOWED)],
            _ => vec![slow],
        };
        Goals { shares, plain: Vec::new() }
    }
}

enum Service {
    Queue(Queue),
    Shared(Shared),
    Bucket(Bucket),
    Retry(Retry),
}

/// A target in simulated time with random arrivals.
pub struct VirtualTarget {
    service: Service,
    counts: Counts,
    random: Random,
    /// Time of the next request.
    next_s: f64,
}

impl VirtualTarget {
    pub fn new(model: Model, rate: f64, seed: u64) -> VirtualTarget {
        let one = 1.0 / rate;
        let queue = |servers: usize, course| Queue::new(servers, one * servers as f64, course);
        let service = match model {
            Model::OneServer => Service::Queue(queue(1, Course::Steady)),
            Model::EightServers => Service::Queue(queue(8, Course::Steady)),
            Model::FixedTimes => Service::Queue(queue(1, Course::Steady).fixed()),
            Model::Usl => Service::Shared(Shared::new(rate, (0.02, 0.00005), 400)),
            Model::Pool => Service::Queue(queue(8, Course::Steady).limited(60)),
            Model::RateLimit => Service::Bucket(Bucket::new(rate, rate / 10.0, one)),
            Model::WarmUp => Service::Queue(queue(1, Course::WarmUp(0.6, 60.0))),
            Model::Drift => Service::Queue(queue(1, Course::Drift(0.01))),
            Model::Spells => Service::Queue(queue(1, Course::spells())),
            Model::Retry => Service::Retry(Retry::new(one, 200.0 * one, 2)),
        };
        let counts = Counts::new(model.within_s(rate), model.goals(rate).shares.len());
        VirtualTarget { service, counts, random: Random::for_owner(seed, 1), next_s: 0.0 }
    }

    /// One second at this load.
    pub fn second(&mut self, load: f64) -> Second {
        let (now_s, mean_s) = (self.counts.now_s(), 1.0 / load);
        let (end_s, mut begun) = (now_s + 1.0, 0);
        // The time to the next request is memoryless, and the load may have changed.
        self.next_s = now_s + self.random.exponential(mean_s);
        while self.next_s < end_s {
            begun += 1;
            let (at_s, counts, random) = (self.next_s, &mut self.counts, &mut self.random);
            match &mut self.service {
                Service::Queue(queue) => queue.arrive(at_s, counts, random),
                Service::Shared(shared) => shared.arrive(at_s, counts, random),
                Service::Bucket(bucket) => bucket.arrive(at_s, counts, random),
                Service::Retry(retry) => retry.arrive(at_s, counts, random),
            }
            self.next_s += self.random.exponential(mean_s);
        }
        match &mut self.service {
            Service::Shared(shared) => shared.advance(end_s, &mut self.counts, &mut self.random),
            Service::Retry(retry) => retry.advance(end_s, &mut self.counts, &mut self.random),
            Service::Queue(_) | Service::Bucket(_) => {}
        }
        self.counts.second(begun)
    }

    /// Response times since the last call.
    pub fn percentiles(&mut self) -> Option<Percentiles> {
        self.counts.percentiles()
    }

    /// Number of collapses.
    pub fn collapses(&self) -> u32 {
        match &self.service {
            Service::Retry(retry) => retry.collapses,
            Service::Queue(_) | Service::Shared(_) | Service::Bucket(_) => 0,
        }
    }
}
