//! All results of a run, section by section. Empty sections are omitted.

mod audits;
pub(crate) mod capacity;
pub(crate) mod delivering;
pub(crate) mod duel;
mod errors;
pub(crate) mod events;
mod generator;
pub(crate) mod levels;
mod monitors;
mod once;
pub(crate) mod parts;
pub(crate) mod staying;

use std::iter;

use throng_base::units::{format_bytes, format_count};
use throng_metrics::{Percentile, Unit, Verdict, status_word};

use throng_base::Said;

pub(super) use capacity::{answer, picture, searched_levels, zones};
pub(super) use duel::duel;
pub(super) use levels::load_levels;

use super::columns::{BRIEF, Columns, EXPLAINED, NOTHING, P50, P95, P99, Time, failures};
use super::curve::{levels, spark};
use super::table::{Cell, Table};
use super::text::{clean, cut, nanos, rate, share, span, width, wrap};
use super::{Ink, Style};
use crate::back_off::{BackOff, machine_name};
use crate::summary::{
    Change, ChangeOf, Latency, LoadRow, LogLine, OwnRow, POINTS_MAX, PhaseRow, Row, Summary,
    ThresholdRow, per_second,
};
use crate::verdict::{Tone, headline};

/// Indentation of sections that are not tables.
const LABEL_COLUMNS: usize = 13;
/// Maximum length of an example; the run directory has the full text.
const EXAMPLE_CHARS_MAX: usize = 300;
/// Maximum length of a log line; the run directory has the full text.
const LOG_CHARS_MAX: usize = 120;
/// Maximum number of errors and codes; the run directory and JSON have all.
const ROWS_MAX: usize = 20;
/// Maximum width of a phase's name in the table of thresholds.
const PHASE_COLUMNS_MAX: usize = 16;
/// Minimum width of the run's name.
const TITLE_COLUMNS_MIN: usize = 12;
/// Maximum number of steps, transactions, phases and thresholds.
const STEPS_MAX: usize = 40;

/// Every line ends with a line break.
pub(super) fn report_text(summary: &Summary, style: &Style) -> String {
    let sections = [
        title(summary, style),
        capacity(summary, style),
        summary.duel.as_deref().map(|found| duel(found, style)).unwrap_or_default(),
        thresholds(summary, style),
        super::findings::section(summary, style),
        diagnostics(summary, style),
        counts(summary, style),
        latencies(summary, style),
        service(summary, style),
        curves(summary, style),
        transactions(summary, style),
        errors::errors(summary, style),
        parts::targets(summary, style),
        parts::instances(summary, style),
        parts::labels(summary, style),
        parts::sessions(summary, style),
        errors::resent(summary, style),
        slowest(summary, style),
        super::chains::exemplars(summary, style),
        codes(summary, style),
        connecting(summary, style),
        staying::funnel(summary, style),
        staying::residence(summary, style),
        staying::pushed(summary, style),
        own(summary, style),
        delivering::delivered(summary, style),
        staying::online(summary, style),
        loads(summary, style),
        phases(summary, style),
        once::once(summary, style),
        changes(summary, style),
        events::events(summary, style),
        back_offs(summary, style),
        log(summary, style),
        load(summary, style),
        networks(summary, style),
        generator::generator(summary, style),
        parts::machines(summary, style),
        audits::audits(summary, style),
        monitors::monitors(summary, style),
        generator::host(&summary.info.generator.host, style),
        record(summary, style),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|text| !text.is_empty()).collect();
    filled.join("\n")
}

fn title(summary: &Summary, style: &Style) -> String {
    let info = &summary.info;
    let headline = headline(summary);
    let ink = ink_of_tone(headline.tone);
    let verdict = match headline.cause {
        None => style.say(headline.text),
        Some(cause) => style.say(say!("nothing succeeded: {}", style.say(cause.text()))),
    };
    let verdict = cut(&verdict, style.columns() - TITLE_COLUMNS_MIN - 3);
    let name = cut(&clean(&info.name), style.columns() - width(&verdict) - 3);
    let name = style.paint(Ink::Bold, &name);
    let head = format!("{name} · {}\n", style.paint(ink, &verdict));
    let mut facts: Vec<String> = Vec::new();
    facts
        .extend(info.targets.urls.first().map(|target| target_fact(clean(target), summary, style)));
    facts.push(length_fact(summary, style));
    facts.push(style.say(say!("{} ok", format_count(summary.steps.total.ok))));
    facts.push(style.say(say!("{} failed", format_count(summary.steps.total.failed))));
    facts.push(style.say(say!("{} ok/s", rate(summary.steps.total.ok_per_s))));
    facts.push(info.time.started.clone());
    facts.extend(info.labels.iter().map(|(name, value)| clean(&format!("{name}={value}"))));
    let mut out = head;
    wrap_items(&facts, style.columns()).iter().for_each(|line| {
        out.push_str(&style.paint(Ink::Dim, line));
        out.push('\n');
    });
    out
}

