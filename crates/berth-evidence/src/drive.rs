//! Drives a state as a cluster would: applies events, plans, carries the decisions out.

use crate::measure::Clock;
use crate::world::{Load, Random};
use anyhow::{Context, Result, bail};
use berth_core::{Plan, State};
use berth_model::{
    Decision, Event, JobId, LeaseId, LeaseOutcome, Name, NodeState, Snapshot, Span, Stamped, Time,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Plans, and checks what was planned: what is timed everywhere.
pub fn plan_and_check(state: &mut State, on_cpu: bool) -> Result<(Plan, Duration)> {
    let clock = Clock::start(on_cpu);
    let plan = state.plan();
    let findings = berth_core::check(state, &plan);
    let time = clock.elapsed();
    if let Some(finding) = findings.first() {
        bail!("the check objects to {} decisions, first: {finding:?}", findings.len());
    }
    Ok((plan, time))
}

/// What kind of event a plan followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Ended,
    Submitted,
    Stopped,
    NodeLost,
    LeaseLost,
    NodeBack,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Ended => "end of a task",
            Kind::Submitted => "submission",
            Kind::Stopped => "end of a stopped task",
            Kind::NodeLost => "loss of a node",
            Kind::LeaseLost => "end of a task on a lost node",
            Kind::NodeBack => "return of a node",
        }
    }
}

/// A state with the little an outside world has to remember to act on it.
#[derive(Clone)]
pub struct Driver {
    pub state: State,
    random: Random,
    load: Option<Load>,
    /// Where each open lease is.
    leases: BTreeMap<LeaseId, Name>,
    on_node: BTreeMap<Name, BTreeSet<LeaseId>>,
    nodes: Vec<Name>,
    lost: BTreeSet<Name>,
    /// What happens next, before anything new.
    due: VecDeque<(Kind, Event)>,
    /// What happens when its time has come.
    later: BTreeMap<(Time, u64), (Kind, Event)>,
    /// When the next thing happens by itself, and how far apart they are.
    next: Time,
    between: Span,
    pub starts: u64,
    pub stops: u64,
}

/// Between two things that happen by themselves in a cluster of 12,500 nodes; smaller ones have
/// fewer. What follows from a decision comes at its own time.
const BETWEEN: Span = Span::ms(40);
/// How long a task takes to save itself when it is asked to stop.
const SAVING: Span = Span::secs(30);
/// How long a lost node stays away.
const AWAY: Span = Span::mins(2);

impl Driver {
    pub fn new(world: &Snapshot, load: Option<Load>, seed: u64) -> Result<Driver> {
        let mut driver = Driver {
            state: State::load(world).context("the made world loads")?,
            random: Random::new(seed ^ 0x5eed),
            load,
            leases: BTreeMap::new(),
            on_node: BTreeMap::new(),
            nodes: world.nodes.iter().map(|node| node.spec.name.clone()).collect(),
            lost: BTreeSet::new(),
            due: VecDeque::new(),
            later: BTreeMap::new(),
            between: Span(BETWEEN.0 * 12_500 / (world.nodes.len() as i64).max(1)),
            next: world.now,
            starts: 0,
            stops: 0,
        };
        for job in &world.jobs {
            for lease in &job.leases {
                let id = LeaseId { job: job.id(), task: lease.task, attempt: lease.attempt };
                driver.opened(id, &lease.node);
            }
        }
        Ok(driver)
    }

    pub fn running(&self) -> usize {
        self.leases.len()
    }

    fn opened(&mut self, lease: LeaseId, node: &Name) {
        self.leases.insert(lease, node.clone());
        self.on_node.entry(node.clone()).or_default().insert(lease);
    }

    fn closed(&mut self, lease: LeaseId) {
        if let Some(node) = self.leases.remove(&lease)
            && let Some(leases) = self.on_node.get_mut(&node)
        {
            leases.remove(&lease);
        }
    }

    pub fn apply(&mut self, at: Time, event: Event) -> Result<()> {
        let seq = self.state.seq() + 1;
        if let Event::LeaseEnded { lease, .. } = &event {
            self.closed(*lease);
        }
        let stamped = Stamped { seq, at, event };
        let applied = self.state.apply(&stamped);
        let _rows =
            applied.with_context(|| format!("event {seq} was refused: {:?}", stamped.event))?;
        Ok(())
    }

