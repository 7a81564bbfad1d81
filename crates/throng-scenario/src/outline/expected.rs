//! What some steps are expected to take: time by their pauses, and requests.

use throng_program::{Instruction, Pause, Stay};

/// What steps take on average and at the ends, without the time that the target needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Seconds of thinking and staying: the shortest, on average, the longest. Infinite where
    /// users stay until they are told to leave.
    pub low_seconds: f64,
    pub mean_seconds: f64,
    pub high_seconds: f64,
    /// HTTP requests and messages sent, on average.
    pub requests: f64,
    /// Heartbeats and what is done every so often, per second, on average over all this time.
    pub beats: f64,
    /// A condition, a list or a value that is known only in the run was taken as once.
    pub guessed: bool,
    /// How many of those who begin come to the end: others leave or begin the next iteration.
    pub(super) go_on: f64,
}

impl Default for Expected {
    fn default() -> Expected {
        let (low_seconds, mean_seconds, high_seconds) = (0.0, 0.0, 0.0);
        let (requests, beats, guessed, go_on) = (0.0, 0.0, false, 1.0);
        Expected { low_seconds, mean_seconds, high_seconds, requests, beats, guessed, go_on }
    }
}

/// How many standard deviations from its mean a normal pause is taken to be at most.
const NORMAL_DEVIATIONS: f64 = 3.0;

/// A product in which nothing, however often, is nothing.
fn product(one: f64, other: f64) -> f64 {
    if one == 0.0 || other == 0.0 { 0.0 } else { one * other }
}

/// The mean of rates, each of which holds for so many seconds.
fn mean_of(parts: &[(f64, f64)]) -> f64 {
    // What lasts for ever outweighs all else.
    let forever = parts.iter().filter(|(seconds, _)| seconds.is_infinite());
    let endless = forever.clone().count();
    if endless > 0 {
        return forever.map(|(_, rate)| rate).sum::<f64>() / endless as f64;
    }
    let seconds: f64 = parts.iter().map(|(seconds, _)| seconds).sum();
    let beats: f64 = parts.iter().map(|(seconds, rate)| product(*seconds, *rate)).sum();
    if seconds > 0.0 { beats / seconds } else { 0.0 }
}

impl Expected {
    fn pause(low_seconds: f64, mean_seconds: f64, high_seconds: f64) -> Expected {
        Expected { low_seconds, mean_seconds, high_seconds, ..Expected::default() }
    }

    /// A step without steps inside.
    pub(super) fn of(instruction: &Instruction) -> Expected {
        match instruction {
            Instruction::Http(_)
            | Instruction::Call(_)
            | Instruction::Request(_)
            | Instruction::Send(_) => Expected { requests: 1.0, ..Expected::default() },
            Instruction::Think(pause) => Expected::of_pause(pause),
            Instruction::Stay(stay) => Expected::of_stay(stay),
            Instruction::Rendezvous(meeting) => {
                Expected::pause(0.0, 0.0, meeting.timeout.as_secs_f64()).guessed()
            }
            Instruction::Next | Instruction::Leave | Instruction::Stop(_) => {
                Expected { go_on: 0.0, ..Expected::default() }
            }
            _ => Expected::default(),
        }
    }

    fn of_stay(stay: &Stay) -> Expected {
        let (seconds, go_on) = match stay.time {
            Some(time) => (time.as_secs_f64(), 1.0),
            None => (f64::INFINITY, 0.0),
        };
        Expected { go_on, ..Expected::pause(seconds, seconds, seconds) }
    }

    fn of_pause(pause: &Pause) -> Expected {
        match pause {
            Pause::Uniform { low, high } => {
                let (low, high) = (low.as_secs_f64(), high.as_secs_f64());
                Expected::pause(low, low.midpoint(high), high)
            }
            Pause::Exponential { mean, max } => {
                let (mean, max) = (mean.as_secs_f64(), max.as_secs_f64());
                let cut = if mean > 0.0 { mean * (1.0 - (-max / mean).exp()) } else { 0.0 };
                Expected::pause(0.0, cut, max)
            }
            Pause::Normal { mean, deviation } => {
                let (mean, deviation) = (mean.as_secs_f64(), deviation.as_secs_f64());
                let far = deviation * NORMAL_DEVIATIONS;
                Expected::pause((mean - far).max(0.0), mean, mean + far)
            }
            Pause::Text(_) => Expected::default().guessed(),
        }
    }

    /// With so many messages per second beside it.
    pub(super) fn and_again(self, beats: f64) -> Expected {
        Expected { beats: (self.beats + beats).max(0.0), ..self }
    }

    pub(super) fn guessed(self) -> Expected {
        Expected { guessed: true, ..self }
    }

