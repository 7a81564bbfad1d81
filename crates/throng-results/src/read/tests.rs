//! Tests run directories: complete, torn, damaged, of other versions, and very long.

mod capacity;

use std::fs;
use std::io::{Cursor, Read};

use throng_base::Said;
use throng_metrics::{
    Connections, DeliveryInterval, Figure, Gauges, GeneratorInterval, Heartbeats, InstanceInterval,
    Lifecycle, Messages, Population, ResidenceInterval, Resources, Retries, SampleInterval,
    SessionInterval, StageInterval, StepInterval, TargetInterval, TcpSamples, Timed,
};

use super::*;
use crate::directory::{EndInfo, INTERVALS_FILE};
use crate::event::StopBy;
use crate::json::summary_json;
use crate::record::Recorder;
use crate::record::lines::{LINE_BYTES_MAX, Numbers, number, numbers_fit};
use crate::tests::sample::{self, since};

/// Writes the sample run.
fn recorded(directory: &Path) {
    let mut info = sample::info();
    info.time.ended = None;
    let mut recorder = Recorder::create(directory, &info, "name: quick check\n").unwrap();
    sample::events().iter().for_each(|event| recorder.event(event).unwrap());
    sample::intervals().iter().for_each(|interval| recorder.interval(interval).unwrap());
    recorder.finish(&sample::summary().info).unwrap();
    assert_eq!(recorder.lost(), 0);
}

/// A second with few distinct latencies, so that tests with many lines are fast.
fn small(second: u64) -> Interval {
    let mut interval = sample::interval(second, u16::from(second > 1));
    interval.steps[0].first_byte.clear();
    interval.steps[1].latency.clear();
    interval.connections.stages.clear();
    for histogram in [&mut interval.steps[0].latency, &mut interval.generator.lateness] {
        histogram.clear();
        (0..5).for_each(|n| histogram.record((second + n) * 20_000));
    }
    interval
}

fn records<T>(bytes: Vec<u8>) -> Records<T> {
    Records::new(Box::new(Cursor::new(bytes)))
}

#[test]
fn a_recorded_run_is_read_back_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let run = Run::open(directory.path()).unwrap();
    let totals = run.info.end.totals.clone().unwrap();
    assert_eq!((totals.intervals, totals.events), (12, sample::events().len() as u64));
    assert_eq!(totals.count, totals.ok + totals.failed);
    assert_eq!(
        RunInfo { end: EndInfo { totals: None, ..run.info.end.clone() }, ..run.info.clone() },
        sample::summary().info
    );
    assert_eq!(run.scenario, "name: quick check\n");
    assert_eq!(run.intervals().unwrap().collect::<Vec<_>>(), sample::intervals());
    assert_eq!(run.events().unwrap().collect::<Vec<_>>(), sample::events());
    assert!(!directory.path().join("run.json.new").exists());
    let mut summary = run.summary().unwrap();
    summary.directory = sample::summary().directory;
    assert_eq!(summary_json(&summary), summary_json(&sample::summary()));
}

#[test]
fn a_killed_run_is_readable_wherever_it_is_torn() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(directory.path(), &RunInfo::default(), "").unwrap();
    sample::events().iter().for_each(|event| recorder.event(event).unwrap());
    (0..12).for_each(|second| recorder.interval(&small(second)).unwrap());
    let line = |name: &str, cut: &mut dyn FnMut(&Run, usize, usize)| {
        let path = directory.path().join(name);
        let whole = fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let last = whole.len() - lines[lines.len() - 1].len();
        for length in (last - 2..=whole.len()).rev() {
            fs::write(&path, &whole[..length]).unwrap();
            let run = Run::open(directory.path()).unwrap();
            cut(&run, length, last);
        }
        fs::write(&path, &whole).unwrap();
    };
    line(EVENTS_FILE, &mut |run, length, last| {
        let mut events = run.events().unwrap();
        let count = events.by_ref().count();
        assert!(count >= 5 && events.damage.unreadable == 0, "{length}");
        assert_eq!(count == 5, length < last - 1, "only the last line is lost");
    });
    let mut summaries = 0;
    line(INTERVALS_FILE, &mut |run, length, last| {
        let mut intervals = run.intervals().unwrap();
        let count = intervals.by_ref().count();
        assert!((10..=12).contains(&count) && intervals.damage.unreadable == 0, "{length}");
        assert_eq!(intervals.damage.torn, count < 12 && length != last && length != last - 1);
        if length % 19 == 0 {
            let summary = run.summary().unwrap();
            assert!(summary.verdict.unended && summary.steps.total.count >= 10 * 10_100);
            summaries += 1;
        }
    });
    assert!(summaries > 5);
}

