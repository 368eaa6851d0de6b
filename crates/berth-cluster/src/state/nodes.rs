//! Nodes as the core knows them: their capacity, less what pods of other schedulers use, with the
//! predicates that they meet as labels.

mod cordons;
mod kinds;
mod room;

use crate::constraints::devices::{Offer, Pieces};
use crate::constraints::hypernodes::Places;
use crate::constraints::predicates::{NodePredicates, PredicateRefs};
use crate::constraints::vgpu::Cards;
use crate::constraints::{YES, devices, is_there};
use crate::view::{NodePredicate, NodeView, NodeViews, PodResources, PodView, ResourceUsage};
use berth_engine::{Core, Turn};
use berth_kube::hypernode::HyperNodeTree;
use berth_kube::pod::requests::{GpuRequest, GpuUnit};
use berth_model::{Bytes, Cpu, Event, GpuAsk, GpuSpec, Health, Name, NodeSpec, NodeState, Slice};
use cordons::Cordons;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Nodes {
    nodes: BTreeMap<Name, Node>,
    predicates: NodePredicates,
    /// Those that may have to be described anew.
    stale: BTreeSet<Name>,
    /// Counts the changes of nodes.
    version: u64,
    /// What pods take on nodes that were not seen yet.
    taken: BTreeMap<Name, Taken>,
    /// GPUs that others have claimed, by their numbers.
    claimed: BTreeMap<Name, BTreeSet<usize>>,
    /// Nodes by what they hand out of GPUs.
    offers: BTreeMap<Offer, BTreeSet<Name>>,
    /// A cache of what a resource means, by the names of the predicates of the pod that asks for
    /// it: there are many nodes, and many pods with the same predicates.
    meant: RefCell<BTreeMap<(Offer, Vec<Name>), Offer>>,
    /// The sizes of GPUs that are shared out in parts.
    cards: Cards,
    /// Where nodes are by HyperNodes.
    places: Places,
    /// Pods that wait and may run on cordoned nodes.
    cordons: Cordons,
    /// Something is handed out that was not before, or not any more.
    has_other_offers: bool,
}

struct Node {
    view: NodeView,
    /// Its places by HyperNodes, once they were computed.
    places: Option<Vec<(Name, Name)>>,
    /// As the core knows it.
    reported: Option<NodeSpec>,
}

/// What pods that are none of our tasks take of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    pods: i64,
    cpu: i64,
    memory: i64,
    gpus: Pieces,
    counted: BTreeMap<Name, i64>,
}

impl Taken {
    /// What a pod takes where it is bound, until it is over.
    fn by(view: &PodView) -> Option<(Name, Taken)> {
        let node = view.node.clone().filter(|_| !view.phase.is_over())?;
        let mut taken = if let Some(takes) = &view.takes {
            let ResourceUsage { cpu, memory, gpus, counted } = &**takes;
            let (gpus, counted) = (Pieces::of(gpus), counted.clone());
            Taken { pods: 1, cpu: cpu.0, memory: memory.0, gpus, counted }
        } else {
            let PodResources { cpu, memory, gpus, counted } = &view.asks;
            let (gpus, counted) = (Pieces::of(std::slice::from_ref(gpus)), counted.clone());
            Taken { pods: 1, cpu: cpu.0, memory: memory.0, gpus, counted }
        };
        if let Some(held) = &view.holds {
            taken.gpus = Pieces::held(held.gpu);
        }
        Some((node, taken))
    }

    /// What a task takes beyond what its lease holds of its node: only CPU and memory can be changed
    /// while it runs.
    fn beyond(view: &PodView, leased: (Cpu, Bytes)) -> Option<(Name, Taken)> {
        let node = view.node.clone().filter(|_| !view.phase.is_over())?;
        let asked = (view.asks.cpu, view.asks.memory);
        let (cpu, memory) = view.takes.as_ref().map_or(asked, |takes| (takes.cpu, takes.memory));
        let more = (cpu.0 - leased.0.0, memory.0 - leased.1.0);
        let more = (more.0.max(0), more.1.max(0));
        let taken = Taken { cpu: more.0, memory: more.1, ..Taken::default() };
        (more != (0, 0)).then_some((node, taken))
    }

