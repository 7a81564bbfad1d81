//! Tests that the schema and its documentation agree.

use std::collections::{BTreeMap, BTreeSet};

use throng_metrics::audit::{Entry, Pair, Round, ViewRound, Wrong, WrongKind};
use throng_metrics::cells::CellRow;
use throng_metrics::{
    Cells, Chain, Connections, Counts, DeliveryInterval, Figure, GeneratorInterval, Heartbeats,
    InstanceInterval, Interval, Lifecycle, Messages, Packets, Place, Population, ResidenceInterval,
    Resources, Retries, SampleInterval, SessionInterval, Slow, StageInterval, StepInterval,
    TargetInterval, TcpSamples, Timed, Times, TrendUnit,
};

use throng_why::{Around, Effect, Stretch};

use super::*;
use crate::actions::ActionRow;
use crate::audits::{AuditRow, Audits};
use crate::back_off::BackOff;
use crate::directory::{AuditInfo, NetworkInfo};
use crate::event::Event;
use crate::evidence::{Evidence, FailureRow, Piece};
use crate::monitors::SeriesRow;
use crate::once::{OnceFailure, OnceOutcome, OncePart, OnceStep};
use crate::summary::{ChangeOf, InstanceRow, LabelRow, Latency, LoadRow, SessionRow, Unbalanced};
use crate::tests::sample::{self, since};

const DOCUMENT: &str = include_str!("../../../../docs/json.md");

/// The objects of the summary by path, each field with its observed types. Items of a list share a
/// path that ends with `[]`; all latencies share one.
type Objects = BTreeMap<String, BTreeMap<String, BTreeSet<&'static str>>>;

/// Objects whose keys are data: causes, codes, labels.
const NAMED: [&str; 5] = ["codes", "labels", "retried", "row", "time_to_agree_by"];
const LATENCY: &str = "latency";

fn walk(value: &Value, path: &str, found: &mut Objects) {
    match value {
        Value::Object(fields) => {
            let path = if fields.contains_key("deviation_ns") { LATENCY } else { path };
            for (name, value) in fields {
                let kinds = found.entry(path.to_string()).or_default().entry(name.clone());
                kinds.or_default().insert(kind(name, value));
                let below = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                if !NAMED.contains(&name.as_str()) {
                    walk(value, &below, found);
                }
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| walk(item, &format!("{path}[]"), found));
        }
        _ => {}
    }
}

/// The documentation's word for the type of a value.
fn kind(name: &str, value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) if NAMED.contains(&name) => "counts",
        Value::Object(fields) if fields.contains_key("deviation_ns") => "latency",
        Value::Object(_) => "object",
    }
}

/// Objects of summaries that together contain every field.
fn everything() -> Objects {
    let mut summary = sample::shop(true);
    let reasons = vec![InvalidReason::Late { p99_ns: 1, max_ns: 2 }];
    summary.verdict.validity = Validity::Invalid { reasons };
    let mut strained = sample::summary();
    strained.generator.late_seconds = strained.generator.seconds;
    strained.parts.sessions.push(SessionRow {
        name: "reader".into(),
        begun: 2,
        finished: 1,
        failed: 1,
        interrupted: 0,
        finished_per_s: 1.0,
        time: Latency::default(),
    });
    let place = Place { target: 0, address: Some(([127, 0, 0, 1], 80).into()) };
    strained.parts.targets.push(TargetRow {
        target: "http://a.test".into(),
        address: place.address,
        counts: TargetInterval::new(place),
        ok_per_s: 1.0,
        latency: Latency::default(),
    });
    strained.parts.instances.push(InstanceRow {
        target: "http://a.test".into(),
        instance: "web-1".into(),
        count: 1,
        failed: 0,
        ok_per_s: 1.0,
        latency: Latency::default(),
    });
    let network = NetworkInfo { session: "reader".into(), network: "delay 50ms".into() };
    strained.info.tables.networks.push(network);
    strained.steps.samples.push(("GET /".into(), SampleInterval::default()));
    let chain = Some(Chain { retransmits: Some(0), ..Chain::default() });
    let slow = Slow { chain, ..Slow::default() };
    strained.steps.slowest.push(SlowRow { step: "GET /".into(), slow });
    strained.verdict.why = sample::judged();
    strained.events.actions = actions();
    add_rare_rows(&mut strained);
    let mut found = Objects::new();
    let [searched, collapsed] = searches();
    let [dueled, undecided] = duels();
    let others = [
        sample::im(),
        sample::im_held(true),
        sample::chat(),
        searched,
        collapsed,
        dueled,
        undecided,
    ];
    for summary in others.into_iter().chain([summary, strained]) {
        walk(&summary_json(&summary), "", &mut found);
    }
    found
}

