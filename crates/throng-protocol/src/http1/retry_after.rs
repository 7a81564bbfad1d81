//! How long a target asks clients to wait (RFC 9110, 10.2.3).

use super::cookie_date;

/// The seconds of a `Retry-After`, given as a number or a date; 0 for a date in the past. `None`
/// for anything else.
pub fn retry_after(value: &[u8], now_unix_seconds: u64) -> Option<u64> {
    let value = value.trim_ascii();
    match std::str::from_utf8(value).ok()?.parse() {
        Ok(seconds) if value[0].is_ascii_digit() => Some(seconds),
        _ if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => Some(u64::MAX),
        _ => cookie_date::parse(value).map(|date| date.saturating_sub(now_unix_seconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        // Thu, 01 Jan 1970 00:00:00, at time 100.
        for (value, want) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Thu, 01 Jan 1970 00:02:10 GMT", Some(30)),
            ("Thursday, 01-Jan-70 00:02:10 GMT", Some(30)),
            ("Thu Jan  1 00:02:10 1970", Some(30)),
            ("Thu, 01 Jan 1970 00:00:10 GMT", Some(0)),
            ("", None),
            ("+5", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(value.as_bytes(), 100), want, "{value:?}");
        }
    }

    #[test]
    fn fuzz_nothing_makes_it_panic() {
        let seeds: [&[u8]; 2] = [b"120", b"Thu, 01 Jan 1970 00:02:10 GMT"];
        throng_fuzz::mutations(&seeds, |value, _| {
            let _ = retry_after(value, 100);
        });
    }
}
