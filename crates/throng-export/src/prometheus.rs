//! An address for Prometheus to scrape: the text exposition format 0.0.4 or, if requested, the
//! Protocol Buffers format, which has native histograms in addition to the classic ones.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use throng_base::Said;
use throng_web::{Reply, Request, Running, Server};

use crate::native::Fields;
use crate::totals::{Family, Labels, Total, Totals};
use crate::wire::{double, field, number, varint};
use crate::{Export, Second};

/// The scraped metrics, available until the run has ended.
pub(crate) struct Scraped {
    totals: Arc<Mutex<Totals>>,
    _server: Running,
}

impl Scraped {
    pub(crate) fn listen(address: &str) -> io::Result<Scraped> {
        let totals = Arc::new(Mutex::new(Totals::default()));
        let shared = Arc::clone(&totals);
        let server = Server::bind(address)?.run("scraped", move |request| {
            answer(request, &shared.lock().unwrap_or_else(PoisonError::into_inner))
        })?;
        Ok(Scraped { totals, _server: server })
    }
}

impl Export for Scraped {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(second);
        Ok(())
    }
}

/// The values of Content-Type. A Prometheus with native histograms enabled prefers the second one.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const MESSAGES: &str = "application/vnd.google.protobuf; \
                        proto=io.prometheus.client.MetricFamily; encoding=delimited";

fn answer(request: &Request, totals: &Totals) -> Reply {
    if !matches!(request.path.as_str(), "/metrics" | "/") {
        return Reply::text(404, "metrics are at /metrics\n");
    }
    match asks_for_messages(request.header("accept").unwrap_or_default()) {
        true => Reply::new(200, MESSAGES, messages(totals)),
        false => Reply::new(200, TEXT, text(totals)),
    }
}

/// True if Protocol Buffers are preferred.
fn asks_for_messages(accept: &str) -> bool {
    let first = accept.split(',').next().unwrap_or_default().replace(' ', "");
    first.starts_with("application/vnd.google.protobuf;") && first.contains("encoding=delimited")
}

/// The fields of the message `io.prometheus.client.Histogram`.
const HISTOGRAM: Fields =
    Fields { count: 1, sum: 2, schema: 5, zero_threshold: 6, zero_count: 7, spans: 12, deltas: 13 };

/// A `MetricFamily { string name = 1; string help = 2; MetricType type = 3; repeated Metric metric
/// = 4; }` for each name, preceded by its length.
fn messages(totals: &Totals) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, family) in &totals.families {
        let kind = match family.series.values().next() {
            Some(Total::Counter(_)) => 0,
            Some(Total::Gauge(_)) => 1,
            Some(Total::Times(_)) | None => 4,
        };
        let mut message = Vec::new();
        field(&mut message, 1, name.as_bytes());
        field(&mut message, 2, family.help.as_bytes());
        number(&mut message, 3, kind);
        for (labels, total) in &family.series {
            field(&mut message, 4, &metric(labels, total));
        }
        varint(&mut all, message.len() as u64);
        all.extend(message);
    }
    all
}

/// `Metric { repeated LabelPair label = 1; Gauge gauge = 2; Counter counter = 3;
/// Histogram histogram = 7; }`
fn metric(labels: &Labels, total: &Total) -> Vec<u8> {
    let mut metric = Vec::new();
    for (name, value) in labels {
        let mut label = Vec::new();
        field(&mut label, 1, name.as_bytes());
        field(&mut label, 2, value.as_bytes());
        field(&mut metric, 1, &label);
    }
    let mut told = Vec::new();
    let place = match total {
        Total::Gauge(value) => {
            double(&mut told, 1, *value);
            2
        }
        Total::Counter(value) => {
            double(&mut told, 1, *value);
            3
        }
        Total::Times(times) => {
            times.native.write(&mut told, &HISTOGRAM, (times.count, times.sum_s));
            for (bound, count) in times.cumulative() {
                let mut bucket = Vec::new();
                number(&mut bucket, 1, count);
                double(&mut bucket, 2, bound.unwrap_or(f64::INFINITY));
                field(&mut told, 3, &bucket);
            }
            7
        }
    };
    field(&mut metric, place, &told);
    metric
}

/// All metrics as text.
pub(crate) fn text(totals: &Totals) -> String {
    let mut text = String::new();
    for (name, family) in &totals.families {
        family_text(&mut text, name, family);
    }
    text
}

fn family_text(text: &mut String, name: &str, family: &Family) {
    let kind = match family.series.values().next() {
        Some(Total::Counter(_)) => "counter",
        Some(Total::Gauge(_)) => "gauge",
        Some(Total::Times(_)) | None => "histogram",
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
    for (labels, total) in &family.series {
        for (ending, bound, value) in total.series() {
            let shown = labels_text(labels, bound.as_deref());
            let _ = writeln!(text, "{name}{ending}{shown} {value}");
        }
    }
}

fn labels_text(labels: &Labels, bound: Option<&str>) -> String {
    let own = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all = own.chain(bound.map(|bound| ("le", bound)));
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let shown: Vec<String> =
        all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", shown.join(","))
}
