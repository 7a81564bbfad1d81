//! Computes which users disconnect in the current phase, and when: one shard's part. The shards'
//! parts add up exactly to the configured share or rate.

use throng_base::{Share, Time};
use throng_program::{Amount, Churn, Parting};

use crate::curve::Curve;

/// The state of a phase's disconnects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Churning {
    /// With a rate: events of this shard so far. With a share: those of the next tick.
    handed: u64,
    /// Completed ticks, and the events of all shards in them.
    ticks: u64,
    events: u64,
    /// With a share, users of all shards disconnect in turn, shard by shard. This is the next turn;
    /// it continues across phases.
    turn: u64,
    /// Maximum number of users of all shards in the phase.
    users: u64,
    /// Start of the phase.
    begin: Time,
    /// With a rate: events of all shards before the current count started.
    first: u64,
}

/// `None` if no user of this shard disconnects.
pub(crate) type Event = Option<Parting>;

impl Churning {
    /// The state for the next phase, with at most this many users of all shards.
    pub(crate) fn again(self, users: u64, begin: Time) -> Churning {
        Churning { turn: self.turn, users, begin, ..Churning::default() }
    }

    /// Changes the number of users at `at`. Disconnects continue without a gap.
    pub(crate) fn amend(&mut self, churn: Option<&Churn>, users: u64, at: Time) {
        self.users = users;
        if let Some(Churn { amount: Amount::Rate(rate), .. }) = churn {
            self.first = Curve::constant(*rate).count_before(at.since(self.begin));
            self.handed = 0;
        }
    }

    /// The next event in the phase.
    pub(crate) fn next(&self, churn: &Churn, share: Share) -> Option<Time> {
        match churn.amount {
            Amount::Rate(rate) => {
                let event = share.dealt(Some(self.users))?.global(self.handed);
                Some(self.begin + Curve::constant(rate).due(self.first + event)?)
            }
            Amount::Share { every, .. } if every.is_zero() => None,
            Amount::Share { every, .. } => {
                let nanos = every.as_nanos().checked_mul(u128::from(self.ticks) + 1)?;
                Some(Time(u64::try_from(nanos).ok()?.checked_add(self.begin.0)?))
            }
        }
    }

    /// Takes the event that [`Churning::next`] returned. `whole` is the current number of users of
    /// all shards.
    pub(crate) fn take(&mut self, churn: &Churn, share: Share, whole: u64) -> Event {
        match churn.amount {
            Amount::Rate(_) => {
                let event = share.dealt(Some(self.users))?.global(self.handed);
                self.handed += 1;
                way(churn, self.first + event)
            }
            Amount::Share { share: part, .. } => {
                let count = ((part.clamp(0.0, 1.0) * whole as f64).round() as u64).min(whole);
                let turns =
                    Turns { first: self.turn.checked_rem(whole).unwrap_or(0), whole, count };
                if let Some(event) = turns.event(share, self.handed) {
                    self.handed += 1;
                    return way(churn, self.events + event);
                }
                self.handed = 0;
                self.ticks += 1;
                self.events += count;
                self.turn = (turns.first + count).checked_rem(whole).unwrap_or(0);
                None
            }
        }
    }
}

fn way(churn: &Churn, event: u64) -> Event {
    let index = event.checked_rem(churn.ways.len() as u64)?;
    churn.ways.get(index as usize).copied()
}

/// `count` users from `first` on, in a ring of `whole`. No user occurs twice, so no shard gets more
/// events than it has users.
struct Turns {
    first: u64,
    whole: u64,
    count: u64,
}

impl Turns {
    /// The global number of this shard's event `local`.
    fn event(&self, share: Share, local: u64) -> Option<u64> {
        let end = (self.first + self.count).min(self.whole);
        let skipped = share.part(self.first);
        let ahead = share.part(end) - skipped;
        if local < ahead {
            return Some(share.global(skipped + local) - self.first);
        }
        // After the end of the ring, continue with its first users.
        let behind = share.global(local - ahead);
        let reached = self.whole - self.first + behind;
        (behind < self.first && reached < self.count).then_some(reached)
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    #[test]
    fn turns_are_distributed_without_gaps() {
        let mut random = Random::new(7);
        for round in 0..2000 {
            let whole = 1 + random.below(40);
            let turns = Turns { first: random.below(whole), whole, count: random.below(whole + 1) };
            let of = 1 + random.below(60);
            let mut events = Vec::new();
            for index in 0..of {
                let share = Share::WHOLE.thread(index, of);
                let ours: Vec<u64> = (0..).map_while(|local| turns.event(share, local)).collect();
                assert!(ours.len() as u64 <= share.part(whole), "round {round}");
                assert!(ours.is_sorted(), "round {round}");
                events.extend(ours);
            }
            events.sort_unstable();
            assert_eq!(events, (0..turns.count).collect::<Vec<_>>(), "round {round}");
        }
    }
}
