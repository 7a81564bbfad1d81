//! Evaluates RFC 9535 queries. The number of steps is limited: `$..*..*..*` on a malicious body
//! would take forever.

use std::cmp::Ordering;

use serde_json::Value as Json;
use throng_expression::Value;

use super::query::{Comparison, Filter, Inner, Operand, Segment, Selector, compile};
use throng_markup::{Refusal, Work};

/// Most values that one query may visit: some ten milliseconds.
const STEPS_MAX: u64 = 1_000_000;

/// Cost of compiling a pattern from the body, in steps.
const COMPILE_STEPS: usize = 10_000;

/// The values at `segments`, in the order of RFC 9535.
pub(super) fn find<'v>(segments: &[Segment], root: &'v Json) -> Result<Vec<&'v Json>, Refusal> {
    let mut search = Search { root, work: Work::new(STEPS_MAX) };
    search.run(segments, root)
}

struct Search<'v> {
    root: &'v Json,
    work: Work,
}

impl<'v> Search<'v> {
    fn run(&mut self, segments: &[Segment], from: &'v Json) -> Result<Vec<&'v Json>, Refusal> {
        let mut values = vec![from];
        for segment in segments {
            let mut next = Vec::new();
            for value in values {
                match segment.deep {
                    true => self.select_deep(segment, value, &mut next)?,
                    false => self.select(segment, value, &mut next)?,
                }
            }
            values = next;
        }
        Ok(values)
    }

    /// The value itself and all nested ones, parents first, in order.
    fn select_deep(
        &mut self,
        segment: &Segment,
        value: &'v Json,
        out: &mut Vec<&'v Json>,
    ) -> Result<(), Refusal> {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            self.select(segment, value, out)?;
            let before = open.len();
            match value {
                Json::Array(items) => open.extend(items),
                Json::Object(entries) => open.extend(entries.values()),
                _ => {}
            }
            self.work.spend(open.len() - before)?;
            open[before..].reverse();
        }
        Ok(())
    }

