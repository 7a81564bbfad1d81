//! Servers with a first-in, first-out queue: M/M/c and M/D/1, with a limited queue and a speed that
//! changes over time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use throng_base::random::Random;

use super::counts::Counts;

/// How long an error takes.
const REFUSED_S: f64 = 0.0005;
const SPELL_EVERY_S: f64 = 40.0;
const SPELL_S: f64 = 5.0;
const SPELL_SPEED: f64 = 0.85;

/// How the speed of the servers changes over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Course {
    Steady,
    /// Slower at first: the speed, and its duration in seconds.
    WarmUp(f64, f64),
    /// Loses this share of its speed each minute.
    Drift(f64),
    /// 15 % slower for 5 s on average, every 45 s on average.
    Spells {
        slow_from_s: f64,
        slow_to_s: f64,
    },
}

impl Course {
    pub(super) fn spells() -> Course {
        Course::Spells { slow_from_s: 0.0, slow_to_s: 0.0 }
    }

    fn speed(&mut self, at_s: f64, random: &mut Random) -> f64 {
        match self {
            Course::Steady => 1.0,
            Course::WarmUp(speed, until_s) if at_s < *until_s => *speed,
            Course::WarmUp(..) => 1.0,
            Course::Drift(each_minute) => (1.0 - *each_minute * at_s / 60.0).max(0.1),
            Course::Spells { slow_from_s, slow_to_s } => {
                while at_s >= *slow_to_s {
                    *slow_from_s = *slow_to_s + random.exponential(SPELL_EVERY_S);
                    *slow_to_s = *slow_from_s + random.exponential(SPELL_S);
                }
                if at_s >= *slow_from_s { SPELL_SPEED } else { 1.0 }
            }
        }
    }
}

pub(super) struct Queue {
    /// When each server is free: the bits of times, which are in their order.
    free_s: BinaryHeap<Reverse<u64>>,
    service_s: f64,
    is_fixed: bool,
    /// Maximum number of attempts in the system; further ones fail immediately. Followed by the
    /// departure times.
    max: Option<usize>,
    leaves_s: VecDeque<f64>,
    course: Course,
}

impl Queue {
    pub(super) fn new(servers: usize, service_s: f64, course: Course) -> Queue {
        Queue {
            free_s: (0..servers).map(|_| Reverse(0)).collect(),
            service_s,
            is_fixed: false,
            max: None,
            leaves_s: VecDeque::new(),
            course,
        }
    }

    pub(super) fn fixed(self) -> Queue {
        Queue { is_fixed: true, ..self }
    }

    pub(super) fn limited(self, max: usize) -> Queue {
        Queue { max: Some(max), ..self }
    }

    pub(super) fn arrive(&mut self, at_s: f64, counts: &mut Counts, random: &mut Random) {
        counts.begin();
        if let Some(max) = self.max {
            while self.leaves_s.front().is_some_and(|leaves| *leaves <= at_s) {
                self.leaves_s.pop_front();
            }
            if self.leaves_s.len() >= max {
                return counts.end(at_s + REFUSED_S, REFUSED_S, false);
            }
        }
        let free_s = self.free_s.pop().map_or(0.0, |Reverse(bits)| f64::from_bits(bits));
        let begins_s = free_s.max(at_s);
        let speed = self.course.speed(begins_s, random);
        let mean_s = self.service_s / speed;
        let ends_s = begins_s + if self.is_fixed { mean_s } else { random.exponential(mean_s) };
        self.free_s.push(Reverse(ends_s.to_bits()));
        if self.max.is_some() {
            // Nearly sorted: several servers finish out of order by one or two service times.
            let place = self.leaves_s.iter().rposition(|leaves| *leaves <= ends_s);
            self.leaves_s.insert(place.map_or(0, |place| place + 1), ends_s);
        }
        counts.end(ends_s, ends_s - at_s, true);
    }
}
