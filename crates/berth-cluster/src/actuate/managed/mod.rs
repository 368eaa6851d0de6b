//! Jobs of Berth's own on a cluster: each lease becomes a pod that is made on its node, with the
//! environment that the same job would find on a machine.
//!
//! A pod's name follows from its lease, so that whoever makes it again finds it there. It is made
//! with its node: one write instead of two, and nothing that another scheduler could come in
//! between. What a scheduler would look at, the core has looked at before.

mod accept;
mod claims;
mod launch;
mod logs;
mod make;
mod manifest;
mod services;
mod work;

pub use logs::{Logs, Step};
pub use manifest::tolerations;
pub use services::{Services, collect_services};
pub use work::{Tools, work};

use crate::options::PodSettings;
use crate::shared::SharedState;
use crate::state::nodes::Nodes;
use berth_kube::Api;
use berth_model::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What request handlers need for jobs that run as pods.
pub struct ManagedJobs {
    pub api: Api,
    pub settings: PodSettings,
    pub logs: Arc<Logs>,
    /// Labels that nodes have which take plain pods, and pods with GPUs.
    pub plain: BTreeMap<Name, Name>,
    pub with_gpus: BTreeMap<Name, Name>,
    pub(crate) state: Arc<SharedState>,
}

impl ManagedJobs {
    fn look<T>(&self, at: impl FnOnce(&Nodes) -> T) -> T {
        self.state.read(|state| at(&state.nodes))
    }
}
