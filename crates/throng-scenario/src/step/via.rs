//! The link of its session that a step uses.

use crate::reach::Reach;

/// The link that a step uses, and its target.
#[derive(Clone, Copy)]
pub(crate) struct Via<'c> {
    pub(crate) link: u8,
    pub(crate) reach: &'c Reach,
}
