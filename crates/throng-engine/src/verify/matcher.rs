//! Whether a value is as expected, and the message if it is not.

use std::borrow::Cow;

use memchr::memmem;
use throng_base::units::format_duration;
use throng_expression::{EvaluationError, Value};
use throng_metrics::{Cause, Comparison};
use throng_program::{Check, Extractor, Matcher, StatusSet, Text};
use throng_protocol::framed::FieldPath;
use throng_protocol::mqtt::topic;

use throng_base::Said;

use super::{Extracted, Looked};
use crate::failure::{Finding, shown};
use crate::scope::UserScope;

/// An expectation with its expressions evaluated.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    matcher: &'a Matcher,
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
        matcher: &'a Matcher,
        looked: &Looked<'_>,
        scope: &mut UserScope<'_>,
    ) -> Result<Wanted<'a>, EvaluationError> {
        let text = match matcher {
            Matcher::Equals(text) | Matcher::Contains(text) | Matcher::Topic(text) => {
                Wording::of(text, looked, scope)?
            }
            _ => Wording::None,
        };
        Ok(Wanted { matcher, text })
    }

    /// Whether the value is as expected.
    pub(super) fn holds(&self, extractor: &Extractor, seen: &Extracted<'_>) -> bool {
        if let Extracted::Unreadable(_) = seen {
            return false;
        }
        match self.matcher {
            Matcher::Present => is_there(extractor, seen),
            Matcher::Absent => !is_there(extractor, seen),
            Matcher::Null => matches!(seen, Extracted::Value(Value::Null)),
            Matcher::Bool(matcher) => bool_of(extractor, seen) == Some(*matcher),
            Matcher::Number(comparison, matcher) => {
                let order = number_of(extractor, seen).and_then(|number| number.compare(matcher));
                order.is_some_and(|order| comparison.holds_for(order))
            }
            Matcher::Statuses(set) => {
                let status = number_of(extractor, seen).and_then(|number| number.as_i64());
                let status = status.and_then(|status| u16::try_from(status).ok());
                status.is_some_and(|status| set.contains(status))
            }
            Matcher::Equals(_) => self.text.is(seen),
            Matcher::Contains(_) => self.text.is_in(seen),
            Matcher::Topic(_) => self.text.filters(seen),
            Matcher::Matches(regex) => text_of(seen).is_some_and(|text| regex.is_match(&text)),
            Matcher::Count(comparison, matcher) => {
                comparison.holds(count_of(seen) as f64, *matcher as f64)
            }
            Matcher::True => matches!(seen, Extracted::Value(Value::Bool(true))),
        }
    }

    /// A text and a number that look the same: both with their types, and what to write.
    fn differs_in_type(&self, seen: &Extracted<'_>) -> Option<(Said, Said)> {
        let Extracted::Value(value) = seen else { return None };
        match (self.matcher, value.as_text()) {
            (Matcher::Equals(_), None) if *self.text.written() == *written(value) => {
                let text = self.text.shown();
                let got = match value.as_f64() {
                    Some(_) => say!("the number {text}: write it without quotes"),
                    None => say!("the value {text}: write it without quotes"),
                };
                Some((say!("the text `{text}`"), got))
            }
            (Matcher::Number(Comparison::Equal, matcher), Some(text))
                if *text == *matcher.to_text() =>
            {
                let matcher = matcher.to_text();
                let got = say!("the text `{}`: write it in quotes", shown(text.as_bytes()));
                Some((say!("the number {matcher}"), got))
            }
            _ => None,
        }
    }

    /// `to be`, and `5`.
    fn words(&self, extractor: &Extractor) -> (Wish, Said) {
        match self.matcher {
            Matcher::Present => (Wish::Be, say!("found")),
            Matcher::Absent => (Wish::Be, say!("absent")),
            Matcher::Null => (Wish::Be, say!("null")),
            Matcher::Bool(matcher) => (Wish::Be, say!("{matcher}")),
            Matcher::Number(comparison, matcher) => {
                let number = match extractor {
                    Extractor::Time => time(matcher.as_f64().unwrap_or_default()),
                    _ => matcher.to_text().to_string(),
                };
                (Wish::Be, say!("{}{number}", sign(*comparison)))
            }
            Matcher::Statuses(set) => (Wish::Be, statuses(set)),
            Matcher::Equals(_) => (Wish::Be, say!("`{}`", self.text.shown())),
            Matcher::Contains(_) => (Wish::Contain, say!("{}", self.text.shown())),
            Matcher::Topic(_) => (Wish::Match, say!("{}", self.text.shown())),
            Matcher::Matches(regex) => (Wish::Match, say!("{}", shown(regex.as_str().as_bytes()))),
            Matcher::Count(comparison, matcher) => {
                (Wish::Times, say!("{}{matcher}", sign(*comparison)))
            }
            Matcher::True => (Wish::Be, say!("{}", true)),
        }
    }
}

