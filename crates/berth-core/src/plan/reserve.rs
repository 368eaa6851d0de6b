//! Reservations: the earliest time at which a blocked job is sure to fit, and where.

use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::gpu::Mode;
use crate::cluster::node::{Node, Requester};
use crate::ix::{DomainIx, JobIx, NodeIx, TaskIx};
use crate::plan::fit::fit;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::shape::leaf::Leaf;
use berth_model::{NodeState, Share, Slice, Span, Time};
use std::collections::{BTreeMap, BinaryHeap};

/// A place for one task: when it is there, on which node, the how-manieth of that node.
type Opening = (Time, NodeIx, u32);

impl Planner<'_> {
    /// The earliest time the job's minimum fits, with its places, if what runs ends when it must
    /// and what is promised is kept. None where something in its way has no end.
    pub(super) fn earliest(&mut self, job: JobIx) -> Option<(Time, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let (at, spots) = match shape.single() {
            Some(leaf) if simple(leaf) => self.earliest_alike(job, leaf),
            _ => self.earliest_by_trying(job),
        }?;
        if (at - self.now()).is_unlimited() {
            return None;
        }
        Some((at, self.on_busy_gpus(job, at, spots)))
    }

    /// The same places on the GPUs of each node that are not free yet, as far as those suffice: the
    /// ones that are free until then are left to others.
    fn on_busy_gpus(&self, job: JobIx, at: Time, mut spots: Vec<Spot>) -> Vec<Spot> {
        let state = self.state();
        let requester = self.requester(job);
        let mut by_node: BTreeMap<NodeIx, Vec<usize>> = BTreeMap::new();
        for (n, spot) in spots.iter().enumerate() {
            by_node.entry(spot.node).or_default().push(n);
        }
        for (ix, here) in by_node {
            let whole = |n: &usize| {
                let leaf = state.leaf_of(job, spots[*n].task);
                leaf.whole().is_some_and(|g| g > 0)
                    && !leaf.need.island
                    && leaf.need.only.is_none()
                    && leaf.together.required != Some(Level::Nvlink)
            };
            let leaf = state.leaf_of(job, spots[here[0]].task);
            let alike = |n: &usize| std::ptr::eq(state.leaf_of(job, spots[*n].task), leaf);
            if !here.iter().all(|n| whole(n) && alike(n)) {
                continue;
            }
            let mut gpus = self.gpu_times(state.cluster.node(ix), leaf, &requester);
            gpus.retain(|(free, _)| *free <= at);
            gpus.sort_unstable_by_key(|(free, gpu)| (*free <= self.now(), *gpu));
            let asked: usize = here.iter().map(|n| spots[*n].slices.len()).sum();
            if gpus.len() < asked {
                continue;
            }
            let mut gpus = gpus.into_iter().map(|(_, gpu)| gpu);
            for n in here {
                let count = spots[n].slices.len();
                let taken = gpus.by_ref().take(count);
                spots[n].slices = taken.map(|gpu| Slice { gpu, share: Share::Whole }).collect();
                spots[n].slices.sort();
            }
        }
        spots
    }

    /// Like tasks of whole GPUs: each node says when it could take one more; the n-th earliest of
    /// these times, over the best domain, is the answer.
    fn earliest_alike(&mut self, job: JobIx, leaf: &Leaf) -> Option<(Time, Vec<Spot>)> {
        let requester = self.requester(job);
        let span = requester.until - requester.now;
        let n = leaf.min as usize;
        self.draft.state.refresh_release_times();
        // Its own promise does not stand in its way.
        let known =
            self.state().release_times_apply(leaf) && !self.state().promises.contains_key(&job);
        let domains: Vec<DomainIx> = match leaf.together.required {
            Some(Level::Label { topology, depth }) => {
                self.state().cluster.domains_in_order(topology, depth)
            }
            _ => vec![WHOLE],
        };
        let single_node = leaf.together.required == Some(Level::Node);
        let mut best: Option<(Time, Vec<Opening>)> = None;
        for domain in domains {
            let found = if single_node {
                self.on_best_node(leaf, domain, &requester, span, n)
            } else {
                let bar = best.as_ref().map(|(at, _)| *at);
                self.all_in_domain(leaf, domain, &requester, span, n, bar, known)
            };
            if let Some((at, openings)) = found
                && best.as_ref().is_none_or(|(other, _)| at < *other)
            {
                best = Some((at, openings));
            }
        }
        let (at, openings) = best?;
        Some((at, self.spots_at(job, leaf, &openings, &requester, span)))
    }

    /// The earliest time at which all tasks fit the domain. Each place opens at its own time, and all
    /// of them are held from the last one on: a node that closes in between is none.
    #[allow(clippy::too_many_arguments, reason = "what is sought, where, and what is known")]
    fn all_in_domain(
        &self,
        leaf: &Leaf,
        domain: DomainIx,
        requester: &Requester,
        span: Span,
        n: usize,
        bar: Option<Time>,
        known: bool,
    ) -> Option<(Time, Vec<Opening>)> {
        let mut requester = *requester;
        loop {
            let (at, openings) = self.in_domain(leaf, domain, &requester, span, n, bar, known)?;
            let cluster = &self.state().cluster;
            let then = Requester { now: at, until: at + span, ..requester };
            let open = |(_, ix, _): &Opening| cluster.node(*ix).admits(&then);
            if at <= requester.now || openings.iter().all(open) {
                return Some((at, openings));
            }
            // Nothing is earlier than that, and places are looked for as they are then.
            requester.now = at;
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what is sought, where, and what is known")]
    fn in_domain(
        &self,
        leaf: &Leaf,
        domain: DomainIx,
        requester: &Requester,
        span: Span,
        n: usize,
        bar: Option<Time>,
        known: bool,
    ) -> Option<(Time, Vec<Opening>)> {
        let cluster = &self.state().cluster;
        if (leaf.empty_fit_in(cluster, domain) as usize) < n {
            return None;
        }
        // The n earliest openings so far; the latest of them on top.
        let mut heap: BinaryHeap<Opening> = BinaryHeap::with_capacity(n + 1);
        let g = leaf.whole().unwrap_or(0);
        for ix in &cluster.domains[domain.at()].nodes {
            let worst = match heap.peek() {
                Some((at, _, _)) if heap.len() == n => Some(*at),
                _ => bar,
            };
            if known && cluster.release_times[ix.at()].later_than(g, worst) {
                continue;
            }
            let node = cluster.node(*ix);
            if !leaf.classes.contains(&node.class) || !leaf.suits(node) {
                continue;
            }
            for (k, at) in
                self.openings(node, leaf, requester, span, n, worst).into_iter().enumerate()
            {
                let opening = (at, *ix, k as u32);
                if heap.len() < n {
                    heap.push(opening);
                } else if heap.peek().is_some_and(|top| opening < *top) {
                    heap.pop();
                    heap.push(opening);
                } else {
                    break;
                }
            }
        }
        (heap.len() == n).then(|| {
            let openings = heap.into_sorted_vec();
            (openings[n - 1].0, openings)
        })
    }

    fn on_best_node(
        &self,
        leaf: &Leaf,
        domain: DomainIx,
        requester: &Requester,
        span: Span,
        n: usize,
    ) -> Option<(Time, Vec<Opening>)> {
        let cluster = &self.state().cluster;
        let mut best: Option<(Time, NodeIx)> = None;
        for ix in &cluster.domains[domain.at()].nodes {
            let node = cluster.node(*ix);
            if !leaf.classes.contains(&node.class) || !leaf.suits(node) {
                continue;
            }
            let openings = self.openings(node, leaf, requester, span, n, best.map(|(at, _)| at));
            if openings.len() == n && best.is_none_or(|other| (openings[n - 1], *ix) < other) {
                best = Some((openings[n - 1], *ix));
            }
        }
        let (at, ix) = best?;
        Some((at, (0..n as u32).map(|k| (at, ix, k)).collect()))
    }

    /// When the node could take its first, second, … task of this group; none after `worst`.
    fn openings(
        &self,
        node: &Node,
        leaf: &Leaf,
        requester: &Requester,
        span: Span,
        most: usize,
        worst: Option<Time>,
    ) -> Vec<Time> {
        let g = leaf.whole().unwrap_or(0) as usize;
        let mut times: Vec<Time> =
            self.gpu_times(node, leaf, requester).into_iter().map(|(at, _)| at).collect();
        times.sort_unstable();
        let most = times.len().checked_div(g).map_or(most, |tasks| most.min(tasks));
        let mut found = Vec::with_capacity(most.min(16));
        for k in 0..most {
            let gpus = if g == 0 { requester.now } else { times[(k + 1) * g - 1] };
            let mut at =
                gpus.max(self.when_spare(node, leaf, requester, k as i64 + 1)).max(requester.now);
            for block in &node.blocks {
                if block.owner != Some(requester.queue) && at + span > block.from && at < block.to {
                    at = block.to;
                }
            }
            if let NodeState::Leaving { at: leaves } = node.spec.state
                && at + span > leaves
            {
                break;
            }
            if !node.open() || at >= Time::MAX || worst.is_some_and(|worst| at >= worst) {
                break;
            }
            found.push(at);
        }
        found
    }

    /// When each suitable GPU is free of what runs there and of what is promised.
    fn gpu_times(&self, node: &Node, leaf: &Leaf, requester: &Requester) -> Vec<(Time, u32)> {
        let state = self.state();
        let mut times: Vec<Option<Time>> = node
            .gpus
            .iter()
            .map(|gpu| {
                let suits = gpu.healthy
                    && gpu.memory >= leaf.need.min_gpu_memory
                    && gpu.unused() == Mode::Free
                    && (leaf.need.models.is_empty() || leaf.need.models.contains(&gpu.model));
                suits.then_some(requester.now)
            })
            .collect();
        for task in &node.tasks {
            let job = state.jobs.get(task.job);
            let Some(lease) = job.tasks[task.task as usize].lease.as_deref() else { continue };
            let ends = state.expected_end(job, lease);
            for slice in &lease.slices {
                let time = &mut times[slice.gpu as usize];
                *time = time.map(|time| time.max(ends));
            }
        }
        for kept in node.promised_slots.iter().filter(|kept| kept.job != requester.job) {
            for slice in &kept.slices {
                let time = &mut times[slice.gpu as usize];
                *time = time.map(|time| time.max(kept.to));
            }
        }
        let found = times.into_iter().enumerate();
        found.filter_map(|(at, time)| Some((time?, at as u32))).collect()
    }

    /// When CPU and memory for `n` tasks are there, and the node takes so many more.
    fn when_spare(&self, node: &Node, leaf: &Leaf, requester: &Requester, n: i64) -> Time {
        let bound = |is: bool, asks: i64| if is { asks * n } else { 0 };
        let cpu = bound(node.spec.cpu.is_some(), leaf.need.cpu);
        let memory = bound(node.spec.memory.is_some(), leaf.need.memory);
        // What is promised is taken to stay.
        let others = || node.promised_slots.iter().filter(|kept| kept.job != requester.job);
        let mut free_tasks = node.tasks_left().saturating_sub(others().count() as i64);
        if cpu == 0 && memory == 0 && free_tasks >= n {
            return requester.now;
        }
        let state = self.state();
        let (kept_cpu, kept_memory) =
            others().fold((0, 0), |(c, m), kept| (c + kept.cpu, m + kept.memory));
        let (mut free_cpu, mut free_memory) =
            (node.cpu_free - kept_cpu, node.memory_free - kept_memory);
        let mut ends: Vec<(Time, i64, i64)> = node
            .tasks
            .iter()
            .filter_map(|task| {
                let job = state.jobs.get(task.job);
                let lease = job.tasks[task.task as usize].lease.as_deref()?;
                Some((state.expected_end(job, lease), lease.charge.cpu, lease.charge.memory))
            })
            .collect();
        ends.sort_unstable();
        let mut at = requester.now;
        let mut ends = ends.into_iter();
        while free_cpu < cpu || free_memory < memory || free_tasks < n {
            let Some((end, more_cpu, more_memory)) = ends.next() else {
                // After the last of those it is promised to, if there is enough at all.
                let all = node.spec.cpu.is_none_or(|all| cpu <= all.0)
                    && node.spec.memory.is_none_or(|all| memory <= all.0)
                    && node.spec.tasks.is_none_or(|all| n <= i64::from(all));
                let last = node.promised_slots.iter().map(|kept| kept.to).max().filter(|_| all);
                return last.unwrap_or(Time::MAX).max(at);
            };
            at = at.max(end);
            free_cpu += more_cpu;
            free_memory += more_memory;
            free_tasks = free_tasks.saturating_add(1);
        }
        at
    }

    /// Turns openings into GPUs: on each node those that are free first.
    fn spots_at(
        &self,
        job: JobIx,
        leaf: &Leaf,
        openings: &[Opening],
        requester: &Requester,
        _span: Span,
    ) -> Vec<Spot> {
        let g = leaf.whole().unwrap_or(0) as usize;
        let known = self.state().jobs.get(job);
        let mut tasks = (leaf.first..leaf.first + leaf.count)
            .filter(|task| known.tasks[*task as usize].lease.is_none());
        let mut nodes: Vec<(NodeIx, usize)> = Vec::new();
        let mut sorted: Vec<NodeIx> = openings.iter().map(|(_, ix, _)| *ix).collect();
        sorted.sort();
        for ix in sorted {
            match nodes.last_mut() {
                Some((last, count)) if *last == ix => *count += 1,
                _ => nodes.push((ix, 1)),
            }
        }
        let mut spots = Vec::with_capacity(openings.len());
        for (ix, count) in nodes {
            let mut gpus = self.gpu_times(self.state().cluster.node(ix), leaf, requester);
            gpus.sort_unstable();
            let mut gpus = gpus.into_iter().map(|(_, gpu)| gpu);
            for _ in 0..count {
                let mut slices: Vec<Slice> =
                    gpus.by_ref().take(g).map(|gpu| Slice { gpu, share: Share::Whole }).collect();
                slices.sort();
                let Some(task) = tasks.next() else { return spots };
                spots.push(Spot { task, node: ix, slices });
            }
        }
        spots
    }

    /// Any other shape: lets what runs end, in its order, on the draft, until the job fits.
    fn earliest_by_trying(&mut self, job: JobIx) -> Option<(Time, Vec<Spot>)> {
        let mark = self.draft.mark();
        let mut ends: Vec<(Time, TaskIx)> = Vec::new();
        let state = self.state();
        for queue in state.queues.leaves() {
            for ix in state.queues.get(queue).running.values() {
                let known = state.jobs.get(*ix);
                for (task, lease) in known.leases() {
                    ends.push((state.expected_end(known, lease), TaskIx { job: *ix, task }));
                }
            }
        }
        ends.sort_by_key(|(at, task)| (*at, self.state().jobs.get(task.job).id, task.task));
        let mut times: Vec<Time> = ends.iter().map(|(at, _)| *at).collect();
        // Promises to others end too.
        times.extend(self.state().promises.values().map(|promised| promised.to));
        times.push(self.now());
        times.sort_unstable();
        times.dedup();
        let (mut low, mut high) = (0, times.len());
        let mut best = None;
        while low < high {
            let middle = (low + high) / 2;
            match self.fits_at(job, times[middle], &ends) {
                Some(spots) => {
                    best = Some((times[middle], spots));
                    high = middle;
                }
                None => low = middle + 1,
            }
            self.draft.roll_back(mark);
        }
        best
    }

    fn fits_at(&mut self, job: JobIx, at: Time, ends: &[(Time, TaskIx)]) -> Option<Vec<Spot>> {
        let over: Vec<TaskIx> =
            ends.iter().take_while(|(end, _)| *end <= at).map(|(_, task)| *task).collect();
        for task in over {
            self.draft.close(task);
        }
        let mut requester = self.requester(job);
        requester.until = at + (requester.until - requester.now);
        requester.now = at;
        fit(&mut self.draft, &self.mix, job, requester).ok()
    }
}

/// Groups whose openings can be worked out node by node.
fn simple(leaf: &Leaf) -> bool {
    (leaf.whole().is_some() || leaf.need.ask == berth_model::GpuAsk::None)
        && !leaf.need.island
        && leaf.near.is_empty()
        && leaf.need.counted.is_empty()
        && leaf.spread.is_none()
        && leaf.together.segment.is_none()
        && !matches!(leaf.together.required, Some(Level::Nvlink))
}
