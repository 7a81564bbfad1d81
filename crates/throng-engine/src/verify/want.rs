//! Whether a value is as expected, and the message if it is not.

use std::borrow::Cow;

use memchr::memmem;
use throng_base::units::format_duration;
use throng_expression::{Fault, Value};
use throng_metrics::{Cause, Comparison};
use throng_program::{Check, Pick, StatusSet, Text, Want};
use throng_protocol::framed::FieldPath;
use throng_protocol::mqtt::topic;

use throng_base::Said;

use super::{Looked, Seen};
use crate::failure::{Finding, shown};
use crate::scope::UserScope;

/// An expectation with its expressions evaluated.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    want: &'a Want,
    /// For `Equals`, `Contains` and `Topic`.
    text: Wording<'a>,
}

#[derive(Debug)]
enum Wording<'a> {
    None,
    Literal(&'a [u8]),
    Value(Value),
}

impl<'a> Wanted<'a> {
    pub(super) fn of(
        want: &'a Want,
        looked: &Looked<'_>,
        scope: &mut UserScope<'_>,
    ) -> Result<Wanted<'a>, Fault> {
        let text = match want {
            Want::Equals(text) | Want::Contains(text) | Want::Topic(text) => {
                Wording::of(text, looked, scope)?
            }
            _ => Wording::None,
        };
        Ok(Wanted { want, text })
    }

    /// Whether the value is as expected.
    pub(super) fn holds(&self, pick: &Pick, seen: &Seen<'_>) -> bool {
        if let Seen::Unreadable(_) = seen {
            return false;
        }
        match self.want {
            Want::Present => is_there(pick, seen),
            Want::Absent => !is_there(pick, seen),
            Want::Null => matches!(seen, Seen::Value(Value::Null)),
            Want::Bool(want) => bool_of(pick, seen) == Some(*want),
            Want::Number(comparison, want) => {
                let order = number_of(pick, seen).and_then(|number| number.compare(want));
                order.is_some_and(|order| comparison.holds_for(order))
            }
            Want::Statuses(set) => {
                let status = number_of(pick, seen).and_then(|number| number.as_i64());
                let status = status.and_then(|status| u16::try_from(status).ok());
                status.is_some_and(|status| set.contains(status))
            }
            Want::Equals(_) => self.text.is(seen),
            Want::Contains(_) => self.text.is_in(seen),
            Want::Topic(_) => self.text.filters(seen),
            Want::Matches(regex) => text_of(seen).is_some_and(|text| regex.is_match(&text)),
            Want::Count(comparison, want) => comparison.holds(count_of(seen) as f64, *want as f64),
            Want::True => matches!(seen, Seen::Value(Value::Bool(true))),
        }
    }

    /// A text and a number that look the same: both with their types, and what to write.
    fn differs_in_type(&self, seen: &Seen<'_>) -> Option<(Said, Said)> {
        let Seen::Value(value) = seen else { return None };
        match (self.want, value.as_text()) {
            (Want::Equals(_), None) if *self.text.written() == *written(value) => {
                let text = self.text.shown();
                let got = match value.as_f64() {
                    Some(_) => say!("the number {text}: write it without quotes"),
                    None => say!("the value {text}: write it without quotes"),
                };
                Some((say!("the text `{text}`"), got))
            }
            (Want::Number(Comparison::Equal, want), Some(text)) if *text == *want.to_text() => {
                let want = want.to_text();
                let got = say!("the text `{}`: write it in quotes", shown(text.as_bytes()));
                Some((say!("the number {want}"), got))
            }
            _ => None,
        }
    }

    /// `to be`, and `5`.
    fn words(&self, pick: &Pick) -> (Wish, Said) {
        match self.want {
            Want::Present => (Wish::Be, say!("found")),
            Want::Absent => (Wish::Be, say!("absent")),
            Want::Null => (Wish::Be, say!("null")),
            Want::Bool(want) => (Wish::Be, say!("{want}")),
            Want::Number(comparison, want) => {
                let number = match pick {
                    Pick::Time => time(want.as_f64().unwrap_or_default()),
                    _ => want.to_text().to_string(),
                };
                (Wish::Be, say!("{}{number}", sign(*comparison)))
            }
            Want::Statuses(set) => (Wish::Be, statuses(set)),
            Want::Equals(_) => (Wish::Be, say!("`{}`", self.text.shown())),
            Want::Contains(_) => (Wish::Contain, say!("{}", self.text.shown())),
            Want::Topic(_) => (Wish::Match, say!("{}", self.text.shown())),
            Want::Matches(regex) => (Wish::Match, say!("{}", shown(regex.as_str().as_bytes()))),
            Want::Count(comparison, want) => (Wish::Times, say!("{}{want}", sign(*comparison))),
            Want::True => (Wish::Be, say!("{}", true)),
        }
    }
}

