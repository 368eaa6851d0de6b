//! A driver that plays random events against a state, carries its plans out the way real machines
//! do (at once, late, or not until much later), and writes everything down.

use super::books::Books;
use super::draw::{Bytes as Raw, Draw};
use super::world::{self, Tale};
use berth_core::{Applied, Plan, State};
use berth_model::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub const START: Time = Time(1_794_733_200_000);

/// A state with its log and what the outside knows of it.
#[derive(Clone)]
pub struct Run {
    pub state: State,
    pub log: Vec<Stamped>,
    pub now: Time,
    pub books: Books,
    /// Every job that was ever admitted, and how those that ended did.
    pub submitted: BTreeSet<JobId>,
    pub ended: BTreeMap<JobId, Outcome>,
    /// Leases that were asked to stop, or whose node was lost, and that have yet to say so.
    pub due: Vec<(LeaseId, LeaseOutcome)>,
    /// Leases that have yet to say that they run.
    pub starting: Vec<LeaseId>,
    pub next_job: u64,
    pub next_node: usize,
    pub next_queue: usize,
    /// Whether every plan is checked before it is carried out.
    pub checks: bool,
}

/// What a step amounted to.
pub enum Did {
    Events,
    Planned(Plan),
}

impl Default for Run {
    fn default() -> Run {
        Run::new()
    }
}

impl Run {
    pub fn new() -> Run {
        Run {
            state: State::new(),
            log: Vec::new(),
            now: START,
            books: Books::default(),
            submitted: BTreeSet::new(),
            ended: BTreeMap::new(),
            due: Vec::new(),
            starting: Vec::new(),
            next_job: 1,
            next_node: 0,
            next_queue: 0,
            checks: false,
        }
    }

    /// The world of a tale, nothing planned yet.
    pub fn set_up(tale: &Tale) -> Run {
        let mut run = Run::new();
        let topologies =
            BTreeMap::from([(Name::new("default"), vec![Name::new("zone"), Name::new("rack")])]);
        run.must(Event::TopologySet { topologies });
        run.must(Event::PolicySet { policy: Box::new(world::policy(&tale.policy)) });
        for bytes in &tale.nodes {
            run.add_node(bytes);
        }
        let mut queues: Vec<QueueSpec> = Vec::new();
        for (number, bytes) in tale.queues.iter().enumerate() {
            let spec = world::queue(number, bytes, &queues);
            queues.push(spec.clone());
            run.must(Event::QueueSet { queue: Box::new(spec) });
        }
        run.next_queue = queues.len();
        for bytes in &tale.jobs {
            run.submit(bytes);
        }
        run
    }

    /// Sends an event as of now; what is refused is not in the log.
    pub fn send(&mut self, event: Event) -> Result<Applied, Rejected> {
        let stamped = Stamped { seq: self.state.seq() + 1, at: self.now, event };
        let applied = self.state.apply(&stamped)?;
        if let Event::JobSubmitted { spec } = &stamped.event {
            match &spec.array {
                None => _ = self.submitted.insert(spec.id),
                Some(array) => {
                    self.submitted.extend(array.elements.iter().map(|e| spec.id.element(*e)));
                }
            }
        }
        self.ended.extend(applied.ended.iter().copied());
        self.books.write(&stamped, &applied);
        self.log.push(stamped);
        Ok(applied)
    }

    /// Sends an event that must be taken.
    pub fn must(&mut self, event: Event) {
        if let Err(why) = self.send(event.clone()) {
            panic!("{why}\nrefused: {event:?}");
        }
    }

    /// Sends an event that may be refused.
    pub fn may(&mut self, event: Event) {
        let _ = self.send(event);
    }

    /// The log as text, for the message of a failure.
    pub fn story(&self) -> String {
        let mut text = String::new();
        for stamped in &self.log {
            let _ = writeln!(text, "{} {:?}", stamped.at, stamped.event);
        }
        text
    }

    fn add_node(&mut self, bytes: &Raw) {
        let spec = world::node(self.next_node, bytes);
        self.next_node += 1;
        self.must(Event::NodeAdded { node: Box::new(spec) });
    }

