//! InfluxDB line protocol over HTTP (`/write?db=…` of 1.x, `/api/v2/write?…` of 2.x): a measurement
//! for each name, labels as tags, times in seconds with percentiles as fields.

use std::fmt::Write as _;

use throng_base::Said;
use throng_metrics::Percentile;

use crate::metrics::{Value, labels_of, metrics};
use crate::sender::Sender;
use crate::{Export, Second};

pub(crate) struct Influx {
    sender: Sender,
}

impl Influx {
    pub(crate) fn new(sender: Sender) -> Influx {
        Influx { sender }
    }
}

impl Export for Influx {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        self.sender.post(&[("Content-Type", "text/plain; charset=utf-8")], lines(second).as_bytes())
    }
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
                let quantiles =
                    Percentile::MAIN.iter().map(|it| (it.plain(), times.value_at(it.quantile())));
                for (word, ns) in quantiles.into_iter().chain([("max", times.max())]) {
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
