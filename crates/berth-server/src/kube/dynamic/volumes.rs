//! Claims on volumes: where the volume of a pod is, or could be.

use super::Ties;
use super::index::Watch;
use super::zones::reaches;
use berth_kube::constraint::NodeView;
use berth_kube::dynamic::Selector;
use berth_kube::object::{Claim, Labels, Namespace, PersistentVolume, StorageClass, Text};
use berth_kube::quantity::Quantity;
use std::collections::BTreeMap;

const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const SELECTED: &str = "volume.kubernetes.io/selected-node";
const ONE_POD: &str = "ReadWriteOncePod";

type Key = (Text, Text);

/// What was seen of storage, all of one kind.
pub enum News {
    Namespaces(berth_kube::Seen<Namespace>),
    Claims(berth_kube::Seen<Claim>),
    Volumes(berth_kube::Seen<PersistentVolume>),
    Classes(berth_kube::Seen<StorageClass>),
}

#[derive(Default)]
pub struct Volumes {
    claims: BTreeMap<Key, Claim>,
    volumes: BTreeMap<Text, PersistentVolume>,
    classes: BTreeMap<Text, StorageClass>,
    namespaces: BTreeMap<Text, Labels>,
    /// Volumes that were given to a claim, and do not say so yet.
    given: BTreeMap<Text, Key>,
    /// Counts the changes.
    pub version: u64,
}

/// What has to be done about a claim before its pod can be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepare {
    /// Give it this volume.
    Give { namespace: Text, claim: Text, uid: Text, volume: Text, version: Text },
    /// Have a volume made for that node.
    Make { namespace: Text, claim: Text },
}

/// Where one claim lets its pod be.
pub enum Place<'a> {
    /// Where its volume can be used.
    Of(&'a PersistentVolume),
    /// Where a volume is to be had.
    Any(&'a Claim, &'a StorageClass),
}

impl Volumes {
    /// Takes in what was seen. Returns the labels of namespaces where these have changed.
    pub fn see(&mut self, news: News) -> Option<BTreeMap<Text, Labels>> {
        self.version += 1;
        match news {
            News::Claims(seen) => take(&mut self.claims, seen, |claim: &Claim| {
                (claim.metadata.namespace.clone(), claim.metadata.name.clone())
            }),
            News::Volumes(seen) => {
                take(&mut self.volumes, seen, |volume: &PersistentVolume| {
                    volume.metadata.name.clone()
                });
                let volumes = &self.volumes;
                let free = |name: &Text| {
                    volumes.get(name).is_some_and(|volume| volume.spec.claim_ref.is_none())
                };
                self.given.retain(|volume, _| free(volume));
            }
            News::Classes(seen) => {
                take(&mut self.classes, seen, |class: &StorageClass| class.metadata.name.clone());
            }
            News::Namespaces(seen) => {
                let mut known: BTreeMap<Text, Namespace> = BTreeMap::new();
                for (name, labels) in &self.namespaces {
                    let mut namespace = Namespace::default();
                    namespace.metadata.labels = labels.clone();
                    known.insert(name.clone(), namespace);
                }
                take(&mut known, seen, |space: &Namespace| space.metadata.name.clone());
                let labels = known.into_iter().map(|(name, space)| (name, space.metadata.labels));
                self.namespaces = labels.collect();
                return Some(self.namespaces.clone());
            }
        }
        None
    }

