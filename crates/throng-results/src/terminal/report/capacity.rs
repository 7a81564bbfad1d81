//! The result of a capacity search: the answer, its chart, its levels, and the zones.

mod chart;

use throng_base::units::format_count;

use super::super::columns::Columns;
use super::super::table::Cell;
use super::super::{Ink, Style};
use super::{NOTHING, known_text, left_out, note};
use throng_metrics::Unit;
use throng_metrics::capacity::{Capacity, Level, LevelVerdict, number};

pub(in crate::terminal) use chart::picture;

/// The answer in one sentence.
pub(in crate::terminal) fn answer(found: &Capacity, style: &Style) -> String {
    style.paragraph(Ink::Bold, &style.say(found.sentence()))
}

/// The zones of the load, and the number of machines for a peak.
pub(in crate::terminal) fn zones(found: &Capacity, style: &Style) -> String {
    let said = found.zones().into_iter().chain(found.machines_text());
    said.map(|said| style.paragraph(Ink::Plain, &style.say(said))).collect()
}

/// The last levels, in the order of time.
pub(in crate::terminal) fn searched_levels(found: &Capacity, most: usize, style: &Style) -> String {
    let all = &found.levels;
    if all.is_empty() {
        return String::new();
    }
    let shown = &all[all.len().saturating_sub(most)..];
    let name = |level: &Level| {
        let [load, purpose] =
            [found.load(level.load), level.purpose.text()].map(|said| style.say(said));
        format!("{load} {purpose}")
    };
    let more = say!("… and {{}} earlier levels; --details shows all of them");
    let mut table = level_columns(Columns::of(say!("level"), name), style).table(shown);
    table.leave_out_for_names(&["p50", "strain", "in flight"], style);
    let explained = [
        ("in flight", say!("in flight: measured / by Little's law")),
        ("strain", say!("strain: bad attempts divided by the number that the threshold allows")),
    ];
    let notes = explained.into_iter().filter(|(head, _)| table.has(head));
    let notes: String = notes.map(|(_, told)| note(told, style)).collect();
    left_out(all.len(), shown.len(), more, style) + &table.render(style) + &notes
}

/// The columns after those with the load.
pub(crate) fn level_columns<'a>(load: Columns<'a, Level>, style: &'a Style) -> Columns<'a, Level> {
    let time =
        |seconds: Option<f64>| known_text(Unit::Nanoseconds, seconds.map(|seconds| seconds * 1e9));
    let in_flight =
        |level: &Level| format!("{} / {}", mean(level.in_flight), mean(level.in_flight_expected));
    load.rate(say!("served/s"), |level| level.served)
        .cell(say!("strain"), |level| level.strain.map_or_else(|| NOTHING.to_string(), strain))
        .cell(say!("p50"), move |level| time(level.p50_s))
        .cell(say!("p99"), move |level| time(level.p99_s))
        .cell(say!("in flight"), in_flight)
        .cell(say!("verdict"), |level| {
            Cell::new(ink(&level.verdict), style.say(level.verdict_text()))
        })
        .words()
}

fn ink(verdict: &LevelVerdict) -> Ink {
    match verdict {
        LevelVerdict::Met => Ink::Good,
        LevelVerdict::NotMet(_) => Ink::Bad,
        LevelVerdict::GeneratorBound(_) => Ink::Warn,
    }
}

fn strain(strain: f64) -> String {
    match strain {
        strain if strain >= 9.995 => format_count(strain.round() as u64),
        strain => format!("{strain:.2}"),
    }
}

/// A mean number of attempts.
fn mean(count: f64) -> String {
    number(if count >= 99.5 { count.round() } else { (count * 100.0).round() / 100.0 })
}
