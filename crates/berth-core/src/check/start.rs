//! Starts: one task at a time, then the gang.

use crate::amounts::Amounts;
use crate::check::checker::{Checker, TransactionEffects};
use crate::check::eligible;
use crate::check::finding::FindingCode;
use crate::check::gang::{self, Spot, below_minimum, counting};
use crate::check::overlay::{Hold, JobNow, Stand};
use crate::check::place::{self, Fault, crowded};
use crate::check::tenants;
use crate::check::window::Window;
use crate::ix::{JobIx, NodeIx, TaskIx};
use crate::transaction::Transaction;
use berth_model::{Decision, GroupSpec, LeaseId, Micros, Share, Slice, Span, Time};

impl Checker<'_> {
    pub(super) fn start(
        &mut self,
        transaction: &Transaction,
        work: &mut TransactionEffects,
        decision: &Decision,
    ) -> Vec<Fault> {
        let Decision::Start { lease, node, slices, price, resume } = decision else {
            return Vec::new();
        };
        let state = self.view.state;
        let unknown = |text: String| vec![(FindingCode::Unknown, text)];
        let Some(ix) = state.jobs.find(lease.job) else {
            return unknown(format!("there is no job {}", lease.job));
        };
        let Some(node_ix) = state.cluster.find(node) else {
            return unknown(format!("there is no node {node}"));
        };
        let job = self.view.base(ix);
        let group = place::group_of(&job.spec, lease.task);
        let Some((group, _)) = group.filter(|_| (lease.task as usize) < job.tasks.len()) else {
            return unknown(format!("job {} has no task {}", job.id, lease.task));
        };
        let mut found = Vec::new();
        if transaction.job != Some(lease.job) {
            let text = format!("job {} starts in a transaction of another", job.id);
            found.push((FindingCode::Stray, text));
        }
        found.extend(self.begin(work, ix, *resume));
        let task = TaskIx { job: ix, task: lease.task };
        let held = self.view.hold(task).is_some();
        let done = job.tasks[lease.task as usize].done;
        if held || done || self.view.attempts(task) != lease.attempt {
            found.push((FindingCode::Attempt, format!("{lease} is not the next of its task")));
        }
        if held {
            return found;
        }
        let spec = &state.cluster.node(node_ix).spec;
        found.extend(place::node_faults(&job.spec, group, spec));
        found.extend(place::slice_faults(group, spec, slices));
        if self.pools.returns(&work.trade, node) {
            found.push((FindingCode::NodeClosed, format!("{node} is being given back")));
        }
        if *price != self.price(node_ix, slices, group.cpu) {
            found.push((FindingCode::Price, format!("{lease} does not cost {price} an hour")));
        }
        let hold = Hold {
            attempt: lease.attempt,
            node: node_ix,
            slices: slices.clone(),
            amounts: place::amounts(state, ix, lease.task, node_ix, slices),
            since: state.now,
            stopping: None,
        };
        let spot = Spot { task: lease.task, node: node_ix, slices: slices.clone() };
        work.started.entry(ix).or_default().push(spot);
        let asks = hold.amounts.clone();
        self.view.open(task, hold);
        found.extend(self.room(node_ix, slices, &asks));
        found.extend(self.strangers(ix, node_ix, slices));
        found.extend(self.counts(node_ix, group));
        found.extend(self.stay(work, ix, node_ix, slices, *lease));
        found
    }

    /// The first task of the job in this transaction: it must be in line, or already run.
    fn begin(&mut self, work: &mut TransactionEffects, ix: JobIx, resume: bool) -> Vec<Fault> {
        if work.started.contains_key(&ix) {
            return Vec::new();
        }
        work.started.insert(ix, Vec::new());
        let (job, now) = (self.view.base(ix), self.view.job(ix));
        if now.stand == Stand::Running {
            let over = job.hold || job.cancelled || job.failed;
            let text = || format!("job {} is ending and cannot grow", job.id);
            return if over { vec![(FindingCode::NotInLine, text())] } else { Vec::new() };
        }
        let mut found = eligible::faults(&self.view, &mut self.arrays, ix);
        if resume != (job.saved > Span::ZERO) {
            let text = format!("job {} has {} of saved run time", job.id, job.saved);
            found.push((FindingCode::Resume, text));
        }
        if let Some(kept) = self.view.unpromise(ix) {
            work.own.insert(ix, kept);
        }
        work.fresh.insert(ix);
        let started = Some(self.view.state.now);
        self.view.set_job(ix, JobNow { stand: Stand::Running, started, fresh: true, ..now });
        found
    }

    fn price(&self, node: NodeIx, slices: &[Slice], cpu: berth_model::Cpu) -> Micros {
        let state = self.view.state;
        let node = &state.cluster.node(node).spec;
        let prices = &state.models.prices;
        if node.gpus.is_empty() {
            let whole = berth_ledger::cost::node_price(node, prices);
            return berth_ledger::cost::cpu_price(whole, node.cpu, cpu);
        }
        let models: Vec<_> = node.gpus.iter().map(|gpu| gpu.model.clone()).collect();
        let each = berth_ledger::cost::gpu_prices(node, prices);
        berth_ledger::cost::lease_price(&each, slices, &models)
    }

    /// Whether everything on the node fits it now, with what just started there.
    fn room(&mut self, node: NodeIx, slices: &[Slice], asks: &Amounts) -> Vec<Fault> {
        let spec = &self.view.state.cluster.node(node).spec;
        let tasks = self.view.node(node).tasks.clone();
        let (mut cpu, mut memory) = (0, 0);
        let mut shares: Vec<Vec<Share>> = vec![Vec::new(); slices.len()];
        for task in tasks {
            let Some(hold) = self.view.hold(task) else { continue };
            cpu += hold.amounts.cpu;
            memory += hold.amounts.memory;
            for held in &hold.slices {
                for (at, slice) in slices.iter().enumerate() {
                    if slice.gpu == held.gpu {
                        shares[at].push(held.share.clone());
                    }
                }
            }
        }
        let mut found = Vec::new();
        for (slice, shares) in slices.iter().zip(&shares) {
            let Some(gpu) = spec.gpus.get(slice.gpu as usize) else { continue };
            if let Some(why) = crowded(gpu, &shares.iter().collect::<Vec<_>>()) {
                let text = format!("GPU {} of {}: {why}", slice.gpu, spec.name);
                found.push((FindingCode::Capacity, text));
            }
        }
        if asks.cpu > 0 && spec.cpu.is_some_and(|has| cpu > has.0) {
            found.push((FindingCode::Cpu, format!("{} has too little CPU", spec.name)));
        }
        if asks.memory > 0 && spec.memory.is_some_and(|has| memory > has.0) {
            found.push((FindingCode::Memory, format!("{} has too little memory", spec.name)));
        }
        found
    }

    /// Whether what is held of its GPUs by others may be beside the task's share.
    fn strangers(&mut self, job: JobIx, node: NodeIx, slices: &[Slice]) -> Vec<Fault> {
        let tasks = self.view.node(node).tasks.clone();
        let holds = tasks.iter().filter_map(|task| Some((task.job, self.view.hold(*task)?)));
        let holds: Vec<_> = holds.collect();
        let others = holds.iter().flat_map(|(job, hold)| hold.slices.iter().map(|s| (*job, s)));
        tenants::faults(&self.view, job, node, slices, others)
    }

    /// Whether the node takes so many tasks, and has what they ask for of what it counts.
    fn counts(&mut self, node: NodeIx, group: &GroupSpec) -> Vec<Fault> {
        let spec = &self.view.state.cluster.node(node).spec;
        if spec.tasks.is_none() && group.counted.is_empty() {
            return Vec::new();
        }
        let tasks = self.view.node(node).tasks.clone();
        let tasks = tasks.into_iter().filter(|task| self.view.hold(*task).is_some());
        let tasks: Vec<TaskIx> = tasks.collect();
        let mut found = Vec::new();
        if spec.tasks.is_some_and(|most| tasks.len() > most as usize) {
            found.push((FindingCode::Tasks, format!("{} takes fewer tasks", spec.name)));
        }
        if group.counted.is_empty() {
            return found;
        }
        let groups = tasks.iter().filter_map(|task| {
            place::group_of(&self.view.base(task.job).spec, task.task).map(|(group, _)| group)
        });
        let sums = place::counted(groups);
        for resource in group.counted.keys() {
            let has = spec.counted.get(resource).copied().unwrap_or(0);
            if sums.get(resource).is_some_and(|sum| *sum > has) {
                let text = format!("{} has too little {resource}", spec.name);
                found.push((FindingCode::Counted, text));
            }
        }
        found
    }

    /// Whether the task may stay there until it must have ended.
    fn stay(
        &mut self,
        work: &TransactionEffects,
        ix: JobIx,
        node: NodeIx,
        slices: &[Slice],
        lease: LeaseId,
    ) -> Vec<Fault> {
        let now = self.view.state.now;
        let started = self.view.job(ix).started.unwrap_or(now);
        let gpus: Vec<u32> = slices.iter().map(|slice| slice.gpu).collect();
        let mut until = started + self.view.stay(ix);
        if let Some(to) = own_until(work, ix, node, &gpus) {
            // The job was promised these GPUs until then, and keeps them for that long although it
            // starts late because the job before it used its whole grace period.
            until = until.min(to.max(now));
        }
        let window = Window { job: ix, node, from: now, until, places: Vec::new(), gpus };
        let mut found = window.node_faults(&self.view);
        found.extend(window.promise_faults(&mut self.view));
        found.into_iter().map(|(code, text)| (code, format!("{lease}: {text}"))).collect()
    }

    /// Jobs with tasks that start: all of what they need, where they need it.
    pub(super) fn gangs(&mut self, work: &TransactionEffects) -> Vec<Fault> {
        let mut found = Vec::new();
        for (ix, started) in &work.started {
            let job = self.view.base(*ix);
            let has = counting(&self.view, *ix);
            if let Some(why) = below_minimum(&job.spec.groups, &has) {
                found.push((FindingCode::Minimum, format!("job {}: {why}", job.id)));
            }
            let spots = gang::spots_now(&self.view, *ix);
            let state = self.view.state;
            let faults = gang::topology_faults(state, &job.spec.groups, &spots).into_iter();
            let near = gang::near_faults(&self.view, *ix, started);
            let named = faults.chain(near);
            found.extend(named.map(|(code, text)| (code, format!("job {}: {text}", job.id))));
        }
        found
    }

    /// Counts tasks beyond the minimum of a gang that starts in this transaction.
    pub(super) fn count_growth(&mut self, ix: JobIx, spots: &[Spot]) {
        let job = self.view.base(ix);
        let mut tasks: Vec<u32> = spots.iter().map(|spot| spot.task).collect();
        tasks.sort_unstable();
        let (mut group_first, mut n) = (None, 0);
        for task in tasks {
            let Some((group, first)) = place::group_of(&job.spec, task) else { continue };
            n = if group_first == Some(first) { n + 1 } else { 1 };
            group_first = Some(first);
            if n > group.min
                && let Some(hold) = self.view.hold(TaskIx { job: ix, task })
            {
                self.view.usage.grow(job.queue, &hold.amounts);
            }
        }
    }
}

/// Until when the job was promised these GPUs, if it was.
fn own_until(work: &TransactionEffects, ix: JobIx, node: NodeIx, gpus: &[u32]) -> Option<Time> {
    let kept = work.own.get(&ix)?;
    let covers = kept.places.iter().any(|(at, place)| {
        *at == node && gpus.iter().all(|gpu| place.slices.iter().any(|slice| slice.gpu == *gpu))
    });
    covers.then_some(kept.to)
}
