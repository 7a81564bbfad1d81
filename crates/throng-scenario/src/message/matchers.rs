//! Expected values: values, comparisons, patterns, and extractors.

use regex::bytes::Regex;
use throng_base::{Said, units};
use throng_expression::{Expression, Value, is_number};
use throng_extract::{Css, JsonPath, PathError, Pattern, XPath};
use throng_metrics::Comparison;
use throng_program::{Escape, Extractor, Matcher, Text};

use crate::ast;
use crate::keys;
use crate::read::Context;
use crate::read::foreign::{check_sign, warn_word};
use crate::read::template::single_expression;
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::shorten;

/// Maximum number of cached entries of each kind.
const REMEMBERED_MAX: usize = 1_000;

/// A pattern, path or selector; the word determines its kind.
pub(crate) fn read_extractor(
    cx: &mut Context<'_>,
    kind: &str,
    text: &str,
    place: Place,
) -> Option<Extractor> {
    let key = (kind.to_string(), text.to_string());
    if let Some(known) = cx.extractors.known.get(&key) {
        return Some(known.clone());
    }
    let extractor = compile_extractor(cx, kind, text, place)?;
    if cx.extractors.known.len() < REMEMBERED_MAX {
        cx.extractors.known.insert(key, extractor.clone());
    }
    Some(extractor)
}

fn compile_extractor(
    cx: &mut Context<'_>,
    kind: &str,
    text: &str,
    place: Place,
) -> Option<Extractor> {
    let (read, code, what): (Result<Extractor, PathError>, _, _) = match kind {
        "regex" => (
            Pattern::parse(text).map(Extractor::Pattern),
            "bad-pattern",
            say!("a regular expression"),
        ),
        "xpath" => {
            (XPath::parse(text).map(Extractor::XPath), "bad-xpath", say!("an XPath expression"))
        }
        _ => (Css::parse(text).map(Extractor::Css), "bad-selector", say!("a CSS selector")),
    };
    match read {
        Ok(extractor) => Some(extractor),
        Err(reason) => {
            let message = say!("`{}` is not {what}", shorten(text));
            let place = cx.place_inside(place, text, reason.start, reason.end);
            cx.refuse(code, place, message, reason.message, reason.help)
        }
    }
}

/// The bytes that end a message or a response.
pub(crate) fn read_delimiter(cx: &mut Context<'_>, node: &Node) -> Option<Box<[u8]>> {
    let text = cx.text(node, say!("a delimiter"))?;
    if text.is_empty() {
        return cx.bad_value(
            node,
            say!("a delimiter must have at least one character"),
            say!("write `\"\\n\"`"),
        );
    }
    if let Kind::Scalar { text: written, .. } = &node.kind
        && ["\\n", "\\r", "\\0", "\\t", "\\x"].iter().any(|escape| written.contains(escape))
        && !cx.written(node.place).starts_with('"')
    {
        let warning = cx
            .warning(
                "literal-backslash",
                say!("this delimiter contains a literal backslash"),
                node.place,
            )
            .label(say!("escape sequences work only in double quotes"))
            .help(say!("write `delimiter: \"\\r\\n\"`"));
        cx.note(warning);
    }
    Some(text.into_bytes().into())
}

/// A regular expression; its own limits bound the time to compile it.
pub(crate) fn read_regex(cx: &mut Context<'_>, node: &Node) -> Option<Regex> {
    let text = cx.text(node, say!("a regular expression"))?;
    if let Some(known) = cx.extractors.regexes.get(&text) {
        return Some(known.clone());
    }
    // Any pattern is a valid regular expression too; that parser has better errors.
    read_extractor(cx, "regex", &text, node.place)?;
    let mut builder = regex::bytes::RegexBuilder::new(&text);
    let regex = builder.size_limit(throng_extract::PATTERN_BYTES_MAX).build().ok()?;
    if cx.extractors.regexes.len() < REMEMBERED_MAX {
        cx.extractors.regexes.insert(text, regex.clone());
    }
    Some(regex)
}

