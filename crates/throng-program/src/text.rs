//! Texts with parts that differ from user to user, compiled into segments.

use throng_base::UserId;

/// A text as it is sent. Without variable parts it is one literal, rendered once per run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pub segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    Literal(Box<[u8]>),
    /// `${user.id}`
    UserId,
    /// `${iteration}`: how many iterations the user has begun, counted from 1.
    Iteration,
}

impl Text {
    pub fn literal(bytes: impl Into<Vec<u8>>) -> Text {
        let bytes: Vec<u8> = bytes.into();
        match bytes.is_empty() {
            true => Text::default(),
            false => Text { segments: vec![Segment::Literal(bytes.into())] },
        }
    }

    /// The whole text when it is the same for all users.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.segments.as_slice() {
            [] => Some(b""),
            [Segment::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    pub fn render(&self, out: &mut Vec<u8>, user: UserId, iteration: u64) {
        use std::io::Write as _;
        for segment in &self.segments {
            // Writing to memory does not fail.
            let _ = match segment {
                Segment::Literal(bytes) => {
                    out.extend_from_slice(bytes);
                    Ok(())
                }
                Segment::UserId => write!(out, "{user}"),
                Segment::Iteration => write!(out, "{iteration}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_rendered_in_order() {
        let literal = |text: &str| Segment::Literal(text.as_bytes().into());
        let text = Text {
            segments: vec![literal("u"), Segment::UserId, literal("-"), Segment::Iteration],
        };
        let mut out = Vec::new();
        text.render(&mut out, UserId(7), 3);
        assert_eq!(out, b"u7-3");
        assert_eq!(text.as_literal(), None);
        assert_eq!(Text::literal("").as_literal(), Some(&b""[..]));
        assert_eq!(Text::literal("x").as_literal(), Some(&b"x"[..]));
    }
}
