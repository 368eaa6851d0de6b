//! The loop of production under fire: append, apply, plan, check, append what was decided, carry
//! it out; with a crash wherever the case has one.

use super::auditor::Auditor;
use super::case::Case;
use super::machines::{Due, Machines};
use super::seam::{Record, Seam};
use super::{Class, Verdict, Violation, lines};
use crate::engine::{self, LoadError, Plan, State, Transaction};
use berth_model::{
    ClaimSpec, Decision, Event, GroupSpec, LeaseId, Name, NodeState, Rejected, Snapshot, Span,
    Stamped, Time,
};
use fnv::FnvHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

/// Plans at one moment before the loop is said to be stuck.
const PLANS_AT_ONCE: u32 = 300;
/// Events of a whole case before it is said not to come to rest.
const EVENTS: usize = 30_000;
/// Events after which a snapshot is taken.
const SNAPSHOT_EVERY: usize = 40;

pub(super) struct Played {
    pub hash: u64,
    pub records: Vec<Record>,
    pub broken: Option<Violation>,
    starts: usize,
    crashes: usize,
    faults: usize,
    ended: usize,
}

impl Played {
    pub fn verdict(&self, case: &Case) -> Verdict {
        let log = self.records.iter().filter(|_| self.broken.is_some());
        Verdict {
            seed: case.seed,
            size: case.size,
            hash: self.hash,
            events: self.records.len(),
            starts: self.starts,
            crashes: self.crashes,
            faults: self.faults,
            ended: self.ended,
            broken: self.broken.clone(),
            log: log.map(|record| lines::line(record, case.start)).collect(),
        }
    }
}

pub(super) struct Play<'a, S> {
    pub(super) case: &'a Case,
    pub(super) seam: S,
    pub(super) state: State,
    pub(super) log: Vec<Stamped>,
    pub(super) last_snapshot: Option<Snapshot>,
    pub(super) records: Vec<Record>,
    pub(super) auditor: Auditor,
    pub(super) machines: Machines,
    /// Nodes on which nothing runs, whatever the scheduler believes.
    pub(super) down: BTreeSet<Name>,
    pub(super) calm: bool,
    pub(super) now: Time,
    pub(super) wake: Option<Time>,
    pub(super) steps: u64,
    pub(super) crashes: usize,
    pub(super) crashed: bool,
    /// FNV-1a, so that the hash of a run is the same in every version and on every machine.
    pub(super) hash: FnvHasher,
    pub(super) broken: Option<Violation>,
}

pub(super) fn play<S: Seam>(case: &Case, seam: S) -> Played {
    let mut play = Play {
        case,
        seam,
        state: State::new(),
        log: Vec::new(),
        last_snapshot: None,
        records: Vec::new(),
        auditor: Auditor::default(),
        machines: Machines::new(case),
        down: BTreeSet::new(),
        calm: false,
        now: case.start,
        wake: None,
        steps: 0,
        crashes: 0,
        crashed: false,
        hash: FnvHasher::default(),
        broken: None,
    };
    play.set_up();
    play.run();
    play.close();
    Played {
        hash: play.hash.finish(),
        records: play.records,
        broken: play.broken,
        starts: play.auditor.starts,
        crashes: play.crashes,
        faults: play.machines.faults,
        ended: play.auditor.ended_count(),
    }
}

