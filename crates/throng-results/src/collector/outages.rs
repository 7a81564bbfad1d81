//! Detects times in which nothing succeeded in a run with many successes.

use serde::{Deserialize, Serialize};

use crate::summary::Outage;

/// Minimum length: in a single second, a slow step may just not have ended.
const SECONDS_MIN: u64 = 2;
/// Minimum number of successes that the previous rate would have given.
const MISSED_MIN: u64 = 10;

/// Full seconds of a run, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outages {
    /// Successes before the seconds without one.
    ok: u64,
    seconds: u64,
    silent: Option<Silent>,
    longest: Option<Outage>,
}

/// Seconds without a success, up to the last one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Silent {
    outage: Outage,
    failed: u64,
}

impl Outages {
    pub(super) fn second(&mut self, second: u64, ok: u64, failed: u64) {
        if ok > 0 {
            self.longest = self.longest();
            self.silent = None;
            self.ok += ok;
            self.seconds += 1;
        } else if self.ok > 0 {
            // An unmeasured phase is in between.
            let is_next = |silent: &Silent| second == silent.outage.from_s + silent.outage.seconds;
            if !self.silent.as_ref().is_none_or(is_next) {
                self.longest = self.longest();
                self.silent = None;
            }
            let begun = Silent { outage: Outage { from_s: second, seconds: 0 }, failed: 0 };
            let silent = self.silent.get_or_insert(begun);
            silent.outage.seconds = (second + 1).saturating_sub(silent.outage.from_s);
            silent.failed += failed;
        }
    }

    /// The longest outage. Seconds without a failure do not count, because nothing may have been
    /// sent.
    pub(super) fn longest(&self) -> Option<Outage> {
        let is_one = |silent: &Silent| {
            let missed = self.ok / self.seconds.max(1) * silent.outage.seconds;
            let is_long = silent.outage.seconds >= SECONDS_MIN;
            silent.failed > 0 && is_long && missed >= MISSED_MIN
        };
        let last = self.silent.filter(is_one).map(|silent| silent.outage);
        self.longest.into_iter().chain(last).max_by_key(|outage| outage.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(seconds: &[(u64, u64)]) -> Option<(u64, u64)> {
        let mut outages = Outages::default();
        (0..).zip(seconds).for_each(|(second, (ok, failed))| outages.second(second, *ok, *failed));
        outages.longest().map(|outage| (outage.from_s, outage.seconds))
    }

    #[test]
    fn an_outage_is_a_time_without_successes_among_many() {
        let up = (100, 0);
        assert_eq!(longest(&[up, up, (0, 3), (0, 0), (0, 9), up, up]), Some((2, 3)));
        assert_eq!(longest(&[up, (0, 3), (0, 1), up, (0, 0), (0, 1), (0, 0), up]), Some((4, 3)));
        assert_eq!(longest(&[up, up, (0, 3), (0, 3)]), Some((2, 2)), "until the end");
        assert_eq!(longest(&[up, (0, 50), up]), None, "a second alone");
        assert_eq!(longest(&[up, (0, 0), (0, 0), up]), None, "nothing failed: a pause");
        assert_eq!(longest(&[(1, 0), (0, 1), (0, 0), (0, 0), (1, 0)]), None, "few were due");
        let mut apart = Outages::default();
        for (second, ok, failed) in [(0, 100, 0), (1, 0, 1), (300, 0, 0), (301, 0, 0), (302, 9, 0)]
        {
            apart.second(second, ok, failed);
        }
        assert_eq!(apart.longest(), None, "a phase that does not count lies between");
        assert_eq!(longest(&[(0, 9), (0, 9), (0, 9), up]), None, "it was not up before");
    }
}
