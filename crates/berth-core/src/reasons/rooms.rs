//! How much room there is for a group right now, whatever is promised to whom: the figures in
//! reasons. Counted where counting is exact, and added up node by node where it is not.

use crate::cluster::domain::WHOLE;
use crate::cluster::gpu::{Mode, share_on};
use crate::cluster::node::{Node, Requester};
use crate::ix::{ClassIx, DomainIx, NodeIx};
use crate::plan::fit::nearby::Nearby;
use crate::shape::leaf::Leaf;
use crate::state::State;
use berth_model::{GpuAsk, Milli, Name, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub(super) struct Rooms {
    /// Whether figures may not be upper bounds. Without, CPU and memory are looked at only where
    /// GPUs suffice, which a plan can afford for every shape it tries.
    exact: bool,
    /// Nodes that the counts leave out because something is promised there, or because they take
    /// few more tasks, by domain.
    contested: BTreeMap<DomainIx, Vec<Contested>>,
}

#[derive(Debug, Clone, Copy)]
struct Contested {
    class: ClassIx,
    free: u32,
    /// More tasks that it takes.
    tasks: u32,
}

/// The same requester, holding GPUs for no time at all, so that no promise conflicts.
pub(super) fn timeless(requester: &Requester) -> Requester {
    Requester { now: Time::MAX, until: Time(-Time::MAX.0), ..*requester }
}

/// A group that asks for GPUs only.
pub(super) fn bare(leaf: &Leaf) -> Leaf {
    let mut bare = leaf.clone();
    bare.near.clear();
    bare.need.cpu = 0;
    bare.need.memory = 0;
    bare.need.counted = Default::default();
    bare.need.is_task = false;
    bare.need.island = false;
    bare
}

impl Rooms {
    pub fn new(state: &State, exact: bool) -> Rooms {
        let cluster = &state.cluster;
        let mut contested: BTreeMap<DomainIx, Vec<Contested>> = BTreeMap::new();
        for ix in &cluster.contested {
            let node = cluster.node(*ix);
            let tasks = u32::try_from(node.tasks_left().max(0)).unwrap_or(u32::MAX);
            let free = Contested { class: node.class, free: node.free_whole(), tasks };
            node.domains.iter().for_each(|domain| contested.entry(*domain).or_default().push(free));
        }
        Rooms { exact, contested }
    }

    fn contested(&self, domain: DomainIx) -> &[Contested] {
        self.contested.get(&domain).map_or(&[], Vec::as_slice)
    }

    pub fn exact(&self) -> bool {
        self.exact
    }

    /// How many tasks of a group the domain could take now, up to `most`.
    pub fn tasks(
        &self,
        state: &State,
        leaf: &Leaf,
        domain: DomainIx,
        requester: &Requester,
        most: u32,
    ) -> u32 {
        if leaf.countable(&state.cluster) {
            return self.counted(state, leaf, domain).min(most);
        }
        if !self.exact && leaf.whole().is_some() && !leaf.is_particular() {
            let bare = bare(leaf);
            if bare.countable(&state.cluster) {
                let counted = self.counted(state, &bare, domain);
                if counted < most {
                    return counted;
                }
            }
        }
        let near = Nearby::of(state, leaf, requester.job);
        let mut fit = 0;
        for ix in &state.cluster.domains[domain.at()].nodes {
            if fit >= most {
                break;
            }
            if near.admits(state, *ix) {
                fit += on_node(state, leaf, *ix, requester, most - fit);
            }
        }
        fit
    }

    fn counted(&self, state: &State, leaf: &Leaf, domain: DomainIx) -> u32 {
        let g = leaf.whole().expect("countable").max(1);
        let clean = state.cluster.slots(domain, &leaf.classes, g);
        let contested = self.contested(domain).iter();
        let contested = contested.filter(|node| leaf.classes.contains(&node.class));
        let most = |node: &Contested| if leaf.need.is_task { node.tasks } else { u32::MAX };
        clean + contested.map(|node| (node.free / g).min(most(node))).sum::<u32>()
    }

    /// Free GPUs of the kind a group asks for, on nodes it could run on.
    pub fn free(&self, state: &State, leaf: &Leaf, requester: &Requester) -> Milli {
        let cluster = &state.cluster;
        let alike = leaf.classes.iter().all(|c| cluster.classes[c.at()].model.is_some());
        if leaf.whole().is_some() && alike && !leaf.is_particular() {
            let clean = cluster.slots(WHOLE, &leaf.classes, 1);
            let contested = self.contested(WHOLE).iter();
            let contested = contested.filter(|node| leaf.classes.contains(&node.class));
            let contested: u32 = contested.map(|node| node.free).sum();
            return Milli::whole(i64::from(clean + contested));
        }
        let nodes = cluster.live().map(|(_, node)| node).filter(|node| suits(leaf, node));
        let on_node = |node: &Node| -> i64 {
            (0..node.gpus.len()).map(|at| free_of(node, at, leaf, requester)).sum()
        };
        Milli(nodes.map(on_node).sum())
    }
}

/// Whether a node is open and of a kind the group could run on.
pub(super) fn suits(leaf: &Leaf, node: &Node) -> bool {
    node.open() && leaf.classes.contains(&node.class) && leaf.suits(node)
}

/// How many tasks of a group the node could take now, up to `most`.
pub(super) fn on_node(
    state: &State,
    leaf: &Leaf,
    ix: NodeIx,
    requester: &Requester,
    most: u32,
) -> u32 {
    let node = state.cluster.node(ix);
    if suits(leaf, node) { node.capacity(&leaf.need, requester, most) } else { 0 }
}

fn free_of(node: &Node, at: usize, leaf: &Leaf, requester: &Requester) -> i64 {
    let (gpu, need) = (&node.gpus[at], &leaf.need);
    let suits = gpu.healthy
        && gpu.memory >= need.min_gpu_memory
        && (need.models.is_empty() || need.models.contains(&gpu.model));
    let shared = match need.ask {
        GpuAsk::None => return 0,
        GpuAsk::Whole { .. } => Mode::Free,
        GpuAsk::Fraction { .. } | GpuAsk::Memory { .. } => Mode::Fraction,
        GpuAsk::Mig { .. } => Mode::Mig,
        GpuAsk::Mps { .. } => Mode::Mps,
        GpuAsk::TimeSlice { .. } => Mode::TimeSlice,
    };
    let may_share = share_on(&need.ask, gpu.memory)
        .is_none_or(|share| node.may_share(&node.gpus, at, &share, requester));
    let is_open = gpu.mode == Mode::Free || gpu.mode == shared;
    if suits && is_open && may_share { 1_000 - gpu.used } else { 0 }
}

/// The domain of a level with the most room, the first of equals.
pub(crate) fn best_domain(
    state: &State,
    topology: u32,
    depth: u32,
    fits: impl Fn(DomainIx) -> u32,
) -> Option<(u32, Name)> {
    let cluster = &state.cluster;
    let best = cluster.domains_of(topology, depth).map(|domain| (fits(domain), domain)).max_by(
        |(fit, domain), (other_fit, other)| {
            let first = |domain: &DomainIx| Reverse(cluster.first_of(*domain));
            fit.cmp(other_fit).then_with(|| first(domain).cmp(&first(other)))
        },
    );
    best.map(|(fit, domain)| (fit, cluster.domains[domain.at()].name.clone()))
}
