//! Where annotations come from: the pod, and then its owners.

use super::{GangKind, GroupKey, PodContext, is_gang_annotation};
use crate::object::{Meta, Owner, Pod};
use berth_model::Name;

pub(super) struct AnnotationSource<'a> {
    pub pod: &'a Pod,
    pub context: PodContext<'a>,
}

impl<'a> AnnotationSource<'a> {
    /// The pod first, then its owners from the nearest on.
    fn metas(&self) -> impl Iterator<Item = &'a Meta> {
        let owners = self.context.owners.iter().map(|owner| &owner.metadata);
        [&self.pod.metadata].into_iter().chain(owners)
    }

    pub fn label(&self, key: &str) -> Option<&'a str> {
        debug_assert!(is_gang_annotation(key), "{key} is not kept of all owners");
        self.metas().find_map(|meta| meta.label(key)).filter(|value| !value.is_empty())
    }

    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        debug_assert!(is_gang_annotation(key), "{key} is not kept of all owners");
        self.metas().find_map(|meta| meta.annotation(key)).filter(|value| !value.is_empty())
    }

    /// An annotation that may also be written as a label.
    pub fn either(&self, key: &str) -> Option<&'a str> {
        self.label(key).or_else(|| self.annotation(key))
    }

    /// The owner of that kind, where it was given.
    pub fn owner(&self, group: &str, kind: &str) -> Option<&'a Owner> {
        let mut owners = self.context.owners.iter().copied();
        owners.find(|owner| owner.group() == group && &*owner.kind == kind)
    }

    /// A gang in the pod's namespace.
    pub fn key(&self, kind: GangKind, name: &str) -> GroupKey {
        let namespace = Name::new(&self.pod.metadata.namespace);
        GroupKey { namespace, kind, name: Name::new(name), uid: None }
    }
}
