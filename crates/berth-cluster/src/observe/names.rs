//! Resolves the names of queues, priority classes and topologies in manifests of other schedulers.

use crate::compat::{Compat, Peer};
use crate::constraints::hypernodes::Tiers;
use crate::view::Unschedulable;
use berth_kube::object::{Meta, Owner, Pod};
use berth_model::{Name, TopologyAsk};
use std::collections::BTreeMap;

const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// What names in manifests stand for. A pod that uses an unknown name waits.
#[derive(Default)]
pub struct Names {
    /// Of queues, by the configuration: foreign names, or `NAMESPACE/NAME`, to ours.
    pub mapped: BTreeMap<String, Name>,
    /// The queues that Kueue's LocalQueues stand for, where Berth stands in for Kueue.
    pub local: Option<BTreeMap<(Name, Name), Name>>,
    /// Priority classes, by Kueue's kind or by that of Kubernetes.
    pub classes: BTreeMap<Name, Class>,
    /// The class of pods that name none.
    pub usual: Class,
    /// The levels of each topology that an object describes.
    pub topologies: BTreeMap<Name, Vec<Name>>,
    /// The tiers of HyperNodes, which are one of these.
    pub tiers: Tiers,
}

/// What a priority class says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Class {
    pub value: i32,
    /// Its pods wait rather than displace others.
    pub waits: bool,
}

impl Names {
    pub fn new(compat: &Compat) -> Names {
        let local = compat.is_for(Peer::Kueue).then(BTreeMap::new);
        Names { mapped: compat.queues(), local, ..Names::default() }
    }

    /// Our queue for one that a manifest names.
    pub fn queue(&self, pod: &Pod, owners: &[&Owner], name: &Name) -> Result<Name, Unschedulable> {
        let namespace = &pod.metadata.namespace;
        let in_namespace = self.mapped.get(&format!("{namespace}/{name}"));
        if let Some(ours) = in_namespace.or_else(|| self.mapped.get(name.as_str())) {
            return Ok(ours.clone());
        }
        let Some(local) = &self.local else { return Ok(name.clone()) };
        if let Some(queue) = local.get(&(Name::new(namespace), name.clone())) {
            return Ok(queue.clone());
        }
        if queue_of_kueue(pod, owners) != Some(name.as_str()) {
            return Ok(name.clone());
        }
        let (namespace, queue) = (namespace.clone(), name.clone());
        Err(Unschedulable::UnknownLocalQueue { namespace, queue })
    }

    pub fn class(&self, name: &Name) -> Result<Class, Unschedulable> {
        let class = self.classes.get(name).copied();
        class.ok_or_else(|| Unschedulable::UnknownPriorityClass { class: name.clone() })
    }

    /// A level is looked for in the topology that is named, or in the only one that has it. Nothing
    /// where any place will do.
    pub fn place(&self, ask: TopologyAsk) -> Result<Option<TopologyAsk>, Unschedulable> {
        let ask = self.tiers.place(ask)?;
        let has = |topology: &Name, level: &Name| {
            self.topologies.get(topology).is_some_and(|levels| levels.contains(level))
        };
        let segment = ask.segment.as_ref().map(|segment| &segment.within);
        let Some(level) = ask.required.as_ref().or(ask.preferred.as_ref()).or(segment) else {
            return Ok(Some(ask).filter(|ask| *ask != TopologyAsk::default()));
        };
        let named = ask.within.clone().filter(|topology| has(topology, level));
        let within = named.or_else(|| {
            let found = self.topologies.keys().find(|topology| has(topology, level));
            found.cloned()
        });
        Ok(Some(TopologyAsk { within, ..ask }))
    }
}

/// Whether an object waits in a queue of Kueue's by itself.
pub fn is_queued(meta: &Meta) -> bool {
    meta.label(KUEUE_QUEUE).is_some_and(|name| !name.is_empty())
}

/// The queue of Kueue's that a pod or what owns it waits in.
pub fn queue_of_kueue<'a>(pod: &'a Pod, owners: &[&'a Owner]) -> Option<&'a str> {
    let metas = [&pod.metadata].into_iter().chain(owners.iter().map(|owner| &owner.metadata));
    metas.filter_map(|meta| meta.label(KUEUE_QUEUE)).find(|name| !name.is_empty())
}
