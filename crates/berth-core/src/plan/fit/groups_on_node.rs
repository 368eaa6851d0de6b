//! Groups of groups that must lie on one node, or in one NVLink island of one.

use crate::cluster::domain::Level;
use crate::ix::{DomainIx, NodeIx};
use crate::plan::fit::nearby::Nearby;
use crate::plan::fit::search::Search;
use crate::shape::leaf::Leaf;
use crate::shape::tree::Tree;
use std::collections::BTreeSet;

impl Search<'_, '_> {
    /// Places the minimum of some of the children on the first node, or island, that holds it.
    pub(super) fn on_one(
        &mut self,
        children: &[Tree],
        min: u32,
        level: Level,
        domain: DomainIx,
    ) -> bool {
        let nodes = self.by_rank(domain);
        for ix in nodes {
            let islands: BTreeSet<u8> =
                self.state().cluster.node(ix).gpus.iter().map(|gpu| gpu.island).collect();
            let parts: Vec<Option<u8>> = match level {
                Level::Nvlink => islands.into_iter().map(Some).collect(),
                Level::Node | Level::Label { .. } => vec![None],
            };
            for part in parts {
                let (mark, spots) = (self.draft.mark(), self.spots.len());
                if self.children_on(children, min, ix, part) {
                    return true;
                }
                self.undo_to(mark, spots);
            }
        }
        false
    }

    fn children_on(&mut self, children: &[Tree], min: u32, ix: NodeIx, part: Option<u8>) -> bool {
        let mut order: Vec<usize> = (0..children.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(self.largest(&children[*at])), *at));
        let mut placed = 0;
        for at in order {
            if placed == min {
                break;
            }
            self.steps += 1;
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            let fits = match &children[at] {
                Tree::Leaf(leaf) => {
                    let leaf = self.shape.leaves[*leaf].clone();
                    self.leaf_on(leaf, ix, part)
                }
                Tree::Group { children, min, together } => match together.required {
                    // An island inside the node is more than the node.
                    Some(Level::Nvlink) if part.is_none() => self.islands_of(children, *min, ix),
                    _ => self.children_on(children, *min, ix, part),
                },
            };
            if fits {
                placed += 1;
            } else {
                self.undo_to(mark, spots);
            }
        }
        placed >= min
    }

    fn islands_of(&mut self, children: &[Tree], min: u32, ix: NodeIx) -> bool {
        let gpus = &self.state().cluster.node(ix).gpus;
        let islands: BTreeSet<u8> = gpus.iter().map(|gpu| gpu.island).collect();
        islands.into_iter().any(|island| {
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            let fits = self.children_on(children, min, ix, Some(island));
            if !fits {
                self.undo_to(mark, spots);
            }
            fits
        })
    }

    fn leaf_on(&mut self, mut leaf: Leaf, ix: NodeIx, part: Option<u8>) -> bool {
        let n = leaf.min;
        let node = self.state().cluster.node(ix);
        let suits = leaf.classes.contains(&node.class) && leaf.suits(node);
        if !suits
            || !self.spread_allows(&leaf, n)
            || !Nearby::of(self.state(), &leaf, self.job).admits(self.state(), ix)
        {
            return false;
        }
        let bound = leaf.together.required == Some(Level::Nvlink)
            || leaf.together.segment.is_some_and(|(_, level)| level == Level::Nvlink);
        let islands: BTreeSet<u8> = match part {
            Some(island) => [island].into(),
            None if bound => node.gpus.iter().map(|gpu| gpu.island).collect(),
            None => {
                let room = node.capacity(&leaf.need, &self.requester, n);
                return room >= n && self.fill(&leaf, ix, n);
            }
        };
        // All tasks in one island: segments are whole there too.
        for island in islands {
            leaf.need.only = Some(island);
            let node = self.state().cluster.node(ix);
            if node.capacity(&leaf.need, &self.requester, n) >= n {
                return self.fill(&leaf, ix, n);
            }
        }
        false
    }

    /// Whether so many more tasks of a group that lies on one node may share that node.
    pub(super) fn spread_allows(&self, leaf: &Leaf, n: u32) -> bool {
        leaf.spread.is_none_or(|(_, at_most)| self.running_in(leaf, |_| true) + n <= at_most)
    }
}
