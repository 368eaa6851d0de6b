//! The state of the cluster as the loop and its readers share it.

use crate::state::Mirror;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock(mirror: &Mutex<Mirror>) -> MutexGuard<'_, Mirror> {
    mirror.lock().unwrap_or_else(PoisonError::into_inner)
}
