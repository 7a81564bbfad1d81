//! `report.html`: a run as one file that a browser shows, without network. The page is made from
//! `web/` (its bundle is `web/dist/report.html`); here it gets its data: the summary as in
//! `--json`, and the figures over time.

mod series;

use serde_json::{Value, json};
use throng_base::Diagnostic;

use crate::event::Event;
use crate::json::summary_json;
use crate::read::Run;
use crate::summary::Summary;

pub use series::Series;

/// The page, with a mark where its data goes.
const PAGE: &str = include_str!("../../../web/dist/report.html");
const MARK: &str = "\"throng-data\"";
/// Of events that are shown on the time axis: the first ones.
const EVENTS_MAX: usize = 500;
/// Of the recorded scenario.
const SCENARIO_BYTES_MAX: usize = 256 * 1024;

/// The page of a recorded run.
pub fn report_html(run: &Run, summary: &Summary) -> Result<String, Box<Diagnostic>> {
    let series = Series::read(run, summary)?;
    let mut scenario = run.scenario.clone();
    if scenario.len() > SCENARIO_BYTES_MAX {
        scenario.truncate(scenario.floor_char_boundary(SCENARIO_BYTES_MAX));
        scenario.push_str("\n# …\n");
    }
    let data = json!({
        "language": throng_base::language::spoken().word(),
        "summary": summary_json(summary),
        "names": (0..).zip(&run.info.steps).map(|(at, _)| run.info.step_name(at)).collect::<Vec<_>>(),
        "series": series.json(),
        "events": run.events()?.filter_map(|event| told(&event)).take(EVENTS_MAX).collect::<Vec<_>>(),
        "scenario": scenario,
    });
    Ok(page(&data))
}

/// The data as JSON in a script element: nothing in it can end the element.
fn page(data: &Value) -> String {
    let data = data.to_string().replace('<', "\\u003c");
    PAGE.replacen(MARK, &data, 1)
}

/// What happened at a moment, for the time axis.
fn told(event: &Event) -> Option<Value> {
    let (at_ns, kind, text) = match event {
        Event::PhaseBegun { at_ns, phase } => (at_ns, "phase", phase.to_string()),
        Event::Marked { at_ns, name } => (at_ns, "mark", name.clone()),
        Event::Amended { at_ns, change, .. } => (at_ns, "change", change.clone()),
        Event::Interrupted { at_ns } => (at_ns, "interrupted", String::new()),
        Event::Stopped { at_ns, reason, .. } => (at_ns, "stopped", reason.english()),
        Event::TargetLost { at_ns } => (at_ns, "target-lost", String::new()),
        Event::Held { at_ns, detail, .. } => (at_ns, "held", detail.english()),
        Event::Released { at_ns } => (at_ns, "released", String::new()),
        Event::GrowthGivenUp { at_ns, detail, .. } => (at_ns, "given-up", detail.english()),
        Event::MachineLost { at_ns, detail, .. } => (at_ns, "machine-lost", detail.english()),
        Event::Notice { at_ns, text } => (at_ns, "notice", text.clone()),
        _ => return None,
    };
    Some(json!({"at_ns": at_ns, "kind": kind, "text": text}))
}

#[cfg(test)]
mod tests;
