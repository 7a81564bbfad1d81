//! The date of a cookie's Expires, parsed as leniently as RFC 6265 section 5.1.1 requires.

use throng_base::calendar::days_before;

/// Seconds since 1970 of a date in any of the formats that servers use; `None` if it is not a date.
/// Dates before 1970 are 0.
pub(super) fn parse(text: &[u8]) -> Option<u64> {
    let mut found = Found::default();
    for token in text.split(|byte| is_delimiter(*byte)).filter(|token| !token.is_empty()) {
        found.token(token);
    }
    found.seconds()
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

#[derive(Default)]
struct Found {
    time: Option<[u64; 3]>,
    day: Option<u64>,
    month: Option<u64>,
    year: Option<u64>,
}

impl Found {
    /// A token is the first item it can be that is still missing.
    fn token(&mut self, token: &[u8]) {
        if self.time.is_none() {
            self.time = time(token);
            if self.time.is_some() {
                return;
            }
        }
        if self.day.is_none() {
            self.day = number(token, 1, 2);
            if self.day.is_some() {
                return;
            }
        }
        if self.month.is_none() {
            self.month = month(token);
            if self.month.is_some() {
                return;
            }
        }
        if self.year.is_none() {
            self.year = number(token, 2, 4);
        }
    }

    fn seconds(self) -> Option<u64> {
        let ([hour, minute, second], day, month) = (self.time?, self.day?, self.month?);
        let year = match self.year? {
            short @ 70..=99 => short + 1900,
            short @ 0..=69 => short + 2000,
            year => year,
        };
        let in_range = year >= 1601 && hour <= 23 && minute <= 59 && second <= 59;
        if !in_range || !(1..=days_of_month(year, month)).contains(&day) {
            return None;
        }
        let days = days_before(year as i64, month as i64, day as i64);
        let seconds = days * 86_400 + (hour * 3_600 + minute * 60 + second) as i64;
        Some(seconds.max(0) as u64)
    }
}

/// `hh:mm:ss`, each of one or two digits, then anything that does not start with a digit.
fn time(token: &[u8]) -> Option<[u64; 3]> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let mut whole = || parts.next().filter(|part| part.len() <= 2).and_then(|p| number(p, 1, 2));
    let (hour, minute) = (whole()?, whole()?);
    Some([hour, minute, number(parts.next()?, 1, 2)?])
}

/// The number that a token starts with, if it has that many digits.
fn number(token: &[u8], digits_min: usize, digits_max: usize) -> Option<u64> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(digits_min..=digits_max).contains(&digits) {
        return None;
    }
    Some(token[..digits].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The number, from 1, of the month whose first three letters a token starts with.
fn month(token: &[u8]) -> Option<u64> {
    let names = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let letters = token.get(..3)?;
    let index = names.chunks(3).position(|name| name.eq_ignore_ascii_case(letters))?;
    Some(index as u64 + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_date_are_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "6 november 1994 8:49:37",
            "1994 08:49:37x 6th NOV",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(parse(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse(b"Thu, 01-Jan-1969 00:00:00 GMT"), Some(0));
        assert_eq!(parse(b"Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(parse(b"Fri, 31 Dec 9999 23:59:59 GMT"), Some(253_402_300_799));
        assert_eq!(parse(b"Tue, 19 Jan 38 03:14:07 GMT"), Some(2_147_483_647));
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "",
            "0",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1600 08:00:00 GMT",
            "Sun, 32 Oct 1994 08:00:00 GMT",
            "Sun, 30 Feb 2024 08:00:00 GMT",
            "Sun, 06 Nov 19945 08:00:00 GMT",
            "Sun, 06 Nox 1994 08:00:00 GMT",
            "Sun, 06 Nov 1994 008:00:00 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
