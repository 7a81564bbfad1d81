//! A log-linear histogram of durations: exact counts, values within 0.8 %, merged by adding.
//!
//! Values below 64 ns have a bucket each; above, every power of two is divided into 64 equal
//! buckets (the layout of HdrHistogram, <https://hdrhistogram.org>). While few buckets are in use,
//! they are a list of some hundred bytes, which is usually sufficient for a thousand steps on a
//! thousand shards. With many, each power of two in use takes half a kilobyte.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Buckets per power of two.
const BUCKETS: usize = 64;
const BUCKET_BITS: u32 = 6;
/// Number of powers of two. Values above 2^46 ns (19.5 hours) are counted in the last.
const OCTAVES: usize = 41;
/// The largest value with its own bucket.
pub const VALUE_NS_MAX: u64 = (1 << (BUCKET_BITS as u64 + OCTAVES as u64 - 1)) - 1;
/// Maximum number of buckets in the list, which then has the size of two powers of two.
const FEW_MAX: usize = 128;

/// Number of values per bucket.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    filled: Filled,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

#[derive(Clone, Debug)]
enum Filled {
    /// In ascending order.
    Few(Vec<Entry>),
    Many(Box<[Octave; OCTAVES]>),
}

type Octave = Option<Box<[u64; BUCKETS]>>;

impl Default for Filled {
    fn default() -> Filled {
        Filled::Few(Vec::new())
    }
}

/// A bucket and its count in one word: the bucket is in the upper 16 bits.
#[derive(Clone, Copy, Debug)]
struct Entry(u64);

impl Entry {
    const COUNT_BITS: u32 = 48;
    const COUNT_MAX: u64 = (1 << Entry::COUNT_BITS) - 1;

    /// `None` if the count does not fit.
    fn new(index: usize, count: u64) -> Option<Entry> {
        let fits = count <= Entry::COUNT_MAX;
        fits.then_some(Entry((index as u64) << Entry::COUNT_BITS | count))
    }

    fn index(self) -> usize {
        (self.0 >> Entry::COUNT_BITS) as usize
    }

    fn count(self) -> u64 {
        self.0 & Entry::COUNT_MAX
    }
}

impl Filled {
    /// Adds to either representation.
    #[inline]
    fn add(&mut self, index: usize, times: u64) {
        let added = match self {
            Filled::Few(entries) => add_to_few(entries, index, times),
            Filled::Many(_) => false,
        };
        if !added {
            add_to_many(self.as_many(), index, times);
        }
    }

    /// The same for mostly ascending indexes, which need no search in a list.
    fn append(&mut self, index: usize, times: u64) {
        let entry = Entry::new(index, times);
        if let (Filled::Few(entries), Some(entry)) = (&mut *self, entry)
            && entries.len() < FEW_MAX
            && entries.last().is_none_or(|last| last.index() < index)
        {
            entries.push(entry);
            return;
        }
        self.add(index, times);
    }

    /// Converts the list to buckets, if necessary.
    fn as_many(&mut self) -> &mut [Octave; OCTAVES] {
        if let Filled::Few(entries) = self {
            let mut octaves = Box::new([const { None }; OCTAVES]);
            for entry in entries.iter() {
                add_to_many(&mut octaves, entry.index(), entry.count());
            }
            *self = Filled::Many(octaves);
        }
        match self {
            Filled::Many(octaves) => octaves,
            Filled::Few(_) => unreachable!("it was turned into buckets"),
        }
    }
}

/// Returns false, without a change, if there is no space.
fn add_to_few(entries: &mut Vec<Entry>, index: usize, times: u64) -> bool {
    let at = entries.partition_point(|entry| entry.index() < index);
    let known = entries.get(at).filter(|entry| entry.index() == index);
    let before = known.map(|entry| entry.count());
    let new = Entry::new(index, before.unwrap_or(0).saturating_add(times));
    match (before, new) {
        (Some(_), Some(new)) => entries[at] = new,
        (None, Some(new)) if entries.len() < FEW_MAX => entries.insert(at, new),
        _ => return false,
    }
    true
}

#[inline]
fn add_to_many(octaves: &mut [Octave; OCTAVES], index: usize, times: u64) {
    let buckets = octaves[index / BUCKETS].get_or_insert_with(|| Box::new([0; BUCKETS]));
    let bucket = &mut buckets[index % BUCKETS];
    *bucket = bucket.saturating_add(times);
}

