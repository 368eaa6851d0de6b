//! Whose a GPU is, of which somebody else says which pod has it.

use super::{ClusterState, lease_of};
use berth_engine::Core;
use berth_model::{JobId, LeaseId, PodRef};
use std::collections::BTreeSet;

/// Who has what a pod has.
pub enum Holder {
    Task(JobId, u32),
    /// The pod holds a GPU for these, with its node.
    Leases(Vec<LeaseId>, String),
}

impl Holder {
    /// With their nodes.
    pub fn leases(self, core: &Core) -> Vec<(LeaseId, String)> {
        match self {
            Holder::Task(job, task) => {
                let lease = lease_of(core, job, task).into_iter();
                lease.map(|(lease, node)| (lease, node.to_string())).collect()
            }
            Holder::Leases(leases, node) => {
                leases.into_iter().map(|lease| (lease, node.clone())).collect()
            }
        }
    }
}

impl ClusterState {
    /// The pods of these namespaces and names that are ours and have their node.
    pub fn holders_of_pods(&self, named: &BTreeSet<(&str, &str)>) -> Vec<(PodRef, Holder)> {
        let is_named = |at: &PodRef| named.contains(&(at.namespace.as_str(), at.name.as_str()));
        let mut found = Vec::new();
        for pod in self.pods.values() {
            let at = &pod.view.at;
            let Some(node) = pod.view.node.as_ref().filter(|_| !pod.view.phase.is_over()) else {
                continue;
            };
            let holder = match pod.task {
                Some((job, task)) => Holder::Task(job, task),
                None if pod.view.holds.is_some() => {
                    Holder::Leases(self.shares.holders(&pod.view), node.to_string())
                }
                None => continue,
            };
            if is_named(at) {
                found.push((at.clone(), holder));
            }
        }
        found
    }
}