pub(super) fn ink_of_tone(tone: Tone) -> Ink {
    match tone {
        Tone::Good => Ink::Good,
        Tone::Warning => Ink::Warn,
        Tone::Bad => Ink::Bad,
    }
}

/// The first target, the number of others, and whether throng competes with one for processors.
pub(super) fn target_fact(first: String, summary: &Summary, style: &Style) -> String {
    let target = match summary.info.targets.urls.len() {
        0 | 1 => first,
        targets => style.say(say!("{} and {} more", first, (targets - 1))),
    };
    match summary.info.targets.same_host {
        true => style.say(say!("{target} (same host)")),
        false => target,
    }
}

/// The length of the run, as far as its results cover it.
pub(super) fn length_fact(summary: &Summary, style: &Style) -> String {
    let (measured, lasted) = (span(summary.measured), span(summary.lasted));
    match summary.is_measured_throughout() {
        true => measured,
        false => style.say(say!("{} of {} measured", measured, lasted)),
    }
}

/// The result of a capacity search, with all levels.
fn capacity(summary: &Summary, style: &Style) -> String {
    let Some(found) = summary.capacity.as_deref() else { return String::new() };
    let parts = [
        answer(found, style),
        picture(found, style),
        searched_levels(found, usize::MAX, style),
        zones(found, style),
    ];
    let filled: Vec<String> = parts.into_iter().filter(|text| !text.is_empty()).collect();
    filled.join("\n")
}

fn diagnostics(summary: &Summary, style: &Style) -> String {
    summary.diagnostics().iter().map(|told| told.render_in(style.language, style.colour)).collect()
}

fn counts(summary: &Summary, style: &Style) -> String {
    if summary.steps.rows.iter().all(|row| row.count == 0) {
        return String::new();
    }
    let bytes = |row: &Row, count: u64| match row.kind.is_attempt() {
        true => format_bytes(count as f64),
        false => NOTHING.to_string(),
    };
    let shown = worst_steps(summary);
    let table = Columns::of(say!("step"), |row: &Row| step_name(row, summary, style))
        .inked(ink_of)
        .count(summary.attempts_word(), |row| row.count)
        .count(say!("ok"), |row| row.ok)
        .bad(say!("failed"), |row| row.failed)
        .rare(say!("interrupted"), |row| row.interrupted)
        .rate(say!("ok/s"), |row| row.ok_per_s)
        .cell(say!("in"), move |row| bytes(row, row.bytes_in))
        .cell(say!("out"), move |row| bytes(row, row.bytes_out))
        .table(shown.iter().copied().chain(total(summary)));
    let mut out = table.render(style);
    out.push_str(&left_out(summary.steps.rows.len(), shown.len(), MORE_STEPS, style));
    if let Some(after) = summary.ok_after_told() {
        let after = format_count(after);
        let text = say!(
            "{after} succeeded after the load had ended: they are included in `ok`, but not in \
                 ok/s"
        );
        out.push_str(&note(text, style));
    }
    if shown.iter().any(|row| !row.kind.is_attempt()) {
        out.push_str(&note(
            say!("* time that users spent waiting for each other; not included in any total"),
            style,
        ));
    }
    out
}

/// The steps to show, in their order. If there are too many: those with the most failures, then the
/// slowest, then the busiest.
fn worst_steps(summary: &Summary) -> Vec<&Row> {
    pick(&summary.steps.rows, |row| (row.failed, row.latency.at(Percentile::P99), row.count))
}

/// The sum of several steps.
fn total(summary: &Summary) -> Option<&Row> {
    let summed = summary.steps.rows.iter().filter(|row| row.kind.is_attempt()).count();
    (summed > 1).then_some(&summary.steps.total)
}

/// The name of a step, or the label of the sum. Rows outside the sum are marked and have another
/// color.
pub(super) fn step_name(row: &Row, summary: &Summary, style: &Style) -> String {
    if std::ptr::eq(row, &raw const summary.steps.total) {
        return style.say(say!("all"));
    }
    let mark = if row.kind.is_attempt() { "" } else { "*" };
    format!("{}{mark}", clean(&row.name))
}

pub(super) fn ink_of(row: &Row) -> Ink {
    if row.kind.is_attempt() { Ink::Plain } else { Ink::Dim }
}

/// At most [`STEPS_MAX`] rows with the highest `weight`, in their order.
fn pick<T, W: Ord>(rows: &[T], weight: impl Fn(&T) -> W) -> Vec<&T> {
    pick_some(rows, STEPS_MAX, weight)
}

