//! The evidence of the first failures, which `--details` shows after all metrics.

use throng_base::clean;
use throng_metrics::status_text;

use super::Style;
use super::text::nanos;
use crate::evidence::{Evidence, HEX_BYTES_MAX, Piece};
use crate::summary::Summary;

/// Maximum length of a line.
const LINE_CHARS_MAX: usize = 200;

/// Empty without recorded failures.
pub(super) fn details_text(summary: &Summary, style: &Style) -> String {
    if summary.steps.failures.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.say(say!("the first failures of each kind")));
    for row in &summary.steps.failures {
        let at = nanos(row.at_ns);
        let Evidence { user, iteration, code, row: fields, sent, received } = &row.evidence;
        let who = style.say(say!("user {user}, iteration {iteration}, at {at}"));
        let code = if *code > 0 { format!(" {}", status_text(*code)) } else { String::new() };
        out += &format!("\n{}: {}{code} · {who}\n", clean(&row.step), row.cause.word());
        out += &format!("  {}\n", clean(&row.detail.render(style.language)));
        for (name, value) in fields {
            out += &format!("  {}: {}\n", clean(name), clean(value));
        }
        for (arrow, piece, nothing) in [
            ("→", sent, say!("the sent data was not recorded")),
            ("←", received, say!("no data was received or recorded")),
        ] {
            match piece {
                Some(piece) => tell(&mut out, arrow, piece, style),
                None => out += &format!("  {arrow} {}\n", style.say(nothing)),
            }
        }
    }
    out
}

fn tell(out: &mut String, arrow: &str, piece: &Piece, style: &Style) {
    for (number, line) in lines(piece).iter().enumerate() {
        *out += &format!("  {} {line}\n", if number == 0 { arrow } else { " " });
    }
    let told = piece.hex.as_ref().map_or(piece.text.len(), |hex| hex.split(' ').count());
    if piece.bytes > told as u64 && told >= HEX_BYTES_MAX {
        let all = style.say(say!("… ({} bytes in total)", piece.bytes));
        *out += &format!("    {all}\n");
    }
}

fn lines(piece: &Piece) -> Vec<String> {
    let cut = |line: &str| -> String { clean(line).chars().take(LINE_CHARS_MAX).collect() };
    let Some(hex) = &piece.hex else {
        return piece.text.lines().map(cut).collect();
    };
    let bytes: Vec<&str> = hex.split(' ').collect();
    let texts: Vec<char> = piece.text.chars().collect();
    let rows = bytes.chunks(16).zip(texts.chunks(16));
    rows.map(|(hex, text)| cut(&format!("{:48} {}", hex.join(" "), String::from_iter(text))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_data_is_shown_as_text_and_hex() {
        let hex = Some("00 2a 41".to_string());
        let piece = Piece { bytes: 3, text: ".*A".into(), hex };
        assert_eq!(lines(&piece), [format!("{:48} .*A", "00 2a 41")]);
    }
}
