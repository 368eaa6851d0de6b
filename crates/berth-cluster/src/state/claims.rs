//! Pods that claim their GPUs (dynamic resource allocation).

use super::orders::BindStep;
use super::{ClusterState, Uid};
use crate::view::NodeView;
use crate::view::NodeViews;
use berth_engine::{Core, Turn};
use berth_kube::dra::{DeviceClass, ResourceClaim, ResourceSlice};
use berth_kube::object::Text;
use berth_kube::{Change, WatchUpdate};
use berth_model::{LeaseId, Name, Slice as Piece};
use std::collections::BTreeSet;

impl ClusterState {
    pub(super) fn put_node(&mut self, mut node: NodeView) {
        self.claims.equip(&mut node);
        self.nodes.put(node);
    }

    pub fn observe_slices(&mut self, turn: &mut Turn<'_>, seen: WatchUpdate<ResourceSlice>) {
        let mut nodes = BTreeSet::new();
        match seen {
            WatchUpdate::Snapshot(slices) => {
                let there: BTreeSet<Text> =
                    slices.iter().map(|slice| slice.metadata.name.clone()).collect();
                for gone in self.claims.slice_names().difference(&there) {
                    nodes.extend(self.claims.remove_slice(gone));
                }
                nodes.extend(slices.into_iter().filter_map(|slice| self.claims.put_slice(slice)));
            }
            WatchUpdate::Changes(changes) => {
                for change in changes {
                    nodes.extend(match change {
                        Change::Applied(slice) => self.claims.put_slice(slice),
                        Change::Deleted(slice) => self.claims.remove_slice(&slice.metadata.name),
                    });
                }
            }
        }
        for name in nodes {
            if let Some(node) = self.nodes.view(&name).cloned() {
                self.put_node(node);
            }
            self.count_claims(&name);
        }
        self.reconsider_claims(turn);
    }

    pub fn observe_classes(&mut self, turn: &mut Turn<'_>, seen: WatchUpdate<DeviceClass>) {
        match seen {
            WatchUpdate::Snapshot(classes) => self.claims.set_classes(classes),
            WatchUpdate::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Applied(class) => self.claims.put_class(class),
                        Change::Deleted(class) => self.claims.remove_class(&class.metadata.name),
                    }
                }
            }
        }
        self.reconsider_claims(turn);
    }

    pub fn observe_claims(&mut self, turn: &mut Turn<'_>, seen: WatchUpdate<ResourceClaim>) {
        let key =
            |claim: &ResourceClaim| (claim.metadata.namespace.clone(), claim.metadata.name.clone());
        let mut nodes = BTreeSet::new();
        match seen {
            WatchUpdate::Snapshot(claims) => {
                let there: BTreeSet<(Text, Text)> = claims.iter().map(key).collect();
                for gone in self.claims.claim_keys().difference(&there) {
                    nodes.extend(self.claims.remove_claim(gone));
                }
                nodes.extend(claims.into_iter().flat_map(|claim| self.claims.put_claim(claim)));
            }
            WatchUpdate::Changes(changes) => {
                for change in changes {
                    nodes.extend(match change {
                        Change::Applied(claim) => self.claims.put_claim(claim),
                        Change::Deleted(claim) => self.claims.remove_claim(&key(&claim)),
                    });
                }
            }
        }
        nodes.iter().for_each(|node| self.count_claims(node));
        self.reconsider_claims(turn);
    }

    fn reconsider_claims(&mut self, turn: &mut Turn<'_>) {
        self.nodes.report(turn);
        for key in std::mem::take(&mut self.without_claims) {
            self.assemble_gang(turn, &key);
        }
    }

    /// Counts what others were given of a node by claims.
    pub(super) fn count_claims(&mut self, node: &Name) {
        let is_task = |uid: &str| self.pods.get(uid).is_some_and(|pod| pod.task.is_some());
        let taken = self.claims.taken(node, is_task);
        self.nodes.set_claimed(node, taken);
    }

    /// A pod is no task any more. Its devices count as taken by others until its claims are
    /// released.
    pub(super) fn count_claims_of(&mut self, uid: &Uid) {
        let pod = self.pods.get(uid).filter(|pod| !pod.view.claims.is_empty());
        let node = pod.and_then(|pod| pod.view.node.clone());
        if let Some(node) = node {
            self.count_claims(&node);
        }
    }

    /// A pod's claims could not be given what was decided. It is tried again when a claim changes.
    pub(super) fn claim_later(&mut self, turn: &mut Turn<'_>, uid: &Uid, why: &str) {
        let Some(key) = self.pods.get(uid).and_then(|pod| Some(pod.request()?.gang.clone())) else {
            return;
        };
        self.leave(turn, uid, why);
        let is_open = self.pods.get(uid).is_some_and(|pod| {
            pod.view.node.is_none() && !pod.view.phase.is_over() && !pod.view.is_leaving
        });
        if is_open {
            self.gangs.entry(key.clone()).or_default().waiting.insert(uid.clone());
            self.without_claims.insert(key);
            self.report_reason(uid, why);
        }
    }

    /// What has to be written before a pod is bound.
    pub(super) fn steps(&self, core: &Core, lease: LeaseId, uid: &str) -> Vec<BindStep> {
        let pod = self.pods.get(uid).filter(|pod| !pod.view.claims.is_empty());
        let live = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
        let (Some(pod), Some(live)) = (pod, live) else { return Vec::new() };
        let pieces: Vec<Piece> = serde_json::from_str(&live.row.slices).unwrap_or_default();
        let gpus: Vec<u32> = pieces.iter().map(|piece| piece.gpu).collect();
        match self.claims.allocations(&pod.view, &Name::new(&live.row.node), &gpus) {
            Ok(all) => all.into_iter().map(|one| BindStep::Claim(Box::new(one))).collect(),
            Err(why) => vec![BindStep::Gone(why)],
        }
    }
}
