//! Finding places: whether a job's minimum fits what is free, and where it packs best.
//!
//! Tasks of one group are alike, so counting decides exactly: a domain holds as many as its nodes
//! do. Only groups of unlike tasks need a search, which is bounded and says when it was cut off.

mod one_node;

use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::gpu::{Gpu, Mode, share_milli, share_on};
use crate::cluster::node::{Need, Node, Who};
use crate::draft::Draft;
use crate::fragmentation::{Free, Mix, free_gpus};
use crate::ix::{ClassIx, DomainIx, JobIx, NodeIx, TaskIx};
use crate::jobs::Lease;
use crate::shape::Shape;
use crate::shape::leaf::{Leaf, Together};
use crate::shape::tree::Tree;
use crate::state::State;
use berth_model::{GpuAsk, JobId, JobTarget, Name, NodeAsk, Slice, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nodes among which whole tasks too are placed by what they strand.
const MEASURED: usize = 2_048;

/// Where one task goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub task: u32,
    pub node: NodeIx,
    pub slices: Vec<Slice>,
}

/// The outcome of a search that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It does not fit: certain.
    No,
    /// No packing of its unlike tasks was found within the bound.
    CutOff,
}

/// Finds places for the job's minimum and takes them on the draft.
pub(crate) fn fit(
    draft: &mut Draft<'_>,
    mix: &Mix,
    job: JobIx,
    who: Who,
) -> Result<Vec<Spot>, Misfit> {
    let shape = draft.state.shapes[draft.state.jobs.get(job).shape.at()].clone();
    let full = shape.single().is_some_and(|leaf| !leaf.has_room(&draft.state.cluster, leaf.min));
    if full {
        return Err(Misfit::No);
    }
    let mut search = Search::new(draft, mix, job, who, &shape);
    let mark = search.draft.mark();
    if search.tree(&shape.tree, WHOLE) {
        return Ok(search.spots);
    }
    let cut_off = search.cut_off;
    search.draft.roll_back(mark);
    Err(if cut_off { Misfit::CutOff } else { Misfit::No })
}

/// Finds places for one more task of a group, or one more segment, where its gang lies.
pub(crate) fn fit_more(
    draft: &mut Draft<'_>,
    mix: &Mix,
    job: JobIx,
    who: Who,
    leaf: usize,
    outer: DomainIx,
) -> Option<Vec<Spot>> {
    let shape = draft.state.shapes[draft.state.jobs.get(job).shape.at()].clone();
    let mut search = Search::new(draft, mix, job, who, &shape);
    let mark = search.draft.mark();
    if search.more(&shape.leaves[leaf], outer) == Some(true) {
        return Some(search.spots);
    }
    search.draft.roll_back(mark);
    None
}

/// Finds places for a whole group that the job can do without, next to those that run.
pub(crate) fn fit_group(
    draft: &mut Draft<'_>,
    mix: &Mix,
    job: JobIx,
    who: Who,
    group: &Tree,
    home: DomainIx,
) -> Option<Vec<Spot>> {
    let shape = draft.state.shapes[draft.state.jobs.get(job).shape.at()].clone();
    let mut search = Search::new(draft, mix, job, who, &shape);
    let mark = search.draft.mark();
    if search.tree(group, home) {
        return Some(search.spots);
    }
    search.draft.roll_back(mark);
    None
}

struct Search<'d, 's> {
    draft: &'d mut Draft<'s>,
    mix: &'d Mix,
    job: JobIx,
    who: Who,
    shape: Arc<Shape>,
    spots: Vec<Spot>,
    steps: u32,
    cut_off: bool,
}

/// A node and how many tasks it could take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    node: NodeIx,
    tasks: u32,
    free: u32,
}

impl<'d, 's> Search<'d, 's> {
    fn new(
        draft: &'d mut Draft<'s>,
        mix: &'d Mix,
        job: JobIx,
        who: Who,
        shape: &Arc<Shape>,
    ) -> Search<'d, 's> {
        Search {
            draft,
            mix,
            job,
            who,
            shape: shape.clone(),
            spots: Vec::new(),
            steps: 0,
            cut_off: false,
        }
    }

    fn state(&self) -> &State {
        self.draft.state
    }

