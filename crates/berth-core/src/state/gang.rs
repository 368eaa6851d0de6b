//! Whether a gang has its minimum of live tasks.

use crate::ix::JobIx;
use crate::jobs::Job;
use crate::shape::Shape;
use crate::shape::tree::Tree;
use crate::state::State;
use berth_model::NodeState;

impl State {
    /// Whether every group has at least its minimum of live tasks (ended ones count).
    pub(crate) fn has_minimum(&self, ix: JobIx) -> bool {
        self.missing_tasks(ix) == 0
    }

    /// Tasks missing to the minimum.
    pub(crate) fn missing_tasks(&self, ix: JobIx) -> u32 {
        let job = self.jobs.get(ix);
        let shape = self.shape_of(ix);
        self.missing_in(job, shape, &shape.tree)
    }

    /// Tasks missing to the minimum of a subtree.
    pub(crate) fn missing_in(&self, job: &Job, shape: &Shape, tree: &Tree) -> u32 {
        match tree {
            Tree::Leaf(at) => {
                let leaf = &shape.leaves[*at];
                let range = leaf.first as usize..(leaf.first + leaf.count) as usize;
                let alive = job.tasks[range].iter().filter(|task| {
                    task.done
                        || task.lease.as_ref().is_some_and(|lease| {
                            let state = self.cluster.node(lease.node).spec.state;
                            lease.stopping.is_none() && state != NodeState::Failed
                        })
                });
                leaf.min.saturating_sub(alive.count() as u32)
            }
            Tree::Group { children, min, .. } => {
                let each = children.iter().map(|child| self.missing_in(job, shape, child));
                let mut each: Vec<u32> = each.collect();
                each.sort_unstable();
                each.iter().take(*min as usize).sum()
            }
        }
    }
}
