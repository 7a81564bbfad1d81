//! Failures with their cause and blame; and requests that were sent again without a failure.

use throng_base::Said;
use throng_base::units::format_count;

use super::super::text::{clean, nanos, share, width, wrap};
use super::super::{Ink, Style};
use super::{EXAMPLE_CHARS_MAX, ROWS_MAX, hung, labelled, more};
use crate::summary::{ErrorRow, Row, Summary};

/// Failed attempts, whose shares have the same base, and, separately, failures that are not
/// attempts.
pub(super) fn errors(summary: &Summary, style: &Style) -> String {
    let shown = &summary.steps.errors[..summary.steps.errors.len().min(ROWS_MAX)];
    let (attempts, besides): (Vec<&ErrorRow>, Vec<&ErrorRow>) =
        shown.iter().partition(|row| row.is_attempt());
    let count = format_count(summary.steps.total.count);
    let base = style.say(match summary.only_requests() {
        true => say!("shares of {count} requests"),
        false => say!("shares of {count} attempts"),
    });
    let besides_base = style.say(say!("these are not attempts, so no share is shown"));
    let lists = [(say!("errors"), base, attempts), (say!("failures"), besides_base, besides)];
    let filled = lists.iter().filter(|(.., rows)| !rows.is_empty());
    let lists = filled.map(|(head, base, rows)| error_list(head.clone(), base, rows, style));
    lists.collect::<Vec<_>>().join("\n") + &more(summary.steps.errors.len(), style)
}

fn error_list(head: Said, base: &str, rows: &[&ErrorRow], style: &Style) -> String {
    let base = style.paint(Ink::Dim, &format!(" · {base}"));
    let mut out = format!("{}{base}\n", style.paint(Ink::Bold, &style.say(head)));
    let counts: Vec<String> = rows.iter().map(|row| format_count(row.count)).collect();
    let shares: Vec<String> =
        rows.iter().map(|row| row.share.map(share).unwrap_or_default()).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let (count_columns, share_columns) = (widest(&counts), widest(&shares));
    for ((row, count), share) in rows.iter().zip(&counts).zip(&shares) {
        let share = match share_columns {
            0 => String::new(),
            _ => format!("{share:>share_columns$}  "),
        };
        let figures = format!("{count:>count_columns$}  {share}");
        let lines = error_lines(row, style.columns() - width(&figures), style);
        out += &hung(Ink::Bad, &figures, lines, style);
    }
    out
}

/// Number, cause, place, blame and an example.
fn error_lines(row: &ErrorRow, columns: usize, style: &Style) -> Vec<(Ink, String)> {
    let (text, blame) = (style.say(row.cause.text()), style.say(row.blame.text()));
    let why = style.say(say!("{} ({}, blame: {})", text, row.cause.word(), blame));
    let head = format!("{}: {why}", clean(&row.step));
    let mut lines: Vec<(Ink, String)> =
        wrap(&head, columns).into_iter().map(|line| (Ink::Plain, line)).collect();
    if let Some(example) = &row.example {
        let told = clean(&example.detail.render(style.language));
        let mut detail: String = told.chars().take(EXAMPLE_CHARS_MAX).collect();
        if told.chars().count() > EXAMPLE_CHARS_MAX {
            detail.push('…');
        }
        let text = style.say(say!("at {}: {}", nanos(example.at_ns), detail));
        lines.extend(wrap(&text, columns).into_iter().map(|line| (Ink::Dim, line)));
    }
    lines
}

/// Requests that were sent again, and why; they are not errors.
pub(super) fn resent(summary: &Summary, style: &Style) -> String {
    let all: Vec<&Row> = summary.steps.rows.iter().filter(|row| row.resent > 0).collect();
    let line = |row: &&Row| {
        let (count, of) = (format_count(row.resent), format_count(row.count));
        let words = say!("{{}} of {{}} in {{}}, because the target had not processed them");
        vec![style.say(words.clone().filled(&[&count, &of, &clean(&row.name)]))]
    };
    let lines: Vec<Vec<String>> = all.iter().take(ROWS_MAX).map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    labelled(say!("resent"), &lines, style) + &more(all.len(), style)
}
