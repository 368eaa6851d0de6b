//! Members of elastic gangs beyond their minimum.

use crate::ix::JobIx;
use crate::plan::planner::Planner;
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::shape::tree::Tree;
use berth_model::NodeState;

impl Planner<'_> {
    /// What a gang can give up and still hold its minimum, newest first: single tasks beyond the
    /// minimum of their group, and whole groups beyond the number it needs.
    pub(crate) fn surplus_of(&self, job: JobIx) -> Vec<Vec<u32>> {
        let state = self.state();
        // One that misses a member elsewhere has none to spare.
        if !state.elastic.contains(&state.jobs.get(job).id) || !state.has_minimum(job) {
            return Vec::new();
        }
        let shape = self.state().shape_of(job);
        let mut found = Vec::new();
        self.surplus_in(job, shape, &shape.tree, &mut found);
        found.reverse();
        found
    }

    fn surplus_in(&self, job: JobIx, shape: &Shape, tree: &Tree, found: &mut Vec<Vec<u32>>) {
        let known = self.state().jobs.get(job);
        // What lies on a failed node is as good as lost, though its lease has not ended yet.
        let lost = |task: u32| {
            let lease = known.tasks[task as usize].lease.as_deref();
            let node = lease.map(|lease| self.state().cluster.node(lease.node));
            node.is_some_and(|node| node.spec.state == NodeState::Failed)
        };
        let live = |leaf: &Leaf| -> Vec<u32> {
            let all = leaf.first..leaf.first + leaf.count;
            all.filter(|task| self.is_live(job, *task) && !lost(*task)).collect()
        };
        match tree {
            Tree::Leaf(at) => {
                let leaf = &shape.leaves[*at];
                let beyond = live(leaf).into_iter().skip(leaf.min as usize);
                found.extend(beyond.map(|task| vec![task]));
            }
            Tree::Group { children, min, .. } => {
                let whole = children
                    .iter()
                    .filter(|child| self.state().missing_in(known, shape, child) == 0);
                for (n, child) in whole.enumerate() {
                    if n < *min as usize {
                        self.surplus_in(job, shape, child, found);
                    } else {
                        let leaves = child.leaves();
                        let tasks: Vec<u32> =
                            leaves.iter().flat_map(|at| live(&shape.leaves[*at])).collect();
                        // One of which tasks have ended well would be left in part, or holds
                        // nothing any more.
                        let ended = leaves.iter().any(|at| {
                            let leaf = &shape.leaves[*at];
                            let own = leaf.first as usize..(leaf.first + leaf.count) as usize;
                            known.tasks[own].iter().any(|task| task.done)
                        });
                        found.extend((!tasks.is_empty() && !ended).then_some(tasks));
                    }
                }
            }
        }
    }

    pub(super) fn is_live(&self, job: JobIx, task: u32) -> bool {
        let lease = self.state().jobs.get(job).tasks[task as usize].lease.as_ref();
        lease.is_some_and(|lease| lease.stopping.is_none())
    }
}
