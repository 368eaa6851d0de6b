//! The state of the cluster as the loop and its readers share it.

use crate::state::ClusterState;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock(state: &Mutex<ClusterState>) -> MutexGuard<'_, ClusterState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
