//! Computes when users of a population start or stop: the time of the k-th change of the whole
//! population since the start of the phase.

use std::time::Duration;

use throng_program::Coming;

use crate::curve::Curve;

/// The time of change `k` (from 0); `None` if it never happens.
pub(crate) fn due(coming: Coming, k: u64) -> Option<Duration> {
    match coming {
        Coming::AtOnce => Some(Duration::ZERO),
        Coming::Rate(rate) => Curve::constant(rate).due(k),
        Coming::Steps { size, every } => times(every, k / size.max(1)),
    }
}

/// The number of changes before `time`, consistent with [`due`].
pub(crate) fn count_before(coming: Coming, time: Duration) -> u64 {
    match coming {
        _ if time.is_zero() => 0,
        Coming::AtOnce => u64::MAX,
        Coming::Rate(rate) => Curve::constant(rate).count_before(time),
        Coming::Steps { every, .. } if every.is_zero() => u64::MAX,
        Coming::Steps { size, every } => {
            let steps = time.as_nanos().div_ceil(every.as_nanos());
            u64::try_from(steps).unwrap_or(u64::MAX).saturating_mul(size.max(1))
        }
    }
}

/// The duration of a number of changes; `None` if they never end. At a rate, it ends when the next
/// change would be due; with steps, the last step lasts as long as the others.
pub(crate) fn length(coming: Coming, changes: u64) -> Option<Duration> {
    match coming {
        _ if changes == 0 => Some(Duration::ZERO),
        Coming::AtOnce => Some(Duration::ZERO),
        Coming::Rate(rate) => Curve::constant(rate).due(changes),
        Coming::Steps { size, every } => times(every, changes.div_ceil(size.max(1))),
    }
}

fn times(every: Duration, count: u64) -> Option<Duration> {
    let nanos = every.as_nanos().checked_mul(u128::from(count))?;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn steps_form_a_staircase() {
        let steps = Coming::Steps { size: 60_000, every: 10 * S };
        let second = |k| due(steps, k).map(|due| due.as_secs());
        assert_eq!([0, 59_999, 60_000, 999_999].map(second), [0, 0, 10, 160].map(Some));
        assert_eq!(length(steps, 120_000), Some(20 * S));
        assert_eq!(length(steps, 120_001), Some(30 * S));
        assert_eq!(length(steps, 0), Some(Duration::ZERO));
        let endless = Coming::Steps { size: 1, every: Duration::MAX };
        assert_eq!((due(endless, 0), due(endless, 2)), (Some(Duration::ZERO), None));
    }

    #[test]
    fn counts_agree_with_due_times() {
        let mut random = Random::new(4);
        for _ in 0..2000 {
            let coming = match random.below(3) {
                0 => Coming::Rate(random.below(700) as f64 / 7.0),
                _ => Coming::Steps {
                    size: 1 + random.below(30),
                    every: Duration::from_millis(1 + random.below(900)),
                },
            };
            let until = Duration::from_millis(random.below(5000));
            let before = |k: &u64| due(coming, *k).is_some_and(|due| due < until);
            let counted = (0..).take_while(before).count() as u64;
            assert_eq!(count_before(coming, until), counted, "{coming:?} until {until:?}");
        }
    }
}