#[test]
fn damage_in_the_middle_is_counted_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let path = directory.path().join(INTERVALS_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[3] = &lines[3][..50];
    lines[5] = "";
    lines.insert(8, "\u{0}\u{0}\u{0}");
    fs::write(&path, lines.join("\n")).unwrap();
    let summary = Run::open(directory.path()).unwrap().summary().unwrap();
    assert_eq!(
        summary.verdict.damage,
        Damage {
            unreadable: 2,
            totals: summary.verdict.damage.totals.clone(),
            ..Damage::default()
        }
    );
    assert_eq!(summary.steps.total.count, 8 * 10_100);
    assert_eq!(
        summary.verdict.damage.totals.as_ref().map(|totals| totals.count),
        Some(10 * 10_100)
    );
    assert_eq!(summary.diagnostics()[0].code, "record-incomplete");
    assert_eq!(crate::exit_code(&summary), throng_base::Exit::ResultInvalid);
}

#[test]
fn missing_and_duplicate_lines_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let whole = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let (intervals, events) = (whole(INTERVALS_FILE), whole(EVENTS_FILE));
    let damage = |name: &str, edit: &dyn Fn(&mut Vec<String>)| {
        fs::write(directory.path().join(INTERVALS_FILE), &intervals).unwrap();
        fs::write(directory.path().join(EVENTS_FILE), &events).unwrap();
        let mut lines: Vec<String> = whole(name).lines().map(String::from).collect();
        edit(&mut lines);
        fs::write(directory.path().join(name), lines.join("\n") + "\n").unwrap();
        let summary = Run::open(directory.path()).unwrap().summary().unwrap();
        let is_whole = summary.verdict.damage == Damage::default();
        let told = summary.diagnostics();
        assert_eq!(told.iter().any(|one| one.code == "record-incomplete"), !is_whole);
        let exit = crate::exit_code(&summary);
        assert_eq!(exit == throng_base::Exit::ResultInvalid, !is_whole, "{told:?}");
        let Damage { missing, doubled, unequal, totals, .. } = summary.verdict.damage;
        (missing, doubled, unequal, totals.is_some())
    };
    for place in [0, 4, 11] {
        let gone = damage(INTERVALS_FILE, &|lines| drop(lines.remove(place)));
        assert_eq!(gone, (1, 0, 0, true), "line {place}");
        let twice = damage(INTERVALS_FILE, &|lines| lines.insert(place, lines[place].clone()));
        assert_eq!(twice, (0, 1, 0, false), "line {place}: it counts once");
    }
    assert_eq!(damage(INTERVALS_FILE, &|lines| lines.truncate(3)), (9, 0, 0, true));
    assert_eq!(damage(INTERVALS_FILE, &|lines| lines.reverse()), (0, 0, 0, false));
    assert_eq!(damage(EVENTS_FILE, &|lines| drop(lines.remove(1))), (1, 0, 0, false));
    // The results were manipulated: all failures of this second are gone.
    let mended = damage(INTERVALS_FILE, &|lines| {
        let at = lines[2].find(r#""errors":[["#).unwrap();
        let end = at + lines[2][at..].find("]]").unwrap() + 2;
        lines[2].replace_range(at..end, r#""errors":[]"#);
    });
    assert_eq!(mended, (0, 0, 1, true));
    // Lines of older versions have no numbers, so this is not checked.
    let old = damage(INTERVALS_FILE, &|lines| {
        for line in lines {
            let comma = line.find(',').unwrap();
            line.replace_range(1..=comma, "");
        }
    });
    assert_eq!((old.1, old.2, old.3), (0, 0, false));
}

#[test]
fn line_numbers_may_be_in_any_order() {
    let mut numbers = Numbers::default();
    for (number, is_new) in
        [(2, true), (9, true), (9, false), (5, true), (5, false), (4, true), (1, true), (1, false)]
    {
        assert_eq!(numbers.is_new(number), is_new, "{number}");
    }
    // 3, 6, 7 and 8 are missing.
    assert_eq!((numbers.missing(None), numbers.missing(Some(12))), (4, 7));
    assert_eq!(Numbers::default().missing(Some(3)), 3);
    for line in [r#"{"seq":7,"second":1}"#, r#"{ "second": 1, "seq": 7 }"#] {
        assert_eq!(number(line.as_bytes()), Some(7), "{line}");
    }
    assert_eq!(number(br#"{"second":1}"#), None);
}

#[test]
fn newer_fields_are_ignored_and_newer_formats_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(directory.path().join(RUN_FILE), text).unwrap();
    write(r#"{"format": 4, "id": "y"}"#);
    assert_eq!(Run::open(directory.path()).unwrap().info.id, "y");
    write(r#"{"format": 1, "id": "x", "weather": "fine", "host": {"moons": 2}}"#);
    assert_eq!(Run::open(directory.path()).unwrap().info.id, "x");
    let refused = |text: &str| {
        write(text);
        let told = Run::open(directory.path()).unwrap_err();
        (told.code, told.message)
    };
    let (code, message) = refused(r#"{"format": 6, "id": {"new": "shape"}}"#);
    assert_eq!(code, "format-unknown");
    assert_eq!(message, "the run directory has format 6, but this version of throng reads 1 to 5");
    assert_eq!(refused("{\"format\": 1, \"id\": 7}").0, "run-unreadable");
    assert_eq!(refused("").0, "run-unreadable");
    // A field of the file, one of a group, and a nested one.
    for (text, place) in [
        ("{\"format\": 5,\n \"seed\": []}", "line 2 column 9"),
        ("{\"format\": 5,\n \"targets\": 7,\n \"seed\": 1}", "line 2 column 13"),
        (
            "{\"format\": 5,\n\"host\": {},\n\"steps\": [\n{\"name\": \"a\", \"kind\": 1}\n]}",
            "line 4 column 23",
        ),
    ] {
        write(text);
        let told = Run::open(directory.path()).unwrap_err();
        let cause = told.notes[0].english();
        assert!(cause.ends_with(place), "{cause}");
    }
    let nowhere = Run::open(Path::new("/nowhere")).unwrap_err();
    assert!(nowhere.message.english().contains("/nowhere is not a run directory"));
    let events = br#"{"event":"comet","at_ns":1,"tail":[1,2]}
{"event":"run-ended","at_ns":2,"why":"done"}
"#;
    let events: Vec<Event> = records(events.to_vec()).collect();
    assert_eq!(events, [Event::Unknown, Event::RunEnded { at_ns: 2 }]);
}

#[test]
fn scenario_specific_data_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(directory.path(), &sample::shop_info(), "").unwrap();
    sample::shop_events().iter().for_each(|event| recorder.event(event).unwrap());
    sample::shop_intervals().iter().for_each(|interval| recorder.interval(interval).unwrap());
    recorder.finish(&sample::shop(true).info).unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.events().unwrap().collect::<Vec<_>>(), sample::shop_events());
    let (live, read) = (sample::shop(true), run.summary().unwrap());
    assert_eq!((&read.events.log, &read.events.stopped), (&live.events.log, &live.events.stopped));
    assert_eq!(summary_json(&Summary { directory: None, ..read }), summary_json(&live));
}

/// As written in the first format, before transactions existed.
#[test]
fn a_run_of_the_first_format_is_summed_up() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let path = directory.path().join(RUN_FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"format\": 5", "\"format\": 1", 1)).unwrap();
    let summary = Run::open(directory.path()).unwrap().summary().unwrap();
    assert_eq!(summary.info.format.0, 1);
    assert_eq!(summary.steps.total, sample::summary().steps.total);
    assert_eq!(summary.verdict.thresholds, sample::summary().verdict.thresholds);
}

/// As written before connections had lifetimes.
#[test]
fn intervals_without_newer_fields_are_readable() {
    let mut value = serde_json::to_value(sample::interval(3, 1)).unwrap();
    let mut take = |path: &[&str], kept: &[&str]| {
        let part = path.iter().fold(&mut value, |part, name| &mut part[*name]);
        part.as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
    };
    let ends = ["attempted", "opened", "closed_by_us", "closed_by_target", "reset", "timed_out"];
    take(&["connections"], &ends);
    let gauges = ["users_wanted", "users_online", "connections_opening", "connections_open"];
    take(&["gauges"], &[&gauges[..], &["in_flight"]].concat());
    take(&["resources"], &["cpu_user_ns", "cpu_system_ns", "memory_bytes", "host_cpu"]);
    for stage in value["stages"].as_array_mut().unwrap() {
        stage.as_object_mut().unwrap().retain(|name, _| name != "began" && name != "errors");
    }
    for name in ["lifecycle", "heartbeats", "tcp"] {
        value.as_object_mut().unwrap().remove(name).unwrap();
    }
    let lines = format!("{value}\n");
    let mut read: Records<Interval> = records(lines.into_bytes());
    let interval = read.next().unwrap();
    assert_eq!(interval, sample::interval(3, 1));
    let summary = sample::summary_of(sample::info(), &[interval], &sample::events());
    assert_eq!((summary.users.online_max, summary.users.present_max), (64, 64));
    assert_eq!(
        (summary.connections.stages[0].began, summary.connections.stages[0].cut_off),
        (6, Some(0))
    );
    assert!(summary.generator.resources.ports_left.is_none());
}

#[test]
fn results_of_long_lived_users_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(directory.path(), &sample::im_info(), "").unwrap();
    sample::im_events().iter().for_each(|event| recorder.event(event).unwrap());
    sample::im_intervals().iter().for_each(|interval| recorder.interval(interval).unwrap());
    recorder.finish(&sample::im().info).unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert!(fs::metadata(directory.path().join(INTERVALS_FILE)).unwrap().len() < 2 << 20);
    let read = run.summary().unwrap();
    let live = summary_json(&sample::im());
    assert_eq!(summary_json(&Summary { directory: None, ..read }), live);
}

