//! Over which link of its session a step goes.

use crate::reach::Reach;

/// The link that a step uses, and what is spoken there.
#[derive(Clone, Copy)]
pub(crate) struct Via<'c> {
    pub(crate) link: u8,
    pub(crate) reach: &'c Reach,
}
