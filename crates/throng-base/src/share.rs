//! Exact parts of a run: of its users, its starts, and their rows of data.

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// A machine's part of the load: of every `of` events, `width` events after the first `first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPart {
    pub first: u64,
    pub width: u64,
    pub of: u64,
}

impl LoadPart {
    pub fn share(self) -> Share {
        Share::of_machine(self.first, self.width, self.of)
    }
}

/// A thread's part of the whole. Of every `of` events, the machine has `width` events after the
/// first `first`; each of its `threads` threads has every `threads`-th of those. Machines can
/// therefore share a run by weight without communication, each with any number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    first: u64,
    width: u64,
    of: u64,
    thread: u64,
    threads: u64,
}

impl Share {
    /// The only thread of the only machine.
    pub const WHOLE: Share = Share { first: 0, width: 1, of: 1, thread: 0, threads: 1 };

    /// A machine's part, which must not be empty.
    pub fn of_machine(first: u64, width: u64, of: u64) -> Share {
        assert!(width > 0 && first + width <= of, "{first} and {width} of {of} are no part");
        Share { first, width, of, ..Share::WHOLE }
    }

    /// The machine's part: of every `of` events, `width` events after the first `first`.
    pub fn machine(self) -> (u64, u64, u64) {
        (self.first, self.width, self.of)
    }

    /// The part of one of the machine's threads.
    pub fn thread(self, thread: u64, threads: u64) -> Share {
        assert!(thread < threads, "thread {thread} of {threads} does not exist");
        Share { thread, threads, ..self }
    }

    /// How many of `whole` events are in this part.
    pub fn part(self, whole: u64) -> u64 {
        let begun = (whole % self.of).saturating_sub(self.first).min(self.width);
        let machine = whole / self.of * self.width + begun;
        machine / self.threads + u64::from(machine % self.threads > self.thread)
    }

    /// The global number of this part's event `local`.
    pub fn global(self, local: u64) -> u64 {
        let machine = local * self.threads + self.thread;
        machine / self.width * self.of + self.first + machine % self.width
    }

    /// The local number of a global event; `None` if it is not in this part.
    pub fn local(self, global: u64) -> Option<u64> {
        let rest = (global % self.of).checked_sub(self.first).filter(|rest| *rest < self.width)?;
        let machine = global / self.of * self.width + rest;
        (machine % self.threads == self.thread).then_some(machine / self.threads)
    }

    /// The ID of this part's user `local`; all IDs of a run count from 1 without gaps.
    pub fn user(self, local: u64) -> UserId {
        UserId(self.global(local) + 1)
    }

    /// This part of a large whole, as a fraction.
    pub fn fraction(self) -> f64 {
        self.width as f64 / self.of as f64 / self.threads as f64
    }

    /// The number of the thread on the machine, and the machine's number of threads.
    pub fn place(self) -> (u64, u64) {
        (self.thread, self.threads)
    }

    /// The number of the thread among all machines, and their total, if all had as many threads.
    pub fn stripe(self) -> (u64, u64) {
        (self.first * self.threads + self.thread, self.of * self.threads)
    }

    /// This part of events that are assigned to users in turn; without a number of users, each
    /// event has its own user. `None` if this part has no users.
    pub fn dealt(self, users: Option<u64>) -> Option<Dealt> {
        let ring = users.map(|users| users.max(1)).map(|users| (users, self.part(users)));
        (ring.is_none_or(|(_, ours)| ours > 0)).then_some(Dealt { share: self, ring })
    }
}

/// See [`Share::dealt`].
#[derive(Clone, Copy, Debug)]
pub struct Dealt {
    share: Share,
    /// The number of users, and how many of them are in this part.
    ring: Option<(u64, u64)>,
}

impl Dealt {
    /// How many of `whole` events are in this part.
    pub fn part(self, whole: u64) -> u64 {
        let Some((users, ours)) = self.ring else { return self.share.part(whole) };
        whole / users * ours + self.share.part(whole % users)
    }

    /// The global number of this part's event `local`.
    pub fn global(self, local: u64) -> u64 {
        let Some((users, ours)) = self.ring else { return self.share.global(local) };
        local / ours * users + self.share.global(local % ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Machines with random weights and numbers of threads.
    fn drawn(random: &mut Random) -> Vec<Share> {
        let widths: Vec<u64> = (0..1 + random.below(5)).map(|_| 1 + random.below(9)).collect();
        let of = widths.iter().sum();
        let mut first = 0;
        let mut shares = Vec::new();
        for width in widths {
            let (machine, threads) = (Share::of_machine(first, width, of), 1 + random.below(7));
            shares.extend((0..threads).map(|thread| machine.thread(thread, threads)));
            first += width;
        }
        shares
    }

    fn all(count: u64, parts: impl Iterator<Item = (u64, Box<dyn Fn(u64) -> u64>)>) {
        let mut numbers: Vec<u64> = Vec::new();
        for (part, global) in parts {
            let own: Vec<u64> = (0..part).map(&global).collect();
            assert!(own.is_sorted());
            assert!(global(part) >= count, "the next one is not in it");
            numbers.extend(own);
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn local_and_global_numbers_are_inverse() {
        let mut random = Random::new(34);
        for _ in 0..200 {
            let shares = drawn(&mut random);
            for global in 0..100 {
                let found = shares.iter().filter_map(|share| Some((share, share.local(global)?)));
                let found: Vec<_> = found.collect();
                assert_eq!(found.len(), 1);
                assert_eq!(found[0].0.global(found[0].1), global);
            }
        }
    }

    #[test]
    fn every_event_belongs_to_exactly_one_thread() {
        let mut random = Random::new(15);
        for _ in 0..500 {
            let (shares, count) = (drawn(&mut random), random.below(200));
            all(
                count,
                shares.iter().map(|&share| {
                    let global: Box<dyn Fn(u64) -> u64> =
                        Box::new(move |local| share.global(local));
                    (share.part(count), global)
                }),
            );
            let whole: f64 = shares.iter().map(|share| share.fraction()).sum();
            assert!((whole - 1.0).abs() < 1e-9);
            let users = Some(random.below(50));
            let dealt = shares.iter().filter_map(|share| share.dealt(users));
            all(
                count,
                dealt.map(|dealt| {
                    let global: Box<dyn Fn(u64) -> u64> =
                        Box::new(move |local| dealt.global(local));
                    (dealt.part(count), global)
                }),
            );
        }
    }

    #[test]
    fn machines_have_their_weights_and_users_take_turns() {
        let [small, large] = [Share::of_machine(0, 1, 4), Share::of_machine(1, 3, 4)];
        assert_eq!((small.part(1_000_000), large.part(1_000_000)), (250_000, 750_000));
        // Both users belong to the first two threads, so the others have no events.
        let of_two: Vec<bool> =
            (0..4).map(|thread| Share::WHOLE.thread(thread, 4).dealt(Some(2)).is_some()).collect();
        assert_eq!(of_two, [true, true, false, false]);
        let second = Share::WHOLE.thread(1, 4).dealt(Some(2)).expect("a user");
        assert_eq!((second.part(5), second.global(1)), (2, 3));
    }
}