/// The words of the format, which other programs read, never change.
#[test]
fn events_use_stable_words() {
    let written = |event: &Event| serde_json::to_string(event).unwrap();
    let (limit, detail) = ("memory".to_string(), "full".to_string());
    let held =
        Event::Held { at_ns: 1, limit: limit.clone(), detail: Said::of_others(detail.clone()) };
    let text = r#"{"event":"held","at_ns":1,"limit":"memory","detail":"full"}"#;
    assert_eq!(written(&held), text);
    let given_up = Event::GrowthGivenUp { at_ns: 1, limit, detail: Said::of_others(detail) };
    assert_eq!(written(&given_up), text.replace("held", "growth-given-up"));
    assert_eq!(written(&Event::Released { at_ns: 1 }), r#"{"event":"released","at_ns":1}"#);
    let counter = throng_metrics::DeliveryCounter::OutOfOrder;
    let told = Event::Delivery { at_ns: 1, step: 2, counter, detail: Said::of_others("late") };
    let text =
        r#"{"event":"delivery","at_ns":1,"step":2,"counter":"out_of_order","detail":"late"}"#;
    assert_eq!(written(&told), text);
    let log = Event::Log { at_ns: 1, user: 7, text: "hello".into() };
    assert_eq!(written(&log), r#"{"event":"log","at_ns":1,"user":7,"text":"hello"}"#);
    for (by, word) in [(StopBy::Rule, "rule"), (StopBy::Data, "data"), (StopBy::Bug, "bug")] {
        assert_eq!(by.word(), word);
        let stopped = Event::Stopped { at_ns: 2, reason: Said::of_others("enough"), by };
        let text = format!(r#"{{"event":"stopped","at_ns":2,"reason":"enough","by":"{word}"}}"#);
        assert_eq!(written(&stopped), text);
    }
}

#[test]
fn the_document_names_every_field_and_word() {
    const DOCUMENT: &str = include_str!("../../../../docs/run-directory.md");
    fn names(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                found.push(name.clone());
                names(value, found);
            }),
            serde_json::Value::Array(items) => items.iter().for_each(|item| names(item, found)),
            _ => {}
        }
    }
    let mut info = sample::shop(true).info;
    info.generator.host = throng_host::HostFacts::default();
    info.tables.thresholds[0].threshold.phase = Some(0);
    let mut run = serde_json::to_value(&info).unwrap();
    // The facts of the host are documented in docs/json.md.
    run["host"].take();
    let mut found = Vec::new();
    names(&run, &mut found);
    names(&serde_json::to_value(sample::shop_intervals()).unwrap(), &mut found);
    let im = sample::im_intervals();
    names(&serde_json::to_value([&im[0], &im[300], &im[301]]).unwrap(), &mut found);
    names(&serde_json::to_value(&sample::chat_intervals()[0]).unwrap(), &mut found);
    names(&serde_json::to_value(&sample::im_info().tables.phases).unwrap(), &mut found);
    for name in found {
        let is_named = [format!("`{name}`"), format!("\"{name}\":")];
        assert!(is_named.iter().any(|name| DOCUMENT.contains(name)), "{name} is not named");
    }
    let (_, counters) = DOCUMENT.split_once("\n| counters | ").unwrap();
    let (counters, _) = counters.split_once("\n\n").unwrap();
    for counter in throng_metrics::Counter::ALL {
        let word = format!("`{}`", counter.word());
        assert!(counters.contains(&word), "{word} is not in the table of counters");
    }
    for counter in throng_metrics::DeliveryCounter::ALL {
        let word = format!("`{}`", counter.word());
        assert!(DOCUMENT.contains(&word), "{word} is not in the row of deliveries");
    }
    let (_, events) = DOCUMENT.split_once("\n## `events.ndjson`\n").unwrap();
    let more = [
        Event::Interrupted { at_ns: 1 },
        Event::RecordingTrouble { at_ns: 1, lost: 1, detail: Said::of_others(String::new()) },
        Event::TargetLost { at_ns: 1 },
        Event::Held { at_ns: 1, limit: "cpu".into(), detail: Said::of_others(String::new()) },
        Event::Released { at_ns: 1 },
        Event::Capacity { at_ns: 1, capacity: Box::new(sample::capacity::capacity()) },
        Event::GrowthGivenUp {
            at_ns: 1,
            limit: "cpu".into(),
            detail: Said::of_others(String::new()),
        },
    ];
    for event in sample::shop_events().iter().chain(&more) {
        let fields = serde_json::to_value(event).unwrap();
        let start = format!("| `{}` |", fields["event"].as_str().unwrap());
        let row = events.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("{start} is not in the table"));
        let others = |name: &&String| !["event", "at_ns"].contains(&name.as_str());
        for name in fields.as_object().unwrap().keys().filter(others) {
            assert!(row.contains(&format!("`{name}`")), "{name} is not in {row}");
        }
    }
}

