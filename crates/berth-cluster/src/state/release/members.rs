//! Members that a gang takes in while it runs, and the last look at a place before a pod gets it.

use crate::constraints::dynamic::{self, FeasibleNodes, PodQuery, PodSelector};
use crate::state::ClusterState;
use crate::view::{NodeViews, PodView};
use berth_engine::Turn;
use berth_model::{JobId, Name, NodeAsk};
use std::collections::BTreeSet;

impl ClusterState {
    /// Works out where a gang that runs may take other members in. Those that run are placed, so
    /// their own rules about each other count as those of others do. Returns whether it may.
    pub(in crate::state) fn find_nodes_again(
        &mut self,
        turn: &mut Turn<'_>,
        job: JobId,
        is_missing: bool,
    ) -> bool {
        if !self.constrained_jobs.is_constrained(job) && !self.is_constrained(&self.views(job)) {
            return true;
        }
        // Of a pod that is yet to come the rules are not known.
        if is_missing {
            return false;
        }
        let mut locks = self.locks(job);
        self.lock_drivers(job, &mut locks);
        // A gang that runs does not wait for a job that has had its turn and found no place.
        self.hold_again(turn, job, &locks);
        if self.constrained_jobs.clashes(job, &locks) {
            return false;
        }
        let reached = self.feasible_nodes_of(turn.core, job, |pod| pod.placed.is_none());
        match reached {
            Ok(reached) => self.report_nodes(turn, job, reached),
            Err(_) => false,
        }
    }

    /// A gang that runs could not have a place: its next members get nodes that its rules allow now,
    /// or none.
    pub(in crate::state) fn grow_elsewhere(&mut self, turn: &mut Turn<'_>, job: JobId) {
        let runs = turn.core.jobs.get(&job).is_some_and(|live| !live.leases.is_empty());
        if !runs || self.find_nodes_again(turn, job, false) {
            return;
        }
        let none = NodeAsk { only: Some(BTreeSet::new()), ..NodeAsk::default() };
        let asks = vec![Some(none); turn.core.state.groups_of(job).len()];
        self.report_nodes(turn, job, FeasibleNodes { asks, is_divided: false });
    }

    /// Why a pod must not come to a node, by what it and pods that are placed, or are about to be,
    /// must be away from. What was decided holds to that; this sees it again as the binding is
    /// ordered, when nothing can come in between any more.
    pub(in crate::state) fn repelled(&self, view: &PodView, node: &Name) -> Option<String> {
        let there = self.nodes.view(node)?;
        let index = &self.constrained_jobs.index;
        let own = view.constraints.iter().flat_map(|known| &known.dynamic.anti_affinity);
        let own = own.map(|rule| (rule, PodQuery::Matching(vec![PodSelector::of(rule)])));
        let others = index.barred(view).map(|rule| (rule, PodQuery::Carrying(rule.clone())));
        own.chain(others).find_map(|(rule, query)| {
            let value = dynamic::label(there, &rule.topology_key)?;
            let is_near = |at: &Name| {
                let other = self.nodes.view(at);
                other.and_then(|other| dynamic::label(other, &rule.topology_key)) == Some(value)
            };
            let members = index.members(&query).filter(|(uid, _)| **uid != view.at.uid);
            let (uid, _) = members.into_iter().find(|(_, at)| is_near(at))?;
            let name = self.pods.get(uid).map_or(uid.as_str(), |pod| &pod.view.at.name);
            Some(format!(
                "{name} is in the same {}, by whose rule or its own it must not be",
                rule.topology_key
            ))
        })
    }
}
