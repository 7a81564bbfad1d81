//! Durations, sizes, rates and shares with units: `250ms`, `64KiB`, `500/s`, `5%`. Every parser
//! names the expected form in its error, and none panics.

use std::borrow::Cow;
use std::time::Duration;

use crate::Said;

/// Why a text is not a value of the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// What is wrong, without the text itself.
    pub message: Said,
    /// The expected form, with an example.
    pub help: Said,
}

fn error<T>(message: Said, help: Said) -> Result<T, UnitError> {
    Err(UnitError { message, help })
}

const DURATION_HELP: Said =
    say!("a duration is a number and a unit: `250ms`, `3s`, `10m`, `1h30m`");
const SIZE_HELP: Said = say!("a size is a number and a unit: `512B`, `64KiB`, `10MB`");
const RATE_HELP: Said = say!("a rate is a number per unit of time: `500/s`, `30/m`, `1/2s`");
const SHARE_HELP: Said = say!("a share is a percentage: `5%`, `0.1%`");
const COUNT_HELP: Said = say!("a count is a whole number: `100`, `50_000`, `10k`, `1M`");
/// The longest duration, a hundred years; longer ones are errors.
const DURATION_SECONDS_MAX: f64 = 100.0 * 365.25 * 86_400.0;

/// `250ms`, `3s`, `10m`, `1h30m`, `2d`; units ns us µs ms s m h d.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return error(say!("a duration is missing"), DURATION_HELP);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, after) = split_number(rest);
        let value = decimal(number, DURATION_HELP)?;
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let factor = match after[..unit_end].trim() {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "" => return error(say!("the unit of the duration is missing"), DURATION_HELP),
            unit => return error(say!("`{unit}` is not a unit of time"), DURATION_HELP),
        };
        seconds += value * factor;
        rest = &after[unit_end..];
    }
    if seconds > DURATION_SECONDS_MAX {
        return error(say!("the duration is longer than a hundred years"), DURATION_HELP);
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// A duration in which a number without a unit is in seconds.
pub fn parse_time(text: &str) -> Result<Duration, UnitError> {
    parse_duration(&in_seconds(text))
}

/// The same for a range: `1..5` is one to five seconds, and `1..5m` is an error.
pub fn parse_time_range(text: &str) -> Result<(Duration, Duration), UnitError> {
    match text.split_once("..") {
        Some((low, high)) if is_number(low) && is_number(high) => {
            parse_duration_range(&format!("{}..{}", in_seconds(low), in_seconds(high)))
        }
        Some(_) => parse_duration_range(text),
        None => parse_duration_range(&in_seconds(text)),
    }
}

fn is_number(text: &str) -> bool {
    decimal(text.trim(), DURATION_HELP).is_ok()
}

fn in_seconds(text: &str) -> Cow<'_, str> {
    match is_number(text) {
        true => Cow::Owned(format!("{}s", text.trim())),
        false => Cow::Borrowed(text),
    }
}

/// `512B`, `64KiB`, `10MB`, or a number of bytes without a unit.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split_number(text.trim());
    let value = decimal(number, SIZE_HELP)?;
    let factor: f64 = match unit.trim() {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" | "K" | "k" => 1024.0,
        "MiB" | "M" => 1024.0 * 1024.0,
        "GiB" | "G" => 1024.0 * 1024.0 * 1024.0,
        unit => return error(say!("`{unit}` is not a unit of size"), SIZE_HELP),
    };
    let bytes = value * factor;
    if bytes > 1e15 {
        return error(say!("the size is larger than a petabyte"), SIZE_HELP);
    }
    Ok(bytes as u64)
}

