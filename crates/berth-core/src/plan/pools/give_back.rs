//! Giving back machines that have been idle.

use crate::plan::planner::Planner;
use crate::transaction::Transaction;
use berth_model::{Decision, JobId, Name, NodeState, Time};

impl Planner<'_> {
    /// Returns what stands idle. It comes after everything that may still use a machine.
    pub(crate) fn give_back(&mut self) {
        let state = self.state();
        let mut due: Vec<(Time, Name, Name)> = Vec::new();
        let mut wakes = Vec::new();
        for (_, node) in state.cluster.live() {
            let Some(pool) = node.spec.pool.as_ref().filter(|p| state.pools.contains_key(*p))
            else {
                continue;
            };
            let idle = node.tasks.is_empty() && node.promised_slots.is_empty() && node.open();
            let Some(since) = node.idle_since.filter(|_| idle) else { continue };
            // Those that came first wait for the others.
            if self.completes(pool) {
                continue;
            }
            let at = since + state.policy.idle_after;
            if at <= state.now {
                due.push((since, node.spec.name.clone(), pool.clone()));
            } else {
                wakes.push(at);
            }
        }
        due.sort();
        for at in wakes {
            self.wake(at);
        }
        for (_, node, pool) in due {
            let returned =
                self.transactions.iter().flat_map(|t| &t.decisions).filter(
                    |d| matches!(d, Decision::Return { node } if self.in_pool(node, &pool)),
                );
            // Nodes that take no new work do not count towards the least that the pool keeps.
            let leaving = self.state().cluster.live().filter(|(_, node)| {
                node.spec.pool.as_ref() == Some(&pool)
                    && !matches!(node.spec.state, NodeState::Ready | NodeState::Leaving { .. })
            });
            let gone = returned.count() + leaving.count();
            if self.size(&pool).saturating_sub(gone as u32) > self.state().pools[&pool].min {
                let decisions = vec![Decision::Return { node }];
                self.transactions.push(Transaction { job: None, decisions });
            }
        }
    }

    /// Whether machines of the pool are still to come for a job that waits.
    fn completes(&self, pool: &Name) -> bool {
        let state = self.state();
        let waits = |id: &JobId| state.jobs.find(*id).is_some_and(|ix| state.is_waiting(ix));
        let coming = state.claims.values().filter(|claim| claim.pool == *pool);
        let coming = coming.filter_map(|claim| claim.for_job);
        let decided = self.transactions.iter().flat_map(|made| &made.decisions);
        let planned = decided.filter_map(|decision| match decision {
            Decision::Claim { pool: of, for_job, .. } if of == pool => *for_job,
            _ => None,
        });
        coming.chain(planned).any(|id| waits(&id))
    }

    fn in_pool(&self, node: &Name, pool: &Name) -> bool {
        let cluster = &self.state().cluster;
        cluster.find(node).is_some_and(|ix| cluster.node(ix).spec.pool.as_ref() == Some(pool))
    }
}
