//! Timestamps, durations and field masks in proto3 JSON (protobuf.dev, "ProtoJSON Format"):
//! `2026-01-31T10:00:00.5Z`, `1.500s`, `user.displayName,photo`.

use throng_base::Said;
use throng_base::calendar::days_before;

/// Seconds since 1970 of the first and the last valid timestamp.
const TIMES: (i64, i64) = (-62_135_596_800, 253_402_300_799);
/// The greatest duration, about 10,000 years.
const SECONDS_MAX: i64 = 315_576_000_000;
const DAY_SECONDS: i64 = 86_400;

/// An RFC 3339 time as seconds and nanoseconds.
pub(super) fn timestamp(text: &str) -> Result<(i64, i32), Said> {
    let moment = parse_time(text).filter(|(at, _)| (TIMES.0..=TIMES.1).contains(at));
    moment.ok_or_else(|| {
        let shown = crate::fields::coerce::shortened(text);
        say!("expected a time such as `2026-01-31T10:00:00Z`, not the text `{shown}`")
    })
}

fn parse_time(text: &str) -> Option<(i64, i32)> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, zone) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_date = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !is_date || year < 1 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanos, zone) = match zone.strip_prefix('.') {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            (fraction(&rest[..end])?, &rest[end..])
        }
        None => (0, zone),
    };
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let (sign, clock) = match zone.split_at_checked(1)? {
                ("+", clock) => (1, clock),
                ("-", clock) => (-1, clock),
                _ => return None,
            };
            let [hours, minutes] = numbers(clock, ':', [2, 2])?;
            (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))?
        }
    };
    let seconds = hour * 3600 + minute * 60 + second - offset;
    Some((days_before(year, month, day) * DAY_SECONDS + seconds, nanos))
}

/// Numbers with this many digits each, with a separator between them.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut found = [0; N];
    let mut parts = text.split(between);
    for (place, digits) in found.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *place = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

/// One to nine decimal places as nanoseconds.
fn fraction(digits: &str) -> Option<i32> {
    let is_number = (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let number: i32 = is_number.then(|| digits.parse().ok())??;
    Some(number * 10_i32.pow(9 - digits.len() as u32))
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    }
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let years = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (years + era * 400 + i64::from(month <= 2), month, day)
}

/// `None` for an invalid timestamp.
pub(super) fn timestamp_text(seconds: i64, nanos: i32) -> Option<String> {
    if !(TIMES.0..=TIMES.1).contains(&seconds) || !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    let (year, month, day) = date_of(seconds.div_euclid(DAY_SECONDS));
    let of_day = seconds.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = fraction_text(nanos.unsigned_abs());
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// Empty, or a point with 3, 6 or 9 digits.
fn fraction_text(nanos: u32) -> String {
    match nanos {
        0 => String::new(),
        _ if nanos.is_multiple_of(1_000_000) => format!(".{:03}", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1_000) => format!(".{:06}", nanos / 1_000),
        _ => format!(".{nanos:09}"),
    }
}

/// `1.5s` as seconds and nanoseconds of the same sign.
pub(super) fn duration(text: &str) -> Result<(i64, i32), Said> {
    parse_duration(text).ok_or_else(|| {
        let shown = crate::fields::coerce::shortened(text);
        say!("expected a duration such as `1.5s`, not the text `{shown}`")
    })
}

fn parse_duration(text: &str) -> Option<(i64, i32)> {
    let number = text.strip_suffix('s')?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, number),
    };
    let (whole, nanos) = match number.split_once('.') {
        Some((whole, digits)) => (whole, fraction(digits)?),
        None => (number, 0),
    };
    let is_number = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit());
    let seconds: i64 = is_number.then(|| whole.parse().ok())??;
    (seconds <= SECONDS_MAX).then_some((sign * seconds, sign as i32 * nanos))
}

/// `None` for an invalid duration.
pub(super) fn duration_text(seconds: i64, nanos: i32) -> Option<String> {
    let is_one = seconds.abs() <= SECONDS_MAX && nanos.unsigned_abs() < 1_000_000_000;
    let is_mixed = seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0;
    if !is_one || is_mixed {
        return None;
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    Some(format!("{sign}{}{}s", seconds.unsigned_abs(), fraction_text(nanos.unsigned_abs())))
}

/// `displayName` as `display_name`.
pub(super) fn snake_case(path: &str) -> String {
    path.chars().fold(String::with_capacity(path.len() + 4), |mut out, c| {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

/// `display_name` as `displayName`.
pub(super) fn camel_case(path: &str) -> String {
    let mut is_upper = false;
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '_' => is_upper = true,
            c if is_upper => {
                out.push(c.to_ascii_uppercase());
                is_upper = false;
            }
            c => out.push(c),
        }
    }
    out
}
