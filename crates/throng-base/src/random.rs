//! Seeded randomness, eight bytes per owner. The same seed gives the same numbers on every machine.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", OOPSLA 2014). It is suitable for loads and masks, but not for secrets.

use std::hash::{BuildHasher as _, RandomState};

/// A unique and unpredictable number, for IDs of runs and for seeds that the user does not set. All
/// other randomness has a seed.
pub fn fresh() -> u64 {
    // The keys of the standard library's hashes come from the operating system.
    RandomState::new().hash_one(std::process::id())
}

/// A seed for a run without a given one. It has 53 bits, which every JSON reader preserves.
pub fn fresh_seed() -> u64 {
    fresh() >> 11
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The stream of one owner (a user, a shard, a data source) in a run with `seed`.
    pub fn for_owner(seed: u64, owner: u64) -> Random {
        let mut mixed = Random::new(seed ^ owner.wrapping_mul(0xD134_2543_DE82_EF95));
        let state = mixed.next_u64();
        Random { state }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A uniform integer in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A uniform number in `[low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// An exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_owners_differ() {
        let mut a = Random::for_owner(7, 1);
        let mut b = Random::for_owner(7, 1);
        let mut c = Random::for_owner(7, 2);
        let first = a.next_u64();
        assert_eq!(first, b.next_u64());
        assert_ne!(first, c.next_u64());
    }

    #[test]
    fn fresh_numbers_differ() {
        assert_ne!(fresh(), fresh());
        assert_ne!(fresh_seed(), fresh_seed());
        assert!((0..1000).all(|_| fresh_seed() < 1 << 53));
    }

    #[test]
    fn means_are_as_specified() {
        let mut random = Random::new(42);
        let n = 200_000;
        let exponential: f64 = (0..n).map(|_| random.exponential(3.0)).sum::<f64>() / f64::from(n);
        let uniform: f64 = (0..n).map(|_| random.uniform(1.0, 5.0)).sum::<f64>() / f64::from(n);
        assert!((exponential - 3.0).abs() < 0.05, "{exponential}");
        assert!((uniform - 3.0).abs() < 0.02, "{uniform}");
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
