//! The most important results in a few lines: the verdict, what ran, the main values, errors and
//! what to do next, and where the rest is. The table [`ROOMS`] decides what is omitted if there is
//! not enough space.

mod events;
mod figures;
mod found;
mod head;
mod wrong;

use throng_base::Said;

use super::text::{clean, cut, width};
use super::{Ink, Style};
use crate::summary::Summary;
use throng_metrics::Duel;
use throng_metrics::capacity::Capacity;

/// Fits on a terminal of 24 lines, including the prompt.
pub(super) const LINES_MAX: usize = 23;
/// Maximum number of levels of a search; `--details` has all.
const LEVELS_MAX: usize = 20;
/// Maximum number of limits found by a search; JSON has all.
const GAVE_WAY_MAX: usize = 4;
/// Width of labels.
const LABEL_COLUMNS: usize = 13;

/// The space for parts of variable length.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Lines of facts about the run.
    facts: usize,
    /// Number of warnings, and the lines of each except the help.
    notices: usize,
    notice_lines: usize,
    /// Rows of response times besides the total; with 0, rows that are not steps are omitted, too.
    steps: usize,
    deliveries: usize,
    curves: usize,
    thresholds: usize,
    /// Findings with two lines each.
    findings: usize,
    /// Errors with an example and help, and errors of one line.
    errors_full: usize,
    errors_brief: usize,
}

/// From generous to minimal: the first that fits into [`LINES_MAX`] is used. The last always fits.
const ROOMS: [Room; 9] = [
    Room::of([2, 3, 3, 8, 4, 3, 6], 5, [4, 0]),
    Room::of([2, 3, 2, 6, 3, 3, 5], 4, [2, 2]),
    Room::of([2, 2, 2, 4, 2, 3, 4], 3, [2, 0]),
    Room::of([1, 2, 2, 3, 2, 3, 3], 3, [1, 1]),
    Room::of([1, 2, 2, 2, 1, 2, 2], 2, [1, 1]),
    Room::of([1, 1, 3, 2, 1, 2, 2], 2, [1, 0]),
    Room::of([1, 1, 2, 1, 1, 1, 1], 1, [1, 0]),
    Room::of([1, 1, 2, 0, 1, 0, 1], 1, [1, 0]),
    Room::of([1, 1, 2, 0, 1, 0, 1], 1, [0, 1]),
];

impl Room {
    const fn of(rows: [usize; 7], findings: usize, errors: [usize; 2]) -> Room {
        let [facts, notices, notice_lines, steps, deliveries, curves, thresholds] = rows;
        let [errors_full, errors_brief] = errors;
        Room {
            facts,
            notices,
            notice_lines,
            steps,
            deliveries,
            curves,
            thresholds,
            findings,
            errors_full,
            errors_brief,
        }
    }
}

/// The summary in at most [`LINES_MAX`] lines. Every line ends with a line break.
pub(super) fn short_text(summary: &Summary, style: &Style) -> String {
    if let Some(found) = summary.capacity.as_deref() {
        return searched(summary, found, style);
    }
    if let Some(found) = summary.duel.as_deref() {
        return dueled(summary, found, style);
    }
    let fits = |text: &String| text.lines().count() <= LINES_MAX;
    let mut texts = ROOMS.iter().map(|room| in_room(summary, room, style));
    let fitting = texts.find(fits);
    fitting.unwrap_or_else(|| in_room(summary, &ROOMS[ROOMS.len() - 1], style))
}

/// A capacity search: its answer, without results over all levels. It can have more lines, because
/// the answer comes first.
fn searched(summary: &Summary, found: &Capacity, style: &Style) -> String {
    let room = &ROOMS[ROOMS.len() - 1];
    [
        head::title(summary, style),
        head::facts(summary, room.facts, style),
        head::notices(summary, room, style),
        super::report::answer(found, style),
        super::report::picture(found, style),
        super::report::searched_levels(found, LEVELS_MAX, style),
        super::report::zones(found, style),
        found::gave_way(summary, GAVE_WAY_MAX, style),
        wrong::errors(summary, room, style),
        record(summary, style),
    ]
    .concat()
}

/// A duel: the differences of the targets, without results over both.
fn dueled(summary: &Summary, found: &Duel, style: &Style) -> String {
    let room = &ROOMS[ROOMS.len() - 1];
    [
        head::title(summary, style),
        head::facts(summary, room.facts, style),
        head::notices(summary, room, style),
        super::report::duel(found, style),
        wrong::errors(summary, room, style),
        record(summary, style),
    ]
    .concat()
}

fn in_room(summary: &Summary, room: &Room, style: &Style) -> String {
    [
        head::title(summary, style),
        head::facts(summary, room.facts, style),
        head::notices(summary, room, style),
        events::changes(summary, style),
        figures::counts(summary, style),
        figures::starts(summary, style),
        figures::users(summary, style),
        figures::deliveries(summary, room.deliveries, style),
        figures::times(summary, room.steps, style),
        super::report::curve_lines(summary, style, room.curves),
        wrong::thresholds(summary, room.thresholds, style),
        events::audits(summary, style),
        events::events(summary, style),
        found::stability(summary, style),
        found::findings(summary, room.findings, style),
        wrong::errors(summary, room, style),
        record(summary, style),
    ]
    .concat()
}

/// A label and a line, truncated if it is too long.
fn labelled(label: Said, text: &str, style: &Style) -> String {
    let label = style.say(label);
    let pad = " ".repeat(LABEL_COLUMNS.saturating_sub(width(&label)).max(1));
    let text = cut(text, style.columns().saturating_sub(width(&label) + width(&pad)));
    format!("{}{pad}{}\n", style.paint(Ink::Bold, &label), text.trim_end())
}

/// Joins items with ` · `: at least the first, and as many as fit.
fn joined(items: &[String], columns: usize) -> String {
    let mut out = String::new();
    for item in items.iter().filter(|item| !item.is_empty()) {
        if !out.is_empty() && width(&out) + 3 + width(item) > columns {
            continue;
        }
        out += if out.is_empty() { "" } else { " · " };
        out += item;
    }
    out
}

/// A line without a label.
fn line(ink: Ink, text: &str, style: &Style) -> String {
    format!("{}\n", style.paint(ink, cut(text, style.columns()).trim_end()))
}

/// Where to find all results.
fn record(summary: &Summary, style: &Style) -> String {
    let Some(directory) = &summary.directory else {
        let text = style.say(say!("none · run again with --details for all metrics"));
        return labelled(say!("directory"), &text, style);
    };
    let path = clean(&directory.display().to_string());
    let own = format!("throng report {} --details", super::report::quoted(&path));
    let command = match () {
        () if style.newest => "throng report --details".to_string(),
        () if width(&own) <= style.columns() => own,
        // A placeholder is better than a truncated command.
        () => "throng report RUN --details".to_string(),
    };
    let room = style.columns() - LABEL_COLUMNS;
    let page = style.say(say!("in a browser: {}", "report.html"));
    let more = [style.say(say!("all metrics: {}", command)), page];
    let more = joined(&more[..1 + usize::from(style.page)], room);
    match width(&path) + 3 + width(&more) <= room {
        true => labelled(say!("directory"), &format!("{path}   {more}"), style),
        false => {
            let short = super::text::cut_middle(&path, room);
            let more = match width(&more) <= room {
                true => labelled(Said::default(), &more, style),
                false => line(Ink::Plain, &command, style),
            };
            labelled(say!("directory"), &short, style) + &more
        }
    }
}