    /// The order in which classes of nodes are tried.
    fn tiers<'l>(&self, leaf: &'l Leaf) -> &'l [Vec<ClassIx>] {
        // A list of models is an order of its own.
        if self.who.rush && leaf.need.models.is_empty() { &leaf.fast } else { &leaf.tiers }
    }

    /// Undoes what a failed branch has tried.
    fn back(&mut self, mark: crate::draft::Mark, spots: usize) {
        self.draft.roll_back(mark);
        self.spots.truncate(spots);
    }

    /// Places the minimum of a subtree inside the domain.
    fn tree(&mut self, tree: &Tree, domain: DomainIx) -> bool {
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
                    self.back(mark, spots);
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
                self.back(mark, spots);
            }
        }
        if placed >= min {
            return true;
        }
        self.back(mark, spots);
        self.search_unlike(children, min, domain)
    }

    fn largest(&self, tree: &Tree) -> i64 {
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
            let looks = (node.class, free_gpus(node), node.cpu_free, node.memory_free);
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
            self.back(mark, spots);
            if self.cut_off {
                return false;
            }
        }
        false
    }

    /// The domains a group may lie in, in the order to try them: the preferred level and those
    /// between it and the required one, in each the tightest domain first.
    fn domains_for(&self, together: &Together, within: DomainIx) -> Vec<DomainIx> {
        let cluster = &self.state().cluster;
        let depth_of = |level: Option<Level>| match level {
            Some(Level::Label { depth, .. }) => Some(depth),
            _ => None,
        };
        let topology = match together.required.or(together.preferred) {
            Some(Level::Label { topology, .. }) => topology,
            _ => return vec![within],
        };
        let lowest = depth_of(together.preferred).or(depth_of(together.required)).unwrap_or(0);
        let highest = depth_of(together.required);
        let inside = |domain: &DomainIx| cluster.lies_in(*domain, within);
        let mut found = Vec::new();
        let mut depth = lowest as i64;
        while depth >= i64::from(highest.unwrap_or(0)) {
            let mut level: Vec<(usize, Option<NodeIx>, DomainIx)> = cluster
                .domains_of(topology, depth as u32)
                .filter(inside)
                .map(|domain| (self.free_in(domain), cluster.first_of(domain), domain))
                .collect();
            level.sort();
            found.extend(level.into_iter().map(|(_, _, domain)| domain));
            depth -= 1;
        }
        if highest.is_none() {
            found.push(within);
        }
        found
    }

    fn free_in(&self, domain: DomainIx) -> usize {
        let counts = &self.state().cluster.domains[domain.at()].counts;
        counts.iter().map(|count| count.free.get(1).copied().unwrap_or(0) as usize).sum()
    }

    /// Places `n` tasks of a group inside the domain, as close together as is asked for, and
    /// otherwise in the lowest domain that holds them all.
    fn leaf(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        if let Some((size, level)) = leaf.together.segment {
            return self.segments(leaf, n, size, level, domain);
        }
        for preferred in self.preferred(leaf, domain) {
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            let mut plain = leaf.clone();
            plain.spec.labels.prefer.clear();
            if self.leaf(&plain, n, preferred) {
                return true;
            }
            self.back(mark, spots);
        }
        if let Some(preferring) = preferring(leaf) {
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            if self.leaf(&preferring, n, domain) {
                return true;
            }
            self.back(mark, spots);
        }
        let one = matches!(leaf.together.required, Some(Level::Node | Level::Nvlink));
        if one && !self.spread_allows(leaf, n) {
            return false;
        }
        match leaf.together.required {
            Some(Level::Node) => return self.on_one_node(leaf, n, domain),
            Some(Level::Nvlink) => return self.in_one_island(leaf, n, domain),
            _ => {}
        }
        if n > 1 && leaf.spread.is_none() {
            let preferred_low =
                matches!(leaf.together.preferred, None | Some(Level::Node | Level::Nvlink));
            if preferred_low
                && self.state().policy.strategy == Strategy::Pack
                && self.on_one_node(leaf, n, domain)
            {
                return true;
            }
            return self.lowest(leaf, n, domain);
        }
        if leaf.together.required.is_some() {
            return self.lowest(leaf, n, domain);
        }
        self.place(leaf, n, domain)
    }

    /// Domains that the group's preferred labels name.
    fn preferred(&self, leaf: &Leaf, within: DomainIx) -> Vec<DomainIx> {
        if leaf.spec.labels.prefer.is_empty() {
            return Vec::new();
        }
        let cluster = &self.state().cluster;
        let mut found = Vec::new();
        for (at, (_, keys)) in cluster.topologies.iter().enumerate() {
            for (depth, key) in keys.iter().enumerate().rev() {
                let Some(value) = leaf.spec.labels.prefer.get(key) else { continue };
                found.extend(cluster.domains_of(at as u32, depth as u32).filter(|domain| {
                    let named = cluster.domains[domain.at()].name == *value;
                    named && cluster.lies_in(*domain, within)
                }));
            }
        }
        found
    }

    /// Tries domains from the preferred level (or the lowest) up to the required one.
    fn lowest(&mut self, leaf: &Leaf, n: u32, within: DomainIx) -> bool {
        let cluster = &self.state().cluster;
        let asked = leaf.together.required.or(leaf.together.preferred);
        let topology = match asked {
            Some(Level::Label { topology, .. }) => topology,
            _ => leaf.together.topology,
        };
        let Some((_, keys)) = cluster.topologies.get(topology as usize) else {
            return self.place(leaf, n, within);
        };
        let highest = match leaf.together.required {
            Some(Level::Label { depth, .. }) => Some(depth),
            _ => None,
        };
        let start = match leaf.together.preferred {
            Some(Level::Label { depth, .. }) => depth,
            _ => keys.len() as u32 - u32::from(!keys.is_empty()),
        };
        if keys.is_empty() {
            return self.place(leaf, n, within);
        }
        // Without a wish the whole gang is tried in each level's tightest domain only.
        let tries = if asked.is_some() { usize::MAX } else { 2 };
        for depth in (highest.unwrap_or(0)..=start).rev() {
            for domain in self.holding(leaf, n, topology, depth, within).into_iter().take(tries) {
                let (mark, spots) = (self.draft.mark(), self.spots.len());
                if self.place(leaf, n, domain) {
                    return true;
                }
                self.back(mark, spots);
            }
        }
        highest.is_none() && self.place(leaf, n, within)
    }

    /// Domains of a level that could hold the tasks by count, tightest first.
    fn holding(
        &self,
        leaf: &Leaf,
        n: u32,
        topology: u32,
        depth: u32,
        within: DomainIx,
    ) -> Vec<DomainIx> {
        let state = self.state();
        let cluster = &state.cluster;
        let mut found: Vec<(u32, Option<NodeIx>, DomainIx)> = Vec::new();
        for domain in cluster.domains_of(topology, depth) {
            if !cluster.lies_in(domain, within) {
                continue;
            }
            let room = self.count(leaf, domain, &leaf.classes, n);
            if room >= n {
                found.push((room, cluster.first_of(domain), domain));
            }
        }
        found.sort();
        found.into_iter().map(|(_, _, domain)| domain).collect()
    }

    /// How many tasks of the group fit the domain: exact, but an upper bound on uncontested nodes
    /// where CPU or memory may bind; it stops counting some way beyond what is needed.
    fn count(&self, leaf: &Leaf, domain: DomainIx, classes: &[ClassIx], n: u32) -> u32 {
        let cluster = &self.state().cluster;
        let Some(g) = leaf.whole().filter(|_| !leaf.is_particular() && leaf.near.is_empty()) else {
            return u32::MAX;
        };
        let most = cluster.room(domain, classes, g);
        if most < n {
            return most;
        }
        let nodes = &cluster.domains[domain.at()].nodes;
        let clean = cluster.slots(domain, classes, g);
        let room = |ix: &NodeIx| {
            if !cluster.has_free(*ix, g) {
                return 0;
            }
            let node = cluster.node(*ix);
            let counts = node.indexed.is_none() && classes.contains(&node.class);
            if counts { node.capacity(&leaf.need, &self.who, n) } else { 0 }
        };
        let contested: u32 = if domain == WHOLE {
            cluster.contested.iter().map(room).sum()
        } else if cluster.domains[domain.at()].contested == 0 {
            0
        } else {
            nodes.iter().map(room).sum()
        };
        clean + contested
    }

    fn segments(&mut self, leaf: &Leaf, n: u32, size: u32, level: Level, within: DomainIx) -> bool {
        let outer = match leaf.together.required {
            Some(Level::Label { topology, depth }) => {
                self.holding(leaf, n, topology, depth, within)
            }
            _ => vec![within],
        };
        let segment = |together: &Together| Together {
            required: Some(level),
            segment: None,
            preferred: None,
            ..together.clone()
        };
        let mut one = leaf.clone();
        one.together = segment(&leaf.together);
        one.need.island |= level == Level::Nvlink;
        for domain in outer {
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            let mut left = n;
            while left > 0 && self.leaf(&one, size, domain) {
                left -= size;
            }
            if left == 0 {
                return true;
            }
            self.back(mark, spots);
        }
        false
    }

    fn on_one_node(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        for tier in self.tiers(leaf) {
            if let Some(ix) = self.tightest(leaf, n, domain, tier) {
                return self.fill(leaf, ix, n);
            }
        }
        false
    }

    /// The node with the least room that holds `n` tasks.
    fn tightest(&self, leaf: &Leaf, n: u32, domain: DomainIx, tier: &[ClassIx]) -> Option<NodeIx> {
        let state = self.state();
        let cluster = &state.cluster;
        if domain == WHOLE
            && let Some(g) = leaf.whole()
            && leaf.near.is_empty()
        {
            let from = n.saturating_mul(g) as usize;
            let most = tier.iter().map(|c| cluster.classes[c.at()].gpus as usize).max()?;
            let contested = cluster
                .contested
                .iter()
                .filter(|ix| tier.contains(&cluster.node(**ix).class))
                .filter(|ix| leaf.suits(cluster.node(**ix)))
                .find(|ix| cluster.node(**ix).capacity(&leaf.need, &self.who, n) >= n);
            if let Some(ix) = contested {
                return Some(*ix);
            }
            let mut sizes: Vec<usize> = (from..=most).collect();
            if state.policy.strategy == Strategy::Spread {
                sizes.reverse();
            }
            for free in sizes {
                let of_class = |class: &ClassIx| {
                    let nodes = cluster.classes[class.at()].buckets.get(free)?;
                    nodes.iter().copied().find(|ix| {
                        let node = cluster.node(*ix);
                        leaf.suits(node) && node.capacity(&leaf.need, &self.who, n) >= n
                    })
                };
                if let Some(ix) = tier.iter().filter_map(of_class).min() {
                    return Some(ix);
                }
            }
            return None;
        }
        let rooms = self.rooms(leaf, n, domain, tier);
        let fits = rooms.iter().filter(|room| room.tasks >= n);
        fits.min_by_key(|room| (room.tasks, room.free, room.node)).map(|room| room.node)
    }

    fn in_one_island(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        let Some(g) = leaf.whole() else { return self.shares_in_island(leaf, n, domain) };
        if n == 1 {
            return self.place(leaf, 1, domain);
        }
        // All tasks in one island are one request for all their GPUs there.
        let mut joint = leaf.need.clone();
        joint.ask = GpuAsk::Whole { count: g * n };
        joint.cpu *= i64::from(n);
        joint.memory *= i64::from(n);
        for amount in Arc::make_mut(&mut joint.counted).values_mut() {
            *amount *= i64::from(n);
        }
        let nodes: Vec<NodeIx> =
            self.state().cluster.domains[domain.at()].nodes.iter().copied().collect();
        let near = Nearby::of(self.state(), leaf, self.job);
        for ix in nodes {
            let node = self.state().cluster.node(ix);
            let suits = leaf.classes.contains(&node.class) && leaf.suits(node);
            if !suits || !near.admits(self.state(), ix) {
                continue;
            }
            let taken =
                node.capacity(&Need { ask: GpuAsk::None, ..leaf.need.clone() }, &self.who, n);
            let Some(slices) = node.choose(&joint, &self.who).filter(|_| taken >= n) else {
                continue;
            };
            let tasks = self.free_tasks(leaf, n);
            for (task, part) in tasks.iter().zip(slices.chunks(g as usize)) {
                self.open(leaf, *task, ix, part.to_vec());
            }
            return true;
        }
        false
    }

    /// Shares of GPUs that all lie in one NVLink island.
    fn shares_in_island(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        if leaf.need.ask == GpuAsk::None {
            return self.on_one_node(leaf, n, domain);
        }
        let nodes: Vec<NodeIx> =
            self.state().cluster.domains[domain.at()].nodes.iter().copied().collect();
        let near = Nearby::of(self.state(), leaf, self.job);
        let mut inside = leaf.clone();
        for ix in nodes {
            let node = self.state().cluster.node(ix);
            let suits = leaf.classes.contains(&node.class) && leaf.suits(node);
            if !suits || !near.admits(self.state(), ix) {
                continue;
            }
            let islands: BTreeSet<u8> = node.gpus.iter().map(|gpu| gpu.island).collect();
            for island in islands {
                inside.need.only = Some(island);
                let node = self.state().cluster.node(ix);
                if node.capacity(&inside.need, &self.who, n) >= n {
                    return self.fill(&inside, ix, n);
                }
            }
        }
        false
    }

    /// Places `n` tasks anywhere in the domain, tier by tier.
    fn place(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        if leaf.spread.is_some() {
            return self.spread(leaf, n, domain);
        }
        for tier in self.tiers(leaf) {
            if self.count(leaf, domain, tier, n) < n {
                continue;
            }
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            if self.place_in(leaf, n, domain, tier) {
                return true;
            }
            self.back(mark, spots);
        }
        false
    }

    fn place_in(&mut self, leaf: &Leaf, n: u32, domain: DomainIx, tier: &[ClassIx]) -> bool {
        let is_share = leaf.whole().is_none() && leaf.need.ask != GpuAsk::None;
        // Every node is measured for that, which large clusters have not the time for.
        let few = self.state().cluster.domains[domain.at()].nodes.len() <= MEASURED;
        let alone = n == 1 && !leaf.need.island && few && self.measures();
        if is_share || (alone && self.state().policy.strategy == Strategy::Pack) {
            return self.shares(leaf, n, domain, tier);
        }
        if n == 1 {
            return match self.tightest(leaf, 1, domain, tier) {
                Some(ix) => self.fill(leaf, ix, 1),
                None => false,
            };
        }
        if domain == WHOLE && leaf.countable(&self.state().cluster) {
            return self.by_bucket(leaf, n, tier);
        }
        let mut rooms = self.rooms(leaf, n, domain, tier);
        let total: u64 = rooms.iter().map(|room| u64::from(room.tasks)).sum();
        if total < u64::from(n) {
            return false;
        }
        if self.state().policy.strategy == Strategy::Spread {
            return self.one_each(leaf, n, rooms);
        }
        let mut left = n;
        rooms.sort_by_key(|room| (std::cmp::Reverse(room.tasks), room.free, room.node));
        let mut next = 0;
        while left > 0 {
            // The last node is the tightest that takes all the rest.
            let rest = &rooms[next..];
            let fits = rest.iter().filter(|room| room.tasks >= left);
            let last = fits.min_by_key(|room| (room.tasks, room.free, room.node));
            let (node, take) = match last {
                Some(room) => (room.node, left),
                None => {
                    next += 1;
                    (rest[0].node, rest[0].tasks)
                }
            };
            if !self.fill(leaf, node, take) {
                return false;
            }
            left -= take;
        }
        true
    }

    /// Spreads tasks one by one over the emptiest nodes.
    fn one_each(&mut self, leaf: &Leaf, n: u32, mut rooms: Vec<Room>) -> bool {
        rooms.sort_by_key(|room| (std::cmp::Reverse(room.free), room.node));
        let mut left = n;
        while left > 0 {
            let mut moved = false;
            for room in &mut rooms {
                if left > 0 && room.tasks > 0 && self.fill(leaf, room.node, 1) {
                    room.tasks -= 1;
                    left -= 1;
                    moved = true;
                }
            }
            if !moved {
                return false;
            }
        }
        true
    }

    /// Fills uncontested nodes by their number of free GPUs; contested ones where those do not suffice.
    fn by_bucket(&mut self, leaf: &Leaf, n: u32, tier: &[ClassIx]) -> bool {
        let g = leaf.whole().expect("countable");
        let spread = self.state().policy.strategy == Strategy::Spread;
        let most = {
            let classes = &self.state().cluster.classes;
            tier.iter().map(|class| classes[class.at()].gpus).max().unwrap_or(0)
        };
        let mut left = n;
        while left > 0 {
            let first = |search: &Search<'_, '_>, free: u32| {
                let cluster = &search.draft.state.cluster;
                tier.iter()
                    .filter_map(|class| cluster.classes[class.at()].buckets.get(free as usize))
                    .filter_map(|nodes| nodes.first().copied())
                    .min()
            };
            let found = if spread {
                (g..=most).rev().find_map(|free| Some((first(self, free)?, 1)))
            } else {
                let all = left.saturating_mul(g);
                let exact = (all..=most).find_map(|free| Some((first(self, free)?, left)));
                exact.or_else(|| {
                    let below = (g..all.min(most + 1)).rev();
                    below.into_iter().find_map(|free| Some((first(self, free)?, free / g)))
                })
            };
            match found {
                Some((node, take)) => {
                    if !self.fill(leaf, node, take) {
                        return false;
                    }
                    left -= take;
                }
                None => break,
            }
        }
        if left == 0 {
            return true;
        }
        let contested: Vec<NodeIx> = self.state().cluster.contested.iter().copied().collect();
        for ix in contested {
            let node = self.state().cluster.node(ix);
            if !tier.contains(&node.class) {
                continue;
            }
            let take = node.capacity(&leaf.need, &self.who, left);
            if take > 0 && self.fill(leaf, ix, take) {
                left -= take;
                if left == 0 {
                    return true;
                }
            }
        }
        false
    }

    /// Nodes of the domain with room for the group.
    fn rooms(&self, leaf: &Leaf, n: u32, domain: DomainIx, tier: &[ClassIx]) -> Vec<Room> {
        let state = self.state();
        let near = Nearby::of(state, leaf, self.job);
        let cluster = &state.cluster;
        let mut found = Vec::new();
        let g = leaf.whole().unwrap_or(0);
        for ix in &cluster.domains[domain.at()].nodes {
            if !cluster.has_free(*ix, g) {
                continue;
            }
            let node = cluster.node(*ix);
            if !tier.contains(&node.class) || !leaf.suits(node) || !near.admits(state, *ix) {
                continue;
            }
            let tasks = node.capacity(&leaf.need, &self.who, n);
            if tasks > 0 {
                found.push(Room { node: *ix, tasks, free: node.free_whole() });
            }
        }
        found
    }

    /// Takes `n` tasks' places on one node.
    fn fill(&mut self, leaf: &Leaf, ix: NodeIx, n: u32) -> bool {
        for task in self.free_tasks(leaf, n) {
            let Some(slices) = self.choose(leaf, ix) else { return false };
            self.open(leaf, task, ix, slices);
        }
        true
    }

    fn choose(&self, leaf: &Leaf, ix: NodeIx) -> Option<Vec<Slice>> {
        self.state().cluster.node(ix).choose(&leaf.need, &self.who)
    }

    /// Whether placements are compared by what they strand of what is free for the mix.
    fn measures(&self) -> bool {
        self.state().policy.fragmentation && !self.mix.typical.is_empty()
    }

    /// Shares of GPUs, and single tasks where shares are in use: each where it strands the least of
    /// what is free for the mix. Whole GPUs and CPU break up a node no less than shares do.
    fn shares(&mut self, leaf: &Leaf, n: u32, domain: DomainIx, tier: &[ClassIx]) -> bool {
        for task in self.free_tasks(leaf, n) {
            let near = Nearby::of(self.state(), leaf, self.job);
            let state = self.state();
            let cluster = &state.cluster;
            let mut best: Option<((i128, i64, NodeIx), Vec<Slice>)> = None;
            // Nodes that look the same score the same.
            let mut known: BTreeMap<(ClassIx, Vec<i64>, i64, i64), ()> = BTreeMap::new();
            for ix in &cluster.domains[domain.at()].nodes {
                let node = cluster.node(*ix);
                if !tier.contains(&node.class) || !leaf.suits(node) || !near.admits(state, *ix) {
                    continue;
                }
                let plain = node.clean() && leaf.need.counted.is_empty() && !node.is_tight();
                let uncut = |gpu: &Gpu| gpu.mig.is_none() && gpu.unused() == Mode::Free;
                if plain && node.gpus.iter().all(uncut) {
                    let looks = (node.class, kinds(node), node.cpu_free, node.memory_free);
                    if known.insert(looks, ()).is_some() {
                        continue;
                    }
                }
                let Some((score, slices)) = self.best_share(leaf, node) else { continue };
                let key = (score.0, score.1, *ix);
                if best.as_ref().is_none_or(|(other, _)| key < *other) {
                    best = Some((key, slices));
                }
            }
            let Some(((_, _, ix), slices)) = best else { return false };
            self.open(leaf, task, ix, slices);
        }
        true
    }

    /// The place on this node that strands the least, with what it strands and, where that is much
    /// the same, what it leaves over.
    fn best_share(&self, leaf: &Leaf, node: &Node) -> Option<((i128, i64), Vec<Slice>)> {
        let chosen = node.choose(&leaf.need, &self.who)?;
        let single = leaf.need.ask.count() == 1 && !matches!(leaf.need.ask, GpuAsk::Mig { .. });
        let mix = self.mix;
        let use_mix = self.measures();
        let before = free_gpus(node);
        let milli =
            |slice: &Slice| share_milli(&slice.share, &node.spec.gpus[slice.gpu as usize].model);
        let score = |slices: &[Slice]| -> (i128, i64) {
            let mut after = before.clone();
            for slice in slices {
                let at = slice.gpu as usize;
                after[at] = (after[at] - milli(slice)).max(0);
            }
            let left: i64 = slices.iter().map(|slice| after[slice.gpu as usize]).sum();
            // An instance of a GPU that is cut up already leaves whole GPUs alone.
            let fresh = slices.iter().filter(|s| before[s.gpu as usize] == 1_000).count() as i64;
            if !use_mix || matches!(leaf.need.ask, GpuAsk::Mig { .. }) {
                return (i128::from(fresh), left);
            }
            let measure =
                |gpus: &[i64], cpu: i64, memory: i64| mix.fragments(&Free { gpus, cpu, memory });
            let now = measure(&before, node.cpu_free, node.memory_free);
            let cpu = node.cpu_free - leaf.need.cpu;
            let then = measure(&after, cpu, node.memory_free - leaf.need.memory);
            // Nodes with little left are filled up first: a GPU weighs as much as 32 CPUs.
            let cpus = if node.spec.cpu.is_some() { cpu / 16 } else { 0 };
            let leftover = 2 * after.iter().sum::<i64>() + cpus;
            (-i128::from(mix.gain(now - then)), leftover)
        };
        if !single {
            return Some((score(&chosen), chosen));
        }
        // One share: every GPU with a different remainder is a choice of its own.
        let mut best = (score(&chosen), chosen);
        let mut seen: BTreeSet<i64> = BTreeSet::new();
        for (at, gpu) in node.gpus.iter().enumerate() {
            let Some(share) = share_on(&leaf.need.ask, gpu.memory) else { continue };
            if !seen.insert(before[at]) || before[at] == 0 {
                continue;
            }
            let model = &node.spec.gpus[at].model;
            let suits = gpu.healthy
                && gpu.memory >= leaf.need.min_gpu_memory
                && (leaf.need.models.is_empty() || leaf.need.models.contains(&gpu.model))
                && gpu.fits(&share, model)
                && node.kept.is_empty();
            if !suits {
                continue;
            }
            let slices = vec![Slice { gpu: at as u32, share }];
            let scored = (score(&slices), slices);
            if scored.0 < best.0 {
                best = scored;
            }
        }
        Some(best)
    }

    /// At most so many tasks per domain: the roomiest domains first.
    fn spread(&mut self, leaf: &Leaf, n: u32, within: DomainIx) -> bool {
        let Some((level, at_most)) = leaf.spread else { return false };
        let mut plain = leaf.clone();
        plain.spread = None;
        plain.together.required = None;
        let Level::Label { topology, depth } = level else {
            let mut rooms: Vec<Room> = Vec::new();
            for tier in self.tiers(leaf) {
                rooms = self.rooms(&plain, at_most, within, tier);
                // Tasks of the group that run already count too.
                for room in &mut rooms {
                    let on_node = self.running_in(leaf, |ix| ix == room.node);
                    room.tasks = room.tasks.min(at_most.saturating_sub(on_node));
                }
                if rooms.iter().map(|room| room.tasks).sum::<u32>() >= n {
                    break;
                }
            }
            rooms.sort_by_key(|room| (std::cmp::Reverse(room.free), room.node));
            let mut left = n;
            for room in rooms {
                let take = left.min(room.tasks);
                if take > 0 && !self.fill(&plain, room.node, take) {
                    return false;
                }
                left -= take;
            }
            return left == 0;
        };
        let cluster = &self.state().cluster;
        // Where the group must lie in less than one domain of the level, that is what there is of it.
        let part = |domain: DomainIx| match cluster.lies_in(domain, within) {
            true => Some(domain),
            false => cluster.lies_in(within, domain).then_some(within),
        };
        let domains = cluster.domains_of(topology, depth);
        let mut domains: Vec<(std::cmp::Reverse<usize>, Option<NodeIx>, DomainIx, DomainIx)> =
            domains
                .filter_map(|domain| Some((domain, part(domain)?)))
                .map(|(domain, part)| {
                    let free = std::cmp::Reverse(self.free_in(part));
                    (free, cluster.first_of(part), domain, part)
                })
                .collect();
        domains.sort();
        let mut left = n;
        for (_, _, domain, part) in domains {
            let cluster = &self.state().cluster;
            let inside = |ix: NodeIx| cluster.domain_of(ix, topology, depth) == Some(domain);
            let mut here = self.running_in(leaf, inside);
            while left > 0 && here < at_most && self.place(&plain, 1, part) {
                here += 1;
                left -= 1;
            }
        }
        left == 0
    }

    /// How many tasks of the group run on such nodes.
    fn running_in(&self, leaf: &Leaf, inside: impl Fn(NodeIx) -> bool) -> u32 {
        let range = leaf.first..leaf.first + leaf.count;
        let leases = self.state().jobs.get(self.job).leases();
        let here = leases.filter(|(task, lease)| range.contains(task) && inside(lease.node));
        here.count() as u32
    }

    /// The next tasks of the group that could be started.
    fn free_tasks(&self, leaf: &Leaf, n: u32) -> Vec<u32> {
        let job = self.state().jobs.get(self.job);
        (leaf.first..leaf.first + leaf.count)
            .filter(|task| {
                let task = &job.tasks[*task as usize];
                task.lease.is_none() && !task.done
            })
            .take(n as usize)
            .collect()
    }

    fn open(&mut self, leaf: &Leaf, task: u32, node: NodeIx, slices: Vec<Slice>) {
        let state = &self.draft.state;
        let lease = Lease {
            attempt: state.jobs.get(self.job).tasks[task as usize].attempts,
            node,
            charge: state.charge_of(leaf, node, &slices),
            // Told when the decision is made; a try has no price.
            price: berth_model::Micros::ZERO,
            since: state.now,
            bound: false,
            stopping: None,
            slices: slices.clone(),
        };
        self.draft.open(TaskIx { job: self.job, task }, lease);
        self.spots.push(Spot { task, node, slices });
    }

    /// Adds to a running gang, where the rest of the group lies if it has to lie together.
    fn more(&mut self, leaf: &Leaf, outer: DomainIx) -> Option<bool> {
        let n = leaf.together.segment.map_or(1, |(size, _)| size);
        if self.free_tasks(leaf, n).len() < n as usize {
            return Some(false);
        }
        let own = leaf.first..leaf.first + leaf.count;
        let job = self.state().jobs.get(self.job);
        let first = job.leases().find(|(task, _)| own.contains(task)).map(|(_, lease)| lease);
        let domain = match leaf.together.required {
            None => outer,
            Some(Level::Label { topology, depth }) => {
                self.state().cluster.domain_of(first?.node, topology, depth)?
            }
            Some(level @ (Level::Node | Level::Nvlink)) => {
                let (lease, mut there) = (first?, leaf.clone());
                let node = self.state().cluster.node(lease.node);
                if level == Level::Nvlink {
                    there.need.only =
                        lease.slices.first().map(|slice| node.gpus[slice.gpu as usize].island);
                }
                let (ix, room) = (lease.node, node.capacity(&there.need, &self.who, n));
                let allowed = room >= n && self.spread_allows(leaf, n);
                return Some(allowed && self.fill(&there, ix, n));
            }
        };
        Some(match leaf.together.segment {
            Some((size, level)) => self.segments(leaf, n, size, level, domain),
            None => self.place(leaf, n, domain),
        })
    }
}

