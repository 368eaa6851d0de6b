//! Counts of what is free, brought up to date after every change on a node, and questions that they
//! answer.

use crate::amounts::UNBOUNDED;
use crate::cluster::Cluster;
use crate::cluster::domain::count_of;
use crate::cluster::node::{Block, Node, PromisedSlot, TaskAmounts};
use crate::ix::{ClassIx, DomainIx, JobIx, NodeIx, TaskIx};
use berth_model::{Health, Slice, Time};

impl Cluster {
    /// Brings the free counts up to date after anything on the node changed.
    pub fn reindex(&mut self, ix: NodeIx) {
        self.mark_dirty(ix);
        self.update_awaited(ix);
        let node = &mut self.nodes[ix.at()];
        let free = node.free_whole();
        let open = node.open().then_some(free);
        let contested = node.contested();
        let clean = open.filter(|_| !contested);
        let changed = match contested {
            true => self.contested.insert(ix),
            false => self.contested.remove(&ix),
        };
        let sure = if contested { node.free_before(Time::MAX) } else { open.unwrap_or(0) };
        let was = std::mem::replace(&mut self.uncommitted[ix.at()], sure);
        let more = sure.wrapping_sub(was);
        let fingerprint = node.fingerprint();
        if fingerprint != self.fingerprints[ix.at()] {
            let looked = std::mem::replace(&mut self.fingerprints[ix.at()], fingerprint);
            self.touched.entry(ix).or_insert(looked);
        }
        if changed || more != 0 {
            let sign = if changed { if contested { 1 } else { -1 } } else { 0 };
            for domain in &node.domains {
                let domain = &mut self.domains[domain.at()];
                domain.uncommitted = domain.uncommitted.wrapping_add(more);
                domain.contested = domain.contested.wrapping_add_signed(sign);
            }
        }
        let (was_open, was_clean) = (self.free_by_node[ix.at()], node.indexed);
        if open == was_open && clean == was_clean {
            return;
        }
        self.free_by_node[ix.at()] = open;
        node.indexed = clean;
        let class = node.class;
        let buckets = &mut self.classes[class.at()].buckets;
        if let Some(free) = was_clean {
            buckets[free as usize].remove(&ix);
        }
        if let Some(free) = clean {
            buckets[free as usize].insert(ix);
        }
        let most = self.classes[class.at()].gpus;
        for domain in &self.nodes[ix.at()].domains {
            let count = count_of(&mut self.domains[domain.at()], class, most);
            let slots = |free: Option<u32>, g: usize| match (free, g) {
                (None, _) => 0,
                (Some(_), 0) => 1,
                (Some(free), g) => (free as usize / g) as i32,
            };
            for (g, free) in count.free.iter_mut().enumerate() {
                *free = free.wrapping_add_signed(slots(clean, g) - slots(was_clean, g));
            }
            for (g, room) in count.room.iter_mut().enumerate() {
                *room = room.wrapping_add_signed(slots(open, g) - slots(was_open, g));
            }
        }
    }

    pub fn take(&mut self, ix: NodeIx, task: TaskIx, slices: &[Slice], held: &TaskAmounts) {
        let node = &mut self.nodes[ix.at()];
        node.take(task, slices, held.bound(&node.spec));
        self.reindex(ix);
    }

    pub fn give(&mut self, ix: NodeIx, task: TaskIx, slices: &[Slice], held: &TaskAmounts) {
        let node = &mut self.nodes[ix.at()];
        node.give(task, slices, held.bound(&node.spec));
        self.reindex(ix);
    }

    /// Keeps a place for a job; whether it is free for it is found out here.
    pub fn add_promised_slot(&mut self, ix: NodeIx, kept: PromisedSlot) {
        let job = kept.job;
        let node = &mut self.nodes[ix.at()];
        node.promised_slots.push(PromisedSlot { ready: false, ..kept });
        node.promised_slots.sort_by_key(|kept| (kept.from, kept.job));
        *self.awaited.entry(job).or_default() += 1;
        self.ready.remove(&job);
        self.reindex(ix);
    }

    pub fn remove_promised_slots(&mut self, ix: NodeIx, job: JobIx) {
        self.nodes[ix.at()].promised_slots.retain(|kept| kept.job != job);
        self.reindex(ix);
    }

