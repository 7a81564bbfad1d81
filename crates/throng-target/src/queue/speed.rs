//! The speed of a queue over time: lower during the warm-up, and in spells.

use std::time::Duration;

use throng_base::Time;

/// From the start of the server, for `time`, it runs at this share of its speed, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    pub time: Duration,
    pub speed: f64,
}

/// During the first `time` of each `every`, measured from the start of the server, it is slower by
/// this share, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowSpells {
    pub every: Duration,
    pub time: Duration,
    pub slower: f64,
}

/// The speed over time, 1 without warm-up and spells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Speed {
    pub(crate) warm_up: Option<WarmUp>,
    pub(crate) spells: Option<SlowSpells>,
}

impl Speed {
    /// The speed at a time, and the time of its next change.
    fn at(&self, time: Time) -> (f64, Time) {
        let (mut speed, mut until) = (1.0, Time::NEVER);
        if let Some(warm_up) = self.warm_up {
            let end = Time::ZERO + warm_up.time;
            if time < end {
                (speed, until) = (warm_up.speed, end);
            }
        }
        if let Some(spells) = self.spells {
            let (every, slow) = (spells.every.as_nanos() as u64, spells.time.as_nanos() as u64);
            let phase = time.0 % every.max(1);
            let end = if phase < slow { slow } else { every };
            speed *= if phase < slow { 1.0 - spells.slower } else { 1.0 };
            until = until.min(Time(time.0 + (end - phase)));
        }
        (speed, until)
    }

    /// The work in a span of time, in nanoseconds at full speed.
    pub(crate) fn work_ns(&self, from: Time, to: Time) -> f64 {
        let (mut at, mut work_ns) = (from, 0.0);
        while at < to {
            let (speed, until) = self.at(at);
            let end = until.min(to);
            work_ns += speed * (end.0 - at.0) as f64;
            at = end;
        }
        work_ns
    }

    /// When this much more work is complete, in nanoseconds at full speed.
    pub(crate) fn when_done(&self, from: Time, mut work_ns: f64) -> Time {
        let mut at = from;
        loop {
            let (speed, until) = self.at(at);
            let left_ns = work_ns / speed;
            if left_ns <= until.0.saturating_sub(at.0) as f64 {
                return Time(at.0.saturating_add(left_ns.round().max(0.0) as u64));
            }
            work_ns -= speed * (until.0 - at.0) as f64;
            at = until;
        }
    }

    /// The mean speed in the long run, after the warm-up.
    pub(crate) fn mean(&self) -> f64 {
        self.spells.map_or(1.0, |spells| {
            1.0 - spells.slower * spells.time.as_secs_f64() / spells.every.as_secs_f64()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed() -> Speed {
        let seconds = Duration::from_secs;
        Speed {
            warm_up: Some(WarmUp { time: seconds(60), speed: 0.5 }),
            spells: Some(SlowSpells { every: seconds(50), time: seconds(10), slower: 0.2 }),
        }
    }

    #[test]
    fn warm_up_and_spells_multiply() {
        let speed = speed();
        let work = |from, to| speed.work_ns(Time::from_secs(from), Time::from_secs(to)) / 1e9;
        for (from, to, done) in [
            (0, 10, 4.0),
            (10, 50, 20.0),
            (50, 60, 4.0),
            (60, 100, 40.0),
            (100, 110, 8.0),
            (0, 110, 76.0),
            (105, 105, 0.0),
        ] {
            assert!((work(from, to) - done).abs() < 1e-9, "{from} {to}");
        }
        assert!((speed.mean() - 0.96).abs() < 1e-12);
    }

    #[test]
    fn work_and_completion_time_agree() {
        for speed in [Speed::default(), speed()] {
            for (from, seconds) in [(0u64, 3.0), (5, 40.0), (59, 100.0), (200, 0.0), (95, 7.5)] {
                let from = Time::from_secs(from);
                let end = speed.when_done(from, seconds * 1e9);
                assert!((speed.work_ns(from, end) - seconds * 1e9).abs() < 2.0, "{from:?}");
            }
        }
    }
}
