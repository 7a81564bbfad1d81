//! The slowest attempts of a phase, to find them in the logs and traces of the service.

use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::merge::Merge;
use crate::outcome::Cause;

/// Maximum number per step.
pub const SLOWEST_MAX: usize = 5;

/// An attempt that was slower than most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slow {
    pub step: u16,
    /// When it ended, from the start of the run.
    pub at_ns: u64,
    pub latency_ns: u64,
    pub user: u64,
    /// Code of the response; 0 without one.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: u16,
    /// Why it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The trace ID that was sent, 32 hexadecimal digits (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Its stages; `None` in older run directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<Chain>,
}

fn is_zero(code: &u16) -> bool {
    *code == 0
}

impl Slow {
    /// Keeps the slowest attempts of each step. Of equally slow ones, the first stay.
    pub fn add(all: &mut Vec<Slow>, other: &Slow) {
        let own = || all.iter().enumerate().filter(|(_, one)| one.step == other.step);
        if own().count() < SLOWEST_MAX {
            all.push(other.clone());
            return;
        }
        let order = |one: &Slow| (one.latency_ns, std::cmp::Reverse((one.at_ns, one.user)));
        let fastest = own().min_by_key(|(_, one)| order(one)).map(|(at, _)| at);
        if let Some(at) = fastest.filter(|at| order(&all[*at]) < order(other)) {
            all[at] = other.clone();
        }
    }
}

impl Merge for Vec<Slow> {
    fn merge(&mut self, other: &Vec<Slow>) {
        other.iter().for_each(|slow| Slow::add(self, slow));
    }

    /// They are compared, never added.
    fn weight(&self) -> u64 {
        0
    }
}

/// The minimum latency for an attempt to be among the slowest of its step so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowBounds {
    /// In ascending order.
    times: [u64; SLOWEST_MAX],
}

impl SlowBounds {
    /// Returns whether an attempt is one of them, and remembers it.
    #[inline]
    pub fn take(&mut self, latency_ns: u64) -> bool {
        if latency_ns <= self.times[0] {
            return false;
        }
        let place = self.times.partition_point(|time| *time < latency_ns);
        self.times.copy_within(1..place, 0);
        self.times[place - 1] = latency_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_base::Random;

    #[test]
    fn the_slowest_attempts_are_kept_for_any_order_of_merging() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let mut all: Vec<Slow> = Vec::new();
            let (mut merged, mut parts) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
            let mut bounds = [[SlowBounds::default(); 2]; 3];
            for at_ns in 0..300 {
                let (part, step) = (random.below(3) as usize, random.below(2) as u16);
                let latency_ns = 1 + random.below(1_000);
                let slow = Slow { step, at_ns, latency_ns, ..Slow::default() };
                all.push(slow.clone());
                if bounds[part][usize::from(step)].take(latency_ns) {
                    Slow::add(&mut parts[part], &slow);
                }
            }
            parts.iter().flatten().for_each(|slow| Slow::add(&mut merged, slow));
            for step in 0..2 {
                let times = |all: &[Slow]| {
                    let own = all.iter().filter(|one| one.step == step);
                    let mut times: Vec<u64> = own.map(|one| one.latency_ns).collect();
                    times.sort_unstable_by(|a, b| b.cmp(a));
                    times.truncate(SLOWEST_MAX);
                    times
                };
                assert_eq!(times(&merged), times(&all));
            }
        }
    }
}
