//! Rules between the pods of one gang. The gang is placed as a whole, so these become constraints
//! of the core.

use super::index::{Index, PodSelector};
use crate::view::PodConstraints;
use crate::view::{NodeViews, PodView};
use berth_kube::object::Text;
use berth_kube::pod::interpod::AffinityTerm;
use berth_model::{GroupSpec, Name, Spread};
use std::collections::BTreeSet;

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Why the rules between the pods of one gang cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GangRuleError {
    #[error(
        "anti-affinity between unlike pods of one gang cannot be kept; give them different gangs"
    )]
    AntiAffinityOfUnlikePods,
    #[error(
        "{pods} pods of one gang cannot be spread over {domains} values of {key} with that skew"
    )]
    Skew { pods: usize, domains: u32, key: Text },
    #[error("a gang cannot be spread over {first} and {second} at once; choose one")]
    TwoSpreads { first: Name, second: Name },
    #[error("a gang cannot be kept together by {first} and by {second}; choose one")]
    TwoAffinities { first: Name, second: Name },
    #[error(
        "pods of one gang have a rule about {key}, which is no topology that Berth knows; use \
         {} or topology.kubernetes.io/zone",
        HOSTNAME
    )]
    UnknownTopology { key: Text },
}

/// What is known where a gang is made.
pub struct GangContext<'a> {
    pub index: &'a Index,
    pub nodes: &'a dyn NodeViews,
    /// The levels the core knows.
    pub levels: BTreeSet<Name>,
}

/// Gives the groups of a gang the rules that its pods have about each other, or says why they
/// cannot be kept. `pods` are those of each group.
pub fn gang_rules(
    inside: &GangContext<'_>,
    groups: &mut [GroupSpec],
    pods: &[Vec<&PodView>],
) -> Result<(), GangRuleError> {
    for (at, group) in groups.iter_mut().enumerate() {
        let Some(view) = pods[at].iter().find(|view| view.constraints.is_some()) else { continue };
        let Some(constraints) = view.constraints.as_deref() else { continue };
        let others = pods.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<&PodView> = others.flat_map(|(_, pods)| pods.iter().copied()).collect();
        inside.group(group, constraints, &pods[at], &others)?;
    }
    Ok(())
}

impl GangContext<'_> {
    fn group(
        &self,
        group: &mut GroupSpec,
        constraints: &PodConstraints,
        own: &[&PodView],
        others: &[&PodView],
    ) -> Result<(), GangRuleError> {
        let means = |rule: &AffinityTerm, pods: &[&PodView]| {
            pods.iter().any(|pod| self.index.matches(&PodSelector::of(rule), pod))
        };
        for rule in &constraints.dynamic.anti_affinity {
            if means(rule, others) {
                return Err(GangRuleError::AntiAffinityOfUnlikePods);
            }
            if own.len() > 1 && means(rule, own) {
                self.spread(group, &rule.topology_key, 1)?;
            }
        }
        for rule in &constraints.dynamic.affinity {
            if own.len() > 1 && means(rule, own) {
                self.together(group, &rule.topology_key)?;
            }
        }
        for spread in constraints.dynamic.spread.iter().filter(|spread| spread.required) {
            let who = PodSelector::within(&constraints.namespace, &spread.pods);
            if own.len() < 2 || !own.iter().any(|pod| self.index.matches(&who, pod)) {
                continue;
            }
            let key = &spread.topology_key;
            let labels = self.nodes.views().filter_map(|node| node.object.metadata.label(key));
            let domains = labels.collect::<BTreeSet<&str>>().len() as u32;
            let at_most = share(own.len() as u32, domains, spread.max_skew);
            let at_most = at_most.ok_or_else(|| GangRuleError::Skew {
                pods: own.len(),
                domains,
                key: key.clone(),
            })?;
            self.spread(group, key, at_most)?;
        }
        Ok(())
    }

    fn spread(&self, group: &mut GroupSpec, key: &Text, at_most: u32) -> Result<(), GangRuleError> {
        let over = self.level(key)?;
        match &mut group.spread {
            Some(spread) if spread.over == over => spread.at_most = spread.at_most.min(at_most),
            Some(spread) => {
                let first = spread.over.clone();
                return Err(GangRuleError::TwoSpreads { first, second: over });
            }
            None => group.spread = Some(Spread { over, at_most }),
        }
        Ok(())
    }

    fn together(&self, group: &mut GroupSpec, key: &Text) -> Result<(), GangRuleError> {
        let level = self.level(key)?;
        let topology = group.topology.get_or_insert_default();
        match &topology.required {
            Some(required) if *required != level => {
                let first = required.clone();
                Err(GangRuleError::TwoAffinities { first, second: level })
            }
            _ => {
                topology.required = Some(level);
                Ok(())
            }
        }
    }

    fn level(&self, key: &Text) -> Result<Name, GangRuleError> {
        match &**key {
            HOSTNAME => Ok(Name::new("node")),
            _ if self.levels.contains(&**key) => Ok(Name::new(key)),
            _ => Err(GangRuleError::UnknownTopology { key: key.clone() }),
        }
    }
}

/// How many of `n` pods may be in one of the places such that however they are put, no place has
/// more of them than another by more than the skew. Nothing where no such number exists.
pub fn share(n: u32, places: u32, skew: u32) -> Option<u32> {
    if places == 0 || n <= places.saturating_mul(skew) {
        return Some(skew.min(n).max(1));
    }
    let at_most = n.saturating_add(skew) / places;
    (at_most.saturating_mul(places) >= n).then_some(at_most)
}

#[cfg(test)]
mod tests {
    use super::share;

    /// The largest difference between two places when `n` are put anyhow.
    fn worst(n: u32, places: u32, at_most: u32) -> u32 {
        let least = n.saturating_sub((places - 1) * at_most);
        at_most.min(n) - least
    }

    #[test]
    fn however_pods_are_put_the_skew_is_kept() {
        for n in 2..40 {
            for places in 1..8 {
                for skew in 1..5 {
                    let Some(at_most) = share(n, places, skew) else { continue };
                    assert!(at_most * places >= n, "{n} fit");
                    assert!(worst(n, places, at_most) <= skew, "{n} on {places} by {skew}");
                }
            }
        }
        assert_eq!(share(8, 4, 1), Some(2), "even numbers can always be put");
    }
}
