//! Orders about the pods of managed jobs, and how leases without a pod ended.

use super::nodes::Nodes;
use crate::view::NodeViews;
use crate::view::managed_names;
use crate::view::pod_ref;
use berth_engine::Core;
use berth_engine::clock;
use berth_engine::{LeaseStart, StartError};
use berth_file::job::Container;
use berth_model::Ended;
use berth_model::PodRef;
use berth_model::{Cause, LeaseId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be done about the pod of a lease.
#[derive(Debug)]
pub enum PodOrder {
    CreatePod(Box<CreatePod>),
    Stop {
        lease: LeaseId,
        /// Nothing while the pod was not observed.
        pod: Option<PodRef>,
        cause: Cause,
        grace: Span,
    },
    /// The pod is to be deleted after its log was fetched.
    Remove {
        lease: LeaseId,
        pod: PodRef,
    },
    /// The labels of the pod name a job which has ended. It is deleted if the store has such a job.
    Stray {
        lease: LeaseId,
        pod: PodRef,
    },
    /// It is gone, or there was none.
    Forget {
        lease: LeaseId,
    },
}

impl PodOrder {
    pub const fn lease(&self) -> LeaseId {
        match self {
            PodOrder::CreatePod(create) => create.start.lease,
            PodOrder::Stop { lease, .. }
            | PodOrder::Remove { lease, .. }
            | PodOrder::Stray { lease, .. }
            | PodOrder::Forget { lease } => *lease,
        }
    }
}

/// A pod to be made.
#[derive(Debug, Clone)]
pub struct CreatePod {
    pub start: LeaseStart,
    pub container: Container,
    /// What the Secret beside it is to be called, if it needs one.
    pub secret: Option<String>,
    /// What it asks of the device plugins of its node, by resource.
    pub devices: BTreeMap<String, u32>,
    /// The GPUs of which it has a part, as soon as they are known.
    pub gpus: Option<String>,
    /// The data that tasks on its node have now: `TEAM/FOLDER`. Nothing for jobs without data.
    pub data_in_use: BTreeSet<String>,
    /// When this was ordered.
    pub at: Time,
}

impl CreatePod {
    /// Nothing for jobs that came as pods, and for leases that are closed by now.
    pub(crate) fn of(
        core: &Core,
        lease: LeaseId,
        nodes: &Nodes,
    ) -> Result<Option<CreatePod>, StartError> {
        let Some(job) = core.jobs.get(&lease.job) else { return Ok(None) };
        let container = job.detail.workload.run().and_then(|run| run.container.as_ref());
        let (Some(container), Some(live)) = (container, job.leases.get(&lease)) else {
            return Ok(None);
        };
        let (container, start) = (container.clone(), LeaseStart::of(job, live, clock::now())?);
        let pod = pod_ref(&container.namespace, &start.name, lease);
        // The token that fetches its code and data is one, too.
        let has_secret = !start.run.secrets.is_empty() || start.run.is_fetched();
        let secret = has_secret.then(|| managed_names::secret(&pod.name));
        let on = nodes.view(&start.node).map(|node| node.devices.clone()).unwrap_or_default();
        let mut devices = BTreeMap::new();
        for resource in start.slices.iter().filter_map(|slice| on.resource(&slice.share)) {
            *devices.entry(resource).or_default() += 1;
        }
        let data_in_use = match start.run.versions().next() {
            Some(_) => data_in_use(core, &start.node),
            None => BTreeSet::new(),
        };
        let at = clock::now();
        Ok(Some(CreatePod { start, container, secret, devices, gpus: None, data_in_use, at }))
    }

    /// The pod it becomes.
    pub fn pod(&self) -> PodRef {
        pod_ref(&self.container.namespace, &self.start.name, self.start.lease)
    }
}

/// The data of all tasks that hold a lease on a node.
fn data_in_use(core: &Core, node: &str) -> BTreeSet<String> {
    let here = core.jobs.values().filter(|job| {
        let mut leases = job.leases.values();
        leases.any(|lease| lease.row.node == node)
    });
    let runs = here.filter_map(|job| Some((&job.row.team, job.detail.workload.run()?)));
    let folders = runs.flat_map(|(team, run)| {
        let folders = run.versions().filter_map(|(_, data)| data.folder());
        folders.map(move |folder| format!("{team}/{folder}")).collect::<Vec<_>>()
    });
    folders.collect()
}

/// How a lease without a pod ended.
#[derive(Debug)]
pub enum LeaseEnd {
    /// It will never begin.
    NotStarted(String),
    Ended(Box<Ended>),
}
