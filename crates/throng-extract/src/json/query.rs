//! Parses RFC 9535 queries: `$..items[?@.price < 10 && @.name].id`.
//!
//! It is more lenient than the RFC: names after a dot may contain `-` and start with `@`.

use serde_json::Value as Json;

use throng_base::Said;

use crate::pattern::Pattern;
use throng_markup::{PathError, PathText};

/// Maximum nesting of filters, parentheses and functions.
const NEST_MAX: usize = 32;

/// The largest index (RFC 9535, 2.1: I-JSON).
pub(super) const INDEX_MAX: i64 = (1 << 53) - 1;

/// Selects from the children of a value, or also from those of all nested values.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) deep: bool,
    pub(super) selectors: Vec<Selector>,
}

#[derive(Clone, Debug)]
pub(super) enum Selector {
    Name(String),
    Wildcard,
    /// Counted from the end if negative.
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(Filter),
}

#[derive(Clone, Debug)]
pub(super) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Exists(Inner),
    Compare(Operand, Comparison, Operand),
    /// `match` compares the whole text, `search` a part of it.
    Matches {
        text: Operand,
        pattern: Operand,
        /// Compiled in advance if the pattern is a literal.
        compiled: Option<Pattern>,
        whole: bool,
    },
}

/// A query inside a filter.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    /// It starts with `$`, not with `@`.
    pub(super) absolute: bool,
    pub(super) segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
pub(super) enum Operand {
    Literal(Json),
    /// Matches at most one value.
    Single(Inner),
    Length(Box<Operand>),
    Count(Inner),
    Value(Inner),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The pattern of `match` and `search`. An invalid pattern matches nothing.
pub(super) fn compile(pattern: &str, whole: bool) -> Option<Pattern> {
    // A `.` matches neither a line feed nor a carriage return (RFC 9485, 5.3).
    let pattern = if whole { format!(r"\A(?R:{pattern})\z") } else { format!("(?R){pattern}") };
    Pattern::parse(&pattern).ok()
}

/// A complete query, which starts with `$`.
pub(super) fn parse_query(text: &str) -> Result<Vec<Segment>, PathError> {
    let scan = PathText { text, at: 1, spaces: &[' ', '\t', '\n', '\r'], help: HELP };
    let mut reader = QueryReader { scan, depth: 0 };
    let segments = reader.segments()?;
    if reader.scan.at < text.len() {
        let rest = &text[reader.scan.at..];
        return Err(reader.scan.wrong(say!("`{}` is not allowed here", shorten(rest))));
    }
    Ok(segments)
}

fn shorten(text: &str) -> &str {
    text.char_indices().nth(20).map_or(text, |(at, _)| &text[..at])
}

const HELP: Said =
    say!("write a query as defined in RFC 9535: `$.items[*].id`, `$..items[?@.price < 10]`");

struct QueryReader<'t> {
    scan: PathText<'t>,
    depth: usize,
}

