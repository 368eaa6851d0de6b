//! Books kept from the log alone: who holds what, which gangs are whole, where every job is.

use super::money::{Money, part};
use super::play::Record;
use super::{Broken, Class};
use berth_model::{
    Cause, Decision, Event, GroupSpec, Health, JobId, JobSpec, LeaseId, LeaseOutcome, Name,
    NodeState, Outcome, Share, Slice, Snapshot, Span, Stamped, Time,
};
use std::collections::{BTreeMap, BTreeSet};

struct Open {
    node: Name,
    slices: Vec<Slice>,
    stopping: bool,
}

struct Job {
    groups: Vec<GroupSpec>,
    limit: Option<Span>,
    begun: bool,
    done: BTreeSet<u32>,
    cancelled: bool,
    ended: Option<Outcome>,
    /// Since when it has run below its minimum without being stopped.
    short: Option<Time>,
}

struct Node {
    state: NodeState,
    failed: BTreeSet<u32>,
    gpus: u32,
}

#[derive(Default)]
pub(super) struct Books {
    nodes: BTreeMap<Name, Node>,
    jobs: BTreeMap<JobId, Job>,
    open: BTreeMap<LeaseId, Open>,
    money: Money,
    stale: Span,
    seq: u64,
    now: Time,
    pub starts: usize,
}

type Found = Result<(), (Class, String)>;

fn money(found: Result<(), String>) -> Found {
    found.map_err(|text| (Class::Money, text))
}

fn wrong(class: Class, text: String) -> Found {
    Err((class, text))
}

impl Books {
    pub fn write(&mut self, record: &Record) -> Result<(), Broken> {
        let at = record.stamped.at;
        self.enter(record).map_err(|(class, text)| Broken { class, at, text })
    }

    fn enter(&mut self, record: &Record) -> Found {
        let Stamped { seq, at, event } = &record.stamped;
        let at = *at;
        if *seq != self.seq + 1 || at < self.now {
            return wrong(
                Class::Replay,
                format!("event {seq} at {at} does not follow {}", self.seq),
            );
        }
        (self.seq, self.now) = (*seq, at);
        record.rows.iter().try_for_each(|row| money(self.money.row(row)))?;
        match event {
            Event::JobSubmitted { spec } => match &spec.array {
                None => self.submitted(spec.id, spec)?,
                Some(array) => {
                    for element in &array.elements {
                        self.submitted(spec.id.element(*element), spec)?;
                    }
                }
            },
            Event::JobCancelled { job } => {
                let all = self.jobs.iter_mut().filter(|(id, _)| *id == job || id.array() == *job);
                all.for_each(|(_, job)| job.cancelled = true);
            }
            Event::LeaseEnded { lease, outcome } => self.closed(*lease, *outcome, at)?,
            Event::NodeAdded { node } => {
                let failed =
                    node.gpus.iter().enumerate().filter(|(_, gpu)| gpu.health != Health::Ok);
                let failed = failed.map(|(gpu, _)| gpu as u32).collect();
                let known = Node { state: node.state, failed, gpus: node.gpus.len() as u32 };
                self.nodes.insert(node.name.clone(), known);
                self.money.joined(node, at);
            }
            Event::NodeChanged { node, state } => {
                self.nodes.entry(node.clone()).and_modify(|node| node.state = *state);
            }
            Event::NodeRemoved { node } => {
                if self.open.values().any(|open| open.node == *node) {
                    return wrong(Class::LostJob, format!("{node} went with leases on it"));
                }
                self.nodes.remove(node);
                money(self.money.left(node, at))?;
            }
            Event::GpuChanged { node, gpu, health } => {
                if let Some(node) = self.nodes.get_mut(node) {
                    match health {
                        Health::Ok => node.failed.remove(gpu),
                        Health::Failed => node.failed.insert(*gpu),
                    };
                }
            }
            Event::PolicySet { policy } => self.stale = policy.stale,
            Event::ModelsSet { prices, .. } => {
                self.money.models(prices.iter().map(|(model, price)| (model.clone(), price.0)), at);
            }
            Event::Decided { decisions, .. } => self.decided(decisions, at)?,
            _ => {}
        }
        record.ended.iter().try_for_each(|(job, outcome)| self.ended(*job, *outcome))
    }

