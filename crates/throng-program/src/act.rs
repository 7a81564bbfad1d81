//! What the steps that use a connection have in common. Each says it beside its own data.

use throng_base::StepId;
use throng_expression::Expression;

use crate::check::{Check, Save};
use crate::failing::Failing;

pub(crate) trait Act {
    /// Whether it opens its connection itself where none is there.
    fn opens_itself(&self) -> bool {
        false
    }

    fn step(&self) -> StepId;

    fn link(&self) -> u8;

    fn failing(&self) -> Failing;

    /// What its answer has to be.
    fn checks(&self) -> &[Check] {
        &[]
    }

    /// What is saved of its answer.
    fn saves(&self) -> &[Save] {
        &[]
    }

    /// All expressions but those of its checks and of what it saves.
    fn expressions(&self, visit: &mut dyn FnMut(&Expression));
}

/// The fields `step`, `link` and `failing`, and what else a step has of this.
macro_rules! act {
    (@opens_itself) => {
        fn opens_itself(&self) -> bool {
            true
        }
    };
    (@answered) => {
        fn checks(&self) -> &[crate::check::Check] {
            &self.checks
        }

        fn saves(&self) -> &[crate::check::Save] {
            &self.saves
        }
    };
    ($($more:ident)*) => {
        fn step(&self) -> throng_base::StepId {
            self.step
        }

        fn link(&self) -> u8 {
            self.link
        }

        fn failing(&self) -> crate::failing::Failing {
            self.failing
        }

        $(act!(@$more);)*
    };
}
