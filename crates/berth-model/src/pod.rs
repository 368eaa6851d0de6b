//! Which pod of a cluster something is about.

use serde::{Deserialize, Serialize};

/// One pod, and no later one of its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodRef {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}
