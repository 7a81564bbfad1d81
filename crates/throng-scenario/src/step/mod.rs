//! What all steps have: their rows of the report, what follows their failures, how long they may
//! take, and what their messages are made of.

pub(crate) mod content;
pub(crate) mod failing;
pub(crate) mod rows;
pub(crate) mod via;
