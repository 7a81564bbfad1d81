//! Service times with a resolution of 0.1 %, finer than a load generator reports. The histogram is
//! `hdrhistogram`'s, which shares no code with the generator's.

use hdrhistogram::Histogram;

#[derive(Default)]
pub(crate) struct Times {
    /// It grows with its values; the first one creates it.
    histogram: Option<Histogram<u64>>,
    max: u64,
}

/// The significant decimal digits of a value.
const DIGITS: u8 = 3;

impl Times {
    pub(crate) fn record(&mut self, nanos: u64) {
        let _ = self.created().map(|histogram| histogram.record(nanos));
        self.max = self.max.max(nanos);
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// The largest value, exactly; 0 when empty.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The quantile (0 to 1) of all values; 0 when empty.
    pub(crate) fn value_at(&self, quantile: f64) -> u64 {
        let value = self.histogram.as_ref().map_or(0, |all| all.value_at_quantile(quantile));
        value.min(self.max)
    }

    pub(crate) fn merge(&mut self, other: &Times) {
        if let Some(more) = &other.histogram {
            let _ = self.created().map(|histogram| histogram.add(more));
        }
        self.max = self.max.max(other.max);
    }

    /// It takes every value: neither the digits nor a size that it chooses can be refused.
    fn created(&mut self) -> Option<&mut Histogram<u64>> {
        self.histogram = self.histogram.take().or_else(|| Histogram::new(DIGITS).ok());
        self.histogram.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_base::Random;

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
