//! The main values of a histogram.

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use throng_metrics::{Histogram, Percentile};

use super::LATENESS_NS_MAX;

/// The main values of a histogram, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    pub count: u64,
    pub min_ns: u64,
    pub mean_ns: f64,
    pub deviation_ns: f64,
    /// In the order of [`Percentile::ALL`], including those with too few values.
    pub percentiles_ns: [u64; Percentile::COUNT],
    pub max_ns: u64,
}

impl Latency {
    pub fn of(histogram: &Histogram) -> Latency {
        let mut percentiles_ns = [0; Percentile::COUNT];
        for (ns, percentile) in percentiles_ns.iter_mut().zip(Percentile::ALL) {
            *ns = histogram.value_at(percentile.quantile());
        }
        Latency {
            count: histogram.count(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean(),
            deviation_ns: histogram.deviation(),
            percentiles_ns,
            max_ns: histogram.max(),
        }
    }

    /// The percentile, even with too few values.
    pub fn at(&self, percentile: Percentile) -> u64 {
        self.percentiles_ns[percentile as usize]
    }

    /// `None` if there are too few values.
    pub fn percentile(&self, percentile: Percentile) -> Option<u64> {
        (self.count >= percentile.values_min()).then_some(self.at(percentile))
    }

    /// `None` without values.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// Whether the generator's lateness `own` can explain at least half of the percentile.
    pub fn is_explained_by(&self, own: &Latency, percentile: Percentile) -> bool {
        let (Some(ns), Some(own)) = (self.percentile(percentile), own.percentile(percentile))
        else {
            return false;
        };
        own > LATENESS_NS_MAX && own >= ns / 2 && ns >= own / 2
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Null without values; so is a percentile with too few values.
impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_empty() {
            return serializer.serialize_none();
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &self.count)?;
        map.serialize_entry("min_ns", &self.min_ns)?;
        map.serialize_entry("mean_ns", &self.mean_ns)?;
        map.serialize_entry("deviation_ns", &self.deviation_ns)?;
        for percentile in Percentile::ALL {
            map.serialize_entry(percentile.word_ns(), &self.percentile(*percentile))?;
        }
        map.serialize_entry("max_ns", &self.max_ns)?;
        map.end()
    }
}
