//! Comparisons as JSON, as documented in `docs/json.md`.

use serde_json::{Value, json};
use throng_base::Said;

use super::{
    CONFIDENCE, CapacityChange, Change, Comparison, Figure, History, Judged, Past, Row, Sampled,
    Shift, Trend,
};

/// Version of the schema. New fields do not change it.
const JSON_FORMAT: u32 = 1;

/// The baseline and the runs compared with it, as one object.
pub fn comparisons_json(baseline: &Sampled, held: &[(&Sampled, &Comparison)]) -> Value {
    json!({
        "format": JSON_FORMAT,
        "confidence": CONFIDENCE,
        "baseline": run(baseline),
        "comparisons": held.iter().map(|(run, it)| comparison(run, it)).collect::<Vec<_>>(),
    })
}

/// The runs of a folder, as one object.
pub fn history_json(history: &History) -> Value {
    let passed_over = history.passed_over.iter().map(|over| {
        json!({
            "directory": over.directory.display().to_string(),
            "reason": over.reason.english(),
        })
    });
    json!({
        "format": JSON_FORMAT,
        "confidence": CONFIDENCE,
        "folder": history.folder.display().to_string(),
        "step": history.step,
        "scenarios": history.scenarios.iter().map(trend).collect::<Vec<_>>(),
        "passed_over": passed_over.collect::<Vec<_>>(),
    })
}

fn trend(trend: &Trend) -> Value {
    let shift = |shift: &Shift| {
        json!({
            "since": trend.runs.get(shift.since).map(|run| &run.id),
            "figure": shift.measure.word(),
            "unit": shift.measure.unit().word(),
            "before": shift.before,
            "after": shift.after,
            "by": shift.by,
        })
    };
    json!({
        "name": trend.scenario,
        "baseline": trend.baseline,
        "runs": trend.runs.iter().map(past).collect::<Vec<_>>(),
        "compared": trend.compared,
        "shifts": trend.shifts.iter().map(shift).collect::<Vec<_>>(),
        "fail_if": trend.judged.iter().map(judged).collect::<Vec<_>>(),
    })
}

fn past(past: &Past) -> Value {
    json!({
        "id": past.id,
        "directory": past.directory.display().to_string(),
        "labels": past.labels,
        "started": past.started,
        "exit_code": past.exit.code(),
        "verdict": past.verdict.english(),
        "figures": past.figures.iter().map(figure).collect::<Vec<_>>(),
        "capacity": past.carried.map(|carried| {
            let mut told = carried.json();
            told["verdict"] = json!(past.capacity_change.map(CapacityChange::word));
            told
        }),
        "unlike": past.unlike.iter().map(Said::english).collect::<Vec<_>>(),
    })
}

fn run(run: &Sampled) -> Value {
    let info = &run.summary.info;
    json!({
        "id": info.id,
        "name": info.name,
        "labels": info.labels,
        "started": info.time.started,
        "directory": run.summary.directory.as_ref().map(|path| path.display().to_string()),
    })
}

fn comparison(other: &Sampled, held: &Comparison) -> Value {
    json!({
        "run": run(other),
        "unlike": held.unlike.iter().map(Said::english).collect::<Vec<_>>(),
        "compared": held.compared,
        "named": held.findings().count(),
        "capacity": held.capacity.map(|both| both.json()),
        "rows": held.rows.iter().map(row).collect::<Vec<_>>(),
        "fail_if": held.judged.iter().map(judged).collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    json!({
        "name": row.name,
        "kind": row.kind,
        "figures": row.figures.iter().map(figure).collect::<Vec<_>>(),
    })
}

fn figure(figure: &Figure) -> Value {
    json!({
        "figure": figure.measure.word(),
        "unit": figure.measure.unit().word(),
        "baseline": figure.before,
        "value": figure.after,
        "change": figure.change.as_ref().map(change),
        "verdict": figure.change.as_ref().map(|_| verdict_word(figure.verdict())),
    })
}

/// The word for an improvement or a regression; `None` is noise.
pub(crate) fn verdict_word(is_better: Option<bool>) -> &'static str {
    match is_better {
        None => "unchanged",
        Some(true) => "better",
        Some(false) => "worse",
    }
}

fn change(change: &Change) -> Value {
    json!({
        "by": change.by,
        "low": change.interval.map(|(low, _)| low),
        "high": change.interval.map(|(_, high)| high),
    })
}

fn judged(judged: &Judged) -> Value {
    let change = judged.change.as_ref().map(change);
    json!({ "text": judged.text, "verdict": judged.fails.word(), "change": change })
}