impl<S: Seam> Play<'_, S> {
    fn set_up(&mut self) {
        let policy = Box::new(self.case.policy.clone());
        let (prices, speeds) = (self.case.prices.clone(), BTreeMap::new());
        let mut events = vec![
            Event::PolicySet { policy },
            Event::ModelsSet { prices, speeds, watts: BTreeMap::new() },
        ];
        let topologies = self.case.topologies.clone();
        events.push(Event::TopologySet { topologies });
        let nodes = self.case.nodes.iter().cloned();
        events.extend(nodes.map(|node| Event::NodeAdded { node: Box::new(node) }));
        let pools = self.case.pools.iter().cloned();
        events.extend(pools.map(|pool| Event::PoolSet { pool: Box::new(pool) }));
        let queues = self.case.queues.iter().cloned();
        events.extend(queues.map(|queue| Event::QueueSet { queue: Box::new(queue) }));
        for event in events {
            match self.append(event) {
                // A shortened case may have left out the queue above.
                Ok(()) | Err(Rejected::UnknownQueue { .. }) => {}
                Err(why) => {
                    self.fail(Class::Refused, format!("the world itself was refused: {why}"));
                }
            }
        }
    }

    fn run(&mut self) {
        let end = self.case.calm + Span::days(7);
        while self.broken.is_none() {
            let next = [self.machines.next(), self.wake].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next.max(self.now);
            if self.wake.is_some_and(|wake| wake <= self.now) {
                self.wake = None;
                let _ = self.append(Event::Tick);
            }
            while let Some(due) = self.machines.pop(self.now).filter(|_| self.broken.is_none()) {
                self.deliver(due);
            }
            self.decide();
            let settled = self.auditor.settled(self.now);
            self.note(settled);
            if self.log.len() > EVENTS {
                self.fail(Class::Stuck, "the world does not come to rest".to_owned());
            }
        }
    }

    fn fail(&mut self, class: Class, text: String) {
        let at = self.now;
        self.broken.get_or_insert(Violation { class, at, text });
    }

    fn note(&mut self, found: Result<(), Violation>) {
        if let Err(broken) = found {
            self.broken.get_or_insert(broken);
        }
    }

    /// Between two steps: the scheduler crashes here if the case says so.
    fn point(&mut self) -> bool {
        self.steps += 1;
        let crash = self.case.crashes.contains(&self.steps);
        if crash && self.broken.is_none() {
            self.crash();
        }
        crash
    }

    fn crash(&mut self) {
        self.crashes += 1;
        self.crashed = true;
        let last_snapshot = self.last_snapshot.clone().filter(|_| self.steps.is_multiple_of(2));
        match rebuilt(last_snapshot.as_ref(), &self.log) {
            Err(why) => self.fail(Class::Replay, why.to_string()),
            Ok(mut state) => {
                let (ours, theirs) = (self.state.snapshot(), state.snapshot());
                if ours != theirs {
                    let what = difference(&theirs, &ours);
                    self.fail(Class::Replay, format!("the state from the log is another: {what}"));
                } else if state.plan() != self.state.plan() {
                    self.fail(Class::Replay, "the state from the log plans otherwise".to_owned());
                }
                self.state = state;
            }
        }
        self.wake = None;
        self.reconcile();
    }

    /// Tells the machines again what they have not heard, as after a restart.
    fn reconcile(&mut self) {
        let snapshot = self.state.snapshot();
        for claim in &snapshot.claims {
            if !self.machines.ordered(&claim.name) {
                self.buy(claim);
            }
        }
        for node in snapshot.nodes.iter().map(|node| &node.spec) {
            if node.pool.is_some() && node.state == NodeState::Cordoned {
                self.machines.send(self.now, Due::GiveBack(node.name.clone()));
            }
        }
        for job in snapshot.jobs {
            for held in &job.leases {
                let lease = LeaseId { job: job.id(), task: held.task, attempt: held.attempt };
                if !self.machines.knows(lease) {
                    self.machines.send(self.now, Due::Start { lease, node: held.node.clone() });
                }
                if let Some(stop) = held.stopping.as_ref().filter(|_| !self.machines.stops(lease)) {
                    let grace = Span((stop.until - self.now).0.max(0));
                    self.machines.send(self.now, Due::Stop { lease, grace });
                }
            }
        }
    }

    pub(super) fn append(&mut self, event: Event) -> Result<(), Rejected> {
        self.point();
        let stamped = Stamped { seq: self.state.seq() + 1, at: self.now, event };
        let received = self.seam.to_core(stamped.clone());
        let applied = self.state.apply(&received)?;
        self.log.push(received);
        let record = Record { stamped, rows: applied.rows, ended: applied.ended };
        let record = self.seam.to_world(record);
        self.hash.write(format!("{record:?}").as_bytes());
        let written = self.auditor.write(&record);
        self.note(written);
        if self.log.len().is_multiple_of(SNAPSHOT_EVERY) {
            self.last_snapshot = Some(self.state.snapshot());
        }
        // A crash here loses the commands; comparing notes makes up for them.
        if !self.point()
            && let Event::Decided { decisions, .. } = &record.stamped.event
        {
            decisions.iter().for_each(|decision| self.command(decision));
        }
        self.records.push(record);
        Ok(())
    }

    fn command(&mut self, decision: &Decision) {
        let due = match decision {
            Decision::Start { lease, node, .. } => Due::Start { lease: *lease, node: node.clone() },
            Decision::Stop { lease, grace, .. } => Due::Stop { lease: *lease, grace: *grace },
            Decision::Return { node } => Due::GiveBack(node.clone()),
            Decision::Claim { claim, pool, instance, zone, lifecycle, for_job } => {
                return self.buy(&ClaimSpec {
                    name: claim.clone(),
                    pool: pool.clone(),
                    instance: instance.clone(),
                    zone: zone.clone(),
                    lifecycle: *lifecycle,
                    for_job: *for_job,
                    since: self.now,
                });
            }
            Decision::Reserve { .. } | Decision::Unreserve { .. } | Decision::SetAside { .. } => {
                return;
            }
        };
        self.machines.send(self.now, due);
    }

    fn decide(&mut self) {
        for _ in 0..PLANS_AT_ONCE {
            if self.broken.is_some() {
                return;
            }
            self.crashed = false;
            let plan = self.seam.planned(self.state.plan());
            self.wake = plan.next.filter(|next| *next > self.now);
            if plan.is_empty() {
                return;
            }
            if !self.point() {
                self.commit(&plan);
            }
        }
        self.fail(Class::Stuck, "the plans of this moment do not come to an end".to_owned());
    }

    fn commit(&mut self, plan: &Plan) {
        let (transactions, findings) = engine::vetted(&self.state, plan);
        if let Some(finding) = findings.first() {
            let transaction = &plan.transactions[finding.transaction];
            return self.fail(Class::Refused, format!("{finding}, in {transaction:?}"));
        }
        for Transaction { job, decisions } in transactions {
            if self.crashed || self.broken.is_some() {
                return;
            }
            if let Err(why) = self.append(Event::Decided { job, decisions }) {
                self.fail(Class::Refused, format!("a checked plan was refused: {why}"));
            }
        }
    }

    fn deliver(&mut self, due: Due) {
        let now = self.now;
        match due {
            Due::Arrives(at) => {
                let spec = Box::new(self.case.jobs[at].spec.clone());
                match self.append(Event::JobSubmitted { spec }) {
                    // A shortened case may have left out the queue, and there may be no node yet
                    // or any more that has the MIG profile.
                    Ok(())
                    | Err(Rejected::UnknownQueue { .. } | Rejected::NoSuchProfile { .. }) => {}
                    Err(why) => self.fail(Class::Refused, format!("a job was refused: {why}")),
                }
            }
            Due::Strikes(at) => self.inject(self.case.faults[at].1.clone()),
            Due::Told(Event::NodeChanged { .. } | Event::GpuChanged { .. }) if self.calm => {}
            Due::Told(event) => _ = self.append(event),
            Due::Back(node) => {
                self.down.remove(&node);
                let state = NodeState::Ready;
                self.machines.send(now, Due::Told(Event::NodeChanged { node, state }));
            }
            Due::Joins(_) if self.calm => {}
            Due::Forget { node, back } => self.forget(node, back),
            Due::Joins(name) => self.join(&name),
            Due::Start { lease, node } => {
                let down = self.down.contains(&node);
                self.machines.start(now, lease, node, down);
            }
            Due::Stop { lease, grace } => self.machines.stop(now, lease, grace),
            Due::Ends { lease, outcome } => self.machines.ends(now, lease, outcome),
            Due::Saves(lease) => self.machines.saves(now, lease),
            Due::Buy { node, boot } => self.machines.buy(now, node, boot),
            Due::Boots(node) => self.machines.boots(now, node),
            Due::GiveBack(node) => self.give_back(node),
            Due::Calm => self.repair_all(),
        }
    }

    /// The last questions: everybody is somewhere, all is paid, and the log tells the same story.
    fn close(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let _ = self.append(Event::Tick);
        let snapshot = self.state.snapshot();
        let compared = self.auditor.compare(&snapshot, self.now);
        self.note(compared);
        match rebuilt(None, &self.log) {
            Ok(state) if state.snapshot() == snapshot => {}
            Ok(state) => {
                let what = difference(&state.snapshot(), &snapshot);
                self.fail(Class::Replay, format!("the whole log gives another state: {what}"));
            }
            Err(why) => self.fail(Class::Replay, why.to_string()),
        }
        self.hash.write(format!("{snapshot:?}").as_bytes());
        if let Some(job) = snapshot.jobs.iter().find(|job| !job.leases.is_empty()) {
            let text = format!("job {} holds GPUs and nothing is to come", job.id());
            self.fail(Class::Stuck, text);
        }
        let room: Vec<u32> = self
            .case
            .nodes
            .iter()
            .map(|node| node.gpus.iter().filter(|gpu| gpu.mig.is_none()).count() as u32)
            .collect();
        let left = self.auditor.left_waiting(self.now).into_iter();
        let waits = { left }.find(|(_, groups)| fits(groups, &room));
        if let Some(id) = waits.map(|(id, _)| id) {
            let why = engine::reasons(&mut self.state, id);
            self.fail(Class::Stuck, format!("job {id} waits beside a free cluster: {why:?}"));
        }
    }
}

