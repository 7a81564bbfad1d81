//! Bit sets of members; up to 64 bits are stored inline, larger sets on the heap.

const WORD: u32 = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bits {
    Few(u64),
    Many(Box<[u64]>),
}

impl Default for Bits {
    fn default() -> Bits {
        Bits::Few(0)
    }
}

impl Bits {
    fn words(&self) -> &[u64] {
        match self {
            Bits::Few(word) => std::slice::from_ref(word),
            Bits::Many(words) => words,
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Bits::Few(word) => std::slice::from_mut(word),
            Bits::Many(words) => words,
        }
    }

    #[inline]
    pub(super) fn has(&self, index: u32) -> bool {
        let word = self.words().get((index / WORD) as usize);
        word.is_some_and(|word| word >> (index % WORD) & 1 == 1)
    }

    /// Makes room for the bit if needed.
    pub(super) fn set(&mut self, index: u32) {
        let place = (index / WORD) as usize;
        if place >= self.words().len() {
            let mut words = vec![0; (place + 1).next_power_of_two()];
            words[..self.words().len()].copy_from_slice(self.words());
            *self = Bits::Many(words.into());
        }
        self.words_mut()[place] |= 1 << (index % WORD);
    }

    /// Clears a bit; true if it was set.
    #[inline]
    pub(super) fn clear(&mut self, index: u32) -> bool {
        let mask = 1 << (index % WORD);
        match self.words_mut().get_mut((index / WORD) as usize) {
            Some(word) if *word & mask != 0 => {
                *word &= !mask;
                true
            }
            _ => false,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.words().iter().map(|word| word.count_ones()).sum()
    }

    /// Keeps only the bits that are also set in the other.
    pub(super) fn keep(&mut self, other: &Bits) {
        let others = other.words().iter().copied().chain(std::iter::repeat(0));
        for (word, other) in self.words_mut().iter_mut().zip(others) {
            *word &= other;
        }
    }

    /// The same bits without spare capacity.
    pub(super) fn trimmed(&self) -> Bits {
        let words = self.words();
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        match used {
            0 => Bits::Few(0),
            1 => Bits::Few(words[0]),
            _ => Bits::Many(words[..used].into()),
        }
    }

    /// The indexes of the set bits, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let places = self.words().iter().zip((0..).step_by(WORD as usize));
        places.flat_map(|(&word, from)| {
            (0..WORD).filter(move |bit| word >> bit & 1 == 1).map(move |bit| from + bit)
        })
    }

    /// Beyond its own size.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Bits::Few(_) => 0,
            Bits::Many(words) => size_of_val(&**words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_stored_and_counted() {
        assert_eq!(size_of::<Bits>(), 16);
        let mut bits = Bits::default();
        for index in [0, 63, 64, 700] {
            bits.set(index);
            assert!(bits.has(index), "{index}");
        }
        assert_eq!((bits.count(), bits.has(1), bits.has(100_000)), (4, false, false));
        assert_eq!(bits.all().collect::<Vec<_>>(), [0, 63, 64, 700]);
        assert!(bits.clear(700) && !bits.clear(700) && !bits.clear(100_000));
        assert_eq!(bits.trimmed().heap_bytes(), 16);
        let mut few = Bits::default();
        few.set(63);
        bits.keep(&few);
        assert_eq!(bits.trimmed(), few);
        assert_eq!(few.heap_bytes(), 0);
    }
}
