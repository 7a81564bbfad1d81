//! What is looked at by checks and saves.

use throng_program::StatusSet;

use crate::read::{AnswerKind, Context, Scope};
use crate::scope::Kinds;
use crate::syntax::Node;

/// The words of checks that hold for messages with fields too; all others are fields of them.
const OF_FIELDS: &[&str] = &["text", "body", "regex", "size", "time", "digest", "that", "field"];

/// What kind of answer is looked at.
#[derive(Clone, Copy)]
pub(crate) enum Answer<'k> {
    Http,
    Message,
    /// A message with fields: of a declared protocol, or of protobuf.
    Fields(&'k Kinds),
    /// A reply of a call, which has a status and headers too.
    Call(&'k Kinds, &'static StatusNames),
}

/// How the statuses of a protocol are written, where not as numbers.
pub(crate) struct StatusNames {
    /// Whether a check has such names, which no field has.
    pub(crate) are_in: fn(&Node) -> bool,
    pub(crate) read: fn(&mut Context<'_>, &Node) -> Option<StatusSet>,
}

impl<'k> Answer<'k> {
    /// Reads something in which expressions may use `response` (and `message`, the same), which is
    /// this.
    pub(crate) fn read<T>(
        self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let kind = match self {
            Answer::Fields(Kinds::Declared { .. }) => AnswerKind::Fields,
            _ => AnswerKind::Parts,
        };
        let scope = Scope { answer: Some(kind), ..cx.scope };
        read(&mut cx.scoped(scope))
    }

    /// What the message may be, where its fields are known.
    pub(crate) fn kinds(self) -> Option<&'k Kinds> {
        match self {
            Answer::Fields(kinds) | Answer::Call(kinds, _) => Some(kinds),
            Answer::Http | Answer::Message => None,
        }
    }

    /// Whether a check of a status has names of statuses.
    pub(crate) fn names_statuses(self, node: &Node) -> bool {
        matches!(self, Answer::Call(_, names) if (names.are_in)(node))
    }

    /// Whether it has a status and headers.
    pub(crate) fn has_head(self) -> bool {
        matches!(self, Answer::Http | Answer::Call(..))
    }

    /// Whether a key of a check, or what is saved, has a meaning of its own and is no field.
    pub(crate) fn is_word(self, key: &str) -> bool {
        // The bytes of protobuf are no text that anybody looks at.
        let is_proto = matches!(self.kinds(), Some(Kinds::Proto { .. }));
        let of_bytes = ["text", "body", "regex", "digest"].contains(&key);
        match key {
            "status" | "header" => self.has_head(),
            key => OF_FIELDS.contains(&key) && !(is_proto && of_bytes),
        }
    }
}
