//! Texts with embedded values: `{{id}}`, `${id}` or `f"{id}"` in other tools, and recorded values
//! that an earlier response contained.

use std::fmt;

use throng_scenario::quote;

use crate::yaml::{Node, scalar};

/// A text in pieces. Two literals are never adjacent, and none is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Text {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Piece {
    Literal(String),
    /// An expression of the scenario language, without `${` and `}`.
    Value(String),
}

impl Text {
    pub(crate) fn literal(text: impl Into<String>) -> Text {
        let mut out = Text::default();
        out.push(&text.into());
        out
    }

    pub(crate) fn value(expression: impl Into<String>) -> Text {
        Text { pieces: vec![Piece::Value(expression.into())] }
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub(crate) fn push(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Literal(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Literal(text.into())),
        }
    }

    pub(crate) fn push_value(&mut self, expression: impl Into<String>) {
        self.pieces.push(Piece::Value(expression.into()));
    }

    pub(crate) fn append(&mut self, other: &Text) {
        for piece in &other.pieces {
            match piece {
                Piece::Literal(text) => self.push(text),
                Piece::Value(expression) => self.push_value(expression.clone()),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text, if it has no values.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The expression, if the text consists only of it.
    pub(crate) fn as_value(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Value(expression)] => Some(expression),
            _ => None,
        }
    }

    pub(crate) fn has_values(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Value(_)))
    }

    /// The same text with each literal piece replaced.
    pub(crate) fn map_literals(&self, mut change: impl FnMut(&str) -> Text) -> Text {
        let mut out = Text::default();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.append(&change(text)),
                Piece::Value(expression) => out.push_value(expression.clone()),
            }
        }
        out
    }

    pub(crate) fn change_values(&mut self, mut change: impl FnMut(&str) -> String) {
        for piece in &mut self.pieces {
            if let Piece::Value(expression) = piece {
                *expression = change(expression);
            }
        }
    }

    /// The pieces between these characters: literals are split, values are not.
    pub(crate) fn split(&self, separator: char) -> Vec<Text> {
        let mut out = vec![Text::default()];
        for piece in &self.pieces {
            match piece {
                Piece::Value(expression) => {
                    out.last_mut().into_iter().for_each(|it| it.push_value(expression.clone()));
                }
                Piece::Literal(text) => {
                    for (number, part) in text.split(separator).enumerate() {
                        if number > 0 {
                            out.push(Text::default());
                        }
                        out.last_mut().into_iter().for_each(|it| it.push(part));
                    }
                }
            }
        }
        out
    }

    /// Both sides of the first such character in a literal.
    pub(crate) fn split_once(&self, separator: char) -> Option<(Text, Text)> {
        let at = self
            .pieces
            .iter()
            .position(|piece| matches!(piece, Piece::Literal(text) if text.contains(separator)))?;
        let Piece::Literal(text) = &self.pieces[at] else { return None };
        let (before, behind) = text.split_once(separator)?;
        let mut left = Text { pieces: self.pieces[..at].to_vec() };
        left.push(before);
        let mut right = Text::literal(behind);
        right.append(&Text { pieces: self.pieces[at + 1..].to_vec() });
        Some((left, right))
    }

    /// In the scenario language, before YAML quoting.
    pub(crate) fn template(&self) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                // A dollar sign before an expression would be parsed as part of it.
                Piece::Literal(text) => out.push_str(&quote::escape(text)),
                Piece::Value(expression) => {
                    let dollars = out.len() - out.trim_end_matches('$').len();
                    out.extend(std::iter::repeat_n('$', dollars));
                    out.push_str(&format!("${{{expression}}}"));
                }
            }
        }
        out
    }

    /// As a YAML scalar. It is quoted if it could be parsed as another type.
    pub(crate) fn scalar(&self) -> String {
        scalar(&self.template())
    }

    pub(crate) fn node(&self) -> Node {
        Node::Scalar(self.scalar())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::literal(text)
    }
}

impl fmt::Display for Text {
    /// For names and remarks: a value is shown by its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Literal(text) => f.write_str(text),
            Piece::Value(expression) => write!(f, "${{{expression}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_only_in_literals() {
        let mut text = Text::literal("/a/");
        text.push_value("x / y");
        text.push("/b?c=d");
        let parts: Vec<String> = text.split('/').iter().map(Text::to_string).collect();
        assert_eq!(parts, ["", "a", "${x / y}", "b?c=d"]);
        let (path, query) = text.split_once('?').unwrap();
        assert_eq!(
            (path.to_string().as_str(), query.to_string().as_str()),
            ("/a/${x / y}/b", "c=d")
        );
        assert_eq!(text.split_once('#'), None);
    }

    #[test]
    fn text_that_looks_like_an_expression_stays_text() {
        let mut text = Text::literal("cost: $");
        text.push_value("vars.price");
        text.push(" ${x}");
        assert_eq!(text.template(), "cost: $$${vars.price} $${x}");
        for number in ["1", "1.5", "true", "", "-1", "null", "0x1"] {
            assert!(Text::literal(number).scalar().starts_with('"'), "{number}");
        }
        assert_eq!(Text::literal("GET /a b").scalar(), "GET /a b");
    }
}
