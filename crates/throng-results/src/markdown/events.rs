//! The events of a run, as a pull request shows them.

use throng_metrics::Unit;
use throng_why::Stretch;

use super::escape;
use crate::actions::ActionRow;
use crate::summary::Summary;
use crate::terminal::figure_text;

/// Events that are shown; the JSON has all.
const ROWS_MAX: usize = 20;

/// Empty where nothing was set or marked.
pub(super) fn events_markdown(summary: &Summary) -> String {
    let all = &summary.events.actions;
    if all.is_empty() {
        return String::new();
    }
    let mut out = "\n| event | part | ok/s | failed | p50 | p99 | online, at least |\n\
                   | --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
        .to_string();
    for row in all.iter().take(ROWS_MAX) {
        let Some(effect) = &row.effect else { continue };
        let parts =
            [("before", &effect.before), ("during", &effect.during), ("after", &effect.after)];
        for (word, part) in parts.iter().filter_map(|(word, part)| Some((word, part.as_ref()?))) {
            out += &line(&escape(&row.name), word, part);
        }
    }
    out += "\n";
    all.iter().take(ROWS_MAX).for_each(|row| out += &sentence(row));
    if let Some(more) = all.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        out += &format!("\nand {more} more events\n");
    }
    out
}

fn line(name: &str, word: &str, part: &Stretch) -> String {
    let time = |ns: Option<f64>| ns.map_or("–".into(), |ns| figure_text(Unit::Nanoseconds, ns));
    let share = part.error_share.map_or("–".into(), |it| figure_text(Unit::Share, it));
    let rate = figure_text(Unit::PerSecond, part.ok_per_s);
    let [p50, p99] = [part.p50_ns, part.p99_ns].map(time);
    let online = figure_text(Unit::Number, part.online_min);
    format!("| {name} | {word} | {rate} | {share} | {p50} | {p99} | {online} |\n")
}

/// When it was, how it ended, what it changed.
fn sentence(row: &ActionRow) -> String {
    let name = escape(&row.name);
    let at = row.at_ns.map(|at| figure_text(Unit::Nanoseconds, at as f64));
    let at = at.map_or_else(String::new, |at| format!(" at {at}"));
    let detail = row.detail.english();
    let detail = if detail.is_empty() { String::new() } else { format!(" ({})", escape(&detail)) };
    let status = row.status.text().english();
    let changed = row.paragraph().map(|it| format!(": {}", escape(&it.english())));
    format!("- **{name}**{at}, {}, {status}{detail}{}\n", row.action, changed.unwrap_or_default())
}
