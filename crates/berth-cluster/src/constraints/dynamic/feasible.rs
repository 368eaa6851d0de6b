//! The feasible and the preferred nodes of a group of pods, with all other pods where they are.

use super::attach::{AttachBarriers, bars};
use super::choose::{Test, choose};
use super::context::{PlacementContext, PodGroup, label};
use super::gang_rules::share;
use super::index::{PodQuery, PodSelector};
use super::infeasible::{Infeasible, NodeFault};
use super::preferred::PreferredTerm;
use crate::view::PodConstraints;
use crate::view::{NodeView, PodView};
use berth_kube::object::Text;
use berth_kube::pod::interpod::TopologySpread;
use berth_kube::pod::node_constraint;
use berth_model::{Name, NodeAsk};
use std::collections::BTreeMap;

/// What a pod that is one too many in its place costs, beside weights of up to a hundred.
const CROWD_WEIGHT: i64 = 10;

/// Where a job may lie.
pub struct FeasibleNodes {
    /// The nodes of each group.
    pub asks: Vec<Option<NodeAsk>>,
    /// Nodes were divided among the groups by what is free there now, and may be otherwise later.
    pub is_divided: bool,
}

/// The nodes of each group, or why the job has to wait.
pub fn feasible_nodes(
    context: &PlacementContext<'_>,
    groups: &[PodGroup<'_>],
) -> Result<FeasibleNodes, Infeasible> {
    let AttachBarriers { groups: barred, is_divided } = bars(context, groups);
    let asks = groups.iter().zip(barred).map(|(group, barred)| context.group(group, barred));
    Ok(FeasibleNodes { asks: asks.collect::<Result<_, _>>()?, is_divided })
}

impl<'a> PlacementContext<'a> {
    fn group(
        &self,
        group: &PodGroup<'a>,
        barred: BTreeMap<Name, NodeFault>,
    ) -> Result<Option<NodeAsk>, Infeasible> {
        let mut tests = Vec::new();
        if !barred.is_empty() {
            tests.push(Test::Unbarred(barred));
        }
        let mut preferences = Vec::new();
        let mut known: Vec<&PodView> = Vec::new();
        for view in &group.views {
            // Pods of one group are mostly alike.
            let alike = |other: &&PodView| {
                other.constraints == view.constraints && other.labels == view.labels
            };
            if known.iter().any(alike) {
                continue;
            }
            known.push(view);
            self.bars(view, &mut tests);
            preferences.extend(self.preferred_terms(view));
            if let Some(constraints) = view.constraints.as_deref() {
                self.near(constraints, view, &mut tests)?;
                self.away(constraints, &mut tests);
                self.spread(constraints, view, group, &mut tests);
                self.claims(constraints, &mut tests)?;
                preferences.extend(self.preferences(constraints));
            }
        }
        let constraint =
            known.iter().find_map(|view| Some(&view.constraints.as_deref()?.constraint));
        choose(self, constraint, &tests, &preferences)
    }

    /// Where such pods are, by the values of a label.
    fn places(&self, query: &PodQuery, key: &str) -> BTreeMap<Text, i64> {
        let mut places = BTreeMap::new();
        for (name, count) in self.index.nodes(query) {
            let value = self.nodes.view(name).and_then(|node| label(node, key));
            if let Some(value) = value {
                *places.entry(value.clone()).or_default() += i64::from(count);
            }
        }
        places
    }

    /// Pods that run and must be away from such a one.
    fn bars(&self, view: &PodView, tests: &mut Vec<Test<'a>>) {
        for rule in self.index.barred(view) {
            let places = self.places(&PodQuery::Carrying(rule.clone()), &rule.topology_key);
            if !places.is_empty() {
                tests.push(Test::NotIn(
                    &rule.topology_key,
                    places.into_keys().collect(),
                    NodeFault::Excluded,
                ));
            }
        }
    }

    /// What each value of a label is worth to pods that are placed.
    fn preferred_terms(&self, view: &'a PodView) -> Vec<(&'a Text, BTreeMap<Text, i64>)> {
        let worth = |term: PreferredTerm<'a>| {
            let mut values: BTreeMap<Text, i64> = BTreeMap::new();
            for (name, worth) in term.nodes() {
                let key = &term.rule.topology_key;
                let value = self.nodes.view(name).and_then(|node| label(node, key));
                if let Some(value) = value {
                    *values.entry(value.clone()).or_default() += worth;
                }
            }
            (&term.rule.topology_key, values)
        };
        self.index.preferred_terms(view).map(worth).collect()
    }

    fn near(
        &self,
        constraints: &'a PodConstraints,
        view: &PodView,
        tests: &mut Vec<Test<'a>>,
    ) -> Result<(), Infeasible> {
        let rules = &constraints.dynamic.affinity;
        if rules.is_empty() {
            return Ok(());
        }
        // A pod counts only where it is meant by all of the terms.
        let all: Vec<PodSelector> = rules.iter().map(PodSelector::of).collect();
        let own = all.iter().all(|who| self.index.matches(who, view));
        let query = PodQuery::Matching(all);
        let places = rules.iter().map(|rule| self.places(&query, &rule.topology_key));
        let places: Vec<BTreeMap<Text, i64>> = places.collect();
        if places.iter().all(BTreeMap::is_empty) {
            if !own {
                return Err(Infeasible::NoPeerPlaced);
            }
            // The first of those that must be near each other may be anywhere.
            tests.extend(rules.iter().map(|rule| Test::Has(&rule.topology_key)));
            return Ok(());
        }
        let places = places.into_iter().map(|places| places.into_keys().collect());
        let test = |(rule, places): (&'a berth_kube::pod::interpod::AffinityTerm, _)| {
            Test::In(&rule.topology_key, places, NodeFault::Affinity)
        };
        tests.extend(rules.iter().zip(places).map(test));
        Ok(())
    }

    fn away(&self, constraints: &'a PodConstraints, tests: &mut Vec<Test<'a>>) {
        for rule in &constraints.dynamic.anti_affinity {
            let places =
                self.places(&PodQuery::Matching(vec![PodSelector::of(rule)]), &rule.topology_key);
            if !places.is_empty() {
                tests.push(Test::NotIn(
                    &rule.topology_key,
                    places.into_keys().collect(),
                    NodeFault::AntiAffinity,
                ));
            }
        }
    }

    /// Places that would not stick out with one pod more, or with as many of a gang as may be there.
    fn spread(
        &self,
        constraints: &'a PodConstraints,
        view: &PodView,
        group: &PodGroup<'_>,
        tests: &mut Vec<Test<'a>>,
    ) {
        for spread in constraints.dynamic.spread.iter().filter(|spread| spread.required) {
            let who = PodSelector::within(&constraints.namespace, &spread.pods);
            let own = self.index.matches(&who, view);
            let counts = self.counts(constraints, spread, &PodQuery::Staying(who));
            let least = counts.values().copied().min().unwrap_or(0);
            let few = (counts.len() as u32) < spread.min_domains;
            let least = if few { 0 } else { least };
            let skew = i64::from(spread.max_skew);
            let n = group.views.len() as u32;
            let more = match own {
                false => 0,
                true if n == 1 => 1,
                true => {
                    let domains = counts.len() as u32;
                    let at_most = group.at_most.or(share(n, domains, spread.max_skew));
                    let at_most = i64::from(at_most.unwrap_or(n));
                    // So many the emptiest place gets, however the others are filled.
                    let level = !few && counts.values().all(|count| *count == least);
                    let rest = i64::from(n) - (i64::from(domains) - 1) * at_most;
                    at_most - if level { rest.max(0) } else { 0 }
                }
            };
            let fits = counts.into_iter().filter(|(_, count)| count + more - least <= skew);
            tests.push(Test::In(
                &spread.topology_key,
                fits.map(|(value, _)| value).collect(),
                NodeFault::Spread,
            ));
        }
    }

    /// How many such pods there are in each place that counts.
    fn counts(
        &self,
        constraints: &PodConstraints,
        spread: &TopologySpread,
        query: &PodQuery,
    ) -> BTreeMap<Text, i64> {
        let required =
            constraints.dynamic.spread.iter().filter(|other| other.required == spread.required);
        let keys: Vec<&Text> = required.map(|other| &other.topology_key).collect();
        let mut counts: BTreeMap<Text, i64> = BTreeMap::new();
        let counts_in = |node: &NodeView| {
            let view = node_constraint::NodeView::from(&*node.object);
            keys.iter().all(|key| label(node, key).is_some())
                && (!spread.honors_node_affinity || constraints.constraint.selection.allows(&view))
                && (!spread.honors_node_taints || constraints.constraint.tolerance.allows(&view))
        };
        for node in self.nodes.views().filter(|node| counts_in(node)) {
            if let Some(value) = label(node, &spread.topology_key) {
                counts.entry(value.clone()).or_default();
            }
        }
        for (name, count) in self.index.nodes(query) {
            let Some(node) = self.nodes.view(name).filter(|node| counts_in(node)) else {
                continue;
            };
            let place = label(node, &spread.topology_key).and_then(|value| counts.get_mut(value));
            if let Some(place) = place {
                *place += i64::from(count);
            }
        }
        counts
    }

    fn claims(
        &self,
        constraints: &'a PodConstraints,
        tests: &mut Vec<Test<'a>>,
    ) -> Result<(), Infeasible> {
        for claim in self.volumes.for_one(constraints) {
            let query = PodQuery::Claiming(constraints.namespace.clone(), claim.clone());
            if self.index.nodes(&query).next().is_some() {
                return Err(Infeasible::ExclusiveClaim { claim: claim.clone() });
            }
        }
        tests.extend(self.volumes.places(constraints)?.into_iter().map(Test::Volume));
        Ok(())
    }

    /// What each value of a label is worth.
    fn preferences(&self, constraints: &'a PodConstraints) -> Vec<(&'a Text, BTreeMap<Text, i64>)> {
        let mut preferences = Vec::new();
        for (weight, rule) in &constraints.dynamic.preferred {
            let places =
                self.places(&PodQuery::Matching(vec![PodSelector::of(rule)]), &rule.topology_key);
            let worth = |(value, count): (Text, i64)| (value, count * i64::from(*weight));
            preferences.push((&rule.topology_key, places.into_iter().map(worth).collect()));
        }
        for spread in constraints.dynamic.spread.iter().filter(|spread| !spread.required) {
            let who = PodSelector::within(&constraints.namespace, &spread.pods);
            let counts = self.counts(constraints, spread, &PodQuery::Staying(who));
            let worth = |(value, count): (Text, i64)| (value, -count * CROWD_WEIGHT);
            preferences.push((&spread.topology_key, counts.into_iter().map(worth).collect()));
        }
        preferences
    }
}
