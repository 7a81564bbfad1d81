//! When a user's recurring actions are due: spread evenly over all users, on a grid.

use std::time::Duration;

use throng_base::{Share, Time, UserId};

/// Times are rounded to a grid, so that one wake-up handles all that is due together on a shard.
/// Each shard has its own offset, so that the shards do not wake together and all times stay evenly
/// spread.
const GRID: Duration = Duration::from_millis(10);

/// The first time after `now` at which a recurring action of this user is due. Users are spread
/// evenly over the period, both in the order of their arrival and all together.
pub(super) fn first_time(user: UserId, every: Duration, now: Time, share: Share) -> Time {
    // Multiples of the fraction of the golden ratio, modulo one, are well separated for any number
    // of them (a Weyl sequence); as a share of 2^64.
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
    fn heartbeats_are_spread_evenly_and_in_the_future() {
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
    fn a_short_period_is_not_rounded_to_the_grid() {
        for id in 1..1000 {
            let every = Duration::from_micros(700);
            let first = first_time(UserId(id), every, Time(5_000_000), Share::WHOLE);
            assert!(first > Time(5_000_000) && first <= Time(5_700_000));
        }
    }
}
