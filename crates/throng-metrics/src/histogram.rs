//! A log-linear histogram of durations: exact counts, values within 0.8 %, merged by adding.
//!
//! Values below 64 ns have a bucket each; above, every power of two is cut into 64 equal buckets
//! (the layout of HdrHistogram, <https://hdrhistogram.org>). Powers of two own memory only when a
//! value fell into them, so a typical histogram is two or three kilobytes.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Buckets per power of two.
const BUCKETS: usize = 64;
const BUCKET_BITS: u32 = 6;
/// Powers of two that are told apart. What is longer than 2^46 ns (19.5 hours) counts there.
const OCTAVES: usize = 41;
/// The largest value that is kept apart from larger ones.
pub const VALUE_NS_MAX: u64 = (1 << (BUCKET_BITS as u64 + OCTAVES as u64 - 1)) - 1;

type Octave = Option<Box<[u64; BUCKETS]>>;

/// How many values fell where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    octaves: Vec<Octave>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    pub fn new() -> Histogram {
        Histogram::default()
    }

    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.record_times(nanos, 1);
    }

    /// Records one value several times.
    #[inline]
    pub fn record_times(&mut self, nanos: u64, times: u64) {
        if times == 0 {
            return;
        }
        let (octave, bucket) = place(nanos);
        match self.octaves.get_mut(octave) {
            Some(Some(buckets)) => buckets[bucket] += times,
            _ => self.octave_mut(octave)[bucket] += times,
        }
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.count += times;
        self.sum += u128::from(nanos) * u128::from(times);
    }

    #[cold]
    fn octave_mut(&mut self, octave: usize) -> &mut [u64; BUCKETS] {
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        self.octaves[octave].get_or_insert_with(|| Box::new([0; BUCKETS]))
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The memory behind it; it grows with the range of the values, never with their number.
    pub fn heap_bytes(&self) -> usize {
        let filled = self.octaves.iter().flatten().count();
        self.octaves.capacity() * size_of::<Octave>() + filled * size_of::<[u64; BUCKETS]>()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The smallest value, exactly; 0 when empty.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The largest value, exactly; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean of all values, exactly; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The standard deviation, from the middles of the buckets.
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 =
            self.buckets().map(|(index, n)| n as f64 * (middle(index) as f64 - mean).powi(2)).sum();
        (squares / self.count as f64).sqrt()
    }

    /// The value that a share `quantile` (0 to 1) of all values do not exceed; 0 when empty.
    pub fn value_at(&self, quantile: f64) -> u64 {
        let rank = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        if rank >= self.count {
            return self.max;
        }
        let mut seen = 0;
        for (index, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return middle(index).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// How many values are at most `nanos` (whole buckets, so within 1.6 % of the value).
    pub fn count_up_to(&self, nanos: u64) -> u64 {
        let (octave, bucket) = place(nanos);
        let last = octave * BUCKETS + bucket;
        self.buckets().take_while(|(index, _)| *index <= last).map(|(_, count)| count).sum()
    }

    /// Adds all values of another histogram; nothing is lost.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        for (octave, buckets) in other.octaves.iter().enumerate() {
            if let Some(buckets) = buckets {
                let mine = self.octave_mut(octave);
                mine.iter_mut().zip(buckets.iter()).for_each(|(mine, theirs)| *mine += theirs);
            }
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    pub fn clear(&mut self) {
        *self = Histogram::new();
    }

    /// The filled buckets in rising order: index and count.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.octaves.iter().enumerate().flat_map(|(octave, buckets)| {
            buckets.iter().flat_map(move |buckets| {
                let filled = buckets.iter().enumerate().filter(|(_, count)| **count > 0);
                filled.map(move |(bucket, count)| (octave * BUCKETS + bucket, *count))
            })
        })
    }
}

/// The octave and the bucket within it of a value.
#[inline]
fn place(nanos: u64) -> (usize, usize) {
    let nanos = nanos.min(VALUE_NS_MAX);
    if nanos < BUCKETS as u64 {
        return (0, nanos as usize);
    }
    let shift = 63 - nanos.leading_zeros() - BUCKET_BITS;
    (shift as usize + 1, (nanos >> shift) as usize - BUCKETS)
}

