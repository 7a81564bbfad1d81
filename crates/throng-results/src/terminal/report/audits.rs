//! What audits found.

use std::time::Duration;

use throng_base::units::{format_count, format_duration};
use throng_base::{Said, clean};
use throng_metrics::audit::{AuditFigure, Pair, ViewRound, Wrong};

use super::super::Style;
use super::super::table::{Cell, Table};
use crate::audits::{AuditRow, ViewRow};
use crate::summary::Summary;

/// So many wrong users are listed; JSON has more.
const WRONG_SHOWN: usize = 8;

pub(super) fn audits(summary: &Summary, style: &Style) -> String {
    let presence = summary.audits.iter().filter(|row| row.step.is_none());
    let books = summary.audits.iter().filter(|row| row.step.is_some());
    let texts = presence.map(|row| of_presence(row, style));
    texts.chain(books.map(|row| of_books(row, style))).collect::<Vec<_>>().join("\n")
}

fn of_presence(row: &AuditRow, style: &Style) -> String {
    let title = Said::of_others(style.say(say!("audit {}", clean(&row.name))));
    let head = [
        title,
        say!("rounds"),
        say!("compared"),
        say!("agree"),
        say!("false online"),
        say!("false offline"),
        say!("wrong node"),
        say!("undecided"),
    ];
    let mut table = Table::new(head);
    let mut lines = Vec::new();
    for view in &row.views {
        match &view.worst {
            Some((_, round)) => table.row(cells(view, round)),
            None => {
                let none = || Cell::from("–".to_string());
                let rounds = format_count(view.read).into();
                let name = clean(&view.name).into();
                table.row([name, rounds, none(), none(), none(), none(), none(), none()]);
            }
        }
        lines.extend(remarks(view, style));
    }
    lines.extend(row.pairs.iter().flat_map(|pair| quarrel(row, pair)).map(|it| style.say(it)));
    let mut text = table.render(style);
    lines.iter().for_each(|line| {
        text.push_str(line);
        text.push('\n');
    });
    text
}

/// Figures of the worst round.
fn cells(view: &ViewRow, round: &ViewRound) -> [Cell; 8] {
    let count = |figure| Cell::from(format_count(round.count(figure)));
    [
        clean(&view.name).into(),
        format_count(view.read).into(),
        count(AuditFigure::Compared),
        count(AuditFigure::Agree),
        count(AuditFigure::FalseOnline),
        count(AuditFigure::FalseOffline),
        count(AuditFigure::WrongNode),
        count(AuditFigure::Undecided),
    ]
}

fn remarks(view: &ViewRow, style: &Style) -> Vec<String> {
    let name = clean(&view.name);
    let mut said = Vec::new();
    // What belongs to the line before it.
    let mut below = Vec::new();
    if let (Some((at_ns, round)), true) = (&view.worst, view.read > 1) {
        let (at, wrong) = (time(*at_ns), format_count(round.wrong_users()));
        said.push(say!("{name}: worst round, at {at}: {wrong} wrong"));
    }
    let times = view.all_times();
    if !times.is_empty() {
        let (p50, p99) = (time(times.value_at(0.5)), time(times.value_at(0.99)));
        let max = time(times.max());
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
    let at = time(wrong.at_ns);
    say!("user {user}: {what}; last event: {last}, at {at}")
}

/// Which of two views is wrong where they disagree.
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

fn time(nanos: u64) -> String {
    format_duration(Duration::from_nanos(nanos))
}