impl<'a> Wording<'a> {
    fn of(
        text: &'a Text,
        looked: &Looked<'_>,
        scope: &mut UserScope<'_>,
    ) -> Result<Wording<'a>, EvaluationError> {
        match text.as_literal() {
            Some(bytes) => Ok(Wording::Literal(bytes)),
            None => scope.with(looked, |scope| text.value(scope)).map(Wording::Value),
        }
    }

    /// Whether the value equals this. A literal is text; the result of an expression has its own
    /// type, but a text that contains a number, like all fields of CSV, also equals that number.
    fn is(&self, seen: &Extracted<'_>) -> bool {
        match (self, seen) {
            (Wording::Literal(matcher), Extracted::Bytes(bytes)) => matcher == bytes,
            (Wording::Literal(matcher), Extracted::Value(value)) => {
                value.as_octets() == Some(*matcher)
            }
            (Wording::Value(matcher), Extracted::Bytes(bytes)) => *written(matcher) == **bytes,
            (Wording::Value(matcher), Extracted::Value(value)) => {
                let one_is_text = matcher.as_text().is_some() != value.as_text().is_some();
                let alike = one_is_text && matcher.as_list().is_none() && value.as_list().is_none();
                matcher.equals(value)
                    || (alike && !value.is_null() && written(matcher) == written(value))
            }
            _ => false,
        }
    }

    fn is_in(&self, seen: &Extracted<'_>) -> bool {
        if let (Wording::Value(matcher), Extracted::Value(Value::List(items))) = (self, seen) {
            return items.iter().any(|item| matcher.equals(item));
        }
        let matcher = self.written();
        if let Extracted::Value(Value::List(items)) = seen {
            return items.iter().any(|item| *written(item) == *matcher);
        }
        text_of(seen).is_some_and(|text| memmem::find(&text, &matcher).is_some())
    }

    /// Whether this is a topic filter that matches the topic.
    fn filters(&self, seen: &Extracted<'_>) -> bool {
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

fn text_of<'a>(seen: &'a Extracted<'_>) -> Option<Cow<'a, [u8]>> {
    match seen {
        Extracted::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Extracted::Value(Value::Null) => None,
        Extracted::Value(value) => Some(written(value)),
        _ => None,
    }
}

fn is_there(extractor: &Extractor, seen: &Extracted<'_>) -> bool {
    match (extractor, seen) {
        (_, Extracted::Bytes(bytes)) => !bytes.is_empty(),
        // For an expression or a protobuf message, only null means missing.
        (Extractor::Expression(_) | Extractor::Proto(_), Extracted::Value(value)) => {
            !value.is_null()
        }
        (Extractor::Field(paths), Extracted::Value(value)) => {
            !(value.is_null() && paths.iter().any(FieldPath::is_of_protobuf))
        }
        (_, Extracted::Value(_)) => true,
        (_, Extracted::Values(values)) => !values.is_empty(),
        (_, Extracted::Nothing | Extracted::Unreadable(_)) => false,
    }
}

/// JSON and expressions have numbers and booleans; a match in text is parsed as one.
fn has_types(extractor: &Extractor) -> bool {
    matches!(extractor, Extractor::Json(_) | Extractor::Field(_) | Extractor::Expression(_))
}

fn bool_of(extractor: &Extractor, seen: &Extracted<'_>) -> Option<bool> {
    match seen {
        Extracted::Value(Value::Bool(value)) => Some(*value),
        _ if has_types(extractor) => None,
        seen => match &*text_of(seen)? {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        },
    }
}

fn number_of(extractor: &Extractor, seen: &Extracted<'_>) -> Option<Value> {
    let known = match seen {
        Extracted::Value(value) if value.as_f64().is_some() => Some(value.clone()),
        _ => None,
    };
    if known.is_some() || has_types(extractor) {
        return known;
    }
    Value::parse_number(std::str::from_utf8(&text_of(seen)?).ok()?.trim())
}

fn count_of(seen: &Extracted<'_>) -> usize {
    match seen {
        Extracted::Nothing | Extracted::Unreadable(_) => 0,
        Extracted::Values(values) => values.len(),
        Extracted::Value(Value::List(items)) => items.len(),
        Extracted::Value(_) | Extracted::Bytes(_) => 1,
    }
}

/// The failure of a check: the cause, and what was found instead of what was expected.
pub(super) fn explained(
    check: &Check,
    wanted: &Wanted<'_>,
    seen: &Extracted<'_>,
    looked: &Looked<'_>,
) -> Finding {
    let name = name_of(&check.extractor);
    let (wish, mut words) = wanted.words(&check.extractor);
    let types = wanted.differs_in_type(seen);
    let (seen, value) = match (&check.extractor, seen) {
        (_, Extracted::Unreadable(reason)) => (Found::Unreadable, (*reason).clone()),
        (Extractor::Time, _) => (Found::Got, say!("{}", format_duration(looked.elapsed))),
        (Extractor::Status, Extracted::Nothing) => (Found::None, Said::default()),
        (
            Extractor::Header(_) | Extractor::Cookie(_) | Extractor::Result(_),
            Extracted::Nothing,
        ) => (Found::Absent, Said::default()),
        (_, Extracted::Nothing) => match looked.document.refusal() {
            Some(reason) => (Found::Unreadable, reason.said()),
            None => (Found::NotIn, say!("{}", shown(looked.document.bytes()))),
        },
        (_, Extracted::Values(values)) => (Found::Times, say!("{}", values.len())),
        (_, Extracted::Value(Value::List(items)))
            if matches!(check.matcher, Matcher::Count(..)) =>
        {
            (Found::Times, say!("{}", items.len()))
        }
        (_, Extracted::Bytes(bytes)) => (Found::Got, say!("`{}`", shown(bytes))),
        (_, Extracted::Value(value)) => {
            let mut json = Vec::new();
            value.write_json(&mut json);
            (Found::Got, say!("{}", shown(&json)))
        }
    };
    let value = match types {
        None => value,
        Some((matcher, got)) => {
            words = matcher;
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
    match (&check.extractor, &check.matcher) {
        (Extractor::Status, _) => Cause::StatusUnexpected,
        (Extractor::Header(_), _) => Cause::HeaderUnexpected,
        (Extractor::Body | Extractor::Pattern(_), _) => Cause::BodyUnexpected,
        (Extractor::Json(_), _) => Cause::JsonUnexpected,
        (
            Extractor::Field(_) | Extractor::Kind(..) | Extractor::Proto(_) | Extractor::Result(_),
            _,
        ) => Cause::FieldUnexpected,
        (Extractor::Time, Matcher::Number(comparison, _)) if below.contains(comparison) => {
            Cause::TooSlow
        }
        _ => Cause::CheckFailed,
    }
}

/// The subject of a check or save.
pub(super) fn name_of(extractor: &Extractor) -> Said {
    match extractor {
        Extractor::Status => say!("the status"),
        Extractor::Header(name) => say!("the header `{name}`"),
        Extractor::Cookie(name) => say!("the cookie `{name}`"),
        Extractor::Body => say!("the body"),
        Extractor::Json(path) => say!("`json.{path}`"),
        Extractor::Field(paths) => {
            let written = paths.first().map_or("", |path| &*path.written);
            say!("`{written}`")
        }
        Extractor::Proto(path) => say!("`{}`", path.written),
        Extractor::Result(name) | Extractor::Kind(_, name) => say!("`{name}`"),
        Extractor::XPath(path) => say!("xpath `{path}`"),
        Extractor::Css(selector) => say!("css `{selector}`"),
        Extractor::Pattern(pattern) => say!("pattern `{pattern}`"),
        Extractor::Size => say!("the size"),
        Extractor::Time => say!("the response time"),
        Extractor::Digest(digest) => say!("the digest {digest}"),
        Extractor::Expression(expression) => say!("`{}`", shown(expression.text().as_bytes())),
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
