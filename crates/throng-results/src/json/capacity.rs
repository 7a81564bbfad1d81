//! The result of a capacity search as JSON. Loads are in `unit`.

use serde_json::{Map, Value, json};

use throng_metrics::capacity::{Capacity, EndedBy, FailedBy, Level, LevelVerdict};

/// Null without a search.
pub(super) fn capacity(found: Option<&Capacity>) -> Value {
    let Some(found) = found else { return Value::Null };
    let mut told = json!(found);
    // Run directories omit these without a value.
    for name in ["varied", "trend", "at_least", "peak", "collapse"] {
        told[name] = told[name].take();
    }
    if let Some(collapse) = told["collapse"].as_object_mut() {
        rename(collapse, "served", "served_per_s");
    }
    told["sentence"] = json!(found.sentence().english());
    told["fails_by"] = json!(found.fails_by.as_ref().map(FailedBy::word));
    told["levels"] = found.levels.iter().map(level).collect();
    told["machines"] = json!(found.machines());
    told["limited_by"] = Value::Null;
    match &found.ended_by {
        EndedBy::BaseFails(_) => told["ended_by"] = json!("base-fails"),
        EndedBy::Generator(limit) => {
            told["ended_by"] = json!("generator");
            told["limited_by"] = json!(limit);
        }
        _ => {}
    }
    told
}

fn level(level: &Level) -> Value {
    let (verdict, by) = match &level.verdict {
        LevelVerdict::Met => ("met", None),
        LevelVerdict::NotMet(by) => ("not-met", Some(by.word())),
        LevelVerdict::GeneratorBound(limit) => ("generator-bound", Some(limit.word())),
    };
    let mut told = json!(level);
    if let Some(told) = told.as_object_mut() {
        rename(told, "offered", "offered_per_s");
        rename(told, "served", "served_per_s");
    }
    told["verdict"] = json!(verdict);
    told["by"] = json!(by);
    told
}

fn rename(told: &mut Map<String, Value>, from: &str, to: &str) {
    let value = told.remove(from).unwrap_or_default();
    told.insert(to.into(), value);
}