impl PartialEq for Histogram {
    /// Compares values, not representations.
    fn eq(&self, other: &Histogram) -> bool {
        let sums = |it: &Histogram| (it.count, it.sum, it.min, it.max);
        sums(self) == sums(other) && self.buckets().eq(other.buckets())
    }
}

impl Eq for Histogram {}

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
        let index = place(nanos);
        self.filled.add(index, times);
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.count += times;
        self.sum += u128::from(nanos) * u128::from(times);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Heap memory; it depends on the range of the values, not on their number.
    pub fn heap_bytes(&self) -> usize {
        match &self.filled {
            Filled::Few(entries) => entries.capacity() * size_of::<Entry>(),
            Filled::Many(octaves) => {
                let filled = octaves.iter().flatten().count();
                size_of::<[Octave; OCTAVES]>() + filled * size_of::<[u64; BUCKETS]>()
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The exact minimum; 0 if empty.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The exact maximum; 0 if empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The exact mean; 0 if empty.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The standard deviation, based on the middles of the buckets.
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        let square = |(index, n): (usize, u64)| {
            n as f64 * (middle(index).clamp(self.min, self.max) as f64 - mean).powi(2)
        };
        (self.buckets().map(square).sum::<f64>() / self.count as f64).sqrt()
    }

    /// The smallest value that at least a share `quantile` (0 to 1) of all values do not exceed; 0
    /// if empty.
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

    /// Adds all values of another histogram without loss.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        match &other.filled {
            Filled::Few(entries) => {
                entries.iter().for_each(|entry| self.filled.add(entry.index(), entry.count()));
            }
            Filled::Many(octaves) => merge_many(self.filled.as_many(), octaves),
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    pub fn clear(&mut self) {
        *self = Histogram::new();
    }

    /// The buckets in use in ascending order: index and count.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (few, many): (&[Entry], &[Octave]) = match &self.filled {
            Filled::Few(entries) => (entries, &[]),
            Filled::Many(octaves) => (&[], &octaves[..]),
        };
        let of_many = many.iter().enumerate().flat_map(|(octave, buckets)| {
            buckets.iter().flat_map(move |buckets| {
                let filled = buckets.iter().enumerate().filter(|(_, count)| **count > 0);
                filled.map(move |(bucket, count)| (octave * BUCKETS + bucket, *count))
            })
        });
        few.iter().map(|entry| (entry.index(), entry.count())).chain(of_many)
    }
}

fn merge_many(mine: &mut [Octave; OCTAVES], theirs: &[Octave; OCTAVES]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        let Some(theirs) = theirs else { continue };
        match mine {
            None => *mine = Some(theirs.clone()),
            Some(mine) => {
                let both = mine.iter_mut().zip(theirs.iter());
                both.for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
            }
        }
    }
}

/// The bucket of a value.
#[inline]
fn place(nanos: u64) -> usize {
    let nanos = nanos.min(VALUE_NS_MAX);
    if nanos < BUCKETS as u64 {
        return nanos as usize;
    }
    let shift = 63 - nanos.leading_zeros() - BUCKET_BITS;
    shift as usize * BUCKETS + (nanos >> shift) as usize
}

/// The middle of a bucket, in nanoseconds.
#[inline]
pub fn middle(index: usize) -> u64 {
    let values = bucket(index);
    values.start + (values.end - values.start) / 2
}

/// The range of values of a bucket in [`Histogram::buckets`], in nanoseconds.
pub fn bucket(index: usize) -> std::ops::Range<u64> {
    let (octave, bucket) = (index / BUCKETS, (index % BUCKETS) as u64);
    match octave {
        0 => bucket..bucket + 1,
        octave => {
            let low = (BUCKETS as u64 + bucket) << (octave - 1);
            low..low + (1 << (octave - 1))
        }
    }
}

