//! Claims on volumes: where the volume of a pod is, or could be.

use super::attached::Attached;
use super::capacity::Capacities;
use super::index::PodQuery;
use super::infeasible::{Infeasible, NodeFault};
use super::volume_key::Key;
use super::zones::reaches;
use crate::view::PodConstraints;
use berth_kube::object::{Labels, PersistentVolume, PersistentVolumeClaim, StorageClass, Text};
use berth_kube::pod::node_constraint;
use berth_kube::quantity::Quantity;
use berth_kube::selector::LabelMatcher;
use std::collections::BTreeMap;

const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const SELECTED: &str = "volume.kubernetes.io/selected-node";
const ONE_POD: &str = "ReadWriteOncePod";

#[derive(Default)]
pub struct Volumes {
    pub(super) claims: BTreeMap<Key, PersistentVolumeClaim>,
    pub(super) volumes: BTreeMap<Text, PersistentVolume>,
    pub(super) classes: BTreeMap<Text, StorageClass>,
    pub(super) namespaces: BTreeMap<Text, Labels>,
    pub capacities: Capacities,
    pub attached: Attached,
    /// Volumes that were given to a claim, and do not say so yet.
    pub(super) given: BTreeMap<Text, Key>,
    /// Counts the changes.
    pub version: u64,
}

/// What has to be done about a claim before its pod can be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeStep {
    /// Give it this volume.
    Assign { namespace: Text, claim: Text, uid: Text, volume: Text, version: Text },
    /// Have a volume made for that node.
    Provision { namespace: Text, claim: Text },
}

/// Where one claim lets its pod be.
pub enum Place<'a> {
    /// Where its volume can be used.
    Of(&'a PersistentVolume),
    /// Where a volume is available, or can be provisioned.
    Any(&'a PersistentVolumeClaim, &'a StorageClass),
}

