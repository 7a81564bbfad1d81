//! The first lines: the verdict, the run and its target, and reasons to doubt the results.

use throng_base::{Diagnostic, Said, Severity};

use super::super::report::{ink_of_tone, length_fact, target_fact};
use super::super::text::{clean, cut, cut_middle, width, wrap};
use super::super::{Ink, Style};
use super::{Room, joined, line};
use crate::summary::Summary;
use crate::verdict::{Stamp, ports_scarce, stamp};

/// Minimum width of the run's name.
const NAME_COLUMNS_MIN: usize = 12;
/// Maximum width of the names of lost machines.
const LOST_COLUMNS_MAX: usize = 24;
/// The verdict states that nothing succeeded, and the errors contain the help.
const TOLD_ELSEWHERE: [&str; 1] = ["nothing-succeeded"];

/// The name, the verdict in one word, the reason, and the exit code.
pub(super) fn title(summary: &Summary, style: &Style) -> String {
    let Stamp { tone, word, why } = stamp(summary);
    let ink = ink_of_tone(tone);
    let exit = style.say(say!("exit {}", crate::exit_code(summary).code()));
    let word = style.say(word);
    let why = why.map(|why| format!(" · {}", style.say(why))).unwrap_or_default();
    let room = style.columns() - width(&exit) - 2 - width(&word) - 3;
    let name = clean(&summary.info.name);
    let why = cut(&why, room.saturating_sub(width(&name).min(NAME_COLUMNS_MIN)));
    let name = cut_middle(&name, room.saturating_sub(width(&why)));
    let used = width(&name) + 3 + width(&word) + width(&why) + width(&exit);
    let pad = " ".repeat(style.columns().saturating_sub(used));
    let [name, word] = [style.paint(Ink::Bold, &name), style.paint(ink, &word)];
    format!("{name} · {word}{why}{pad}{}\n", style.paint(ink, &exit))
}

/// The target, the size, the duration and the time of the run.
pub(super) fn facts(summary: &Summary, lines: usize, style: &Style) -> String {
    let info = &summary.info;
    let mut facts = Vec::new();
    facts.extend(info.targets.urls.first().map(|target| {
        // Leave space for the rest of the line.
        let target = cut_middle(&clean(target), style.columns() / 2);
        target_fact(target, summary, style)
    }));
    let users = summary.users_most();
    if users > 0 {
        let users_text = throng_base::units::format_count(users);
        facts.push(match users {
            1 => style.say(say!("1 user")),
            _ => style.say(say!("{} users", users_text)),
        });
    }
    facts.extend(machines(summary).map(|text| style.say(text)));
    facts.push(length_fact(summary, style));
    facts.push(when(&info.time.started));
    facts.extend(info.labels.iter().map(|(name, value)| clean(&format!("{name}={value}"))));
    let mut out = String::new();
    for _ in 0..lines {
        let text = joined(&facts, style.columns());
        let told: Vec<&str> = text.split(" · ").collect();
        facts.retain(|fact| !told.contains(&fact.as_str()));
        out += &line(Ink::Dim, &text, style);
        if facts.is_empty() {
            break;
        }
    }
    out
}

/// The number of machines if there are several, and those that were lost.
fn machines(summary: &Summary) -> Option<Said> {
    let all = summary.parts.machines.len();
    let lost = summary.parts.machines.iter().filter(|machine| machine.lost.is_some());
    let lost: Vec<String> = lost.map(|machine| clean(&machine.name)).collect();
    match lost.as_slice() {
        // The sides of a duel are named below.
        _ if all < 2 || summary.info.mode.duel => None,
        [] => Some(say!("{} machines", all)),
        lost => {
            let names = cut_middle(&lost.join(", "), LOST_COLUMNS_MAX);
            Some(say!("{} machines, lost: {}", all, names))
        }
    }
}

/// Formats the start time; other text is unchanged.
fn when(started: &str) -> String {
    let is_utc = started.len() == "2026-11-21T12:03:01.000Z".len() && started.ends_with('Z');
    match started.split_once('T').zip(started.get(11..19)).filter(|_| is_utc) {
        Some(((day, _), time)) => clean(&format!("{day} {time} UTC")),
        None => clean(started),
    }
}

/// Reasons to doubt the results, the generator first, with help.
pub(super) fn notices(summary: &Summary, room: &Room, style: &Style) -> String {
    let mut told = summary.diagnostics();
    told.retain(|one| !TOLD_ELSEWHERE.contains(&one.code));
    told.sort_by_key(|one| one.severity != Severity::Error);
    let mut out = String::new();
    told.iter().take(room.notices).for_each(|one| out += &notice(one, room.notice_lines, style));
    if let Some(left) = ports_scarce(summary) {
        let left = throng_base::units::format_count(left);
        let text = style.say(say!("only {} source ports were left on this host", left));
        out += &line(Ink::Warn, &format!("⚠ {text}"), style);
    }
    match told.len().saturating_sub(room.notices) {
        0 => out,
        more => {
            let text = style.say(say!("… more warnings with --details: {}", more));
            out + &line(Ink::Warn, &text, style)
        }
    }
}

/// The first and last notes are the most useful: what happened, and the cause. If only one fits, it
/// is the cause or, if that is unknown, what happened.
fn notice(told: &Diagnostic, lines: usize, style: &Style) -> String {
    const INDENT: usize = 2;
    let ink = if told.severity == Severity::Error { Ink::Bad } else { Ink::Warn };
    let say = |said: &Said| clean(&said.render(style.language));
    let head = format!("{} ({})", say(&told.message), told.code);
    let texts = match told.notes.as_slice() {
        [] => vec![head],
        [only] => vec![format!("{head}: {}", say(only))],
        [first, .., last] => {
            let is_cause = last.english().starts_with("cause: ");
            let (first, last) = (say(first), say(last));
            let one = if is_cause { &last } else { &first };
            vec![format!("{head}: {first}; {last}"), format!("{head}: {one}")]
        }
    };
    let mut out = String::new();
    let columns = style.columns() - INDENT;
    let wrapped: Vec<Vec<String>> = texts.iter().map(|text| wrap(text, columns)).collect();
    let fitting = wrapped.iter().position(|pieces| pieces.len() <= lines);
    let wrapped = &wrapped[fitting.unwrap_or(wrapped.len() - 1)];
    for (at, piece) in wrapped.iter().take(lines).enumerate() {
        let mark = if at == 0 { "⚠ " } else { "  " };
        let is_cut = at + 1 == lines && wrapped.len() > lines;
        let piece = if is_cut { cut(&format!("{piece} …"), columns) } else { piece.clone() };
        out += &line(ink, &format!("{mark}{piece}"), style);
    }
    let explain = || format!("`throng explain {}`", told.code);
    let next = told.help.as_ref().map_or_else(explain, say);
    out + &line(Ink::Plain, &format!("  → {next}"), style)
}
