//! Thresholds that were not met, and failures: their causes, blame, and what to do next.

use std::cmp::Reverse;

use throng_base::Said;
use throng_base::units::format_count;
use throng_metrics::Verdict;

use super::super::report::{figure_text, largest_of};
use super::super::table::{Cell, Table};
use super::super::text::{clean, cut_middle, share, width};
use super::super::{Ink, Style};
use super::{LABEL_COLUMNS, Room, labelled, line};
use crate::summary::{ErrorRow, Summary, ThresholdRow};

/// Minimum width of a step's name; below it, its share and blame are omitted.
const STEP_COLUMNS_MIN: usize = 10;
/// Maximum length of an example before it is truncated to its line.
const EXAMPLE_CHARS_MAX: usize = 300;

/// Selected thresholds; those that were not met come first.
pub(super) fn thresholds(summary: &Summary, most: usize, style: &Style) -> String {
    let is_met = |threshold: &ThresholdRow| matches!(threshold.verdict, Verdict::Met(_));
    let mut thresholds: Vec<&ThresholdRow> = summary.verdict.thresholds.iter().collect();
    thresholds.sort_by_key(|threshold| {
        (is_met(threshold), !matches!(threshold.verdict, Verdict::NotMet(_)))
    });
    let mut table = Table::new([Said::default(), Said::default(), Said::default()]).words_in([2]);
    for threshold in thresholds.iter().take(most) {
        let (ink, mark, word) = match threshold.verdict {
            Verdict::Met(_) => (Ink::Good, "✓", Said::default()),
            Verdict::NotMet(_) => (Ink::Bad, "✗", say!("NOT MET")),
            Verdict::Unknown => (Ink::Warn, "✗", threshold.unknown()),
            Verdict::Indeterminate(_) => (Ink::Warn, "?", say!("undetermined: throng fell behind")),
        };
        let figure = threshold
            .figure()
            .map(|figure| figure_text(threshold.unit, figure))
            .unwrap_or_default();
        let values = threshold.largest_of.map(|values| largest_of(values, style));
        let words: Vec<String> = [style.say(word)].into_iter().chain(values).collect();
        let words: Vec<&str> =
            words.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        table.row([
            Cell::new(ink, format!("{mark} {}", clean(&threshold.text))),
            Cell::new(ink, figure),
            Cell::new(ink, words.join(" · ")),
        ]);
    }
    let rest = thresholds.get(most..).unwrap_or_default();
    let unmet = rest.iter().filter(|threshold| !is_met(threshold)).count();
    if rest.is_empty() {
        return table.render(style);
    }
    let text = say!("… more thresholds: {} met, {unmet} not met", (rest.len() - unmet));
    table.render(style) + &line(Ink::Dim, &style.say(text), style)
}

/// The same failure in one or several steps, those with the most first.
struct Kind<'a> {
    rows: Vec<&'a ErrorRow>,
    count: u64,
    share: Option<f64>,
}

fn kinds(summary: &Summary) -> Vec<Kind<'_>> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for row in &summary.steps.errors {
        let is_it = |kind: &&mut Kind<'_>| {
            kind.rows[0].cause == row.cause && kind.rows[0].blame == row.blame
        };
        match kinds.iter_mut().find(is_it) {
            Some(kind) => {
                kind.rows.push(row);
                kind.count += row.count;
                kind.share = kind.share.zip(row.share).map(|(of_all, own)| of_all + own);
            }
            None => kinds.push(Kind { rows: vec![row], count: row.count, share: row.share }),
        }
    }
    for kind in &mut kinds {
        kind.rows.sort_by_key(|row| Reverse(row.count));
    }
    kinds.sort_by_key(|kind| Reverse(kind.count));
    kinds
}

/// The most frequent errors.
pub(super) fn errors(summary: &Summary, room: &Room, style: &Style) -> String {
    let mut out = String::new();
    let shown = room.errors_full + room.errors_brief;
    let kinds = kinds(summary);
    for (at, kind) in kinds.iter().take(shown).enumerate() {
        let label = if at == 0 { say!("errors") } else { Said::default() };
        out += &first_line(kind, label, style);
        if at < room.errors_full {
            out += &labelled(Said::default(), &why(kind, style), style);
            let cause = kind.rows[0].cause;
            let next = format!("→ {}", style.say(kind.rows[0].next()));
            let explain = format!(": `throng explain {}`", cause.word());
            let fits = width(&next) + width(&explain) <= style.columns() - LABEL_COLUMNS;
            let next = if fits { next + &explain } else { next };
            out += &labelled(Said::default(), &next, style);
        }
    }
    match kinds.len().saturating_sub(shown) {
        0 => out,
        more => {
            let text = style.say(say!("… more kinds of errors with --details: {}", more));
            out + &labelled(Said::default(), &text, style)
        }
    }
}

/// Number, cause, steps and blame, as much as fits.
fn first_line(kind: &Kind<'_>, label: Said, style: &Style) -> String {
    let room = style.columns() - LABEL_COLUMNS;
    let first = kind.rows[0];
    let count = format_count(kind.count);
    let word = first.cause.word();
    let part = kind.share.map(|part| format!("{count} ({}) {word}", share(part)));
    let bare = format!("{count} {word}");
    let blame = format!(" · {}", blame(first, style));
    let of_step = |step: &str| format!(" {}", style.say(say!("in {}", step)));
    let least = width(&of_step("")) + width(&clean(&first.step)).min(STEP_COLUMNS_MIN);
    let (count, blame) = match part {
        Some(part) if width(&part) + least + width(&blame) <= room => (part, blame),
        _ if width(&bare) + least + width(&blame) <= room => (bare, blame),
        _ => (bare, String::new()),
    };
    let left = room.saturating_sub(width(&count) + width(&of_step("")) + width(&blame));
    let step = of_step(&steps(kind, left, style));
    let label = style.say(label);
    let pad = " ".repeat(LABEL_COLUMNS.saturating_sub(width(&label)));
    let line = format!("{}{}{blame}", style.paint(Ink::Bad, &count), step.trim_end());
    format!("{}{pad}{line}\n", style.paint(Ink::Bold, &label))
}

/// The names of the steps, with counts if there are several: as many as fit.
fn steps(kind: &Kind<'_>, columns: usize, style: &Style) -> String {
    if let [only] = kind.rows[..] {
        return cut_middle(&clean(&only.step), columns);
    }
    let names: Vec<String> = kind
        .rows
        .iter()
        .map(|row| format!("{} {}", clean(&row.step), format_count(row.count)))
        .collect();
    let some = |shown: usize| {
        let listed = names[..shown].join(", ");
        let more = names.len() - shown;
        if more == 0 { listed } else { style.say(say!("{} and {} more", listed, more)) }
    };
    let fitting = (1..=names.len()).rev().map(some).find(|text| width(text) <= columns);
    fitting.unwrap_or_else(|| style.say(say!("{} steps", (names.len()))))
}

fn blame(row: &ErrorRow, style: &Style) -> String {
    style.say(say!("blame: {}", style.say(row.blame.text())))
}

/// The meaning of the cause, and the first example. If only one fits, it is the example.
fn why(kind: &Kind<'_>, style: &Style) -> String {
    let text = style.say(kind.rows[0].cause.text());
    let Some(example) = kind.rows.iter().find_map(|row| row.example.as_ref()) else { return text };
    let told = clean(&example.detail.render(style.language));
    let told: String = told.chars().take(EXAMPLE_CHARS_MAX).collect();
    match format!("{text}: {told}") {
        both if width(&both) <= style.columns() - LABEL_COLUMNS || told.is_empty() => both,
        _ => told,
    }
}