/// The source of matches, and the types of their values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Typed values.
    Json,
    /// Texts.
    Text,
}

/// True if this key makes a map a condition on matches.
pub(crate) fn is_operator(key: &str) -> bool {
    keys::FOUND_CHECK.find(key).is_some()
}

/// `{count: ">= 3"}`, `{contains: text}`, or a value alone.
pub(crate) fn read_found(cx: &mut Context<'_>, node: &Node, meaning: Meaning) -> Option<Matcher> {
    if matches!(node.kind, Kind::Scalar { .. }) {
        return read_matcher(cx, node, meaning);
    }
    let fields = ast::FoundCheck::read(cx, node)?;
    match ast::one_of(cx, &[fields.contains, fields.equals, fields.matches, fields.count]) {
        Some((key, value)) if fields.count.is(key) => read_count(cx, value),
        Some((key, value)) => read_operator(cx, key, value),
        None if node.is_empty() => cx.wrong_type(
            node,
            say!("a value to match"),
            say!("write `present`, a value, or `{{count: 3}}`"),
        ),
        None => None,
    }
}

pub(crate) fn read_operator(cx: &mut Context<'_>, key: &Key, value: &Node) -> Option<Matcher> {
    match key.text.as_str() {
        "matches" => read_regex(cx, value).map(Matcher::Matches),
        "equals" => crate::read::template::read_text(cx, value, say!("text")).map(Matcher::Equals),
        _ => cx.template(value, say!("text"), Escape::None).map(Matcher::Contains),
    }
}

/// An expected value: `present`, `0`, `< 10`, `text`, `${saved.x}`.
pub(crate) fn read_matcher(cx: &mut Context<'_>, node: &Node, meaning: Meaning) -> Option<Matcher> {
    let help = say!("write `present`, `absent` or a value");
    let Kind::Scalar { text, plain } = &node.kind else {
        return cx.wrong_type(node, say!("a value"), help);
    };
    if let Some((comparison, number)) = parse_comparison(text)
        && !text.contains("${")
        && is_number(number.trim())
        && let Some(value) = Value::parse_number(number.trim())
    {
        return Some(Matcher::Number(comparison, value));
    }
    check_sign(cx, node)?;
    warn_word(cx, node);
    match (text.as_str(), plain, meaning) {
        ("present", true, _) => Some(Matcher::Present),
        ("absent", true, _) => Some(Matcher::Absent),
        ("", false, _) => Some(Matcher::Equals(Text::default())),
        (text, plain, Meaning::Json) if !text.contains("${") => Some(literal_matcher(text, *plain)),
        (_, _, Meaning::Json) if single_expression(node).is_some() => {
            cx.value_text(node).map(typed_matcher)
        }
        _ => cx.template(node, say!("the value of a field"), Escape::None).map(Matcher::Equals),
    }
}

/// The expected value of a field: a constant has its type.
fn typed_matcher(text: Text) -> Matcher {
    match text.as_expression().and_then(Expression::as_constant) {
        Some(Value::Null) => Matcher::Null,
        Some(Value::Bool(value)) => Matcher::Bool(*value),
        Some(value) if value.as_f64().is_some() => {
            Matcher::Number(Comparison::Equal, value.clone())
        }
        _ => Matcher::Equals(text),
    }
}

