//! A comparison as a program sees it, as documented in `docs/json.md`.

use serde_json::{Value, json};
use throng_base::Said;

use super::{CONFIDENCE, Change, Comparison, Figure, Judged, Row, Sampled};

/// The version of the schema. New fields do not raise it.
const JSON_FORMAT: u32 = 1;

/// The baseline and what was held against it, as one object.
pub fn comparisons_json(baseline: &Sampled, held: &[(&Sampled, &Comparison)]) -> Value {
    json!({
        "format": JSON_FORMAT,
        "confidence": CONFIDENCE,
        "baseline": run(baseline),
        "comparisons": held.iter().map(|(run, it)| comparison(run, it)).collect::<Vec<_>>(),
    })
}

fn run(run: &Sampled) -> Value {
    let info = &run.summary.info;
    json!({
        "id": info.id,
        "name": info.name,
        "labels": info.labels,
        "started": info.started,
        "directory": run.summary.directory.as_ref().map(|path| path.display().to_string()),
    })
}

fn comparison(other: &Sampled, held: &Comparison) -> Value {
    json!({
        "run": run(other),
        "unlike": held.unlike.iter().map(Said::english).collect::<Vec<_>>(),
        "compared": held.compared,
        "named": held.findings().count(),
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
    let verdict = |change: &Change| match (change.named, figure.is_better(change)) {
        (false, _) => "unchanged",
        (true, true) => "better",
        (true, false) => "worse",
    };
    json!({
        "figure": figure.word(),
        "unit": figure.unit().word(),
        "baseline": figure.before,
        "value": figure.after,
        "change": figure.change.as_ref().map(change),
        "verdict": figure.change.as_ref().map(verdict),
    })
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
