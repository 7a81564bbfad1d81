//! Days of the Gregorian calendar as numbers.

/// Days from 1970-01-01 to a date of the Gregorian calendar (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms": years begin with March, 400 of them are an era).
pub fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
