//! When the users of a shard want to be woken: at most one moment per user, in a heap that knows
//! where each user's entry stands. Its size is that of the users, never that of time.

use throng_base::Time;

const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct DueQueue {
    /// A binary heap, the earliest first.
    heap: Vec<(Time, u32)>,
    /// By slot: where its entry is in the heap.
    place: Vec<u32>,
}

impl DueQueue {
    /// The earliest moment; [`Time::NEVER`] when nobody waits.
    pub(crate) fn next(&self) -> Time {
        self.heap.first().map_or(Time::NEVER, |(time, _)| *time)
    }

    /// Wakes the slot at `time`, or earlier when that was already wanted: who is woken too early
    /// looks at its own deadline and arms again. So a deadline that moves on costs nothing.
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
                self.heap.push((time, slot));
                self.rise(self.heap.len() - 1);
            }
            place if time < self.heap[place as usize].0 => {
                self.heap[place as usize].0 = time;
                self.rise(place as usize);
            }
            _ => {}
        }
    }

    /// Takes the next slot whose moment has come, with that moment.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, u32)> {
        let (time, slot) = *self.heap.first()?;
        if time > now {
            return None;
        }
        self.remove(slot);
        Some((time, slot))
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(place) = self.place.get_mut(slot as usize) else { return };
        let hole = std::mem::replace(place, NOWHERE);
        if hole == NOWHERE {
            return;
        }
        let hole = hole as usize;
        self.heap.swap_remove(hole);
        if hole < self.heap.len() {
            self.place[self.heap[hole].1 as usize] = hole as u32;
            self.sink(hole);
            self.rise(hole);
        }
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.heap[at].0 < self.heap[(at - 1) / 2].0 {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        self.place[self.heap[at].1 as usize] = at as u32;
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            let right = left + 1;
            let time = |place: usize| self.heap.get(place).map_or(Time::NEVER, |entry| entry.0);
            let child = if time(right) < time(left) { right } else { left };
            if time(child) >= self.heap[at].0 {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a].1 as usize] = a as u32;
        self.place[self.heap[b].1 as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_base::Random;

    #[test]
    fn it_does_what_a_sorted_list_does() {
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
            assert_eq!(queue.heap.len(), model.iter().flatten().count());
        }
    }
}
