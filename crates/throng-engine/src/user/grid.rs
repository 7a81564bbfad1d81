//! When a user does what it does every so often: spread evenly over all users, on a grid.

use std::time::Duration;

use throng_base::{Share, Time, UserId};

/// Moments lie on a grid: what is due together on a shard is done in one waking. Each shard has its
/// own place on it, so that the shards do not wake together, and all are still spread evenly.
const GRID: Duration = Duration::from_millis(10);

/// The first moment after `now` at which something that this user does every so often is due: the
/// users are spread evenly over the period, in the order in which they come as well as all
/// together.
pub(super) fn first_time(user: UserId, every: Duration, now: Time, share: Share) -> Time {
    // The multiples of the golden section's fraction, modulo one, lie apart from each other for
    // any number of them (Weyl's sequence); as a share of 2^64.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let every_ns = every.as_nanos().max(1) as u64;
    let place = (u128::from(user.0.wrapping_mul(GOLDEN)) * u128::from(every_ns)) >> 64;
    let grid = GRID.as_nanos() as u64;
    let (thread, threads) = share.place();
    let offset = match every_ns > 2 * grid {
        true => place as u64 / grid * grid + grid * thread / threads,
        false => place as u64,
    };
    let passed = now.as_nanos().saturating_sub(offset);
    let begun = passed / every_ns + u64::from(now.as_nanos() >= offset);
    Time(offset + begun * every_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_are_spread_evenly_and_lie_ahead() {
        let every = Duration::from_secs(30);
        for now in [Time::ZERO, Time(1), Time(29_999_999_999), Time(90_000_000_000)] {
            let mut seconds = [0u32; 30];
            for id in 1..=30_000 {
                let share = Share::WHOLE.thread(id % 60, 60);
                let first = first_time(UserId(id), every, now, share);
                assert!(first > now && first <= now + every, "{id} at {now:?}: {first:?}");
                seconds[(first.as_nanos() / 1_000_000_000 % 30) as usize] += 1;
            }
            assert!(seconds.iter().all(|count| (985..=1015).contains(count)), "{seconds:?}");
        }
    }

    #[test]
    fn a_short_period_is_not_pressed_onto_the_grid() {
        for id in 1..1000 {
            let every = Duration::from_micros(700);
            let first = first_time(UserId(id), every, Time(5_000_000), Share::WHOLE);
            assert!(first > Time(5_000_000) && first <= Time(5_700_000));
        }
    }
}
