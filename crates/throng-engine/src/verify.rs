//! Holds an answer against what was expected of it.

use std::time::Duration;

use serde_json::Value;
use throng_metrics::Cause;
use throng_program::check::JsonPart;
use throng_program::{Check, JsonCheck, JsonPath, JsonWant};
use throng_protocol::http1::Headers;

/// What a failed check says: its cause, and what was there instead.
pub(crate) type Finding = (Cause, String);

/// The longest piece of an answer that an example shows.
const SHOWN_BYTES_MAX: usize = 80;

/// Checks everything that is known when the answer is complete: status, body, fields, time.
/// Headers are checked when the head comes, as they are not kept.
pub(crate) fn verify(
    checks: &[Check],
    status: Option<u16>,
    body: &[u8],
    elapsed: Duration,
) -> Result<(), Finding> {
    let mut json = None;
    for check in checks {
        match check {
            Check::Status(set) => verify_status(status, set.contains(status.unwrap_or(0)))?,
            Check::Header(_) => {}
            Check::Body(want) if want.holds(body) => {}
            Check::Body(want) => {
                let detail = format!("expected the body {}, got `{}`", want.wanted(), shown(body));
                return Err((Cause::BodyUnexpected, detail));
            }
            Check::Json(want) => {
                let value = json.get_or_insert_with(|| serde_json::from_slice::<Value>(body).ok());
                verify_json(want, value.as_ref(), body)?;
            }
            Check::Time(limit) if elapsed < *limit => {}
            Check::Time(limit) => {
                let shown = throng_base::units::format_duration;
                let detail = format!("{} is not below {}", shown(elapsed), shown(*limit));
                return Err((Cause::TooSlow, detail));
            }
        }
    }
    // Without a word about the status, what the protocol calls an error is one.
    let said = checks.iter().any(|check| matches!(check, Check::Status(_)));
    match status {
        Some(status) if !said => verify_status(Some(status), status < 400),
        _ => Ok(()),
    }
}

fn verify_status(status: Option<u16>, good: bool) -> Result<(), Finding> {
    match (good, status) {
        (true, _) => Ok(()),
        (false, Some(status)) => Err((Cause::StatusUnexpected, format!("status {status}"))),
        (false, None) => Err((Cause::StatusUnexpected, "there is no status".into())),
    }
}

/// Checks the headers of an answer.
pub(crate) fn verify_headers(checks: &[Check], headers: Headers<'_>) -> Result<(), Finding> {
    for check in checks {
        let Check::Header(header) = check else { continue };
        let value = headers.get(&header.name);
        if !header.want.holds(value.unwrap_or_default()) {
            let got =
                value.map_or("it is absent".into(), |value| format!("got `{}`", shown(value)));
            let wanted = header.want.wanted();
            let detail = format!("expected the header {} {wanted}, {got}", header.name);
            return Err((Cause::HeaderUnexpected, detail));
        }
    }
    Ok(())
}

fn verify_json(check: &JsonCheck, value: Option<&Value>, body: &[u8]) -> Result<(), Finding> {
    let fail = |detail| Err((Cause::JsonUnexpected, detail));
    let Some(value) = value else {
        return fail(format!("the body is no JSON: `{}`", shown(body)));
    };
    let field = lookup(value, &check.path);
    let good = match (&check.want, field) {
        (JsonWant::Absent, field) => field.is_none(),
        (_, None) => false,
        (JsonWant::Present, Some(_)) => true,
        (JsonWant::Null, Some(field)) => field.is_null(),
        (JsonWant::Bool(want), Some(field)) => field.as_bool() == Some(*want),
        (JsonWant::Number(want), Some(field)) => field.as_f64() == Some(*want),
        (JsonWant::Text(want), Some(field)) => field.as_str() == Some(want),
    };
    if good {
        return Ok(());
    }
    let got = match field {
        Some(field) => format!("got {}", shown(field.to_string().as_bytes())),
        None => format!("it is not in `{}`", shown(body)),
    };
    fail(format!("expected {} to be {}, {got}", check.path, check.want))
}

fn lookup<'a>(value: &'a Value, path: &JsonPath) -> Option<&'a Value> {
    path.parts.iter().try_fold(value, |value, part| match part {
        JsonPart::Name(name) => value.get(name),
        JsonPart::Index(index) => value.get(index),
    })
}

/// Bytes of the target as they may stand in a report: short, and without control characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let text = String::from_utf8_lossy(cut);
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut.len() < bytes.len() { format!("{clean}…") } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_program::{BodyCheck, StatusSet};

    fn json(path: &[&str], want: JsonWant) -> Check {
        let parts = path
            .iter()
            .map(|part| match part.parse() {
                Ok(index) => JsonPart::Index(index),
                Err(_) => JsonPart::Name((*part).into()),
            })
            .collect();
        Check::Json(JsonCheck { path: JsonPath { parts }, want })
    }

    fn cause(checks: &[Check], status: u16, body: &str) -> Option<Cause> {
        let elapsed = Duration::from_millis(5);
        verify(checks, Some(status), body.as_bytes(), elapsed).err().map(|(cause, _)| cause)
    }

    #[test]
    fn statuses() {
        assert_eq!(cause(&[], 200, ""), None);
        assert_eq!(cause(&[], 404, ""), Some(Cause::StatusUnexpected));
        let teapot = [Check::Status(StatusSet { ranges: vec![(418, 418)] })];
        assert_eq!(cause(&teapot, 418, ""), None);
        assert_eq!(cause(&teapot, 200, ""), Some(Cause::StatusUnexpected));
    }

    #[test]
    fn fields_and_bodies() {
        let body = r#"{"code":0,"data":{"items":[{"id":"x"}]},"none":null}"#;
        for (path, want, good) in [
            (&["code"][..], JsonWant::Number(0.0), true),
            (&["code"], JsonWant::Number(1.0), false),
            (&["data", "items", "0", "id"], JsonWant::Text("x".into()), true),
            (&["data", "items", "1", "id"], JsonWant::Present, false),
            (&["none"], JsonWant::Null, true),
            (&["gone"], JsonWant::Absent, true),
            (&["code"], JsonWant::Absent, false),
        ] {
            let want = [json(path, want)];
            assert_eq!(cause(&want, 200, body).is_none(), good, "{want:?}");
        }
        assert_eq!(
            cause(&[json(&["a"], JsonWant::Present)], 200, "<"),
            Some(Cause::JsonUnexpected)
        );
        let hello = [Check::Body(BodyCheck::Contains(b"hello".to_vec()))];
        assert_eq!(cause(&hello, 200, "well hello"), None);
        assert_eq!(cause(&hello, 200, "bye"), Some(Cause::BodyUnexpected));
        assert_eq!(cause(&[Check::Time(Duration::from_millis(5))], 200, ""), Some(Cause::TooSlow));
    }

    #[test]
    fn what_is_shown_is_short_and_harmless() {
        assert_eq!(shown(b"a\x1b[31mb\n"), "a [31mb ");
        assert!(shown(&[b'x'; 500]).chars().count() < 100);
    }
}