/// The document with all rows below a heading.
fn with_rows(document: &str, head: &str, rows: impl Iterator<Item = String>) -> String {
    let (before, table) = document.split_once(head).expect("a table with this head");
    let columns = head.matches(" | ").count() + 1;
    let (_, behind) = table.split_once("\n\n").expect("an end of the table");
    let rows: String = rows.map(|row| format!("\n{row}")).collect();
    format!("{before}{head}\n|{}{rows}\n\n{behind}", " --- |".repeat(columns))
}

/// The first format that contains each field.
fn formats() -> [(&'static str, since::Fields); 17] {
    let field = |it: &Figure| it.field;
    [
        ("steps", since::times::<StepInterval>(|it| it.field)),
        ("connections", since::counts::<Connections>(field)),
        ("sessions", since::times::<SessionInterval>(|it| it.field)),
        ("targets", since::times::<TargetInterval>(|it| it.field)),
        ("instances", since::times::<InstanceInterval>(|it| it.field)),
        ("residence", since::times::<ResidenceInterval>(|it| it.field)),
        ("lifecycle", since::counts::<Lifecycle>(field)),
        ("heartbeats", since::counts::<Heartbeats>(field)),
        ("retries", since::counts::<Retries>(field)),
        ("tcp", since::times::<TcpSamples>(|it| it.field)),
        ("population", since::counts::<Population>(field)),
        ("gauges", since::gauges(Gauges::gauges(), |it| Some(it.field))),
        ("messages", since::counts::<Messages>(field)),
        ("deliveries", since::counts::<DeliveryInterval>(field)),
        ("samples", since::counts::<SampleInterval>(field)),
        ("resources", since::gauges(Resources::gauges(), |it| Some(it.field))),
        ("stages", since::times::<StageInterval>(|it| it.field)),
    ]
}

#[test]
fn the_document_has_the_gauges_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-directory.md");
    let document = fs::read_to_string(path).unwrap();
    let rows = Gauges::gauges().map(|gauge| gauge.record_row(false));
    let made = with_rows(&document, "| field of `gauges` | meaning |", rows);
    let rows = Resources::gauges().map(|gauge| gauge.record_row(true));
    let head = "| field of `resources` | meaning | to combine intervals |";
    let made = with_rows(&made, head, rows);
    let made = since::with_formats(&made, "| format | fields |", &formats());
    let (_, histograms) = made.split_once("### Histograms\n").unwrap();
    let (names, _) = histograms.split_once(" are arrays of integers").unwrap();
    let fields = StepInterval::TIMES.iter().map(|it| it.field);
    for field in
        fields.chain(["time", TcpSamples::TIMES[0].field, GeneratorInterval::TIMES[0].field])
    {
        assert!(names.contains(&format!("`{field}`")), "{field}: {names}");
    }
    if std::env::var_os("THRONG_WRITE_TESTS").is_some() {
        fs::write(path, made).unwrap();
        return;
    }
    let help = "THRONG_WRITE_TESTS=1 cargo test -p throng-results the_document";
    assert!(made == document, "docs/run-directory.md is not current, write it anew with {help}");
}

