//! Receivers of the measurements of each second during the run: `--export KIND=WHERE`, and
//! `outputs` of a scenario.

use std::fmt;
use std::str::FromStr;

use throng_base::{Said, say};

/// A kind of receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// An address on which Prometheus scrapes.
    Prometheus,
    /// The URL of a receiver of Prometheus remote write 1.0.
    PrometheusRw,
    /// The same with native histograms instead of classic ones.
    PrometheusRwNative,
    /// The URL of a receiver of OTLP over HTTP (JSON).
    Otlp,
    /// The host and port of a StatsD server (UDP).
    Statsd,
    /// The URL for line protocol, with its database or bucket.
    Influx,
    Csv,
    Jsonl,
    /// A log of HdrHistogram, format 1.3.
    Hdr,
}

impl OutputKind {
    fn words() -> String {
        let words: Vec<&str> = OutputKind::ALL.iter().map(|(word, _)| *word).collect();
        words.join(", ")
    }

    pub const ALL: [(&'static str, OutputKind); 9] = [
        ("prometheus", OutputKind::Prometheus),
        ("prometheus-rw", OutputKind::PrometheusRw),
        ("prometheus-rw-native", OutputKind::PrometheusRwNative),
        ("otlp", OutputKind::Otlp),
        ("statsd", OutputKind::Statsd),
        ("influx", OutputKind::Influx),
        ("csv", OutputKind::Csv),
        ("jsonl", OutputKind::Jsonl),
        ("hdr", OutputKind::Hdr),
    ];

    pub fn word(self) -> &'static str {
        OutputKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// A configured receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub kind: OutputKind,
    /// An address, a URL or the path of a file.
    pub place: String,
}

impl fmt::Display for Output {
    /// Omits everything before an `@` of its URL: it contains a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self
            .place
            .split_once("://")
            .map(|(scheme, rest)| (scheme, rest.rsplit_once('@')))
        {
            Some((scheme, Some((_, rest)))) => format!("{scheme}://{rest}"),
            _ => self.place.clone(),
        };
        write!(f, "{}={place}", self.kind.word())
    }
}

impl FromStr for Output {
    type Err = Said;

    /// `KIND=WHERE`.
    fn from_str(text: &str) -> Result<Output, Said> {
        let Some((word, place)) = text.split_once('=') else {
            return Err(say!("write `KIND=WHERE`; valid kinds: {}", OutputKind::words()));
        };
        Output::new(word, place)
    }
}

impl Output {
    pub fn new(word: &str, place: &str) -> Result<Output, Said> {
        let found = OutputKind::ALL.iter().find(|(known, _)| *known == word);
        let Some((_, kind)) = found else {
            return Err(say!(
                "`{word}` is not a valid kind of export; valid kinds: {}",
                OutputKind::words()
            ));
        };
        let is_url = place.starts_with("http://") || place.starts_with("https://");
        let wants_url = matches!(
            kind,
            OutputKind::PrometheusRw
                | OutputKind::PrometheusRwNative
                | OutputKind::Otlp
                | OutputKind::Influx
        );
        if wants_url && !is_url {
            return Err(say!("`{word}` requires the URL of its receiver: `{word}=http://…`"));
        }
        if matches!(kind, OutputKind::Prometheus | OutputKind::Statsd) && !place.contains(':') {
            return Err(say!("`{word}` requires an address with a port: `{word}=127.0.0.1:PORT`"));
        }
        if place.is_empty() {
            return Err(say!("`{word}` requires a file path: `{word}=FILE`"));
        }
        Ok(Output { kind: *kind, place: place.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_parsed_or_rejected() {
        let good = |text: &str| text.parse::<Output>().unwrap();
        assert_eq!(good("csv=a=b.csv"), Output { kind: OutputKind::Csv, place: "a=b.csv".into() });
        assert_eq!(good("statsd=localhost:8125").kind, OutputKind::Statsd);
        let secret = good("influx=http://me:secret@127.0.0.1:8086/write?db=x");
        assert_eq!(secret.to_string(), "influx=http://127.0.0.1:8086/write?db=x");
        for bad in ["csv", "csv=", "xml=a", "otlp=127.0.0.1:4318", "prometheus=9464"] {
            assert!(bad.parse::<Output>().is_err(), "{bad}");
        }
    }
}
