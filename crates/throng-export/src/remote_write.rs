//! Prometheus remote write 1.0: a `WriteRequest` of Protocol Buffers, packed with Snappy.

use throng_base::Said;

use crate::sender::Sender;
use crate::totals::{Labels, Total, Totals};
use crate::{Export, Second};

pub(crate) struct RemoteWrite {
    sender: Sender,
    totals: Totals,
    /// The second that is in the totals: one that is offered again is not added again.
    added: Option<u64>,
}

impl RemoteWrite {
    pub(crate) fn new(sender: Sender) -> RemoteWrite {
        RemoteWrite { sender, totals: Totals::default(), added: None }
    }
}

impl Export for RemoteWrite {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        if self.added != Some(second.figures.second) {
            self.totals.add(second);
            self.added = Some(second.figures.second);
        }
        let body = request(&self.totals, second.end_unix_ns() / 1_000_000);
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
fn request(totals: &Totals, at_ms: u64) -> Vec<u8> {
    let mut body = Vec::new();
    let mut series = |name: &str, labels: &Labels, bound: Option<String>, value: f64| {
        let mut all: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.push(("__name__", name));
        all.extend(bound.as_deref().map(|bound| ("le", bound)));
        // The receiver wants them in order, and none that is empty.
        all.retain(|(_, value)| !value.is_empty());
        all.sort_unstable();
        field(&mut body, 1, &time_series(&all, value, at_ms));
    };
    for (name, family) in &totals.families {
        for (labels, total) in &family.series {
            match total {
                Total::Counter(value) | Total::Gauge(value) => series(name, labels, None, *value),
                Total::Times(times) => {
                    let bucket = format!("{name}_bucket");
                    for (bound, count) in times.cumulative() {
                        let bound = bound.map_or("+Inf".to_string(), |bound| bound.to_string());
                        series(&bucket, labels, Some(bound), count as f64);
                    }
                    series(&format!("{name}_sum"), labels, None, times.sum_s);
                    series(&format!("{name}_count"), labels, None, times.count as f64);
                }
            }
        }
    }
    body
}

/// `TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }` with
/// `Label { string name = 1; string value = 2; }` and
/// `Sample { double value = 1; int64 timestamp = 2; }`
fn time_series(labels: &[(&str, &str)], value: f64, at_ms: u64) -> Vec<u8> {
    let mut series = Vec::new();
    for (name, value) in labels {
        let mut label = Vec::new();
        field(&mut label, 1, name.as_bytes());
        field(&mut label, 2, value.as_bytes());
        field(&mut series, 1, &label);
    }
    let mut sample = vec![1 << 3 | 1];
    sample.extend(value.to_le_bytes());
    sample.push(2 << 3);
    varint(&mut sample, at_ms);
    field(&mut series, 2, &sample);
    series
}

fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
