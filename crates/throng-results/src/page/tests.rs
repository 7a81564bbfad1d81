//! Tests the data of a page: results over time agree with the summary, and text of a target stays
//! text.

use std::path::Path;

use super::*;
use crate::directory::RunInfo;
use crate::record::Recorder;
use crate::tests::sample;
use throng_metrics::{Cause, Interval, Percentile};

fn recorded(directory: &Path, info: &RunInfo, intervals: &[Interval], events: &[Event]) -> Run {
    let mut recorder = Recorder::create(directory, info, "name: </script><b>\n").unwrap();
    events.iter().for_each(|event| recorder.event(event).unwrap());
    intervals.iter().for_each(|interval| recorder.interval(interval).unwrap());
    recorder.finish(info).unwrap();
    Run::open(directory).unwrap()
}

fn data_of(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn sum(column: &Value) -> u64 {
    column.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

#[test]
fn results_over_time_add_up_to_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let info = sample::info();
    let run = recorded(folder.path(), &info, &sample::intervals(), &sample::events());
    let summary = run.summary().unwrap();
    let data = data_of(&report_html(&run, &summary).unwrap());
    assert_eq!(data["summary"], summary_json(&summary));
    let series = &data["series"];
    assert_eq!((&series["width_s"], &series["step_width_s"]), (&json!(1), &json!(1)));
    // The warm-up is in the curves only.
    let (all, measured) = (sample::intervals(), summary.steps.total.count);
    let warm_up: u64 = all[..2].iter().flat_map(|it| &it.steps).map(|row| row.count).sum();
    assert_eq!(sum(&series["ok"]) + sum(&series["failed"]), measured + warm_up);
    assert_eq!(series["errors"].as_array().unwrap().len(), 2);
    assert_eq!(series["users_online"][3], 64);
    let steps = series["steps"].as_array().unwrap();
    assert_eq!(sum(&steps[0]["ok"]) + sum(&steps[1]["ok"]), sum(&series["ok"]));
    let p99 = series["times"]["p99"][5].as_f64().unwrap() * 1e3;
    let wanted = summary.steps.total.latency.at(Percentile::P99) as f64;
    assert!((p99 / wanted - 1.0).abs() < 0.01, "all seconds are alike: {p99} {wanted}");
    let heat = series["heat"]["cells"].as_array().unwrap();
    let counted: u64 = heat.chunks(3).map(|cell| cell[2].as_u64().unwrap()).sum();
    let rows = all.iter().flat_map(|it| &it.steps);
    assert_eq!(counted, rows.map(|row| row.latency.count()).sum::<u64>());
}

#[test]
fn long_runs_have_coarser_points_with_equal_sums() {
    let folder = tempfile::tempdir().unwrap();
    let mut info = sample::info();
    info.time.ended = None;
    let interval = |second: u64| {
        let mut one = sample::interval(second, 1);
        one.steps.truncate(1);
        one.steps[0].latency.clear();
        one.steps[0].first_byte.clear();
        one.connections.stages.clear();
        one.generator.lateness.clear();
        one
    };
    let intervals: Vec<Interval> = (0..4_000).map(interval).collect();
    let run = recorded(folder.path(), &info, &intervals, &[]);
    let summary = run.summary().unwrap();
    let data = data_of(&report_html(&run, &summary).unwrap());
    assert_eq!(data["series"]["width_s"], 10);
    assert_eq!(data["series"]["ok"].as_array().unwrap().len(), 400);
    assert_eq!(sum(&data["series"]["ok"]), 4_000 * 9_990);
    assert_eq!(data["series"]["users_online"][399], 64);
}

#[test]
fn text_of_a_target_cannot_leave_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let mut info = sample::info();
    info.name = "</script><script>alert(1)</script><!--".into();
    let run = recorded(folder.path(), &info, &sample::intervals(), &sample::events());
    let page = report_html(&run, &run.summary().unwrap()).unwrap();
    let before = blank().matches("</script>").count();
    assert_eq!(page.matches("</script>").count(), before);
    assert!(!page.contains("<!--") && !page.contains("<b>"));
    let data = data_of(&page);
    assert_eq!(data["summary"]["run"]["name"], json!(info.name));
    assert_eq!(data["scenario"], "name: </script><b>\n");
}