/// At most `most` rows with the highest `weight`, in their order.
pub(super) fn pick_some<T, W: Ord>(rows: &[T], most: usize, weight: impl Fn(&T) -> W) -> Vec<&T> {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(weight(&rows[*place])));
    places.truncate(most);
    places.sort_unstable();
    places.into_iter().map(|place| &rows[place]).collect()
}

const MORE_STEPS: Said =
    say!("… and {{}} steps with better results; `throng report --json` lists all of them");

/// States how many rows are not shown, and where they are.
fn left_out(all: usize, shown: usize, template: Said, style: &Style) -> String {
    match all - shown {
        0 => String::new(),
        hidden => dim(&style.say(template.filled(&[&hidden])), style),
    }
}

/// A note about the text above it.
fn note(text: Said, style: &Style) -> String {
    dim(&style.say(text), style)
}

fn dim(text: &str, style: &Style) -> String {
    style.paragraph(Ink::Dim, text)
}

/// A row of a table of times.
pub(super) struct TimedRow {
    pub(super) name: String,
    pub(super) ink: Ink,
    pub(super) latency: Latency,
}

/// A table of times. Columns without values are omitted, and more if names are long.
fn times_table(
    head: Said,
    rows: impl Iterator<Item = TimedRow>,
    summary: &Summary,
    style: &Style,
) -> Table {
    let all = Percentile::ALL.iter().map(|it| Time::At(*it));
    let all: Vec<Time> = iter::once(Time::Mean).chain(all).chain([Time::Max]).collect();
    let rows: Vec<TimedRow> = rows.collect();
    let mut table = Columns::of(head, |row: &TimedRow| row.name.clone())
        .inked(|row| row.ink)
        .times_beside(&summary.generator.lateness, &all, |row| row.latency)
        .table(&rows);
    table.leave_out_columns_of(NOTHING);
    table.leave_out_for_names(&["p99.99", "p90"], style);
    table
}

fn latencies(summary: &Summary, style: &Style) -> String {
    let is_timed = |row: &&Row| row.kind.is_timed() && !row.latency.is_empty();
    let shown = worst_steps(summary);
    let steps = shown.iter().copied().chain(total(summary)).filter(is_timed);
    let steps = steps.map(|row| TimedRow {
        name: step_name(row, summary, style),
        ink: ink_of(row),
        latency: row.latency,
    });
    let rows: Vec<TimedRow> = steps.chain(delivering::latencies(summary, style)).collect();
    let is_few = |row: &TimedRow| row.latency.percentile(Percentile::P9999).is_none();
    let few = if rows.iter().any(is_few) { note(TOO_FEW, style) } else { String::new() };
    let table = times_table(say!("latency"), rows.into_iter(), summary, style);
    if table.len() == 0 {
        return String::new();
    }
    let marked = match table.holds(EXPLAINED) {
        true => explained_note(style),
        false => String::new(),
    };
    let more = left_out(summary.steps.rows.len(), shown.len(), MORE_STEPS, style);
    table.render(style) + &more + &few + &marked
}

/// Service times, to compare with the response times in the table above. Shown with `--details`.
/// Only steps whose attempts waited before they were sent; for others, both times are the same.
fn service(summary: &Summary, style: &Style) -> String {
    let waits = |row: &&Row| !row.service.is_empty() && row.service != row.latency;
    let rows = worst_steps(summary).into_iter().filter(waits).map(|row| TimedRow {
        name: step_name(row, summary, style),
        ink: ink_of(row),
        latency: row.service,
    });
    let table = times_table(say!("service time"), rows, summary, style);
    if table.len() == 0 {
        return String::new();
    }
    let meaning =
        say!("counted from the time of sending; the table above counts from the scheduled start");
    table.render(style) + &note(meaning, style)
}

/// The course of the run over time.
pub(super) fn curves(summary: &Summary, style: &Style) -> String {
    curve_lines(summary, style, summary.curves.named().count())
}

/// At most `most` sparklines, one per line; none with fewer than three points.
pub(super) fn curve_lines(summary: &Summary, style: &Style, most: usize) -> String {
    if summary.curves.rate.len() < CURVE_POINTS_MIN {
        return String::new();
    }
    let mut out = String::new();
    for curve in summary.curves.named().take(most) {
        let [least, most] = [curve.least, curve.most].map(|it| figure_text(curve.unit, it));
        let beside = match least == most {
            true => least,
            false => style.say(say!("{} to {}", least, most)),
        };
        let room = style.columns() - LABEL_COLUMNS - CURVE_RANGE_COLUMNS;
        let drawn = spark(curve.values, room.min(POINTS_MAX), levels(style));
        let label = style.say(curve.name);
        let pad = " ".repeat(LABEL_COLUMNS.saturating_sub(width(&label)));
        out += &format!("{}{pad}{drawn}  {}\n", style.paint(Ink::Bold, &label), beside);
    }
    out
}