impl<'a> Wording<'a> {
    fn of(
        text: &'a Text,
        looked: &Looked<'_>,
        scope: &mut UserScope<'_>,
    ) -> Result<Wording<'a>, Fault> {
        match text.as_literal() {
            Some(bytes) => Ok(Wording::Literal(bytes)),
            None => scope.with(looked, |scope| text.value(scope)).map(Wording::Value),
        }
    }

    /// Whether the value equals this. A literal is text; the result of an expression has its own
    /// type, but a text that contains a number, like all fields of CSV, also equals that number.
    fn is(&self, seen: &Seen<'_>) -> bool {
        match (self, seen) {
            (Wording::Literal(want), Seen::Bytes(bytes)) => want == bytes,
            (Wording::Literal(want), Seen::Value(value)) => value.as_octets() == Some(*want),
            (Wording::Value(want), Seen::Bytes(bytes)) => *written(want) == **bytes,
            (Wording::Value(want), Seen::Value(value)) => {
                let one_is_text = want.as_text().is_some() != value.as_text().is_some();
                let alike = one_is_text && want.as_list().is_none() && value.as_list().is_none();
                want.equals(value) || (alike && !value.is_null() && written(want) == written(value))
            }
            _ => false,
        }
    }

    fn is_in(&self, seen: &Seen<'_>) -> bool {
        if let (Wording::Value(want), Seen::Value(Value::List(items))) = (self, seen) {
            return items.iter().any(|item| want.equals(item));
        }
        let want = self.written();
        if let Seen::Value(Value::List(items)) = seen {
            return items.iter().any(|item| *written(item) == *want);
        }
        text_of(seen).is_some_and(|text| memmem::find(&text, &want).is_some())
    }

    /// Whether this is a topic filter that matches the topic.
    fn filters(&self, seen: &Seen<'_>) -> bool {
        let (filter, topic) = (self.written(), text_of(seen));
        let both = std::str::from_utf8(&filter)
            .ok()
            .zip(topic.as_deref().and_then(|topic| std::str::from_utf8(topic).ok()));
        both.is_some_and(|(filter, topic)| topic::matches(filter, topic))
    }

    fn written(&self) -> Cow<'_, [u8]> {
        match self {
            Wording::None => Cow::Borrowed(b""),
            Wording::Literal(bytes) => Cow::Borrowed(bytes),
            Wording::Value(value) => written(value),
        }
    }

    fn shown(&self) -> String {
        shown(&self.written())
    }
}

/// The value as text.
fn written(value: &Value) -> Cow<'_, [u8]> {
    if let Some(bytes) = value.as_octets() {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::new();
    value.write_text(&mut out);
    Cow::Owned(out)
}

fn text_of<'a>(seen: &'a Seen<'_>) -> Option<Cow<'a, [u8]>> {
    match seen {
        Seen::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Seen::Value(Value::Null) => None,
        Seen::Value(value) => Some(written(value)),
        _ => None,
    }
}

fn is_there(pick: &Pick, seen: &Seen<'_>) -> bool {
    match (pick, seen) {
        (_, Seen::Bytes(bytes)) => !bytes.is_empty(),
        // For an expression or a protobuf message, only null means missing.
        (Pick::Expression(_) | Pick::Proto(_), Seen::Value(value)) => !value.is_null(),
        (Pick::Field(paths), Seen::Value(value)) => {
            !(value.is_null() && paths.iter().any(FieldPath::is_of_protobuf))
        }
        (_, Seen::Value(_)) => true,
        (_, Seen::Values(values)) => !values.is_empty(),
        (_, Seen::Nothing | Seen::Unreadable(_)) => false,
    }
}

/// JSON and expressions have numbers and booleans; a match in text is parsed as one.
fn has_types(pick: &Pick) -> bool {
    matches!(pick, Pick::Json(_) | Pick::Field(_) | Pick::Expression(_))
}

