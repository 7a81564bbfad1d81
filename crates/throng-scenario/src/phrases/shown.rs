//! Texts and expressions as lines show them.

use throng_expression::{Expression, Value};
use throng_program::{Segment, Text};

/// Maximum length of a message or body that is shown.
const SHOWN_CHARS_MAX: usize = 60;

/// A text as written, including `${…}`.
pub(crate) fn shown(text: &Text) -> String {
    let mut out = String::new();
    for segment in &text.segments {
        match segment {
            Segment::Literal(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
            Segment::Value { value, .. } => out.push_str(&expression(value)),
            Segment::Given(_) => {}
        }
    }
    shorten(&out)
}

pub(crate) fn expression(expression: &Expression) -> String {
    match expression.as_constant() {
        Some(value) if expression.text().is_empty() => constant(value),
        _ => shorten(&format!("${{{}}}", expression.text())),
    }
}

fn constant(value: &Value) -> String {
    let mut bytes = Vec::new();
    value.write_json(&mut bytes);
    shorten(&String::from_utf8_lossy(&bytes))
}

pub(crate) fn shorten(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some(_) => text.chars().take(SHOWN_CHARS_MAX - 1).map(clean).chain(['…']).collect(),
        None => text.chars().map(clean).collect(),
    }
}
