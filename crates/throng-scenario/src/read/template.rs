//! Texts with `${…}`, compiled into segments; constant expressions are evaluated at compile time.
//! `$${` writes `${`, and `$$${x}` a dollar sign and the value: dollars before a brace count in
//! pairs.

use std::sync::Arc;

use throng_base::Said;
use throng_expression::{EvaluationError, Expression, Nowhere, Value, escape_json};
pub(crate) use throng_program::Escape;
use throng_program::{Segment, Text};

use super::foreign::warn_placeholders;
use super::{Context, Found};
use crate::syntax::{Key, Kind, Node};
use crate::url::form_encode;
use crate::words::shorten;

/// Escapes a text for YAML scenarios, so that nothing in it is read as an expression or taken for a
/// placeholder of another tool.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = [rest.find("{{"), rest.find("#{")].into_iter().flatten().min() {
        // A `$` right before an expression would become part of its start.
        let before = rest[..at].trim_end_matches('$');
        out.push_str(&doubled(before));
        out.push_str(&format!("${{'{}'}}", &rest[before.len()..at + 2]));
        rest = &rest[at + 2..];
    }
    out.push_str(&doubled(rest));
    out
}

/// Doubles dollars before braces.
fn doubled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut dollars = 0;
    for letter in text.chars() {
        if letter == '{' {
            out.extend(std::iter::repeat_n('$', dollars));
        }
        dollars = if letter == '$' { dollars + 1 } else { 0 };
        out.push(letter);
    }
    out
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPart<'t> {
    Literal(&'t str),
    /// The text between `${` and `}`, and the position of the `$`.
    Expression {
        inner: &'t str,
        at: usize,
    },
}

/// Splits a text; the error is the position of an unterminated `${`.
pub(crate) fn parts(text: &str) -> Result<Vec<TextPart<'_>>, usize> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut look = 0;
    while let Some(found) = text[look..].find("${") {
        let at = look + found;
        let before = text[look..at].len() - text[look..at].trim_end_matches('$').len();
        if before % 2 == 1 {
            // `$${`: each pair writes one dollar; the literal continues with the last one.
            push_literal(&mut parts, &text[begin..at - before.div_ceil(2)]);
            begin = at;
            look = at + 2;
            continue;
        }
        push_literal(&mut parts, &text[begin..at - before / 2]);
        let length = expression_length(&text[at + 2..]).ok_or(at)?;
        let end = at + 2 + length;
        parts.push(TextPart::Expression { inner: &text[at + 2..end], at });
        begin = end + 1;
        look = begin;
    }
    push_literal(&mut parts, &text[begin..]);
    Ok(parts)
}

fn push_literal<'t>(parts: &mut Vec<TextPart<'t>>, literal: &'t str) {
    if !literal.is_empty() {
        parts.push(TextPart::Literal(literal));
    }
}