#[test]
fn impossible_numbers_are_damage() {
    let good = serde_json::to_string(&sample::interval(0, 0)).unwrap();
    let bad = [
        good.replacen("\"count\":10000", "\"count\":18446744073709551615", 1),
        good.replacen("\"ok\":9990", "\"ok\":10001", 1),
        good.replacen("\"latency\":[", "\"latency\":[5,9,1,0,18446744073709551615,0,7],\"x\":[", 1),
        good.replacen("\"first_byte\":[", "\"first_byte\":[5,9,1,0,1],\"x\":[", 1),
        good.replacen("\"unmet\":0", "\"unmet\":9000000000000000000", 1),
        good.replacen("\"reconnects\":0", "\"reconnects\":9000000000000000000", 1),
        good.replacen("\"run_queue_ns\":0", "\"run_queue_ns\":9000000000000000000", 1),
        good.replacen("\"round_trip\":[]", "\"round_trip\":[5,9,1,0,1]", 1),
        good.replacen("\"half_closed\":0", "\"half_closed\":9000000000000000000", 1),
        good.replacen("\"faulty\":0", "\"faulty\":9000000000000000000", 1),
        good.replacen(
            "\"gauges\"",
            "\"deliveries\":[{\"step\":1,\"twice\":5000000000000000000}],\"gauges\"",
            1,
        ),
    ];
    for line in bad {
        assert_ne!(line, good);
        let mut read: Records<Interval> = records(format!("{line}\n{good}\n").into_bytes());
        assert_eq!((read.by_ref().count(), read.damage.unreadable), (1, 1), "{line:.300}");
    }
    let large = good.replacen("\"count\":10000", "\"count\":2000000000000000000", 1);
    let mut read: Records<Interval> = records(format!("{large}\n{large}\n{large}\n").into_bytes());
    assert_eq!((read.by_ref().count(), read.damage.unreadable), (2, 1));
}