fn bool_of(pick: &Pick, seen: &Seen<'_>) -> Option<bool> {
    match seen {
        Seen::Value(Value::Bool(value)) => Some(*value),
        seen if has_types(pick) => {
            let _ = seen;
            None
        }
        seen => match &*text_of(seen)? {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        },
    }
}

fn number_of(pick: &Pick, seen: &Seen<'_>) -> Option<Value> {
    let known = match seen {
        Seen::Value(value) if value.as_f64().is_some() => Some(value.clone()),
        _ => None,
    };
    if known.is_some() || has_types(pick) {
        return known;
    }
    Value::parse_number(std::str::from_utf8(&text_of(seen)?).ok()?.trim())
}

fn count_of(seen: &Seen<'_>) -> usize {
    match seen {
        Seen::Nothing | Seen::Unreadable(_) => 0,
        Seen::Values(values) => values.len(),
        Seen::Value(Value::List(items)) => items.len(),
        Seen::Value(_) | Seen::Bytes(_) => 1,
    }
}

/// The failure of a check: the cause, and what was found instead of what was expected.
pub(super) fn explained(
    check: &Check,
    wanted: &Wanted<'_>,
    seen: &Seen<'_>,
    looked: &Looked<'_>,
) -> Finding {
    let name = name_of(&check.pick);
    let (wish, mut words) = wanted.words(&check.pick);
    let types = wanted.differs_in_type(seen);
    let (seen, value) = match (&check.pick, seen) {
        (_, Seen::Unreadable(reason)) => (Found::Unreadable, (*reason).clone()),
        (Pick::Time, _) => (Found::Got, say!("{}", format_duration(looked.elapsed))),
        (Pick::Status, Seen::Nothing) => (Found::None, Said::default()),
        (Pick::Header(_) | Pick::Cookie(_) | Pick::Result(_), Seen::Nothing) => {
            (Found::Absent, Said::default())
        }
        (_, Seen::Nothing) => match looked.document.refusal() {
            Some(reason) => (Found::Unreadable, reason.said()),
            None => (Found::NotIn, say!("{}", shown(looked.document.bytes()))),
        },
        (_, Seen::Values(values)) => (Found::Times, say!("{}", values.len())),
        (_, Seen::Value(Value::List(items))) if matches!(check.want, Want::Count(..)) => {
            (Found::Times, say!("{}", items.len()))
        }
        (_, Seen::Bytes(bytes)) => (Found::Got, say!("`{}`", shown(bytes))),
        (_, Seen::Value(value)) => {
            let mut json = Vec::new();
            value.write_json(&mut json);
            (Found::Got, say!("{}", shown(&json)))
        }
    };
    let value = match types {
        None => value,
        Some((want, got)) => {
            words = want;
            got
        }
    };
    (cause_of(check), sentence(wish, seen).filled(&[&name, &words, &value]))
}

/// What was expected of a value.
#[derive(Clone, Copy)]
enum Wish {
    Be,
    Contain,
    Match,
    /// Is found this many times.
    Times,
}

/// What was found instead.
#[derive(Clone, Copy)]
enum Found {
    Got,
    Unreadable,
    None,
    Absent,
    NotIn,
    Times,
}