    fn submitted(&mut self, id: JobId, spec: &JobSpec) -> Found {
        let job = Job {
            groups: spec.groups.clone(),
            limit: spec.time_limit,
            begun: false,
            done: BTreeSet::new(),
            cancelled: false,
            ended: None,
            short: None,
        };
        match self.jobs.insert(id, job) {
            None => Ok(()),
            Some(_) => wrong(Class::LostJob, format!("job {id} was taken twice")),
        }
    }

    fn ended(&mut self, id: JobId, outcome: Outcome) -> Found {
        if let Some((lease, _)) = self.open.iter().find(|(lease, _)| lease.job == id) {
            return wrong(Class::LostJob, format!("job {id} ended while lease {lease} is open"));
        }
        match self.jobs.get_mut(&id) {
            None => wrong(Class::LostJob, format!("job {id} ended, and nobody submitted it")),
            Some(job) if job.ended.is_some() => {
                wrong(Class::LostJob, format!("job {id} ended twice"))
            }
            Some(job) => {
                job.ended = Some(outcome);
                Ok(())
            }
        }
    }

    fn closed(&mut self, lease: LeaseId, outcome: LeaseOutcome, at: Time) -> Found {
        if self.open.remove(&lease).is_none() {
            return wrong(Class::LostJob, format!("lease {lease} ended, and it was not open"));
        }
        money(self.money.closed(lease, at))?;
        let last = !self.open.keys().any(|other| other.job == lease.job);
        if let Some(job) = self.jobs.get_mut(&lease.job) {
            if outcome == LeaseOutcome::Done {
                job.done.insert(lease.task);
            }
            if last && !whole(&job.groups, &job.done) {
                job.done.clear();
            }
        }
        Ok(())
    }

    fn decided(&mut self, decisions: &[Decision], at: Time) -> Found {
        let mut started = BTreeSet::new();
        for decision in decisions {
            match decision {
                Decision::Start { lease, node, slices, price, .. } => {
                    self.start(*lease, node, slices)?;
                    money(self.money.opened(*lease, node, slices, price.0, at))?;
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
                Decision::Return { node } => {
                    let known = self.nodes.entry(node.clone());
                    known.and_modify(|node| node.state = NodeState::Cordoned);
                }
                _ => {}
            }
        }
        for id in &started {
            self.jobs.entry(*id).and_modify(|job| job.begun = true);
        }
        match started.into_iter().find(|id| !self.is_whole(*id)) {
            Some(id) => wrong(Class::HalfGang, format!("job {id} is started below its minimum")),
            None => Ok(()),
        }
    }

    fn start(&mut self, lease: LeaseId, node: &Name, slices: &[Slice]) -> Found {
        self.starts += 1;
        match self.jobs.get(&lease.job) {
            None => return wrong(Class::LostJob, format!("{lease} of a job nobody submitted")),
            Some(job) if job.ended.is_some() || job.cancelled => {
                return wrong(Class::TwiceAtOnce, format!("{lease} of a job that is over"));
            }
            Some(job) if job.done.contains(&lease.task) => {
                return wrong(Class::TwiceAtOnce, format!("{lease} of a task that is done"));
            }
            Some(_) => {}
        }
        let twice = self.open.keys().find(|o| o.job == lease.job && o.task == lease.task);
        if let Some(other) = twice {
            return wrong(Class::TwiceAtOnce, format!("{lease} is started while {other} runs"));
        }
        let Some(known) = self.nodes.get(node) else {
            return wrong(Class::ClosedNode, format!("{lease} on {node}, which is not there"));
        };
        let job = self.jobs.get(&lease.job).filter(|job| !job.begun);
        let limit = job.and_then(|job| job.limit).unwrap_or(Span::ms(1));
        let open = match known.state {
            NodeState::Ready => true,
            // A job that must end before the node goes may still use it. How long one that has
            // run before may still run is not in these books.
            NodeState::Leaving { at } => self.now + limit <= at,
            NodeState::Cordoned | NodeState::Draining | NodeState::Failed => false,
        };
        if !open {
            return wrong(Class::ClosedNode, format!("{lease} on {node}, which takes no work"));
        }
        let bad = |slice: &&Slice| slice.gpu >= known.gpus || known.failed.contains(&slice.gpu);
        if let Some(slice) = slices.iter().find(bad) {
            let text = format!("{lease} on GPU {} of {node}, which is broken", slice.gpu);
            return wrong(Class::ClosedNode, text);
        }
        let there = self.open.values().filter(|open| open.node == *node);
        let mut held: Vec<&Slice> = there.flat_map(|open| &open.slices).collect();
        for slice in slices {
            let on: Vec<&&Slice> = held.iter().filter(|held| held.gpu == slice.gpu).collect();
            let sum: i64 = on.iter().map(|held| part(&held.share)).sum();
            let mixed = on.iter().any(|held| kind(&held.share) != kind(&slice.share));
            if mixed || sum + part(&slice.share) > 1_000 {
                let text = format!("{lease} on GPU {} of {node}, which is held", slice.gpu);
                return wrong(Class::DoubleLease, text);
            }
            held.push(slice);
        }
        let open = Open { node: node.clone(), slices: slices.to_vec(), stopping: false };
        self.open.insert(lease, open);
        Ok(())
    }

    fn is_whole(&self, id: JobId) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let live = self.of(id).filter(|(_, open)| !open.stopping).map(|(lease, _)| lease.task);
        let tasks: BTreeSet<u32> = live.chain(job.done.iter().copied()).collect();
        whole(&job.groups, &tasks)
    }