    fn add(&mut self, other: &Taken, sign: i64) {
        self.pods += other.pods * sign;
        self.cpu += other.cpu * sign;
        self.memory += other.memory * sign;
        self.gpus.add(&other.gpus, sign);
        for (resource, amount) in &other.counted {
            *self.counted.entry(resource.clone()).or_default() += amount * sign;
        }
        self.counted.retain(|_, amount| *amount != 0);
    }
}

impl Nodes {
    pub fn names(&self) -> BTreeSet<Name> {
        self.nodes.keys().cloned().collect()
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn put(&mut self, view: NodeView) {
        let same = |known: &Node| {
            let (old, new) = (&known.view.object, &view.object);
            old.metadata.labels == new.metadata.labels && old.spec.taints == new.spec.taints
        };
        let known = self.nodes.get(&view.spec.name);
        self.version += u64::from(!known.is_some_and(same));
        let name = view.spec.name.clone();
        self.stale.insert(name.clone());
        if !view.is_unreadable {
            self.update_offers(&view);
        }
        match self.nodes.get_mut(&name) {
            // What it had it may still have: what runs there goes on.
            Some(node) if view.is_unreadable => node.view.spec.state = NodeState::Cordoned,
            Some(node) => (node.view, node.places) = (view, None),
            None => drop(self.nodes.insert(name, Node { view, places: None, reported: None })),
        }
    }

    fn update_offers(&mut self, view: &NodeView) {
        let (name, offers) = (&view.spec.name, Offer::of(view));
        let looks_alike = |old: &Node| {
            let (before, now) = (&*old.view.object, &*view.object);
            before.metadata.labels == now.metadata.labels
                && before.spec.taints == now.spec.taints
                && Offer::of(&old.view) == offers
        };
        if !self.nodes.get(name).is_some_and(looks_alike) {
            self.meant.get_mut().clear();
            // A node that was closed to some may be open to them now.
            self.has_other_offers |= self.is_mixed();
        }
        self.offer(name, offers);
        let before = self.nodes.get(name).map(|node| &node.view);
        self.has_other_offers |= self.cards.update(before, Some(view));
    }

    fn offer(&mut self, name: &Name, offers: Vec<Offer>) {
        self.offers.retain(|offer, nodes| {
            if !offers.contains(offer) {
                nodes.remove(name);
            }
            self.has_other_offers |= nodes.is_empty();
            !nodes.is_empty()
        });
        for offer in offers {
            let nodes = self.offers.entry(offer).or_default();
            self.has_other_offers |= nodes.is_empty();
            nodes.insert(name.clone());
        }
    }

    /// Others have claimed these GPUs of a node, and no more.
    pub fn set_claimed(&mut self, name: &Name, gpus: BTreeSet<usize>) {
        let known = self.claimed.get(name).is_some_and(|known| *known == gpus);
        if known || (gpus.is_empty() && !self.claimed.contains_key(name)) {
            return;
        }
        self.claimed.insert(name.clone(), gpus);
        self.stale.insert(name.clone());
    }

    /// Nodes are where these say.
    pub fn set_hypernodes(&mut self, tree: HyperNodeTree) {
        self.places.set_tree(tree);
        self.places.report_overlaps(self.nodes.values().map(|node| &*node.view.object));
        self.forget_places();
    }

    /// These levels are known to the core.
    pub fn set_levels(&mut self, levels: &[Name]) {
        if self.places.set_levels(levels) {
            self.forget_places();
        }
    }

    fn forget_places(&mut self) {
        self.nodes.values_mut().for_each(|node| node.places = None);
        self.stale.extend(self.nodes.keys().cloned());
    }

    /// Whether one `nvidia.com/gpu` is one thing here and another there.
    fn is_mixed(&self) -> bool {
        self.offers.keys().filter(|offer| matches!(offer, Offer::Gpu(_))).count() > 1
    }

    /// Whether pods may be given other things than when this was last asked.
    pub fn has_other_offers(&mut self) -> bool {
        std::mem::take(&mut self.has_other_offers)
    }

    /// What a pod with those rules is given of GPUs, and the label of nodes that have it. Where a
    /// resource means one thing here and another there, a whole GPU goes before parts of one, and
    /// then what most nodes have.
    pub fn given(
        &self,
        gpus: &GpuRequest,
        rules: &[NodePredicate],
    ) -> Option<(GpuAsk, Option<Name>)> {
        if *gpus == GpuRequest::None {
            return Some((GpuAsk::None, None));
        }
        let fits = self.offers.keys().filter(|offer| offer.ask(gpus).is_some());
        let fits: Vec<&Offer> = fits.collect();
        let offer = match fits[..] {
            [] => Offer::usual(gpus)?,
            [one] => one.clone(),
            [first, ..] => {
                let key = (first.clone(), rules.iter().map(|rule| rule.name.clone()).collect());
                let mut meant = self.meant.borrow_mut();
                meant.entry(key).or_insert_with(|| self.best(fits, rules).clone()).clone()
            }
        };
        let ask = match *gpus {
            GpuRequest::Memory { bytes, least, count } => self.cards.ask(bytes, least, count),
            _ => offer.ask(gpus)?,
        };
        Some((ask, Some(offer.label())))
    }

    /// The best of several offers that some node has on which such a pod may run.
    fn best<'a>(&self, mut offers: Vec<&'a Offer>, rules: &[NodePredicate]) -> &'a Offer {
        offers.sort_by_key(|offer| {
            let is_part = **offer != Offer::Gpu(GpuUnit::Whole);
            (is_part, std::cmp::Reverse(self.offers[*offer].len()))
        });
        let allowed = |name: &Name| {
            let node = self.nodes.get(name);
            node.is_some_and(|node| rules.iter().all(|rule| (rule.allows)(&node.view)))
        };
        let usable = offers.iter().find(|offer| self.offers[**offer].iter().any(allowed));
        usable.unwrap_or(&offers[0])
    }

    /// Reads every node again: there is more to be looked for.
    pub fn read_again(&mut self, read: impl Fn(&berth_kube::object::Node) -> NodeView) {
        let again: Vec<NodeView> = self
            .nodes
            .values()
            .map(|node| read(&node.view.object).with_claims(&node.view))
            .collect();
        again.into_iter().for_each(|node| self.put(node));
    }

    /// The label of a node, if it has it.
    pub fn label(&self, node: &Name, key: &str) -> Option<String> {
        self.nodes.get(node)?.view.object.metadata.label(key).map(str::to_owned)
    }

    /// Counts what a pod that is no task takes, or takes it off again. What is counted of it is kept
    /// with the pod, so that counting twice does nothing.
    pub fn count(&mut self, counted: &mut Option<(Name, Taken)>, now: Option<&PodView>) {
        self.count_as(counted, now.and_then(Taken::by));
    }

    /// The same of a task whose lease holds that much for it.
    pub fn count_beyond(
        &mut self,
        counted: &mut Option<(Name, Taken)>,
        view: &PodView,
        leased: (Cpu, Bytes),
    ) {
        self.count_as(counted, Taken::beyond(view, leased));
    }

    fn count_as(&mut self, counted: &mut Option<(Name, Taken)>, now: Option<(Name, Taken)>) {
        if *counted == now {
            return;
        }
        for (change, sign) in [(counted.as_ref(), -1), (now.as_ref(), 1)] {
            let Some((node, taken)) = change else { continue };
            self.taken.entry(node.clone()).or_default().add(taken, sign);
            self.stale.insert(node.clone());
        }
        *counted = now;
    }

    /// Adds these predicates to the labels of nodes, and counts these ports on each, until they are
    /// released.
    pub fn track_predicates(
        &mut self,
        rules: &[NodePredicate],
        ports: &BTreeMap<Name, i64>,
    ) -> PredicateRefs {
        let (predicate_refs, is_new) = self.predicates.acquire(rules, ports);
        if is_new {
            self.stale.extend(self.nodes.keys().cloned());
            self.meant.get_mut().clear();
        }
        predicate_refs
    }

    pub fn release_predicates(&mut self, predicate_refs: PredicateRefs) {
        self.predicates.release_predicates(predicate_refs);
    }

    /// What the core knows from before. Returns those that are not there any more.
    pub fn remember(&mut self, core: &Core) -> Vec<Name> {
        let mut missing = Vec::new();
        for known in core.state.node_snapshots() {
            match self.nodes.get_mut(&known.spec.name) {
                Some(node) => node.reported = Some(known.spec),
                None => missing.push(known.spec.name),
            }
        }
        missing
    }

    /// A node is gone, with nothing of ours on it any more.
    pub fn remove(&mut self, turn: &mut Turn<'_>, name: &Name) {
        self.stale.remove(name);
        self.offer(name, Vec::new());
        self.meant.get_mut().clear();
        self.version += 1;
        let gone = self.nodes.remove(name);
        self.has_other_offers |= self.cards.update(gone.as_ref().map(|node| &node.view), None);
        turn.apply_observed(Event::NodeRemoved { node: name.clone() });
    }

    /// Tells the core what has changed.
    pub fn report(&mut self, turn: &mut Turn<'_>) {
        for name in std::mem::take(&mut self.stale) {
            let nothing = Taken::default();
            if self.taken.get(&name) == Some(&nothing) {
                self.taken.remove(&name);
            }
            let taken = self.taken.get(&name).unwrap_or(&nothing);
            let Some(node) = self.nodes.get_mut(&name) else { continue };
            let mut spec = described(turn.core, &node.view, taken, &self.predicates);
            if self.cordons.opens(&node.view) {
                spec.state = NodeState::Ready;
            }
            let object = &node.view.object;
            let places = node.places.get_or_insert_with(|| self.places.of(object));
            spec.labels.extend(places.iter().cloned());
            for at in self.claimed.get(&name).into_iter().flatten() {
                if let Some(gpu) = spec.gpus.get_mut(*at) {
                    gpu.health = Health::Failed;
                }
            }
            if let Some(reported) = &node.reported
                && turn.core.state.is_busy(&name)
            {
                keep_gpus(&mut spec, reported);
            }
            if node.reported.as_ref() == Some(&spec) {
                continue;
            }
            // A node that the core refuses is reported again when it is next seen.
            let known = turn.apply_observed(Event::NodeAdded { node: Box::new(spec.clone()) });
            if known {
                node.reported = Some(spec);
            }
        }
    }
}

