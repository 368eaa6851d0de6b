//! What the server itself found out about the audit log.

use std::sync::{Arc, Mutex, PoisonError};

/// What is wrong with the audit log, as far as the server has looked; nothing where all is well.
#[derive(Debug, Clone, Default)]
pub struct AuditWatch(Arc<Mutex<Vec<String>>>);

impl AuditWatch {
    pub fn findings(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, findings: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = findings;
    }
}