/// The same group on the nodes it would rather lie on, if there are any.
fn preferring(leaf: &Leaf) -> Option<Leaf> {
    let nodes = leaf.nodes.as_deref().filter(|nodes| !nodes.prefer.is_empty())?;
    let only = nodes.prefer.iter().filter(|node| nodes.admits(node)).cloned().collect();
    let nodes = NodeAsk { only: Some(only), ..NodeAsk::default() };
    Some(Leaf { nodes: Some(Arc::new(nodes)), ..leaf.clone() })
}

/// Free shares by GPU, with the way each GPU is shared, to tell nodes that look the same.
fn kinds(node: &Node) -> Vec<i64> {
    let each = node.gpus.iter().map(|gpu| {
        let free = if gpu.healthy { 1_000 - gpu.used } else { 0 };
        free * 8 + gpu.mode as i64
    });
    each.collect()
}

/// Where a group may lie because of other jobs.
pub(crate) struct Nearby {
    /// Each wish with the domains (or nodes) the other jobs are in.
    wishes: Vec<(Level, bool, BTreeSet<u32>)>,
}

impl Nearby {
    pub fn of(state: &State, leaf: &Leaf, own: JobIx) -> Nearby {
        let mut wishes = Vec::new();
        for ask in &leaf.near {
            let mut found = BTreeSet::new();
            for id in targets(state, &ask.target) {
                let Some(ix) = state.jobs.find(id).filter(|ix| *ix != own) else { continue };
                for (_, lease) in state.jobs.get(ix).leases() {
                    found.extend(place_of(state, ask.level, lease.node));
                }
            }
            wishes.push((ask.level, ask.away, found));
        }
        Nearby { wishes }
    }