/// Minimum number of points of a sparkline.
const CURVE_POINTS_MIN: usize = 3;
/// Width of the minimum and maximum next to a sparkline.
const CURVE_RANGE_COLUMNS: usize = 24;

/// Why a percentile is not shown.
const TOO_FEW: Said =
    say!("– too few values: p90 needs 10, p95 20, p99 100, p99.9 1,000, p99.99 10,000");

/// A table of rows; if there are too many, those with the least `weight` are omitted.
pub(super) fn best_left_out<R, W: Ord>(
    rows: &[R],
    weight: impl Fn(&R) -> W,
    columns: &Columns<'_, R>,
    template: Said,
    style: &Style,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let shown = pick(rows, weight);
    let table = columns.table(shown.iter().copied());
    table.render(style) + &left_out(rows.len(), shown.len(), template, style)
}

pub(super) fn explained_note(style: &Style) -> String {
    note(say!("~ throng's own lateness can account for half of this time or more"), style)
}

/// The steps with the most time, in one line.
fn slowest(summary: &Summary, style: &Style) -> String {
    match slowest_items(summary, style) {
        items if items.is_empty() => String::new(),
        items => labelled(say!("slowest step"), &[items], style),
    }
}

/// The name of the slowest step, and the share of the time; empty for a single step.
pub(super) fn slowest_items(summary: &Summary, style: &Style) -> Vec<String> {
    let Some(slowest) = summary.slowest() else { return Vec::new() };
    let name = |row: &Row| clean(&row.name);
    let (step, l) = (name(slowest.step), &slowest.step.latency);
    let mut items = vec![
        style.say(say!("{} (mean {})", step, nanos(l.mean_ns as u64))),
        style.say(say!("{} of the total step time", share(slowest.share))),
    ];
    let (most, most_share) = slowest.most;
    if !std::ptr::eq(most, slowest.step) {
        items.push(style.say(say!(
            "{} of the total step time in {}",
            share(most_share),
            name(most)
        )));
    }
    items
}

/// The times of transactions, without the users' pauses.
fn transactions(summary: &Summary, style: &Style) -> String {
    let rows = &summary.steps.transactions;
    if rows.iter().all(|row| row.begun + row.count == 0) {
        return String::new();
    }
    let paused = |row: &Row| P95.text(&row.with_pauses);
    let columns = Columns::of(say!("transaction"), |row: &Row| clean(&row.name))
        .count(say!("done"), |row| row.count)
        .bad(say!("failed"), |row| row.failed)
        .rare(say!("interrupted"), |row| row.interrupted)
        .rate(say!("ok/s"), |row| row.ok_per_s)
        .times(&[Time::Mean, P50, P95, P99], |row| row.latency)
        .cell(say!("p95*"), paused);
    let more = say!(
        "… and {{}} transactions with better results; `throng report --json` lists all of them"
    );
    let weight = |row: &Row| (row.failed, row.latency.at(Percentile::P99), row.count);
    let note = note(say!("* includes think time; all other times exclude it"), style);
    best_left_out(rows, weight, &columns, more, style) + &note
}

/// The parts of a response time, as in ab.
fn connecting(summary: &Summary, style: &Style) -> String {
    // The funnel contains these rows and further ones.
    if summary.is_long_lived() {
        return String::new();
    }
    let stages = summary.connections.stages.iter().filter(|stage| stage.ok + stage.failed > 0);
    let mut parts: Vec<Timed> =
        stages.map(|stage| (stage.stage.text(), Some(stage.failed), stage.latency)).collect();
    let total = &summary.steps.total;
    let behind = [(say!("first byte"), total.first_byte), (say!("total"), total.latency)];
    let behind = behind.into_iter().filter(|(_, latency)| !latency.is_empty());
    parts.extend(behind.map(|(name, latency)| (name, None, latency)));
    let failed = |part: &Timed| part.1.map_or_else(Cell::default, failures);
    let table = Columns::of(say!("connection"), |part: &Timed| style.say(part.0.clone()))
        .count(say!("count"), |part| part.2.count)
        .cell(say!("failed"), failed)
        .if_any(|part| part.1.unwrap_or(0) > 0)
        .times(&[Time::Min, Time::Mean, Time::Deviation], |part| part.2)
        .times(&BRIEF, |part| part.2)
        .table(&parts);
    if parts.is_empty() { String::new() } else { table.render(style) }
}

/// A part of a response time, its number of failures, and its times.
type Timed = (Said, Option<u64>, Latency);

