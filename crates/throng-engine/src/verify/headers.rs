//! Header checks, which run when the head of a response arrives: headers are not kept.

use throng_expression::Value;
use throng_program::{Check, Extractor, Matcher, Save};
use throng_protocol::http1::Headers;

use super::Extracted;
use super::matcher::{Wanted, explained};
use crate::failure::Finding;
use crate::looked::{Kept, Looked, text_of};
use crate::prepared::check_plan::CheckPlan;
use crate::scope::UserScope;

/// Checks the headers of a response and saves values from them.
pub(crate) fn look_at_headers(
    check_plan: &CheckPlan,
    (checks, saves): (&[Check], &[Save]),
    (status, headers): (u16, Headers<'_>),
    scope: &mut UserScope<'_>,
    kept: &mut Kept,
) {
    if check_plan.wants_map {
        kept.map = Some(map_of(headers));
    }
    let looked = Looked::new(Some(status), b"", std::time::Duration::ZERO);
    for (index, check) in checks.iter().enumerate() {
        if let Extractor::Header(name) = &check.extractor
            && let Some(finding) = finding(check, name, headers, &looked, scope)
        {
            kept.findings.push((index as u16, finding));
        }
    }
    for (index, save) in saves.iter().enumerate() {
        let Extractor::Header(name) = &save.extractor else { continue };
        let mut values = headers.get_all(name).map(text_of);
        let value = match save.all {
            true => Some(Value::List(values.collect())).filter(|list| list.len() != Some(0)),
            false => values.next(),
        };
        kept.picked.extend(value.map(|value| (index as u16, value)));
    }
}

/// The failure of a header check. If a header occurs several times, one match is enough.
fn finding(
    check: &Check,
    name: &str,
    headers: Headers<'_>,
    looked: &Looked<'_>,
    scope: &mut UserScope<'_>,
) -> Option<Finding> {
    let wanted = match Wanted::of(&check.matcher, looked, scope) {
        Ok(wanted) => wanted,
        Err(fault) => return Some(scope.finding(fault)),
    };
    let first = headers.get(name).map_or(Extracted::Nothing, Extracted::Bytes);
    let good = match &check.matcher {
        Matcher::Count(..) => {
            let values = Extracted::Values(headers.get_all(name).map(text_of).collect());
            return match wanted.holds(&check.extractor, &values) {
                true => None,
                false => Some(explained(check, &wanted, &values, looked)),
            };
        }
        Matcher::Absent => headers
            .get_all(name)
            .all(|value| wanted.holds(&check.extractor, &Extracted::Bytes(value))),
        _ => headers
            .get_all(name)
            .any(|value| wanted.holds(&check.extractor, &Extracted::Bytes(value))),
    };
    (!good).then(|| explained(check, &wanted, &first, looked))
}

/// All headers with their names in lower case; a repeated header becomes a list of values, as in
/// RFC 9110 (5.3).
fn map_of(headers: Headers<'_>) -> Value {
    let mut entries: Vec<(String, String)> = Vec::new();
    for (name, value) in headers.iter() {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = String::from_utf8_lossy(value);
        match entries.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(&value);
            }
            None => entries.push((name, value.into_owned())),
        }
    }
    let entry = |(name, value): (String, String)| (name.into(), Value::Text(value.into()));
    Value::Map(entries.into_iter().map(entry).collect())
}
