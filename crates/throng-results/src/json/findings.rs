//! Findings as a program sees them.

use serde_json::{Value, json};
use throng_why::{Code, Figure, Finding, Judged, NOT_RECORDED, Rival, Span, Unknown};

/// Null of a record that an older version has summed up.
pub(super) fn findings(judged: Option<&Judged>) -> Value {
    judged.map_or(Value::Null, |judged| judged.findings.iter().map(finding).collect())
}

/// All that was judged: the findings, and what could not be.
pub fn judged_json(judged: &Judged) -> Value {
    let unknown = judged.unknown.iter().map(|(code, why)| unknown(*code, why));
    let later = NOT_RECORDED.iter().map(|code| json!({"code": code, "why": "not-recorded"}));
    json!({
        "findings": findings(Some(judged)),
        "doubts": judged.doubts.iter().map(|it| it.english()).collect::<Vec<_>>(),
        "until_s": judged.until_s,
        "unknown": unknown.chain(later).collect::<Vec<_>>(),
    })
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
    }
}
