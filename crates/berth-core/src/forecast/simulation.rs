//! One run of a forecast.

use crate::forecast::arrivals::ArrivalStream;
use crate::forecast::draw::{duration, stream_of};
use crate::ix::JobIx;
use crate::jobs::Standing;
use crate::state::State;
use berth_model::{
    Cause, ClaimSpec, Decision, Event, GpuSpec, Health, JobId, LeaseId, LeaseOutcome, Name,
    NodeSpec, NodeState, Offering, Span, Stamped, Time,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Instants at which one run plans, at the most. Jobs that have not started by then count as not
/// started in that run.
pub const STEPS: u32 = 5_000;

/// Something that will happen. Ends come before what they make room for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SimEvent {
    /// A job that has run since that time is through.
    Done(JobId, Time),
    Stopped(LeaseId),
    Lost(LeaseId),
    Gone(Name),
    Ready(Name),
}

pub(super) struct Simulation<'a> {
    pub state: State,
    number: u32,
    seed: u64,
    due: BinaryHeap<Reverse<(Time, SimEvent)>>,
    /// When the last plan wants to be asked again.
    wake: Option<Time>,
    /// Since when each job has run whose end is due.
    running: BTreeMap<JobId, Time>,
    /// Jobs whose start is asked for.
    wanted: &'a BTreeSet<JobId>,
    coming: Option<ArrivalStream<'a>>,
    /// First starts of those that are asked for.
    pub started: BTreeMap<JobId, Time>,
}

