//! Taking over what runs already and no log knows: its tasks hold what they stand on from now on.

use crate::cluster::node::{Node, Requester, TaskAmounts};
use crate::cluster::tenants::Apart;
use crate::ix::{NodeIx, TaskIx};
use crate::state::State;
use berth_model::{Decision, JobId, Name};
use std::collections::BTreeMap;

impl State {
    /// Whether something holds a place on that node.
    pub fn is_busy(&self, node: &str) -> bool {
        self.cluster.find(node).is_some_and(|ix| !self.cluster.node(ix).tasks.is_empty())
    }

    /// The starts that leave these tasks of a waiting job where they are. Nothing where they cannot
    /// be there: the node is unknown, takes no work, or has not enough left.
    pub fn adoption(&self, job: JobId, places: &[(u32, Name)]) -> Option<Vec<Decision>> {
        let ix = self.jobs.find(job)?;
        let known = self.jobs.get(ix);
        let until = self.now + self.hold_span(known);
        let (queue, apart) = (known.queue, Apart::of(&self.policy));
        let requester =
            Requester { job: ix, queue, now: self.now, until, rush: false, apart, claims: false };
        // What runs there already may share its GPU with another queue, whatever the policy says.
        let beside_others = Requester { apart: Apart::None, ..requester };
        let mut nodes: BTreeMap<NodeIx, Node> = BTreeMap::new();
        let mut starts = Vec::with_capacity(places.len());
        for (task, name) in places {
            let at = self.cluster.find(name)?;
            let node = nodes.entry(at).or_insert_with(|| self.cluster.node(at).clone());
            let attempt = known.tasks.get(*task as usize)?.attempts;
            let need = &self.leaf_of(ix, *task).need;
            let slices = node.choose(need, &requester);
            let slices = slices.or_else(|| node.choose(need, &beside_others))?;
            let (cpu, memory) = (need.cpu, need.memory);
            let held = TaskAmounts { queue, cpu, memory, counted: &need.counted };
            let held = held.bound(&node.spec);
            node.take(TaskIx { job: ix, task: *task }, &slices, held);
            starts.push(Decision::Start {
                lease: known.lease_id(*task, attempt),
                node: name.clone(),
                price: self.price_of(at, &slices, need.cpu),
                slices,
                resume: false,
            });
        }
        Some(starts)
    }
}