/// The length of an expression up to its own `}`; braces of maps and in quotes belong to the
/// expression.
fn expression_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            quote @ (b'"' | b'\'') => {
                let raw = at > 0 && matches!(bytes[at - 1], b'r' | b'R');
                at = string_end(bytes, at, *quote, raw)?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The position after a CEL string, which can be raw or triple-quoted.
fn string_end(bytes: &[u8], begin: usize, quote: u8, raw: bool) -> Option<usize> {
    let triple = bytes[begin..].starts_with(&[quote; 3]);
    let mut at = begin + if triple { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if !raw => at += 1,
            byte if *byte == quote && !triple => return Some(at + 1),
            _ if triple && bytes[at..].starts_with(&[quote; 3]) => return Some(at + 3),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Builds segments; adjacent literals are merged.
#[derive(Default)]
pub(crate) struct TextBuilder {
    segments: Vec<Segment>,
    literal: Vec<u8>,
}

impl TextBuilder {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.literal.extend_from_slice(bytes);
    }

    /// Adds literal text as it was written.
    pub(crate) fn literal(&mut self, text: &str, escape: Escape) {
        match escape {
            Escape::JsonText | Escape::Json => escape_json(text.as_bytes(), &mut self.literal),
            Escape::Form => form_encode(text.as_bytes(), &mut self.literal),
            Escape::None | Escape::Path | Escape::Header => self.bytes(text.as_bytes()),
        }
    }

    pub(crate) fn text(&mut self, text: &Text) {
        for segment in &text.segments {
            match segment {
                Segment::Literal(bytes) => self.bytes(bytes),
                other => self.segment(other.clone()),
            }
        }
    }

    /// Adds a value; a constant one is evaluated immediately.
    pub(crate) fn value(
        &mut self,
        value: Expression,
        escape: Escape,
    ) -> Result<(), EvaluationError> {
        let constant = value.as_constant().is_some();
        let segment = Segment::Value { value, escape };
        match constant {
            true => {
                Text { segments: vec![segment] }.render(&mut self.literal, &mut Nowhere::default())
            }
            false => {
                self.segment(segment);
                Ok(())
            }
        }
    }

    fn segment(&mut self, segment: Segment) {
        self.end_literal();
        self.segments.push(segment);
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            let literal = std::mem::take(&mut self.literal);
            self.segments.push(Segment::Literal(literal.into()));
        }
    }

    pub(crate) fn finish(mut self) -> Text {
        self.end_literal();
        Text { segments: self.segments }
    }
}

impl Context<'_> {
    /// A text that can differ between users. `escape` determines how values are written; literal
    /// text is escaped too if the format requires it (JSON, forms).
    pub(crate) fn template(&mut self, node: &Node, want: Said, escape: Escape) -> Option<Text> {
        let text = self.scalar(node, want)?;
        warn_placeholders(self, node, text);
        if !text.contains("${") {
            let mut builder = TextBuilder::default();
            builder.literal(text, escape);
            return Some(builder.finish());
        }
        let parts = read_parts(self, node, text)?;
        let mut builder = TextBuilder::default();
        let mut good = Some(());
        for part in parts {
            match part {
                TextPart::Literal(literal) => builder.literal(literal, escape),
                TextPart::Expression { inner, at } => {
                    good = self.add_value(node, inner, at, escape, &mut builder).and(good);
                }
            }
        }
        good.map(|()| builder.finish())
    }

    /// A key as a text that can differ between users.
    pub(crate) fn key_template(&mut self, key: &Key, escape: Escape) -> Option<Text> {
        let kind = Kind::Scalar { text: key.text.clone(), plain: false };
        self.template(&Node { place: key.place, kind }, say!("a name"), escape)
    }

    /// An expression: `${…}` alone, or without `${` and `}`.
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub(crate) fn expression(&mut self, node: &Node, want: Said) -> Option<Expression> {
        let text = self.scalar(node, want.clone())?;
        let (inner, at) = match read_parts(self, node, text)?.as_slice() {
            [TextPart::Expression { inner, at }] => (*inner, *at + 2),
            _ if !text.contains("${") => (text, 0),
            _ => {
                let message = say!("this is text, not a single expression");
                let label = say!("expected {want}");
                let help = say!("write everything inside one `${{…}}`: `${{saved.code == 0}}`");
                return self.refuse("bad-template", node.place, message, label, help);
            }
        };
        self.compile_expression(node, inner, at)
    }

    /// The constant value of a scalar; a single `${…}` keeps its type.
    pub(crate) fn constant_text(&mut self, node: &Node) -> Option<Value> {
        let want = say!("a value");
        match single_expression(node) {
            Some((inner, at)) => {
                let expression = self.compile_expression(node, inner, at + 2)?;
                match expression.as_constant() {
                    Some(value) => {
                        self.bounded(node, inner, at, value)?;
                        Some(value.clone())
                    }
                    None => self.differs(node, inner, at, want),
                }
            }
            None => self.text(node, want).map(|text| Value::Text(text.into())),
        }
    }

    /// A constant text, with variables filled in.
    pub(crate) fn text(&mut self, node: &Node, want: Said) -> Option<String> {
        let text = self.scalar(node, want.clone())?;
        if !text.contains("${") {
            return Some(text.to_string());
        }
        let mut out = Vec::new();
        let mut good = Some(());
        for part in read_parts(self, node, text)? {
            match part {
                TextPart::Literal(literal) => out.extend_from_slice(literal.as_bytes()),
                TextPart::Expression { inner, at } => {
                    let expression = self.compile_expression(node, inner, at + 2);
                    match expression.as_ref().map(Expression::as_constant) {
                        None => good = None,
                        Some(Some(value)) => {
                            self.bounded(node, inner, at, value)?;
                            value.write_text(&mut out);
                        }
                        Some(None) => return self.differs(node, inner, at, want),
                    }
                }
            }
        }
        good.map(|()| String::from_utf8_lossy(&out).into_owned())
    }

    /// A constant key.
    pub(crate) fn key_text(&mut self, key: &Key) -> Option<String> {
        let kind = Kind::Scalar { text: key.text.clone(), plain: false };
        self.text(&Node { place: key.place, kind }, say!("the name of a field"))
    }

    /// Adds the value of an expression at position `at` in the text of `node`.
    pub(crate) fn add_value(
        &mut self,
        node: &Node,
        inner: &str,
        at: usize,
        escape: Escape,
        out: &mut TextBuilder,
    ) -> Option<()> {
        let value = self.compile_expression(node, inner, at + 2)?;
        if let Some(value) = value.as_constant() {
            self.bounded(node, inner, at, value)?;
        }
        match out.value(value, escape) {
            Ok(()) => Some(()),
            Err(EvaluationError(reason)) => {
                let message = say!("the value of `${{{}}}` is not allowed here", shorten(inner));
                let place = self.place_in(node, at, inner.len() + 3);
                let help = say!("change the value, or encode it with `url.encode(…)`");
                self.refuse("bad-value", place, message, reason, help)
            }
        }
    }

    /// A typed value for a slot: a single `${…}` keeps the type of its value, a plain scalar has
    /// the type that it looks like, lists and maps are constant.
    pub(crate) fn value_text(&mut self, node: &Node) -> Option<Text> {
        match &node.kind {
            Kind::Scalar { text, .. } if text.contains("${") => match single_expression(node) {
                Some((inner, at)) => {
                    let value = self.compile_expression(node, inner, at + 2)?;
                    Some(match value.as_constant() {
                        Some(value) => {
                            self.bounded(node, inner, at, value)?;
                            Text::constant(value.clone())
                        }
                        None => {
                            Text { segments: vec![Segment::Value { value, escape: Escape::None }] }
                        }
                    })
                }
                None => self.template(node, say!("a value"), Escape::None),
            },
            _ => {
                let value = constant(self, node)?;
                Some(Text::constant(value))
            }
        }
    }
}

