//! Machines that pretend: they start, run, stop, fail and arrive as a scenario says.

use super::progress::{Run, Transition};
use super::{Driver, Observer};
use crate::engine::Applied;
use crate::world::{Action, JobScript};
use berth_model::{
    Bytes, Decision, Event, GpuSpec, Health, JobId, JobSpec, LeaseId, LeaseOutcome, Lifecycle,
    Name, NodeSpec, NodeState, Offering, PoolSpec, Slice, Snapshot, Span, Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// Something that is going to happen.
pub(super) enum SimEvent {
    Scripted(Action),
    Started(LeaseId),
    Stopped(LeaseId),
    /// The job has run as long as it takes, unless it fell back since.
    Finished {
        job: JobId,
        epoch: u64,
    },
    Saved {
        job: JobId,
        epoch: u64,
    },
    Booted(Name),
    Gone(Name),
    Returned(Name),
}

struct Open {
    node: Name,
    slices: Vec<Slice>,
    started: bool,
    stopping: bool,
}

struct Claimed {
    pool: Name,
    instance: Name,
    zone: Name,
    lifecycle: Lifecycle,
}

pub(super) struct Machines {
    scripts: BTreeMap<JobId, JobScript>,
    runs: BTreeMap<JobId, Run>,
    /// What the elements of an array begin as, by its number.
    arrays: BTreeMap<u64, Run>,
    leases: BTreeMap<LeaseId, Open>,
    by_node: BTreeMap<Name, BTreeSet<LeaseId>>,
    pools: BTreeMap<Name, PoolSpec>,
    claims: BTreeMap<Name, Claimed>,
    leaving: BTreeMap<Name, Time>,
}

impl Machines {
    pub fn new(scripts: &BTreeMap<JobId, JobScript>) -> Machines {
        Machines {
            scripts: scripts.clone(),
            runs: BTreeMap::new(),
            arrays: BTreeMap::new(),
            leases: BTreeMap::new(),
            by_node: BTreeMap::new(),
            pools: BTreeMap::new(),
            claims: BTreeMap::new(),
            leaving: BTreeMap::new(),
        }
    }

    pub fn script(&self, job: JobId) -> Option<&JobScript> {
        self.scripts.get(&job).or_else(|| self.scripts.get(&job.array()))
    }

    fn script_of(&self, job: JobId) -> JobScript {
        self.script(job).cloned().unwrap_or_default()
    }

    fn submitted(&mut self, spec: &JobSpec) {
        let run = Run::new(spec, self.script_of(spec.id));
        match spec.array {
            None => self.runs.insert(spec.id, run),
            // Elements are many, and most of them wait: they get a run when they start.
            Some(_) => self.arrays.insert(spec.id.number, run),
        };
    }

    /// The run of a job; an element gets its own when first asked for.
    fn run(&mut self, job: JobId) -> Option<&mut Run> {
        if !self.runs.contains_key(&job) {
            let run = self.arrays.get(&job.number)?.clone();
            self.runs.insert(job, run);
        }
        self.runs.get_mut(&job)
    }

    fn open(&mut self, lease: LeaseId, node: &Name, slices: &[Slice], stopping: bool) {
        let open = Open { node: node.clone(), slices: slices.to_vec(), started: false, stopping };
        self.leases.insert(lease, open);
        self.by_node.entry(node.clone()).or_default().insert(lease);
    }

    fn close(&mut self, lease: LeaseId) {
        let Some(open) = self.leases.remove(&lease) else { return };
        if let Some(there) = self.by_node.get_mut(&open.node) {
            there.remove(&lease);
        }
        if let Some(run) = self.run(lease.job).filter(|_| open.started) {
            // Falling back needs nothing more: what was foreseen is void.
            let _ = run.task_ended(lease.task);
        }
    }

    fn on_node(&self, node: &Name) -> Vec<LeaseId> {
        self.by_node.get(node).into_iter().flatten().copied().collect()
    }

    fn on_gpu(&self, node: &Name, gpu: u32) -> Vec<LeaseId> {
        let holds =
            |lease: &LeaseId| self.leases[lease].slices.iter().any(|slice| slice.gpu == gpu);
        self.on_node(node).into_iter().filter(holds).collect()
    }

    /// The leases of a job, or of all elements of an array.
    fn of_job(&self, job: JobId) -> Vec<LeaseId> {
        let last = job.element.or(Some(u32::MAX));
        let from = LeaseId { job, task: 0, attempt: 0 };
        let to = LeaseId {
            job: JobId { number: job.number, element: last },
            task: u32::MAX,
            attempt: u32::MAX,
        };
        self.leases.range(from..=to).map(|(lease, _)| *lease).collect()
    }

    fn offering(&self, claimed: &Claimed) -> Option<&Offering> {
        self.pools.get(&claimed.pool)?.offerings.iter().find(|offering| {
            offering.instance == claimed.instance
                && offering.zone == claimed.zone
                && offering.lifecycle == claimed.lifecycle
        })
    }

    fn boot(&self, claim: &Name) -> Span {
        let claimed = self.claims.get(claim);
        claimed.and_then(|claimed| self.offering(claimed)).map_or(Span::ZERO, |o| o.boot)
    }

    /// The machine of a claim, as its offering describes it.
    pub fn delivered(&self, claim: &Name) -> Option<NodeSpec> {
        let claimed = self.claims.get(claim)?;
        let pool = self.pools.get(&claimed.pool)?;
        let offering = self.offering(claimed)?;
        let gpu = GpuSpec {
            model: offering.model.clone(),
            memory: offering.memory_per_gpu.max(Bytes(1)),
            health: Health::Ok,
            mig: None,
            division: None,
        };
        let mut labels = pool.labels.clone();
        if !offering.zone.is_empty() {
            labels.insert(Name::new("zone"), offering.zone.clone());
        }
        Some(NodeSpec {
            name: claim.clone(),
            gpus: vec![gpu; offering.gpus as usize],
            cpu: offering.cpu,
            memory: offering.memory,
            labels,
            taints: Vec::new(),
            nvlink: Vec::new(),
            state: NodeState::Ready,
            price: Some(offering.price),
            pool: Some(pool.name.clone()),
            lifecycle: offering.lifecycle,
            tasks: None,
            counted: BTreeMap::new(),
        })
    }
}

impl<O: Observer> Driver<O> {
    /// Goes on where the world stands: what runs, stops, boots or leaves there.
    pub(super) fn take_over(&mut self, snapshot: &Snapshot) {
        let now = snapshot.now;
        self.machines.pools =
            snapshot.pools.iter().map(|pool| (pool.name.clone(), pool.clone())).collect();
        for job in &snapshot.jobs {
            let run = Run::resume(job, self.machines.script_of(job.id()));
            if job.spec.array.is_some() {
                let fresh = Run::new(&job.spec, self.machines.script_of(job.id()));
                self.machines.arrays.entry(job.id().number).or_insert(fresh);
            }
            // An element that has not run yet begins as any other.
            if job.spec.array.is_none() || job.first_start.is_some() || !job.leases.is_empty() {
                self.machines.runs.insert(job.id(), run);
            }
            for held in &job.leases {
                let id = LeaseId { job: job.id(), task: held.task, attempt: held.attempt };
                self.machines.open(id, &held.node, &held.slices, held.stopping.is_some());
                match held.bound {
                    true => self.task_started(id, job.started.unwrap_or(held.since)),
                    false => self.foresee(now + self.start_after(), SimEvent::Started(id)),
                }
                if let Some(stop) = &held.stopping {
                    let left = (stop.until - now).max(Span::ZERO);
                    self.foresee(now + self.stop_after(job.id(), left), SimEvent::Stopped(id));
                }
            }
        }
        for claim in &snapshot.claims {
            self.claimed(
                &claim.name,
                Claimed {
                    pool: claim.pool.clone(),
                    instance: claim.instance.clone(),
                    zone: claim.zone.clone(),
                    lifecycle: claim.lifecycle,
                },
                claim.since,
            );
        }
        for node in &snapshot.nodes {
            if let NodeState::Leaving { at } = node.spec.state {
                self.leaves(&node.spec.name, at);
            }
        }
    }

    fn claimed(&mut self, name: &Name, claimed: Claimed, since: Time) {
        self.machines.claims.insert(name.clone(), claimed);
        let ready = since + self.machines.boot(name);
        self.foresee(ready, SimEvent::Booted(name.clone()));
    }

    fn leaves(&mut self, node: &Name, at: Time) {
        self.machines.leaving.insert(node.clone(), at);
        self.foresee(at, SimEvent::Gone(node.clone()));
    }

    pub(super) fn occur(&mut self, at: Time, what: SimEvent) {
        match what {
            SimEvent::Scripted(action) => self.act(at, action),
            SimEvent::Started(lease) => {
                // Stopped before it came up, it never starts.
                if self.machines.leases.get(&lease).is_some_and(|open| !open.stopping) {
                    let _ = self.append(at, Event::LeaseStarted { lease });
                }
            }
            SimEvent::Stopped(lease) => self.stopped(at, lease),
            SimEvent::Finished { job, epoch } => {
                if self.machines.runs.get(&job).is_some_and(|run| run.epoch == epoch) {
                    self.end(at, self.machines.of_job(job), LeaseOutcome::Done);
                }
            }
            SimEvent::Saved { job, epoch } => {
                if self.machines.runs.get(&job).is_some_and(|run| run.epoch == epoch)
                    && self.append(at, Event::LeaseSaved { job }).is_ok()
                {
                    self.foresee_save(job, at);
                }
            }
            SimEvent::Booted(claim) => self.booted(at, claim),
            SimEvent::Returned(node) => {
                let _ = self.append(at, Event::NodeRemoved { node });
            }
            SimEvent::Gone(node) => {
                if self.machines.leaving.get(&node) == Some(&at) {
                    self.end(at, self.machines.on_node(&node), LeaseOutcome::Lost);
                    let _ = self.append(at, Event::NodeRemoved { node });
                }
            }
        }
    }

    fn act(&mut self, at: Time, action: Action) {
        match action {
            Action::Event(event) => {
                let _ = self.append(at, *event);
            }
            Action::Finish { job, task } => {
                self.end(at, self.chosen(job, task), LeaseOutcome::Done);
            }
            Action::Fail { job, task } => {
                // One task that fails is enough: the core stops the others.
                let mut leases = self.chosen(job, task);
                leases.truncate(1);
                self.end(at, leases, LeaseOutcome::Failed);
            }
            Action::ClaimReady { claim } => self.booted(at, claim),
        }
    }

    fn chosen(&self, job: JobId, task: Option<u32>) -> Vec<LeaseId> {
        let mut leases = self.machines.of_job(job);
        leases.retain(|lease| task.is_none_or(|task| task == lease.task));
        leases
    }

    fn booted(&mut self, at: Time, claim: Name) {
        if let Some(node) = self.delivered(&claim) {
            let _ = self.append(at, Event::ClaimReady { claim, node });
        }
    }

    fn end(&mut self, at: Time, leases: Vec<LeaseId>, outcome: LeaseOutcome) {
        for lease in leases {
            if self.machines.leases.contains_key(&lease) {
                let _ = self.append(at, Event::LeaseEnded { lease, outcome });
            }
        }
    }

    fn stopped(&mut self, at: Time, lease: LeaseId) {
        if !self.machines.leases.contains_key(&lease) {
            return;
        }
        let saves = self
            .machines
            .runs
            .get(&lease.job)
            .is_some_and(|run| run.script.saves_on_stop && run.is_going());
        if saves {
            let _ = self.append(at, Event::LeaseSaved { job: lease.job });
        }
        self.end(at, vec![lease], LeaseOutcome::Stopped);
    }

    /// What the machines do about an event that was taken.
    pub(super) fn react(&mut self, at: Time, event: &Event, applied: &Applied) {
        match event {
            Event::Decided { decisions, .. } => {
                decisions.iter().for_each(|decision| self.carry_out(at, decision));
            }
            Event::JobSubmitted { spec } => self.machines.submitted(spec),
            Event::LeaseStarted { lease } => self.task_started(*lease, at),
            Event::LeaseEnded { lease, .. } => self.machines.close(*lease),
            Event::LeaseSaved { job } => {
                if let Some(run) = self.machines.run(*job) {
                    run.save(at);
                }
            }
            Event::NodeChanged { node, state } => {
                self.machines.leaving.remove(node);
                match state {
                    NodeState::Failed => {
                        self.end(at, self.machines.on_node(node), LeaseOutcome::Lost);
                    }
                    NodeState::Leaving { at } => self.leaves(node, *at),
                    NodeState::Ready
                    | NodeState::Cordoned
                    | NodeState::Draining
                    | NodeState::Troubled => {}
                }
            }
            Event::NodeRemoved { node } => {
                self.machines.leaving.remove(node);
                self.machines.by_node.remove(node);
            }
            Event::GpuChanged { node, gpu, health: Health::Failed } => {
                self.end(at, self.machines.on_gpu(node, *gpu), LeaseOutcome::Lost);
            }
            Event::PoolSet { pool } => {
                self.machines.pools.insert(pool.name.clone(), (**pool).clone());
            }
            Event::PoolRemoved { pool } => {
                self.machines.pools.remove(pool);
            }
            Event::ClaimReady { claim, .. } | Event::ClaimFailed { claim, .. } => {
                self.machines.claims.remove(claim);
            }
            Event::GpuChanged { health: Health::Ok, .. }
            | Event::DataKept { .. }
            | Event::JobCancelled { .. }
            | Event::JobChanged { .. }
            | Event::NodeAdded { .. }
            | Event::QueueSet { .. }
            | Event::QueueRemoved { .. }
            | Event::PolicySet { .. }
            | Event::ClassesSet { .. }
            | Event::ModelsSet { .. }
            | Event::TopologySet { .. }
            | Event::ReservationSet { .. }
            | Event::ReservationRemoved { .. }
            | Event::DisruptionsSet { .. }
            | Event::Tick
            | Event::BillDue => {}
        }
        for (job, _) in &applied.ended {
            self.machines.runs.remove(job);
        }
    }

    fn carry_out(&mut self, at: Time, decision: &Decision) {
        match decision {
            Decision::Start { lease, node, slices, .. } => {
                self.machines.open(*lease, node, slices, false);
                self.foresee(at + self.start_after(), SimEvent::Started(*lease));
            }
            Decision::Stop { lease, grace, .. } => {
                if let Some(open) = self.machines.leases.get_mut(lease) {
                    open.stopping = true;
                }
                let after = self.stop_after(lease.job, *grace);
                self.foresee(at + after, SimEvent::Stopped(*lease));
            }
            Decision::Claim { claim, pool, instance, zone, lifecycle, .. } => {
                let claimed = Claimed {
                    pool: pool.clone(),
                    instance: instance.clone(),
                    zone: zone.clone(),
                    lifecycle: *lifecycle,
                };
                self.claimed(claim, claimed, at);
            }
            Decision::Return { node } => self.foresee(at, SimEvent::Returned(node.clone())),
            Decision::Reserve { .. } | Decision::Unreserve { .. } | Decision::SetAside { .. } => {}
        }
    }

    fn task_started(&mut self, lease: LeaseId, since: Time) {
        if let Some(open) = self.machines.leases.get_mut(&lease) {
            open.started = true;
        }
        let Some(run) = self.machines.run(lease.job) else { return };
        match run.task_started(lease.task, since) {
            Transition::WentOn => {
                let (epoch, ends) = (run.epoch, run.ends());
                if let Some(ends) = ends {
                    self.foresee(ends, SimEvent::Finished { job: lease.job, epoch });
                }
                self.foresee_save(lease.job, since);
            }
            Transition::FellBack | Transition::Nothing => {}
        }
    }

    fn foresee_save(&mut self, job: JobId, after: Time) {
        let now = self.now();
        let Some(run) = self.machines.runs.get(&job) else { return };
        let (epoch, Some(every)) = (run.epoch, run.script.checkpoint_every) else { return };
        // The first one after now: a job may have run for days before the world began.
        let missed = ((now - after).0.max(0) / every.0.max(1)) + 1;
        self.foresee(after + Span(every.0 * missed), SimEvent::Saved { job, epoch });
    }
}
