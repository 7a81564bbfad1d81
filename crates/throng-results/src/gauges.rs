//! Merges the gauges of all loads on all machines. Each load of each machine reports its own,
//! possibly in several parts per second.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use throng_metrics::{Gauges, Interval, Merge as _};

/// Number of seconds kept, because parts can arrive that late.
const SECONDS_MAX: usize = 8;

/// The current gauges of all loads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AllGauges {
    seconds: VecDeque<(u64, Parts)>,
}

/// By machine and load. Serialized as a list of pairs, because JSON keys are strings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<((u16, usize), Part)>", into = "Vec<((u16, usize), Part)>")]
struct Parts(BTreeMap<(u16, usize), Part>);

impl From<Vec<((u16, usize), Part)>> for Parts {
    fn from(parts: Vec<((u16, usize), Part)>) -> Parts {
        Parts(parts.into_iter().collect())
    }
}

impl From<Parts> for Vec<((u16, usize), Part)> {
    fn from(parts: Parts) -> Vec<((u16, usize), Part)> {
        parts.0.into_iter().collect()
    }
}

/// The gauges of one load on one machine in its latest phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Part {
    phase: u16,
    gauges: Gauges,
}

impl AllGauges {
    /// Adds an interval of a load. Returns the sum of all loads for its second.
    pub fn add(&mut self, load: usize, interval: &Interval) -> Gauges {
        let second = interval.second;
        if self.seconds.iter().all(|(known, _)| *known != second) {
            if self.seconds.len() == SECONDS_MAX {
                self.seconds.pop_front();
            }
            let at = self.seconds.partition_point(|(known, _)| *known < second);
            self.seconds.insert(at, (second, Parts::default()));
        }
        let known = self.seconds.iter_mut().find(|(known, _)| *known == second);
        let Some((_, parts)) = known else { return interval.gauges.clone() };
        let part = parts.0.entry((interval.machine, load)).or_default();
        if part.phase < interval.phase {
            *part = Part { phase: interval.phase, gauges: interval.gauges.clone() };
        } else if part.phase == interval.phase {
            part.gauges.merge(&interval.gauges);
        }
        let mut all = Gauges::default();
        parts.0.values().for_each(|part| all.merge(&part.gauges));
        all
    }

    /// The latest gauges of a load on the first machine; none once later loads have reported a
    /// second without it.
    pub fn latest_of(&self, load: usize) -> Gauges {
        let told = |(_, parts): &(u64, Parts)| {
            let ((_, known), part) = parts.0.range((0, load)..=(0, usize::MAX)).next()?;
            Some(if *known == load { part.gauges.clone() } else { Gauges::default() })
        };
        self.seconds.iter().rev().find_map(told).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(all: &mut AllGauges, load: usize, second: u64, phase: u16, users: u64) -> u64 {
        let gauges = Gauges { users_online: users, ..Gauges::default() };
        all.add(load, &Interval { second, phase, gauges, ..Interval::default() }).users_online
    }

    #[test]
    fn loads_and_parts_of_a_second_are_added_and_phases_replace_each_other() {
        let mut all = AllGauges::default();
        assert_eq!(told(&mut all, 0, 4, 0, 100), 100);
        assert_eq!(told(&mut all, 1, 4, 3, 20), 120);
        // A shard reports the same second late.
        assert_eq!(told(&mut all, 0, 4, 0, 50), 170);
        // The second load starts its next phase within the second.
        assert_eq!(told(&mut all, 1, 4, 4, 5), 155);
        assert_eq!(told(&mut all, 1, 4, 3, 9), 155);
        assert_eq!(told(&mut all, 1, 5, 4, 6), 6);
        assert_eq!(all.latest_of(1).users_online, 6);
        assert_eq!((all.latest_of(0).users_online, all.latest_of(7).users_online), (0, 0));
        (6..40).for_each(|second| assert_eq!(told(&mut all, 0, second, 0, 1), 1));
        assert_eq!(all.seconds.len(), SECONDS_MAX);
    }
}
