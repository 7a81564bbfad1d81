//! Findings as JSON.

use serde_json::{Value, json};
use throng_why::{
    Code, Figure, Finding, GaveWay, Judged, Measured, Needs, Rival, Span, Trend, Unknown,
};

pub(super) fn findings(judged: &Judged) -> Value {
    judged.findings.iter().map(finding).collect()
}

/// The findings, and the rules that lacked data.
pub fn judged_json(judged: &Judged) -> Value {
    let unknown = judged.unknown.iter().map(|(code, why)| unknown(*code, why));
    json!({
        "findings": findings(judged),
        "stability": stability(judged),
        "gave_way": gave_way(judged),
        "doubts": judged.doubts.iter().map(|it| it.english()).collect::<Vec<_>>(),
        "until_s": judged.until_s,
        "unknown": unknown.collect::<Vec<_>>(),
    })
}

/// Whether a long load was stable; null for other loads.
pub(super) fn stability(judged: &Judged) -> Value {
    let Some(found) = &judged.stability else { return Value::Null };
    let measure = |it: &Measured| {
        json!({
            "name": it.key,
            "unit": it.unit,
            "first": it.first,
            "last": it.last,
            "change": it.change,
            "standard_errors": it.apart,
            "trend": match it.trend {
                Trend::Stable => "stable",
                Trend::Falls => "falls",
                Trend::Grows => "grows",
            },
            "text": it.text().english(),
        })
    };
    json!({
        "verdict": found.word(),
        "from_s": found.when.from_s,
        "to_s": found.when.to_s,
        "measures": found.measures.iter().map(measure).collect::<Vec<_>>(),
    })
}

/// What limited the service at the border of a search.
pub(super) fn gave_way(judged: &Judged) -> Value {
    let row = |it: &GaveWay| json!({ "code": it.code.map(Code::word), "text": it.text.english() });
    judged.gave_way.iter().map(row).collect()
}

fn when(span: Span) -> Value {
    let rounded = |seconds: f64| (seconds * 1e3).round() / 1e3;
    json!({ "from_s": rounded(span.from_s), "to_s": rounded(span.to_s) })
}

fn finding(it: &Finding) -> Value {
    let mut time = when(it.when);
    time["series"] = json!(it.series);
    let figure = |it: &Figure| json!({ "text": it.text.english(), "when": when(it.when) });
    let rival = |it: &Rival| json!({ "cause": it.cause.english(), "how": it.how.english() });
    json!({
        "code": it.code.word(),
        "level": it.level.word(),
        "title": it.code.title().english(),
        "text": it.text.english(),
        "when": time,
        "evidence": it.evidence.iter().map(figure).collect::<Vec<_>>(),
        "excluded": it.excluded.iter().map(rival).collect::<Vec<_>>(),
        "next": it.next.english(),
    })
}

fn unknown(code: Code, why: &Unknown) -> Value {
    let code = code.word();
    match why {
        Unknown::TooShort { needs_s } => {
            json!({ "code": code, "why": "too-short", "needs_s": needs_s })
        }
        Unknown::ExplainedBy { code: by } => {
            json!({ "code": code, "why": "explained", "by": by.word() })
        }
        Unknown::TooCoarse { point_s } => {
            json!({ "code": code, "why": "too-coarse", "point_s": point_s })
        }
        Unknown::NotRecorded { needs: Needs::Monitor } => {
            json!({ "code": code, "why": "not-recorded", "needs": "monitor" })
        }
        Unknown::NotRecorded { needs: Needs::Format(format) } => {
            json!({ "code": code, "why": "not-recorded", "needs_format": format })
        }
    }
}