/// A bit rate in decimal units, such as `200Mbit/s`.
pub fn parse_bandwidth(text: &str) -> Result<f64, UnitError> {
    const HELP: Said = say!("a bandwidth is a number with its unit: `200Mbit/s`, `1Gbit/s`");
    let find = |(unit, factor): &(&str, f64)| {
        let number = text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok()?;
        Some(number * factor).filter(|bits| bits.is_finite() && *bits >= 1.0)
    };
    let wrong = UnitError { message: say!("not a bandwidth"), help: HELP };
    BANDWIDTH_UNITS.iter().find_map(find).ok_or(wrong)
}

/// Formats a bit rate for [`parse_bandwidth`].
pub fn write_bandwidth(bits_per_s: u64) -> String {
    let fits = |(_, factor): &&(&str, f64)| bits_per_s as f64 >= *factor;
    let (unit, factor) = BANDWIDTH_UNITS.iter().rev().find(fits).unwrap_or(&BANDWIDTH_UNITS[0]);
    format!("{}{unit}", bits_per_s as f64 / factor)
}

const BANDWIDTH_UNITS: [(&str, f64); 3] = [("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];

/// `500/s`, `5k/s`, `30/m`, `3600/h`, `1/2s`: events per second.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let Some((number, unit)) = text.trim().split_once('/') else {
        return error(say!("the time unit of the rate is missing"), RATE_HELP);
    };
    let value = scaled(number.trim(), RATE_HELP)?;
    let seconds = match unit.trim() {
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hour" => 3600.0,
        "d" | "day" => 86_400.0,
        time if time.starts_with(|c: char| c.is_ascii_digit()) => {
            match parse_duration(time)?.as_secs_f64() {
                0.0 => return error(say!("the time interval of the rate is zero"), RATE_HELP),
                seconds => seconds,
            }
        }
        unit => return error(say!("`{unit}` is not a unit of time"), RATE_HELP),
    };
    Ok(value / seconds)
}

/// `5%` as 0.05.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let Some(number) = text.trim().strip_suffix('%') else {
        return error(say!("the `%` is missing"), SHARE_HELP);
    };
    Ok(decimal(number.trim(), SHARE_HELP)? / 100.0)
}

/// `100`, `50_000`, `10k`, `1M`.
fn scaled(text: &str, help: Said) -> Result<f64, UnitError> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000.0),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000.0),
        _ => (text, 1.0),
    };
    Ok(decimal(digits, help)? * factor)
}

/// An integer, as [`scaled`] reads it.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let value = scaled(text.trim(), COUNT_HELP)?;
    if value.fract() != 0.0 || value > 1e15 {
        return error(say!("the count is not a whole number, or it is too large"), COUNT_HELP);
    }
    Ok(value as u64)
}

/// `1s..5s`, or a single value.
pub fn parse_duration_range(text: &str) -> Result<(Duration, Duration), UnitError> {
    let Some((low, high)) = text.split_once("..") else {
        return match (parse_duration(text), other_range(text)) {
            (Ok(both), _) => Ok((both, both)),
            (Err(_), Some((low, high))) => error(say!("did you mean `{low}..{high}`?"), RANGE_HELP),
            (Err(reason), None) => Err(reason),
        };
    };
    let (low, high) = (parse_duration(low)?, parse_duration(high)?);
    if low > high {
        return error(say!("the start of the range is greater than its end"), RANGE_HELP);
    }
    Ok((low, high))
}

const RANGE_HELP: Said = say!("write a range from the smaller to the larger value: `1s..5s`");

/// Converts a range in the form of other tools, such as `1s-5s` or `between(1s, 5s)`, to the form
/// used here. The first value may lack its unit.
fn other_range(text: &str) -> Option<(String, &str)> {
    let inner = text.trim().trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let inner = inner.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let (low, high) = ["-", "–", "—", "…", ",", ":", "~", " to "]
        .iter()
        .find_map(|between| inner.split_once(between))
        .map(|(low, high)| (low.trim(), high.trim()))?;
    let (digits, unit) = split_number(high);
    let low = match split_number(low) {
        (number, "") if !number.is_empty() => format!("{low}{unit}"),
        _ => low.to_string(),
    };
    let is_range = !digits.is_empty() && parse_duration(&low).is_ok();
    (is_range && parse_duration(high).is_ok()).then_some((low, high))
}