    /// This and then `after`.
    pub(super) fn then(self, after: Expected) -> Expected {
        let sure = if self.go_on >= 1.0 { 1.0 } else { 0.0 };
        let perhaps = if self.go_on > 0.0 { 1.0 } else { 0.0 };
        Expected {
            low_seconds: self.low_seconds + product(after.low_seconds, sure),
            mean_seconds: self.mean_seconds + product(after.mean_seconds, self.go_on),
            high_seconds: self.high_seconds + product(after.high_seconds, perhaps),
            requests: self.requests + product(after.requests, self.go_on),
            beats: mean_of(&[
                (self.mean_seconds, self.beats),
                (product(after.mean_seconds, self.go_on), after.beats),
            ]),
            guessed: self.guessed || (after.guessed && self.go_on > 0.0),
            go_on: product(self.go_on, after.go_on),
        }
    }

    /// This and `other` at the same time.
    pub(super) fn beside(self, other: Expected) -> Expected {
        Expected {
            low_seconds: self.low_seconds.max(other.low_seconds),
            mean_seconds: self.mean_seconds.max(other.mean_seconds),
            high_seconds: self.high_seconds.max(other.high_seconds),
            requests: self.requests + other.requests,
            guessed: self.guessed || other.guessed,
            go_on: product(self.go_on, other.go_on),
            ..self
        }
    }

    /// This so many times, one after another.
    pub(super) fn times(self, low: f64, high: f64) -> Expected {
        let mean = low.midpoint(high);
        let passes = match self.go_on {
            go_on if go_on >= 1.0 => mean,
            go_on => (1.0 - go_on.powf(mean)) / (1.0 - go_on),
        };
        let low = if self.go_on >= 1.0 { low } else { low.min(1.0) };
        Expected {
            low_seconds: product(self.low_seconds, low),
            mean_seconds: product(self.mean_seconds, passes),
            high_seconds: product(self.high_seconds, high),
            requests: product(self.requests, passes),
            beats: self.beats,
            guessed: self.guessed,
            go_on: self.go_on.powf(mean),
        }
    }

    /// This without end: until the user is told to leave, or a step ends the iteration.
    pub(super) fn forever(self) -> Expected {
        if self.go_on >= 1.0 {
            let forever = f64::INFINITY;
            let requests = product(self.requests, forever);
            let pause = Expected::pause(forever, forever, forever);
            return Expected {
                requests,
                go_on: 0.0,
                guessed: self.guessed,
                beats: self.beats,
                ..pause
            };
        }
        let passes = 1.0 / (1.0 - self.go_on);
        Expected {
            mean_seconds: product(self.mean_seconds, passes),
            high_seconds: product(self.high_seconds, f64::INFINITY),
            requests: product(self.requests, passes),
            go_on: 0.0,
            ..self
        }
    }

    /// This again and again until the time is over; the last pass is done to its end.
    pub(super) fn during(self, seconds: f64) -> Expected {
        let passes = match self.mean_seconds {
            mean if mean > 0.0 => (seconds / mean).max(1.0),
            _ => 1.0,
        };
        Expected {
            low_seconds: seconds,
            mean_seconds: seconds,
            high_seconds: seconds + self.high_seconds,
            requests: product(self.requests, passes),
            beats: self.beats,
            guessed: true,
            go_on: self.go_on,
        }
    }

    /// This or, where a condition does not hold, `other`.
    pub(super) fn either(self, other: Expected) -> Expected {
        Expected {
            low_seconds: self.low_seconds.min(other.low_seconds),
            high_seconds: self.high_seconds.max(other.high_seconds),
            guessed: true,
            go_on: self.go_on.max(other.go_on),
            ..self
        }
    }

    /// One of these, by their shares.
    pub(super) fn by_chance(parts: &[(f64, Expected)]) -> Expected {
        let sum = |value: fn(&Expected) -> f64| {
            parts.iter().map(|(share, one)| product(*share, value(one))).sum()
        };
        let taken = || parts.iter().filter(|(share, _)| *share > 0.0).map(|(_, one)| one);
        let beats: Vec<(f64, f64)> = parts
            .iter()
            .map(|(share, one)| (product(*share, one.mean_seconds), one.beats))
            .collect();
        let low = taken().map(|one| one.low_seconds).fold(f64::INFINITY, f64::min);
        Expected {
            low_seconds: if low.is_finite() { low } else { 0.0 },
            mean_seconds: sum(|one| one.mean_seconds),
            high_seconds: taken().map(|one| one.high_seconds).fold(0.0, f64::max),
            requests: sum(|one| one.requests),
            beats: mean_of(&beats),
            guessed: taken().any(|one| one.guessed),
            go_on: sum(|one| one.go_on),
        }
    }
}
