//! The result of a duel as JSON. Changes are from A to B.

use serde_json::{Value, json};
use throng_metrics::duel::{Compared, Duel, DuelEnd, Outcome};

use crate::compare::verdict_word;

pub(super) fn duel(found: &Duel) -> Value {
    let (verdict, faster) = match found.outcome() {
        Outcome::Faster { is_b, .. } => ("faster", Some(if is_b { "B" } else { "A" })),
        Outcome::Other(_) => ("differs", None),
        Outcome::Same => ("same", None),
        Outcome::Undecided(_) => ("undecided", None),
        Outcome::TooShort => ("too-short", None),
    };
    let [a, b] = &found.sides;
    let conditions =
        found.conditions.iter().map(|it| json!({"text": it.text, "verdict": it.fails.word()}));
    json!({
        "sentence": found.verdict().english(),
        "verdict": verdict,
        "faster": faster,
        "a": a,
        "b": b,
        "slice_s": found.slice_s,
        "pairs": found.pairs,
        "within": found.within,
        "budget_s": found.budget_s,
        "ended_by": match found.ended_by {
            DuelEnd::Running => "asked",
            DuelEnd::Within => "within",
            DuelEnd::Budget => "budget",
        },
        "figures": found.figures.iter().map(figure).collect::<Vec<_>>(),
        "fail_if": conditions.collect::<Vec<_>>(),
    })
}

fn figure(figure: &Compared) -> Value {
    let change = figure.change.as_ref();
    json!({
        "figure": figure.figure,
        "unit": figure.unit().word(),
        "a": figure.a,
        "b": figure.b,
        "change": change.map(|it| json!({"by": it.by, "low": it.low, "high": it.high})),
        "verdict": change.map(|_| verdict_word(figure.verdict())),
    })
}
