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
mod names;
mod services;
mod sight;
mod teams;
mod work;

pub use logs::{Logs, Step};
pub use names::{CONTAINER, is_for_teams, is_pod_of, namespace, pod_ref};
pub use services::{Services, tidy};
pub use sight::OwnSight;
pub use teams::Teams;
pub use work::{Tools, work};

use crate::mirror::Mirror;
use crate::nodes::Nodes;
use crate::read::Reader;
use crate::sight::Rule;
use berth_engine::Core;
use berth_engine::clock;
use berth_engine::{LeaseStart, StartError};
use berth_file::job::Container;
use berth_kube::Api;
use berth_model::Ended;
use berth_model::PodRef;
use berth_model::{Cause, LeaseId, Name, Span};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How Berth's own jobs run on the cluster.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// There are none, and no rights are needed for them.
    pub are_off: bool,
    /// The image of jobs that name none.
    pub image: Option<String>,
    /// The claim, in each team's namespace, that keeps what jobs save.
    pub checkpoints: Option<String>,
    /// What the namespaces of teams begin with.
    pub namespace_prefix: String,
    /// Namespaces of teams that have another one.
    pub namespaces: BTreeMap<String, String>,
    /// Whether every team has its namespace, or only those whose jobs have run.
    pub teams: bool,
}

/// What request handlers need for jobs that run as pods.
pub struct Jobs {
    pub api: Api,
    pub settings: Settings,
    pub logs: Arc<Logs>,
    /// Labels that nodes have which take plain pods, and pods with GPUs.
    pub plain: BTreeMap<Name, Name>,
    pub with_gpus: BTreeMap<Name, Name>,
    pub(crate) mirror: Arc<Mutex<Mirror>>,
}

impl Jobs {
    fn look<T>(&self, at: impl FnOnce(&Nodes) -> T) -> T {
        at(&self.mirror.lock().unwrap_or_else(PoisonError::into_inner).nodes)
    }
}

/// A pod to be made.
#[derive(Debug, Clone)]
pub struct Create {
    pub start: LeaseStart,
    pub container: Container,
    /// What the Secret beside it is to be called, if it needs one.
    pub secret: Option<String>,
    /// What it asks of the device plugins of its node, by resource.
    pub devices: BTreeMap<String, u32>,
    /// The GPUs of which it has a part, as soon as they are known.
    pub gpus: Option<String>,
}

impl Create {
    /// Nothing for jobs that came as pods, and for leases that are closed by now.
    pub(crate) fn of(
        core: &Core,
        lease: LeaseId,
        nodes: &Nodes,
    ) -> Result<Option<Create>, StartError> {
        let Some(job) = core.jobs.get(&lease.job) else { return Ok(None) };
        let container = job.detail.workload.run().and_then(|run| run.container.as_ref());
        let (Some(container), Some(live)) = (container, job.leases.get(&lease)) else {
            return Ok(None);
        };
        let (container, start) = (container.clone(), LeaseStart::of(job, live, clock::now())?);
        let pod = pod_ref(&container.namespace, &start.name, lease);
        let secret = (!start.run.secrets.is_empty()).then(|| names::secret(&pod.name));
        let on = nodes.sight(&start.node).map(|node| node.devices.clone()).unwrap_or_default();
        let mut devices = BTreeMap::new();
        for resource in start.slices.iter().filter_map(|slice| on.resource(&slice.share)) {
            *devices.entry(resource).or_default() += 1;
        }
        Ok(Some(Create { start, container, secret, devices, gpus: None }))
    }

    /// The pod it becomes.
    fn pod(&self) -> PodRef {
        pod_ref(&self.container.namespace, &self.start.name, self.start.lease)
    }
}

/// Which nodes take plain pods, and pods with GPUs.
pub fn rules(reader: &Reader) -> (Vec<Rule>, Vec<Rule>) {
    (reader.rules_for(json!([])), reader.rules_for(manifest::tolerations()))
}

/// How a lease ended of which no pod tells.
#[derive(Debug)]
pub enum Over {
    /// It will never begin.
    NotStarted(String),
    Ended(Box<Ended>),
}

/// What is to be done about the pod of a lease.
#[derive(Debug)]
pub enum Order {
    Create(Box<Create>),
    Stop {
        lease: LeaseId,
        /// Nothing while nobody has seen it.
        pod: Option<PodRef>,
        cause: Cause,
        grace: Span,
    },
    /// Nobody needs it any more, but for what it has printed.
    Remove {
        lease: LeaseId,
        pod: PodRef,
    },
    /// It says that it was made for a job which has ended. If the books say so too, nobody needs it
    /// any more.
    Stray {
        lease: LeaseId,
        pod: PodRef,
    },
    /// It is gone, or there was none.
    Forget {
        lease: LeaseId,
    },
}

impl Order {
    const fn lease(&self) -> LeaseId {
        match self {
            Order::Create(create) => create.start.lease,
            Order::Stop { lease, .. }
            | Order::Remove { lease, .. }
            | Order::Stray { lease, .. }
            | Order::Forget { lease } => *lease,
        }
    }
}