    pub fn submit(&mut self, bytes: &Raw) {
        let leaves = leaves(&self.state.snapshot());
        let spec = world::job(self.next_job, bytes, &leaves, self.now);
        self.next_job += 1;
        self.may(Event::JobSubmitted { spec: Box::new(spec) });
    }

    /// Appends a plan's decisions; its starts run and its stops end at once or later, as drawn.
    pub fn carry_out(&mut self, plan: &Plan, promptness: usize) {
        for transaction in &plan.transactions {
            let decisions = transaction.decisions.clone();
            self.must(Event::Decided { job: transaction.job, decisions });
        }
        for decision in plan.decisions() {
            match decision {
                Decision::Start { lease, .. } => match promptness {
                    3 => self.starting.push(*lease),
                    _ => self.must(Event::LeaseStarted { lease: *lease }),
                },
                Decision::Stop { lease, .. } => match promptness {
                    2 | 3 => self.due.push((*lease, LeaseOutcome::Stopped)),
                    1 if lease.task % 2 == 1 => self.due.push((*lease, LeaseOutcome::Stopped)),
                    _ => self.end(*lease, LeaseOutcome::Stopped),
                },
                _ => {}
            }
        }
    }

    pub fn plan_and_carry_out(&mut self, promptness: usize) -> Plan {
        let plan = self.state.plan();
        if self.checks {
            let findings = berth_core::check(&self.state, &plan);
            assert!(findings.is_empty(), "{findings:?}\nin {plan:?}");
        }
        self.carry_out(&plan, promptness);
        plan
    }

    /// The lease ends; one that has ended already is let be.
    pub fn end(&mut self, lease: LeaseId, outcome: LeaseOutcome) {
        self.starting.retain(|other| *other != lease);
        self.due.retain(|(other, _)| *other != lease);
        self.may(Event::LeaseEnded { lease, outcome });
    }

    /// Everything that is due happens now.
    pub fn catch_up(&mut self) {
        for lease in std::mem::take(&mut self.starting) {
            self.may(Event::LeaseStarted { lease });
        }
        for (lease, outcome) in std::mem::take(&mut self.due) {
            self.end(lease, outcome);
        }
    }

    /// Plays one step.
    pub fn step(&mut self, bytes: &Raw) -> Did {
        let mut d = Draw::new(bytes);
        let kind = d.below(40);
        let spans = [0, 0, 1, 30, 61, 300, 301, 900, 3_600, 40_000];
        self.now = self.now + Span::secs(d.pick(&spans));
        match kind {
            0..=13 => {
                let promptness = d.below(4);
                return Did::Planned(self.plan_and_carry_out(promptness));
            }
            14..=18 => self.submit(&rest(bytes)),
            19..=20 => self.catch_up(),
            21..=25 => self.about_a_job(&mut d),
            26..=30 => self.about_a_node(&mut d, bytes),
            31..=34 => self.about_rules(&mut d, bytes),
            35..=36 => self.about_machines(&mut d, bytes),
            _ => self.may(Event::Tick),
        }
        Did::Events
    }

    /// A plan at the end, however the steps went.
    pub fn finish(&mut self) -> Plan {
        self.catch_up();
        self.plan_and_carry_out(0)
    }

