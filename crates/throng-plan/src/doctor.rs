//! The findings about a host, in readable form and as JSON.

mod page;

use serde_json::{Value, json};
use throng_base::Said;
use throng_host::doctor::{Applied, Examination, Fix, Needs, Role};

pub use page::page;

/// As JSON, in English. `docs/doctor.md` documents each field.
pub fn as_json(needs: &Needs, examination: &Examination, applied: &[Applied]) -> Value {
    let next = examination.next_limit();
    let findings = examination.findings.iter().map(|finding| {
        let now: Vec<String> = finding.fixes.iter().filter_map(Fix::now).collect();
        let for_good: Vec<String> = finding.fixes.iter().flat_map(Fix::for_good).collect();
        let advice = finding.fixes.iter().filter_map(Fix::advice);
        let advice: Vec<String> = advice.map(Said::english).collect();
        json!({
            "rule": finding.rule,
            "severity": finding.severity.word(),
            "title": finding.title.english(),
            "value": finding.value.english(),
            "needed": finding.needed.english(),
            "ceiling": finding.ceiling,
            "why": finding.detail.english(),
            "fix_now": now,
            "fix_for_good": for_good,
            "advice": advice,
        })
    });
    let applied = applied.iter().map(|one| {
        let before = &one.before;
        json!({"key": one.key, "before": before, "value": one.value, "error": one.error})
    });
    json!({
        "role": match needs.role { Role::Generator => "generator", Role::Target => "target" },
        "users": needs.users,
        "fit": examination.is_fit(),
        "ceiling": next.and_then(|finding| finding.ceiling),
        "next_limit": next.map(|finding| finding.rule),
        "findings": findings.collect::<Vec<Value>>(),
        "applied": applied.collect::<Vec<Value>>(),
    })
}
