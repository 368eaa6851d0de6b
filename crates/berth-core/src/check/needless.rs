//! Victims of a class that give the job they are stopped for nothing: they hold nothing where its
//! places are.

use crate::check::checker::{Checker, TransactionEffects};
use crate::check::finding::FindingCode;
use crate::check::place::Fault;
use crate::ix::{JobIx, NodeIx};
use berth_model::{Cause, GroupSpec};
use std::collections::{BTreeMap, BTreeSet};

impl Checker<'_> {
    /// Jobs that are stopped although their claimant gets places on other nodes alone.
    pub(super) fn needless(&self, work: &TransactionEffects) -> Vec<Fault> {
        let mut found = Vec::new();
        let mut nodes_of: BTreeMap<JobIx, Option<BTreeSet<NodeIx>>> = BTreeMap::new();
        for claim in &work.claims {
            if !matches!(claim.cause, Cause::Preempt | Cause::Across) {
                continue;
            }
            let nodes = nodes_of.entry(claim.claimant).or_insert_with(|| {
                let is_simple =
                    work.firm.contains(&claim.claimant) && self.is_simple(claim.claimant);
                let kept = self.view.promised_places(claim.claimant).filter(|_| is_simple)?;
                Some(kept.places.iter().map(|(node, _)| *node).collect())
            });
            let Some(nodes) = nodes else { continue };
            let holds = self.view.holds(claim.victim);
            if !holds.iter().any(|(_, hold)| nodes.contains(&hold.node)) {
                let (victim, claimant) =
                    (self.view.base(claim.victim).id, self.view.base(claim.claimant).id);
                let text = format!("job {victim} holds nothing where job {claimant} gets places");
                found.push((FindingCode::Needless, text));
            }
        }
        found
    }

    /// Whether room on its nodes is all that the job can need: no bound of a queue is in its way,
    /// and nothing about other jobs.
    fn is_simple(&self, ix: JobIx) -> bool {
        let (state, job) = (self.view.state, self.view.base(ix));
        let alone = |groups: &[GroupSpec]| {
            let leaves: Vec<&GroupSpec> = groups.iter().flat_map(GroupSpec::leaves).collect();
            matches!(leaves.as_slice(), [leaf] if leaf.near.is_empty())
        };
        let bounded = self.view.usage.path(job.queue).iter().any(|up| {
            let queue = state.queues.get(*up);
            !queue.limit.is_empty() || !queue.borrow.is_empty() || !queue.user_limit.is_empty()
        });
        job.spec.preemptible && alone(&job.spec.groups) && !bounded && !state.queues.some_lend
    }
}