    fn about_a_job(&mut self, d: &mut Draw<'_>) {
        let snapshot = self.state.snapshot();
        let running: Vec<&JobSnapshot> =
            snapshot.jobs.iter().filter(|job| !job.leases.is_empty()).collect();
        let kind = d.below(10);
        if snapshot.jobs.is_empty() {
            return;
        }
        let any = d.pick(&snapshot.jobs);
        let change = |change| Event::JobChanged { job: any.id(), change };
        match kind {
            0..=4 if !running.is_empty() => {
                let job = d.pick(&running);
                let leases = job.leases.iter().map(|lease| LeaseId {
                    job: job.id(),
                    task: lease.task,
                    attempt: lease.attempt,
                });
                let leases: Vec<LeaseId> = leases.collect();
                match d.below(5) {
                    0..=1 => leases.iter().for_each(|lease| self.end(*lease, LeaseOutcome::Done)),
                    2 => self.end(d.pick(&leases), LeaseOutcome::Done),
                    3 => self.end(d.pick(&leases), LeaseOutcome::Failed),
                    _ => self.end(d.pick(&leases), LeaseOutcome::Lost),
                }
            }
            5 if !running.is_empty() => {
                self.may(Event::LeaseSaved { job: d.pick(&running).id() });
            }
            6 => self.may(Event::JobCancelled { job: d.pick(&[any.id(), any.id().array()]) }),
            7 => self.may(change(JobChange::Hold(!any.spec.hold))),
            8 => {
                let spans = [Span::mins(30), Span::secs(1), Span::hours(20)];
                self.may(change(JobChange::TimeLimit(d.pick(&spans))));
            }
            _ => {
                let changed = match d.below(4) {
                    3 => {
                        let ask =
                            NodeAsk { never: [world::name("n", 1)].into(), ..NodeAsk::default() };
                        let leaves = any.spec.groups.iter().flat_map(GroupSpec::leaves).count();
                        JobChange::Nodes(vec![d.maybe(2, &[ask]); leaves])
                    }
                    0 => JobChange::Priority(d.pick(&[100, 10, 1_000, 50])),
                    1 => JobChange::Deadline(d.maybe(2, &[self.now + Span::hours(1)])),
                    _ => match leaves(&snapshot).as_slice() {
                        [] => return,
                        leaves => JobChange::Queue(d.pick(leaves)),
                    },
                };
                self.may(change(changed));
            }
        }
    }

    fn about_a_node(&mut self, d: &mut Draw<'_>, bytes: &Raw) {
        let snapshot = self.state.snapshot();
        let kind = d.below(13);
        if snapshot.nodes.is_empty() || kind == 0 {
            return self.add_node(&rest(bytes));
        }
        let node = d.pick(&snapshot.nodes).spec;
        let change = |state| Event::NodeChanged { node: node.name.clone(), state };
        match kind {
            1..=2 => {
                self.may(change(NodeState::Failed));
                let lost: Vec<LeaseId> = leases_on(&snapshot, &node.name);
                for lease in lost {
                    match d.below(2) {
                        0 => self.end(lease, LeaseOutcome::Lost),
                        _ => self.due.push((lease, LeaseOutcome::Lost)),
                    }
                }
            }
            3..=4 => self.may(change(NodeState::Ready)),
            5 => self.may(change(NodeState::Cordoned)),
            6 => self.may(change(NodeState::Draining)),
            7 => {
                let spans = [Span::mins(2), Span::mins(10), Span::hours(1), Span::ZERO];
                self.may(change(NodeState::Leaving { at: self.now + d.pick(&spans) }));
            }
            8..=9 => {
                let gpu = d.below(8) as u32;
                let health = d.pick(&[Health::Failed, Health::Ok]);
                self.may(Event::GpuChanged { node: node.name, gpu, health });
            }
            10 => self.may(Event::NodeRemoved { node: node.name }),
            11 => {
                let kept = world::DATA.iter().filter(|_| d.one_in(2)).map(|name| Name::new(name));
                let data = kept.zip([Bytes(7 << 30), Bytes(1 << 40), Bytes(0)]).collect();
                self.may(Event::DataKept { node: node.name, data });
            }
            _ => {
                let mut node = node;
                node.price = d.maybe(2, &[Micros(3_333_333)]);
                node.state = d.pick(&[NodeState::Ready, NodeState::Cordoned]);
                // Also while something runs there.
                match d.below(4) {
                    0 => {
                        let rack = Name::new(d.pick(&["r00", "r11", "elsewhere"]));
                        node.labels.insert(Name::new("rack"), rack);
                    }
                    1 if node.labels.remove("disk").is_none() => {
                        node.labels.insert(Name::new("disk"), Name::new("nvme"));
                    }
                    2 => node.cpu = node.cpu.map(|cpu| Cpu(cpu.0 + 1_000)),
                    _ => {}
                }
                self.may(Event::NodeAdded { node: Box::new(node) });
            }
        }
    }

