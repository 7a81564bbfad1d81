//! The tables of the page: the columns of the terminal's tables, as data. Headings and words are in
//! both languages, and values have units; the page only draws them.

use serde_json::{Map, Value, json};
use throng_base::{Language, clean};

use super::number;
use crate::summary::{PhaseRow, Row, Summary};
use crate::terminal::Style;
use crate::terminal::columns::{Columns, NOTHING, P99, TIMES, Time};
use crate::terminal::report::{self, delivering, events, levels, parts, staying};
use crate::terminal::table::{Cell, Table};

/// By name; tables without rows are omitted.
pub(super) fn tables(summary: &Summary) -> Value {
    let [english, chinese] =
        [Language::English, Language::Chinese].map(|language| all(summary, language));
    let filled = english.into_iter().zip(chinese).filter(|((_, table), _)| table.len() > 0);
    let told = filled.map(|((name, table), (_, other))| (name.to_string(), told(&table, &other)));
    Value::Object(told.collect::<Map<_, _>>())
}

fn all(summary: &Summary, language: Language) -> Vec<(&'static str, Table)> {
    let style = &Style { language, ..Style::plain() };
    let deliveries = delivering::columns()
        .rare(say!("undetermined"), |row| row.counts.excused)
        .times(&TIMES, |row| row.latency);
    let told = summary.messages.deliveries.iter();
    let told = told.filter(|row| row.counts.sent + row.counts.expected > 0);
    let (places, connections) = (&summary.parts, &summary.connections);
    vec![
        ("steps", steps(summary, &summary.steps.rows)),
        ("transactions", steps(summary, &summary.steps.transactions)),
        ("phases", phases(summary, style)),
        ("levels", levels::all_columns().table(&levels::all_lines(summary, style))),
        ("around", events::around_columns().table(&events::parts(&summary.events.actions, style))),
        ("deliveries", deliveries.table(told)),
        ("changes", report::change_columns().table(&summary.events.changes.first)),
        ("targets", parts::by_address(summary, &TIMES).table(&places.targets)),
        ("instances", parts::by_instance(summary, &TIMES).table(&places.instances)),
        ("labels", parts::by_label(summary, &TIMES, style).table(&parts::label_lines(summary))),
        ("sessions", parts::by_session(&TIMES).table(&places.sessions)),
        ("stages", staying::stages(say!("stage"), &TIMES, style).table(&connections.stages)),
        ("residence", staying::by_ending(&TIMES, style).table(&connections.residence)),
    ]
}

fn steps(summary: &Summary, rows: &[Row]) -> Table {
    Columns::of(say!("step"), |row: &Row| clean(&row.name))
        .count(summary.attempts_word(), |row| row.count)
        .bad(say!("failed"), |row| row.failed)
        .rate(say!("ok/s"), |row| row.ok_per_s)
        .times(&[Time::Mean], |row| row.latency)
        .times(&TIMES, |row| row.latency)
        .cell(say!("service time p99"), |row| P99.cell(&row.service))
        .if_any(|row| !row.service.is_empty())
        .table(rows)
}

fn phases(summary: &Summary, style: &Style) -> Table {
    let name = |row: &PhaseRow| match (report::phase_name(summary, row), row.measured) {
        (name, true) => name,
        (name, false) => say!("{name} (not measured)").render(style.language),
    };
    Columns::of(say!("phase"), name)
        .cell(say!("duration"), |row| Cell::nanos(row.lasted.as_nanos() as u64))
        .count(say!("users"), |row| row.users_online_max)
        .count(summary.attempts_word(), |row| row.count)
        .bad(say!("failed"), |row| row.failed)
        .rate(say!("ok/s"), |row| row.ok_per_s)
        .times(&TIMES, |row| row.latency)
        .table(&summary.parts.phases)
}

fn told(table: &Table, chinese: &Table) -> Value {
    let heads = table.heads(Language::English).into_iter().zip(table.heads(Language::Chinese));
    let column = |(at, (head, other)): (usize, (String, String))| {
        let unit = table.rows().find_map(|row| row[at].figure()).map(|(unit, _)| unit.word());
        json!({ "head": both(&head, &other), "words": table.is_words(at), "unit": unit })
    };
    let cell = |(one, other): (&Cell, &Cell)| match one.figure() {
        Some((_, figure)) => number(Some(figure)),
        None if one.text().is_empty() || one.text() == NOTHING => Value::Null,
        None => both(one.text(), other.text()),
    };
    let row = |(row, other): (&[Cell], &[Cell])| row.iter().zip(other).map(cell).collect::<Value>();
    json!({
        "columns": heads.enumerate().map(column).collect::<Value>(),
        "rows": table.rows().zip(chinese.rows()).map(row).collect::<Value>(),
    })
}

/// English and Chinese; one text if they are the same.
fn both(english: &str, chinese: &str) -> Value {
    if english == chinese { json!(english) } else { json!([english, chinese]) }
}
