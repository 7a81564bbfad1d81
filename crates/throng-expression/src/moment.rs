//! `now.*`: the time of the scope as numbers and in UTC as text.

use std::fmt::Write as _;

use crate::call::Call;
use crate::scope::Fault;
use crate::value::Value;

const NANOS: u64 = 1_000_000_000;
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [(&str, u64); 12] = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];

pub(crate) fn ns(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.scope.unix_nanos()))
}

pub(crate) fn us(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.scope.unix_nanos() / 1_000))
}

pub(crate) fn ms(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.scope.unix_nanos() / 1_000_000))
}

pub(crate) fn s(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.scope.unix_nanos() / NANOS))
}

pub(crate) fn iso(call: &mut Call<'_>) -> Result<Value, Fault> {
    write_moment(call.scope.unix_nanos(), "%FT%T.%LZ").map(Value::from)
}

pub(crate) fn format(call: &mut Call<'_>) -> Result<Value, Fault> {
    let format = call.text(0)?;
    call.charge(format.len() * 8)?;
    write_moment(call.scope.unix_nanos(), format).map(Value::from)
}

/// A time of the Gregorian calendar in UTC.
struct Moment {
    year: u64,
    /// From 0.
    month: usize,
    /// From 1.
    day: u64,
    day_of_year: u64,
    /// From Sunday, 0.
    weekday: usize,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Moment {
    fn new(unix_nanos: u64) -> Moment {
        let seconds = unix_nanos / NANOS;
        let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
        let (mut year, mut left) = (1970, days);
        // 64 bits of nanoseconds end in 2554, so this counts a few hundred years at most.
        while left >= days_of_year(year) {
            left -= days_of_year(year);
            year += 1;
        }
        let day_of_year = left + 1;
        let mut month = 0;
        while left >= days_of_month(year, month) {
            left -= days_of_month(year, month);
            month += 1;
        }
        Moment {
            year,
            month,
            day: left + 1,
            day_of_year,
            weekday: ((days + 4) % 7) as usize,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }
}

fn days_of_year(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_of_month(year: u64, month: usize) -> u64 {
    MONTHS[month].1 + u64::from(month == 1 && is_leap(year))
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Formats the time with `%` letters; the error names an unknown letter.
pub(crate) fn write_moment(unix_nanos: u64, format: &str) -> Result<String, Fault> {
    let moment = Moment::new(unix_nanos);
    let nanos = unix_nanos % NANOS;
    let mut out = String::with_capacity(format.len() + 24);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let letter = letters.next();
        // Writing to memory cannot fail.
        let _ = match letter {
            Some('Y') => write!(out, "{:04}", moment.year),
            Some('y') => write!(out, "{:02}", moment.year % 100),
            Some('m') => write!(out, "{:02}", moment.month + 1),
            Some('d') => write!(out, "{:02}", moment.day),
            Some('H') => write!(out, "{:02}", moment.hour),
            Some('I') => write!(out, "{:02}", (moment.hour + 11) % 12 + 1),
            Some('p') => write!(out, "{}", if moment.hour < 12 { "AM" } else { "PM" }),
            Some('M') => write!(out, "{:02}", moment.minute),
            Some('S') => write!(out, "{:02}", moment.second),
            Some('L') => write!(out, "{:03}", nanos / 1_000_000),
            Some('N') => write!(out, "{nanos:09}"),
            Some('s') => write!(out, "{}", unix_nanos / NANOS),
            Some('j') => write!(out, "{:03}", moment.day_of_year),
            Some('a') => write!(out, "{}", &DAYS[moment.weekday][..3]),
            Some('A') => write!(out, "{}", DAYS[moment.weekday]),
            Some('b') => write!(out, "{}", &MONTHS[moment.month].0[..3]),
            Some('B') => write!(out, "{}", MONTHS[moment.month].0),
            Some('F') => {
                write!(out, "{:04}-{:02}-{:02}", moment.year, moment.month + 1, moment.day)
            }
            Some('T') => {
                write!(out, "{:02}:{:02}:{:02}", moment.hour, moment.minute, moment.second)
            }
            Some('%') => write!(out, "%"),
            Some(other) => return Err(Fault(say!("`now.format` does not support `%{other}`"))),
            None => return Err(Fault(say!("`now.format` cannot end with a single `%`"))),
        };
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        // Checked with GNU date.
        let cases = [
            (0, "1970-01-01 00:00:00 Thu 001 12 AM"),
            (951_782_400, "2000-02-29 00:00:00 Tue 060 12 AM"),
            (951_868_800, "2000-03-01 00:00:00 Wed 061 12 AM"),
            (1_709_251_199, "2024-02-29 23:59:59 Thu 060 11 PM"),
            (1_767_225_599, "2025-12-31 23:59:59 Wed 365 11 PM"),
            (4_107_542_400, "2100-03-01 00:00:00 Mon 060 12 AM"),
        ];
        for (seconds, expected) in cases {
            let text = write_moment(seconds * NANOS, "%F %T %a %j %I %p").expect("a format");
            assert_eq!(text, expected);
        }
        let text = write_moment(1_700_000_000_123_456_789, "%A %B %b %y %L %N %s %%");
        assert_eq!(text.expect("a format"), "Tuesday November Nov 23 123 123456789 1700000000 %");
        assert!(write_moment(u64::MAX, "%F").expect("a format").starts_with("2554-"));
    }

    #[test]
    fn unknown_format_letters_are_named() {
        assert_eq!(write_moment(0, "%Q").unwrap_err().0, "`now.format` does not support `%Q`");
        assert!(write_moment(0, "%").is_err());
    }
}