    /// Carries a plan out: its decisions are recorded and its tasks start at once.
    pub fn carry_out(&mut self, plan: &Plan) -> Result<()> {
        let at = plan.at;
        for transaction in &plan.transactions {
            let (job, decisions) = (transaction.job, transaction.decisions.clone());
            self.apply(at, Event::Decided { job, decisions })?;
        }
        for decision in plan.decisions() {
            match decision {
                Decision::Start { lease, node, .. } => {
                    self.starts += 1;
                    self.opened(*lease, node);
                    self.apply(at, Event::LeaseStarted { lease: *lease })?;
                }
                Decision::Stop { lease, .. } => {
                    self.stops += 1;
                    let ended = Event::LeaseEnded { lease: *lease, outcome: LeaseOutcome::Stopped };
                    self.later.insert((at + SAVING, self.stops), (Kind::Stopped, ended));
                }
                Decision::Reserve { .. }
                | Decision::Unreserve { .. }
                | Decision::Claim { .. }
                | Decision::Return { .. }
                | Decision::SetAside { .. } => {}
            }
        }
        Ok(())
    }

    /// Lets everything end that is being stopped, all at once, and plans anew, until nothing is; at
    /// most so many times. Returns how often that was.
    pub fn settle(&mut self, most: usize) -> Result<usize> {
        for n in 0..most {
            let mut at = self.state.now();
            let mut ended = false;
            for ((due, _), (_, event)) in std::mem::take(&mut self.later) {
                at = at.max(due);
                if matches!(&event, Event::LeaseEnded { lease, .. } if self.leases.contains_key(lease))
                {
                    ended = true;
                    self.apply(at, event)?;
                }
            }
            if !ended {
                return Ok(n);
            }
            let plan = self.state.plan();
            self.carry_out(&plan)?;
        }
        Ok(most)
    }

    /// What happens next in a busy cluster.
    pub fn next_event(&mut self) -> (Time, Kind, Event) {
        self.next = self.next.max(self.state.now());
        let mut now = self.state.now();
        loop {
            if self.due.is_empty()
                && let Some(next) = self.later.first_entry()
                && next.key().0 <= self.next
            {
                now = now.max(next.key().0);
                self.due.push_back(next.remove());
            }
            let Some((kind, event)) = self.due.pop_front() else { break };
            let over = match &event {
                Event::LeaseEnded { lease, .. } => !self.leases.contains_key(lease),
                _ => false,
            };
            if !over {
                if let Event::NodeChanged { node, state: NodeState::Ready } = &event {
                    self.lost.remove(node);
                }
                return (now, kind, event);
            }
        }
        let now = self.next;
        self.next = now + self.between;
        match self.random.below(100) {
            0..48 => self.some_end(now),
            48..96 => self.some_submission(now),
            _ => self.some_loss(now),
        }
    }

    fn some_submission(&mut self, now: Time) -> (Time, Kind, Event) {
        let load = self.load.as_mut().expect("a busy cluster has a load");
        let spec = Box::new(load.submission(now));
        (now, Kind::Submitted, Event::JobSubmitted { spec })
    }

    /// Some running job ends well, task by task.
    fn some_end(&mut self, now: Time) -> (Time, Kind, Event) {
        let Some(first) = self.some_lease() else { return self.some_submission(now) };
        let of_job = LeaseId { job: first.job, task: 0, attempt: 0 }..=LeaseId {
            job: first.job,
            task: u32::MAX,
            attempt: u32::MAX,
        };
        let ended = |lease: LeaseId| Event::LeaseEnded { lease, outcome: LeaseOutcome::Done };
        let mut all = self.leases.range(of_job).map(|(id, _)| (Kind::Ended, ended(*id)));
        let (kind, event) = all.next().expect("the one that was found");
        self.due.extend(all);
        (now, kind, event)
    }

    /// Any open lease: the first one after a random job number.
    fn some_lease(&mut self) -> Option<LeaseId> {
        let (last, _) = self.leases.last_key_value()?;
        let job = JobId::new(self.random.below(last.job.number) + 1);
        let from = LeaseId { job, task: 0, attempt: 0 };
        self.leases.range(from..).next().map(|(id, _)| *id)
    }

    fn some_loss(&mut self, now: Time) -> (Time, Kind, Event) {
        let node = self.random.pick(&self.nodes).clone();
        if !self.lost.insert(node.clone()) {
            return self.some_submission(now);
        }
        for lease in self.on_node.get(&node).into_iter().flatten() {
            let ended = Event::LeaseEnded { lease: *lease, outcome: LeaseOutcome::Lost };
            self.due.push_back((Kind::LeaseLost, ended));
        }
        let back = Event::NodeChanged { node: node.clone(), state: NodeState::Ready };
        self.later.insert((now + AWAY, u64::MAX - self.state.seq()), (Kind::NodeBack, back));
        let lost = Event::NodeChanged { node, state: NodeState::Failed };
        (now, Kind::NodeLost, lost)
    }
}
