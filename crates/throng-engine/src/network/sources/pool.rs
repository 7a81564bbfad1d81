//! The source addresses that one shard uses for one target address: in turn, and one more whenever
//! those in use have no free port.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Said, Time};

use super::{AddressList, Plan, Ports, Range};

/// How long an exhausted address is not tried, doubled with each consecutive failure. To find out,
/// the kernel has to check all of its ports.
const REST: Duration = Duration::from_millis(100);
const REST_DOUBLINGS_MAX: u8 = 4;

pub(crate) struct Pool {
    pub(crate) plan: Arc<Plan>,
    list: Option<Arc<AddressList>>,
    /// This shard, and the number of shards.
    stripe: (u64, u64),
    rotation: RefCell<Rotation>,
}

struct Rotation {
    active: Vec<Source>,
    /// The next of them.
    turn: usize,
    /// How many of the list were taken.
    taken: u64,
    /// Those without a free port, by when they are tried again, soonest first.
    resting: VecDeque<(Time, Source)>,
}

/// One source address of a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// `None` leaves the choice to the system.
    pub(crate) address: Option<IpAddr>,
    /// If we choose the ports: offset of the next one from the first.
    port: u16,
    /// Consecutive failures to find a port.
    full: u8,
}

impl Pool {
    /// Starts with the first addresses of the shard's part of the list, or with the system's choice
    /// if `first` is 0.
    pub(super) fn new(
        plan: Arc<Plan>,
        list: Option<Arc<AddressList>>,
        stripe: (u64, u64),
        first: u64,
    ) -> Pool {
        let rotation = Rotation { active: Vec::new(), turn: 0, taken: 0, resting: VecDeque::new() };
        let mut pool = Pool { plan, list, stripe, rotation: RefCell::new(rotation) };
        let own = pool.list.as_ref().map_or(0, |list| share(list.count, stripe)).max(1);
        let port = pool.first_port();
        let rotation = pool.rotation.get_mut();
        if first == 0 {
            rotation.active.push(Source { address: None, port, full: 0 });
        }
        for _ in 0..first.min(own) {
            let more = rotation.take(pool.list.as_deref(), stripe, port);
            rotation.active.extend(more);
        }
        pool
    }

    /// Shards that share an address start with different ports.
    fn first_port(&self) -> u16 {
        let Ports::InTurn(range) = self.plan.ports else { return 0 };
        let (shard, shards) = self.stripe;
        (u64::from(range.count) * shard / shards.max(1)) as u16
    }

    /// The source of the next connection; `None` if all are exhausted.
    pub(crate) fn next(&self, now: Time) -> Option<Chosen<'_>> {
        let rotation = &mut *self.rotation.borrow_mut();
        while let Some((until, _)) = rotation.resting.front()
            && *until <= now
        {
            rotation.active.extend(rotation.resting.pop_front().map(|(_, source)| source));
        }
        if rotation.active.is_empty() {
            let port = self.first_port();
            let more = rotation.take(self.list.as_deref(), self.stripe, port)?;
            rotation.active.push(more);
        }
        rotation.turn += 1;
        if rotation.turn >= rotation.active.len() {
            rotation.turn = 0;
        }
        let index = rotation.turn;
        Some(Chosen { pool: self, index, source: rotation.active[index] })
    }

    pub(crate) fn exhausted(&self, target: SocketAddr) -> Said {
        let rotation = self.rotation.borrow();
        let tried = rotation.active.len() + rotation.resting.len();
        self.plan.exhausted(target, tried as u64)
    }
}

/// A source for the next connection.
pub(crate) struct Chosen<'a> {
    pool: &'a Pool,
    index: usize,
    pub(crate) source: Source,
}

impl Chosen<'_> {
    /// The next port, if we choose the ports.
    pub(crate) fn port(&self, range: Range) -> u16 {
        range.first + self.source.port
    }

    /// The port was taken: moves to the next.
    pub(crate) fn look_further(&mut self, range: Range) {
        self.source.port = ((u32::from(self.source.port) + range.stride) % range.count) as u16;
    }

    /// A connection uses it.
    pub(crate) fn used(mut self) {
        self.source.full = 0;
        if let Ports::InTurn(range) = self.pool.plan.ports {
            self.source.port = ((u32::from(self.source.port) + 1) % range.count) as u16;
        }
        self.pool.rotation.borrow_mut().active[self.index] = self.source;
    }

    /// It has no free port for this target.
    pub(crate) fn full(mut self, now: Time) {
        let rotation = &mut *self.pool.rotation.borrow_mut();
        rotation.active.swap_remove(self.index);
        let until = now + REST * (1 << self.source.full);
        self.source.full = (self.source.full + 1).min(REST_DOUBLINGS_MAX);
        let place = rotation.resting.partition_point(|(other, _)| *other <= until);
        rotation.resting.insert(place, (until, self.source));
    }

    /// This host does not have the address: it is not tried again.
    pub(crate) fn absent(self) {
        self.pool.rotation.borrow_mut().active.swap_remove(self.index);
    }
}

impl Rotation {
    /// Takes the next address of the shard's part of the list; after those, the addresses of the
    /// next shards, which may have free ports.
    fn take(
        &mut self,
        list: Option<&AddressList>,
        stripe: (u64, u64),
        port: u16,
    ) -> Option<Source> {
        let list = list.filter(|list| self.taken < list.count)?;
        let address = list.get(place(self.taken, list.count, stripe));
        self.taken += 1;
        Some(Source { address, port, full: 0 })
    }
}

/// How many of `count` addresses belong to one shard.
fn share(count: u64, (shard, shards): (u64, u64)) -> u64 {
    count.saturating_sub(shard).div_ceil(shards.max(1))
}

/// The index, in a list of `count`, of the address that a shard takes as its `nth`: the shards take
/// turns through the list, and continue with the addresses of the next shard when their own are
/// used up.
fn place(nth: u64, count: u64, (shard, shards): (u64, u64)) -> u64 {
    let shards = shards.max(1);
    if count < shards {
        return (shard + nth) % count.max(1);
    }
    let mut left = nth;
    for step in 0..shards {
        let shard = (shard + step) % shards;
        let own = share(count, (shard, shards));
        if left < own {
            return shard + left * shards;
        }
        left -= own;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_take_turns_through_the_whole_list() {
        for (count, shards) in [(1, 1), (10, 3), (2, 5), (7, 7), (256, 101)] {
            let mut first = Vec::new();
            for shard in 0..shards {
                let mut all: Vec<u64> =
                    (0..count).map(|nth| place(nth, count, (shard, shards))).collect();
                first.push(all[0]);
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<_>>(), "{shard} of {shards}");
            }
            first.sort_unstable();
            first.dedup();
            assert_eq!(first.len() as u64, count.min(shards), "they begin apart");
        }
        assert_eq!([0, 1, 2].map(|nth| place(nth, 10, (1, 3))), [1, 4, 7]);
    }
}