/// Splits `< 10` into the comparison and the value.
pub(crate) fn parse_comparison(text: &str) -> Option<(Comparison, &str)> {
    let words = [
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("==", Comparison::Equal),
        ("≤", Comparison::LessOrEqual),
        ("≥", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
        ("=", Comparison::Equal),
    ];
    let text = text.trim_start();
    words
        .into_iter()
        .find_map(|(word, comparison)| text.strip_prefix(word).map(|rest| (comparison, rest)))
}

fn read_count(cx: &mut Context<'_>, node: &Node) -> Option<Matcher> {
    let text = cx.text(node, say!("a count"))?;
    let (comparison, number) = parse_comparison(&text).unwrap_or((Comparison::Equal, &text));
    match units::parse_count(number) {
        Ok(0) if comparison == Comparison::Less => {
            cx.bad_value(node, say!("a count cannot be less than 0"), say!("write `{{count: 0}}`"))
        }
        Ok(count) => Some(Matcher::Count(comparison, count)),
        Err(reason) => {
            let message = say!("`{}` is not a count", shorten(&text));
            let help = say!("write `{{count: 3}}` or `{{count: \">= 3\"}}`");
            cx.refuse("bad-value", node.place, message, reason.message, help)
        }
    }
}

/// The expected value of a field on a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonMatcher {
    Present,
    Absent,
    Null,
    Bool(bool),
    Number(Value),
    Text(String),
}

/// `data.code=200`, `ok=true`, `name="x"`, or only `data.token`, which must exist.
pub fn parse_json_expectation(text: &str) -> Result<(JsonPath, JsonMatcher), Said> {
    let (path, matcher) = match text.split_once('=') {
        Some((path, value)) => (path, value_of(value.strip_prefix('=').unwrap_or(value).trim())),
        None => (text, JsonMatcher::Present),
    };
    let path = JsonPath::parse(path.trim()).map_err(|reason| reason.message)?;
    Ok((path, matcher))
}

fn value_of(text: &str) -> JsonMatcher {
    let quoted = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    match quoted('"').or(quoted('\'')) {
        Some(inner) => JsonMatcher::Text(inner.to_string()),
        None => plain_want(text),
    }
}

fn plain_want(text: &str) -> JsonMatcher {
    match text {
        "present" => JsonMatcher::Present,
        "absent" => JsonMatcher::Absent,
        "null" => JsonMatcher::Null,
        "true" => JsonMatcher::Bool(true),
        "false" => JsonMatcher::Bool(false),
        _ if is_number(text) => match Value::parse_number(text) {
            Some(number) => JsonMatcher::Number(number),
            None => JsonMatcher::Text(text.to_string()),
        },
        _ => JsonMatcher::Text(text.to_string()),
    }
}

/// The condition of a text without expressions.
pub(crate) fn literal_matcher(text: &str, plain: bool) -> Matcher {
    if !plain {
        return Matcher::Equals(Text::literal(text));
    }
    match plain_want(text) {
        JsonMatcher::Present => Matcher::Present,
        JsonMatcher::Absent => Matcher::Absent,
        JsonMatcher::Null => Matcher::Null,
        JsonMatcher::Bool(value) => Matcher::Bool(value),
        JsonMatcher::Number(value) => Matcher::Number(Comparison::Equal, value),
        JsonMatcher::Text(value) => Matcher::Equals(Text::literal(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read() {
        for (text, path, matcher) in [
            ("data.code=200", "data.code", JsonMatcher::Number(Value::Int(200))),
            ("code=0", "code", JsonMatcher::Number(Value::Int(0))),
            ("id=9007199254740993", "id", JsonMatcher::Number(Value::Int(9_007_199_254_740_993))),
            ("ok==true", "ok", JsonMatcher::Bool(true)),
            ("a[0].b='200'", "a[0].b", JsonMatcher::Text("200".into())),
            ("token", "token", JsonMatcher::Present),
            ("x = y=z", "x", JsonMatcher::Text("y=z".into())),
        ] {
            let (found, value) = parse_json_expectation(text).unwrap();
            assert_eq!((found.to_string().as_str(), value), (path, matcher), "{text}");
        }
        for text in ["", "=1", "a..b=1", "a[x]=1", "a[0=1", ".a"] {
            assert!(parse_json_expectation(text).is_err(), "{text}");
        }
    }
}