/// The results of each of several loads.
fn loads(summary: &Summary, style: &Style) -> String {
    let columns = Columns::of(say!("load"), |load: &LoadRow| clean(&load.name))
        .cell(say!("time"), |load| span(load.lasted))
        .count(say!("users"), |load| load.users_online_max)
        .count(summary.attempts_word(), |load| load.count)
        .count(say!("failed"), |load| load.failed)
        .rate(say!("ok/s"), |load| load.ok_per_s)
        .times(&[P50, P99, Time::Max], |load| load.latency);
    let more =
        say!("… and {{}} loads with better results; `throng report --json` lists all of them");
    let weight = |load: &LoadRow| (load.failed, load.latency.at(Percentile::P99));
    best_left_out(&summary.parts.loads, weight, &columns, more, style)
}

/// With several loads, the name of a phase includes that of its load.
pub(crate) fn phase_name(summary: &Summary, phase: &PhaseRow) -> String {
    match summary.info.tables.loads.get(phase.load) {
        Some(load) => clean(&format!("{load} / {}", phase.name)),
        None => clean(&phase.name),
    }
}

fn phases(summary: &Summary, style: &Style) -> String {
    if summary.parts.phases.len() < 2 {
        return String::new();
    }
    let is_long_lived = summary.is_long_lived();
    let name = |phase: &PhaseRow| {
        format!("{}{}", phase_name(summary, phase), if phase.measured { "" } else { "*" })
    };
    let time = |phase: &PhaseRow| match phase.begun {
        true => span(phase.lasted),
        false => style.say(say!("never")),
    };
    let columns = Columns::of(say!("phase"), name)
        .inked(|phase| if phase.measured { Ink::Plain } else { Ink::Dim })
        .cell(say!("time"), time)
        .count(say!("users"), |phase| phase.users_online)
        // The table of online users has more details.
        .if_any(|_| !is_long_lived)
        .count(summary.attempts_word(), |phase| phase.count)
        .count(say!("failed"), |phase| phase.failed)
        .rate(say!("ok/s"), |phase| phase.ok_per_s)
        .times(&[P50, P99, Time::Max], |phase| phase.latency);
    let note = match summary.parts.phases.iter().all(|phase| phase.measured) {
        true => String::new(),
        false => note(say!("* not measured: not included in any other value"), style),
    };
    let more =
        say!("… and {{}} phases with better results; `throng report --json` lists all of them");
    let weight = |phase: &PhaseRow| (phase.failed, phase.latency.at(Percentile::P99));
    best_left_out(&summary.parts.phases, weight, &columns, more, style) + &note
}

fn codes(summary: &Summary, style: &Style) -> String {
    let codes = &summary.steps.total.codes;
    if codes.is_empty() {
        return String::new();
    }
    let all: u64 = codes.iter().map(|(_, count)| count).sum();
    let of_all = say!("of {} responses", format_count(all));
    let table = Columns::of(say!("codes"), |(code, _): &(u16, u64)| status_word(*code))
        .count(Said::default(), |(_, count)| *count)
        .cell(of_all, |(_, count)| share(*count as f64 / all.max(1) as f64))
        .table(codes.iter().take(ROWS_MAX));
    table.render(style) + &more(codes.len(), style)
}

fn more(rows: usize, style: &Style) -> String {
    let more = say!("… and {{}} more rows; `throng report --json` lists all of them");
    left_out(rows, rows.min(ROWS_MAX), more, style)
}

/// The counters and trends that have values.
fn own(summary: &Summary, style: &Style) -> String {
    if summary.steps.own.iter().all(|own| own.row.count == 0) {
        return String::new();
    }
    let mut columns = Columns::of(say!("counters and trends"), |own: &OwnRow| clean(&own.row.name))
        .count(say!("count"), |own| own.row.count)
        .rate(say!("per second"), |own| own.row.ok_per_s);
    for time in [Time::Mean, Time::Min, P50, P95, P99, Time::Max] {
        columns = columns
            .cell(time.head(), move |own| own_value(own, time))
            .if_any(|own| own.unit.is_some());
    }
    let more = say!("… and {{}} more: `throng report --json` lists all");
    best_left_out(&summary.steps.own, |own| own.row.count, &columns, more, style)
}

/// A value of a trend in its unit.
fn own_value(own: &OwnRow, time: Time) -> String {
    let Some(unit) = own.unit.filter(|_| !own.row.latency.is_empty()) else {
        return String::new();
    };
    let text = |value: f64| figure_text(unit.unit(), value / unit.scale());
    time.value(&own.row.latency).map_or_else(|| NOTHING.to_string(), text)
}

