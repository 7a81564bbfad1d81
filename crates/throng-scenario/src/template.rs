//! Texts with `${…}` inside: cut into pieces, variables filled in at once. `$${` writes `${`.

use throng_base::diagnostic::did_you_mean;
use throng_program::{Segment, Text};

use crate::read::{Context, shorten};
use crate::syntax::{Kind, Node};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    UserId,
    Iteration,
}

/// What will stand before a `.` or `(` in expressions of the whole language.
const ROOTS_LATER: &[&str] = &[
    "data", "saved", "response", "random", "now", "env", "message", "page", "hash", "base64",
    "hmac", "sha256", "json", "url",
];

const EXPRESSIONS: &str = "this version has `${user.id}`, `${iteration}` and `${vars.name}`; \
                           write `$${` for the characters `${` themselves";

/// A text as it is written in YAML so that it means itself.
pub(crate) fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

/// Puts pieces together; literals that touch become one.
#[derive(Default)]
pub(crate) struct TextBuilder {
    segments: Vec<Segment>,
    literal: Vec<u8>,
}

impl TextBuilder {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.literal.extend_from_slice(bytes);
    }

    /// Adds a piece; `escape` says how literals are written in this place.
    pub(crate) fn piece(&mut self, piece: &Piece, escape: impl Fn(&str, &mut Vec<u8>)) {
        match piece {
            Piece::Literal(text) => escape(text, &mut self.literal),
            Piece::UserId => self.segment(Segment::UserId),
            Piece::Iteration => self.segment(Segment::Iteration),
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
    /// A text that may differ from user to user.
    pub(crate) fn template(&mut self, node: &Node, want: &str) -> Option<Text> {
        let pieces = self.pieces(node, want)?;
        let mut builder = TextBuilder::default();
        for piece in &pieces {
            builder.piece(piece, |text, out| out.extend_from_slice(text.as_bytes()));
        }
        Some(builder.finish())
    }

    /// The pieces of a scalar, variables filled in.
    pub(crate) fn pieces(&mut self, node: &Node, want: &str) -> Option<Vec<Piece>> {
        let Kind::Scalar { text, .. } = &node.kind else {
            return self.wrong_type(node, want, "write it as a text, in quotes if need be");
        };
        if node.is_null() {
            return self.wrong_type(node, want, "write a value behind the colon");
        }
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text.as_str();
        let mut good = true;
        while let Some(at) = rest.find('$') {
            literal.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("$${") {
                literal.push_str("${");
                rest = after;
            } else if let Some(after) = rest.strip_prefix("${") {
                let Some(end) = after.find('}') else {
                    return self.unterminated(node, rest);
                };
                match self.expression(node, &rest[..end + 3], after[..end].trim()) {
                    Some(Piece::Literal(value)) => literal.push_str(&value),
                    Some(piece) => {
                        push_literal(&mut pieces, &mut literal);
                        pieces.push(piece);
                    }
                    None => good = false,
                }
                rest = &after[end + 1..];
            } else {
                literal.push('$');
                rest = &rest[1..];
            }
        }
        literal.push_str(rest);
        push_literal(&mut pieces, &mut literal);
        good.then_some(pieces)
    }

    fn unterminated<T>(&mut self, node: &Node, rest: &str) -> Option<T> {
        let error = self
            .error("bad-template", "the `}` of `${` is missing".into(), self.place_of(node, rest))
            .label("this has no end")
            .help("write `${user.id}`, or `$${` for the characters `${` themselves");
        self.fail(error)
    }

    fn expression(&mut self, node: &Node, written: &str, inner: &str) -> Option<Piece> {
        match inner {
            "user.id" => return Some(Piece::UserId),
            "iteration" => return Some(Piece::Iteration),
            _ => {}
        }
        let place = self.place_of(node, written);
        if let Some(name) = inner.strip_prefix("vars.")
            && is_name(name)
        {
            if let Some(value) = self.vars.get(name) {
                return Some(Piece::Literal(value.text.clone()));
            }
            let message = format!("there is no variable `{}`", shorten(name));
            let mut error = self.error("unknown-variable", message, place);
            error = match did_you_mean(name, self.vars.names()) {
                Some(word) => error.label(format!("did you mean `vars.{word}`?")),
                None => error.label("not in `vars`"),
            };
            return self.fail(error.help(format!("declare it: `vars: {{{name}: value}}`")));
        }
        let root = inner.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        if ROOTS_LATER.contains(&root) || matches!(root, "vars" | "user" | "iteration") {
            let what = format!("the expression `{}`", shorten(inner));
            self.not_yet(&what, place, EXPRESSIONS);
            return None;
        }
        let message = format!("`{}` is not an expression that is known here", shorten(inner));
        let mut error = self.error("unknown-expression", message, place).help(EXPRESSIONS);
        if let Some(word) = did_you_mean(inner, ["user.id", "iteration"]) {
            error = error.label(format!("did you mean `${{{word}}}`?"));
        }
        self.fail(error)
    }
}

fn push_literal(pieces: &mut Vec<Piece>, literal: &mut String) {
    if !literal.is_empty() {
        pieces.push(Piece::Literal(std::mem::take(literal)));
    }
}

/// Whether a word can name a variable.
pub(crate) fn is_name(word: &str) -> bool {
    let first = |c: char| c.is_alphabetic() || c == '_';
    word.starts_with(first) && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