/// Tables have the headings and values of the terminal's, in both languages.
#[test]
fn tables_of_the_page_equal_those_of_the_terminal() {
    let summary = sample::shop(true);
    let all = tables::tables(&summary);
    let of = |name: &str, what: &str| all[name][what].clone();
    let heads: Vec<&Value> =
        all["steps"]["columns"].as_array().unwrap().iter().map(|column| &column["head"]).collect();
    assert_eq!(heads[0], &json!(["step", "步骤"]));
    assert_eq!(heads[2], &json!(["failed", "失败"]));
    assert_eq!(heads[5], &json!("p50"));
    let row = &summary.steps.rows[0];
    let told = of("steps", "rows")[0].clone();
    assert_eq!(
        (&told[0], &told[1], &told[2]),
        (&json!(row.name), &json!(row.count), &json!(row.failed))
    );
    assert_eq!(told[4], json!(row.latency.mean_ns as u64));
    let units: Vec<Value> =
        of("steps", "columns").as_array().unwrap().iter().map(|it| it["unit"].clone()).collect();
    assert_eq!(
        units[..5],
        [Value::Null, json!("number"), json!("number"), json!("per_s"), json!("ns")]
    );
    let phases = of("phases", "rows");
    let at = summary.parts.phases.iter().position(|phase| !phase.measured).unwrap();
    let name = &summary.parts.phases[at].name;
    let both = [format!("{name} (not measured)"), format!("{name}（不计入统计）")];
    assert_eq!(phases[at][0], json!(both));
    assert_eq!(all["deliveries"], Value::Null, "there are none");
    let stages = tables::tables(&sample::im());
    let of_stages = &stages["stages"];
    assert_eq!(of_stages["columns"][0]["head"], json!(["stage", "阶段"]));
    assert_eq!(of_stages["columns"][0]["words"], true);
    assert_eq!(of_stages["columns"][1]["words"], false);
}

/// The page of a sample, and the Chinese renderings of its sentences.
fn renderings(info: &RunInfo, intervals: &[Interval], events: &[Event]) -> (Value, Value) {
    let folder = tempfile::tempdir().unwrap();
    let run = recorded(folder.path(), info, intervals, events);
    let data = report_data(&run, &run.summary().unwrap()).unwrap();
    (data["summary"].clone(), data["renderings"].clone())
}

#[test]
fn sentences_of_the_page_have_chinese_renderings() {
    let mut events = sample::shop_events();
    let (info, intervals) = (sample::shop_info(), sample::shop_intervals());
    let (summary, chinese) = renderings(&info, &intervals, &events);
    // A sentence that contains foreign text.
    let stopped = summary["outcome"]["reasons"][0].as_str().expect("a reason");
    let begin = "a rule in the scenario stopped the run at ";
    assert!(stopped.starts_with(begin) && stopped.contains(": half of"), "{stopped}");
    assert!(chinese[stopped].as_str().expect("a rendering").contains("终止了运行：half of"));
    events.retain(|event| !matches!(event, Event::Stopped { .. }));
    let (summary, chinese) = renderings(&info, &intervals, &events);
    let missed = summary["outcome"]["reasons"][0].as_str().expect("a reason");
    let threshold = missed.strip_prefix("not met: ").expect("JSON stays English");
    assert_eq!(chinese[missed], format!("未达成：{threshold}"));
    for place in ["/outcome/headline", "/errors/0/text", "/errors/0/blame"] {
        let text = summary.pointer(place).and_then(Value::as_str).expect("a text");
        assert!(chinese[text].as_str().is_some_and(|it| !it.is_ascii()), "{text}: {chinese}");
    }
    // Text of a target is not translated.
    let example = sample::events().iter().find_map(|event| match event {
        Event::Failure { detail, .. } => Some(detail.english()),
        _ => None,
    });
    assert_eq!(chinese[example.expect("an example")], Value::Null);
    // The curves contain errors of unmeasured phases.
    let (summary, chinese) = renderings(&info, &intervals[..2], &[]);
    assert_eq!(summary["errors"], json!([]));
    assert!(chinese[Cause::Timeout.text().english()].is_string(), "{chinese}");
}

/// Each sentence without values that has a rendering has it on the page.
#[test]
fn each_sentence_of_the_summary_has_its_rendering() {
    for (info, intervals, events) in [
        (sample::info(), sample::intervals(), sample::events()),
        (sample::shop_info(), sample::shop_intervals(), sample::shop_events()),
        (sample::im_info(), sample::im_intervals(), sample::im_events()),
        (sample::chat_info(), sample::chat_intervals(), sample::chat_events()),
    ] {
        let (summary, chinese) = renderings(&info, &intervals, &events);
        for place in ["outcome", "errors", "failures", "deliveries", "growth"] {
            walk(&summary[place], &mut |text| {
                let rendered = Said::of_others(text).render(throng_base::Language::Chinese);
                let is_sentence = text.contains(' ') && rendered != text;
                assert!(!is_sentence || chinese[text] == rendered, "{text}: {chinese}");
            });
        }
    }
}

fn walk(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Array(all) => all.iter().for_each(|it| walk(it, look)),
        Value::Object(all) => all.values().for_each(|it| walk(it, look)),
        _ => {}
    }
}
