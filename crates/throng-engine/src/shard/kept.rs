//! The saved values of a user, for the caller of the run.

use std::sync::{Arc, Mutex, PoisonError};

use throng_expression::Value;

/// Saved values that outlive their user, by slot. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Arc<[Value]>>>);

impl Kept {
    pub(crate) fn set(&self, values: &[Value]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = values.into();
    }

    /// The values of the last iteration; empty if nothing was saved.
    pub fn values(&self) -> Arc<[Value]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
