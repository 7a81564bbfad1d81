//! What a user has saved, for whoever started the run.

use std::sync::{Arc, Mutex, PoisonError};

use throng_expression::Value;

/// Where saved values are kept beyond the life of their user, by slot. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Arc<[Value]>>>);

impl Kept {
    pub(crate) fn set(&self, values: &[Value]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = values.into();
    }

    /// What was kept last; nothing where nothing was saved.
    pub fn values(&self) -> Arc<[Value]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