/// A presence audit with two views, one of which could not be read at first, and an audit of
/// counts.
fn audits() -> Vec<AuditRow> {
    let presence = AuditInfo {
        name: "presence".into(),
        views: vec!["redis".into(), "http".into()],
        ..AuditInfo::default()
    };
    let books = AuditInfo { name: "books".into(), step: Some("buy".into()), ..presence.clone() };
    let mut audits = Audits::new(&[presence, books]);
    let trouble = Some(Said::of_others("refused".to_string()));
    let wrong = Wrong {
        user: 7,
        what: WrongKind::FalseOnline,
        last: throng_metrics::presence::Change::default(),
        at_ns: 1,
    };
    let unread = ViewRound { trouble: trouble.clone(), ..ViewRound::default() };
    let read = ViewRound { wrong: vec![wrong], unknown: vec!["x".into()], ..<_>::default() };
    let pair = Pair { one: 0, other: 1, counts: [0; 8] };
    for views in [vec![unread, read.clone()], vec![read.clone(), read]] {
        let round = Box::new(Round { took_ns: 1, views, pairs: vec![pair] });
        audits.event(&Event::Audited { at_ns: 1, audit: 0, round });
    }
    for trouble in [None, trouble] {
        let entry = Box::new(Entry { trouble, ..Entry::default() });
        audits.event(&Event::BooksRead { at_ns: 1, audit: 1, entry });
    }
    let never = AuditInfo { views: vec!["never".into()], ..AuditInfo::default() };
    let never = Audits::new(&[never]).rows();
    audits.rows().into_iter().chain(never).collect()
}

/// An event with all fields, and one without any.
fn actions() -> Vec<ActionRow> {
    let stretch = Stretch {
        error_share: Some(0.5),
        p50_ns: Some(1.5),
        p99_ns: Some(1.5),
        ..Stretch::default()
    };
    let change = |back_s| throng_why::Change {
        figure: Around::Errors,
        before: 0.0,
        worst: 0.5,
        for_s: 1.0,
        back_s,
        seen_s: 9.0,
    };
    let empty = Some(Stretch::default());
    let effect = Effect {
        before: Some(stretch.clone()),
        during: Some(stretch),
        after: empty,
        changes: vec![change(Some(2.0)), change(None)],
    };
    let full = ActionRow {
        due_ns: Some(1),
        at_ns: Some(1),
        took_ns: Some(1),
        effect: Some(effect),
        ..ActionRow::default()
    };
    vec![full, ActionRow::default()]
}

