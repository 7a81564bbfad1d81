//! A seeded permutation of `0..n` in constant memory: the `i`-th number is computed.
//!
//! A Feistel network over a rectangle slightly larger than the domain, with modular addition in its
//! rounds, and cycle walking back into the domain: Black and Rogaway, "Ciphers with Arbitrary
//! Finite Domains", CT-RSA 2002 (generalized Feistel cipher and cycle-walking cipher). It mixes
//! well enough to look shuffled; it is not secure.

use throng_base::Random;

/// Rounds of the network, half of them for each side of the rectangle.
const ROUNDS: u64 = 8;

/// The shape of the permutations of `0..size`; a key chooses one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permutation {
    size: u64,
    /// The rectangle: `height` is the square root rounded up, and `height * width >= size`.
    height: u64,
    width: u64,
}

impl Permutation {
    /// `size` is at least 1.
    pub(crate) fn new(size: u64) -> Permutation {
        assert!(size > 0, "nothing to permute");
        let root = size.isqrt();
        let height = if root * root == size { root } else { root + 1 };
        Permutation { size, height, width: size.div_ceil(height) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The number at `position` in the order selected by `key`.
    pub(crate) fn at(&self, key: u64, position: u64) -> u64 {
        assert!(position < self.size, "a position outside of the permutation");
        // Few steps are needed: the rectangle has fewer than `height` extra places.
        let mut place = self.network(key, position);
        while place >= self.size {
            place = self.network(key, place);
        }
        place
    }

    fn network(&self, key: u64, place: u64) -> u64 {
        let (mut row, mut column) = (place / self.width, place % self.width);
        for round in (0..ROUNDS).step_by(2) {
            row = add(row, noise(key, round, column, self.height), self.height);
            column = add(column, noise(key, round + 1, row, self.width), self.width);
        }
        row * self.width + column
    }
}

/// A number below `bound`, which is at most 2^32.
fn noise(key: u64, round: u64, number: u64, bound: u64) -> u64 {
    let owner = number << 3 | round;
    let high = Random::new(key ^ owner.wrapping_mul(0xD134_2543_DE82_EF95)).next_u64() >> 32;
    (high * bound) >> 32
}

/// The sum of two numbers below `bound`, modulo it.
fn add(a: u64, b: u64, bound: u64) -> u64 {
    let sum = a + b;
    if sum >= bound { sum - bound } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        let sizes = (1..200).chain([255, 256, 257, 1_000, 4_095, 65_537, 1_000_003]);
        for size in sizes {
            let permutation = Permutation::new(size);
            let mut seen = vec![false; size as usize];
            for position in 0..size {
                let number = permutation.at(42 ^ size, position) as usize;
                assert!(!seen[number], "{number} twice in {size}");
                seen[number] = true;
            }
        }
    }

    #[test]
    fn huge_domains_do_not_overflow() {
        for size in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 32) + 1, u64::from(u32::MAX)] {
            let permutation = Permutation::new(size);
            for position in [0, 1, size / 2, size - 1] {
                assert!(permutation.at(7, position) < size);
            }
        }
    }

    #[test]
    fn every_number_is_equally_likely_at_every_position() {
        for size in [2, 3, 5, 10, 33] {
            let permutation = Permutation::new(size);
            let keys = 20_000;
            for position in [0, size - 1] {
                let mut counts = vec![0u32; size as usize];
                for key in 0..keys {
                    let key = Random::for_owner(1, key).next_u64();
                    counts[permutation.at(key, position) as usize] += 1;
                }
                let mean = keys as f64 / size as f64;
                let worst = counts.iter().map(|c| (f64::from(*c) - mean).abs()).fold(0.0, f64::max);
                assert!(worst < 6.0 * mean.sqrt(), "{counts:?} of {size}");
            }
        }
    }

    #[test]
    fn neighbors_are_separated() {
        let permutation = Permutation::new(10_000);
        let order: Vec<u64> = (0..10_000).map(|i| permutation.at(3, i)).collect();
        let near = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= 10).count();
        // The expected number is 20 in 10,000.
        assert!(near < 60, "{near}");
        assert_ne!(order, (0..10_000).map(|i| permutation.at(4, i)).collect::<Vec<_>>());
    }
}
