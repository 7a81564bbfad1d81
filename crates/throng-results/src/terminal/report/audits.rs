//! The findings of audits.

use throng_base::units::format_count;
use throng_base::{Said, clean};
use throng_metrics::audit::{AuditFigure, Pair, Wrong};

use super::super::Style;
use super::super::columns::{Columns, NOTHING};
use super::super::text::nanos;
use crate::audits::{AuditRow, ViewRow};
use crate::summary::Summary;

/// Maximum number of wrong users listed; JSON has more.
const WRONG_SHOWN: usize = 8;

pub(super) fn audits(summary: &Summary, style: &Style) -> String {
    let presence = summary.audits.iter().filter(|row| row.step.is_none());
    let books = summary.audits.iter().filter(|row| row.step.is_some());
    let texts = presence.map(|row| of_presence(row, style));
    texts.chain(books.map(|row| of_books(row, style))).collect::<Vec<_>>().join("\n")
}

/// Values of the worst round of each view.
fn of_presence(row: &AuditRow, style: &Style) -> String {
    let title = Said::of_others(style.say(say!("audit {}", clean(&row.name))));
    let count = |figure: AuditFigure| {
        move |view: &ViewRow| match &view.worst {
            Some((_, round)) => format_count(round.count(figure)),
            None => NOTHING.to_string(),
        }
    };
    let table = Columns::of(title, |view: &ViewRow| clean(&view.name))
        .count(say!("rounds"), |view| view.read)
        .cell(say!("compared"), count(AuditFigure::Compared))
        .cell(say!("agree"), count(AuditFigure::Agree))
        .cell(say!("false online"), count(AuditFigure::FalseOnline))
        .cell(say!("false offline"), count(AuditFigure::FalseOffline))
        .cell(say!("wrong node"), count(AuditFigure::WrongNode))
        .cell(say!("undecided"), count(AuditFigure::Undecided))
        .table(&row.views);
    let mut lines: Vec<String> = row.views.iter().flat_map(|view| remarks(view, style)).collect();
    lines.extend(row.pairs.iter().flat_map(|pair| quarrel(row, pair)).map(|it| style.say(it)));
    let mut text = table.render(style);
    lines.iter().for_each(|line| {
        text.push_str(line);
        text.push('\n');
    });
    text
}

fn remarks(view: &ViewRow, style: &Style) -> Vec<String> {
    let name = clean(&view.name);
    let mut said = Vec::new();
    // Continuations of the line before.
    let mut below = Vec::new();
    if let (Some((at_ns, round)), true) = (&view.worst, view.read > 1) {
        let (at, wrong) = (nanos(*at_ns), format_count(round.wrong_users()));
        said.push(say!("{name}: worst round, at {at}: {wrong} wrong"));
    }
    let times = view.all_times();
    if !times.is_empty() {
        let (p50, p99) = (nanos(times.value_at(0.5)), nanos(times.value_at(0.99)));
        let max = nanos(times.max());
        said.push(say!(
            "{name}: time to agree with a change: {p50} (p50), {p99} (p99), {max} (max)"
        ));
    }
    if let Some((_, round)) = &view.worst {
        if round.twice > 0 {
            let twice = format_count(round.twice);
            said.push(say!("{name}: users listed more than once: {twice}"));
        }
        if round.strangers > 0 {
            let (count, names) = (format_count(round.strangers), clean(&round.unknown.join(", ")));
            said.push(match names.is_empty() {
                true => say!("{name}: entries that are not users of this run: {count}"),
                false => say!("{name}: entries that are not users of this run: {count} ({names})"),
            });
        }
        let wrong = round.wrong.iter().take(WRONG_SHOWN).map(wrong_text);
        below.extend(wrong);
        if round.wrong_users() > WRONG_SHOWN as u64 {
            let more = format_count(round.wrong_users() - WRONG_SHOWN as u64);
            below.push(say!("… and {more} more"));
        }
    }
    if let (Some(trouble), true) = (&view.trouble, view.failed > 0) {
        let (failed, all) = (format_count(view.failed), format_count(view.read + view.failed));
        said.push(say!("{name}: {failed} of {all} rounds failed; last error: {trouble}"));
    }
    let below = below.into_iter().map(|text| format!("  {}", style.say(text)));
    said.into_iter().map(|text| style.say(text)).chain(below).collect()
}

fn wrong_text(wrong: &Wrong) -> Said {
    let (user, what, last) = (wrong.user, wrong.what.text(), wrong.last.text());
    let at = nanos(wrong.at_ns);
    say!("user {user}: {what}; last event: {last}, at {at}")
}

/// Which of two views is wrong if they disagree.
fn quarrel(row: &AuditRow, pair: &Pair) -> Vec<Said> {
    let name = |place: u16| row.views.get(usize::from(place)).map(|view| clean(&view.name));
    let (Some(one), Some(other)) = (name(pair.one), name(pair.other)) else { return Vec::new() };
    let [_, other_off, one_off, _, _, other_on, one_on, _] = pair.counts;
    let (one_wrong, other_wrong) = (one_off + other_on, other_off + one_on);
    if one_wrong + other_wrong == 0 {
        return Vec::new();
    }
    let all = format_count(one_wrong + other_wrong);
    let (one_wrong, other_wrong) = (format_count(one_wrong), format_count(other_wrong));
    vec![say!(
        "{one} and {other} disagree about {all} users: {one} is wrong about {one_wrong}, {other} \
         about {other_wrong}"
    )]
}

fn of_books(row: &AuditRow, style: &Style) -> String {
    let lines = row.sentences().into_iter();
    lines.map(|text| style.say(say!("audit {text}")) + "\n").collect()
}