/// Two searches that together have all fields, and none.
fn searches() -> [Summary; 2] {
    use throng_metrics::capacity::{Collapse, EndedBy, GeneratorLimit, LevelVerdict, Overload};
    let mut full = sample::capacity::capacity();
    (full.peak, full.at_least, full.trend) = (Some(20_000.0), Some(800.0), Some(-0.01));
    full.varied = Some("readers".into());
    full.knee.collapse = Some(1_190.0);
    let (at, served) = (1_190.0, 310.0);
    full.overload.collapse = Some(Collapse { at, served, recovers_at: Some(500.0), stays: false });
    let mut bare = sample::capacity::capacity();
    let collapse = Some(Collapse { at, served, recovers_at: None, stays: true });
    bare.overload = Overload { collapse, ..Overload::default() };
    (bare.carries, bare.low, bare.high, bare.fails_at) = (None, None, None, None);
    (bare.fails_by, bare.knee, bare.peak) = (None, <_>::default(), None);
    bare.ended_by = EndedBy::Generator(GeneratorLimit::Cpu);
    let level = &mut bare.levels[0];
    (level.strain, level.p50_s, level.p90_s, level.p99_s) = (None, None, None, None);
    (level.online, level.verdict) =
        (Some(3), LevelVerdict::GeneratorBound(GeneratorLimit::Lateness));
    [full, bare].map(sample::capacity::searched)
}

/// Two duels that together have all fields, and none.
fn duels() -> [Summary; 2] {
    let full = sample::duel::duel();
    let mut bare = full.clone();
    bare.figures[0].change = None;
    bare.figures[0].a = None;
    [full, bare].map(sample::duel::dueled)
}

fn add_monitors(summary: &mut Summary) {
    for count in [0, 1] {
        let machine = (count > 0).then(|| "m1".to_string());
        let trouble = (count > 0).then(|| Said::of_others("refused".to_string()));
        let series = vec![SeriesRow { count, mean: 0.5, ..SeriesRow::default() }];
        summary.monitors.push(MonitorRow { series, machine, trouble, ..MonitorRow::default() });
    }
}

fn picture() -> Option<Picture> {
    let cells = Cells { users_per_cell: 1, rows: vec![CellRow(0, [1, 0, 0, 0, 0, 0])] };
    let mut picture = Picture::default();
    picture.add(&Interval { cells, ..Interval::default() });
    picture.finished()
}

fn add_labels(summary: &mut Summary) {
    for value in [None, Some("east".to_string())] {
        let (total, steps) = (summary.steps.total.clone(), summary.steps.rows.clone());
        let label = "region".to_string();
        summary.parts.labels.push(LabelRow { label, value, total, steps, ..LabelRow::default() });
    }
}

/// Rare rows: several loads and machines, changes, own metrics, a setup, evidence.
fn add_rare_rows(summary: &mut Summary) {
    add_monitors(summary);
    add_labels(summary);
    (summary.audits, summary.users.picture) = (audits(), picture());
    let row = summary.steps.rows.first().cloned().unwrap_or_default();
    for unit in [None, Some(TrendUnit::Number)] {
        summary.steps.own.push(OwnRow { row: row.clone(), unit });
    }
    for of in [ChangeOf::Mark, ChangeOf::Phase("steady".into()), ChangeOf::Addresses] {
        summary.events.changes.add(Change { at_ns: 1, of, what: "times 1.1".into() });
    }
    let detail = Said::of_others("busy".to_string());
    summary.events.back_offs.add(BackOff { at_ns: 1, machine: 0, percent: 50, detail });
    let generator = summary.generator.clone();
    let machine = MachineRow { name: "m1".into(), shards: 2, generator, lost: None };
    let lost = Some((5, Said::of_others("killed".to_string())));
    summary.parts.machines.push(MachineRow { lost, ..machine.clone() });
    summary.parts.machines.push(machine);
    summary.verdict.unbalanced.push(Unbalanced { name: "GET /".into(), begun: 2, ended: 1 });
    summary.parts.loads.push(LoadRow {
        name: "readers".into(),
        lasted: summary.lasted,
        count: row.count,
        ok: row.ok,
        failed: row.failed,
        ok_per_s: row.ok_per_s,
        users_online: 1,
        users_online_max: 2,
        users_present_max: 2,
        users_started: 2,
        iterations_started: 3,
        unmet: 0,
        dropped: 0,
        connections_opened: 2,
        latency: row.latency,
    });
    let piece = Some(Piece { bytes: 2, text: "..".into(), hex: Some("00 ff".into()) });
    let data = [("accounts.id".to_string(), "7".to_string())];
    let evidence =
        Evidence { row: data.into(), sent: piece.clone(), received: piece, ..Evidence::default() };
    summary.steps.failures.push(FailureRow {
        step: row.name.clone(),
        cause: Cause::Timeout,
        at_ns: 1,
        detail: Said::of_others("late".to_string()),
        evidence,
    });
    let step = OnceStep {
        name: "POST /items".into(),
        kind: "http".into(),
        place: "shop.yaml:3:5".into(),
        begun: 1,
        ok: 0,
        failed: 1,
        interrupted: 0,
        mean_ns: 1.5,
        max_ns: 2,
    };
    let failure = OnceFailure {
        step: step.name.clone(),
        place: step.place.clone(),
        cause: Some(Cause::Timeout),
        detail: Said::of_others("late".to_string()),
    };
    summary.events.once.push(OnceRun {
        part: OncePart::Setup,
        outcome: OnceOutcome::Failed,
        lasted_ns: 3,
        failure: Some(failure),
        steps: vec![step],
    });
}