/// One complete sentence for each case, so that other languages can use their own word order.
fn sentence(wish: Wish, found: Found) -> Said {
    match (wish, found) {
        (Wish::Be, Found::Got) => say!("expected {{}} to be {{}}, got {{}}"),
        (Wish::Be, Found::Unreadable) => say!("expected {{}} to be {{}}, but {{}}"),
        (Wish::Be, Found::None) => say!("expected {{}} to be {{}}, but there is none"),
        (Wish::Be, Found::Absent) => say!("expected {{}} to be {{}}, but it is absent"),
        (Wish::Be, Found::NotIn) => say!("expected {{}} to be {{}}, but it is missing from `{{}}`"),
        (Wish::Be, Found::Times) => say!("expected {{}} to be {{}}, found {{}} times"),
        (Wish::Contain, Found::Got) => say!("expected {{}} to contain `{{}}`, got {{}}"),
        (Wish::Contain, Found::Unreadable) => say!("expected {{}} to contain `{{}}`, but {{}}"),
        (Wish::Contain, Found::None) => say!("expected {{}} to contain `{{}}`, but there is none"),
        (Wish::Contain, Found::Absent) => say!("expected {{}} to contain `{{}}`, but it is absent"),
        (Wish::Contain, Found::NotIn) => {
            say!("expected {{}} to contain `{{}}`, but it is missing from `{{}}`")
        }
        (Wish::Contain, Found::Times) => say!("expected {{}} to contain `{{}}`, found {{}} times"),
        (Wish::Match, Found::Got) => say!("expected {{}} to match `{{}}`, got {{}}"),
        (Wish::Match, Found::Unreadable) => say!("expected {{}} to match `{{}}`, but {{}}"),
        (Wish::Match, Found::None) => say!("expected {{}} to match `{{}}`, but there is none"),
        (Wish::Match, Found::Absent) => say!("expected {{}} to match `{{}}`, but it is absent"),
        (Wish::Match, Found::NotIn) => {
            say!("expected {{}} to match `{{}}`, but it is missing from `{{}}`")
        }
        (Wish::Match, Found::Times) => say!("expected {{}} to match `{{}}`, found {{}} times"),
        (Wish::Times, Found::Got) => say!("expected {{}} to have {{}} matches, got {{}}"),
        (Wish::Times, Found::Unreadable) => say!("expected {{}} to have {{}} matches, but {{}}"),
        (Wish::Times, Found::None | Found::Absent) => {
            say!("expected {{}} to have {{}} matches, found none")
        }
        (Wish::Times, Found::NotIn) => {
            say!("expected {{}} to have {{}} matches, but it is missing from `{{}}`")
        }
        (Wish::Times, Found::Times) => {
            say!("expected {{}} to have {{}} matches, found {{}}")
        }
    }
}

fn cause_of(check: &Check) -> Cause {
    let below = [Comparison::Less, Comparison::LessOrEqual];
    match (&check.pick, &check.want) {
        (Pick::Status, _) => Cause::StatusUnexpected,
        (Pick::Header(_), _) => Cause::HeaderUnexpected,
        (Pick::Body | Pick::Pattern(_), _) => Cause::BodyUnexpected,
        (Pick::Json(_), _) => Cause::JsonUnexpected,
        (Pick::Field(_) | Pick::Kind(..) | Pick::Proto(_) | Pick::Result(_), _) => {
            Cause::FieldUnexpected
        }
        (Pick::Time, Want::Number(comparison, _)) if below.contains(comparison) => Cause::TooSlow,
        _ => Cause::CheckFailed,
    }
}

/// The subject of a check or save.
pub(super) fn name_of(pick: &Pick) -> Said {
    match pick {
        Pick::Status => say!("the status"),
        Pick::Header(name) => say!("the header `{name}`"),
        Pick::Cookie(name) => say!("the cookie `{name}`"),
        Pick::Body => say!("the body"),
        Pick::Json(path) => say!("`json.{path}`"),
        Pick::Field(paths) => {
            let written = paths.first().map_or("", |path| &*path.written);
            say!("`{written}`")
        }
        Pick::Proto(path) => say!("`{}`", path.written),
        Pick::Result(name) | Pick::Kind(_, name) => say!("`{name}`"),
        Pick::XPath(path) => say!("xpath `{path}`"),
        Pick::Css(selector) => say!("css `{selector}`"),
        Pick::Pattern(pattern) => say!("pattern `{pattern}`"),
        Pick::Size => say!("the size"),
        Pick::Time => say!("the response time"),
        Pick::Digest(digest) => say!("the digest {digest}"),
        Pick::Expression(expression) => say!("`{}`", shown(expression.text().as_bytes())),
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Less => "< ",
        Comparison::LessOrEqual => "<= ",
        Comparison::Equal => "",
        Comparison::GreaterOrEqual => ">= ",
        Comparison::Greater => "> ",
    }
}

fn time(nanos: f64) -> String {
    format_duration(std::time::Duration::from_nanos(nanos.max(0.0) as u64))
}

fn statuses(set: &StatusSet) -> Said {
    let one = |(low, high): &(u16, u16)| match low == high {
        true => say!("{low}"),
        false => say!("{low}..{high}"),
    };
    let both = |before: Said, next: Said| say!("{before} or {next}");
    set.ranges.iter().map(one).reduce(both).unwrap_or_default()
}
