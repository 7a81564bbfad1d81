//! Metrics since the start of the run, for receivers that need cumulative counters.

use std::collections::BTreeMap;

use throng_metrics::Histogram;
use throng_metrics::histogram::middle;

use crate::metrics::{Metric, Second, Value, labels_of, metrics};
use crate::native::Native;

/// Upper bounds of classic histograms, in seconds. Counts are exact to within one of throng's own
/// buckets, which are at most 1.6 % wide.
pub(crate) const BOUNDS: [f64; 19] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 25.0, 50.0, 100.0,
];

/// By name, then by labels.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) families: BTreeMap<&'static str, Family>,
}

pub(crate) struct Family {
    pub(crate) help: &'static str,
    pub(crate) series: BTreeMap<Labels, Total>,
}

/// A label has a name and a value.
pub(crate) type Labels = Vec<(String, String)>;

pub(crate) enum Total {
    Counter(f64),
    Gauge(f64),
    Times(Box<Times>),
}

#[derive(Default)]
pub(crate) struct Times {
    /// The counts between consecutive [`BOUNDS`], and above all of them.
    counts: [u64; BOUNDS.len() + 1],
    /// The same with a higher resolution.
    pub(crate) native: Native,
    pub(crate) sum_s: f64,
    pub(crate) count: u64,
}

impl Times {
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        for (index, count) in histogram.buckets() {
            let middle_s = middle(index) as f64 / 1e9;
            self.counts[BOUNDS.partition_point(|bound| *bound < middle_s)] += count;
            self.native.add(middle_s, count);
        }
        self.count += histogram.count();
        self.sum_s += histogram.mean() * histogram.count() as f64 / 1e9;
    }

    /// The bounds with the number of values up to each; the last one has no bound.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (Option<f64>, u64)> + '_ {
        let bounds = BOUNDS.into_iter().map(Some).chain([None]);
        let mut sum = 0;
        bounds.zip(self.counts).map(move |(bound, count)| {
            sum += count;
            (bound, sum)
        })
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }
}

impl Total {
    /// Its classic series: the ending of the name, the bound of a bucket, and the value.
    pub(crate) fn series(&self) -> Vec<(&'static str, Option<String>, f64)> {
        let times = match self {
            Total::Counter(value) | Total::Gauge(value) => return vec![("", None, *value)],
            Total::Times(times) => times,
        };
        let bucket = |(bound, count): (Option<f64>, u64)| {
            let bound = bound.map_or("+Inf".to_string(), |bound| bound.to_string());
            ("_bucket", Some(bound), count as f64)
        };
        let sums = [("_sum", None, times.sum_s), ("_count", None, times.count as f64)];
        times.cumulative().map(bucket).chain(sums).collect()
    }
}

impl Totals {
    pub(crate) fn add(&mut self, second: &Second<'_>) {
        let own = labels_of(second.info);
        for Metric { name, help, labels, value } in metrics(second) {
            let family = self.families.entry(name);
            let family = family.or_insert_with(|| Family { help, series: BTreeMap::new() });
            let labels = labels.into_iter().map(|(name, value)| (name.into(), value.into()));
            let series = family.series.entry(own.iter().cloned().chain(labels).collect());
            match value {
                Value::Counter(grown) => match series.or_insert(Total::Counter(0.0)) {
                    Total::Counter(total) => *total += grown,
                    other => *other = Total::Counter(grown),
                },
                Value::Gauge(now) => *series.or_insert(Total::Gauge(now)) = Total::Gauge(now),
                Value::Times(histogram) => {
                    let times = series.or_insert_with(|| Total::Times(Box::default()));
                    if let Total::Times(times) = times {
                        times.add(histogram);
                    }
                }
            }
        }
    }
}