/// The middle of a bucket, in nanoseconds.
fn middle(index: usize) -> u64 {
    let (octave, bucket) = (index / BUCKETS, (index % BUCKETS) as u64);
    match octave {
        0 => bucket,
        octave => {
            let shift = octave - 1;
            let low = (BUCKETS as u64 + bucket) << shift;
            low + (1u64 << shift) / 2
        }
    }
}

/// As recorded: `[sum, min, max, index, count, index, count, …]`, indexes as differences to the
/// bucket before. Short, exact, and readable by any JSON tool.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut numbers = Vec::with_capacity(3 + 16);
        if self.count > 0 {
            numbers.extend([u64::try_from(self.sum).unwrap_or(u64::MAX), self.min, self.max]);
            let mut before = 0;
            for (index, count) in self.buckets() {
                numbers.extend([(index - before) as u64, count]);
                before = index;
            }
        }
        numbers.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let numbers = Vec::<u64>::deserialize(deserializer)?;
        let mut histogram = Histogram::new();
        let [sum, min, max, rest @ ..] = numbers.as_slice() else {
            return match numbers.is_empty() {
                true => Ok(histogram),
                false => Err(D::Error::custom("a histogram has at least sum, min and max")),
            };
        };
        let mut index = 0usize;
        for pair in rest.chunks(2) {
            let [step, count] = pair else {
                return Err(D::Error::custom("a bucket has an index and a count"));
            };
            index = index.saturating_add(usize::try_from(*step).unwrap_or(usize::MAX));
            if index >= OCTAVES * BUCKETS {
                return Err(D::Error::custom(format!("bucket {index} does not exist")));
            }
            histogram.octave_mut(index / BUCKETS)[index % BUCKETS] += count;
            histogram.count = histogram.count.saturating_add(*count);
        }
        (histogram.sum, histogram.min, histogram.max) = (u128::from(*sum), *min, *max);
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_base::Random;

    #[test]
    fn quantiles_are_within_one_percent_of_the_sorted_values() {
        let mut random = Random::new(1);
        let mut histogram = Histogram::new();
        let mut values: Vec<u64> =
            (0..50_000).map(|_| random.exponential(20e6) as u64 + random.below(100)).collect();
        values.iter().for_each(|value| histogram.record(*value));
        values.sort_unstable();
        for quantile in [0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1) - 1;
            let (want, got) = (values[rank] as f64, histogram.value_at(quantile) as f64);
            assert!((want - got).abs() <= want * 0.01 + 1.0, "{quantile}: {want} {got}");
        }
        assert_eq!(histogram.max(), values[values.len() - 1]);
        assert_eq!(histogram.min(), values[0]);
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        assert!((histogram.mean() - mean).abs() < 1e-3);
        assert!((histogram.deviation() - 20e6).abs() < 1e6);
    }

    #[test]
    fn merging_is_the_same_as_recording_together() {
        let mut random = Random::new(2);
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for i in 0..10_000 {
            let value = random.next_u64() >> random.below(64);
            if i % 3 == 0 {
                a.record(value);
            } else {
                b.record(value);
            }
            both.record(value);
        }
        a.merge(&b);
        assert_eq!(a, both);
        a.merge(&Histogram::new());
        assert_eq!(a, both);
    }

    #[test]
    fn every_bucket_holds_its_middle() {
        for index in 0..OCTAVES * BUCKETS {
            let (octave, bucket) = place(middle(index));
            assert_eq!(octave * BUCKETS + bucket, index);
        }
        assert_eq!(place(u64::MAX), (OCTAVES - 1, BUCKETS - 1));
        assert_eq!(size_of::<Histogram>(), 64);
    }

    #[test]
    fn an_empty_histogram_answers() {
        let empty = Histogram::new();
        assert_eq!((empty.value_at(0.99), empty.max(), empty.mean() as u64), (0, 0, 0));
        assert!(empty.is_empty());
    }
}