/// A number with up to three decimals.
fn decimal(figure: f64) -> String {
    let text = format!("{figure:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The machines that backed off, and when.
fn back_offs(summary: &Summary, style: &Style) -> String {
    let steps = &summary.events.back_offs;
    if steps.count == 0 {
        return String::new();
    }
    let machine = |step: &BackOff| clean(&machine_name(&summary.info, step.machine));
    let table = Columns::of(say!("changed at"), |step: &BackOff| nanos(step.at_ns))
        .cell(say!("machine"), machine)
        .words()
        .cell(say!("percentage of its share"), |step| format!("{} %", step.percent))
        .cell(say!("cause"), |step| style.say(step.detail.clone().cleaned()))
        .words()
        .table(steps.first.iter().take(ROWS_MAX));
    let more = say!("… and {{}} more changes: `throng report --json` lists more");
    table.render(style) + &left_out(steps.count as usize, table.len(), more, style)
}

/// What the operator changed and marked during the run.
fn changes(summary: &Summary, style: &Style) -> String {
    let changes = &summary.events.changes;
    if changes.count == 0 {
        return String::new();
    }
    let table = change_columns().table(changes.first.iter().take(ROWS_MAX));
    let more = say!("… and {{}} more changes: `throng report --json` lists all");
    table.render(style) + &left_out(changes.count as usize, table.len(), more, style)
}

pub(crate) fn change_columns<'a>() -> Columns<'a, Change> {
    let phase = |change: &Change| match &change.of {
        ChangeOf::Phase(phase) => clean(phase),
        ChangeOf::Mark | ChangeOf::Addresses => NOTHING.into(),
    };
    Columns::of(say!("changed at"), |change: &Change| Cell::nanos(change.at_ns))
        .cell(say!("phase"), phase)
        .words()
        .cell(say!("change"), |change| clean(&change.what))
        .words()
}

/// The first lines that the scenario logged.
fn log(summary: &Summary, style: &Style) -> String {
    let log = &summary.events.log;
    if log.count == 0 {
        return String::new();
    }
    let mut out = format!("{}\n", style.paint(Ink::Bold, &style.say(say!("log"))));
    let times: Vec<String> = log.first.iter().map(|line| nanos(line.at_ns)).collect();
    let user = |line: &LogLine| style.say(say!("user {}", line.user));
    let users: Vec<String> = log.first.iter().map(user).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let (time_columns, user_columns) = (widest(&times), widest(&users));
    for ((line, time), user) in log.first.iter().zip(&times).zip(&users) {
        let beside = " ".repeat(time_columns - width(time)) + time;
        let beside = format!("{beside}  {user}{}  ", " ".repeat(user_columns - width(user)));
        let lines = wrap(&log_text(line), style.columns() - width(&beside));
        out += &hung(Ink::Dim, &beside, lines.into_iter().map(|line| (Ink::Plain, line)), style);
    }
    match log.count - log.first.len() as u64 {
        0 => out,
        hidden => {
            let more = say!("… and {{}} more lines; events.ndjson lists all of them");
            out + &dim(&style.say(more.filled(&[&format_count(hidden)])), style)
        }
    }
}

/// Lines indented below the text before the first one.
fn hung(
    ink: Ink,
    first: &str,
    lines: impl IntoIterator<Item = (Ink, String)>,
    style: &Style,
) -> String {
    let mut before = style.paint(ink, first);
    let mut out = String::new();
    for (ink, line) in lines {
        out += &format!("{before}{}\n", style.paint(ink, &line));
        before = " ".repeat(width(first));
    }
    out
}

fn log_text(line: &LogLine) -> String {
    let mut text: String = clean(&line.text).chars().take(LOG_CHARS_MAX).collect();
    if line.text.chars().count() > LOG_CHARS_MAX {
        text.push('…');
    }
    text
}

/// The thresholds, after the verdict that they determine.
fn thresholds(summary: &Summary, style: &Style) -> String {
    if summary.verdict.thresholds.is_empty() {
        return String::new();
    }
    let rows = &summary.verdict.thresholds;
    let has_phase = rows.iter().any(|row| row.phase.is_some());
    let phase = |row: &ThresholdRow| {
        row.phase.as_deref().map_or(String::new(), |phase| cut(&clean(phase), PHASE_COLUMNS_MAX))
    };
    let shown = pick(rows, |row| !matches!(row.verdict, Verdict::Met(_)));
    let table = Columns::of(say!("threshold"), |row: &ThresholdRow| clean(threshold_text(row)))
        .cell(say!("phase"), phase)
        .words()
        .if_any(|_| has_phase)
        .cell(say!("measured"), |row| known_text(row.unit, row.figure()))
        .cell(say!("verdict"), |row| verdict_cell(row, style))
        .words()
        .table(shown.iter().copied());
    let mut out = table.render(style);
    let more =
        say!("… and {{}} thresholds with better results; `throng report --json` lists all of them");
    out.push_str(&left_out(rows.len(), shown.len(), more, style));
    if shown.iter().any(|threshold| threshold.verdict == Verdict::Unknown) {
        let text = say!("unknown: nothing was measured, so the threshold counts as not met");
        out.push_str(&note(text, style));
    }
    if shown.iter().any(|threshold| matches!(threshold.verdict, Verdict::Indeterminate(_))) {
        let text = say!("undetermined: throng's own lateness can explain the value");
        out.push_str(&note(text, style));
    }
    out
}

fn verdict_cell(threshold: &ThresholdRow, style: &Style) -> Cell {
    let (ink, word) = match threshold.verdict {
        Verdict::Met(_) => (Ink::Good, say!("met")),
        Verdict::NotMet(_) => (Ink::Bad, say!("NOT MET")),
        Verdict::Unknown => (Ink::Warn, say!("unknown")),
        Verdict::Indeterminate(_) => (Ink::Warn, say!("undetermined")),
    };
    let of_few = threshold.largest_of.map(|values| format!(" · {}", largest_of(values, style)));
    Cell::new(ink, style.say(word) + &of_few.unwrap_or_default())
}

/// The meaning of a percentile with few values.
pub(super) fn largest_of(values: u64, style: &Style) -> String {
    style.say(say!("the largest of {} values", format_count(values)))
}

/// The threshold as written, without the phase, which has its own column.
fn threshold_text(threshold: &ThresholdRow) -> &str {
    let phase = threshold.phase.as_deref().unwrap_or_default();
    let text = threshold.text.strip_suffix(phase).and_then(|text| text.strip_suffix(" in "));
    text.filter(|_| !phase.is_empty()).unwrap_or(&threshold.text)
}

/// A value of a threshold with its unit.
pub fn figure_text(unit: Unit, figure: f64) -> String {
    match unit {
        Unit::Nanoseconds => nanos(figure as u64),
        Unit::PerSecond => format!("{}/s", rate(figure)),
        Unit::Share => share(figure),
        Unit::Number => format_count(figure as u64),
        Unit::Decimal => decimal(figure),
        Unit::Bytes => format_bytes(figure),
        Unit::BytesPerSecond => format!("{}/s", format_bytes(figure)),
    }
}

/// As a cell.
pub(crate) fn known(unit: Unit, figure: Option<f64>) -> Cell {
    figure.map_or_else(|| NOTHING.into(), |it| Cell::of(unit, it, figure_text(unit, it)))
}

/// The same for an optional value.
pub(crate) fn known_text(unit: Unit, figure: Option<f64>) -> String {
    figure.map_or_else(|| NOTHING.to_string(), |figure| figure_text(unit, figure))
}

fn load(summary: &Summary, style: &Style) -> String {
    let mut out = String::new();
    let (population, messages) = (&summary.users.population, &summary.messages.counts);
    let connections = &summary.connections.counts;
    let when = |is: bool, count: u64| if is { count } else { 0 };
    let (online, present) = (summary.users.online_max, summary.users.present_max);
    let counters = [
        (online, say!("{{}} online at peak")),
        (when(present > online, present), say!("{{}} present at peak")),
        (population.started, say!("{{}} started")),
        (population.finished, say!("{{}} finished")),
        (population.interrupted, say!("{{}} cut off at the end")),
    ];
    // Users and connections of an unmeasured phase continue in a measured one.
    let is_part = summary.parts.phases.iter().any(|phase| phase.begun && !phase.measured);
    let part = if is_part { say!("measured phases only") } else { Said::default() };
    out += &section_with(say!("users"), &counters, part.clone(), style);
    let is_behind = population.wanted > population.begun || summary.users.backlog_max > 0;
    let each = |count: u64| per_second(count, summary.measured).round() as u64;
    let [wanted, begun] = [population.wanted, population.begun].map(each);
    let counters = [
        (when(is_behind, wanted), say!("{{}} starts scheduled per second")),
        (when(is_behind && wanted > 0, begun), say!("{{}} started")),
        (summary.users.backlog_max, say!("up to {{}} starts behind schedule")),
        (population.unmet, say!("{{}} starts never happened")),
        (population.waited, say!("{{}} starts delayed until a user was free")),
        (population.dropped, say!("{{}} starts were dropped")),
    ];
    out += &section(say!("schedule"), &counters, style);
    let stays = summary.is_long_lived();
    let opening = &summary.connections.opening;
    let counters = [
        (summary.connections.open_max, say!("{{}} open at peak")),
        (connections.opened, say!("{{}} opened")),
        (connections.http2, say!("{{}} over HTTP/2")),
        (when(stays, opening.per_s_max), say!("{{}} opened in the peak second")),
        (when(stays, opening.per_s_mean.round() as u64), say!("{{}} per second on average")),
        (connections.reconnects, say!("{{}} reconnects")),
        (connections.attempted.saturating_sub(connections.opened), say!("{{}} not opened")),
        (opening.refused, say!("{{}} refused")),
    ];
    out += &section_with(say!("connections"), &counters, part, style);
    out += &staying::lives(summary, style);
    let retries = &summary.steps.retries;
    let counters = [
        (retries.retried, say!("{{}} retried after a failure")),
        (retries.given_up, say!("{{}} attempts failed despite retries")),
        (retries.retry_after, say!("{{}} delayed by Retry-After")),
        (retries.retry_after_cut, say!("{{}} of them capped at one minute")),
    ];
    out += &section(say!("retries"), &counters, style);
    let counters = [
        (messages.sent, say!("{{}} sent")),
        (messages.received, say!("{{}} received")),
        (messages.pushes, say!("{{}} of them pushes")),
        (messages.pings, say!("{{}} pings")),
        (messages.broken, say!("{{}} violated the protocol")),
        (messages.unasked, say!("{{}} replies without a request")),
        (messages.skipped, say!("{{}} skipped because a handler was busy")),
        (messages.dropped, say!("{{}} dropped because too many were waiting for one user")),
        (
            messages.overdue,
            say!("{{}} runs of `every` skipped because the previous run was still in progress"),
        ),
    ];
    out += &section(say!("messages"), &counters, style);
    out + &bytes(summary, style)
}

/// Simulated networks of users, and their packets.
fn networks(summary: &Summary, style: &Style) -> String {
    let networks = &summary.info.tables.networks;
    if networks.is_empty() {
        return String::new();
    }
    let lines: Vec<Vec<String>> =
        networks.iter().map(|it| vec![clean(&it.session), clean(&it.network)]).collect();
    let packets = &summary.connections.packets;
    let counters = [
        (packets.carried, say!("{{}} delivered")),
        (packets.lost, say!("{{}} lost by the network")),
        (packets.dropped, say!("{{}} dropped: the queue of a `rate` was full")),
        (packets.late, say!("{{}} delivered more than 10 ms late")),
        (packets.overflowed, say!("{{}} dropped because throng could not keep up")),
    ];
    labelled(say!("network"), &lines, style) + &section(say!("packets"), &counters, style)
}

/// The bytes of all connections.
fn bytes(summary: &Summary, style: &Style) -> String {
    if summary.connections.bytes_in + summary.connections.bytes_out == 0 {
        return String::new();
    }
    let bytes = |count: u64| {
        let per_second = count as f64 / summary.measured.as_secs_f64().max(1e-9);
        format!("{} ({}/s)", format_bytes(count as f64), format_bytes(per_second))
    };
    let (received, sent) =
        (bytes(summary.connections.bytes_in), bytes(summary.connections.bytes_out));
    let items = vec![style.say(say!("{} received", received)), style.say(say!("{} sent", sent))];
    labelled(say!("bytes"), &[items], style)
}

/// Counters that are not 0, next to their label; empty if all are 0.
fn section(label: Said, counters: &[(u64, Said)], style: &Style) -> String {
    section_with(label, counters, Said::default(), style)
}

/// The same, followed by `of_all`.
fn section_with(label: Said, counters: &[(u64, Said)], of_all: Said, style: &Style) -> String {
    let mut items = style.counts(counters);
    if !items.is_empty() && !of_all.is_empty() {
        items.push(style.say(of_all));
    }
    if items.is_empty() { String::new() } else { labelled(label, &[items], style) }
}

fn record(summary: &Summary, style: &Style) -> String {
    let mut lines = Vec::new();
    if let Some(directory) = &summary.directory {
        let path = clean(&directory.display().to_string());
        lines.push(vec![path.clone()]);
        lines.push(vec![format!("throng report {}", quoted(&path))]);
    }
    if summary.verdict.damage.torn {
        let torn =
            say!("the last line is incomplete: the run was killed while throng was writing it");
        lines.push(vec![style.say(torn)]);
    }
    if !summary.info.build.version.is_empty() {
        let version = clean(&summary.info.build.text());
        let seed = style.say(say!("seed {}", summary.info.seed));
        lines.push(vec![format!("throng {version}"), seed]);
    }
    lines.extend(summary.info.changes.iter().map(|change| vec![change.render(style.language)]));
    if lines.is_empty() { String::new() } else { labelled(say!("directory"), &lines, style) }
}

/// Quotes a path for a shell.
pub(super) fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    match path.chars().all(is_plain) {
        true => path.to_string(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// A label, followed by lines that are wrapped between their items.
fn labelled(label: Said, lines: &[Vec<String>], style: &Style) -> String {
    let columns = style.columns() - LABEL_COLUMNS;
    let label = &style.say(label);
    let mut out = String::new();
    for line in lines.iter().flat_map(|items| wrap_items(items, columns)) {
        let label = if out.is_empty() { label } else { "" };
        out.push_str(&style.paint(Ink::Bold, label));
        out.push_str(&" ".repeat(LABEL_COLUMNS - width(label)));
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Joins items with ` · ` in lines that break between items if possible.
fn wrap_items(items: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(item) <= columns => {
                line.push_str(" · ");
                line.push_str(item);
            }
            _ => lines.extend(wrap(item, columns)),
        }
    }
    lines
}
