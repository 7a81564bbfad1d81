//! `report.html`: a run as a single file for a browser, without network access. The page is built
//! from `web/` (its bundle is `web/dist/report.html`) and filled with data here: the summary as in
//! `--json`, and the results over time.

mod compared;
mod live;
mod machines;
mod monitors;
mod renderings;
mod series;
mod tables;

use std::sync::OnceLock;

use serde_json::{Value, json};
use throng_base::{Diagnostic, Said, packed};

use crate::directory::RunInfo;
use crate::event::{Event, moved};
use crate::json::summary_json;
use crate::read::Run;
use crate::summary::Summary;
use crate::summary::picture::Picture;

use monitors::Monitored;
use renderings::{Renderings, sentence};

pub use compared::{Compared, compared_data, may_compare};
pub use live::LivePage;
pub use series::Series;

/// The page, with a placeholder for its data.
fn blank() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| packed::text(packed!("../../web/dist/report.html")))
}

const MARK: &str = "\"throng-data\"";
/// A report must not access the network; a served page queries its server.
const OFFLINE: &str = "default-src 'none';";
const ONLINE: &str = "default-src 'none'; connect-src 'self';";
/// Maximum number of events on the time axis, starting with the first.
const EVENTS_MAX: usize = 500;
/// Maximum size of the recorded scenario.
const SCENARIO_BYTES_MAX: usize = 256 * 1024;

/// The page of a recorded run.
pub fn report_html(run: &Run, summary: &Summary) -> Result<String, Box<Diagnostic>> {
    Ok(html(&report_data(run, summary)?))
}

/// The data of the page of a recorded run.
pub fn report_data(run: &Run, summary: &Summary) -> Result<Value, Box<Diagnostic>> {
    let series = Series::read(run, summary)?;
    let mut scenario = run.scenario.clone();
    if scenario.len() > SCENARIO_BYTES_MAX {
        scenario.truncate(scenario.floor_char_boundary(SCENARIO_BYTES_MAX));
        scenario.push_str("\n# …\n");
    }
    let mut events = Vec::new();
    let (points, width_s) = series.points();
    let mut monitors = Monitored::new(points, width_s);
    let mut renderings = Renderings::of(summary);
    series.rendered(&mut renderings);
    for event in run.events()? {
        monitors.take(&event);
        renderings.event(&event);
        events.extend(told(&event).filter(|_| events.len() < EVENTS_MAX));
    }
    Ok(json!({
        "language": throng_base::language::spoken().word(),
        "summary": summary_json(summary),
        "requests": summary.only_requests(),
        "renderings": renderings.json(),
        "tables": tables::tables(summary),
        "names": names(&run.info),
        "series": series.json(),
        "picture": picture(summary),
        "monitors": monitors.json(points),
        "events": events,
        "scenario": scenario,
    }))
}

/// The summary, and the Chinese renderings of its sentences, as page data.
pub fn summary_data(summary: &Summary) -> Value {
    json!({
        "summary": summary_json(summary),
        "requests": summary.only_requests(),
        "renderings": Renderings::of(summary).json(),
        "tables": tables::tables(summary),
    })
}

/// The Chinese renderings of sentences, for pages whose data is in English.
pub fn renderings<'a>(sentences: impl IntoIterator<Item = &'a Said>) -> Value {
    Renderings::of_all(sentences).json()
}

/// A page without results, which queries its server.
pub fn served_html(data: &Value) -> String {
    html(data).replacen(OFFLINE, ONLINE, 1)
}

/// Without a decimal point if it is an integer.
fn number(figure: Option<f64>) -> Value {
    match figure {
        Some(figure) if figure.fract() == 0.0 && figure.abs() < 9e15 => json!(figure as i64),
        figure => json!(figure),
    }
}

fn picture(summary: &Summary) -> Value {
    json!(summary.users.picture.as_ref().map(Picture::json))
}

fn names(info: &RunInfo) -> Vec<String> {
    (0..).zip(&info.tables.steps).map(|(at, _)| info.step_name(at)).collect()
}

/// The data as JSON in a script element. It cannot close the element.
pub fn html(data: &Value) -> String {
    let data = data.to_string().replace('<', "\\u003c");
    blank().replacen(MARK, &data, 1)
}

/// An event for the time axis.
fn told(event: &Event) -> Option<Value> {
    let said = || sentence(event).map(Said::english).unwrap_or_default();
    let (at_ns, kind, text) = match event {
        Event::PhaseBegun { at_ns, phase } => (at_ns, "phase", phase.to_string()),
        Event::Marked { at_ns, name } | Event::ActionBegun { at_ns, name, .. } => {
            (at_ns, "mark", name.clone())
        }
        Event::AddressesChanged { at_ns, host, before, after } => {
            (at_ns, "addresses", moved(host, before, after))
        }
        Event::Amended { at_ns, change, .. } => (at_ns, "change", change.clone()),
        Event::Interrupted { at_ns } => (at_ns, "interrupted", String::new()),
        Event::Stopped { at_ns, .. } => (at_ns, "stopped", said()),
        Event::TargetLost { at_ns } => (at_ns, "target-lost", String::new()),
        Event::Held { at_ns, .. } => (at_ns, "held", said()),
        Event::Released { at_ns } => (at_ns, "released", String::new()),
        Event::GrowthGivenUp { at_ns, .. } => (at_ns, "given-up", said()),
        Event::BackedOff { at_ns, .. } => (at_ns, "backed-off", said()),
        Event::MachineLost { at_ns, .. } => (at_ns, "machine-lost", said()),
        Event::Notice { at_ns, text } => (at_ns, "notice", text.clone()),
        _ => return None,
    };
    Some(json!({"at_ns": at_ns, "kind": kind, "text": text}))
}

#[cfg(test)]
mod tests;
