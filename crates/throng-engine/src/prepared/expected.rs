//! What the `expect` steps of a session wait for on a link. A message may arrive before the step
//! that takes it: right after a response, or before the acknowledgement of what caused it.

use throng_program::{Check, Pick, Want, Which};
use throng_protocol::framed::MessageId;

use crate::prepared::look::Look;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// Kinds of a declared protocol.
    kinds: Box<[MessageId]>,
    /// Matchers for messages without a declaration.
    patterns: Box<[Pattern]>,
    /// Some step takes any kind.
    pub(crate) any: bool,
}

/// The checks of one step that do not depend on the user: the others may hold by the time the step
/// runs.
#[derive(Debug)]
struct Pattern {
    checks: Vec<Check>,
    look: Look,
}

impl Expected {
    pub(crate) fn new<'a>(expects: impl Iterator<Item = &'a Which>) -> Expected {
        let (mut kinds, mut patterns, mut any) = (Vec::new(), Vec::new(), false);
        for which in expects {
            kinds.extend_from_slice(&which.messages);
            any |= which.messages.is_empty();
            if which.messages.is_empty() {
                patterns.extend(Pattern::new(&which.checks));
            }
        }
        kinds.sort_unstable();
        kinds.dedup();
        Expected { kinds: kinds.into(), patterns: patterns.into(), any }
    }

    /// True if no step takes any message.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any && self.kinds.is_empty() && self.patterns.is_empty()
    }

    pub(crate) fn has(&self, kind: MessageId) -> bool {
        self.kinds.contains(&kind)
    }

    /// The matchers for messages without a declaration that steps could take, as far as they are
    /// known before their turn.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (&Look, &[Check])> {
        self.patterns.iter().map(|pattern| (&pattern.look, &*pattern.checks))
    }
}

impl Pattern {
    /// `None` if nothing is the same for all users: every message would be kept.
    fn new(checks: &[Check]) -> Option<Pattern> {
        let checks: Vec<Check> =
            checks.iter().filter(|check| is_constant(check)).cloned().collect();
        (!checks.is_empty()).then(|| Pattern { look: Look::new(&checks, &[]), checks })
    }
}

fn is_constant(check: &Check) -> bool {
    let is_literal = match &check.want {
        Want::Equals(text) | Want::Contains(text) => text.as_literal().is_some(),
        _ => true,
    };
    // How long the step has waited is known only while it waits.
    is_literal && !matches!(check.pick, Pick::Expression(_) | Pick::Time)
}