    /// Where each claim of a pod lets it be, or why it has to wait.
    pub fn places(&self, ties: &Ties) -> Result<Vec<Place<'_>>, String> {
        ties.dynamic.claims.iter().map(|name| self.place(&ties.namespace, name)).collect()
    }

    fn place(&self, namespace: &Text, name: &Text) -> Result<Place<'_>, String> {
        let Some(claim) = self.claims.get(&(namespace.clone(), name.clone())) else {
            return Err(format!("the claim {name} on a volume does not exist; create it"));
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("the claim {name} on a volume is being deleted"));
        }
        if &*claim.status.phase == "Lost" {
            return Err(format!("the claim {name} has lost its volume"));
        }
        if &*claim.status.phase == "Bound" {
            return match self.volumes.get(&claim.spec.volume_name) {
                Some(volume) => Ok(Place::Of(volume)),
                None => Err(format!("the volume of the claim {name} does not exist")),
            };
        }
        let waits = |class: &&StorageClass| &*class.volume_binding_mode == "WaitForFirstConsumer";
        let class = claim.spec.storage_class_name.as_ref();
        match class.and_then(|class| self.classes.get(class)).filter(waits) {
            Some(class) if claim.spec.volume_name.is_empty() => Ok(Place::Any(claim, class)),
            _ => Err(format!("the claim {name} is not bound to a volume yet")),
        }
    }

    /// Whom a pod has to take turns with because of its claims.
    pub fn turns(&self, ties: &Ties) -> Vec<Watch> {
        let mut turns = Vec::new();
        for name in &ties.dynamic.claims {
            let Some(claim) = self.claims.get(&(ties.namespace.clone(), name.clone())) else {
                continue;
            };
            if is_for_one(claim) {
                turns.push(Watch::Claiming(ties.namespace.clone(), name.clone()));
            }
            if &*claim.status.phase != "Bound" {
                turns.extend(claim.spec.storage_class_name.clone().map(Watch::Class));
            }
        }
        turns
    }

    /// Claims of a pod that only one pod may use.
    pub fn for_one<'a>(&'a self, ties: &'a Ties) -> impl Iterator<Item = &'a Text> {
        ties.dynamic.claims.iter().filter(|name| {
            let key = (ties.namespace.clone(), (*name).clone());
            self.claims.get(&key).is_some_and(is_for_one)
        })
    }

    /// Whether a claim lets its pod be on a node.
    pub fn allows(&self, place: &Place<'_>, node: &NodeView<'_>) -> bool {
        match place {
            Place::Of(volume) => reaches(volume, node),
            Place::Any(claim, class) => {
                let chosen = claim.metadata.annotation(SELECTED);
                chosen.is_none_or(|chosen| chosen == node.name)
                    && (self.find(claim, node).is_some() || makes(class, node.labels))
            }
        }
    }

    /// What is to be done about the claims of a pod that is to be on a node. What is given is
    /// remembered: nobody else gets it.
    pub fn prepare(&mut self, ties: &Ties, node: &NodeView<'_>) -> Vec<Prepare> {
        let mut orders = Vec::new();
        for name in &ties.dynamic.claims {
            let key = (ties.namespace.clone(), name.clone());
            let Ok(Place::Any(claim, _)) = self.place(&key.0, &key.1) else { continue };
            let (namespace, claim_name) = key.clone();
            let Some(volume) = self.find(claim, node) else {
                orders.push(Prepare::Make { namespace, claim: claim_name });
                continue;
            };
            let (volume, version) =
                (volume.metadata.name.clone(), volume.metadata.resource_version.clone());
            let uid = claim.metadata.uid.clone();
            let given = volume.clone();
            orders.push(Prepare::Give { namespace, claim: claim_name, uid, volume, version });
            self.given.insert(given, key);
        }
        orders
    }

    /// What was given to the claims of a pod and not taken is free again.
    pub fn give_up(&mut self, ties: &Ties) {
        let of = |key: &Key| key.0 == ties.namespace && ties.dynamic.claims.contains(&key.1);
        let before = self.given.len();
        self.given.retain(|_, key| !of(key));
        self.version += u64::from(self.given.len() != before);
    }

    /// The smallest volume that a claim could have on a node: one that is kept for it first.
    fn find(&self, claim: &Claim, node: &NodeView<'_>) -> Option<&PersistentVolume> {
        let asks = amount(&claim.spec.resources.requests).unwrap_or(0);
        let selector = claim.spec.selector.as_ref();
        let selector = selector.map(|written| Selector::of("selector", Some(written)));
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

fn is_for_one(claim: &Claim) -> bool {
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

fn take<K: Ord, T>(known: &mut BTreeMap<K, T>, seen: berth_kube::Seen<T>, key: impl Fn(&T) -> K) {
    match seen {
        berth_kube::Seen::All(all) => {
            *known = all.into_iter().map(|object| (key(&object), object)).collect();
        }
        berth_kube::Seen::Changes(changes) => {
            for change in changes {
                match change {
                    berth_kube::Change::Put(object) => drop(known.insert(key(&object), object)),
                    berth_kube::Change::Gone(object) => drop(known.remove(&key(&object))),
                }
            }
        }
    }
}
