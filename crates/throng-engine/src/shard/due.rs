//! When the users of a shard want to be woken: at most one time per user, in a heap that knows the
//! position of each user's entry. Its size depends on the users, never on time.

use throng_base::Time;

const NOWHERE: u32 = u32::MAX;
/// Children per node: their times are adjacent in memory, and the heap is half as deep as with two.
/// That takes half the time for up to 100,000 users, and the same for a million.
const CHILDREN: usize = 4;

/// 16 bytes per user.
#[derive(Debug, Default)]
pub(crate) struct DueQueue {
    /// A heap, earliest first: times, and slots.
    times: Vec<Time>,
    slots: Vec<u32>,
    /// By slot: the position of its entry in the heap.
    place: Vec<u32>,
}

impl DueQueue {
    /// Memory per user that wants to be woken.
    pub(crate) const USER_BYTES: u64 = (size_of::<Time>() + 2 * size_of::<u32>()) as u64;

    /// The earliest time; [`Time::NEVER`] if no user waits.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.times.first().copied().unwrap_or(Time::NEVER)
    }

    /// Wakes the slot at `time`, or earlier if that was already requested: a user that is woken too
    /// early checks its own deadline and arms again. So moving a deadline back costs nothing.
    pub(crate) fn arm(&mut self, slot: u32, time: Time) {
        if time == Time::NEVER {
            return;
        }
        let index = slot as usize;
        if self.place.len() <= index {
            self.place.resize(index + 1, NOWHERE);
        }
        match self.place[index] {
            NOWHERE => {
                self.times.push(time);
                self.slots.push(slot);
                self.rise(self.times.len() - 1, time, slot);
            }
            place if time < self.times[place as usize] => self.rise(place as usize, time, slot),
            _ => {}
        }
    }

    /// Takes the next slot that is due, with its time.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, u32)> {
        let time = *self.times.first()?;
        if time > now {
            return None;
        }
        let slot = self.slots[0];
        self.remove(slot);
        Some((time, slot))
    }

    /// Whether the slot is to be woken at some time.
    pub(crate) fn is_armed(&self, slot: u32) -> bool {
        self.place.get(slot as usize).is_some_and(|place| *place != NOWHERE)
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(place) = self.place.get_mut(slot as usize) else { return };
        let hole = std::mem::replace(place, NOWHERE);
        if hole == NOWHERE {
            return;
        }
        let hole = hole as usize;
        // The last entry fills the hole.
        let (Some(time), Some(slot)) = (self.times.pop(), self.slots.pop()) else { return };
        if hole < self.times.len() {
            let before = self.times[hole];
            match time < before {
                true => self.rise(hole, time, slot),
                false => self.sink(hole, time, slot),
            }
        }
    }

    /// Moves the hole up while the entry is earlier than the parent, then fills it.
    fn rise(&mut self, mut hole: usize, time: Time, slot: u32) {
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.times[parent] <= time {
                break;
            }
            self.put(hole, self.times[parent], self.slots[parent]);
            hole = parent;
        }
        self.put(hole, time, slot);
    }

    /// Moves the hole down while the entry is later than a child, then fills it.
    fn sink(&mut self, mut hole: usize, time: Time, slot: u32) {
        loop {
            let first = hole * CHILDREN + 1;
            let end = (first + CHILDREN).min(self.times.len());
            let Some(child) = (first..end).min_by_key(|child| self.times[*child]) else { break };
            if self.times[child] >= time {
                break;
            }
            self.put(hole, self.times[child], self.slots[child]);
            hole = child;
        }
        self.put(hole, time, slot);
    }

    fn put(&mut self, at: usize, time: Time, slot: u32) {
        self.times[at] = time;
        self.slots[at] = slot;
        self.place[slot as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_base::Random;

    #[test]
    fn it_behaves_like_a_sorted_list() {
        let mut random = Random::new(3);
        let mut queue = DueQueue::default();
        let mut model: Vec<Option<Time>> = vec![None; 64];
        for round in 0..100_000u64 {
            let slot = random.below(64) as u32;
            let time = Time(round / 4 + random.below(1000));
            match random.below(4) {
                0 => {
                    queue.remove(slot);
                    model[slot as usize] = None;
                }
                1 => {
                    let earliest = model.iter().flatten().min().copied();
                    assert_eq!(queue.next(), earliest.unwrap_or(Time::NEVER));
                    if let Some((due, slot)) = queue.pop(Time(round / 4)) {
                        assert_eq!(Some(due), earliest);
                        assert_eq!(model[slot as usize].take(), earliest);
                    } else {
                        assert!(earliest.is_none_or(|earliest| earliest > Time(round / 4)));
                    }
                }
                _ => {
                    queue.arm(slot, time);
                    let known = &mut model[slot as usize];
                    *known = Some(known.map_or(time, |known| known.min(time)));
                }
            }
            assert_eq!(queue.times.len(), model.iter().flatten().count());
            assert_eq!(queue.times.len(), queue.slots.len());
        }
    }
}