    fn about_rules(&mut self, d: &mut Draw<'_>, bytes: &Raw) {
        let snapshot = self.state.snapshot();
        let queues: Vec<QueueSpec> = snapshot.queues.iter().map(|q| q.spec.clone()).collect();
        match d.below(8) {
            0 => self.may(Event::PolicySet { policy: Box::new(world::policy(&rest(bytes))) }),
            1 => {
                let spec = world::queue(self.next_queue, &rest(bytes), &queues);
                self.next_queue += 1;
                self.may(Event::QueueSet { queue: Box::new(spec) });
            }
            2..=3 if !queues.is_empty() => {
                let mut spec = world::queue(self.next_queue, &rest(bytes), &queues);
                spec.name = d.pick(&queues).name;
                self.may(Event::QueueSet { queue: Box::new(spec) });
            }
            4 if !queues.is_empty() => {
                self.may(Event::QueueRemoved { queue: d.pick(&queues).name });
            }
            5 => {
                let price = d.pick(&[Micros(2_000_003), Micros(0), Micros(999_999)]);
                let prices = BTreeMap::from([(Name::new(d.pick(&world::MODELS)), price)]);
                let speeds = BTreeMap::from([(Name::new(world::MODELS[2]), Milli(900))]);
                self.may(Event::ModelsSet { prices, speeds, watts: BTreeMap::new() });
            }
            6 => {
                let keys = d.pick(&[["zone", "rack"], ["rack", "zone"]]);
                let keys = keys.into_iter().map(Name::new).collect();
                let topologies = BTreeMap::from([(Name::new("default"), keys)]);
                self.may(Event::TopologySet { topologies });
            }
            _ => {
                let class = |value, across| PriorityClass { value, across };
                let classes = BTreeMap::from([
                    (Name::new("critical"), class(d.pick(&[1_000, 90]), true)),
                    (Name::new("normal"), class(50, false)),
                ]);
                self.may(Event::ClassesSet { classes });
            }
        }
    }

    fn about_machines(&mut self, d: &mut Draw<'_>, bytes: &Raw) {
        let snapshot = self.state.snapshot();
        match d.below(6) {
            0 => {
                let pool = world::pool(d.below(2), &rest(bytes));
                self.may(Event::PoolSet { pool: Box::new(pool) });
            }
            1 => self.may(Event::PoolRemoved { pool: world::name("p", d.below(2)) }),
            2 if !snapshot.claims.is_empty() => {
                let claim = d.pick(&snapshot.claims);
                let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool);
                let node = Box::new(world::bought(&claim, pool));
                self.may(Event::ClaimReady { claim: claim.name, node });
            }
            3 if !snapshot.claims.is_empty() => {
                let claim = d.pick(&snapshot.claims).name;
                self.may(Event::ClaimFailed { claim, retry_at: self.now + Span::mins(10) });
            }
            4 if !snapshot.nodes.is_empty() => {
                let from = self.now + d.pick(&[Span::mins(10), Span::hours(2), Span::ZERO]);
                let owner = snapshot.queues.first().map(|queue| queue.spec.name.clone());
                let owner = d.maybe(2, &[owner.unwrap_or_default()]);
                let reservation = Reservation {
                    name: world::name("m", d.below(2)),
                    owner: owner.unwrap_or(Name::new("ops")),
                    nodes: vec![d.pick(&snapshot.nodes).spec.name],
                    from,
                    to: from + d.pick(&[Span::hours(1), Span::hours(5)]),
                };
                self.may(Event::ReservationSet { reservation });
            }
            _ => self.may(Event::ReservationRemoved { name: world::name("m", d.below(2)) }),
        }
    }
}

/// The bytes after those that chose the step.
fn rest(bytes: &Raw) -> Raw {
    let mut rest = *bytes;
    rest.rotate_left(3);
    rest
}

/// Queues that jobs may be submitted to.
pub fn leaves(snapshot: &Snapshot) -> Vec<Name> {
    let parents: BTreeSet<&Name> =
        snapshot.queues.iter().filter_map(|queue| queue.spec.parent.as_ref()).collect();
    let names = snapshot.queues.iter().map(|queue| &queue.spec.name);
    names.filter(|name| !parents.contains(name)).cloned().collect()
}

pub fn leases_on(snapshot: &Snapshot, node: &Name) -> Vec<LeaseId> {
    let mut found = Vec::new();
    for job in &snapshot.jobs {
        for lease in job.leases.iter().filter(|lease| lease.node == *node) {
            found.push(LeaseId { job: job.id(), task: lease.task, attempt: lease.attempt });
        }
    }
    found
}
