//! What goes into a page: figures over time that come to those of the summary, and text of a target
//! that stays text.

use std::path::Path;

use super::*;
use crate::directory::RunInfo;
use crate::record::Recorder;
use crate::sample;
use throng_metrics::Interval;

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
fn the_figures_over_time_come_to_those_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let info = sample::info();
    let run = recorded(folder.path(), &info, &sample::intervals(), &sample::events());
    let summary = run.summary().unwrap();
    let data = data_of(&report_html(&run, &summary).unwrap());
    assert_eq!(data["summary"], summary_json(&summary));
    let series = &data["series"];
    assert_eq!((&series["width_s"], &series["step_width_s"]), (&json!(1), &json!(1)));
    // The warm-up is in the curves, and in no figure.
    let (all, measured) = (sample::intervals(), summary.total.count);
    let warm_up: u64 = all[..2].iter().flat_map(|it| &it.steps).map(|row| row.count).sum();
    assert_eq!(sum(&series["ok"]) + sum(&series["failed"]), measured + warm_up);
    assert_eq!(series["errors"].as_array().unwrap().len(), 2);
    assert_eq!(series["users_online"][3], 64);
    let steps = series["steps"].as_array().unwrap();
    assert_eq!(sum(&steps[0]["ok"]) + sum(&steps[1]["ok"]), sum(&series["ok"]));
    let p99 = series["times"]["p99"][5].as_f64().unwrap() * 1e3;
    let wanted = summary.total.latency.p99_ns as f64;
    assert!((p99 / wanted - 1.0).abs() < 0.01, "all seconds are alike: {p99} {wanted}");
    let heat = series["heat"]["cells"].as_array().unwrap();
    let counted: u64 = heat.chunks(3).map(|cell| cell[2].as_u64().unwrap()).sum();
    let rows = all.iter().flat_map(|it| &it.steps);
    assert_eq!(counted, rows.map(|row| row.latency.count()).sum::<u64>());
}

#[test]
fn long_runs_have_coarser_points_with_the_same_sums() {
    let folder = tempfile::tempdir().unwrap();
    let info = RunInfo { ended: None, ..sample::info() };
    let interval = |second: u64| {
        let mut one = sample::interval(second, 1);
        one.steps.truncate(1);
        one.steps[0].latency.clear();
        one.steps[0].first_byte.clear();
        one.stages.clear();
        one.lateness.clear();
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
fn nothing_of_a_target_leaves_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let mut info = sample::info();
    info.name = "</script><script>alert(1)</script><!--".into();
    let run = recorded(folder.path(), &info, &sample::intervals(), &sample::events());
    let page = report_html(&run, &run.summary().unwrap()).unwrap();
    let before = PAGE.matches("</script>").count();
    assert_eq!(page.matches("</script>").count(), before);
    assert!(!page.contains("<!--") && !page.contains("<b>"));
    let data = data_of(&page);
    assert_eq!(data["summary"]["run"]["name"], json!(info.name));
    assert_eq!(data["scenario"], "name: </script><b>\n");
}