    /// Nodes that look different from when claims were last looked at.
    pub fn changed(&self) -> Vec<NodeIx> {
        let changed =
            self.touched.iter().filter(|(ix, looked)| self.fingerprints[ix.at()] != **looked);
        changed.map(|(ix, _)| *ix).collect()
    }

    /// Claims are looked at now.
    pub fn clear_touched(&mut self) {
        self.touched.clear();
    }

    /// Forgets that places were kept for a job; they are no longer.
    pub fn clear_awaited(&mut self, job: JobIx) {
        self.awaited.remove(&job);
        self.ready.remove(&job);
    }

    /// Finds out which of the places kept on a node are free for their jobs now.
    fn update_awaited(&mut self, ix: NodeIx) {
        for at in 0..self.nodes[ix.at()].promised_slots.len() {
            let node = &mut self.nodes[ix.at()];
            let (is, was, job) = (
                node.is_ready(&node.promised_slots[at]),
                node.promised_slots[at].ready,
                node.promised_slots[at].job,
            );
            if is == was {
                continue;
            }
            node.promised_slots[at].ready = is;
            let awaited = self.awaited.entry(job).or_default();
            *awaited = awaited.wrapping_add_signed(if is { -1 } else { 1 });
            match *awaited {
                0 => self.ready.insert(job),
                _ => self.ready.remove(&job),
            };
        }
    }

    pub fn set_node_blocks(&mut self, ix: NodeIx, blocks: Vec<Block>) {
        self.nodes[ix.at()].blocks = blocks;
        self.reindex(ix);
    }

    /// Whether the node is open and has so many free GPUs, whatever is promised there.
    pub fn has_free(&self, ix: NodeIx, gpus: u32) -> bool {
        self.free_by_node[ix.at()].is_some_and(|free| free >= gpus)
    }

    /// How many tasks of `g` whole GPUs fit the uncontested nodes of these classes in the domain,
    /// by GPUs alone.
    pub fn slots(&self, domain: DomainIx, classes: &[ClassIx], g: u32) -> u32 {
        let counts = &self.domains[domain.at()].counts;
        counts
            .iter()
            .filter(|count| classes.contains(&count.class))
            .map(|count| count.free.get(g as usize).copied().unwrap_or(0))
            .sum()
    }

    /// The same on all open nodes, what is promised left aside: no job finds more.
    pub fn room(&self, domain: DomainIx, classes: &[ClassIx], g: u32) -> u32 {
        let counts = &self.domains[domain.at()].counts;
        counts
            .iter()
            .filter(|count| classes.contains(&count.class))
            .map(|count| count.room.get(g as usize).copied().unwrap_or(0))
            .sum()
    }

    /// The same if nothing ran.
    pub fn empty_slots(&self, domain: DomainIx, classes: &[ClassIx], g: u32) -> u32 {
        let counts = &self.domains[domain.at()].counts;
        counts
            .iter()
            .filter(|count| classes.contains(&count.class))
            .map(|count| count.empty.get(g as usize).copied().unwrap_or(0))
            .sum()
    }

    /// The node as it would be if nothing ran on it and nothing were kept.
    pub fn emptied(&self, ix: NodeIx) -> Node {
        let mut node = self.node(ix).clone();
        node.promised_slots.clear();
        node.ends.clear();
        node.blocks.clear();
        node.tasks.clear();
        node.cpu_free = node.spec.cpu.map_or(UNBOUNDED, |cpu| cpu.0);
        node.memory_free = node.spec.memory.map_or(UNBOUNDED, |memory| memory.0);
        node.counted_free = node.spec.counted.clone();
        for (at, gpu) in node.gpus.iter_mut().enumerate() {
            gpu.used = 0;
            gpu.holders = 0;
            gpu.tenants.clear();
            match gpu.mig.as_deref_mut() {
                Some(mig) if mig.fixed => {
                    mig.idle.append(&mut mig.held);
                    mig.layout = berth_model::MigLayout::default();
                }
                _ => gpu.mig = None,
            }
            gpu.mode = gpu.unused();
            gpu.healthy = node.spec.gpus[at].health == Health::Ok;
        }
        node
    }
}
