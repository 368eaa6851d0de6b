//! Why no node is feasible for a job at the moment.

use berth_kube::object::Text;
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
    /// How many nodes are ruled out by each cause, of those that the pod's own node selector,
    /// affinity and tolerations allow.
    #[error("{}", summary(.0))]
    NoNode(BTreeMap<NodeFault, u32>),
}

/// Why a node is not feasible for a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum NodeFault {
    /// The node cannot attach so many more volumes of this driver.
    #[error("cannot attach that many more volumes of {driver}")]
    AttachLimit { driver: Text },
    /// The node does not have this driver, whose CSIDriver says that it has to.
    #[error("without the driver {driver} of its volumes")]
    MissingDriver { driver: Text },
    #[error("with too little storage of the class {class} for the claim {claim}")]
    Storage { claim: Text, class: Text },
    /// By rules about other pods, or because volumes are elsewhere.
    #[error("by rules about other pods, or by where its volumes are")]
    Place,
}

fn summary(faults: &BTreeMap<NodeFault, u32>) -> String {
    if faults.keys().all(|fault| *fault == NodeFault::Place) {
        return "no node suits its rules about other pods, or its volumes, now".to_owned();
    }
    let each: Vec<String> = faults.iter().map(|(fault, n)| format!("{n} {fault}")).collect();
    format!("no node will do for its volumes now: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infeasible_pod_says_how_many_nodes_each_cause_rules_out() {
        let place = (NodeFault::Place, 2);
        let why = Infeasible::NoNode([place.clone()].into()).to_string();
        assert_eq!(why, "no node suits its rules about other pods, or its volumes, now");
        let full = (NodeFault::AttachLimit { driver: "d.example.com".into() }, 3);
        let storage = (NodeFault::Storage { claim: "data".into(), class: "fast".into() }, 1);
        assert_eq!(
            Infeasible::NoNode([place, full, storage].into()).to_string(),
            "no node will do for its volumes now: 3 cannot attach that many more volumes of \
             d.example.com, 1 with too little storage of the class fast for the claim data, \
             2 by rules about other pods, or by where its volumes are"
        );
    }
}
