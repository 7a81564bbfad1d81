//! InfluxDB line protocol over HTTP (`/write?db=…` of 1.x, `/api/v2/write?…` of 2.x): a measurement
//! for each name, labels as tags, times in seconds with percentiles as fields.

use std::fmt::Write as _;

use crate::Second;
use crate::metrics::{Value, figures, labels_of, metrics};
use crate::sender::{Posted, Sender};

pub(crate) fn influx(sender: Sender) -> Posted {
    Posted { sender, content_type: "text/plain; charset=utf-8", body: lines }
}

fn lines(second: &Second<'_>) -> String {
    let own = labels_of(second.info);
    let at = second.end_unix_ns();
    let mut text = String::new();
    for metric in metrics(second) {
        let own = own.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let labels = metric.labels.iter().map(|(name, value)| (*name, value.as_ref()));
        text.push_str(metric.name);
        for (name, value) in own.chain(labels).filter(|(_, value)| !value.is_empty()) {
            // Writing to a string does not fail.
            let _ = write!(text, ",{}={}", escaped(name), escaped(value));
        }
        match metric.value {
            Value::Counter(value) | Value::Gauge(value) => {
                let _ = write!(text, " value={value}");
            }
            Value::Times(times) => {
                let (count, mean) = (times.count(), times.mean() / 1e9);
                let _ = write!(text, " count={count}i,mean={mean}");
                for (word, ns) in figures(times) {
                    let _ = write!(text, ",{word}={}", ns as f64 / 1e9);
                }
            }
        }
        let _ = writeln!(text, " {at}");
    }
    text
}

/// Escapes names and values of tags. A newline cannot be escaped, and a backslash must not be the
/// last character.
fn escaped(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ").replace(',', "\\,").replace('=', "\\=");
    let text = text.replace(' ', "\\ ");
    if text.ends_with('\\') { format!("{text}_") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_escaped() {
        assert_eq!(escaped("GET /a,b=c\nd"), "GET\\ /a\\,b\\=c\\ d");
        assert_eq!(escaped("x\\"), "x\\_");
    }
}
