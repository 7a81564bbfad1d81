//! Tables of documents with the first format of each field.

use std::collections::BTreeMap;

use throng_metrics::{Counts, Figure, Gauge, Timed, Times};

/// Fields of one object, each with the first format that has it.
pub(crate) type Fields = Vec<(String, u32)>;

pub(crate) fn counts<T: Counts>(name: impl Fn(&Figure) -> &'static str) -> Fields {
    T::FIGURES.iter().map(|it| (name(it).to_string(), it.since)).collect()
}

pub(crate) fn times<T: Timed>(name: impl Fn(&Times<T>) -> &'static str) -> Fields {
    T::TIMES.iter().map(|it| (name(it).to_string(), it.since)).collect()
}

pub(crate) fn gauges<T: 'static>(
    gauges: impl Iterator<Item = &'static Gauge<T>>,
    name: impl Fn(&Gauge<T>) -> Option<&'static str>,
) -> Fields {
    gauges.filter_map(|it| Some((name(it)?.to_string(), it.since))).collect()
}

/// The document with a row for each format that added fields, below a heading. New objects are
/// named as a whole, later additions by field.
pub(crate) fn with_formats(document: &str, head: &str, objects: &[(&str, Fields)]) -> String {
    let mut rows: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (object, fields) in objects {
        let first = fields.iter().map(|(_, since)| *since).min().unwrap_or(1);
        if first > 1 {
            rows.entry(first).or_default().push(format!("`{object}`"));
        }
        for (name, since) in fields.iter().filter(|(_, since)| *since > first) {
            rows.entry(*since).or_default().push(format!("`{object}.{name}`"));
        }
    }
    let (before, table) = document.split_once(head).expect("a table with this head");
    let (_, behind) = table.split_once("\n\n").expect("an end of the table");
    let row =
        |(format, fields): (&u32, &Vec<String>)| format!("\n| {format} | {} |", fields.join(", "));
    let rows: String = rows.iter().map(row).collect();
    format!("{before}{head}\n| --- | --- |{rows}\n\n{behind}")
}
