//! What is said about a pod, on itself or on what owns it.

use super::{Around, GroupKey, Kind, is_mark};
use crate::object::{Meta, Owner, Pod};
use berth_model::Name;

pub(super) struct Said<'a> {
    pub pod: &'a Pod,
    pub around: Around<'a>,
}

impl<'a> Said<'a> {
    /// The pod first, then its owners from the nearest on.
    fn metas(&self) -> impl Iterator<Item = &'a Meta> {
        let owners = self.around.owners.iter().map(|owner| &owner.metadata);
        [&self.pod.metadata].into_iter().chain(owners)
    }

    pub fn label(&self, key: &str) -> Option<&'a str> {
        debug_assert!(is_mark(key), "{key} is not kept of all owners");
        self.metas().find_map(|meta| meta.label(key)).filter(|value| !value.is_empty())
    }

    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        debug_assert!(is_mark(key), "{key} is not kept of all owners");
        self.metas().find_map(|meta| meta.annotation(key)).filter(|value| !value.is_empty())
    }

    /// A mark that is written either way.
    pub fn either(&self, key: &str) -> Option<&'a str> {
        self.label(key).or_else(|| self.annotation(key))
    }

    /// The owner of that kind, where it was given.
    pub fn owner(&self, group: &str, kind: &str) -> Option<&'a Owner> {
        let mut owners = self.around.owners.iter().copied();
        owners.find(|owner| owner.group() == group && &*owner.kind == kind)
    }

    /// A gang in the pod's namespace.
    pub fn key(&self, kind: Kind, name: &str) -> GroupKey {
        let namespace = Name::new(&self.pod.metadata.namespace);
        GroupKey { namespace, kind, name: Name::new(name), uid: None }
    }
}