/// A documented table: the paths of its objects, and their fields with types.
#[derive(Default)]
struct Table<'t> {
    paths: Vec<String>,
    fields: BTreeMap<&'t str, &'t str>,
}

/// A row can describe several fields; `views[].kind` is a field of a nested object.
fn tables(document: &str) -> Vec<Table<'_>> {
    let (mut tables, mut paths): (Vec<Table<'_>>, Vec<String>) = Default::default();
    for line in document.lines() {
        if let Some(listed) = line.strip_prefix("<!-- fields of: ") {
            let listed = listed.trim_end_matches(" -->").split(", ");
            paths = listed.map(|path| path.replace("(top)", "")).collect();
            tables.push(Table { paths: paths.clone(), ..Table::default() });
        } else if let Some(row) = line.strip_prefix("| `") {
            let (name, rest) = row.split_once("` | ").expect("a field and its type");
            let (kind, _) = rest.split_once(" | ").expect("a type and a meaning");
            for name in name.split("`, `") {
                let (within, field) = name.rsplit_once('.').unwrap_or(("", name));
                let inner = |path: &String| match within {
                    "" => path.clone(),
                    _ => format!("{path}.{within}"),
                };
                let of: Vec<String> = paths.iter().map(inner).collect();
                if !tables.iter().any(|table| table.paths == of) {
                    tables.push(Table { paths: of.clone(), ..Table::default() });
                }
                let table = tables.iter_mut().find(|table| table.paths == of).unwrap();
                assert!(table.fields.insert(field, kind).is_none(), "{name} is there twice");
            }
        }
    }
    tables
}

/// Whether a value of this type matches the documented type.
fn agrees(kind: &str, told: &str) -> bool {
    let told = told.trim_start_matches('[');
    match kind {
        "null" => told.ends_with(" or null"),
        "counts" => told.starts_with("object of "),
        kind => told.starts_with(kind),
    }
}

