//! Values of flags that only one command has.

use throng_base::flags::{count, rate};
use throng_program::HttpVersion;
use throng_scenario::bench::BenchStage;

/// A number of users small enough to read their output.
pub(super) fn few(text: &str) -> Result<u64, String> {
    match count(text)? {
        users @ 1..=100 => Ok(users),
        _ => Err(tell!("it must be a number from 1 to 100")),
    }
}

/// A rate, or a range of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    /// The start of a range.
    pub(crate) from: Option<f64>,
    pub(crate) to: f64,
}

pub(super) fn rates(text: &str) -> Result<Rates, String> {
    let Some((from, to)) = text.split_once("..") else {
        return rate(text).map(|to| Rates { from: None, to });
    };
    let (from, to) = (rate(from)?, rate(to)?);
    match from == to {
        true => Err(tell!("both ends of the range are the same")),
        false => Ok(Rates { from: Some(from), to }),
    }
}

pub(super) fn stage(text: &str) -> Result<BenchStage, String> {
    BenchStage::parse(text).map_err(|error| error.spoken())
}

/// A speed factor.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        Ok(factor) if (0.001..=10_000.0).contains(&factor) => Ok(factor),
        _ => Err(tell!("it must be a number from 0.001 to 10000")),
    }
}

pub(super) fn source(text: &str) -> Result<String, String> {
    match throng_scenario::check_source(text) {
        Ok(()) => Ok(text.to_string()),
        Err((message, help)) => Err(tell!("{message}; {help}")),
    }
}

pub(super) fn http_version(text: &str) -> Result<HttpVersion, String> {
    let found = HttpVersion::ALL.into_iter().find(|version| version.word() == text);
    found.ok_or_else(|| tell!("HTTP versions are `1.1`, `2` and `auto`"))
}