impl Nodes {
    /// A pod waits that may run on cordoned nodes, by these predicates; or it does not any more.
    pub fn wait_for_cordoned(&mut self, uid: &str, rules: Option<&[NodePredicate]>) {
        if self.cordons.set(uid, rules) {
            let closed = self.nodes.iter().filter(|(_, node)| Cordons::is_cordoned(&node.view));
            self.stale.extend(closed.map(|(name, _)| name.clone()));
        }
    }
}

impl NodeViews for Nodes {
    fn view(&self, name: &str) -> Option<&NodeView> {
        self.nodes.get(name).map(|node| &node.view)
    }

    fn views(&self) -> Box<dyn Iterator<Item = &NodeView> + '_> {
        Box::new(self.nodes.values().map(|node| &node.view))
    }
}

fn described(core: &Core, view: &NodeView, taken: &Taken, predicates: &NodePredicates) -> NodeSpec {
    let mut spec = view.spec.clone();
    spec.tasks = spec.tasks.map(|tasks| tasks.saturating_sub(taken.pods.max(0) as u32));
    spec.counted.extend(predicates.ports().map(|(port, size)| (port.clone(), size)));
    for (resource, free) in &mut spec.counted {
        *free = (*free - taken.counted.get(resource).copied().unwrap_or(0)).max(0);
    }
    spec.cpu = spec.cpu.map(|cpu| Cpu((cpu.0 - taken.cpu).max(0)));
    spec.memory = spec.memory.map(|memory| Bytes((memory.0 - taken.memory).max(0)));
    if taken.gpus != Pieces::default() {
        taken.gpus.subtract_from(view, &mut spec, &held(core, &view.spec.name));
    }
    for offer in Offer::of(view) {
        spec.labels.insert(offer.label(), Name::new(YES));
        let kind = offer.piece().as_ref().and_then(devices::kind);
        spec.labels.extend(kind.map(is_there));
    }
    for rule in predicates.rules() {
        if (rule.allows)(view) {
            spec.labels.insert(rule.name.clone(), Name::new(YES));
        }
    }
    spec
}

/// Keeps GPUs that a node no longer reports as failed ones: the node does not say which are gone,
/// and the leases on them stay in the core until they end.
fn keep_gpus(spec: &mut NodeSpec, reported: &NodeSpec) {
    let missing = reported.gpus.iter().skip(spec.gpus.len());
    spec.gpus.extend(missing.map(|gpu| GpuSpec { health: Health::Failed, ..gpu.clone() }));
}

/// What our own tasks hold of the GPUs of a node.
fn held(core: &Core, node: &Name) -> Vec<Slice> {
    let leases = core.jobs.values().flat_map(|job| job.leases.values());
    leases
        .filter(|lease| lease.row.node == node.as_str())
        .flat_map(|lease| serde_json::from_str::<Vec<Slice>>(&lease.row.slices).unwrap_or_default())
        .collect()
}
