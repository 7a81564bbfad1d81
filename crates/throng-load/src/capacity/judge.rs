//! Watches a hold or a wait second by second, and decides when to give it up or when it is over.

use std::collections::VecDeque;

use throng_metrics::capacity::{FailedBy, Purpose};

use crate::capacity::hold::{Goals, Hold, Second, Tally, Until, Wait};

/// A backlog is too much from this many seconds of the load on, unless thresholds allow longer.
const BACKLOG_MAX_S: f64 = 2.0;
/// Seconds before the first verdict on strain, and seconds in a row that count as recovered.
const SECONDS_MIN: usize = 3;
/// A hold is given up when its bad attempts reach this multiple of what its whole length allows:
/// more seconds would not change its verdict, and the border is elsewhere. The limit is higher for
/// visits near the border, because counts cut off in the middle of a cluster are biased
/// (simulated).
const STRAIN_MAX: f64 = 4.0;
const STRAIN_REFINE_MAX: f64 = 12.0;
/// Fewer bad attempts prove nothing.
pub(in crate::capacity) const BAD_MIN: u64 = 20;
const SILENCE_MAX: usize = 5;
/// Maximum ratio of the median response time to the usual one for a service that has recovered.
const USUAL_MAX: f64 = 1.2;
/// Smaller differences of medians are noise: processors that wake from sleep make a light load
/// slower than a heavy one by as much.
const NOISE_S: f64 = 200e-6;

/// Whether a median response time exceeds the usual one by this factor and by more than noise.
fn is_slower(p50_s: f64, usual_s: f64, factor: f64) -> bool {
    p50_s > factor * usual_s && p50_s > usual_s + NOISE_S
}

/// Watches a hold in progress.
#[derive(Clone, Debug)]
pub struct Judge {
    goals: Goals,
    hold: Hold,
    /// The median response time at a light load.
    usual_s: f64,
    /// Seconds so far, the settle time included.
    seen: usize,
    begun: u64,
    ended: u64,
    counted: Vec<Tally>,
    /// Attempts that ended, and failed, in each of the last seconds.
    last: VecDeque<(u64, u64)>,
    silent: usize,
}

impl Judge {
    pub(in crate::capacity) fn new(goals: &Goals, hold: Hold, usual_s: f64) -> Judge {
        Judge {
            goals: goals.clone(),
            hold,
            usual_s,
            seen: 0,
            begun: 0,
            ended: 0,
            counted: vec![Tally::default(); goals.shares.len()],
            last: VecDeque::new(),
            silent: 0,
        }
    }

    /// Processes a second, including those of the settle time. If it returns a reason, the hold
    /// must end now.
    pub fn second(&mut self, second: &Second) -> Option<FailedBy> {
        self.seen += 1;
        let is_silent = second.ended == 0 && second.unanswered > 0;
        self.silent = if is_silent { self.silent + 1 } else { 0 };
        self.last.push_back((second.ended, second.ended - second.good.min(second.ended)));
        if self.last.len() > SECONDS_MIN {
            self.last.pop_front();
        }
        if self.seen > self.hold.settle_s as usize {
            self.begun += second.begun;
            self.ended += second.ended;
            for (sum, counted) in self.counted.iter_mut().zip(&second.counted) {
                sum.add(counted);
            }
        }
        if self.silent as f64 >= (SILENCE_MAX as f64).max(3.0 * self.usual_s) {
            return Some(FailedBy::Silence);
        }
        if second.unanswered as f64 > self.unanswered_max(second.begun) {
            return Some(FailedBy::Backlog);
        }
        if self.hold.purpose == Purpose::Beyond {
            return None;
        }
        self.is_failing().then_some(FailedBy::Failing).or_else(|| self.strained())
    }

    /// Maximum number of waiting attempts in a service that meets its thresholds.
    fn unanswered_max(&self, begun: u64) -> f64 {
        let limits = self.goals.shares.iter().filter_map(|share| share.within_s);
        let allowed_s = limits.fold(BACKLOG_MAX_S, |max, within| max.max(2.0 * within));
        let mean = (self.begun as f64 / self.counted_s().max(1) as f64).max(begun as f64);
        mean * (allowed_s + 3.0 * self.usual_s) + BAD_MIN as f64
    }

    fn counted_s(&self) -> usize {
        self.seen.saturating_sub(self.hold.settle_s as usize)
    }

    fn is_failing(&self) -> bool {
        let sum = |(a, b): (u64, u64), (c, d): &(u64, u64)| (a + c, b + d);
        let (ended, failed) = self.last.iter().fold((0, 0), sum);
        self.last.len() >= SECONDS_MIN && failed >= BAD_MIN && failed * 2 > ended
    }

    fn strain_max(&self) -> f64 {
        match self.hold.purpose {
            Purpose::Refine => STRAIN_REFINE_MAX,
            Purpose::Climb | Purpose::Bracket | Purpose::Confirm | Purpose::Beyond => STRAIN_MAX,
        }
    }

    fn strained(&self) -> Option<FailedBy> {
        let counted_s = self.counted_s();
        if counted_s < SECONDS_MIN {
            return None;
        }
        let attempts = self.begun as f64 / counted_s as f64 * f64::from(self.hold.seconds);
        let too_many = |index: &usize| {
            let Tally { attempts: of, bad } = self.counted[*index];
            let part = of / self.ended.max(1) as f64;
            let allowed = self.goals.shares[*index].allowed * attempts * part;
            bad >= BAD_MIN as f64 && bad > self.strain_max() * allowed
        };
        (0..self.counted.len()).find(too_many).map(|index| self.goals.share_not_met(index))
    }
}

/// Watches a wait in progress.
#[derive(Clone, Debug)]
pub struct Watch {
    goals: Goals,
    wait: Wait,
    /// Number of consecutive seconds in which the condition was true.
    fine: usize,
}

impl Watch {
    pub(in crate::capacity) fn new(goals: &Goals, wait: Wait) -> Watch {
        Watch { goals: goals.clone(), wait, fine: 0 }
    }

    /// Processes a second. For users, `online` is the share of them that is online. Returns true
    /// once the condition of the wait is met.
    pub fn second(&mut self, second: &Second, online: Option<f64>) -> bool {
        let (is_fine, in_a_row) = match self.wait.until {
            Until::Drained { p50_s } => (self.is_drained(second, p50_s), 1),
            Until::Met => (self.is_met(second), SECONDS_MIN),
            Until::Back { .. } => (online.is_some_and(|online| online >= 0.999), 1),
        };
        self.fine = if is_fine { self.fine + 1 } else { 0 };
        self.fine >= in_a_row
    }

    fn is_drained(&self, second: &Second, usual_s: Option<f64>) -> bool {
        let Some(p50_s) = second.p50_s else { return second.unanswered == 0 };
        let usual_s = usual_s.unwrap_or(p50_s);
        // By Little's law; a mean may be twice a median.
        let in_flight = second.begun as f64 * 2.0 * usual_s;
        !is_slower(p50_s, usual_s, USUAL_MAX)
            && second.unanswered as f64 <= in_flight + BAD_MIN as f64
    }

    fn is_met(&self, second: &Second) -> bool {
        let strain = self.goals.strain(&second.counted);
        second.ended > 0 && strain.is_none_or(|(_, strain)| strain <= 1.0)
    }
}

#[cfg(test)]
mod tests;