#[test]
fn a_line_without_an_end_is_limited_in_size() {
    let mut text = vec![b'x'; LINE_BYTES_MAX + 10];
    text.extend(b"\n{\"event\":\"run-ended\",\"at_ns\":2}\n");
    let mut read: Records<Event> = records(text);
    assert_eq!((read.by_ref().count(), read.damage.unreadable), (1, 1));
}

/// The intervals read in parallel, and those read in order, from consecutive files.
fn both_ways(files: &[PathBuf]) -> (Vec<Interval>, Vec<Interval>) {
    let mut parallel = Vec::new();
    ahead(files.to_vec(), |interval| parallel.push(interval));
    let chain = Chain::open(files.to_vec()).unwrap();
    let in_order = Records::new(Box::new(BufReader::new(chain))).collect();
    (parallel, in_order)
}

/// The sums of this many seconds.
fn sums(seconds: u64, intervals: Vec<Interval>) -> Vec<Interval> {
    let (mut sums, mut told) = (Sums::new(seconds), Vec::new());
    intervals.into_iter().for_each(|interval| sums.add(interval, &mut |sum| told.push(sum)));
    sums.finish(&mut |sum| told.push(sum));
    told
}

fn line_of(interval: &Interval) -> Vec<u8> {
    serde_json::to_vec(interval).unwrap()
}

