//! Places for the tree of groups of a job.

use crate::cluster::domain::Level;
use crate::ix::{ClassIx, DomainIx, NodeIx};
use crate::plan::fit::pack::gpu_states;
use crate::plan::fit::search::Search;
use crate::shape::leaf::Together;
use crate::shape::tree::Tree;
use std::collections::BTreeSet;

impl<'d, 's> Search<'d, 's> {
    /// Places the minimum of a subtree inside the domain.
    pub(super) fn tree(&mut self, tree: &Tree, domain: DomainIx) -> bool {
        match tree {
            Tree::Leaf(at) => {
                let shape = self.shape.clone();
                let leaf = &shape.leaves[*at];
                self.leaf(leaf, leaf.min, domain)
            }
            Tree::Group { children, min, together } => {
                if let Some(level @ (Level::Node | Level::Nvlink)) = together.required {
                    return self.on_one(children, *min, level, domain);
                }
                for inner in self.domains_for(together, domain) {
                    let (mark, spots) = (self.draft.mark(), self.spots.len());
                    if self.children(children, *min, inner) {
                        return true;
                    }
                    self.undo_to(mark, spots);
                    if self.steps > self.state().policy.search {
                        self.cut_off = true;
                        return false;
                    }
                }
                false
            }
        }
    }

    fn children(&mut self, children: &[Tree], min: u32, domain: DomainIx) -> bool {
        let (mark, spots) = (self.draft.mark(), self.spots.len());
        // The most demanding first: small tasks fit around large ones, not the reverse.
        let mut order: Vec<usize> = (0..children.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(self.largest(&children[*at])), *at));
        let mut placed = 0;
        for at in order {
            if placed == min {
                break;
            }
            self.steps += 1;
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            if self.tree(&children[at], domain) {
                placed += 1;
            } else {
                self.undo_to(mark, spots);
            }
        }
        if placed >= min {
            return true;
        }
        self.undo_to(mark, spots);
        self.search_unlike(children, min, domain)
    }

    pub(super) fn largest(&self, tree: &Tree) -> i64 {
        match tree {
            Tree::Leaf(at) => self.shape.leaves[*at].gpu_milli(&self.state().cluster),
            Tree::Group { children, .. } => {
                children.iter().map(|child| self.largest(child)).max().unwrap_or(0)
            }
        }
    }

    /// Where greed fails, tries the placements of unlike tasks one by one, within the bound. Only
    /// plain groups that are all needed: a choice among groups or domains has been made above.
    fn search_unlike(&mut self, children: &[Tree], min: u32, domain: DomainIx) -> bool {
        if (min as usize) < children.len() {
            return false;
        }
        let mut tasks: Vec<(usize, u32)> = Vec::new();
        for child in children {
            let Tree::Leaf(at) = child else { return false };
            let leaf = &self.shape.leaves[*at];
            let plain = leaf.together == Together::default()
                && leaf.spread.is_none()
                && leaf.near.is_empty();
            if !plain {
                return false;
            }
            tasks.extend(self.free_tasks(leaf, leaf.min).into_iter().map(|task| (*at, task)));
        }
        tasks.sort_by_key(|(leaf, task)| {
            let size = self.shape.leaves[*leaf].gpu_milli(&self.state().cluster);
            (std::cmp::Reverse(size), *leaf, *task)
        });
        let nodes: Vec<NodeIx> =
            self.state().cluster.domains[domain.at()].nodes.iter().copied().collect();
        self.descend(&tasks, 0, &nodes)
    }

    fn descend(&mut self, tasks: &[(usize, u32)], from: usize, nodes: &[NodeIx]) -> bool {
        let Some((leaf_at, task)) = tasks.first().copied() else { return true };
        let shape = self.shape.clone();
        let leaf = &shape.leaves[leaf_at];
        let alike_next = tasks.get(1).is_some_and(|(next, _)| *next == leaf_at);
        let mut seen: BTreeSet<(ClassIx, Vec<i64>, i64, i64)> = BTreeSet::new();
        for (at, ix) in nodes.iter().enumerate().skip(from) {
            self.steps += 1;
            if self.steps > self.state().policy.search {
                self.cut_off = true;
                return false;
            }
            let node = self.state().cluster.node(*ix);
            if !leaf.classes.contains(&node.class) || !leaf.suits(node) {
                continue;
            }
            // Nodes that look the same lead to the same end, if nothing is kept there.
            let gpus = gpu_states(node, &self.requester);
            let looks = (node.class, gpus, node.cpu_free, node.memory_free);
            let plain = node.clean() && leaf.need.counted.is_empty() && !node.is_tight();
            if plain && !seen.insert(looks) {
                continue;
            }
            let Some(slices) = self.choose(leaf, *ix) else { continue };
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            self.open(leaf, task, *ix, slices);
            // Like tasks go to nodes in order, so that no packing is tried twice.
            let next = if alike_next { at } else { 0 };
            if self.descend(&tasks[1..], next, nodes) {
                return true;
            }
            self.undo_to(mark, spots);
            if self.cut_off {
                return false;
            }
        }
        false
    }
}