/// A duration with three significant digits and a suitable unit (`1.23ms`, `45.0s`). Hours and
/// minutes have the form `1h02m` and `3m20s`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let scaled = |value: f64, unit: &str| {
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        format!("{value:.decimals$}{unit}")
    };
    match seconds {
        0.0 => "0s".into(),
        s if s < 999.5e-9 => format!("{:.0}ns", s * 1e9),
        s if s < 999.5e-6 => scaled(s * 1e6, "µs"),
        s if s < 0.9995 => scaled(s * 1e3, "ms"),
        s if s < 60.0 => scaled(s, "s"),
        s if s < 3600.0 => {
            let whole = s.round() as u64;
            format!("{}m{:02}s", whole / 60, whole % 60)
        }
        s => {
            let minutes = (s / 60.0).round() as u64;
            format!("{}h{:02}m", minutes / 60, minutes % 60)
        }
    }
}

/// An exact duration in the form of the scenario language (`1500ms`, `30s`, `2h`).
pub fn write_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units: [(u128, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    match units.iter().find(|(size, _)| nanos >= *size && nanos.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", nanos / size),
        None => "0s".into(),
    }
}

/// A number of bytes with three significant digits: `512 B`, `1.46 KB`, `12.3 MB` (powers of 1000).
pub fn format_bytes(bytes: f64) -> String {
    for (limit, unit) in [(999.5, "B"), (999.5e3, "KB"), (999.5e6, "MB"), (999.5e9, "GB")] {
        if bytes < limit {
            let value = bytes / (limit / 999.5);
            let decimals = match value {
                _ if unit == "B" => 0,
                v if v < 9.995 => 2,
                v if v < 99.95 => 1,
                _ => 0,
            };
            return format!("{value:.decimals$} {unit}");
        }
    }
    format!("{:.2} TB", bytes / 1e12)
}

/// An integer with groups of three digits: `1,234,567`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Splits the text after its number; underscores group digits.
fn split_number(text: &str) -> (&str, &str) {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    text.split_at(end)
}

fn decimal(text: &str, help: Said) -> Result<f64, UnitError> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let digits_only = plain.chars().all(|c| c.is_ascii_digit() || c == '.');
    match plain.parse::<f64>() {
        Ok(value) if digits_only && value.is_finite() => Ok(value),
        _ if plain.is_empty() => error(say!("the number is missing"), help),
        _ => error(say!("`{text}` is not a number"), help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_have_a_unit() {
        for (text, bits) in [("1Mbit/s", 1e6), ("0.5 Gbit/s", 5e8), ("56kbit/s", 56e3)] {
            assert_eq!(parse_bandwidth(text), Ok(bits), "{text}");
        }
        for text in ["1", "1MB/s", "Mbit/s", "-1Mbit/s", "0kbit/s", "infMbit/s", "NaNMbit/s"] {
            assert!(parse_bandwidth(text).is_err(), "{text}");
        }
        for text in ["1Mbit/s", "1.5Mbit/s", "500Mbit/s", "0.1kbit/s", "2.5Gbit/s"] {
            assert_eq!(write_bandwidth(parse_bandwidth(text).unwrap() as u64), text);
        }
    }

    #[test]
    fn durations_are_read_as_written() {
        let ms = Duration::from_millis;
        for (text, want) in [
            ("250ms", ms(250)),
            ("3s", ms(3000)),
            ("1.5s", ms(1500)),
            ("10m", ms(600_000)),
            ("1h30m", ms(5_400_000)),
            ("2d", ms(172_800_000)),
            ("20us", Duration::from_micros(20)),
            ("1_000ms", ms(1000)),
        ] {
            assert_eq!(parse_duration(text), Ok(want), "{text}");
        }
        for text in ["", "5", "s", "5 parsecs", "-3s", "1e400s", "999999999999d", "..s", "1..2s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_in_seconds() {
        let ms = Duration::from_millis;
        for (text, want) in [("3", 3000), (" 0.5 ", 500), ("1_000", 1_000_000), ("2m", 120_000)] {
            assert_eq!(parse_time(text), Ok(ms(want)), "{text}");
            assert_eq!(parse_time_range(text), Ok((ms(want), ms(want))), "{text}");
        }
        assert_eq!(parse_time_range("1..3"), Ok((ms(1000), ms(3000))));
        for text in ["", "-3", "1e3", "3 3", "inf", "."] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        for text in ["1..3m", "1s..3", "3..1", "..3", "1-3"] {
            assert!(parse_time_range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn written_durations_are_read_back() {
        for nanos in [1, 1_500, 1_500_000_000, 60_000_000_000, 7_200_000_000_000] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(parse_duration(&write_duration(duration)), Ok(duration));
        }
    }

    #[test]
    fn sizes_rates_shares_counts() {
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("10MB"), Ok(10_000_000));
        assert!(parse_size("10 potatoes").is_err());
        assert_eq!(parse_rate("500/s"), Ok(500.0));
        assert_eq!(parse_rate("30/m"), Ok(0.5));
        assert_eq!(parse_rate("1.5k/s"), Ok(1500.0));
        assert_eq!(parse_rate("6M/m"), Ok(1e5));
        assert_eq!(parse_rate("1/2s"), Ok(0.5));
        assert_eq!(parse_rate("3 / 1m30s"), Ok(3.0 / 90.0));
        for text in ["500", "1/0s", "1/2", "1/2x", "1/s2", "/2s", "1/2s/3s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(parse_share("5%"), Ok(0.05));
        assert_eq!(parse_count("1M"), Ok(1_000_000));
        assert_eq!(parse_count("50_000"), Ok(50_000));
        assert!(parse_count("1.5").is_err());
        assert!(parse_count("-1").is_err());
        let (low, high) = parse_duration_range("1s..5s").unwrap();
        assert_eq!((low.as_secs(), high.as_secs()), (1, 5));
        assert!(parse_duration_range("5s..1s").is_err());
    }

    #[test]
    fn values_have_three_digits() {
        for (nanos, want) in [
            (0, "0s"),
            (950, "950ns"),
            (1_234, "1.23µs"),
            (999_499, "999µs"),
            (12_345_678, "12.3ms"),
            (1_000_000_000, "1.00s"),
            (83_000_000_000, "1m23s"),
            (3_720_000_000_000, "1h02m"),
        ] {
            assert_eq!(format_duration(Duration::from_nanos(nanos)), want);
        }
        assert_eq!(format_bytes(1_460.0), "1.46 KB");
        assert_eq!(format_bytes(512.0), "512 B");
        assert_eq!(format_bytes(12_300_000.0), "12.3 MB");
        assert_eq!(format_count(1_234_567), "1,234,567");
        assert_eq!(format_count(12), "12");
    }

    #[test]
    fn ranges_of_other_tools_are_converted() {
        for (text, meant) in [
            ("1s-2s", "1s..2s"),
            ("1-5s", "1s..5s"),
            ("500ms – 2s", "500ms..2s"),
            ("between(1s, 5s)", "1s..5s"),
            ("1s to 1m", "1s..1m"),
        ] {
            let reason = parse_duration_range(text).unwrap_err();
            assert_eq!(reason.message, format!("did you mean `{meant}`?"), "{text}");
            assert!(parse_duration_range(meant).is_ok());
        }
        for text in ["-1s", "1s-", "1-2", "a-b", "1s-2x"] {
            assert!(
                !parse_duration_range(text).unwrap_err().message.english().contains("mean"),
                "{text}"
            );
        }
    }
}
