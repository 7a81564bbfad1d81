//! How the values of flags are read: numbers with their units, as a person writes them.

use std::str::FromStr;
use std::time::Duration;

use throng_base::{Language, Said, units};
use throng_fleet::presence::AGENTS_MAX;
use throng_program::load::PRECISION_MAX;
use throng_program::{HttpVersion, Output};
use throng_run::LoadPart;
use throng_scenario::bench::BenchStage;

pub(super) fn export(text: &str) -> Result<Output, String> {
    text.parse().map_err(|told: Said| told.spoken())
}

pub(super) fn load_part(text: &str) -> Result<LoadPart, String> {
    let wrong = || say!("write `2/5`, or `1-3/8` for parts 1 to 3 of 8").spoken();
    let read = || {
        let (parts, of) = text.split_once('/')?;
        let (first, last) = parts.split_once('-').unwrap_or((parts, parts));
        let [first, last, of] = [first, last, of].map(|number| number.trim().parse::<u64>().ok());
        let (first, last, of) = (first?, last?, of?);
        let fits = (1..=last).contains(&first) && last <= of && of <= PARTS_MAX;
        fits.then_some(LoadPart { first: first - 1, width: last - first + 1, of })
    };
    read().ok_or_else(wrong)
}

/// More machines than a run could have.
const PARTS_MAX: u64 = 1 << 20;

fn in_words(error: &units::UnitError) -> String {
    format!("{}; {}", error.message.spoken(), error.help.spoken())
}

/// A label, which is checked where those of the scenario are.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| tell!("write NAME=VALUE"))?;
    Ok((name.trim().to_string(), value.to_string()))
}

/// A value that knows how it is written.
pub(super) fn unit<T: FromStr<Err = units::UnitError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| in_words(&error))
}

/// A count that may be 0.
pub(super) fn any_count(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(|error| in_words(&error))
}

pub(super) fn count(text: &str) -> Result<u64, String> {
    match any_count(text)? {
        0 => Err(tell!("it must be at least 1")),
        count => Ok(count),
    }
}

/// Users that a person still wants to look at.
pub(super) fn few(text: &str) -> Result<u64, String> {
    match count(text)? {
        users @ 1..=100 => Ok(users),
        _ => Err(tell!("it must be a number from 1 to 100")),
    }
}

/// Agents of a fleet.
pub(super) fn agents(text: &str) -> Result<u64, String> {
    match count(text)? {
        agents if agents <= AGENTS_MAX as u64 => Ok(agents),
        _ => Err(tell!("a fleet has at most {AGENTS_MAX} agents")),
    }
}

pub(super) fn language(text: &str) -> Result<Language, String> {
    Language::parse(text).ok_or_else(|| tell!("it must be `en` or `zh`"))
}

/// A duration; a number alone is seconds, as in a scenario, in wrk and ab.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = units::parse_time(text).map_err(|error| in_words(&error))?;
    match duration.is_zero() {
        true => Err(tell!("it must be more than 0")),
        false => Ok(duration),
    }
}

/// How late something may be: `0`, or a time.
pub(super) fn precision(text: &str) -> Result<Duration, String> {
    let precision = match text {
        "0" => Duration::ZERO,
        _ => units::parse_duration(text).map_err(|error| in_words(&error))?,
    };
    match precision > PRECISION_MAX {
        true => Err(tell!(
            "the maximum is 5ms: with longer delays, the generator would appear to fall behind \
             schedule"
        )),
        false => Ok(precision),
    }
}

/// A rate, or a range of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    /// The first of a range.
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

/// How many times as fast.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        Ok(factor) if (0.001..=10_000.0).contains(&factor) => Ok(factor),
        _ => Err(tell!("it must be a number from 0.001 to 10000")),
    }
}

/// A rate; a bare number is per second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let rate = units::parse_rate(&format!("{number}/{unit}")).map_err(|error| in_words(&error))?;
    match rate > 0.0 {
        true => Ok(rate),
        false => Err(tell!("it must be more than 0")),
    }
}

/// Bits per second, as networks are told: `200Mbit/s`.
pub(super) fn bandwidth(text: &str) -> Result<f64, String> {
    units::parse_bandwidth(text).map_err(|error| error.help.spoken())
}

/// A load of a search: a rate, or a number of users.
pub(super) fn load(text: &str) -> Result<f64, String> {
    rate(text.strip_suffix(" users").unwrap_or(text))
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

pub(super) fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| in_words(&error))
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    match units::parse_share(text).map_err(|error| in_words(&error))? {
        share if share <= 1.0 => Ok(share),
        _ => Err(tell!("a share is at most 100%")),
    }
}

/// A share that something can be divided by.
pub(super) fn part(text: &str) -> Result<f64, String> {
    share_of_processors(text)
}

pub(super) fn share_of_processors(text: &str) -> Result<f64, String> {
    match share(text)? {
        share if share > 0.0 => Ok(share),
        _ => Err(tell!("it must be more than 0")),
    }
}

pub(super) fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err(tell!("it must be more than 0")),
        bytes => Ok(bytes),
    }
}

pub(super) fn nice(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(nice @ -20..=19) => Ok(nice),
        _ => {
            Err(tell!("it must be a number from -20 to 19; a higher number means a lower priority"))
        }
    }
}

pub(super) fn shards(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(shards @ 1..=1024) => Ok(shards),
        _ => Err(tell!("it must be a number from 1 to 1024")),
    }
}
