//! Times in files: clock times, dates, and the times of access logs.

use throng_base::calendar::days_before;

/// A number with a fixed count of digits.
fn digits(bytes: &[u8]) -> Option<i64> {
    let add =
        |sum: i64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'));
    bytes.iter().try_fold(0, add)
}

fn within(number: i64, low: i64, high: i64) -> Option<i64> {
    (low..=high).contains(&number).then_some(number)
}

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// `10/Oct/2000:13:55:36 -0700` of the common log format: seconds since 1970.
pub(crate) fn log_time(text: &[u8]) -> Option<i64> {
    let text: &[u8; 26] = text.get(..26)?.try_into().ok()?;
    let marks = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let day = within(digits(&text[..2])?, 1, 31)?;
    let month = MONTHS.iter().position(|month| *month == &text[3..6])? as i64 + 1;
    let year = digits(&text[7..11])?;
    let hour = within(digits(&text[12..14])?, 0, 23)?;
    let minute = within(digits(&text[15..17])?, 0, 59)?;
    let second = within(digits(&text[18..20])?, 0, 60)?;
    let zone = within(digits(&text[22..24])?, 0, 23)? * 3600 + digits(&text[24..26])? * 60;
    let zone = match text[21] {
        b'+' => zone,
        b'-' => -zone,
        _ => return None,
    };
    Some(days_before(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - zone)
}

/// `13:55`, `13:55:36.5` or `2000-10-10 13:55:36`, optionally with `T` and `Z`: seconds since
/// midnight, or since 1970 in the given zone.
pub(crate) fn clock_time(text: &str) -> Option<f64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (Some(date), time),
        None => (None, text),
    };
    let day = match date {
        Some(date) => {
            let mut parts = date.split('-').map(|part| digits(part.as_bytes()));
            let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
            days_before(year, within(month, 1, 12)?, within(day, 1, 31)?) as f64 * 86_400.0
        }
        None => 0.0,
    };
    let mut parts = time.trim_end_matches('Z').splitn(3, ':');
    let hour = within(digits(parts.next()?.as_bytes())?, 0, 23)?;
    let minute = within(digits(parts.next()?.as_bytes())?, 0, 59)?;
    let second: f64 = match parts.next() {
        Some(second) if second.starts_with(|first: char| first.is_ascii_digit()) => {
            second.parse().ok().filter(|second| (0.0..61.0).contains(second))?
        }
        Some(_) => return None,
        None => 0.0,
    };
    Some(day + (hour * 3600 + minute * 60) as f64 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_times_match_the_date_command() {
        // By `date -u -d '2000-10-10 20:55:36' +%s`.
        assert_eq!(log_time(b"10/Oct/2000:13:55:36 -0700] rest"), Some(971_211_336));
        assert_eq!(log_time(b"10/Oct/2000:22:55:36 +0200]"), Some(971_211_336));
        assert_eq!(log_time(b"29/Feb/2024:00:00:00 +0000]"), Some(1_709_164_800));
        for wrong in [
            "10/Okt/2000:13:55:36 -0700",
            "10/Oct/2000 13:55:36 -0700",
            "1/Oct/2000:13:55:36 -0700",
            "10/Oct/2000:24:55:36 -0700",
            "10/Oct/2000:13:55:36 ~0700",
            "",
            "10/Oct/2000:13:55:3",
        ] {
            assert_eq!(log_time(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn clock_times_are_read_with_and_without_a_date() {
        assert_eq!(clock_time("13:55"), Some(50_100.0));
        assert_eq!(clock_time("00:00:01.5"), Some(1.5));
        assert_eq!(clock_time("2000-10-10T20:55:36Z"), Some(971_211_336.0));
        assert_eq!(clock_time("2000-10-10 20:55:36"), Some(971_211_336.0));
        for wrong in ["12", "25:00", "12:60", "12:00:61", "2000-13-01 12:00", "12:00:-1", "a:b", ""]
        {
            assert_eq!(clock_time(wrong), None, "{wrong}");
        }
    }
}