impl<'a> Simulation<'a> {
    pub fn new(
        state: State,
        number: u32,
        seed: u64,
        wanted: &'a BTreeSet<JobId>,
        coming: Option<ArrivalStream<'a>>,
    ) -> Simulation<'a> {
        let mut run = Simulation {
            state,
            number,
            seed,
            due: BinaryHeap::new(),
            wake: None,
            running: BTreeMap::new(),
            wanted,
            coming,
            started: BTreeMap::new(),
        };
        run.schedule_events();
        run
    }

    /// Runs until every job that is asked for has started, nothing more happens, or the horizon is
    /// reached; `false` if it was cut off before.
    pub fn go(&mut self, horizon: Time) -> bool {
        self.plan();
        for _ in 0..STEPS {
            if self.started.len() >= self.wanted.len() {
                return true;
            }
            let due = self.due.peek().map(|Reverse((at, _))| *at);
            let comes = self.coming.as_ref().map(ArrivalStream::at);
            let next = due.into_iter().chain(self.wake).chain(comes).min();
            let Some(now) = next.filter(|at| *at <= horizon) else {
                return true;
            };
            // Where the recent days are repeated from their start, an arrival may be due before now.
            let now = now.max(self.state.now);
            self.pass(now);
            while let Some(Reverse((at, _))) = self.due.peek()
                && *at <= now
                && let Some(Reverse((_, due))) = self.due.pop()
            {
                self.handle(due);
            }
            while let Some(coming) = self.coming.as_mut().filter(|coming| coming.at() <= now) {
                let spec = Box::new(coming.take());
                self.apply_event(Event::JobSubmitted { spec });
            }
            self.plan();
        }
        false
    }

    /// What is due because of how things stand at the beginning.
    fn schedule_events(&mut self) {
        let state = &self.state;
        let now = state.now;
        let mut due: Vec<(Time, SimEvent)> = Vec::new();
        let mut running: Vec<JobIx> = Vec::new();
        for (ix, job) in state.jobs.iter() {
            for (task, lease) in job.leases() {
                let id = job.lease_id(task, lease.attempt);
                if state.cluster.node(lease.node).spec.state == NodeState::Failed {
                    due.push((now, SimEvent::Lost(id)));
                } else if let Some(stop) = &lease.stopping {
                    due.push((stop.until.max(now), SimEvent::Stopped(id)));
                }
            }
            if job.open > 0 && job.started.is_some() {
                running.push(ix);
            }
        }
        for claim in state.claims.values() {
            let boot = self.offering(claim).map_or(Span::ZERO, |offering| offering.boot);
            due.push(((claim.since + boot).max(now), SimEvent::Ready(claim.name.clone())));
        }
        for (_, node) in state.cluster.live() {
            if let NodeState::Leaving { at } = node.spec.state {
                due.push((at.max(now), SimEvent::Gone(node.spec.name.clone())));
            }
        }
        self.due.extend(due.into_iter().map(Reverse));
        for ix in running {
            self.schedule_end(ix);
        }
    }

    /// Draws how long a job that runs now will go on.
    fn schedule_end(&mut self, ix: JobIx) {
        let job = self.state.jobs.get(ix);
        let Some(started) = job.started else { return };
        if self.running.insert(job.id, started) == Some(started) {
            return;
        }
        let past = self.state.history.get(&(job.spec.user.clone(), job.spec.name.clone()));
        let mut rng = stream_of(self.seed, self.number, job.id);
        let ran = self.state.now - started + job.saved;
        let whole = duration(past.copied(), job.time_limit, ran, &mut rng);
        let end = started + (whole - job.saved);
        self.due.push(Reverse((end.max(self.state.now), SimEvent::Done(job.id, started))));
    }

    fn offering(&self, claim: &ClaimSpec) -> Option<&Offering> {
        self.state.pools.get(&claim.pool)?.offerings.iter().find(|offering| {
            offering.instance == claim.instance
                && offering.zone == claim.zone
                && offering.lifecycle == claim.lifecycle
        })
    }

    /// Lets time pass. Leases are billed only where a budget needs it.
    fn pass(&mut self, now: Time) {
        if self.state.queues.all.iter().any(|queue| queue.budget.is_some()) {
            self.apply_event_at(now, Event::Tick);
        } else {
            let _ = self.state.advance(now);
        }
    }

    fn apply_event(&mut self, event: Event) -> bool {
        self.apply_event_at(self.state.now, event)
    }

    fn apply_event_at(&mut self, at: Time, event: Event) -> bool {
        let stamped = Stamped { seq: self.state.seq + 1, at, event };
        self.state.apply(&stamped).is_ok()
    }

    fn handle(&mut self, due: SimEvent) {
        match due {
            SimEvent::Done(job, started) => self.done(job, started),
            SimEvent::Stopped(lease) => self.stopped(lease),
            SimEvent::Lost(lease) => {
                self.apply_event(Event::LeaseEnded { lease, outcome: LeaseOutcome::Lost });
            }
            SimEvent::Gone(node) => self.node_gone(node),
            SimEvent::Ready(claim) => self.ready(&claim),
        }
    }

    fn done(&mut self, id: JobId, started: Time) {
        let Some(ix) = self.state.jobs.find(id) else { return };
        let job = self.state.jobs.get(ix);
        if job.started != Some(started) || self.running.get(&id) != Some(&started) {
            return;
        }
        let open: Vec<LeaseId> =
            job.leases().map(|(task, lease)| job.lease_id(task, lease.attempt)).collect();
        for lease in open {
            self.apply_event(Event::LeaseEnded { lease, outcome: LeaseOutcome::Done });
        }
        self.running.remove(&id);
    }

    fn stopped(&mut self, lease: LeaseId) {
        let Some(ix) = self.state.jobs.find(lease.job) else { return };
        let job = self.state.jobs.get(ix);
        let held = job.tasks.get(lease.task as usize).and_then(|task| task.lease.as_deref());
        let Some(held) = held.filter(|held| held.attempt == lease.attempt) else { return };
        let cause = held.stopping.as_ref().map(|stop| stop.cause);
        let saves = job.last_checkpoint.is_some() || job.saved > Span::ZERO;
        if saves && cause != Some(Cause::Shrink) {
            self.apply_event(Event::LeaseSaved { job: lease.job });
        }
        self.apply_event(Event::LeaseEnded { lease, outcome: LeaseOutcome::Stopped });
    }

    fn node_gone(&mut self, name: Name) {
        let Some(ix) = self.state.cluster.find(&name) else { return };
        let mut open: Vec<LeaseId> = Vec::new();
        for task in &self.state.cluster.node(ix).tasks {
            let job = self.state.jobs.get(task.job);
            let lease = job.tasks[task.task as usize].lease.as_deref();
            open.extend(lease.map(|lease| job.lease_id(task.task, lease.attempt)));
        }
        open.sort();
        for lease in open {
            self.apply_event(Event::LeaseEnded { lease, outcome: LeaseOutcome::Lost });
        }
        self.apply_event(Event::NodeRemoved { node: name });
    }

    fn ready(&mut self, name: &Name) {
        let Some(claim) = self.state.claims.get(name) else { return };
        let Some(offering) = self.offering(claim) else { return };
        let mut labels = self.state.pools[&claim.pool].labels.clone();
        labels.entry(Name::new("zone")).or_insert_with(|| offering.zone.clone());
        let gpu = GpuSpec {
            model: offering.model.clone(),
            memory: offering.memory_per_gpu,
            health: Health::Ok,
            mig: None,
            division: None,
        };
        let node = NodeSpec {
            name: claim.name.clone(),
            gpus: vec![gpu; offering.gpus as usize],
            cpu: offering.cpu,
            memory: offering.memory,
            labels,
            taints: Vec::new(),
            nvlink: Vec::new(),
            state: NodeState::Ready,
            price: Some(offering.price),
            pool: Some(claim.pool.clone()),
            lifecycle: offering.lifecycle,
            tasks: None,
            counted: BTreeMap::new(),
        };
        let event = Event::ClaimReady { claim: name.clone(), node: Box::new(node) };
        self.apply_event(event);
    }

    /// Plans, and carries everything out at once.
    fn plan(&mut self) {
        let plan = self.state.plan_without_blockers();
        self.wake = plan.next;
        for made in plan.transactions {
            let decided = Event::Decided { job: made.job, decisions: made.decisions.clone() };
            if !self.apply_event(decided) {
                // The loop would put such a job aside.
                let aside = made.job.map(|job| Decision::SetAside { job, finding: String::new() });
                let decisions = aside.into_iter().collect();
                self.apply_event(Event::Decided { job: made.job, decisions });
                continue;
            }
            for decision in made.decisions {
                self.carry_out(decision);
            }
        }
    }

    fn carry_out(&mut self, decision: Decision) {
        let now = self.state.now;
        match decision {
            Decision::Start { lease, .. } => {
                self.apply_event(Event::LeaseStarted { lease });
                if let Some(ix) = self.state.jobs.find(lease.job)
                    && self.state.jobs.get(ix).standing == Standing::Running
                {
                    self.job_started(ix);
                }
            }
            Decision::Stop { lease, grace, .. } => {
                self.due.push(Reverse((now + grace, SimEvent::Stopped(lease))));
            }
            Decision::Claim { claim, .. } => {
                let known = self.state.claims.get(&claim).and_then(|claim| self.offering(claim));
                let boot = known.map_or(Span::ZERO, |offering| offering.boot);
                self.due.push(Reverse((now + boot, SimEvent::Ready(claim))));
            }
            Decision::Return { node } => {
                self.apply_event(Event::NodeRemoved { node });
            }
            Decision::Reserve { .. } | Decision::Unreserve { .. } | Decision::SetAside { .. } => {}
        }
    }

    fn job_started(&mut self, ix: JobIx) {
        let job = self.state.jobs.get(ix);
        let (id, started) = (job.id, job.started);
        let asked = self.wanted.contains(&id);
        if asked && started == Some(self.state.now) && !self.running.contains_key(&id) {
            self.started.entry(id).or_insert(self.state.now);
        }
        self.schedule_end(ix);
    }
}
