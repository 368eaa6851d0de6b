//! The checker: what Kubernetes promises of a scheduler, written down without Berth's code.

mod amounts;
mod complete;
mod fits;
mod history;
mod scene;
mod selector;
mod valid;
mod victims;

#[cfg(test)]
mod tests;

pub use complete::check as check_complete;
pub use fits::{fits, rules};
pub use history::Step;
pub use scene::{Node, Pod, Scene};
pub use victims::Outcome;

use super::finding::{Finding, What};
use super::world::{Key, World};
use std::collections::BTreeMap;

/// What a scheduler made of a world.
#[derive(Debug, Clone)]
pub struct Run {
    /// The nodes, budgets and volumes as they were in the cluster.
    pub start: Scene,
    pub steps: Vec<Step>,
    pub is_at_rest: bool,
    /// Why pods wait, as their conditions say.
    pub reasons: BTreeMap<Key, String>,
    /// What Berth has logged as an error.
    pub errors: Vec<String>,
    /// All that Berth has logged, and its events.
    pub log: String,
}

impl Run {
    pub fn outcome(&self, world: &World) -> Outcome {
        let ended: Vec<Key> = world.phases.iter().flat_map(|phase| phase.leaving.clone()).collect();
        Outcome::of(&self.start, &self.steps, &ended)
    }
}

/// Everything that is wrong with Berth's run of a world.
pub fn of_berth(world: &World, berth: &Run, peer: &Run) -> Vec<Finding> {
    let mut findings = valid::check(&berth.start, &berth.steps);
    let all = Key { namespace: String::new(), name: "all".to_owned() };
    let logged = berth.errors.iter().map(|error| Finding::new(What::Error, &all, error.clone()));
    findings.extend(logged);
    if !berth.is_at_rest {
        findings.push(Finding::new(What::Restless, &all, "it does not come to rest".to_owned()));
        return findings;
    }
    let outcome = berth.outcome(world);
    findings.extend(complete::check(&outcome.after, true));
    findings.extend(outcome.check());
    if peer.is_at_rest && world.is_pinned() {
        findings.extend(outcome.compare(&peer.outcome(world)));
    }
    findings
}

/// The same of kube-scheduler's run, as far as kube-scheduler promises it. A finding here is a
/// mistake of the checker.
pub fn of_peer(world: &World, peer: &Run) -> Vec<Finding> {
    let mut findings = valid::check(&peer.start, &peer.steps);
    findings.retain(|finding| finding.what != What::PartialGang);
    if peer.is_at_rest {
        let outcome = peer.outcome(world);
        let left = complete::check(&outcome.after, false).into_iter();
        findings.extend(left.filter(|finding| !is_looked_at_late(&outcome, finding)));
    }
    findings
}

/// kube-scheduler does not always notice that a pod fits now: where another pod lets one with a
/// selector of namespaces fit, and where pods that preempted together have left room. It looks at
/// such pods again after five minutes, which no run waits for.
fn is_looked_at_late(peer: &Outcome, finding: &Finding) -> bool {
    let selects_namespaces =
        |pod: &Pod| pod.spec["affinity"]["podAffinity"].to_string().contains("namespaceSelector");
    let pod = peer.after.pods.get(&finding.about);
    finding.what == What::LeftWaiting
        && (!peer.victims.is_empty() || pod.is_some_and(selects_namespaces))
}