impl Volumes {
    /// Where each claim of a pod lets it be, or why it has to wait.
    pub fn places(&self, constraints: &PodConstraints) -> Result<Vec<Place<'_>>, Infeasible> {
        constraints
            .dynamic
            .claims
            .iter()
            .map(|name| self.place(&constraints.namespace, name))
            .collect()
    }

    fn place(&self, namespace: &Text, name: &Text) -> Result<Place<'_>, Infeasible> {
        let Some(claim) = self.claims.get(&(namespace.clone(), name.clone())) else {
            return Err(Infeasible::MissingClaim { claim: name.clone() });
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(Infeasible::DeletedClaim { claim: name.clone() });
        }
        if &*claim.status.phase == "Lost" {
            return Err(Infeasible::LostClaim { claim: name.clone() });
        }
        if &*claim.status.phase == "Bound" {
            return match self.volumes.get(&claim.spec.volume_name) {
                Some(volume) => Ok(Place::Of(volume)),
                None => Err(Infeasible::MissingVolume { claim: name.clone() }),
            };
        }
        let waits = |class: &&StorageClass| &*class.volume_binding_mode == "WaitForFirstConsumer";
        let class = claim.spec.storage_class_name.as_ref();
        match class.and_then(|class| self.classes.get(class)).filter(waits) {
            Some(class) if claim.spec.volume_name.is_empty() => Ok(Place::Any(claim, class)),
            _ => Err(Infeasible::UnboundClaim { claim: name.clone() }),
        }
    }

    /// The queries by which a pod takes turns with others because of its claims.
    pub fn turns(&self, constraints: &PodConstraints) -> Vec<PodQuery> {
        let mut turns = Vec::new();
        for name in &constraints.dynamic.claims {
            let Some(claim) = self.claims.get(&(constraints.namespace.clone(), name.clone()))
            else {
                continue;
            };
            if is_for_one(claim) {
                turns.push(PodQuery::Claiming(constraints.namespace.clone(), name.clone()));
            }
            if &*claim.status.phase != "Bound" {
                turns.extend(claim.spec.storage_class_name.clone().map(PodQuery::Class));
            }
        }
        turns
    }

    /// Claims of a pod that only one pod may use.
    pub fn for_one<'a>(
        &'a self,
        constraints: &'a PodConstraints,
    ) -> impl Iterator<Item = &'a Text> {
        constraints.dynamic.claims.iter().filter(|name| {
            let key = (constraints.namespace.clone(), (*name).clone());
            self.claims.get(&key).is_some_and(is_for_one)
        })
    }

    /// Why a claim does not let its pod be on a node, if it does not.
    pub fn fault(
        &self,
        place: &Place<'_>,
        node: &node_constraint::NodeView<'_>,
    ) -> Option<NodeFault> {
        let (claim, class) = match place {
            Place::Of(volume) => return (!reaches(volume, node)).then_some(NodeFault::VolumePlace),
            Place::Any(claim, class) => (*claim, *class),
        };
        let chosen = claim.metadata.annotation(SELECTED);
        if chosen.is_some_and(|chosen| chosen != node.name) {
            return Some(NodeFault::VolumePlace);
        }
        if self.find(claim, node).is_some() {
            return None;
        }
        if !makes(class, node.labels) {
            return Some(NodeFault::VolumePlace);
        }
        let asks = amount(&claim.spec.resources.requests);
        let is_enough = self.capacities.suffice(class, asks, node.labels);
        (!is_enough).then(|| NodeFault::Storage {
            claim: claim.metadata.name.clone(),
            class: class.metadata.name.clone(),
        })
    }

    /// The steps for the claims of a pod that is to be on a node. A volume that is assigned here is
    /// kept for its claim.
    pub fn prepare(
        &mut self,
        constraints: &PodConstraints,
        node: &node_constraint::NodeView<'_>,
    ) -> Vec<VolumeStep> {
        let mut orders = Vec::new();
        for name in &constraints.dynamic.claims {
            let key = (constraints.namespace.clone(), name.clone());
            let Ok(Place::Any(claim, _)) = self.place(&key.0, &key.1) else { continue };
            let (namespace, claim_name) = key.clone();
            let Some(volume) = self.find(claim, node) else {
                orders.push(VolumeStep::Provision { namespace, claim: claim_name });
                continue;
            };
            let (volume, version) =
                (volume.metadata.name.clone(), volume.metadata.resource_version.clone());
            let uid = claim.metadata.uid.clone();
            let given = volume.clone();
            orders.push(VolumeStep::Assign { namespace, claim: claim_name, uid, volume, version });
            self.given.insert(given, key);
        }
        orders
    }

    /// Frees the volumes that were assigned to the claims of a pod and are not bound.
    pub fn give_up(&mut self, constraints: &PodConstraints) {
        let of = |key: &Key| {
            key.0 == constraints.namespace && constraints.dynamic.claims.contains(&key.1)
        };
        let before = self.given.len();
        self.given.retain(|_, key| !of(key));
        self.version += u64::from(self.given.len() != before);
    }

    /// The smallest volume that a claim could have on a node: one that is kept for it first.
    fn find(
        &self,
        claim: &PersistentVolumeClaim,
        node: &node_constraint::NodeView<'_>,
    ) -> Option<&PersistentVolume> {
        let asks = amount(&claim.spec.resources.requests).unwrap_or(0);
        let selector = claim.spec.selector.as_ref();
        let selector = selector.map(|written| LabelMatcher::of("selector", Some(written)));
        let key = (claim.metadata.namespace.clone(), claim.metadata.name.clone());
        let fits = self.volumes.values().filter(|volume| {
            let spec = &volume.spec;
            let kept = spec.claim_ref.as_ref().map(|of| (of.namespace.clone(), of.name.clone()));
            let given = self.given.get(&volume.metadata.name);
            let mode = |text: &Text| if text.is_empty() { "Filesystem" } else { text }.to_owned();
            let labelled = match &selector {
                None => true,
                Some(Ok(selector)) => selector.matches(&volume.metadata.labels),
                Some(Err(_)) => false,
            };
            let modes = &claim.spec.access_modes;
            volume.metadata.deletion_timestamp.is_none()
                && Some(&spec.storage_class_name) == claim.spec.storage_class_name.as_ref()
                && kept.as_ref().is_none_or(|kept| *kept == key)
                && (kept.is_some() || &*volume.status.phase == "Available")
                && given.is_none_or(|given| *given == key)
                && mode(&spec.volume_mode) == mode(&claim.spec.volume_mode)
                && modes.iter().all(|mode| spec.access_modes.contains(mode))
                && amount(&spec.capacity).is_some_and(|size| size >= asks)
                && labelled
                && reaches(volume, node)
        });
        fits.min_by_key(|volume| {
            (volume.spec.claim_ref.is_none(), amount(&volume.spec.capacity), &volume.metadata.name)
        })
    }
}

fn is_for_one(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.access_modes.iter().any(|mode| &**mode == ONE_POD)
}

fn amount(amounts: &berth_kube::object::Map<berth_kube::object::Raw>) -> Option<i64> {
    amounts.get("storage")?.as_str().parse::<Quantity>().ok()?.whole().ok()
}

/// Whether volumes of a class are made for nodes with these labels.
fn makes(class: &StorageClass, labels: &Labels) -> bool {
    let places = &class.allowed_topologies;
    &*class.provisioner != NO_PROVISIONER
        && (places.is_empty() || places.iter().any(|place| place.holds(labels)))
}