/// The expression, if a scalar is a single `${…}`.
pub(crate) fn single_expression(node: &Node) -> Option<(&str, usize)> {
    let Kind::Scalar { text, .. } = &node.kind else { return None };
    if !text.starts_with("${") {
        return None;
    }
    match parts(text).ok()?.as_slice() {
        [TextPart::Expression { inner, at }] => Some((inner, *at)),
        _ => None,
    }
}

/// Splits the text of a scalar.
pub(crate) fn read_parts<'n>(
    found: &mut Found,
    node: &Node,
    text: &'n str,
) -> Option<Vec<TextPart<'n>>> {
    match parts(text) {
        Ok(parts) => Some(parts),
        Err(at) => {
            let place = found.place_in(node, at, text.len() - at);
            let error = found
                .error("bad-template", say!("the `}}` that closes `${{` is missing"), place)
                .label(say!("the expression is not closed"))
                .help(say!("write `${{user.id}}`; for a literal `${{`, write `$${{`"));
            found.fail(error)
        }
    }
}

/// A text, which can be empty if quoted.
pub(crate) fn read_text(cx: &mut Context<'_>, node: &Node, want: Said) -> Option<Text> {
    match &node.kind {
        Kind::Scalar { text, plain: false } if text.is_empty() => Some(Text::default()),
        _ => cx.template(node, want, Escape::None),
    }
}