    fn of(&self, id: JobId) -> impl Iterator<Item = (&LeaseId, &Open)> {
        self.open.iter().filter(move |(lease, _)| lease.job == id)
    }

    /// Looks at everything when all that follows from a moment has been decided.
    pub fn settled(&mut self, at: Time) -> Result<(), Broken> {
        let broken = |class, text| Err(Broken { class, at, text });
        let ids: Vec<JobId> =
            self.jobs.iter().filter(|(_, j)| j.ended.is_none()).map(|(id, _)| *id).collect();
        for id in ids {
            let holds = self.of(id).next().is_some();
            let live = self.of(id).any(|(_, open)| !open.stopping);
            let short = live && !self.is_whole(id);
            let stale = self.stale;
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            if job.cancelled && !holds {
                return broken(Class::LostJob, format!("job {id} was cancelled and never ended"));
            }
            if !short {
                job.short = None;
                continue;
            }
            let since = *job.short.get_or_insert(at);
            if since + stale <= at && since < at || stale == Span::ZERO {
                return broken(
                    Class::HalfGang,
                    format!("job {id} is below its minimum since {since}"),
                );
            }
        }
        Ok(())
    }

    /// Every job is exactly where the state says it is, and all money is accounted for.
    pub fn compare(&self, snapshot: &Snapshot, at: Time) -> Result<(), Broken> {
        let lost = |text| Err(Broken { class: Class::LostJob, at, text });
        let mut seen = BTreeSet::new();
        for job in &snapshot.jobs {
            let id = job.id();
            if !seen.insert(id) || self.jobs.get(&id).is_none_or(|job| job.ended.is_some()) {
                return lost(format!("job {id} is in the state and should not be"));
            }
            let held: BTreeMap<u32, (&Name, &[Slice])> =
                job.leases.iter().map(|l| (l.task, (&l.node, l.slices.as_slice()))).collect();
            let ours: BTreeMap<u32, (&Name, &[Slice])> = self
                .of(id)
                .map(|(l, open)| (l.task, (&open.node, open.slices.as_slice())))
                .collect();
            if held != ours {
                return lost(format!("job {id} holds other GPUs in the state than in the log"));
            }
        }
        let missing = self.jobs.iter().find(|(id, job)| job.ended.is_none() && !seen.contains(id));
        if let Some((id, _)) = missing {
            return lost(format!("job {id} was submitted and is nowhere"));
        }
        self.money.all_settled(at).map_err(|text| Broken { class: Class::Money, at, text })
    }

    /// Jobs that have not ended, if nothing at all is held.
    pub fn left_waiting(&self) -> Vec<(JobId, &[GroupSpec])> {
        if !self.open.is_empty() {
            return Vec::new();
        }
        let left = self.jobs.iter().filter(|(_, job)| job.ended.is_none());
        left.map(|(id, job)| (*id, job.groups.as_slice())).collect()
    }

    pub fn ended_count(&self) -> usize {
        self.jobs.values().filter(|job| job.ended.is_some()).count()
    }
}

/// Whether every group has its minimum among these tasks; the made-up groups lie side by side.
fn whole(groups: &[GroupSpec], tasks: &BTreeSet<u32>) -> bool {
    let mut first = 0;
    groups.iter().all(|group| {
        let own = tasks.range(first..first + group.count).count();
        first += group.count;
        own >= group.min as usize
    })
}

fn kind(share: &Share) -> u8 {
    match share {
        Share::Whole => 0,
        Share::Fraction(_) => 1,
        Share::Mig(_) => 2,
        Share::Mps(_) => 3,
        Share::TimeSlice(_) => 4,
    }
}
