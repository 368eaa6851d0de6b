//! Whether pods were stopped that need not have been.

use super::fits::fits;
use super::history::Step;
use super::scene::{Budget, Pod, Scene};
use super::selector::matches;
use crate::fuzz::finding::{Finding, What};
use crate::fuzz::world::Key;
use std::collections::{BTreeMap, BTreeSet};

/// So many pods on a node are tried in all combinations.
const SUBSETS_OF: usize = 12;

/// What a run did to pods that were on a node.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Before the last phase.
    pub before: Scene,
    /// At rest.
    pub after: Scene,
    /// Pods that were stopped in the last phase, as they were last seen on their nodes.
    pub victims: Vec<Pod>,
    /// Pods that got a node in the last phase.
    placed: Vec<Pod>,
    /// The same of the phases before. What these victims held may have come free again since.
    earlier: (Vec<Pod>, Vec<Pod>),
}

impl Outcome {
    /// `ended` were deleted by the world itself.
    pub fn of(start: &Scene, steps: &[Step], ended: &[Key]) -> Outcome {
        let (mut scene, mut before) = (start.clone(), start.clone());
        let mut victims: BTreeMap<Key, Pod> = BTreeMap::new();
        let mut placed: BTreeMap<Key, Pod> = BTreeMap::new();
        let mut earlier: (Vec<Pod>, Vec<Pod>) = Default::default();
        let stop = |victims: &mut BTreeMap<Key, Pod>, pod: &Pod| {
            if pod.node.is_some() && !ended.contains(&pod.key) {
                victims.insert(pod.key.clone(), pod.clone());
            }
        };
        for step in steps {
            match step {
                Step::Phase => {
                    before = scene.clone();
                    earlier.0.extend(std::mem::take(&mut victims).into_values());
                    earlier.1.extend(std::mem::take(&mut placed).into_values());
                }
                Step::Seen(pod) => {
                    let known = scene.pods.insert(pod.key.clone(), (**pod).clone());
                    if pod.node.is_some() && known.is_none_or(|known| known.node.is_none()) {
                        placed.insert(pod.key.clone(), (**pod).clone());
                    }
                    if pod.is_leaving {
                        stop(&mut victims, pod);
                    }
                }
                Step::Gone(key) => {
                    if let Some(pod) = scene.pods.remove(key) {
                        stop(&mut victims, &pod);
                    }
                }
            }
        }
        let (victims, placed) = (victims.into_values().collect(), placed.into_values().collect());
        Outcome { before, after: scene, victims, placed, earlier }
    }

    fn node_of<'a>(&self, pod: &'a Pod) -> &'a str {
        pod.node.as_deref().expect("victims were on a node")
    }

    /// How many pods may have stopped this one.
    pub fn preemptors_of(&self, victim: &Pod) -> usize {
        self.placed.iter().filter(|pod| pod.priority > victim.priority).count()
    }

    /// What needs no other run to compare with.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for victim in self.earlier.0.iter().chain(&self.victims) {
            let placed = self.earlier.1.iter().chain(&self.placed);
            let most = placed.map(|pod| pod.priority).max();
            if most.is_none_or(|most| most <= victim.priority) {
                let text = format!(
                    "on {}: its priority is {}, and none of a higher one was placed",
                    self.node_of(victim),
                    victim.priority
                );
                findings.push(Finding::new(What::VictimOfNone, &victim.key, text));
            }
        }
        findings.extend(self.needless());
        findings
    }

    /// Those that would still fit where they were, a gang only as a whole.
    fn needless(&self) -> Vec<Finding> {
        let mut groups: BTreeMap<Key, Vec<&Pod>> = BTreeMap::new();
        for victim in &self.victims {
            let of = victim.gang.as_ref().map_or(&victim.key, |gang| &gang.name);
            groups.entry(of.clone()).or_default().push(victim);
        }
        let stay = groups.into_iter().filter(|(_, pods)| {
            let mut scene = self.after.clone();
            pods.iter().all(|pod| {
                let node = &scene.nodes[self.node_of(pod)].clone();
                let is_room = fits(&scene, pod, node).is_ok();
                scene.put(pod, &node.name);
                is_room
            })
        });
        stay.map(|(name, pods)| {
            let nodes: BTreeSet<&str> = pods.iter().map(|pod| self.node_of(pod)).collect();
            let nodes: Vec<&str> = nodes.into_iter().collect();
            let text = format!("there is still room for it on {}", nodes.join(", "));
            Finding::new(What::NeedlessVictim, &name, text)
        })
        .collect()
    }

    /// Beside a run of kube-scheduler from the same beginning, for worlds with one pod that preempts.
    pub fn compare(&self, peer: &Outcome) -> Vec<Finding> {
        let mut findings = Vec::new();
        let [urgent] = &self.placed[..] else { return findings };
        let is_alone = |pod: &Pod| pod.gang.is_none();
        let is_same = peer.placed.iter().any(|pod| pod.key == urgent.key);
        let (own, theirs) = (self.victims.len(), peer.victims.len());
        if is_same && own > theirs && self.victims.iter().all(is_alone) {
            let text = format!("{own} pods were stopped for it, kube-scheduler stopped {theirs}");
            findings.push(Finding::new(What::MoreVictims, &urgent.key, text));
        }
        findings.extend(self.violations(urgent));
        findings
    }

    fn violations(&self, urgent: &Pod) -> Vec<Finding> {
        let left: Vec<(&Budget, usize)> =
            self.before.budgets.iter().map(|one| (one, self.may_go(one))).collect();
        let stays_within = |victims: &[&Pod]| {
            left.iter().all(|(budget, may_go)| {
                victims.iter().filter(|pod| is_covered(budget, pod)).count() <= *may_go
            })
        };
        let victims: Vec<&Pod> = self.victims.iter().collect();
        if stays_within(&victims) {
            return Vec::new();
        }
        let Some((node, instead)) = self.harmless(urgent, &stays_within) else { return Vec::new() };
        let names: Vec<&str> = instead.iter().map(|pod| pod.key.name.as_str()).collect();
        let text = format!("stopping {} on {node} would violate no budget", names.join(", "));
        vec![Finding::new(What::BudgetViolated, &urgent.key, text)]
    }

    /// How many of the pods of a budget may go.
    fn may_go(&self, budget: &Budget) -> usize {
        let healthy = self.before.pods.values().filter(|pod| pod.runs && is_covered(budget, pod));
        healthy.count().saturating_sub(budget.min_available)
    }

    /// A node with a set of victims that violates no budget.
    fn harmless(
        &self,
        urgent: &Pod,
        stays_within: &dyn Fn(&[&Pod]) -> bool,
    ) -> Option<(String, Vec<&Pod>)> {
        for node in self.before.nodes.values() {
            let lower = self.before.on(&node.name).filter(|pod| pod.priority < urgent.priority);
            let lower: Vec<&Pod> = lower.filter(|pod| pod.gang.is_none()).collect();
            if lower.len() > SUBSETS_OF {
                continue;
            }
            for subset in 0..1_usize << lower.len() {
                let chosen = lower.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
                let chosen: Vec<&Pod> = chosen.map(|(_, pod)| *pod).collect();
                let keys: Vec<&Key> = chosen.iter().map(|pod| &pod.key).collect();
                if stays_within(&chosen) && fits(&self.before.without(&keys), urgent, node).is_ok()
                {
                    return Some((node.name.clone(), chosen));
                }
            }
        }
        None
    }
}

fn is_covered(budget: &Budget, pod: &Pod) -> bool {
    budget.namespace == pod.key.namespace && matches(&budget.selector, &pod.labels)
}