    fn select(
        &mut self,
        segment: &Segment,
        value: &'v Json,
        out: &mut Vec<&'v Json>,
    ) -> Result<(), Refusal> {
        for selector in &segment.selectors {
            self.work.spend(1)?;
            match selector {
                Selector::Name(name) => {
                    out.extend(value.as_object().and_then(|entries| entries.get(name)));
                }
                Selector::Index(index) => out.extend(value.as_array().and_then(|items| {
                    items.get(usize::try_from(from_end(*index, items.len())).ok()?)
                })),
                Selector::Slice { start, end, step } => {
                    if let Json::Array(items) = value {
                        self.slice(items, (*start, *end, *step), out)?;
                    }
                }
                Selector::Wildcard => {
                    for child in children(value) {
                        self.work.spend(1)?;
                        out.push(child);
                    }
                }
                Selector::Filter(filter) => {
                    for child in children(value) {
                        if self.holds(filter, child)? {
                            out.push(child);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// RFC 9535, 2.3.4.2.2.
    fn slice(
        &mut self,
        items: &'v [Json],
        (start, end, step): (Option<i64>, Option<i64>, i64),
        out: &mut Vec<&'v Json>,
    ) -> Result<(), Refusal> {
        let length = items.len() as i64;
        let bound = |index: Option<i64>, default: i64, low: i64, high: i64| {
            from_end(index.unwrap_or(default), items.len()).clamp(low, high)
        };
        let (mut at, until) = match step {
            0 => return Ok(()),
            1.. => (bound(start, 0, 0, length), bound(end, length, 0, length)),
            _ => (
                bound(start, length - 1, -1, length - 1),
                end.map_or(-1, |end| bound(Some(end), 0, -1, length - 1)),
            ),
        };
        while (step > 0 && at < until) || (step < 0 && at > until) {
            self.work.spend(1)?;
            out.extend(usize::try_from(at).ok().and_then(|at| items.get(at)));
            at += step;
        }
        Ok(())
    }

    fn holds(&mut self, filter: &Filter, value: &'v Json) -> Result<bool, Refusal> {
        self.work.spend(1)?;
        Ok(match filter {
            Filter::Any(parts) => {
                for part in parts {
                    if self.holds(part, value)? {
                        return Ok(true);
                    }
                }
                false
            }
            Filter::All(parts) => {
                for part in parts {
                    if !self.holds(part, value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Filter::Not(inner) => !self.holds(inner, value)?,
            Filter::Exists(inner) => !self.inner(inner, value)?.is_empty(),
            Filter::Compare(left, comparison, right) => {
                let left = self.operand(left, value)?;
                let right = self.operand(right, value)?;
                self.compare(left.get(), *comparison, right.get())?
            }
            Filter::Matches { text, pattern, compiled, whole } => {
                let text = self.operand(text, value)?;
                let Some(Json::String(text)) = text.get() else { return Ok(false) };
                self.work.spend(text.len() / 16)?;
                if let Some(pattern) = compiled {
                    return Ok(pattern.is_match(text.as_bytes()));
                }
                let pattern = self.operand(pattern, value)?;
                let Some(Json::String(pattern)) = pattern.get() else { return Ok(false) };
                self.work.spend(COMPILE_STEPS + pattern.len() * 16)?;
                compile(pattern, *whole).is_some_and(|pattern| pattern.is_match(text.as_bytes()))
            }
        })
    }

    fn inner(&mut self, inner: &Inner, value: &'v Json) -> Result<Vec<&'v Json>, Refusal> {
        self.run(&inner.segments, if inner.absolute { self.root } else { value })
    }

    fn operand<'o>(&mut self, operand: &'o Operand, value: &'v Json) -> Result<Held<'o>, Refusal>
    where
        'v: 'o,
    {
        Ok(match operand {
            Operand::Literal(literal) => Held::There(literal),
            Operand::Single(inner) => {
                let found = self.inner(inner, value)?;
                found.first().map_or(Held::Nothing, |value| Held::There(value))
            }
            Operand::Value(inner) => match self.inner(inner, value)?.as_slice() {
                [only] => Held::There(only),
                _ => Held::Nothing,
            },
            Operand::Count(inner) => Held::Made(Json::from(self.inner(inner, value)?.len())),
            Operand::Length(of) => {
                let length = match self.operand(of, value)?.get() {
                    Some(Json::String(text)) => {
                        self.work.spend(text.len() / 16)?;
                        text.chars().count()
                    }
                    Some(Json::Array(items)) => items.len(),
                    Some(Json::Object(entries)) => entries.len(),
                    _ => return Ok(Held::Nothing),
                };
                Held::Made(Json::from(length))
            }
        })
    }

    /// RFC 9535, 2.3.5.2.2; a missing value equals only another missing one.
    fn compare(
        &mut self,
        left: Option<&Json>,
        comparison: Comparison,
        right: Option<&Json>,
    ) -> Result<bool, Refusal> {
        let equal = match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => self.same(left, right)?,
            _ => false,
        };
        let order = match (left, right) {
            (Some(Json::Number(left)), Some(Json::Number(right))) => order(left, right),
            (Some(Json::String(left)), Some(Json::String(right))) => Some(left.cmp(right)),
            _ => None,
        };
        Ok(match comparison {
            Comparison::Equal => equal,
            Comparison::NotEqual => !equal,
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::LessOrEqual => equal || order == Some(Ordering::Less),
            Comparison::GreaterOrEqual => equal || order == Some(Ordering::Greater),
        })
    }

    /// Recursion is limited by the depth of the parsed JSON.
    fn same(&mut self, left: &Json, right: &Json) -> Result<bool, Refusal> {
        self.work.spend(1)?;
        Ok(match (left, right) {
            (Json::Number(left), Json::Number(right)) => {
                order(left, right) == Some(Ordering::Equal)
            }
            (Json::String(left), Json::String(right)) => {
                self.work.spend(left.len().min(right.len()) / 64)?;
                left == right
            }
            (Json::Array(left), Json::Array(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(right) {
                    if !self.same(left, right)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Json::Object(left), Json::Object(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (name, left) in left {
                    let Some(right) = right.get(name) else { return Ok(false) };
                    if !self.same(left, right)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => left == right,
        })
    }
}

/// The value of an operand.
enum Held<'o> {
    Nothing,
    There(&'o Json),
    Made(Json),
}

impl Held<'_> {
    fn get(&self) -> Option<&Json> {
        match self {
            Held::Nothing => None,
            Held::There(value) => Some(value),
            Held::Made(value) => Some(value),
        }
    }
}

fn from_end(index: i64, length: usize) -> i64 {
    if index < 0 { index + length as i64 } else { index }
}

fn children(value: &Json) -> Box<dyn Iterator<Item = &Json> + '_> {
    match value {
        Json::Array(items) => Box::new(items.iter()),
        Json::Object(entries) => Box::new(entries.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn order(left: &serde_json::Number, right: &serde_json::Number) -> Option<Ordering> {
    let value = |number: &serde_json::Number| Value::from_json(&Json::Number(number.clone()));
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => value(left).compare(&value(right)),
    }
}
