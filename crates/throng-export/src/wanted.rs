//! `--export KIND=WHERE`: what a person wants to be told, and its receiver before the run begins.

use std::fmt;
use std::str::FromStr;

use throng_base::{Diagnostic, Said};
use throng_results::RunInfo;

use crate::Export;
use crate::hdr::HdrLog;
use crate::influx::Influx;
use crate::otlp::Otlp;
use crate::prometheus::Scraped;
use crate::remote_write::RemoteWrite;
use crate::sender::Sender;
use crate::statsd::Statsd;
use crate::text::{Csv, JsonLines};

/// A kind of receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An address on which Prometheus scrapes.
    Prometheus,
    /// The URL of a receiver of Prometheus remote write 1.0.
    PrometheusRw,
    /// The URL of a receiver of OTLP over HTTP (JSON).
    Otlp,
    /// The host and port of a StatsD server (UDP).
    Statsd,
    /// The URL to which lines are written, with its database or bucket.
    Influx,
    Csv,
    Jsonl,
    /// A log of HdrHistogram, format 1.3.
    Hdr,
}

impl Kind {
    pub const ALL: [(&'static str, Kind); 8] = [
        ("prometheus", Kind::Prometheus),
        ("prometheus-rw", Kind::PrometheusRw),
        ("otlp", Kind::Otlp),
        ("statsd", Kind::Statsd),
        ("influx", Kind::Influx),
        ("csv", Kind::Csv),
        ("jsonl", Kind::Jsonl),
        ("hdr", Kind::Hdr),
    ];

    fn word(self) -> &'static str {
        Kind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// A receiver that a person has named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub kind: Kind,
    /// An address, a URL or the path of a file.
    pub place: String,
}

impl fmt::Display for Wanted {
    /// Without what stands before an `@` of its URL: that is a password.
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

impl FromStr for Wanted {
    type Err = Said;

    fn from_str(text: &str) -> Result<Wanted, Said> {
        let known = || {
            let words: Vec<&str> = Kind::ALL.iter().map(|(word, _)| *word).collect();
            words.join(", ")
        };
        let Some((word, place)) = text.split_once('=') else {
            return Err(say!("write `KIND=WHERE`; the kinds are {}", known()));
        };
        let found = Kind::ALL.iter().find(|(known, _)| *known == word);
        let Some((_, kind)) = found else {
            return Err(say!("`{word}` is no kind of export; the kinds are {}", known()));
        };
        let is_url = place.starts_with("http://") || place.starts_with("https://");
        let wants_url = matches!(kind, Kind::PrometheusRw | Kind::Otlp | Kind::Influx);
        if wants_url && !is_url {
            return Err(say!("`{word}` wants the URL of its receiver: `{word}=http://…`"));
        }
        if matches!(kind, Kind::Prometheus | Kind::Statsd) && !place.contains(':') {
            return Err(say!("`{word}` wants an address with a port: `{word}=127.0.0.1:PORT`"));
        }
        if place.is_empty() {
            return Err(say!("`{word}` wants the path of a file: `{word}=FILE`"));
        }
        Ok(Wanted { kind: *kind, place: place.to_string() })
    }
}

impl Wanted {
    /// Makes the receiver: its file is written and its port taken before anything is sent.
    pub fn open(&self, info: &RunInfo) -> Result<Box<dyn Export>, Box<Diagnostic>> {
        let place = &self.place;
        let failed = |error: std::io::Error| {
            let message = say!("`--export {}` cannot be opened", self.to_string());
            let told = Diagnostic::error("export-failed", message)
                .note(say!("cause: {error}", error = Said::of_error(&error)))
                .help(say!("give a file that can be written, or an address that is free"));
            Box::new(told)
        };
        Ok(match self.kind {
            Kind::Prometheus => Box::new(Scraped::listen(place).map_err(failed)?),
            Kind::PrometheusRw => Box::new(RemoteWrite::new(Sender::new(place))),
            Kind::Otlp => Box::new(Otlp::new(Sender::new(place))),
            Kind::Statsd => Box::new(Statsd::new(place).map_err(failed)?),
            Kind::Influx => Box::new(Influx::new(Sender::new(place))),
            Kind::Csv => Box::new(Csv::create(place).map_err(failed)?),
            Kind::Jsonl => Box::new(JsonLines::create(place).map_err(failed)?),
            Kind::Hdr => Box::new(HdrLog::create(place, info).map_err(failed)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_understood_or_refused() {
        let good = |text: &str| text.parse::<Wanted>().unwrap();
        assert_eq!(good("csv=a=b.csv"), Wanted { kind: Kind::Csv, place: "a=b.csv".into() });
        assert_eq!(good("statsd=localhost:8125").kind, Kind::Statsd);
        let secret = good("influx=http://me:secret@127.0.0.1:8086/write?db=x");
        assert_eq!(secret.to_string(), "influx=http://127.0.0.1:8086/write?db=x");
        for bad in ["csv", "csv=", "xml=a", "otlp=127.0.0.1:4318", "prometheus=9464"] {
            assert!(bad.parse::<Wanted>().is_err(), "{bad}");
        }
    }
}
