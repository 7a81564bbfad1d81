//! Parses RFC 9535 queries: `$..items[?@.price < 10 && @.name].id`.
//!
//! It is more lenient than the RFC: names after a dot may contain `-` and start with `@`.

use serde_json::Value as Json;

use throng_base::Said;

use crate::pattern::Pattern;
use throng_markup::PathError;

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
    let mut reader = Reader { text, at: 1, depth: 0 };
    let segments = reader.segments()?;
    if reader.at < text.len() {
        let rest = &text[reader.at..];
        return Err(reader.wrong(say!("`{}` is not allowed here", shorten(rest))));
    }
    Ok(segments)
}

fn shorten(text: &str) -> &str {
    text.char_indices().nth(20).map_or(text, |(at, _)| &text[..at])
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// An error at the next character.
    fn wrong(&self, message: Said) -> PathError {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        PathError::new(
            (self.at, end),
            message,
            say!(
                "write a query as defined in RFC 9535: `$.items[*].id`, `$..items[?@.price < 10]`"
            ),
        )
    }

    fn expect(&mut self, token: &str) -> Result<(), PathError> {
        self.skip_space();
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.wrong(say!("`{token}` is missing here"))),
        }
    }

    fn deeper(&mut self) -> Result<(), PathError> {
        self.depth += 1;
        match self.depth > NEST_MAX {
            true => Err(self.wrong(say!("the query is nested too deeply"))),
            false => Ok(()),
        }
    }

    fn segments(&mut self) -> Result<Vec<Segment>, PathError> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.skip_space();
            let deep = self.eat("..");
            let selectors = if self.eat("[") {
                self.bracket()?
            } else if deep || self.eat(".") {
                vec![self.behind_dot()?]
            } else {
                self.at = before;
                return Ok(segments);
            };
            segments.push(Segment { deep, selectors });
        }
    }

    fn behind_dot(&mut self) -> Result<Selector, PathError> {
        if self.eat("*") {
            return Ok(Selector::Wildcard);
        }
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii();
        let rest = self.rest();
        let body = rest.strip_prefix('@').unwrap_or(rest);
        let length = rest.len() - body.trim_start_matches(part).len();
        let name = &rest[..length];
        if name.is_empty() || name == "@" || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.wrong(say!("a name or `*` is missing after the `.`")));
        }
        self.at += length;
        Ok(Selector::Name(name.to_string()))
    }

    fn bracket(&mut self) -> Result<Vec<Selector>, PathError> {
        let mut selectors = Vec::new();
        loop {
            self.skip_space();
            selectors.push(self.selector()?);
            self.skip_space();
            if self.eat("]") {
                return Ok(selectors);
            }
            if !self.eat(",") {
                return Err(self.wrong(say!("`]` or `,` is missing here")));
            }
        }
    }

    fn selector(&mut self) -> Result<Selector, PathError> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Selector::Wildcard)
            }
            Some('?') => {
                self.at += 1;
                self.deeper()?;
                let filter = self.any_of()?;
                self.depth -= 1;
                Ok(Selector::Filter(filter))
            }
            Some('\'' | '"') => Ok(Selector::Name(self.string()?)),
            Some('-' | ':' | '0'..='9') => self.index_or_slice(),
            _ => Err(self.wrong(say!("a name in quotes, an index, `*` or `?` is missing here"))),
        }
    }

    fn index_or_slice(&mut self) -> Result<Selector, PathError> {
        let start = self.integer()?;
        self.skip_space();
        if !self.eat(":") {
            return match start {
                Some(index) => Ok(Selector::Index(index)),
                None => Err(self.wrong(say!("an index is missing here"))),
            };
        }
        self.skip_space();
        let end = self.integer()?;
        self.skip_space();
        let step = if self.eat(":") {
            self.skip_space();
            self.integer()?
        } else {
            None
        };
        Ok(Selector::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn integer(&mut self) -> Result<Option<i64>, PathError> {
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let count = digits.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let text = &rest[..rest.len() - digits.len() + count];
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|n: &i64| n.abs() <= INDEX_MAX);
        match number.filter(|n| n.to_string() == text) {
            Some(number) => {
                self.at += text.len();
                Ok(Some(number))
            }
            None => Err(self.wrong(say!("`{}` is not an index", shorten(text)))),
        }
    }

    /// A text in single or double quotes.
    fn string(&mut self) -> Result<String, PathError> {
        let mut text = String::new();
        let quote = self.peek().unwrap_or('"');
        self.at += 1;
        loop {
            let Some(c) = self.peek() else {
                return Err(self.wrong(say!("the closing quote is missing")));
            };
            match c {
                '\0'..='\x1f' => {
                    return Err(self.wrong(say!("control characters must be escaped")));
                }
                '\\' => text.push(self.escaped(quote)?),
                c => {
                    self.at += c.len_utf8();
                    if c == quote {
                        return Ok(text);
                    }
                    text.push(c);
                }
            }
        }
    }

    fn escaped(&mut self, quote: char) -> Result<char, PathError> {
        let wrong = self.wrong(say!("this is not a JSON escape sequence"));
        self.at += 1;
        let c = self.peek().ok_or(wrong.clone())?;
        self.at += c.len_utf8();
        Ok(match c {
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '/' | '\\' => c,
            c if c == quote => c,
            'u' => {
                let first = self.hex().ok_or(wrong.clone())?;
                let code = if (0xd800..0xdc00).contains(&first) && self.eat("\\u") {
                    let second = self.hex().filter(|second| (0xdc00..0xe000).contains(second));
                    0x10000 + ((first - 0xd800) << 10) + second.ok_or(wrong.clone())? - 0xdc00
                } else {
                    first
                };
                char::from_u32(code).ok_or(wrong)?
            }
            _ => return Err(wrong),
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
        self.at += 4;
        u32::from_str_radix(digits, 16).ok().filter(|_| all)
    }

    fn any_of(&mut self) -> Result<Filter, PathError> {
        let mut parts = vec![self.all_of()?];
        loop {
            self.skip_space();
            if !self.eat("||") {
                return Ok(single(parts, Filter::Any));
            }
            parts.push(self.all_of()?);
        }
    }

    fn all_of(&mut self) -> Result<Filter, PathError> {
        let mut parts = vec![self.basic()?];
        loop {
            self.skip_space();
            if !self.eat("&&") {
                return Ok(single(parts, Filter::All));
            }
            parts.push(self.basic()?);
        }
    }

    fn basic(&mut self) -> Result<Filter, PathError> {
        self.skip_space();
        let negated = self.eat("!");
        self.skip_space();
        let filter = if self.eat("(") {
            self.deeper()?;
            let inner = self.any_of()?;
            self.depth -= 1;
            self.expect(")")?;
            inner
        } else if self.rest().starts_with("match(") || self.rest().starts_with("search(") {
            self.matches()?
        } else {
            self.test_or_comparison(negated)?
        };
        Ok(if negated { Filter::Not(Box::new(filter)) } else { filter })
    }

    fn matches(&mut self) -> Result<Filter, PathError> {
        let whole = self.eat("match(");
        let _ = whole || self.eat("search(");
        self.deeper()?;
        let text = self.value_operand()?;
        self.expect(",")?;
        self.skip_space();
        let at = self.at;
        let pattern = self.value_operand()?;
        self.depth -= 1;
        let compiled = match &pattern {
            Operand::Literal(Json::String(text)) => match compile(text, whole) {
                Some(pattern) => Some(pattern),
                None => {
                    let message = say!("this is not a regular expression");
                    self.at = at;
                    return Err(self.wrong(message));
                }
            },
            _ => None,
        };
        self.expect(")")?;
        Ok(Filter::Matches { text, pattern, compiled, whole })
    }

    fn test_or_comparison(&mut self, negated: bool) -> Result<Filter, PathError> {
        let start = self.at;
        let left = match self.peek() {
            Some('@' | '$') => {
                let inner = self.inner()?;
                if self.comparison_follows() {
                    Operand::Single(self.singular(inner, start)?)
                } else if self.before_single_equals() {
                    return Err(self.wrong(say!("write `==` to compare for equality")));
                } else {
                    return Ok(Filter::Exists(inner));
                }
            }
            _ => self.operand()?,
        };
        self.skip_space();
        if negated {
            return Err(self.wrong(say!("`!` needs parentheses around a comparison")));
        }
        let Some(comparison) = self.comparison() else {
            return Err(self.wrong(say!("a comparison such as `==` or `<` is missing here")));
        };
        self.skip_space();
        let right = self.value_operand()?;
        Ok(Filter::Compare(left, comparison, right))
    }

    fn comparison_follows(&mut self) -> bool {
        let before = self.at;
        self.skip_space();
        let found = self.comparison().is_some();
        self.at = before;
        found
    }

    /// Whether a lone `=` is next, which is then the position of the error.
    fn before_single_equals(&mut self) -> bool {
        let before = self.at;
        self.skip_space();
        let found = self.rest().starts_with('=');
        if !found {
            self.at = before;
        }
        found
    }

    fn comparison(&mut self) -> Option<Comparison> {
        [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ]
        .into_iter()
        .find_map(|(token, comparison)| self.eat(token).then_some(comparison))
    }

    /// A query that starts with `@` or `$`.
    fn inner(&mut self) -> Result<Inner, PathError> {
        self.skip_space();
        let absolute = self.eat("$");
        if !absolute && !self.eat("@") {
            return Err(self.wrong(say!("a query that starts with `@` or `$` is missing here")));
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
                (start, self.at),
                say!("only a query that selects a single value can be compared"),
                say!("use only names and indexes, or put the query in `count(…)` or `value(…)`"),
            )),
        }
    }

    /// An operand with one value: a literal, a query for a single value, or a function.
    fn value_operand(&mut self) -> Result<Operand, PathError> {
        self.skip_space();
        let start = self.at;
        match self.peek() {
            Some('@' | '$') => {
                let inner = self.inner()?;
                self.singular(inner, start).map(Operand::Single)
            }
            _ => self.operand(),
        }
    }

    fn operand(&mut self) -> Result<Operand, PathError> {
        if matches!(self.peek(), Some('\'' | '"')) {
            return Ok(Operand::Literal(Json::String(self.string()?)));
        }
        for (word, value) in
            [("true", Json::Bool(true)), ("false", Json::Bool(false)), ("null", Json::Null)]
        {
            if self.eat(word) {
                return Ok(Operand::Literal(value));
            }
        }
        if let Some('-' | '0'..='9') = self.peek() {
            return self.number();
        }
        self.deeper()?;
        let operand = if self.eat("length(") {
            Operand::Length(Box::new(self.value_operand()?))
        } else if self.eat("count(") {
            Operand::Count(self.inner()?)
        } else if self.eat("value(") {
            Operand::Value(self.inner()?)
        } else {
            let message = say!("a value, `@`, `$` or a function such as `length(` is missing here");
            return Err(self.wrong(message));
        };
        self.depth -= 1;
        self.expect(")")?;
        Ok(operand)
    }

    fn number(&mut self) -> Result<Operand, PathError> {
        let rest = self.rest();
        let part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let text = &rest[..rest.len() - rest.trim_start_matches(part).len()];
        match serde_json::from_str(text) {
            Ok(number @ Json::Number(_)) => {
                self.at += text.len();
                Ok(Operand::Literal(number))
            }
            _ => Err(self.wrong(say!("`{}` is not a number", shorten(text)))),
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