impl QueryReader<'_> {
    fn deeper(&mut self) -> Result<(), PathError> {
        self.depth += 1;
        match self.depth > NEST_MAX {
            true => Err(self.scan.wrong(say!("the query is nested too deeply"))),
            false => Ok(()),
        }
    }

    fn segments(&mut self) -> Result<Vec<Segment>, PathError> {
        let mut segments = Vec::new();
        loop {
            let before = self.scan.at;
            self.scan.skip_space();
            let deep = self.scan.eat("..");
            let selectors = if self.scan.eat("[") {
                self.bracket()?
            } else if deep || self.scan.eat(".") {
                vec![self.behind_dot()?]
            } else {
                self.scan.at = before;
                return Ok(segments);
            };
            segments.push(Segment { deep, selectors });
        }
    }

    fn behind_dot(&mut self) -> Result<Selector, PathError> {
        if self.scan.eat("*") {
            return Ok(Selector::Wildcard);
        }
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii();
        let rest = self.scan.rest();
        let body = rest.strip_prefix('@').unwrap_or(rest);
        let length = rest.len() - body.trim_start_matches(part).len();
        let name = &rest[..length];
        if name.is_empty() || name == "@" || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.scan.wrong(say!("a name or `*` is missing after the `.`")));
        }
        self.scan.at += length;
        Ok(Selector::Name(name.to_string()))
    }

    fn bracket(&mut self) -> Result<Vec<Selector>, PathError> {
        let mut selectors = Vec::new();
        loop {
            self.scan.skip_space();
            selectors.push(self.selector()?);
            self.scan.skip_space();
            if self.scan.eat("]") {
                return Ok(selectors);
            }
            if !self.scan.eat(",") {
                return Err(self.scan.wrong(say!("`]` or `,` is missing here")));
            }
        }
    }

    fn selector(&mut self) -> Result<Selector, PathError> {
        match self.scan.peek() {
            _ if self.scan.eat("*") => Ok(Selector::Wildcard),
            _ if self.scan.eat("?") => {
                self.deeper()?;
                let filter = self.any_of()?;
                self.depth -= 1;
                Ok(Selector::Filter(filter))
            }
            Some('\'' | '"') => Ok(Selector::Name(self.string()?)),
            Some('-' | ':' | '0'..='9') => self.index_or_slice(),
            _ => {
                Err(self.scan.wrong(say!("a name in quotes, an index, `*` or `?` is missing here")))
            }
        }
    }

    fn index_or_slice(&mut self) -> Result<Selector, PathError> {
        let start = self.integer()?;
        self.scan.skip_space();
        if !self.scan.eat(":") {
            return match start {
                Some(index) => Ok(Selector::Index(index)),
                None => Err(self.scan.wrong(say!("an index is missing here"))),
            };
        }
        self.scan.skip_space();
        let end = self.integer()?;
        self.scan.skip_space();
        let step = match self.scan.eat(":") {
            true => {
                self.scan.skip_space();
                self.integer()?
            }
            false => None,
        };
        Ok(Selector::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn integer(&mut self) -> Result<Option<i64>, PathError> {
        let rest = self.scan.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let count = digits.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let text = &rest[..rest.len() - digits.len() + count];
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|n: &i64| n.abs() <= INDEX_MAX);
        match number.filter(|n| n.to_string() == text) {
            Some(number) => {
                self.scan.at += text.len();
                Ok(Some(number))
            }
            None => Err(self.scan.wrong(say!("`{}` is not an index", shorten(text)))),
        }
    }

    /// A text in single or double quotes.
    fn string(&mut self) -> Result<String, PathError> {
        let (start, quote) = (self.scan.at, self.scan.peek().unwrap_or('"'));
        self.scan.at += 1;
        let mut is_escaped = false;
        let end = self.scan.rest().find(|c| {
            let is_end = c == quote && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let Some(end) = end else {
            self.scan.at = self.scan.text.len();
            return Err(self.scan.wrong(say!("the closing quote is missing")));
        };
        let mut inner = self.scan.rest()[..end].to_string();
        self.scan.at += end + 1;
        if quote == '\'' {
            inner = inner.replace("\\'", "'").replace('"', "\\\"");
        }
        serde_json::from_str(&format!("\"{inner}\"")).map_err(|_| {
            let place = (start, self.scan.at);
            PathError::new(place, say!("this is not a valid JSON string"), HELP)
        })
    }

    fn any_of(&mut self) -> Result<Filter, PathError> {
        let mut parts = vec![self.all_of()?];
        loop {
            self.scan.skip_space();
            if !self.scan.eat("||") {
                return Ok(single(parts, Filter::Any));
            }
            parts.push(self.all_of()?);
        }
    }

    fn all_of(&mut self) -> Result<Filter, PathError> {
        let mut parts = vec![self.basic()?];
        loop {
            self.scan.skip_space();
            if !self.scan.eat("&&") {
                return Ok(single(parts, Filter::All));
            }
            parts.push(self.basic()?);
        }
    }

    fn basic(&mut self) -> Result<Filter, PathError> {
        self.scan.skip_space();
        let negated = self.scan.eat("!");
        self.scan.skip_space();
        let filter = if self.scan.eat("(") {
            self.deeper()?;
            let inner = self.any_of()?;
            self.depth -= 1;
            self.scan.expect(")")?;
            inner
        } else if self.scan.rest().starts_with("match(") || self.scan.rest().starts_with("search(")
        {
            self.matches()?
        } else {
            self.test_or_comparison(negated)?
        };
        Ok(if negated { Filter::Not(Box::new(filter)) } else { filter })
    }

    fn matches(&mut self) -> Result<Filter, PathError> {
        let whole = self.scan.eat("match(");
        let _ = whole || self.scan.eat("search(");
        self.deeper()?;
        let text = self.value_operand()?;
        self.scan.expect(",")?;
        self.scan.skip_space();
        let at = self.scan.at;
        let pattern = self.value_operand()?;
        self.depth -= 1;
        let compiled = match &pattern {
            Operand::Literal(Json::String(text)) => match compile(text, whole) {
                Some(pattern) => Some(pattern),
                None => {
                    let message = say!("this is not a regular expression");
                    self.scan.at = at;
                    return Err(self.scan.wrong(message));
                }
            },
            _ => None,
        };
        self.scan.expect(")")?;
        Ok(Filter::Matches { text, pattern, compiled, whole })
    }

    fn test_or_comparison(&mut self, negated: bool) -> Result<Filter, PathError> {
        let start = self.scan.at;
        let left = match self.scan.peek() {
            Some('@' | '$') => {
                let inner = self.inner()?;
                if self.comparison_follows() {
                    Operand::Single(self.singular(inner, start)?)
                } else if self.before_single_equals() {
                    return Err(self.scan.wrong(say!("write `==` to compare for equality")));
                } else {
                    return Ok(Filter::Exists(inner));
                }
            }
            _ => self.operand()?,
        };
        self.scan.skip_space();
        if negated {
            return Err(self.scan.wrong(say!("`!` needs parentheses around a comparison")));
        }
        let Some(comparison) = self.comparison() else {
            return Err(self.scan.wrong(say!("a comparison such as `==` or `<` is missing here")));
        };
        self.scan.skip_space();
        let right = self.value_operand()?;
        Ok(Filter::Compare(left, comparison, right))
    }

    fn comparison_follows(&mut self) -> bool {
        let before = self.scan.at;
        self.scan.skip_space();
        let found = self.comparison().is_some();
        self.scan.at = before;
        found
    }

    /// Whether a lone `=` is next, which is then the position of the error.
    fn before_single_equals(&mut self) -> bool {
        let before = self.scan.at;
        self.scan.skip_space();
        let found = self.scan.rest().starts_with('=');
        if !found {
            self.scan.at = before;
        }
        found
    }

    fn comparison(&mut self) -> Option<Comparison> {
        self.scan.eat_any([
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ])
    }

    /// A query that starts with `@` or `$`.
    fn inner(&mut self) -> Result<Inner, PathError> {
        self.scan.skip_space();
        let absolute = self.scan.eat("$");
        if !absolute && !self.scan.eat("@") {
            return Err(self
                .scan
                .wrong(say!("a query that starts with `@` or `$` is missing here")));
        }
        self.deeper()?;
        let segments = self.segments()?;
        self.depth -= 1;
        Ok(Inner { absolute, segments })
    }

    fn singular(&self, inner: Inner, start: usize) -> Result<Inner, PathError> {
        let single = inner.segments.iter().all(|segment| {
            let one = [Selector::Name(String::new()), Selector::Index(0)];
            !segment.deep
                && matches!(segment.selectors.as_slice(), [only] if one.iter()
                    .any(|kind| std::mem::discriminant(kind) == std::mem::discriminant(only)))
        });
        match single {
            true => Ok(inner),
            false => Err(PathError::new(
                (start, self.scan.at),
                say!("only a query that selects a single value can be compared"),
                say!("use only names and indexes, or put the query in `count(…)` or `value(…)`"),
            )),
        }
    }

    /// An operand with one value: a literal, a query for a single value, or a function.
    fn value_operand(&mut self) -> Result<Operand, PathError> {
        self.scan.skip_space();
        let start = self.scan.at;
        match self.scan.peek() {
            Some('@' | '$') => {
                let inner = self.inner()?;
                self.singular(inner, start).map(Operand::Single)
            }
            _ => self.operand(),
        }
    }

    fn operand(&mut self) -> Result<Operand, PathError> {
        if matches!(self.scan.peek(), Some('\'' | '"')) {
            return Ok(Operand::Literal(Json::String(self.string()?)));
        }
        let words =
            [("true", Json::Bool(true)), ("false", Json::Bool(false)), ("null", Json::Null)];
        if let Some(value) = self.scan.eat_any(words) {
            return Ok(Operand::Literal(value));
        }
        if let Some('-' | '0'..='9') = self.scan.peek() {
            return self.number();
        }
        self.deeper()?;
        let operand = if self.scan.eat("length(") {
            Operand::Length(Box::new(self.value_operand()?))
        } else if self.scan.eat("count(") {
            Operand::Count(self.inner()?)
        } else if self.scan.eat("value(") {
            Operand::Value(self.inner()?)
        } else {
            let message = say!("a value, `@`, `$` or a function such as `length(` is missing here");
            return Err(self.scan.wrong(message));
        };
        self.depth -= 1;
        self.scan.expect(")")?;
        Ok(operand)
    }

    fn number(&mut self) -> Result<Operand, PathError> {
        let rest = self.scan.rest();
        let part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let text = &rest[..rest.len() - rest.trim_start_matches(part).len()];
        match serde_json::from_str(text) {
            Ok(number @ Json::Number(_)) => {
                self.scan.at += text.len();
                Ok(Operand::Literal(number))
            }
            _ => Err(self.scan.wrong(say!("`{}` is not a number", shorten(text)))),
        }
    }
}

fn single(mut parts: Vec<Filter>, many: fn(Vec<Filter>) -> Filter) -> Filter {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => many(parts),
    }
}