#[test]
fn sums_read_in_parallel_equal_those_read_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = throng_base::Random::new(7);
    let mut files = Vec::new();
    let mut whole = 0;
    for number in 0..3u64 {
        let mut lines = Vec::new();
        for second in 0..90 {
            // Machines report in any order, and not every second.
            for machine in [2, 0, 1] {
                if random.below(4) > 0 {
                    let second = (number * 90 + second).saturating_sub(random.below(3));
                    lines.push(line_of(&Interval { machine, ..small(second) }));
                }
            }
        }
        whole += lines.len();
        lines[11].truncate(40);
        lines[17] = Vec::new();
        lines[23] = b"{\"second\":1}\0".to_vec();
        whole -= 3;
        let mut text = lines.join(&b'\n');
        if number == 1 {
            // The next file still starts on a new line.
            text.push(b'\n');
            text.extend(vec![b'7'; LINE_BYTES_MAX + 10]);
        }
        if number == 2 {
            text.truncate(text.len() - 30);
            whole -= 1;
        } else {
            text.push(b'\n');
        }
        let path = directory.path().join(format!("{number}.ndjson"));
        fs::write(&path, text).unwrap();
        files.push(path);
    }
    let (parallel, in_order) = both_ways(&files);
    assert_eq!(parallel.len(), whole);
    assert!(parallel == in_order, "not the same intervals, or not in the same order");
    let parallel = sums(60, parallel);
    let minutes: Vec<u64> = parallel.iter().map(|sum| sum.second / 60).collect();
    assert!((0..5).all(|minute| minutes.contains(&minute)), "{minutes:?}");
    assert!((0..3).all(|machine| parallel.iter().any(|sum| sum.machine == machine)));
    assert_eq!(parallel, sums(60, in_order));
}

