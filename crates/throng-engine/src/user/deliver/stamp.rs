//! Timestamps in messages: when they were sent, in the formats that systems use.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use throng_expression::Value;

/// The time of a stamp in nanoseconds since 1970. A stamp is a number of seconds, milliseconds,
/// microseconds or nanoseconds (for any time since 1973, its size determines the unit), or a date
/// and time with a fraction of a second (RFC 3339; UTC without an offset). Whole seconds are too
/// coarse and are ignored.
pub(in crate::user) fn nanos_of(stamp: &Value) -> Option<u64> {
    let text = match stamp {
        Value::Text(text) => text.trim(),
        Value::Float(seconds) => return of_fraction(*seconds),
        stamp => return of_whole(u64::try_from(stamp.as_i64()?).ok()?),
    };
    if let Ok(whole) = text.parse() {
        return of_whole(whole);
    }
    match text.parse() {
        Ok(number) => of_fraction(number),
        Err(_) => of_date(text),
    }
}

fn of_whole(number: u64) -> Option<u64> {
    const UNITS: [(u64, u64); 3] =
        [(100_000_000_000_000_000, 1), (100_000_000_000_000, 1_000), (100_000_000_000, 1_000_000)];
    let unit = UNITS.into_iter().find(|(least, _)| number >= *least);
    unit.and_then(|(_, nanos)| number.checked_mul(nanos))
}

/// Seconds with a fraction; for larger units the fraction is dropped.
fn of_fraction(number: f64) -> Option<u64> {
    if !(0.0..1e18).contains(&number) {
        return None;
    }
    of_whole(number as u64).or_else(|| (number.fract() != 0.0).then_some((number * 1e9) as u64))
}

fn of_date(text: &str) -> Option<u64> {
    if !text.contains(['.', ',']) {
        return None;
    }
    let at = text.parse::<Timestamp>().or_else(|_| {
        let at = text.parse::<DateTime>().and_then(|at| at.to_zoned(TimeZone::UTC));
        at.map(|at| at.timestamp())
    });
    u64::try_from(at.ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_parsed_in_all_common_units() {
        let at = 1_795_348_496_123_456_789;
        for (stamp, cut) in [
            (Value::Int(at), 1),
            (Value::Int(at / 1_000), 1_000),
            (Value::Int(at / 1_000_000), 1_000_000),
            (Value::from("1795348496123456789"), 1),
            (Value::from(" 1795348496123 "), 1_000_000),
            (Value::from("2026-11-22T11:54:56.123456789Z"), 1),
            (Value::from("2026-11-22T12:54:56.123+01:00"), 1_000_000),
            (Value::from("2026-11-22T11:54:56.123"), 1_000_000),
            (Value::from("2026-11-22 11:54:56.123Z"), 1_000_000),
        ] {
            let cut = at / cut * cut;
            assert_eq!(nanos_of(&stamp), u64::try_from(cut).ok(), "{stamp:?}");
        }
        for stamp in [Value::Float(1_795_348_496.123), Value::from("1795348496.123")] {
            let off = nanos_of(&stamp).unwrap().abs_diff(1_795_348_496_123_000_000);
            assert!(off < 1_000, "{stamp:?}: {off} ns");
        }
        for stamp in [
            Value::Int(1_795_348_496),
            Value::from("2026-11-22T11:54:56Z"),
            Value::Int(-5),
            Value::from("now"),
            Value::from(""),
            Value::Float(f64::NAN),
            Value::Null,
        ] {
            assert_eq!(nanos_of(&stamp), None, "{stamp:?}");
        }
    }
}
