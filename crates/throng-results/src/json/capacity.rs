//! The result of a capacity search as JSON. Loads are in `unit`.

use serde_json::{Value, json};

use throng_metrics::capacity::{Basis, Capacity, Collapse, EndedBy, FailedBy, Level, LevelVerdict};

/// Null without a search.
pub(super) fn capacity(found: Option<&Capacity>) -> Value {
    let Some(found) = found else { return Value::Null };
    let (ended_by, limited_by) = ended(&found.ended_by);
    let range = |range: Option<(f64, f64)>| range.map(|(low, high)| [low, high]);
    json!({
        "sentence": found.sentence().english(),
        "unit": found.unit.word(),
        "varied": found.varied,
        "thresholds": found.thresholds,
        "carries": found.carries,
        "low": found.low,
        "high": found.high,
        "basis": match found.basis {
            Basis::Interval => "interval",
            Basis::Bracket => "bracket",
            Basis::AtLeast => "at-least",
            Basis::Nothing => "nothing",
        },
        "confirmed_s": found.confirmed_s,
        "fails_at": found.fails_at,
        "fails_by": found.fails_by.as_ref().map(FailedBy::word),
        "overloaded_at": found.overload.at,
        "recovered_s": found.overload.recovered_s,
        "collapse": found.overload.collapse.map(collapse),
        "trend": found.trend,
        "knee": {
            "optimal": range(found.knee.optimal),
            "maximum": range(found.knee.maximum),
            "collapse": found.knee.collapse,
        },
        "levels": found.levels.iter().map(level).collect::<Vec<_>>(),
        "ended_by": ended_by,
        "limited_by": limited_by,
        "spent_s": found.spent_s,
        "budget_s": found.budget_s,
        "at_least": found.at_least,
        "peak": found.peak,
        "machines": machines(found),
    })
}

/// The word, and the generator's limit.
fn ended(by: &EndedBy) -> (&'static str, Option<&'static str>) {
    match by {
        EndedBy::Found => ("found", None),
        EndedBy::BaseFails(_) => ("base-fails", None),
        EndedBy::Max => ("max", None),
        EndedBy::Generator(limit) => ("generator", Some(limit.word())),
        EndedBy::Budget => ("budget", None),
        EndedBy::NotConfirmed => ("not-confirmed", None),
        EndedBy::NotRecovered => ("not-recovered", None),
        EndedBy::CollapsedAgain => ("collapsed-again", None),
        EndedBy::Asked => ("asked", None),
    }
}

fn collapse(collapse: Collapse) -> Value {
    json!({
        "at": collapse.at,
        "served_per_s": collapse.served,
        "recovers_at": collapse.recovers_at,
        "stays": collapse.stays,
    })
}

fn machines(found: &Capacity) -> Value {
    found.machines().map_or(
        Value::Null,
        |machines| json!({ "count": machines.count, "low": machines.low, "high": machines.high }),
    )
}

fn level(level: &Level) -> Value {
    let (verdict, by) = match &level.verdict {
        LevelVerdict::Met => ("met", None),
        LevelVerdict::NotMet(by) => ("not-met", Some(by.word())),
        LevelVerdict::GeneratorBound(limit) => ("generator-bound", Some(limit.word())),
    };
    json!({
        "load": level.load,
        "purpose": level.purpose.word(),
        "at_s": level.at_s,
        "seconds": level.seconds,
        "offered_per_s": level.offered,
        "served_per_s": level.served,
        "attempts": level.attempts,
        "strain": level.strain,
        "mean_s": level.mean_s,
        "p50_s": level.p50_s,
        "p90_s": level.p90_s,
        "p99_s": level.p99_s,
        "in_flight": level.in_flight,
        "in_flight_expected": level.in_flight_expected,
        "online": level.online,
        "verdict": verdict,
        "by": by,
    })
}
