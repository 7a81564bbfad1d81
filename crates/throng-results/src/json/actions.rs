//! The events of a run as JSON.

use serde_json::{Value, json};
use throng_base::Said;
use throng_why::{Effect, Stretch};

use crate::actions::ActionRow;

pub(super) fn actions(rows: &[ActionRow]) -> Value {
    rows.iter().map(action).collect()
}

fn action(row: &ActionRow) -> Value {
    json!({
        "name": row.name,
        "kind": row.action,
        "status": row.status.word(),
        "due_ns": row.due_ns,
        "at_ns": row.at_ns,
        "took_ns": row.took_ns,
        "detail": row.detail.english(),
        "output": row.output,
        "text": row.paragraph().as_ref().map(Said::english),
        "changed": row.effect.as_ref().map_or_else(Vec::new, changed),
        "before": row.effect.as_ref().and_then(|it| it.before.as_ref()).map(stretch),
        "during": row.effect.as_ref().and_then(|it| it.during.as_ref()).map(stretch),
        "after": row.effect.as_ref().and_then(|it| it.after.as_ref()).map(stretch),
    })
}

fn changed(effect: &Effect) -> Vec<Value> {
    let one = |it: &throng_why::Change| {
        json!({
            "figure": it.figure.word(),
            "before": rounded(it.before),
            "worst": rounded(it.worst),
            "for_s": rounded(it.for_s),
            "back_s": it.back_s.map(rounded),
            "seen_s": rounded(it.seen_s),
        })
    };
    effect.changes.iter().map(one).collect()
}

fn stretch(it: &Stretch) -> Value {
    json!({
        "from_s": rounded(it.from_s),
        "to_s": rounded(it.to_s),
        "ok_per_s": rounded(it.ok_per_s),
        "error_share": it.error_share.map(|share| (share * 1e6).round() / 1e6),
        "p50_ns": it.p50_ns.map(|ns| ns as u64),
        "p99_ns": it.p99_ns.map(|ns| ns as u64),
        "online_min": it.online_min as u64,
    })
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