    /// Whether every job it must be near to runs somewhere.
    pub fn runs(&self) -> bool {
        self.wishes.iter().all(|(_, away, found)| *away || !found.is_empty())
    }

    pub fn admits(&self, state: &State, node: NodeIx) -> bool {
        self.wishes.iter().all(|(level, away, found)| {
            let here = place_of(state, *level, node);
            let there = here.is_some_and(|here| found.contains(&here));
            there != *away
        })
    }
}

fn place_of(state: &State, level: Level, node: NodeIx) -> Option<u32> {
    match level {
        Level::Node | Level::Nvlink => Some(node.0),
        Level::Label { topology, depth } => {
            state.cluster.domain_of(node, topology, depth).map(|domain| domain.0)
        }
    }
}

fn targets(state: &State, target: &JobTarget) -> Vec<JobId> {
    match target {
        JobTarget::Name(name) => {
            let from = (name.clone(), Name::default());
            let named = state.named.range(from..).take_while(|((n, _), _)| n == name);
            named.flat_map(|(_, ids)| ids.iter().copied()).collect()
        }
        JobTarget::Label { key, value } => state
            .labelled
            .get(&(key.clone(), value.clone()))
            .map(|ids| ids.iter().copied().collect())
            .unwrap_or_default(),
    }
}
