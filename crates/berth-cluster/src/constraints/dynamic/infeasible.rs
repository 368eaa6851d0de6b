//! Why no node is feasible for a job at the moment.

use berth_kube::object::Text;
use berth_model::{Reason, RuledOut};
use std::collections::BTreeMap;

/// Why a job is held. It may become feasible when other pods, volumes or nodes change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Infeasible {
    #[error("its pods are gone")]
    NoPods,
    #[error("it takes its turn among pods that have rules about each other")]
    TakesTurns,
    #[error("no pod that it must be near to is placed yet")]
    NoPeerPlaced,
    #[error("the claim {claim} on a volume does not exist; create it")]
    MissingClaim { claim: Text },
    #[error("the claim {claim} on a volume is being deleted")]
    DeletedClaim { claim: Text },
    #[error("the claim {claim} has lost its volume")]
    LostClaim { claim: Text },
    #[error("the volume of the claim {claim} does not exist")]
    MissingVolume { claim: Text },
    #[error("the claim {claim} is not bound to a volume yet")]
    UnboundClaim { claim: Text },
    #[error("another pod uses the claim {claim}, which is for one alone")]
    ExclusiveClaim { claim: Text },
    /// How many nodes are ruled out by each cause.
    #[error("{}", summary(.0))]
    NoNode(BTreeMap<NodeFault, u32>),
}

/// Why a node is not feasible for a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum NodeFault {
    /// By its own node selector or its affinity to nodes.
    #[error("without what its node selector or affinity asks for ({asks})")]
    Selection { asks: String },
    /// By taints that it does not tolerate, or by a cordon. Some pass by themselves.
    #[error("{why}")]
    Taints { why: String, passes: bool },
    /// The node cannot attach so many more volumes of this driver.
    #[error("cannot attach that many more volumes of {driver}")]
    AttachLimit { driver: Text },
    /// The node does not have this driver, whose CSIDriver says that it has to.
    #[error("without the driver {driver} of its volumes")]
    MissingDriver { driver: Text },
    #[error("with too little storage of the class {class} for the claim {claim}")]
    Storage { claim: Text, class: Text },
    /// The node is in no place of that kind.
    #[error("without the label {key} that its rules about other pods name")]
    NoLabel { key: Text },
    /// Pods that its affinity asks for are elsewhere.
    #[error("without the pods that its affinity must have there")]
    Affinity,
    /// Pods are there that its anti-affinity excludes.
    #[error("with pods that its anti-affinity excludes")]
    AntiAffinity,
    /// Pods are there whose anti-affinity excludes it.
    #[error("with pods whose anti-affinity excludes it")]
    Excluded,
    /// One more pod there would be too many beside other places.
    #[error("where one more pod would break its topology spread")]
    Spread,
    /// Its volumes are elsewhere, or cannot be made for the node.
    #[error("where its volumes cannot be used")]
    VolumePlace,
}

impl NodeFault {
    /// Whether it may pass while neither the pod nor the node is changed by people.
    pub fn passes(&self) -> bool {
        match self {
            NodeFault::Selection { .. } | NodeFault::NoLabel { .. } => false,
            NodeFault::Taints { passes, .. } => *passes,
            NodeFault::AttachLimit { .. }
            | NodeFault::MissingDriver { .. }
            | NodeFault::Storage { .. }
            | NodeFault::Affinity
            | NodeFault::AntiAffinity
            | NodeFault::Excluded
            | NodeFault::Spread
            | NodeFault::VolumePlace => true,
        }
    }
}

impl Infeasible {
    /// The same as a reason of the job.
    pub fn reason(&self) -> Reason {
        match self {
            Infeasible::NoNode(faults) => Reason::NodesRuledOut {
                nodes: faults.values().sum(),
                causes: faults.iter().map(|(fault, nodes)| ruled_out(fault, *nodes)).collect(),
            },
            why => Reason::PodsWait { why: why.to_string() },
        }
    }
}

fn ruled_out(fault: &NodeFault, nodes: u32) -> RuledOut {
    RuledOut { nodes, why: fault.to_string(), passes: fault.passes() }
}

fn summary(faults: &BTreeMap<NodeFault, u32>) -> String {
    let each: Vec<String> = faults.iter().map(|(fault, n)| format!("{n} {fault}")).collect();
    format!("no node will do for it now: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infeasible_pod_says_how_many_nodes_each_cause_rules_out() {
        let away = (NodeFault::AntiAffinity, 2);
        let full = (NodeFault::AttachLimit { driver: "d.example.com".into() }, 3);
        let storage = (NodeFault::Storage { claim: "data".into(), class: "fast".into() }, 1);
        assert_eq!(
            Infeasible::NoNode([away, full, storage].into()).to_string(),
            "no node will do for it now: 3 cannot attach that many more volumes of \
             d.example.com, 1 with too little storage of the class fast for the claim data, \
             2 with pods that its anti-affinity excludes"
        );
    }
}
