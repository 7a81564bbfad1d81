//! Tests that incremental data equals the complete data, and is limited in size.

use serde_json::{Value, json};
use throng_metrics::Interval;

use super::*;
use crate::tests::sample;

fn sum(column: &Value) -> u64 {
    column.as_array().unwrap().iter().map(|it| it.as_u64().unwrap_or(0)).sum()
}

fn page(intervals: &[Interval]) -> LivePage {
    let mut page = LivePage::new(Arc::new(sample::info()));
    for interval in intervals {
        page.line(interval.clone());
    }
    page
}

#[test]
fn appended_seconds_equal_the_complete_data() {
    let intervals = sample::intervals();
    let mut page = LivePage::new(Arc::new(sample::info()));
    let first = page.all();
    let mut appended: Vec<u64> = Vec::new();
    for interval in &intervals {
        page.line(interval.clone());
        let second = page.second();
        let at = second["at"].as_u64().unwrap() as usize;
        appended.resize(appended.len().max(at + 1), 0);
        appended[at] = second["figures"]["ok"].as_u64().unwrap();
        assert_eq!(second["seconds"], interval.second + 1);
    }
    assert_eq!(first["series"]["ok"], json!([0]));
    let all = page.all();
    assert_eq!(all["series"]["ok"], json!(appended));
    let of = |interval: &Interval| interval.steps.iter().map(|row| row.ok).sum::<u64>();
    assert_eq!(appended.iter().sum::<u64>(), intervals.iter().map(of).sum::<u64>());
    let steps = all["series"]["steps"].as_array().unwrap();
    let of_steps: u64 = steps.iter().map(|step| sum(&step["ok"])).sum();
    assert_eq!(of_steps, appended.iter().sum::<u64>());
    assert_eq!(all["summary"]["total"], page.figures()["summary"]["total"]);
}

#[test]
fn a_long_run_has_limited_data_and_exact_sums() {
    let (one, mut page) = (sample::intervals()[5].clone(), page(&[]));
    let each: u64 = one.steps.iter().map(|row| row.ok).sum();
    let mut coarser = 0;
    let seconds = 20_000;
    for second in 0..seconds {
        coarser += u32::from(page.line(Interval { second, ..one.clone() }));
    }
    assert!((3..=10).contains(&coarser), "{coarser}");
    let all = page.all();
    let series = &all["series"];
    let points = series["ok"].as_array().unwrap().len();
    assert!((POINTS_MAX / 2 - 100..=POINTS_MAX).contains(&points), "{points}");
    assert_eq!(sum(&series["ok"]), each * seconds);
    for step in series["steps"].as_array().unwrap() {
        assert!(step["at"].as_array().unwrap().len() <= POINTS_MAX);
    }
    let of_steps: u64 = series["steps"].as_array().unwrap().iter().map(|it| sum(&it["ok"])).sum();
    assert_eq!(of_steps, each * seconds);
    let cells = series["heat"]["cells"].as_array().unwrap();
    let counted: u64 = cells.chunks(3).map(|cell| cell[2].as_u64().unwrap()).sum();
    assert_eq!(counted, one.steps.iter().map(|row| row.latency.count()).sum::<u64>() * seconds);
    assert!(cells.chunks(3).all(|cell| cell[0].as_u64().unwrap() < HEAT_COLUMNS as u64));
    // All seconds are equal, so a percentile of many is that of one.
    let wanted = sample_p99(&one);
    assert_eq!(series["times"]["p99"][7], wanted);
}

fn sample_p99(one: &Interval) -> Value {
    page(std::slice::from_ref(one)).second()["times"]["p99"].clone()
}

#[test]
fn any_second_in_a_line_is_accepted() {
    let mut page = page(&sample::intervals());
    let far = Interval { second: u64::MAX / 2, ..sample::intervals()[0].clone() };
    assert!(page.line(far));
    assert!(page.all()["series"]["ok"].as_array().unwrap().len() <= POINTS_MAX);
    // Late results count toward the current point.
    page.line(sample::intervals()[1].clone());
    assert!(page.second()["seconds"].as_u64() > Some(u64::MAX / 2));
}
