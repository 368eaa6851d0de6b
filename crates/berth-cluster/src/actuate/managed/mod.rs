//! Managed jobs: each lease becomes a pod that is created on its node, with the environment that
//! the same job would have on a machine.
//!
//! A pod is named after its lease, so that a second attempt to create it finds it. It is created
//! with its node: one request instead of two, and no other scheduler can interfere. What a
//! scheduler would check, the core has checked before.

mod accept;
mod archive;
mod claims;
mod collect;
mod fetch;
mod launch;
mod logs;
mod make;
mod manifest;
mod services;
mod tools;
mod track;
mod work;

pub use collect::collect_services;
pub use logs::{Logs, Step};
pub use manifest::tolerations;
pub use services::Services;
pub use tools::Tools;
pub use work::work;

use crate::actuate::pod_events::{PodEventCounts, PodEvents};
use crate::figures::ClusterFigures;
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
    /// Nothing where figures are not gathered.
    pub(crate) figures: Option<Arc<ClusterFigures>>,
    pub(crate) pod_events: Arc<PodEvents>,
}

impl ManagedJobs {
    fn look<T>(&self, at: impl FnOnce(&Nodes) -> T) -> T {
        self.state.read(|state| at(&state.nodes))
    }

    /// What became of the events on pods.
    pub fn pod_events(&self) -> PodEventCounts {
        self.pod_events.counts()
    }

    /// How many exporters tell figures, and how many that should do not; nothing where figures are
    /// not gathered.
    pub fn exporters(&self) -> Option<(usize, usize)> {
        self.figures.as_ref().map(|figures| figures.count())
    }
}
