//! An account from the log alone: who holds what, which gangs are whole, where every job is, what
//! was spent and which machines were bought.

mod audit;

use super::bounds::Bounds;
use super::claims::Claims;
use super::money::Money;
use super::places::{self, misplaced, unsuited, whole};
use super::seam::Record;
use super::shares::milli;
use super::{Class, Finding, Violation};
use berth_model::{
    After, Cause, Decision, Event, Health, JobId, JobRef, JobSpec, LeaseId, LeaseOutcome, Name,
    NodeSpec, NodeState, Outcome, Reservation, Share, ShareGpus, Slice, Span, Stamped, Time,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

struct Open {
    node: Name,
    slices: Vec<Slice>,
    stopping: bool,
}

struct Job {
    spec: Rc<JobSpec>,
    begun: bool,
    done: BTreeSet<u32>,
    cancelled: bool,
    ended: Option<Outcome>,
    /// Since when it has run below its minimum without being stopped.
    short: Option<Time>,
}

struct Node {
    spec: NodeSpec,
    state: NodeState,
    failed: BTreeSet<u32>,
}

#[derive(Default)]
pub(super) struct Auditor {
    nodes: BTreeMap<Name, Node>,
    jobs: BTreeMap<JobId, Job>,
    open: BTreeMap<LeaseId, Open>,
    money: Money,
    bounds: Bounds,
    claims: Claims,
    reservations: BTreeMap<Name, Reservation>,
    stale: Span,
    sharing: ShareGpus,
    seq: u64,
    now: Time,
    pub starts: usize,
}

fn wrong(class: Class, text: String) -> Result<(), Finding> {
    Err(Finding { class, text })
}

impl Auditor {
    pub fn write(&mut self, record: &Record) -> Result<(), Violation> {
        let at = record.stamped.at;
        self.enter(record).map_err(|finding| finding.at(at))
    }

    fn enter(&mut self, record: &Record) -> Result<(), Finding> {
        let Stamped { seq, at, event } = &record.stamped;
        let at = *at;
        if *seq != self.seq + 1 || at < self.now {
            return wrong(
                Class::Replay,
                format!("event {seq} at {at} does not follow {}", self.seq),
            );
        }
        (self.seq, self.now) = (*seq, at);
        for row in &record.rows {
            self.money.row(row)?;
            self.bounds.row(row);
        }
        match event {
            Event::JobSubmitted { spec } => self.submitted(spec)?,
            Event::JobCancelled { job } => {
                let all = self.jobs.iter_mut().filter(|(id, _)| *id == job || id.array() == *job);
                all.for_each(|(_, job)| job.cancelled = true);
            }
            Event::LeaseEnded { lease, outcome } => self.closed(*lease, *outcome, at)?,
            Event::Decided { decisions, .. } => self.decided(decisions, at)?,
            Event::QueueSet { queue } => self.bounds.set(queue),
            Event::PolicySet { policy } => {
                (self.stale, self.sharing) = (policy.stale, policy.share_gpus);
            }
            Event::ModelsSet { prices, .. } => {
                self.money.models(prices.iter().map(|(model, price)| (model.clone(), price.0)), at);
            }
            other => self.machines(other, at)?,
        }
        record.ended.iter().try_for_each(|(job, outcome)| self.ended(*job, *outcome))
    }

    /// What happens to machines and to those who keep them.
    fn machines(&mut self, event: &Event, at: Time) -> Result<(), Finding> {
        match event {
            Event::NodeAdded { node } => self.joined(node, at),
            Event::ClaimReady { claim, node } => {
                self.claims.came(claim, node)?;
                self.joined(node, at);
            }
            Event::ClaimFailed { claim, retry_at } => {
                self.claims.failed(claim, *retry_at)?;
            }
            Event::PoolSet { pool } => self.claims.pool(pool),
            Event::NodeChanged { node, state } => {
                self.nodes.entry(node.clone()).and_modify(|node| node.state = *state);
            }
            Event::NodeRemoved { node } => {
                if self.open.values().any(|open| open.node == *node) {
                    return wrong(Class::LostJob, format!("{node} went with leases on it"));
                }
                self.nodes.remove(node);
                self.claims.gone(node);
                self.reservations
                    .values_mut()
                    .for_each(|reservation| reservation.nodes.retain(|name| name != node));
                self.money.left(node, at)?;
            }
            Event::GpuChanged { node, gpu, health } => {
                if let Some(node) = self.nodes.get_mut(node) {
                    match health {
                        Health::Ok => node.failed.remove(gpu),
                        Health::Failed => node.failed.insert(*gpu),
                    };
                }
            }
            Event::ReservationSet { reservation } => {
                self.reservations.insert(reservation.name.clone(), reservation.clone());
            }
            Event::ReservationRemoved { name } => _ = self.reservations.remove(name),
            _ => {}
        }
        Ok(())
    }

    fn joined(&mut self, node: &NodeSpec, at: Time) {
        let failed = node.gpus.iter().enumerate().filter(|(_, gpu)| gpu.health != Health::Ok);
        let failed = failed.map(|(gpu, _)| gpu as u32).collect();
        let known = Node { spec: node.clone(), state: node.state, failed };
        self.nodes.insert(node.name.clone(), known);
        self.money.joined(node, at);
    }

    fn submitted(&mut self, spec: &JobSpec) -> Result<(), Finding> {
        let ids = match &spec.array {
            None => vec![spec.id],
            Some(array) => array.elements.iter().map(|e| spec.id.element(*e)).collect(),
        };
        let spec = Rc::new(spec.clone());
        for id in ids {
            let job = Job {
                spec: spec.clone(),
                begun: false,
                done: BTreeSet::new(),
                cancelled: false,
                ended: None,
                short: None,
            };
            if self.jobs.insert(id, job).is_some() {
                return wrong(Class::LostJob, format!("job {id} was taken twice"));
            }
        }
        Ok(())
    }

    fn ended(&mut self, id: JobId, outcome: Outcome) -> Result<(), Finding> {
        if let Some((lease, _)) = self.open.iter().find(|(lease, _)| lease.job == id) {
            return wrong(Class::LostJob, format!("job {id} ended while lease {lease} is open"));
        }
        match self.jobs.get_mut(&id) {
            None => wrong(Class::LostJob, format!("job {id} ended, but no user submitted it")),
            Some(job) if job.ended.is_some() => {
                wrong(Class::LostJob, format!("job {id} ended twice"))
            }
            Some(job) => {
                job.ended = Some(outcome);
                Ok(())
            }
        }
    }

    fn closed(&mut self, lease: LeaseId, outcome: LeaseOutcome, at: Time) -> Result<(), Finding> {
        if self.open.remove(&lease).is_none() {
            return wrong(Class::LostJob, format!("lease {lease} ended, and it was not open"));
        }
        self.money.closed(lease, at)?;
        let last = !self.open.keys().any(|other| other.job == lease.job);
        if let Some(job) = self.jobs.get_mut(&lease.job) {
            if outcome == LeaseOutcome::Done {
                job.done.insert(lease.task);
            }
            if last && !whole(&job.spec.groups, &job.done) {
                job.done.clear();
            }
        }
        Ok(())
    }

    fn decided(&mut self, decisions: &[Decision], at: Time) -> Result<(), Finding> {
        let mut started = BTreeSet::new();
        for decision in decisions {
            match decision {
                Decision::Start { lease, node, slices, price, .. } => {
                    self.start(*lease, node, slices)?;
                    self.money.opened(*lease, node, slices, price.0, at)?;
                    started.insert(lease.job);
                }
                Decision::Stop { lease, cause, .. } => {
                    let Some(open) = self.open.get_mut(lease) else {
                        return wrong(Class::LostJob, format!("{lease} is stopped and not open"));
                    };
                    open.stopping = true;
                    if *cause == Cause::Cancelled
                        && let Some(job) = self.jobs.get_mut(&lease.job)
                    {
                        job.cancelled = true;
                    }
                }
                Decision::Claim { .. } => self.claims.order(decision, at)?,
                Decision::Return { node } => {
                    self.claims.give_back(node)?;
                    if self.open.values().any(|open| open.node == *node) {
                        return wrong(Class::Claims, format!("{node} is given back in use"));
                    }
                    let known = self.nodes.entry(node.clone());
                    known.and_modify(|node| node.state = NodeState::Cordoned);
                }
                Decision::Reserve { .. }
                | Decision::Unreserve { .. }
                | Decision::SetAside { .. } => {}
            }
        }
        for id in &started {
            self.jobs.entry(*id).and_modify(|job| job.begun = true);
        }
        started.into_iter().try_for_each(|id| self.whole_and_in_place(id))
    }

    /// A job that starts, when its transaction is through.
    fn whole_and_in_place(&self, id: JobId) -> Result<(), Finding> {
        if !self.is_whole(id) {
            return wrong(Class::HalfGang, format!("job {id} is started below its minimum"));
        }
        let Some(job) = self.jobs.get(&id) else { return Ok(()) };
        let live = self.of(id).filter(|(_, open)| !open.stopping);
        let at = live.filter_map(|(l, open)| Some((l.task, &self.nodes.get(&open.node)?.spec)));
        if let Some(why) = misplaced(&job.spec.groups, &at.collect()) {
            return wrong(Class::Place, format!("job {id}: {why}"));
        }
        for queue in self.bounds.path(&job.spec.queue) {
            if Bounds::limit(queue).is_some_and(|limit| self.used(&queue.name) > limit) {
                let text = format!("job {id} takes {} beyond its limit", queue.name);
                return wrong(Class::Bound, text);
            }
        }
        Ok(())
    }

    /// Thousandths of GPUs that jobs in or below the queue hold and are to keep: what is being
    /// stopped counts for nobody.
    fn used(&self, queue: &Name) -> i64 {
        let below = |leaf: &Name| self.bounds.path(leaf).any(|above| above.name == *queue);
        let lasting = self.open.iter().filter(|(_, open)| !open.stopping);
        let held = lasting.filter(|(lease, _)| {
            self.jobs.get(&lease.job).is_some_and(|job| below(&job.spec.queue))
        });
        held.flat_map(|(_, open)| &open.slices).map(|slice| milli(&slice.share)).sum()
    }

    fn start(&mut self, lease: LeaseId, node: &Name, slices: &[Slice]) -> Result<(), Finding> {
        self.starts += 1;
        let Some(job) = self.jobs.get(&lease.job) else {
            return wrong(Class::LostJob, format!("{lease} of a job that no user submitted"));
        };
        if job.ended.is_some() || job.cancelled {
            return wrong(Class::TwiceAtOnce, format!("{lease} of a job that is over"));
        }
        if job.done.contains(&lease.task) {
            return wrong(Class::TwiceAtOnce, format!("{lease} of a task that is done"));
        }
        let twice = self.open.keys().find(|o| o.job == lease.job && o.task == lease.task);
        if let Some(other) = twice {
            return wrong(Class::TwiceAtOnce, format!("{lease} is started while {other} runs"));
        }
        self.turn(lease.job, job)?;
        let Some(known) = self.nodes.get(node) else {
            return wrong(Class::ClosedNode, format!("{lease} on {node}, which is not there"));
        };
        if !self.takes(job, known) {
            return wrong(Class::ClosedNode, format!("{lease} on {node}, which takes no work"));
        }
        let bad = |slice: &&Slice| {
            slice.gpu as usize >= known.spec.gpus.len() || known.failed.contains(&slice.gpu)
        };
        if let Some(slice) = slices.iter().find(bad) {
            let text = format!("{lease} on GPU {} of {node}, which is broken", slice.gpu);
            return wrong(Class::ClosedNode, text);
        }
        if let Some(why) = unsuited(&job.spec, lease.task, &known.spec, slices) {
            return wrong(Class::Place, format!("{lease} on {node}: {why}"));
        }
        if let Some(gpu) = self.crowded(known, slices) {
            let text = format!("{lease} on GPU {gpu} of {node}, which is held");
            return wrong(Class::DoubleLease, text);
        }
        if let Some(other) = self.stranger(&job.spec.queue, node, slices) {
            let text = format!("{lease} on a GPU of {node} that {other} of another queue shares");
            return wrong(Class::Place, text);
        }
        let open = Open { node: node.clone(), slices: slices.to_vec(), stopping: false };
        self.open.insert(lease, open);
        Ok(())
    }

    /// Whether it is this job's turn: what it comes after has happened, its array has room and
    /// there is money left.
    fn turn(&self, id: JobId, job: &Job) -> Result<(), Finding> {
        let spec = &job.spec;
        if !job.begun && spec.begin.is_some_and(|begin| self.now < begin) {
            return wrong(Class::Order, format!("job {id} starts before it is to begin"));
        }
        if !job.begun && !self.released(spec) {
            return wrong(Class::Order, format!("job {id} starts before what it comes after"));
        }
        if let Some(most) = spec.array.as_ref().and_then(|array| array.at_most) {
            let mates = self.open.keys().map(|lease| lease.job).filter(|other| *other != id);
            let mates: BTreeSet<JobId> = mates.filter(|o| o.number == id.number).collect();
            if mates.len() >= most as usize {
                return wrong(Class::Order, format!("job {id} is one more than may run at once"));
            }
        }
        match self.bounds.stops(&spec.queue, self.now) {
            Some((queue, _)) => {
                wrong(Class::Bound, format!("job {id} starts, and the budget of {queue} is spent"))
            }
            None => Ok(()),
        }
    }

    /// Whether all that a job is to come after has happened. Made-up names are of one job each.
    fn released(&self, spec: &JobSpec) -> bool {
        spec.after.iter().all(|dependency| {
            let matches = |(id, job): &(&JobId, &Job)| match &dependency.job {
                JobRef::Id(on) => *id == on || id.array() == *on,
                JobRef::Name(name) => job.spec.name == *name,
            };
            let on: Vec<&Job> = self.jobs.iter().filter(matches).map(|(_, job)| job).collect();
            let failed = |job: &&Job| job.ended.is_some_and(|outcome| outcome != Outcome::Done);
            let happened = |job: &&Job| match (dependency.after, job.ended) {
                (After::Start, ended) => job.begun || ended.is_some(),
                (_, None) => false,
                (After::Ok, Some(outcome)) => outcome == Outcome::Done,
                (After::Any | After::NotOk, Some(_)) => true,
            };
            // An array has failed when it has ended and one of its elements has failed.
            !on.is_empty()
                && on.iter().all(happened)
                && (dependency.after != After::NotOk || on.iter().any(failed))
        })
    }

    /// Whether the node takes this job now.
    fn takes(&self, job: &Job, node: &Node) -> bool {
        let keeps = |reservation: &Reservation| {
            let now = reservation.from <= self.now && self.now < reservation.to;
            now && reservation.owner != job.spec.queue
                && reservation.nodes.contains(&node.spec.name)
        };
        if self.reservations.values().any(keeps) {
            return false;
        }
        let limit = job.spec.time_limit.filter(|_| !job.begun).unwrap_or(Span::ms(1));
        match node.state {
            NodeState::Ready => true,
            // A job that must end before the node goes may still use it. How long one that has
            // run before may still run is not in these books.
            NodeState::Leaving { at } => self.now + limit <= at,
            NodeState::Cordoned | NodeState::Draining | NodeState::Troubled | NodeState::Failed => {
                false
            }
        }
    }

    /// A GPU that cannot hold these slices beside what it holds.
    fn crowded(&self, node: &Node, slices: &[Slice]) -> Option<u32> {
        let there = self.open.values().filter(|open| open.node == node.spec.name);
        let held: Vec<&Slice> = there.flat_map(|open| &open.slices).chain(slices).collect();
        slices.iter().map(|slice| slice.gpu).find(|gpu| {
            let on = held.iter().filter(|slice| slice.gpu == *gpu);
            let shares: Vec<&Share> = on.map(|slice| &slice.share).collect();
            !places::room(&node.spec.gpus[*gpu as usize], &shares)
        })
    }

    /// Who of another queue has a share of one of these GPUs, where that may not be. No GPU here is
    /// handed out by anybody else.
    fn stranger(&self, queue: &Name, node: &Name, slices: &[Slice]) -> Option<LeaseId> {
        let is_apart = |share: &Share| match share {
            Share::Whole | Share::Mig(_) => false,
            Share::Mps(_) => true,
            Share::Fraction(_) | Share::TimeSlice(_) => self.sharing == ShareGpus::Team,
        };
        let meets = |held: &Slice| {
            slices.iter().any(|slice| slice.gpu == held.gpu && is_apart(&slice.share))
        };
        let mut there = self.open.iter().filter(|(_, open)| open.node == *node);
        let stranger = there.find(|(lease, open)| {
            let of = self.jobs.get(&lease.job).map(|job| &job.spec.queue);
            of != Some(queue) && open.slices.iter().any(meets)
        });
        stranger.map(|(lease, _)| *lease)
    }

    fn is_whole(&self, id: JobId) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let live = self.of(id).filter(|(_, open)| !open.stopping).map(|(lease, _)| lease.task);
        let tasks: BTreeSet<u32> = live.chain(job.done.iter().copied()).collect();
        whole(&job.spec.groups, &tasks)
    }

    fn of(&self, id: JobId) -> impl Iterator<Item = (&LeaseId, &Open)> {
        self.open.iter().filter(move |(lease, _)| lease.job == id)
    }
}
