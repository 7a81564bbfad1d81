//! What the `expect` steps of a session wait for on a link. A message may arrive before the step
//! that takes it: right after a response, or before the acknowledgement of what caused it.

use throng_program::{Check, Extractor, Matcher, Which};
use throng_protocol::framed::MessageId;

use crate::prepared::check_plan::CheckPlan;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// Kinds of a declared protocol.
    kinds: Box<[MessageId]>,
    /// For messages without a declaration, by step: the checks that do not depend on the user. The
    /// others may hold by the time the step runs.
    pub(crate) patterns: Box<[(Vec<Check>, CheckPlan)]>,
    /// Some step takes any kind.
    pub(crate) any: bool,
}

impl Expected {
    pub(crate) fn new<'a>(expects: impl Iterator<Item = &'a Which>) -> Expected {
        let (mut kinds, mut patterns, mut any) = (Vec::new(), Vec::new(), false);
        for which in expects {
            kinds.extend_from_slice(&which.messages);
            any |= which.messages.is_empty();
            if which.messages.is_empty() {
                patterns.extend(constant(&which.checks));
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
}

/// `None` if nothing is the same for all users: every message would be kept.
fn constant(checks: &[Check]) -> Option<(Vec<Check>, CheckPlan)> {
    let checks: Vec<Check> = checks.iter().filter(|check| is_constant(check)).cloned().collect();
    let check_plan = CheckPlan::new(&checks, &[]);
    (!checks.is_empty()).then_some((checks, check_plan))
}

fn is_constant(check: &Check) -> bool {
    let is_literal = match &check.matcher {
        Matcher::Equals(text) | Matcher::Contains(text) => text.as_literal().is_some(),
        _ => true,
    };
    // How long the step has waited is known only while it waits.
    is_literal && !matches!(check.extractor, Extractor::Expression(_) | Extractor::Time)
}