/// A constant value: a plain scalar has the type that it looks like, a quoted one is a text, a
/// single `${…}` keeps its type.
pub(crate) fn constant(cx: &mut Context<'_>, node: &Node) -> Option<Value> {
    match &node.kind {
        Kind::Scalar { text, plain } => match (text.contains("${"), plain) {
            (true, _) => cx.constant_text(node),
            (false, true) if node.is_null() => Some(Value::Null),
            (false, true) => Some(Value::parse_plain(text)),
            (false, false) => Some(Value::Text(text.as_str().into())),
        },
        Kind::List(items) => {
            let values: Vec<Option<Value>> = items.iter().map(|item| constant(cx, item)).collect();
            values.into_iter().collect::<Option<Vec<Value>>>().map(|all| Value::List(all.into()))
        }
        Kind::Map(_) => {
            let entries = cx.entries(node, say!("a value"), say!("write the value as YAML"))?;
            let mut values = Vec::with_capacity(entries.len());
            let mut good = true;
            for (key, value) in entries {
                match constant(cx, value) {
                    Some(value) => values.push((Arc::from(key.text.as_str()), value)),
                    None => good = false,
                }
            }
            good.then(|| Value::Map(values.into()))
        }
    }
}

/// A condition.
pub(crate) fn read_condition(cx: &mut Context<'_>, node: &Node) -> Option<Expression> {
    let condition = cx.expression(node, say!("a condition"))?;
    match condition.may_be_condition() {
        true => Some(condition),
        false => {
            let message = say!("this value cannot be used as a condition");
            cx.bad_value(node, message, say!("compare it with a value: `\"${{saved.code == 0}}\"`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_texts_are_read_back_unchanged() {
        for text in ["$", "${", "$${", "$$${x}", "$$$$", "a$${{b}} $#{c}$${d", "$$#{${"] {
            let escaped = escape(text);
            let read = parts(&escaped).unwrap().into_iter().map(|part| match part {
                TextPart::Literal(literal) => literal.to_string(),
                TextPart::Expression { inner, .. } => inner.trim_matches('\'').to_string(),
            });
            assert_eq!(read.collect::<String>(), text, "{escaped}");
        }
    }

    #[test]
    fn texts_are_split_at_expressions() {
        let inner = |text| {
            let parts = parts(text).unwrap();
            let found = parts.iter().filter_map(|part| match part {
                TextPart::Expression { inner, .. } => Some(*inner),
                TextPart::Literal(_) => None,
            });
            found.collect::<Vec<_>>()
        };
        assert_eq!(inner("a${x}b${ y }"), ["x", " y "]);
        assert_eq!(inner("${'}' + \"\\\"}\"}"), ["'}' + \"\\\"}\""]);
        assert_eq!(inner("${ {'a': {'b': 1}}['a'] }!"), [" {'a': {'b': 1}}['a'] "]);
        assert_eq!(inner("${r'\\'}"), ["r'\\'"]);
        assert_eq!(inner("${'''it's } '''}"), ["'''it's } '''"]);
        assert!(inner("$${x} $ {y} }").is_empty());
        assert_eq!(parts("$${x}").unwrap(), [TextPart::Literal("${x}")]);
        assert_eq!(parts("a$${b").unwrap(), [TextPart::Literal("a"), TextPart::Literal("${b")]);
        // A price: a dollar sign, then the value. Dollars before a brace count in pairs.
        let price = [TextPart::Literal("$"), TextPart::Expression { inner: "x", at: 2 }];
        assert_eq!(parts("$$${x}").unwrap(), price);
        assert_eq!(parts("$$$${x}").unwrap(), [TextPart::Literal("$"), TextPart::Literal("${x}")]);
        assert_eq!(parts("$$ $$x $").unwrap(), [TextPart::Literal("$$ $$x $")]);
        for bad in ["${", "x${'}", "${{}", "$$${", "$${${", "${\"\\"] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }
}
