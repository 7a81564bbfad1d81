//! Prometheus remote write 1.0: a `WriteRequest` of Protocol Buffers, packed with Snappy.

use throng_base::Said;

use crate::native::Fields;
use crate::sender::Sender;
use crate::totals::{Labels, Times, Total, Totals};
use crate::wire::{double, field, number};
use crate::{Export, Second};

/// The kind of histograms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Histograms {
    /// A series for each bound.
    Classic,
    /// One series, if the receiver is configured for it.
    Native,
}

pub(crate) struct RemoteWrite {
    sender: Sender,
    histograms: Histograms,
    totals: Totals,
    /// The second that the totals include, so that a repeated one is not added twice.
    added: Option<u64>,
}

impl RemoteWrite {
    pub(crate) fn new(sender: Sender, histograms: Histograms) -> RemoteWrite {
        RemoteWrite { sender, histograms, totals: Totals::default(), added: None }
    }
}

impl Export for RemoteWrite {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        if self.added != Some(second.figures.second) {
            self.totals.add(second);
            self.added = Some(second.figures.second);
        }
        let body = request(&self.totals, self.histograms, second.end_unix_ns() / 1_000_000);
        let packed = snap::raw::Encoder::new().compress_vec(&body);
        let packed = packed.map_err(|error| Said::of_others(error.to_string()))?;
        let headers = [
            ("Content-Type", "application/x-protobuf"),
            ("Content-Encoding", "snappy"),
            ("X-Prometheus-Remote-Write-Version", "0.1.0"),
        ];
        self.sender.post(&headers, &packed)
    }
}

/// `WriteRequest { repeated TimeSeries timeseries = 1; }`
fn request(totals: &Totals, histograms: Histograms, at_ms: u64) -> Vec<u8> {
    let mut body = Vec::new();
    let mut series = |name: &str, labels: &Labels, bound: Option<String>, point: Point<'_>| {
        let mut all: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.push(("__name__", name));
        all.extend(bound.as_deref().map(|bound| ("le", bound)));
        // The receiver requires sorted labels without empty values.
        all.retain(|(_, value)| !value.is_empty());
        all.sort_unstable();
        field(&mut body, 1, &time_series(&all, point, at_ms));
    };
    for (name, family) in &totals.families {
        for (labels, total) in &family.series {
            match total {
                Total::Times(times) if histograms == Histograms::Native => {
                    series(name, labels, None, Point::Times(times));
                }
                total => {
                    for (ending, bound, value) in total.series() {
                        let name = format!("{name}{ending}");
                        series(&name, labels, bound, Point::Value(value));
                    }
                }
            }
        }
    }
    body
}

/// The value of a series at a time.
#[derive(Clone, Copy)]
enum Point<'a> {
    Value(f64),
    Times(&'a Times),
}

/// The fields of the message `prometheus.Histogram`; the timestamp is field 15.
const HISTOGRAM: Fields =
    Fields { count: 1, sum: 3, schema: 4, zero_threshold: 5, zero_count: 6, spans: 11, deltas: 12 };

/// `TimeSeries { repeated Label labels = 1; repeated Sample samples = 2;
/// repeated Histogram histograms = 4; }` with `Label { string name = 1; string value = 2; }` and
/// `Sample { double value = 1; int64 timestamp = 2; }`
fn time_series(labels: &[(&str, &str)], point: Point<'_>, at_ms: u64) -> Vec<u8> {
    let mut series = Vec::new();
    for (name, value) in labels {
        let mut label = Vec::new();
        field(&mut label, 1, name.as_bytes());
        field(&mut label, 2, value.as_bytes());
        field(&mut series, 1, &label);
    }
    let mut told = Vec::new();
    match point {
        Point::Value(value) => {
            double(&mut told, 1, value);
            number(&mut told, 2, at_ms);
            field(&mut series, 2, &told);
        }
        Point::Times(times) => {
            times.native.write(&mut told, &HISTOGRAM, (times.count, times.sum_s));
            number(&mut told, 15, at_ms);
            field(&mut series, 4, &told);
        }
    }
    series
}