/// Serialized as `[sum, min, max, index, count, index, count, …]`, with indexes as differences to
/// the previous bucket: short, exact, and readable by any JSON tool.
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
        let pairs = rest.len() / 2;
        histogram.filled = Filled::Few(Vec::with_capacity(pairs.min(FEW_MAX)));
        if pairs > FEW_MAX {
            histogram.filled.as_many();
        }
        let mut index = 0usize;
        for pair in rest.chunks(2) {
            let [step, count] = pair else {
                return Err(D::Error::custom("a bucket has an index and a count"));
            };
            index = index.saturating_add(usize::try_from(*step).unwrap_or(usize::MAX));
            if index >= OCTAVES * BUCKETS {
                return Err(D::Error::custom(format!("bucket {index} does not exist")));
            }
            if *count > 0 {
                histogram.filled.append(index, *count);
            }
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
        let mut alone = Histogram::default();
        alone.record(64_123_457);
        assert_eq!(alone.deviation(), 0.0, "a value does not deviate from itself");
    }

    #[test]
    fn merging_equals_recording_together() {
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
    fn every_bucket_contains_its_middle() {
        for index in 0..OCTAVES * BUCKETS {
            assert_eq!(place(middle(index)), index);
        }
        assert_eq!(place(u64::MAX), OCTAVES * BUCKETS - 1);
        assert_eq!(size_of::<Histogram>(), 64);
    }

    /// Checks serialization, and equality with the representation as buckets.
    fn check(values: &[(u64, u64)]) {
        let mut histogram = Histogram::new();
        values.iter().for_each(|(nanos, times)| histogram.record_times(*nanos, *times));
        let mut many = histogram.clone();
        many.filled.as_many();
        assert!(matches!(many.filled, Filled::Many(_)));
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(text, serde_json::to_string(&many).unwrap());
        assert_eq!(histogram, many);
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        for quantile in [0.0, 0.3, 0.5, 0.99, 1.0] {
            assert_eq!(histogram.value_at(quantile), many.value_at(quantile));
        }
        let sums = [(&histogram, &histogram), (&histogram, &many), (&many, &histogram)].map(
            |(one, other)| {
                let mut sum = one.clone();
                sum.merge(other);
                sum
            },
        );
        let mut twice = many.clone();
        twice.merge(&many);
        assert!(sums.iter().all(|sum| *sum == twice), "{values:?}");
        assert_eq!(twice.count(), 2 * histogram.count());
    }

    #[test]
    fn both_representations_have_equal_values() {
        let mut random = Random::new(3);
        for buckets in (0..2 * FEW_MAX).step_by(7).chain([FEW_MAX - 1, FEW_MAX, FEW_MAX + 1]) {
            let value = |_| (middle(random.below((OCTAVES * BUCKETS) as u64) as usize), 1);
            let mut values: Vec<(u64, u64)> = (0..buckets).map(value).collect();
            check(&values);
            values.iter_mut().for_each(|(_, times)| *times = 1_000);
            check(&values);
        }
        // One value occurs more often than an entry of the list can count.
        check(&[(5, Entry::COUNT_MAX), (7, 1), (5, 1)]);
        check(&[(5, 1), (9, Entry::COUNT_MAX + 1), (5, 1)]);
    }

    #[test]
    fn memory_depends_on_the_range_of_values_not_on_their_number() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.heap_bytes(), 0);
        (0..12).for_each(|n| histogram.record(1_000_000 + n * 100_000));
        let few = histogram.heap_bytes();
        assert!(few <= 16 * size_of::<Entry>(), "{few}");
        (0..100_000).for_each(|n| histogram.record(1_000_000 + n % 12 * 100_000));
        assert_eq!(histogram.heap_bytes(), few);
        let values: Vec<u64> = (0..500).map(|n| 1_000_000 + n * 7_500).collect();
        (0..20).for_each(|_| values.iter().for_each(|value| histogram.record(*value)));
        let many = histogram.heap_bytes();
        assert!(many <= 328 + 4 * 512, "{many}");
        (0..200).for_each(|_| values.iter().for_each(|value| histogram.record(*value)));
        assert_eq!(histogram.heap_bytes(), many);
    }

    #[test]
    fn impossible_values_are_read_without_a_panic() {
        let most = u64::MAX;
        let text = format!("[{most},{most},{most},3,{most},0,{most},1,{most}]");
        let mut histogram: Histogram = serde_json::from_str(&text).unwrap();
        let other = histogram.clone();
        histogram.merge(&other);
        assert_eq!(histogram.count(), most);
        assert!(histogram.buckets().eq([(3, most), (4, most)]));
        let empty: Histogram = serde_json::from_str("[0,0,0,7,0]").unwrap();
        assert!(empty.is_empty() && empty.buckets().next().is_none());
        assert!(serde_json::from_str::<Histogram>("[0,0,0,2624,1]").is_err());
    }

    #[test]
    fn an_empty_histogram_has_defined_values() {
        let empty = Histogram::new();
        assert_eq!((empty.value_at(0.99), empty.max(), empty.mean() as u64), (0, 0, 0));
        assert!(empty.is_empty());
    }
}
