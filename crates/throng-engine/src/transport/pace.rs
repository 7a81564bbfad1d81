//! How fast a slow user reads and writes: a token bucket of bytes per direction. It is asked with
//! the time and never waits.

use std::time::Duration;

use throng_base::Time;
use throng_program::{Slow, Statement};

/// A slow connection reads and writes ten times a second, or a byte whenever one is due.
const PIECE: Duration = Duration::from_millis(100);
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The buckets of one connection. A connection at full speed has none.
#[derive(Debug)]
pub(crate) struct Pace {
    read: Option<Bucket>,
    write: Option<Bucket>,
}

/// What may be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// No limit.
    All,
    /// This many bytes, at least one. A datagram is read as a whole, and its bytes are paid for
    /// afterwards.
    Bytes(usize),
    /// Nothing before this time.
    Wait(Time),
}

impl Allowance {
    /// How many of `bytes` may be read or written now; `None` before the limit allows more.
    pub(crate) fn of(self, bytes: usize) -> Option<usize> {
        match self {
            Allowance::All => Some(bytes),
            Allowance::Bytes(most) => Some(bytes.min(most)),
            Allowance::Wait(_) => None,
        }
    }
}

impl Pace {
    /// Limits the speed from now on; `None` if there is no limit. Earlier traffic does not count.
    pub(crate) fn new(slow: Slow, now: Time) -> Option<Box<Pace>> {
        let bucket = |rate: u64| Bucket { rate, paid: now };
        let pace = Pace { read: slow.read.map(bucket), write: slow.write.map(bucket) };
        (pace.read.is_some() || pace.write.is_some()).then(|| Box::new(pace))
    }

    pub(crate) fn may_read(&mut self, now: Time) -> Allowance {
        allowance(&mut self.read, now)
    }

    pub(crate) fn may_write(&mut self, now: Time) -> Allowance {
        allowance(&mut self.write, now)
    }

    pub(crate) fn has_read(&mut self, bytes: usize) {
        spend(&mut self.read, bytes);
    }

    pub(crate) fn has_written(&mut self, bytes: usize) {
        spend(&mut self.write, bytes);
    }
}

/// The lowest speed of a link of a session: determines the buffers of its sockets.
pub(crate) fn slowest<'p>(steps: impl Iterator<Item = &'p Statement>, of: u8) -> Slow {
    let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    steps.fold(Slow::default(), |sum, statement| match statement {
        Statement::Slow { link, slow } if *link == of => {
            Slow { read: least(sum.read, slow.read), write: least(sum.write, slow.write) }
        }
        _ => sum,
    })
}

/// The fill level of a bucket is stored as a time: all time before it is used up.
#[derive(Debug)]
struct Bucket {
    /// Bytes per second; 0 is none ever.
    rate: u64,
    paid: Time,
}

fn allowance(bucket: &mut Option<Bucket>, now: Time) -> Allowance {
    bucket.as_mut().map_or(Allowance::All, |bucket| bucket.allowance(now))
}

fn spend(bucket: &mut Option<Bucket>, bytes: usize) {
    if let Some(bucket) = bucket {
        bucket.paid = bucket.paid.saturating_add(bucket.time_of(bytes as u64));
    }
}

impl Bucket {
    fn allowance(&mut self, now: Time) -> Allowance {
        if self.rate == 0 {
            return Allowance::Wait(Time::NEVER);
        }
        let piece = self.piece();
        // At most one piece is saved up.
        self.paid = self.paid.max(Time(now.0.saturating_sub(piece.as_nanos() as u64)));
        let saved = u128::from(now.0.saturating_sub(self.paid.0));
        match (saved * u128::from(self.rate) / NANOS_PER_SECOND) as usize {
            0 => Allowance::Wait(self.paid.saturating_add(piece)),
            bytes => Allowance::Bytes(bytes),
        }
    }

    /// The time between two operations: at least that of one byte.
    fn piece(&self) -> Duration {
        PIECE.max(self.time_of(1))
    }

    /// Rounded up, so that the rate is never exceeded.
    fn time_of(&self, bytes: u64) -> Duration {
        let rate = u128::from(self.rate.max(1));
        let nanos = (u128::from(bytes) * NANOS_PER_SECOND).div_ceil(rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes a user reads in this many seconds of an endless stream, and how often it
    /// reads.
    fn read(rate: u64, seconds: u64) -> (u64, u64) {
        let slow = Slow { read: Some(rate), write: None };
        let (mut now, mut pace) = (Time::ZERO, Pace::new(slow, Time::ZERO).unwrap());
        let (mut sum, mut looks) = (0, 0);
        while now < Time::from_secs(seconds) {
            looks += 1;
            match pace.may_read(now) {
                Allowance::All => panic!("it is slow"),
                Allowance::Bytes(bytes) => {
                    pace.has_read(bytes);
                    sum += bytes as u64;
                }
                Allowance::Wait(until) => {
                    assert!(until > now, "{until}");
                    now = until;
                }
            }
        }
        (sum, looks)
    }

    #[test]
    fn the_rate_is_kept_with_few_reads() {
        for rate in [1, 3, 7, 100, 1_000, 1_000_000, 10_000_000_000] {
            let (bytes, looks) = read(rate, 100);
            let wanted = 100 * rate;
            let piece = (rate / 10).max(1);
            assert!((wanted - 2 * piece..=wanted).contains(&bytes), "{rate}: {bytes}");
            assert!(looks <= 2_100, "{rate}: {looks}");
        }
    }

    #[test]
    fn nothing_is_saved_up_and_overdrafts_are_paid_back() {
        let slow = Slow { read: Some(1_000), write: None };
        let mut pace = Pace::new(slow, Time::ZERO).unwrap();
        let hour = Time::from_secs(3_600);
        assert_eq!(pace.may_read(hour), Allowance::Bytes(100));
        assert_eq!(pace.may_write(hour), Allowance::All);
        assert_eq!(pace.may_read(hour).of(30), Some(30));
        // A datagram cannot be read in part.
        pace.has_read(1_100);
        let until = hour + Duration::from_millis(1_100);
        assert_eq!(pace.may_read(hour), Allowance::Wait(until));
        assert_eq!(pace.may_read(until), Allowance::Bytes(100));
        assert_eq!(Allowance::Wait(until).of(7), None);
    }

    #[test]
    fn a_rate_of_zero_never_reads() {
        assert!(Pace::new(Slow::default(), Time::ZERO).is_none());
        let slow = Slow { read: Some(0), write: Some(u64::MAX) };
        let mut pace = Pace::new(slow, Time::ZERO).unwrap();
        assert_eq!(pace.may_read(Time::NEVER), Allowance::Wait(Time::NEVER));
        pace.has_written(usize::MAX);
        let _ = pace.may_write(Time::NEVER);
        let code = [None, Some(5), Some(3)]
            .map(|read| Statement::Slow { link: 0, slow: Slow { read, write: None } });
        assert_eq!(slowest(code.iter(), 0), Slow { read: Some(3), write: None });
        assert_eq!(slowest(code.iter(), 1), Slow::default());
    }
}