/// Why no state could be rebuilt from the log.
#[derive(Debug, thiserror::Error)]
enum RebuildError {
    #[error("{0}")]
    Load(LoadError),
    #[error("event {seq}: {why}")]
    Apply { seq: u64, why: Rejected },
}

fn rebuilt(last_snapshot: Option<&Snapshot>, log: &[Stamped]) -> Result<State, RebuildError> {
    let mut state = match last_snapshot {
        None => State::new(),
        Some(snapshot) => State::load(snapshot).map_err(RebuildError::Load)?,
    };
    for stamped in log.iter().skip(state.seq() as usize) {
        let _ =
            state.apply(stamped).map_err(|why| RebuildError::Apply { seq: stamped.seq, why })?;
    }
    Ok(state)
}

/// The first line in which two states, written out, are not the same.
fn difference(one: &Snapshot, other: &Snapshot) -> String {
    let (one, other) = (format!("{one:#?}"), format!("{other:#?}"));
    let lines = one.lines().zip(other.lines());
    let found = { lines }.find(|(one, other)| one != other);
    found.map_or("one is longer".to_owned(), |(one, other)| {
        format!("{} against {}", one.trim(), other.trim())
    })
}

/// Whether the groups surely fit on empty nodes: a share is taken for a whole GPU.
fn fits(groups: &[GroupSpec], room: &[u32]) -> bool {
    let mut room = room.to_vec();
    groups.iter().all(|group| {
        let needs = group.gpus.count();
        (0..group.min).all(|_| {
            let found = room.iter_mut().find(|free| **free >= needs);
            found.map(|free| *free -= needs).is_some()
        })
    })
}
