//! Cutting and wrapping by columns, and numbers as people read them.

use std::time::Duration;

pub(crate) use throng_base::clean;
use throng_base::units::{format_count, format_duration};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The text cut to `columns`; what was cut shows as `…`.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        short.push(c);
    }
    if columns > 0 {
        short.push('…');
    }
    short
}

/// The text cut to `columns` in its middle: names that begin alike differ at their ends.
pub(super) fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let end_columns = columns.saturating_sub(1) / 2;
    let mut end = text.len();
    for (at, _) in text.char_indices().rev() {
        if width(&text[at..]) > end_columns {
            break;
        }
        end = at;
    }
    let end = &text[end..];
    cut(text, columns - width(end)) + end
}

/// The text in lines of at most `columns`, broken between words and where [`pieces`] may be
/// broken, and inside a piece that is longer.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        for (number, piece) in pieces(word).into_iter().enumerate() {
            let space = usize::from(number == 0 && !line.is_empty());
            if !line.is_empty() && width(&line) + space + width(piece) > columns {
                lines.push(std::mem::take(&mut line));
            } else if space > 0 {
                line.push(' ');
            }
            for c in piece.chars() {
                if width(&line) + c.width().unwrap_or(0) > columns {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
    }
    lines.push(line);
    lines
}

/// A word in the pieces that stay whole: Chinese is written without spaces and breaks beside every
/// character, but not before a mark that ends something, nor behind one that begins something.
fn pieces(word: &str) -> Vec<&str> {
    const BEGINS: &str = "（「『《“‘(`";
    const ENDS: &str = "，。；：、？！）」』》”’,.;:?!)`…%";
    let is_wide = |c: char| c.width() == Some(2);
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (at, c) in word.char_indices() {
        let breaks = before.is_some_and(|before| {
            (is_wide(before) || is_wide(c)) && !BEGINS.contains(before) && !ENDS.contains(c)
        });
        if breaks {
            pieces.push(&word[start..at]);
            start = at;
        }
        before = Some(c);
    }
    pieces.push(&word[start..]);
    pieces
}

pub(super) fn nanos(nanos: u64) -> String {
    span(Duration::from_nanos(nanos))
}

/// A duration in at most six columns, up to 99,999 days.
pub(super) fn span(duration: Duration) -> String {
    const DAY: u64 = 86_400;
    match duration.as_secs() {
        // What rounds up to 100 hours has a column too many.
        0..359_970 => format_duration(duration),
        seconds if seconds < 100 * DAY => {
            format!("{}d{:02}h", seconds / DAY, seconds % DAY / 3600)
        }
        seconds => format!("{}d", seconds / DAY),
    }
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

/// A share as a percentage. Only nothing is 0 %, and only all is 100 %.
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

/// A count in at most `columns` (five or more): in full, or shortened to `123k`, `1.23M`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_wrapped_by_columns() {
        assert_eq!(cut("日本語のテキスト", 7), "日本語…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut_middle("GET /orders/4711/items", 11), "GET /…items");
        assert_eq!(cut_middle("日本語のテキスト", 9), "日本…スト");
        assert_eq!(cut_middle("日本語のテキスト", 1), "…");
        assert_eq!((cut_middle("ab", 1), cut_middle("ab", 0)), ("…".into(), String::new()));
        assert_eq!(cut_middle("short", 5), "short");
        assert_eq!(wrap("the quick  brown-fox jumps", 10), ["the quick", "brown-fox", "jumps"]);
        assert_eq!(wrap("0123456789abc d", 5), ["01234", "56789", "abc d"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(
            wrap("GET /: 状态码与预期不符（timeout）。", 15),
            ["GET /: 状态码与", "预期不符", "（timeout）。"]
        );
    }

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