#[test]
fn every_documented_table_matches_the_summary() {
    let objects = everything();
    let tables = tables(DOCUMENT);
    let mut wrong = Vec::new();
    for path in objects.keys() {
        let count = tables.iter().filter(|table| table.paths.contains(path)).count();
        if count != 1 {
            wrong.push(format!("`{path}` has {count} tables"));
        }
    }
    for table in &tables {
        let mut found = BTreeSet::new();
        for path in &table.paths {
            let Some(object) = objects.get(path) else {
                wrong.push(format!("`{path}` is not in the summary"));
                continue;
            };
            for (name, kinds) in object {
                found.insert(name.as_str());
                match table.fields.get(name.as_str()) {
                    None => wrong.push(format!("`{path}` has no row for `{name}`")),
                    Some(told) if kinds.iter().all(|kind| agrees(kind, told)) => {}
                    Some(told) => wrong.push(format!("`{path}.{name}`: {told}, but {kinds:?}")),
                }
            }
        }
        for (name, told) in &table.fields {
            let is_time = told.starts_with("integer") || told.starts_with("number");
            if name.ends_with("_ns") && is_time != told.contains("(ns)") {
                wrong.push(format!("{:?}.{name}: {told} without its unit", table.paths));
            }
            if !found.contains(name) {
                wrong.push(format!("{:?} has no field `{name}`", table.paths));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/json.md:\n{}", wrong.join("\n"));
    assert!(tables.len() > 40, "{}", tables.len());
}

#[test]
fn values_are_at_the_documented_paths() {
    let json = summary_json(&sample::summary());
    assert_eq!(json["format"], 1);
    assert_eq!(json["total"]["count"], 101_000);
    assert_eq!(json["steps"][0]["codes"]["503"], 80);
    assert_eq!(json["steps"][1]["first_byte"], Value::Null);
    assert_eq!(json["thresholds"][0]["verdict"], "met");
    assert_eq!(json["thresholds"][0]["unit"], "ns");
    assert_eq!(json["outcome"]["exit_code"], 0);
    assert_eq!(json["outcome"]["headline"], "thresholds met");
    assert_eq!(json["outcome"]["warnings"], json!([]));
    // Of 1,000 values, one is above p99.9, and none is above p99.99.
    assert_eq!(json["steps"][1]["latency"]["p99_99_ns"], Value::Null);
    assert!(json["steps"][1]["latency"]["p99_9_ns"].is_u64());
    assert_eq!(json["errors"][0]["blame"], "target");
    assert_eq!(json["measured_ns"], 10_000_000_000u64);

    let talk = &summary_json(&sample::chat())["deliveries"][0];
    assert_eq!((&talk["name"], &talk["expected"]), (&json!("room talk"), &json!(20_000_000)));
    assert_eq!((&talk["lost"], &talk["lost_share"]), (&json!(2), &json!(1e-7)));
    assert_eq!(talk["latency"]["max_ns"], 613_000_000);

    let im = summary_json(&sample::im());
    assert_eq!(im["users"]["online_max"], 1_000_000);
    assert_eq!(im["phases"][1]["users_online_min"], 999_997);
    assert_eq!(im["phases"][0]["opened_per_s"], 20_000.0);
    assert_eq!(im["connections"]["opened_per_s_max"], 20_000);
    assert_eq!(im["connections"]["refused"], 1_000);
    assert_eq!(im["stages"][3]["stage"], "first-message");
    assert_eq!(im["stages"][3]["cut_off"], Value::Null);
    assert_eq!(im["stages"][4]["failures"][0]["cause"], "reset");
    assert_eq!(im["heartbeats"]["lost"], 2);
    assert_eq!(im["lifecycle"]["broken"], 3);
    assert_eq!(im["pushed"][0]["count"], 10_500_000);
    assert_eq!(im["steps"].as_array().map(Vec::len), Some(4), "pushed messages are no steps");
    assert_eq!(im["growth"]["held"], Value::Null);
    assert_eq!(im["generator"]["ports_left_min"], 2_000_000);
    assert_eq!(im["thresholds"][3]["unit"], "share");
    let held = summary_json(&sample::im_held(true));
    assert_eq!(held["growth"]["given_up"]["limit"], "memory");
    assert_eq!(held["outcome"]["invalid_reasons"][0]["reason"], "growth-given-up");
    assert_eq!(held["outcome"]["exit_code"], 5);

    let shop = summary_json(&sample::shop(true));
    assert_eq!(shop["total"], json["total"]);
    assert_eq!(shop["transactions"][0]["count"], 500);
    assert_eq!(shop["transactions"][0]["latency"]["count"], 500);
    assert_eq!(shop["transactions"][0]["latency_with_pauses"]["count"], 500);
    assert_eq!(shop["steps"][2]["kind"], "rendezvous");
    assert_eq!(shop["thresholds"][2]["phase"], "load");
    assert_eq!(shop["thresholds"][3]["unit"], "number");
    assert_eq!(shop["thresholds"][4]["unit"], "bytes_per_s");
    assert_eq!(shop["thresholds"][5]["verdict"], "unknown");
    assert_eq!(shop["outcome"]["stopped"]["by"], "rule");
    assert_eq!(shop["outcome"]["exit_code"], 4);
    assert_eq!(shop["log_lines"], 12);
}

/// A row of a table: the field, its type if the code knows it, and its meaning.
type DocumentedField = (String, Option<String>, String);

/// The shared meaning of several fields, with a common end written once.
fn joined(docs: &[&str]) -> String {
    let parts: Option<Vec<_>> = docs.iter().map(|doc| doc.rsplit_once("; ")).collect();
    match parts.as_deref() {
        Some(parts @ [(_, end), ..]) if parts.iter().all(|(_, it)| it == end) => {
            let starts: Vec<&str> = parts.iter().map(|(start, _)| *start).collect();
            format!("{}; {end}", starts.join("; "))
        }
        _ => docs.join("; "),
    }
}

/// The document with the rows of a table as in the code. Rows can describe several fields; new rows
/// are added at the end.
fn with_rows(document: &str, path: &str, fields: &[DocumentedField]) -> String {
    let mark = format!("<!-- fields of: {path} -->\n");
    let (before, section) = document.split_once(&mark).unwrap();
    let next = section.find("<!-- fields of: ").unwrap_or(section.len());
    let table = section[..next].find("| --- |").expect("a table of this section");
    let end = table + section[table..].find("\n\n").unwrap();
    let mut rows: Vec<String> = section[table..end].lines().map(String::from).collect();
    let names = |row: &str| -> Vec<String> {
        let cell = row.split(" | ").next().unwrap_or_default();
        cell.trim_start_matches("| ").split(", ").map(|name| name.replace('`', "")).collect()
    };
    for (field, ..) in fields {
        if !rows.iter().any(|row| names(row).contains(field)) {
            rows.push(format!("| `{field}` | integer | "));
        }
    }
    for row in &mut rows {
        let of = |name: &String| fields.iter().find(|(field, ..)| field == name);
        let known: Vec<_> = names(row).iter().filter_map(of).collect();
        let Some((_, kind, _)) = known.first() else { continue };
        let mut cells = row.split(" | ");
        let (name, before) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        assert_eq!(known.len(), names(row).len(), "{name}: not all are in the code");
        let docs: Vec<&str> = known.iter().map(|(.., doc)| doc.as_str()).collect();
        let kind = kind.as_deref().unwrap_or(before);
        *row = format!("{name} | {kind} | {} |", joined(&docs));
    }
    format!("{before}{mark}{}{}{}", &section[..table], rows.join("\n"), &section[end..])
}

fn with_times<T: Timed>(document: &str, path: &str) -> String {
    let field = |it: &Times<T>| {
        let kind = "[latency](#latency) or null".to_string();
        (it.json.to_string(), Some(kind), it.doc().to_string())
    };
    with_rows(document, path, &T::TIMES.iter().map(field).collect::<Vec<_>>())
}

/// The first format that contains each field of the summary.
fn formats() -> [(&'static str, since::Fields); 15] {
    let json = |it: &Figure| it.json;
    let mut generator = since::times::<GeneratorInterval>(|it| it.json);
    generator.extend(since::gauges(Resources::gauges(), |it| it.json));
    [
        ("steps", since::times::<StepInterval>(|it| it.json)),
        ("deliveries", since::counts::<DeliveryInterval>(json)),
        ("users", since::counts::<Population>(json)),
        ("connections", since::counts::<Connections>(json)),
        ("sessions", since::times::<SessionInterval>(|it| it.json)),
        ("targets", since::times::<TargetInterval>(|it| it.json)),
        ("instances", since::times::<InstanceInterval>(|it| it.json)),
        ("samples", since::counts::<SampleInterval>(json)),
        ("residence", since::times::<ResidenceInterval>(|it| it.json)),
        ("lifecycle", since::counts::<Lifecycle>(json)),
        ("heartbeats", since::counts::<Heartbeats>(json)),
        ("retries", since::counts::<Retries>(json)),
        ("tcp", since::times::<TcpSamples>(|it| it.json)),
        ("messages", since::counts::<Messages>(json)),
        ("generator", generator),
    ]
}

#[test]
fn the_document_matches_the_tables_in_the_code() {
    let groups = [
        ("users", Population::FIGURES),
        ("connections", Connections::FIGURES),
        ("lifecycle", Lifecycle::FIGURES),
        ("heartbeats", Heartbeats::FIGURES),
        ("retries", Retries::FIGURES),
        ("messages", Messages::FIGURES),
        ("packets", Packets::FIGURES),
        ("samples[]", SampleInterval::FIGURES),
        ("deliveries[]", DeliveryInterval::FIGURES),
    ];
    let made = groups.iter().fold(DOCUMENT.to_string(), |document, (path, figures)| {
        let field = |it: &Figure| (it.json.to_string(), None, it.doc().to_string());
        with_rows(&document, path, &figures.iter().map(field).collect::<Vec<_>>())
    });
    let gauges = Resources::gauges().filter_map(|gauge| gauge.json_row());
    let gauges = gauges.map(|[name, kind, doc]| (name, Some(kind), doc));
    let generator = "generator, machines[].generator";
    let made = with_rows(&made, generator, &gauges.collect::<Vec<_>>());
    let steps = "steps[], total, by_label[].steps[], by_label[].total, transactions[]";
    let made = with_times::<StepInterval>(&made, steps);
    let made = with_times::<StageInterval>(&made, "stages[]");
    let made = with_times::<SessionInterval>(&made, "sessions[]");
    let made = with_times::<TargetInterval>(&made, "targets[], instances[]");
    let made = with_times::<InstanceInterval>(&made, "targets[], instances[]");
    let made = with_times::<ResidenceInterval>(&made, "residence[]");
    let made = with_times::<TcpSamples>(&made, "tcp");
    let made = with_times::<GeneratorInterval>(&made, generator);
    let made = since::with_formats(&made, "| format | fields |", &formats());
    if std::env::var_os("THRONG_WRITE_TESTS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md"), made).unwrap();
        return;
    }
    let differs = made.lines().zip(DOCUMENT.lines()).find(|(made, text)| made != text);
    let help = "THRONG_WRITE_TESTS=1 cargo test -p throng-results the_document";
    assert!(
        made == DOCUMENT,
        "docs/json.md is not current, write it anew with {help}: {differs:?}"
    );
}

#[test]
fn a_capacity_keeps_its_field_names() {
    let found = &summary_json(&sample::capacity::searched(sample::capacity::capacity()));
    assert_eq!(found["outcome"]["headline"], "carries 860/s");
    let found = &found["capacity"];
    assert_eq!(found["carries"], 860.0);
    assert_eq!((&found["low"], &found["high"]), (&json!(864.0), &json!(905.0)));
    assert_eq!((&found["unit"], &found["ended_by"]), (&json!("per_s"), &json!("found")));
    assert_eq!(
        (&found["fails_at"], &found["fails_by"]),
        (&json!(912.0), &json!("http p99 < 50ms"))
    );
    assert_eq!((&found["confirmed_s"], &found["recovered_s"]), (&json!(60.0), &json!(4.0)));
    assert_eq!(found["knee"]["optimal"], json!([470.0, 530.0]));
    assert_eq!(found["knee"]["maximum"], json!([970.0, 1010.0]));
    assert_eq!(found["levels"][15]["verdict"], "not-met");
    assert_eq!(found["levels"][15]["by"], "backlog");
    assert_eq!(summary_json(&sample::summary())["capacity"], Value::Null);
}
