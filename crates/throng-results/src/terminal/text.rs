//! Formats numbers for display.

use std::time::Duration;

use throng_base::Said;
pub(super) use throng_base::clean;
pub(super) use throng_base::columns::{cut, cut_middle, width, wrap};
use throng_base::units::{format_count, format_duration};
use throng_metrics::Unit;

use super::Ink;

/// The word for an improvement or a regression; `None` is noise.
pub(crate) fn better(is_better: Option<bool>) -> (Ink, Said) {
    match is_better {
        Some(true) => (Ink::Good, say!("better")),
        Some(false) => (Ink::Bad, say!("worse")),
        None => (Ink::Plain, say!("")),
    }
}

pub(super) fn nanos(nanos: u64) -> String {
    span(Duration::from_nanos(nanos))
}

/// A duration in at most six columns, up to 99,999 days.
pub(super) fn span(duration: Duration) -> String {
    const DAY: u64 = 86_400;
    match duration.as_secs() {
        // A duration that rounds up to 100 hours is one column too wide.
        0..359_970 => format_duration(duration),
        seconds if seconds < 100 * DAY => {
            format!("{}d{:02}h", seconds / DAY, seconds % DAY / 3600)
        }
        seconds => format!("{}d", seconds / DAY),
    }
}

/// A second of a run, rounded.
pub(super) fn second(seconds: f64) -> String {
    elapsed(Duration::from_secs_f64(seconds.clamp(0.0, 1e12).round()))
}

/// Whole seconds passed, in at most six columns.
pub(super) fn elapsed(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => span(Duration::from_secs(seconds)),
    }
}

/// A number per second, without the unit.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        r if r <= 0.0 => "0".into(),
        r if r < 9.995 => format!("{r:.2}"),
        r if r < 99.95 => format!("{r:.1}"),
        r => format_count(r.round() as u64),
    }
}

/// A share as a percentage. Only 0 is shown as 0 %, and only 1 as 100 %.
pub(super) fn share(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0 %".into(),
        p if p < 0.001 => "<0.001 %".into(),
        p if p < 0.0995 => format!("{p:.3} %"),
        p if p < 10.0 => format!("{p:.2} %"),
        p if p < 99.0 => format!("{p:.1} %"),
        p if p < 100.0 => format!("{:.2} %", (p * 100.0).floor() / 100.0),
        _ => "100 %".into(),
    }
}

/// A count in at most `columns` (five or more): in full, or abbreviated to `123k`, `1.23M`.
pub(super) fn compact(count: u64, columns: usize) -> String {
    let full = count.to_string();
    if full.len() <= columns {
        return full;
    }
    let units = ["k", "M", "G", "T", "P", "E"];
    let mut value = count as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}{}", units[unit])
}

/// Replaces throng's symbols by ASCII of the same width. Letters of any script stay.
pub(super) fn ascii(text: &str) -> String {
    let sign = |c: char| match c {
        '·' => '|',
        '…' => '~',
        'µ' => 'u',
        '–' | '─' | '━' => '-',
        '═' => '=',
        '│' => '|',
        '└' => '+',
        '█' => '#',
        '●' => 'o',
        '○' => '.',
        '▲' => '^',
        '×' | '✗' => 'x',
        '✓' => '+',
        '⚠' => '!',
        '→' => '>',
        '←' => '<',
        c => c,
    };
    text.chars().map(sign).collect()
}

/// A change with its sign, as a percentage.
pub(crate) fn percent_text(unit: Unit, by: f64) -> String {
    let percent = by * 100.0;
    let decimals = match percent.abs() {
        it if it < 1.0 && unit == Unit::Share => 2,
        it if it < 10.0 => 1,
        _ => 0,
    };
    let text = format!("{percent:+.decimals$} %");
    if text.trim_matches(['+', '-', '0', '.', ' ', '%']).is_empty() {
        return "0 %".into();
    }
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_columns() {
        for count in [0, 99_999, 100_000, 999_499, 999_500, 12_345_678, 999_999_999, u64::MAX] {
            assert!(compact(count, 5).len() <= 5, "{}", compact(count, 5));
        }
        assert_eq!((compact(123_456, 6), compact(1_234_567, 6)), ("123456".into(), "1.23M".into()));
        assert_eq!(compact(999_500, 5), "1.00M");
        for seconds in [0, 59, 60, 3599, 3600, 86_400, 359_999, 360_000, 86_313_600] {
            assert!(elapsed(Duration::from_secs(seconds)).len() <= 6);
        }
        let shares = [0.0, 0.000001, 0.00099, 0.0123, 0.5, 0.99999, 1.0].map(share);
        assert_eq!(shares, ["0 %", "<0.001 %", "0.099 %", "1.23 %", "50.0 %", "99.99 %", "100 %"]);
        assert_eq!([0.0, 0.5, 99.94, 1234.5].map(rate), ["0", "0.50", "99.9", "1,235"]);
    }
}