#[test]
fn ignored_lines_are_also_ignored_in_parallel() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lines.ndjson");
    let numbered = |number: u64, second: u64| {
        let line = String::from_utf8(line_of(&small(second))).unwrap();
        line.replacen('{', &format!("{{\"seq\":{number},"), 1)
    };
    let mut lines: Vec<String> = (1..40).map(|number| numbered(number, number)).collect();
    // A line in between assigns the copies to another parser.
    lines.insert(20, numbered(5, 5));
    lines.insert(30, numbered(6, 6));
    // Together, these exceed the limit of sums, although each is valid.
    lines.extend((40..44).map(|number| {
        let mut huge = small(number);
        huge.traffic.bytes_in = 1 << 61;
        String::from_utf8(line_of(&huge)).unwrap()
    }));
    fs::write(&path, lines.join("\n")).unwrap();
    let (parallel, in_order) = both_ways(&[path]);
    assert_eq!(parallel.len(), 39 + 1, "{:?}", parallel.iter().map(|it| it.second).max());
    assert_eq!(parallel, in_order);
}

#[test]
fn fuzz_damaged_run_directories_never_panic() {
    let mut seconds: Vec<Interval> = (0..4).map(small).collect();
    seconds[3].steps = sample::shop_intervals().swap_remove(3).steps.split_off(2);
    let lines: Vec<Vec<u8>> =
        seconds.iter().map(|second| serde_json::to_vec(second).unwrap()).collect();
    let intervals = lines.join(&b'\n');
    let mut im = sample::im_intervals().swap_remove(300);
    im.steps.clear();
    let intervals = [intervals, serde_json::to_vec(&im).unwrap()].join(&b'\n');
    let event = |event: &Event| serde_json::to_vec(event).unwrap();
    let events =
        sample::shop_events().iter().skip(4).step_by(3).map(event).collect::<Vec<_>>().join(&b'\n');
    let info = serde_json::to_vec(&sample::shop_info()).unwrap();
    throng_fuzz::mutations(&[&intervals, &events, &info], |input, _| {
        let info = serde_json::from_slice(input).unwrap_or_else(|_| sample::shop_info());
        let mut collector = Collector::new(&info);
        records(input.to_vec()).for_each(|event: Event| collector.event(&event));
        records(input.to_vec()).for_each(|interval: Interval| collector.interval(&interval));
        let summary = collector.finish(info);
        let _ = summary_json(&summary);
        let _ = crate::junit(&summary);
        let _ = crate::terminal::summary_text(&summary, &crate::terminal::Style::plain());
    });
}

#[test]
fn a_day_is_read_in_little_memory() {
    /// A file of a day that is generated while it is read.
    struct Day {
        second: u64,
        line: Cursor<Vec<u8>>,
        template: String,
    }
    impl Read for Day {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.line.position() == self.line.get_ref().len() as u64 {
                if self.second == 86_400 {
                    return Ok(0);
                }
                let second = format!("\"second\":{},", self.second);
                let line = self.template.replacen("\"second\":0,", &second, 1) + "\n";
                self.line = Cursor::new(line.into_bytes());
                self.second += 1;
            }
            self.line.read(buffer)
        }
    }
    let template = serde_json::to_string(&small(0)).unwrap();
    let day = Day { second: 0, line: Cursor::new(Vec::new()), template };
    let mut read: Records<Interval> = Records::new(Box::new(BufReader::new(day)));
    let mut info = sample::info();
    info.tables.phases.remove(0);
    let mut collector = Collector::new(&info);
    read.by_ref().for_each(|interval| collector.interval(&interval));
    assert!(read.line.capacity() < 100_000);
    let summary = collector.finish(info);
    assert_eq!(summary.measured.as_secs(), 86_400);
    assert_eq!(summary.steps.rows[0].latency.count, 5 * 86_400);
    assert_eq!(summary.steps.total.count, 10_100 * 86_400);
    assert_eq!(read.damage, Damage::default());
}

/// An example of a broken packet is hexadecimal text, not a huge number.
#[test]
fn digits_in_texts_are_not_numbers() {
    let line = br#"{"event":"failure","detail":"in c4a70000000000000000000000268 \" 99999999999999999999","step":1}"#;
    assert!(numbers_fit(line));
    assert!(!numbers_fit(br#"{"at_ns":99999999999999999999}"#));
}
