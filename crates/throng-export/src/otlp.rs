//! OpenTelemetry over HTTP, in the JSON encoding of `ExportMetricsServiceRequest` (OTLP 1.x): sums
//! and histograms of each second with *delta* temporality.

use serde_json::{Value as Json, json};

use crate::Second;
use crate::metrics::{Metric, Value, labels_of, metrics};
use crate::sender::{Posted, Sender};
use crate::totals::{BOUNDS, Times};

const DELTA: u8 = 1;

pub(crate) fn otlp(sender: Sender) -> Posted {
    let body = |second: &Second<'_>| request(second).to_string();
    Posted { sender, content_type: "application/json", body }
}

fn request(second: &Second<'_>) -> Json {
    let mut named: Vec<Json> = Vec::new();
    let all = metrics(second);
    for of_name in all.chunk_by(|one, next| one.name == next.name) {
        named.push(metric(of_name, second));
    }
    let own = labels_of(second.info).into_iter().map(|(name, value)| attribute(&name, &value));
    let service = attribute("service.name", "throng");
    let version = env!("CARGO_PKG_VERSION");
    let attributes: Vec<Json> = [service].into_iter().chain(own).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes},
        "scopeMetrics": [{"scope": {"name": "throng", "version": version}, "metrics": named}],
    }]})
}

/// All metrics with one name.
fn metric(all: &[Metric<'_>], second: &Second<'_>) -> Json {
    let points: Vec<Json> = all.iter().map(|one| point(one, second)).collect();
    let (name, help) = (all[0].name, all[0].help);
    let unit = match name {
        name if name.contains("seconds") => "s",
        name if name.contains("bytes") => "By",
        _ => "1",
    };
    let (kind, data) = match all[0].value {
        Value::Counter(_) => (
            "sum",
            json!({"aggregationTemporality": DELTA, "isMonotonic": true, "dataPoints": points}),
        ),
        Value::Gauge(_) => ("gauge", json!({"dataPoints": points})),
        Value::Times(_) => {
            ("histogram", json!({"aggregationTemporality": DELTA, "dataPoints": points}))
        }
    };
    json!({"name": name, "description": help, "unit": unit, kind: data})
}

/// 64-bit integers are strings in this encoding.
fn point(metric: &Metric<'_>, second: &Second<'_>) -> Json {
    let attributes: Vec<Json> =
        metric.labels.iter().map(|(name, value)| attribute(name, value)).collect();
    let mut point = json!({
        "attributes": attributes,
        "startTimeUnixNano": second.begin_unix_ns().to_string(),
        "timeUnixNano": second.end_unix_ns().to_string(),
    });
    match metric.value {
        Value::Counter(value) | Value::Gauge(value) => point["asDouble"] = json!(value),
        Value::Times(histogram) => {
            let mut times = Times::default();
            times.add(histogram);
            let counts: Vec<String> = times.counts().iter().map(u64::to_string).collect();
            point["count"] = json!(times.count.to_string());
            point["sum"] = json!(times.sum_s);
            point["min"] = json!(histogram.min() as f64 / 1e9);
            point["max"] = json!(histogram.max() as f64 / 1e9);
            point["bucketCounts"] = json!(counts);
            point["explicitBounds"] = json!(BOUNDS);
        }
    }
    point
}

fn attribute(name: &str, value: &str) -> Json {
    json!({"key": name, "value": {"stringValue": value}})
}
