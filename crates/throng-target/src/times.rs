//! Service times with a resolution of 0.1 %, finer than a load generator reports.
//!
//! A server has its own histogram, which shares no code with the generator's. Below 1,024 ns every
//! value has a bucket; above, every power of two is divided into 512 equal ones. A power of two
//! with at least one value takes 4 KiB.

/// Buckets per power of two.
const BUCKETS: usize = 512;
const BUCKET_BITS: u32 = BUCKETS.ilog2();
/// The distinguished powers of two: all those of 64 bits. The first is below `BUCKETS`.
const OCTAVES: usize = (u64::BITS - BUCKET_BITS + 1) as usize;

type Octave = Option<Box<[u64; BUCKETS]>>;

pub(crate) struct Times {
    octaves: [Octave; OCTAVES],
    count: u64,
    max: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { octaves: [const { None }; OCTAVES], count: 0, max: 0 }
    }
}

impl Times {
    pub(crate) fn record(&mut self, nanos: u64) {
        let (octave, bucket) = place(nanos);
        self.octaves[octave].get_or_insert_with(|| Box::new([0; BUCKETS]))[bucket] += 1;
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The largest value, exactly; 0 when empty.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The quantile (0 to 1) of all values, as the middle of its bucket; 0 when empty.
    pub(crate) fn value_at(&self, quantile: f64) -> u64 {
        let rank = (quantile * self.count as f64).ceil().max(1.0) as u64;
        if rank >= self.count {
            return self.max;
        }
        let mut seen = 0;
        for (octave, buckets) in self.octaves.iter().enumerate() {
            let counts = buckets.iter().flat_map(|buckets| buckets.iter().enumerate());
            for (bucket, count) in counts {
                seen += count;
                if seen >= rank {
                    return middle(octave, bucket).min(self.max);
                }
            }
        }
        self.max
    }

    pub(crate) fn merge(&mut self, other: &Times) {
        for (mine, theirs) in self.octaves.iter_mut().zip(&other.octaves) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_with(|| Box::new([0; BUCKETS]));
            mine.iter_mut().zip(theirs.iter()).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }
}

/// The power of two of a value, and its bucket.
fn place(nanos: u64) -> (usize, usize) {
    match nanos.checked_ilog2().and_then(|bits| bits.checked_sub(BUCKET_BITS)) {
        None => (0, nanos as usize),
        Some(shift) => (shift as usize + 1, (nanos >> shift) as usize - BUCKETS),
    }
}

fn middle(octave: usize, bucket: usize) -> u64 {
    match octave.checked_sub(1) {
        None => bucket as u64,
        Some(shift) => (((BUCKETS + bucket) as u64) << shift) + (1 << shift) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_base::Random;

    #[test]
    fn every_bucket_contains_its_middle() {
        for octave in 0..OCTAVES {
            for bucket in 0..BUCKETS {
                assert_eq!(place(middle(octave, bucket)), (octave, bucket));
            }
        }
        assert_eq!(place(u64::MAX), (OCTAVES - 1, BUCKETS - 1));
    }

    #[test]
    fn quantiles_are_within_a_thousandth_of_the_sorted_values() {
        let mut random = Random::new(1);
        let (mut one, mut other) = (Times::default(), Times::default());
        let mut values: Vec<u64> =
            (0..50_000).map(|_| random.exponential(20e6) as u64 + random.below(100)).collect();
        for (index, value) in values.iter().enumerate() {
            if index % 3 == 0 { one.record(*value) } else { other.record(*value) }
        }
        one.merge(&other);
        values.sort_unstable();
        for quantile in [0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1) - 1;
            let (want, got) = (values[rank] as f64, one.value_at(quantile) as f64);
            assert!((want - got).abs() <= want * 0.001, "{quantile}: {want} {got}");
        }
        assert_eq!((one.count(), one.max()), (50_000, values[49_999]));
    }

    #[test]
    fn without_times_quantiles_are_zero() {
        let times = Times::default();
        assert_eq!((times.count(), times.value_at(0.5), times.max()), (0, 0, 0));
    }
}
