//! What checks and saves select from.

use throng_program::StatusSet;

use crate::read::{AnswerKind, Context, Scope};
use crate::scope::Kinds;
use crate::syntax::Node;

/// Keys of checks that messages with fields have too; all other keys are fields.
const OF_FIELDS: &[&str] = &["text", "body", "regex", "size", "time", "digest", "that", "field"];

/// The kind of response that is selected from.
#[derive(Clone, Copy)]
pub(crate) enum Answer<'k> {
    Http,
    Message,
    /// A message with fields: of a declared protocol or of Protobuf.
    Fields(&'k Kinds),
    /// The reply of a call, which also has a status and headers.
    Call(&'k Kinds, &'static StatusNames),
}

/// How the statuses of a protocol are written, if not as numbers.
pub(crate) struct StatusNames {
    /// True if the value of a check contains such names, which cannot be fields.
    pub(crate) are_in: fn(&Node) -> bool,
    pub(crate) read: fn(&mut Context<'_>, &Node) -> Option<StatusSet>,
}

impl<'k> Answer<'k> {
    /// Reads something whose expressions can use `response` (or `message`, which is the same).
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

    /// The possible messages, if their fields are known.
    pub(crate) fn kinds(self) -> Option<&'k Kinds> {
        match self {
            Answer::Fields(kinds) | Answer::Call(kinds, _) => Some(kinds),
            Answer::Http | Answer::Message => None,
        }
    }

    /// True if a check of the status uses names of statuses.
    pub(crate) fn names_statuses(self, node: &Node) -> bool {
        matches!(self, Answer::Call(_, names) if (names.are_in)(node))
    }

    /// True if it has a status and headers.
    pub(crate) fn has_head(self) -> bool {
        matches!(self, Answer::Http | Answer::Call(..))
    }

    /// True if a key of a check or save has its own meaning and is not a field.
    pub(crate) fn is_word(self, key: &str) -> bool {
        // Protobuf bytes are not checked as text.
        let is_proto = matches!(self.kinds(), Some(Kinds::Proto { .. }));
        let of_bytes = ["text", "body", "regex", "digest"].contains(&key);
        match key {
            "status" | "header" => self.has_head(),
            key => OF_FIELDS.contains(&key) && !(is_proto && of_bytes),
        }
    }
}
