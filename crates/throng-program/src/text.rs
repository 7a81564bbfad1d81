//! Texts with parts that differ per user, compiled into segments.

use std::io::Write as _;

use throng_expression::{EvaluationError, Expression, Scope, Value, escape_json};

/// A text to send. Without variable parts it is one literal, rendered once per run.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
pub enum Segment {
    Literal(Box<[u8]>),
    Value {
        value: Expression,
        escape: Escape,
    },
    /// At the start: the whole text is only present if these slots have values.
    Given(Box<[u16]>),
}

impl Segment {
    fn render(&self, out: &mut Vec<u8>, scope: &mut dyn Scope) -> Result<(), EvaluationError> {
        match self {
            Segment::Literal(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Segment::Value { value, escape: Escape::None } => value.write_text(scope, out),
            Segment::Value { value, escape } => write_escaped(value, *escape, out, scope),
            Segment::Given(_) => Ok(()),
        }
    }
}

/// A message of a schema: of a declared protocol, or of protobuf.
#[derive(Clone, Debug)]
pub struct Composed<T> {
    pub template: T,
    /// The values of its leaves.
    pub leaves: Box<[Text]>,
}

impl<T> Composed<T> {
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        self.leaves.iter().for_each(|leaf| leaf.expressions(visit));
    }
}

pub(crate) fn in_pairs(pairs: &[(String, Text)], visit: &mut dyn FnMut(&Expression)) {
    pairs.iter().for_each(|(_, text)| text.expressions(visit));
}

/// The escaping of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// Unchanged.
    None,
    /// Between the quotes of a JSON text.
    JsonText,
    /// As a JSON value of its own type.
    Json,
    /// In `application/x-www-form-urlencoded`.
    Form,
    /// In the path or query of a request: forbidden characters are percent-encoded, delimiters are
    /// unchanged.
    Path,
    /// In a header: characters that would end it are an error.
    Header,
}

impl Text {
    /// A value that all users share; values other than text keep their type.
    pub fn constant(value: Value) -> Text {
        match value {
            Value::Text(text) => Text::literal(text.as_bytes()),
            other => {
                let value = Expression::constant(other);
                Text { segments: vec![Segment::Value { value, escape: Escape::None }] }
            }
        }
    }

    pub fn literal(bytes: impl Into<Vec<u8>>) -> Text {
        let bytes: Vec<u8> = bytes.into();
        match bytes.is_empty() {
            true => Text::default(),
            false => Text { segments: vec![Segment::Literal(bytes.into())] },
        }
    }

    /// The whole text if all users share it.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.segments.as_slice() {
            [] => Some(b""),
            [Segment::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// The expression if the text consists of it.
    pub fn as_expression(&self) -> Option<&Expression> {
        match self.segments.as_slice() {
            [Segment::Value { value, .. }] => Some(value),
            _ => None,
        }
    }

    /// All its expressions.
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        for segment in &self.segments {
            if let Segment::Value { value, .. } = segment {
                visit(value);
            }
        }
    }

    /// The value that it starts with, if any.
    pub fn begins_with(&self) -> Option<&Expression> {
        match self.segments.first() {
            Some(Segment::Value { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// The slots that must have values for the text to be present, if any.
    pub fn needs(&self) -> Option<&[u16]> {
        match self.segments.first() {
            Some(Segment::Given(slots)) => Some(slots),
            _ => None,
        }
    }

    /// Whether the text is present for this user.
    pub fn is_given(&self, scope: &dyn Scope) -> bool {
        let has = |slot: &u16| !matches!(scope.slot(*slot), Value::Null);
        self.needs().is_none_or(|slots| slots.iter().all(has))
    }

    /// Appends the text of one user.
    pub fn render(&self, out: &mut Vec<u8>, scope: &mut dyn Scope) -> Result<(), EvaluationError> {
        self.segments.iter().try_for_each(|segment| segment.render(out, scope))
    }

    /// As [`Text::render`], for a URL at the start of the text: without its fragment, which is
    /// never sent (RFC 3986, 3.5). True if it had one.
    pub fn render_reference(
        &self,
        out: &mut Vec<u8>,
        scope: &mut dyn Scope,
    ) -> Result<bool, EvaluationError> {
        let Some((Segment::Value { value, escape }, rest)) = self.segments.split_first() else {
            return self.render(out, scope).map(|()| false);
        };
        let begin = out.len();
        value.write_text(scope, out)?;
        let fragment = out[begin..].iter().position(|byte| *byte == b'#');
        out.truncate(fragment.map_or(out.len(), |at| begin + at));
        escape_from(begin, *escape, out)?;
        rest.iter().try_for_each(|segment| segment.render(out, scope))?;
        Ok(fragment.is_some())
    }

    /// The value of the text; if it consists of one expression, with its own type.
    pub fn value(&self, scope: &mut dyn Scope) -> Result<Value, EvaluationError> {
        if let Some(expression) = self.as_expression() {
            return expression.evaluate(scope);
        }
        let mut bytes = Vec::new();
        self.render(&mut bytes, scope)?;
        Ok(Value::Text(String::from_utf8_lossy(&bytes).into()))
    }
}

fn write_escaped(
    value: &Expression,
    escape: Escape,
    out: &mut Vec<u8>,
    scope: &mut dyn Scope,
) -> Result<(), EvaluationError> {
    if escape == Escape::Json {
        value.evaluate(scope)?.write_json(out);
        return Ok(());
    }
    let begin = out.len();
    value.write_text(scope, out)?;
    escape_from(begin, escape, out)
}

/// Escapes everything from `begin` on.
fn escape_from(begin: usize, escape: Escape, out: &mut Vec<u8>) -> Result<(), EvaluationError> {
    if out[begin..].iter().all(|byte| stands_for_itself(*byte, escape)) {
        return Ok(());
    }
    let raw = out.split_off(begin);
    if escape == Escape::JsonText {
        escape_json(&raw, out);
        return Ok(());
    }
    for byte in raw {
        match (escape, byte) {
            (_, byte) if stands_for_itself(byte, escape) => out.push(byte),
            (Escape::Form, b' ') => out.push(b'+'),
            (Escape::Header, byte) => {
                let what = char::from(byte).escape_default();
                return Err(EvaluationError(say!(
                    "a header cannot contain the character `{what}`"
                )));
            }
            // Writing to memory does not fail.
            (_, byte) => drop(write!(out, "%{byte:02X}")),
        }
    }
    Ok(())
}

fn stands_for_itself(byte: u8, escape: Escape) -> bool {
    match escape {
        Escape::None | Escape::Json => true,
        // RFC 8259, 7.
        Escape::JsonText => byte >= 0x20 && byte != b'"' && byte != b'\\',
        // The URL standard's application/x-www-form-urlencoded percent-encode set.
        Escape::Form => byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'-' | b'.' | b'_'),
        Escape::Path => byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'#'),
        // RFC 9110, 5.5.
        Escape::Header => byte == b'\t' || (byte >= 0x20 && byte != 0x7f),
    }
}
