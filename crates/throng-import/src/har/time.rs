//! Times of a recording: ISO 8601 dates (RFC 3339), of which only differences are used.

use super::entries::Word;

/// Milliseconds since 1970.
pub(super) fn millis(text: &Word) -> Option<f64> {
    parse(text.text.as_deref()?)
}

fn parse(text: &str) -> Option<f64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let rest = text.get(19..)?;
    let digits = rest
        .strip_prefix('.')
        .map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let fraction = match digits {
        0 => 0.0,
        digits => format!("0.{}", &rest[1..=digits]).parse().ok()?,
    };
    let zone = rest.get(if digits > 0 { digits + 1 } else { 0 }..)?;
    let offset_minutes = match zone.chars().next() {
        Some(sign @ ('+' | '-')) => {
            let plain: String = zone[1..].chars().filter(char::is_ascii_digit).collect();
            let hours: i64 = plain.get(0..2)?.parse().ok()?;
            let minutes: i64 = plain.get(2..4).unwrap_or("0").parse().ok()?;
            (hours * 60 + minutes) * if sign == '-' { -1 } else { 1 }
        }
        _ => 0,
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds - offset_minutes * 60) as f64 * 1000.0 + fraction * 1000.0)
}

/// Days since 1970 for a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = (year % 400) * 365 + (year % 400) / 4 - (year % 400) / 100 + of_year;
    (year / 400) * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn browser_dates_are_parsed() {
        assert_eq!(parse("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(parse("2024-02-29T12:30:15.250Z"), Some(1_709_209_815_250.0));
        assert_eq!(parse("2024-02-29T14:30:15.25+02:00"), Some(1_709_209_815_250.0));
        assert_eq!(parse("2024-02-29T12:30:15-0000"), Some(1_709_209_815_000.0));
        for bad in ["", "yesterday", "2024-13-01T00:00:00Z", "2024-02-29T12:30"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
