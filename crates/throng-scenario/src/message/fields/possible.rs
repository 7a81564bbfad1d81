//! Checks by its type whether a field can have the expected value.

use std::cmp::Ordering;

use throng_base::Said;
use throng_expression::Value;
use throng_metrics::Comparison;
use throng_program::{Extractor, Matcher, Text};
use throng_protocol::framed::{FieldPath, Range};

use super::{Kinds, SHOWN_MAX};
use crate::read::Context;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Kind, Node};
use crate::words::shorten;

/// The expected value as it is compared: enum names become numbers, or numbers become names. A
/// value that is impossible in all messages is a mistake.
pub(super) fn of_field(
    cx: &mut Context<'_>,
    (node, path): (&Node, &str),
    kinds: &Kinds,
    extractor: &Extractor,
    matcher: Matcher,
) -> Option<Matcher> {
    let ranges = kinds.ranges(extractor);
    let matcher = named(&ranges, matcher);
    // A missing field of a Protobuf message can be null.
    let may_be_null = match extractor {
        Extractor::Field(paths) => paths.iter().any(FieldPath::is_of_protobuf),
        _ => matches!(kinds, Kinds::Proto { .. }),
    };
    if may_be_null && matches!(matcher, Matcher::Null)
        || ranges.iter().any(|range| holds(range, &matcher))
    {
        return Some(matcher);
    }
    let written = match &node.kind {
        Kind::Scalar { text, .. } => shorten(text),
        _ => "this".into(),
    };
    let names = ranges.iter().flat_map(names).map(|(name, _)| name.as_str());
    let near = did_you_mean(&written, names);
    let message = say!("the field `{}` never matches `{written}`", shorten(path));
    let label = near_label(near, say!("this is never true"));
    cx.refuse("bad-value", node.place, message, label, help(&ranges[0], &matcher))
}

fn names(range: &Range) -> &[(String, i64)] {
    match range {
        Range::Whole { names, .. } | Range::Named(names) => names,
        _ => &[],
    }
}

/// The name of an enum value becomes its number, unless fields are seen by name.
fn named(ranges: &[Range], matcher: Matcher) -> Matcher {
    let is_name = |range: &Range| matches!(range, Range::Named(_));
    if ranges.iter().any(is_name) {
        let mut known = ranges.iter().filter(|_| ranges.iter().all(is_name)).flat_map(names);
        return match matcher {
            Matcher::Number(Comparison::Equal, number) => {
                match known.find(|(_, value)| Value::Int(*value).equals(&number)) {
                    Some((name, _)) => Matcher::Equals(Text::literal(name.as_bytes())),
                    None => Matcher::Number(Comparison::Equal, number),
                }
            }
            other => other,
        };
    }
    let Matcher::Equals(text) = &matcher else { return matcher };
    let Some(name) = text.as_literal().and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
        return matcher;
    };
    let found = ranges.iter().flat_map(names).find(|(known, _)| known == name);
    match found {
        Some((_, value)) => Matcher::Equals(number(*value)),
        None => matcher,
    }
}

fn number(value: i64) -> Text {
    Text::constant(Value::Int(value))
}

fn holds(range: &Range, matcher: &Matcher) -> bool {
    let literal = matches!(matcher, Matcher::Equals(text) if text.as_literal().is_some());
    match (range, matcher) {
        (Range::Any, _) => true,
        (Range::Whole { low, high, .. }, Matcher::Number(comparison, number)) => {
            let holds = |end: i128| {
                let order = whole(end).compare(number);
                order.is_some_and(|order| comparison.holds_for(order))
            };
            match comparison {
                Comparison::Equal => is_whole(number) && is_within(number, *low, *high),
                Comparison::Less | Comparison::LessOrEqual => holds(*low),
                Comparison::Greater | Comparison::GreaterOrEqual => holds(*high),
            }
        }
        (Range::Bool | Range::Text | Range::Bytes, Matcher::Number(..)) => false,
        (Range::Bool, Matcher::Bool(_)) => true,
        (_, Matcher::Bool(_) | Matcher::Null) => false,
        (Range::Named(names), Matcher::Equals(text)) => {
            let is_name = |bytes: &[u8]| names.iter().any(|(name, _)| name.as_bytes() == bytes);
            text.as_literal().is_none_or(is_name)
        }
        // A number without a name stays a number, but enum values are not ordered.
        (Range::Named(_), Matcher::Number(comparison, number)) => {
            *comparison == Comparison::Equal && is_whole(number)
        }
        (Range::Whole { .. } | Range::Float | Range::Bool, Matcher::Equals(_)) => !literal,
        _ => true,
    }
}

fn is_whole(number: &Value) -> bool {
    match number {
        Value::Float(float) => float.fract() == 0.0,
        _ => true,
    }
}

fn is_within(number: &Value, low: i128, high: i128) -> bool {
    let order = |end: i128| number.compare(&whole(end));
    order(low).is_some_and(Ordering::is_ge) && order(high).is_some_and(Ordering::is_le)
}

/// The end of a range: fields have at most 64 bits.
fn whole(end: i128) -> Value {
    i64::try_from(end).map_or_else(|_| Value::UInt(end as u64), Value::Int)
}

fn help(range: &Range, matcher: &Matcher) -> Said {
    let listed = |names: &[(String, i64)]| {
        let list = names.iter().take(SHOWN_MAX).map(|(name, value)| format!("`{name}` ({value})"));
        say!("the names of its values are {}", list.collect::<Vec<_>>().join(", "))
    };
    match range {
        Range::Named(names) => listed(names),
        Range::Whole { names, .. }
            if !names.is_empty() && !matches!(matcher, Matcher::Number(..)) =>
        {
            listed(names)
        }
        Range::Whole { low, high, .. } => say!("its value is a whole number from {low} to {high}"),
        Range::Float => say!("its value is a number"),
        Range::Bool => say!("its value is `true` or `false`"),
        Range::Text => say!("its value is text: put a number, `true` or `false` in quotes"),
        Range::Bytes | Range::Any => say!("its value is bytes: compare it with text"),
    }
}
