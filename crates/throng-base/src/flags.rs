//! Values of command-line flags: numbers with units. Each function returns the value, or an error
//! message in the user's language.

use std::str::FromStr;
use std::time::Duration;

use crate::{Language, units};

/// The error, and how to write the value.
pub fn in_words(error: &units::UnitError) -> String {
    format!("{}; {}", error.message.spoken(), error.help.spoken())
}

/// A count that may be 0.
pub fn any_count(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(|error| in_words(&error))
}

pub fn count(text: &str) -> Result<u64, String> {
    match any_count(text)? {
        0 => Err(tell!("it must be at least 1")),
        count => Ok(count),
    }
}

/// A duration; a number without a unit is in seconds, as in a scenario, wrk and ab.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration = units::parse_time(text).map_err(|error| in_words(&error))?;
    match duration.is_zero() {
        true => Err(tell!("it must be more than 0")),
        false => Ok(duration),
    }
}

/// A rate; a number without a unit is per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let rate = units::parse_rate(&format!("{number}/{unit}")).map_err(|error| in_words(&error))?;
    match rate > 0.0 {
        true => Ok(rate),
        false => Err(tell!("it must be more than 0")),
    }
}

/// A bit rate in decimal units, such as `200Mbit/s`.
pub fn bandwidth(text: &str) -> Result<f64, String> {
    units::parse_bandwidth(text).map_err(|error| error.help.spoken())
}

pub fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| in_words(&error))
}

pub fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err(tell!("it must be more than 0")),
        bytes => Ok(bytes),
    }
}

pub fn share(text: &str) -> Result<f64, String> {
    match units::parse_share(text).map_err(|error| in_words(&error))? {
        share if share <= 1.0 => Ok(share),
        _ => Err(tell!("a share is at most 100%")),
    }
}

/// A share above 0.
pub fn positive_share(text: &str) -> Result<f64, String> {
    match share(text)? {
        share if share > 0.0 => Ok(share),
        _ => Err(tell!("it must be more than 0")),
    }
}

pub fn nice(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(nice @ -20..=19) => Ok(nice),
        _ => {
            Err(tell!("it must be a number from -20 to 19; a higher number means a lower priority"))
        }
    }
}

/// A label, checked like those of a scenario.
pub fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| tell!("write NAME=VALUE"))?;
    Ok((name.trim().to_string(), value.to_string()))
}

/// A value parsed by its type.
pub fn unit<T: FromStr<Err = units::UnitError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| in_words(&error))
}

pub fn language(text: &str) -> Result<Language, String> {
    Language::parse(text).ok_or_else(|| tell!("it must be `en` or `zh`"))
}
