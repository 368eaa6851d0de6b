//! What a cluster is to consist of.

use super::identity::Identities;
use super::{Cluster, Part};
use std::collections::{BTreeMap, BTreeSet};

/// Where etcd keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In memory, or on disk where the machine has no `/dev/shm`.
    Memory,
    Disk,
}

/// Which nodes kwok plays, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kwok {
    pub(super) nodes: Nodes,
    /// None: nobody renews the Lease of a node.
    pub(super) lease_seconds: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Nodes {
    All,
    Labelled(String),
    Annotated(String),
}

impl Kwok {
    pub fn all_nodes() -> Kwok {
        Kwok::playing(Nodes::All)
    }

    /// Nodes with labels such as `type=kwok`.
    pub fn nodes_with_label(selector: &str) -> Kwok {
        Kwok::playing(Nodes::Labelled(selector.to_owned()))
    }

    pub fn nodes_with_annotation(selector: &str) -> Kwok {
        Kwok::playing(Nodes::Annotated(selector.to_owned()))
    }

    /// The Lease of a node ends so long after its last renewal. A kubelet has 40 s, and so have
    /// we otherwise; like a kubelet, kwok renews it after a quarter of that.
    #[must_use]
    pub fn lease_seconds(mut self, seconds: u32) -> Kwok {
        self.lease_seconds = Some(seconds);
        self
    }

    /// For many nodes: their Leases alone would be most of the API server's work. The controller
    /// manager is then told not to expect any.
    #[must_use]
    pub fn without_leases(mut self) -> Kwok {
        self.lease_seconds = None;
        self
    }

    fn playing(nodes: Nodes) -> Kwok {
        Kwok { nodes, lease_seconds: Some(40) }
    }
}

/// A cluster to be. Without anything else said: etcd in memory and the API server.
pub struct Builder {
    pub(super) storage: Storage,
    pub(super) parts: BTreeSet<Part>,
    pub(super) kwok: Kwok,
    pub(super) bare_admission: bool,
    pub(super) identities: Identities,
    pub(super) flags: BTreeMap<Part, Vec<String>>,
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder {
            storage: Storage::Memory,
            parts: BTreeSet::from([Part::Etcd, Part::ApiServer]),
            kwok: Kwok::all_nodes(),
            bare_admission: false,
            identities: Identities::new(),
            flags: BTreeMap::new(),
        }
    }

    #[must_use]
    pub fn storage(mut self, storage: Storage) -> Builder {
        self.storage = storage;
        self
    }

    /// With the controllers of Kubernetes: Jobs make pods, namespaces get a service account.
    #[must_use]
    pub fn controller_manager(mut self) -> Builder {
        self.parts.insert(Part::ControllerManager);
        self
    }

    /// With kube-scheduler, its client limits raised so far that they do not matter.
    #[must_use]
    pub fn scheduler(mut self) -> Builder {
        self.parts.insert(Part::Scheduler);
        self
    }

    /// With nodes that are only simulated, see `stages.yaml` for what they do.
    #[must_use]
    pub fn kwok(mut self, kwok: Kwok) -> Builder {
        self.parts.insert(Part::Kwok);
        self.kwok = kwok;
        self
    }

    /// For runs without the controller manager, in which nobody makes the service account that
    /// every pod must have, and nobody takes the taint off a new node.
    #[must_use]
    pub fn bare_admission(mut self) -> Builder {
        self.bare_admission = true;
        self
    }

    /// Somebody who may ask the API server, with no rights but those of the groups and those that
    /// a test gives.
    ///
    /// # Panics
    ///
    /// If there is such a user, or a name is not plain.
    #[must_use]
    pub fn user(mut self, name: &str, groups: &[&str]) -> Builder {
        self.identities.add(name, groups);
        self
    }

    /// A user who is to the API server what a pod with this service account is. Its name is
    /// `system:serviceaccount:NAMESPACE:NAME`.
    #[must_use]
    pub fn service_account(self, namespace: &str, name: &str) -> Builder {
        self.user(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")],
        )
    }

    /// One more flag for a part, such as `--feature-gates=…`. It comes after our own, so that a
    /// flag that takes one value has this one.
    #[must_use]
    pub fn flag(mut self, part: Part, flag: &str) -> Builder {
        self.flags.entry(part).or_default().push(flag.to_owned());
        self
    }

    /// Starts it, and waits until every part is ready.
    ///
    /// # Panics
    ///
    /// If a part has not been built or does not start: a test without its surroundings has failed.
    pub fn start(self) -> Cluster {
        Cluster::start_all(self)
    }
}
